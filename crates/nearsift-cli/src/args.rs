//! The command line, as clap reads it. Nothing here acts: `resolve` makes settings of it.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use nearsift::substrings::MinBytes;
use nearsift_batch::{Bounds, RecipeChoice};

/// Find near-duplicate documents, Chinese first and every language after.
///
/// Results go to standard output, everything else to standard error.
///
/// Exit status: 0 done; 1 nothing found where finding was the question (compare: not near
/// duplicates); 2 usage or fatal error; 3 done, but some documents were unreadable; 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "nearsift", version, max_term_width = 100, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub global: Global,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub struct Global {
    /// Show no progress, notes or warnings, and no summary of dedup, trim and decontaminate: errors,
    /// results and the exit status are left.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// When to use colour.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Print JSON, where there is anything to print; pairs, fingerprint and index query always do.
    #[arg(long, global = true)]
    pub json: bool,
    /// Worker threads [default: one a core]; of serve those that work on documents.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Sizes from which on work goes to the disk: checkpoint=BYTES,sort=RECORDS,ids=BYTES. With small ones a small
    /// input takes the paths of a large one.
    #[arg(long, global = true, hide = true, value_name = "SIZES", value_parser = parse_bounds)]
    pub bounds: Option<Bounds>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Remove near-duplicates: write the documents worth keeping, and why the others went.
    Dedup(Dedup),
    /// Remove the lines or paragraphs that documents repeat, and keep the rest of the documents.
    Trim(Trim),
    /// Find passages of test sets in the documents: remove the documents that have some, or mark them.
    Decontaminate(Decontaminate),
    /// Make a part of a corpus: what `join` needs of some files, on any machine.
    Sketch(SketchPart),
    /// Decide about the documents of many parts as `dedup` does of all their files.
    Join(Join),
    /// Write what stays of the files of a part.
    Apply(Apply),
    /// Decide anew about the documents of a run: with another score, rule or keep policy.
    Regroup(Regroup),
    /// Print near-duplicate pairs as JSON lines.
    Pairs(Pairs),
    /// Print each document's fingerprint as a JSON line.
    Fingerprint(FingerprintArgs),
    /// Compare two documents by every measure and mark their differences.
    Compare(Compare),
    /// Tell what a finished run of `dedup` decided about a document, and on what.
    Why(Why),
    /// Add up the clusters of several runs in one table: sizes, days and sources.
    Clusters(Clusters),
    /// Print a document's features with their weights: why it has its fingerprint.
    Keywords(Keywords),
    /// List all recipes, with parameters and digests.
    Recipes,
    /// Measure near-duplicate pairs and clusters against a truth.
    Eval(Eval),
    /// Propose a threshold for your own documents, with evidence and a forecast of the cost.
    Tune(Tune),
    /// Keep documents in a durable index and ask which of them a document is near to.
    #[command(subcommand)]
    Index(crate::commands::index::IndexArgs),
    /// Check a file of golden vectors.
    Vectors(Vectors),
    /// Show a finished run of `dedup` in a browser: its groups, comparisons, thresholds and reviews.
    #[cfg(unix)]
    View(View),
    /// Answer 'have I seen this page?' over HTTP, with a page for people.
    #[cfg(unix)]
    Serve(Serve),
    /// Measure this machine; every answer is checked.
    Bench(Bench),
    /// Print a script by which a shell completes commands, options and their values.
    Completions(Completions),
    /// Write the manual pages, one for each command.
    Man(Man),
}

#[derive(Debug, Args)]
pub struct Input {
    /// Files, folders, glob patterns, or - for standard input; .gz, .zst, .xz and .bz2 are seen through, .tar and .zip looked into.
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    /// Also read the files, folders and patterns that this file names, one a line; - for standard input.
    #[arg(help_heading = "What is read", long, value_name = "LIST")]
    pub files_from: Option<PathBuf>,
    #[command(flatten)]
    pub reading: Reading,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What is read")]
pub struct Reading {
    /// The format of the input.
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub format: FormatArg,
    /// The field that holds the text (a.b for a nested one).
    #[arg(long, value_name = "FIELD", default_value = "text")]
    pub text_field: String,
    /// The field that holds the id; a document without it gets FILE:LINE.
    #[arg(long, value_name = "FIELD", default_value = "id")]
    pub id_field: String,
    /// The character between the fields of CSV: `;`, `|`, `tab` ... [default: that of the `sep=` line or the
    /// header; comma where that does not tell].
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    pub delimiter: Option<u8>,
    /// The charset, such as gbk or big5 [default: UTF-8 for JSON and CSV; for text and HTML what they
    /// declare, else what their bytes look like].
    #[arg(long, value_name = "LABEL")]
    pub charset: Option<String>,
    /// Also follow links that lead out of an input folder. Links that stay inside always are followed.
    #[arg(long)]
    pub follow_links: bool,
    /// The longest record that is read, such as 1GB; a longer one is counted as unreadable
    /// [default: 64MiB].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_record_bytes: Option<u64>,
    /// The most bytes that one compressed file may unfold to, such as 100GB [default: 1TiB].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_file_bytes: Option<u64>,
    /// How many times its size a compressed file may unfold to on average [default: 256].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_ratio: Option<u64>,
    /// The largest zstd window, as a base-2 logarithm of bytes [default: 27].
    #[arg(long, value_name = "LOG", value_parser = clap::value_parser!(u32).range(10..=31))]
    pub max_window_log: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    Auto,
    Jsonl,
    Json,
    Csv,
    Tsv,
    Parquet,
    Arrow,
    Warc,
    Text,
    Html,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "What decides a fingerprint")]
pub struct RecipeArgs {
    /// What decides a fingerprint: a name, or name:parameter=value,... (see `nearsift recipes`)
    /// [default: sketch, or simhash64 where SimHash is asked; of an index its own; of keywords
    /// keywords64].
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,
    /// The width of the fingerprint: 32, 64, 128 or 256 [default: the recipe's].
    #[arg(long, value_name = "BITS", value_parser = ["32", "64", "128", "256"])]
    pub bits: Option<String>,
    /// How rare each feature is: `corpus` counts it over the input, else a file of `token idf` lines.
    #[arg(long, value_name = "corpus|FILE")]
    pub idf: Option<String>,
    /// More words for the segmenter: `word [frequency] [tag]` a line.
    #[arg(long, value_name = "FILE")]
    pub user_dictionary: Option<PathBuf>,
    /// Words that are never keywords, one a line, in place of the shipped list.
    #[arg(long, value_name = "FILE")]
    pub stop_words: Option<PathBuf>,
    /// Levels for weight=levels: `token level` a line, the level from 1 to 5.
    #[arg(long, value_name = "FILE")]
    pub levels: Option<PathBuf>,
}

impl RecipeArgs {
    /// As a job takes it.
    pub fn choice(&self) -> RecipeChoice {
        RecipeChoice {
            recipe: self.recipe.clone(),
            // The parser lets only numbers pass.
            bits: self.bits.as_deref().and_then(|bits| bits.parse().ok()),
            idf: self.idf.clone(),
            user_dictionary: self.user_dictionary.clone(),
            stop_words: self.stop_words.clone(),
            levels: self.levels.clone(),
        }
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "What is near")]
pub struct Matching {
    /// How near-duplicates are found [default: sketch; simhash where --max-distance, --bits or a recipe
    /// of fingerprints is given].
    #[arg(long, value_name = "METHOD")]
    pub method: Option<Method>,
    /// SimHash: the largest Hamming distance, inclusive, in bits [default: 3 of 64, in proportion].
    #[arg(long, value_name = "K", conflicts_with = "min_score")]
    pub max_distance: Option<u32>,
    /// The smallest score, inclusive, from 0 to 1: of sketches that are verified, from the cosine
    /// and the alignment of the texts [default: 0.63]; of sketches that are not, their own [default:
    /// 0.46, of an index 0.4]; of fingerprints, 1 - 2 x distance / bits.
    #[arg(long, value_name = "S", value_parser = parse_score)]
    pub min_score: Option<f64>,
    /// The smallest score for a kind of text, where the default is for articles and pages.
    #[arg(long, value_name = "KIND", conflicts_with_all = ["min_score", "max_distance"])]
    pub preset: Option<Preset>,
}

impl Matching {
    /// The smallest score that was given, by itself or by a preset.
    pub fn min_score(&self) -> Option<f64> {
        self.min_score.or(self.preset.map(Preset::min_score))
    }
}

/// Kinds of text for which another score than the default is near enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// Records of one form, where a few fields tell them apart: bibliographic records, contacts, products (score 0.9).
    Records,
}

impl Preset {
    fn min_score(self) -> f64 {
        match self {
            Preset::Records => 0.9,
        }
    }
}

/// What a search of a whole corpus has beside [`Matching`].
#[derive(Debug, Args)]
#[command(next_help_heading = "What is near")]
pub struct Searching {
    /// Sketches: whether the texts of candidates are compared exactly [default: exact].
    #[arg(long, value_name = "HOW")]
    pub verify: Option<Verify>,
    /// The memory to use, such as 4GB: of `dedup` of more than 128 MiB all of it, else for the search
    /// beside the documents' own columns. What does not fit goes to the disk; a limit that is too small
    /// is an error that names one that is not.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Dual sketches: candidates by minwise keys, then compared exactly.
    Sketch,
    /// SimHash fingerprints within a Hamming distance, exactly.
    Simhash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Verify {
    /// Candidates are read again and compared exactly.
    Exact,
    /// The score of the sketches decides.
    Off,
}

#[derive(Debug, Args)]
pub struct Configured {
    /// Settings from a TOML file, such as `nearsift tune` writes: the names are those of the long
    /// options, and the command line wins.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Dedup {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub configured: Configured,
    /// The folder for the results; it must be empty or not exist. With - the kept documents (or with --mark all) go to
    /// standard output, as JSON lines or in --output-format, and nothing else is written: no removed.jsonl, no report, no
    /// list of what was unreadable, and no work that --resume could take up.
    #[arg(help_heading = "What comes out", short, long, value_name = "DIR|-")]
    pub output: PathBuf,
    /// Write what is kept (or with --mark all) of all inputs as this one file, in place of a folder of files. Its ending tells the
    /// format and the compression, such as .jsonl.gz or .parquet. The tables and the report are in the folder.
    #[arg(help_heading = "What comes out", long, value_name = "FILE", value_parser = one_file())]
    pub output_file: Option<PathBuf>,
    /// Replace the results of an earlier run in that folder. They stay until the new ones are complete, and only files that the earlier
    /// run wrote are removed: a folder with any other file is refused. Work of a stopped run is removed, unless --resume takes it up. The file of --output-file is replaced, too.
    #[arg(help_heading = "What comes out", long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub recipe: RecipeArgs,
    #[command(flatten)]
    pub matching: Matching,
    #[command(flatten)]
    pub searching: Searching,
    /// Write what is kept in this format: each file with its extension, all fields carried over; archives,
    /// and the text and web pages of a folder, become one file each [default: as the input; of --output-file as its ending
    /// tells].
    #[arg(help_heading = "What comes out", long, value_name = "FORMAT")]
    pub output_format: Option<OutputFormat>,
    /// How converted files are compressed: none, gz, zst, xz or bz2; of Parquet and Arrow page by page, by
    /// none, gz (Parquet) or zst [default: zst for Parquet and Arrow, none for others; of --output-file as its ending tells].
    #[arg(help_heading = "What comes out", long, value_name = "CODEC", requires = "output_format", value_parser = ["none", "gz", "zst", "xz", "bz2"])]
    pub output_compression: Option<String>,
    /// Which member of a group stays: first, longest, newest:FIELD, highest:FIELD, or
    /// ranked:FIELD=VALUE,VALUE,... (the value that is named first stays, as of sources).
    #[arg(help_heading = "What comes out", long, value_name = "POLICY", default_value = "first")]
    pub keep: String,
    /// How pairs become groups [default: majority for sketches and for SimHash beyond an eighth
    /// of the bits, else components].
    #[arg(help_heading = "What comes out", long, value_name = "RULE")]
    pub cluster: Option<ClusterRule>,
    /// With majority: the most different texts that a document stands for. Of n that are alike about n / N stay.
    #[arg(help_heading = "What comes out", long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(2..))]
    pub max_cluster: u32,
    /// The field that says where a document comes from, such as site or dump: the report tells how much
    /// of each was duplicate, and of whom [default: the top folders of the input].
    #[arg(help_heading = "What comes out", long, value_name = "FIELD")]
    pub source_field: Option<String>,
    /// Also write partial.jsonl: the passages that kept documents share, such as quotations, a page
    /// inside another, pages put together; which part of which. Nothing is removed because of them.
    #[arg(help_heading = "What comes out", long)]
    pub partial: bool,
    /// Also remove what a reference has, which is itself never changed: the output of an earlier run (all its
    /// documents, also those that it removed, out of its input, or with --keep-state out of what it left), a file
    /// or folder of documents, or an index of `nearsift index`, which keeps no texts: there the score of sketches
    /// decides, as with --verify off. May be given several times.
    #[arg(help_heading = "What comes out", long, value_name = "DIR_OR_INDEX")]
    pub against: Vec<PathBuf>,
    /// Of earlier runs only the documents count that stayed: what resembles a removed one comes in.
    #[arg(help_heading = "What comes out", long, requires = "against")]
    pub against_kept_only: bool,
    /// Also write part/: what --against needs of all documents later, 221 bytes each and about two fifths of the text.
    #[arg(help_heading = "What comes out", long)]
    pub keep_state: bool,
    /// Also write part/: what `nearsift regroup` needs to decide anew without the input. It has the texts, packed, and the
    /// scores of compared pairs from this one on.
    #[arg(help_heading = "What comes out", long, value_name = "SCORE", value_parser = parse_score)]
    pub keep_pairs_from: Option<f64>,
    /// In which formats removed, pairs and clusters are written: parquet is beside the JSON lines, with lists as JSON texts.
    #[arg(help_heading = "What comes out", long, value_name = "FORMAT", default_value = "jsonl")]
    pub tables: TableFormat,
    /// Keep every document: marked/ has all of them in the input's format and order, each with the columns
    /// cluster, cluster_size, representative, score, kept and reason. WARC, text and HTML files and
    /// archives stay as they are; marks.jsonl has the columns of their documents.
    #[arg(help_heading = "What comes out", long)]
    pub mark: bool,
    /// Other names for these columns, as cluster=near_cluster,kept=near_kept.
    #[arg(
        help_heading = "What comes out",
        long,
        value_name = "COLUMN=NAME,...",
        requires = "mark"
    )]
    pub mark_names: Option<String>,
    /// Say what would be removed, and write all but the kept documents.
    #[arg(help_heading = "What comes out", long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub report: ReportArgs,
    /// Go on with a run into the same folder that was stopped; begin one if there is none.
    #[arg(help_heading = "How it runs", long)]
    pub resume: bool,
    /// How progress is shown on standard error [default: a bar, on a terminal].
    #[arg(help_heading = "How it runs", long, value_name = "HOW")]
    pub progress: Option<ProgressForm>,
}

/// What a report for people has.
#[derive(Debug, Args)]
#[command(next_help_heading = "What comes out")]
pub struct ReportArgs {
    /// The language of report.html [default: Chinese where the locale is, else English].
    #[arg(long, value_name = "LANGUAGE")]
    pub language: Option<PageLanguage>,
    /// The day that report.html names, as YYYY-MM-DD [default: none, so that the same input gives the same report].
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    pub date: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    Jsonl,
    Parquet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressForm {
    /// A bar, where standard error is a terminal.
    Bar,
    /// JSON lines: phase, done, total, unit, rate a second and seconds left.
    Json,
    /// Nothing.
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    Jsonl,
    Json,
    Csv,
    Tsv,
    Parquet,
    Arrow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClusterRule {
    /// Groups join only when at least half of the sampled pairs across them are near duplicates.
    Majority,
    /// Everything that is linked, also through others.
    Components,
    /// Only what is linked to the kept document itself.
    Star,
}

/// Makes a part of a corpus: a folder with a sketch or fingerprint, an id and the text of every document of some files.
///
/// Parts can be made on many machines, each of its own files. `nearsift join` decides about the documents of all parts, and
/// `nearsift apply` writes what stays of the files of one. The result is that of one `nearsift dedup` over all files, in the order of
/// the parts. A part is never changed: adding files to a corpus makes parts of these alone.
#[derive(Debug, Args)]
pub struct SketchPart {
    #[command(flatten)]
    pub input: Input,
    /// The folder for the part; it must be empty or not exist. If it holds a part that was not completed, of the same files and settings,
    /// the work goes on there.
    #[arg(help_heading = "What comes out", short, long, value_name = "PART", value_parser = output())]
    pub output: PathBuf,
    #[command(flatten)]
    pub recipe: RecipeArgs,
    /// Which member of a group will stay: first, longest, newest:FIELD, highest:FIELD, or ranked:FIELD=VALUE,VALUE,... The same for all
    /// parts.
    #[arg(help_heading = "What comes out", long, value_name = "POLICY", default_value = "first")]
    pub keep: String,
    /// The field that says where a document comes from, such as site or dump. The same for all parts.
    #[arg(help_heading = "What comes out", long, value_name = "FIELD")]
    pub source_field: Option<String>,
    /// Leave the texts out: the part has 208 bytes a document and its id, and `join` needs --verify off.
    #[arg(help_heading = "What comes out", long)]
    pub without_texts: bool,
    /// The memory to use, such as 4GB.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// How far the work is, on standard error.
    #[arg(long, value_name = "FORM")]
    pub progress: Option<ProgressForm>,
}

/// How decisions about parts are written.
#[derive(Debug, Args)]
pub struct Deciding {
    /// Also write removed, pairs and clusters in this format, beside the JSON lines.
    #[arg(help_heading = "What comes out", long, value_name = "FORMAT", default_value = "jsonl")]
    pub tables: TableFormat,
    #[command(flatten)]
    pub report: ReportArgs,
    /// Go on with a job into the same folder that was stopped, if there is one.
    #[arg(help_heading = "What comes out", long)]
    pub resume: bool,
    /// Replace the results of an earlier job in that folder.
    #[arg(help_heading = "What comes out", long)]
    pub overwrite: bool,
    /// How far the work is, on standard error.
    #[arg(long, value_name = "FORM")]
    pub progress: Option<ProgressForm>,
}

/// Decides about the documents of parts that `nearsift sketch` made, as `nearsift dedup` does of all their files.
///
/// No document is read from its file. The folder gets the tables and the report of `dedup`, and what was decided about each part;
/// `nearsift apply` writes by it what stays.
#[derive(Debug, Args)]
pub struct Join {
    /// Parts, in the order in which their documents count.
    #[arg(required = true, value_name = "PART")]
    pub parts: Vec<PathBuf>,
    /// The folder for the results; it must be empty or not exist.
    #[arg(help_heading = "What comes out", short, long, value_name = "DIR", value_parser = output())]
    pub output: PathBuf,
    #[command(flatten)]
    pub recipe: RecipeArgs,
    #[command(flatten)]
    pub matching: Matching,
    #[command(flatten)]
    pub searching: Searching,
    /// How pairs become groups [default: as of dedup].
    #[arg(help_heading = "What comes out", long, value_name = "RULE")]
    pub cluster: Option<ClusterRule>,
    /// With majority: the most different texts that a document stands for. Of n that are alike about n / N stay.
    #[arg(help_heading = "What comes out", long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(2..))]
    pub max_cluster: u32,
    #[command(flatten)]
    pub deciding: Deciding,
}

/// Decides anew about the documents of a run of `nearsift dedup --keep-pairs-from`, as a new run with these settings would.
///
/// No document is read from its file. Settings that are not given stay those of the run. The folder gets the tables and the report of
/// `dedup`; `nearsift apply RUN --decisions DIR` writes by it what stays.
#[derive(Debug, Args)]
pub struct Regroup {
    /// The folder of the run.
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// The folder for the results; it must be empty or not exist.
    #[arg(help_heading = "What comes out", short, long, value_name = "DIR", value_parser = output())]
    pub output: PathBuf,
    /// The smallest score of near duplicates. Below that of --keep-pairs-from texts are compared again.
    #[arg(long, value_name = "SCORE", value_parser = parse_score)]
    pub min_score: Option<f64>,
    /// How pairs become groups.
    #[arg(long, value_name = "RULE")]
    pub cluster: Option<ClusterRule>,
    /// With majority: the most different texts that a document stands for.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub max_cluster: Option<u32>,
    /// Which member of a group stays: first, or the policy of the run.
    #[arg(long, value_name = "POLICY")]
    pub keep: Option<String>,
    /// How much memory it may take, such as 4GB.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
    #[command(flatten)]
    pub deciding: Deciding,
}

/// Writes what stays of the files of a part, by what `nearsift join` decided.
#[derive(Debug, Args)]
pub struct Apply {
    /// The part, as it was joined; or the run that `nearsift regroup` decided about anew.
    #[arg(value_name = "PART")]
    pub part: PathBuf,
    /// The files of the part, where they are not where they were: as they were named then, in the same order [default: where they were].
    #[arg(value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    /// The folder that `nearsift join` or `nearsift regroup` wrote.
    #[arg(long, value_name = "DIR")]
    pub decisions: PathBuf,
    /// The folder for the documents; it must be empty or not exist.
    #[arg(help_heading = "What comes out", short, long, value_name = "DIR", value_parser = output())]
    pub output: PathBuf,
    /// Remove nothing: write every document, with columns that say what was decided about it, as of dedup.
    #[arg(help_heading = "What comes out", long)]
    pub mark: bool,
    /// Other names for these columns: COLUMN=NAME, with commas between them.
    #[arg(help_heading = "What comes out", long, value_name = "NAMES", requires = "mark")]
    pub mark_names: Option<String>,
    /// Write the documents in this format [default: as the input].
    #[arg(help_heading = "What comes out", long, value_name = "FORMAT")]
    pub output_format: Option<OutputFormat>,
    /// How converted files are compressed, as of dedup.
    #[arg(help_heading = "What comes out", long, value_name = "CODEC", requires = "output_format", value_parser = ["none", "gz", "zst", "xz", "bz2"])]
    pub output_compression: Option<String>,
    /// Go on with a job into the same folder that was stopped, if there is one.
    #[arg(help_heading = "What comes out", long)]
    pub resume: bool,
    /// Replace the results of an earlier job in that folder.
    #[arg(help_heading = "What comes out", long)]
    pub overwrite: bool,
    /// How far the work is, on standard error.
    #[arg(long, value_name = "FORM")]
    pub progress: Option<ProgressForm>,
}

/// What texts are cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Each line.
    Line,
    /// Lines without a blank one between them.
    Paragraph,
    /// With --substrings: bytes of the text as it stands.
    Bytes,
    /// With --substrings: letters and digits after normalisation, so that case, width, punctuation, line ends, and Traditional or
    /// Simplified make no difference.
    Letters,
}

/// What a cut of --substrings does not leave in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Boundary {
    /// Lines.
    Line,
    /// Sentences.
    Sentence,
}

#[derive(Debug, Args)]
pub struct Trim {
    #[command(flatten)]
    pub input: Input,
    /// The folder for the results; it must be empty or not exist.
    #[arg(help_heading = "What comes out", short, long, value_name = "DIR", value_parser = output())]
    pub output: PathBuf,
    /// What texts are cut into, or with --substrings compared by [default: line; with --substrings bytes].
    #[arg(help_heading = "What repeats", long, value_name = "UNIT")]
    pub unit: Option<Unit>,
    /// Replace the results of an earlier run in that folder. They stay until the new ones are complete, and only files that the earlier
    /// run wrote are removed: a folder with any other file is refused. Work of a stopped run is removed.
    #[arg(help_heading = "What comes out", long)]
    pub overwrite: bool,
    /// How often a piece must be there, in one document or several, before it is removed.
    #[arg(help_heading = "What repeats", long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub min_count: u32,
    /// Pieces with fewer bytes of letters and digits (in UTF-8: a Chinese character has 3) always stay.
    #[arg(help_heading = "What repeats", long, value_name = "BYTES", default_value = "24")]
    pub min_bytes: usize,
    /// Which of equal pieces stays: first or none. With --substrings the document whose copy of a repeat stays: first, longest,
    /// newest:FIELD, highest:FIELD, or ranked:FIELD=VALUE,VALUE,... as dedup has it.
    #[arg(help_heading = "What repeats", long, value_name = "POLICY", default_value = "first")]
    pub keep: String,
    /// Pieces that are nearly the same count as the same, as near-duplicate documents do: found by their sketches,
    /// and compared by their letters.
    #[arg(help_heading = "What repeats", long)]
    pub near: bool,
    /// How alike they are at least, from 0 to 1 [default: 0.63].
    #[arg(help_heading = "What repeats", long, value_name = "S", value_parser = parse_score, requires = "near")]
    pub min_score: Option<f64>,
    /// The memory to use, such as 4GB. Texts that do not fit go to the disk; a limit that is too small for
    /// the different pieces is an error that names one that is not.
    #[arg(help_heading = "What repeats", long, value_name = "SIZE", value_parser = parse_size, requires = "near")]
    pub memory: Option<u64>,
    /// Instead of lines or paragraphs, remove every stretch of at least BYTES bytes (in UTF-8; default 500) that stands earlier in the
    /// documents, wherever it begins and ends: exact repeats, in one document or several.
    #[arg(
        help_heading = "Exact repeats of any length",
        long,
        value_name = "BYTES",
        num_args = 0..=1,
        default_missing_value = "500",
        value_parser = parse_substrings,
        conflicts_with_all = ["min_count", "min_bytes", "near", "min_score", "memory"]
    )]
    pub substrings: Option<usize>,
    /// Remove the lines or sentences in which a repeat begins and ends, too, if their ends are at most BYTES bytes away.
    #[arg(
        help_heading = "Exact repeats of any length",
        long,
        value_name = "UNIT",
        requires = "substrings",
        conflicts_with = "narrow"
    )]
    pub widen: Option<Boundary>,
    /// Remove only the lines or sentences that a repeat holds whole.
    #[arg(
        help_heading = "Exact repeats of any length",
        long,
        value_name = "UNIT",
        requires = "substrings"
    )]
    pub narrow: Option<Boundary>,
    /// Keep every document: repeats.jsonl lists the repeats, and marked/ has all documents in the input's format and order, each with the
    /// columns repeats (what would go, in bytes and characters, and where the copy is that stays), repeated_bytes and only_repeats.
    #[arg(help_heading = "Exact repeats of any length", long, requires = "substrings")]
    pub mark: bool,
    /// Other names for these columns, as repeats=exact_repeats.
    #[arg(
        help_heading = "Exact repeats of any length",
        long,
        value_name = "COLUMN=NAME,...",
        requires = "mark"
    )]
    pub mark_names: Option<String>,
}

#[derive(Debug, Args)]
pub struct Clusters {
    /// The table, in JSON lines by name: made if it is not there, and written anew for each run. TABLE.runs lists the runs that it has.
    #[arg(value_name = "TABLE")]
    pub table: PathBuf,
    /// Folders of finished runs of dedup, in the order in which they were made. A run that the table has is not added again.
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The day of these runs, as YYYY-MM-DD [default: for each the day on which its summary was written, in UTC].
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    pub seen: Option<String>,
}

#[derive(Debug, Args)]
pub struct Decontaminate {
    #[command(flatten)]
    pub input: Input,
    /// The folder for the results; it must be empty or not exist.
    #[arg(help_heading = "What comes out", short, long, value_name = "DIR", value_parser = output())]
    pub output: PathBuf,
    /// Replace the results of an earlier run in that folder. They stay until the new ones are complete, and only files that the earlier
    /// run wrote are removed: a folder with any other file is refused. Work of a stopped run is removed.
    #[arg(help_heading = "What comes out", long)]
    pub overwrite: bool,
    /// The test sets: files, folders or glob patterns of JSON lines, JSON, CSV, Parquet or Arrow, an item a record, or files
    /// of --save-index.
    #[arg(help_heading = "What is looked for", long, required = true, num_args = 1.., value_name = "FILE")]
    pub benchmarks: Vec<PathBuf>,
    /// The fields of an item that hold texts, each found by itself [default: those with usual names, such as question,
    /// answer and passage; else the one of the longest texts].
    #[arg(
        help_heading = "What is looked for",
        long,
        value_delimiter = ',',
        value_name = "FIELD,..."
    )]
    pub benchmark_fields: Option<Vec<String>>,
    /// The field that holds the id of an item; one without it gets FILE:LINE.
    #[arg(help_heading = "What is looked for", long, value_name = "FIELD", default_value = "id")]
    pub benchmark_id_field: String,
    /// Also save the items in a new file, to be given as --benchmarks later.
    #[arg(help_heading = "What is looked for", long, value_name = "FILE")]
    pub save_index: Option<PathBuf>,
    /// How much of a text's weight a passage has at least, from 0.05 to 1: a rare word weighs more than a common one, and what
    /// many items share, such as a prompt, little or nothing [default: 0.6].
    #[arg(help_heading = "What counts", long, value_name = "SHARE")]
    pub min_coverage: Option<f64>,
    /// How much a passage weighs at least, in bits: a rare word has some 10, a common one less than 1 [default: 20].
    #[arg(help_heading = "What counts", long, value_name = "BITS")]
    pub min_weight: Option<f64>,
    /// Remove nothing: marked/ has every document in the input's format and order, with the columns contaminated, hits, benchmark,
    /// item and coverage. WARC, text and HTML files and archives stay as they are; marks.jsonl has the columns of their documents.
    #[arg(help_heading = "What comes out", long)]
    pub mark: bool,
    /// Other names for these columns, as contaminated=in_benchmark,item=benchmark_item.
    #[arg(
        help_heading = "What comes out",
        long,
        value_name = "COLUMN=NAME,...",
        requires = "mark"
    )]
    pub mark_names: Option<String>,
    /// Say what would be removed, and write all but the kept documents.
    #[arg(help_heading = "What comes out", long, conflicts_with = "mark")]
    pub dry_run: bool,
    /// The field that says where a document comes from, such as site or dump: the report counts by it [default: the top folders
    /// of the input].
    #[arg(help_heading = "What comes out", long, value_name = "FIELD")]
    pub source_field: Option<String>,
    /// The language of report.html [default: Chinese where the locale is, else English].
    #[arg(help_heading = "What comes out", long, value_name = "LANGUAGE")]
    pub language: Option<PageLanguage>,
    /// The memory to use, such as 4GB. A limit that is too small for the items is an error that names one that is not.
    #[arg(help_heading = "How it runs", long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Pairs {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub configured: Configured,
    #[command(flatten)]
    pub recipe: RecipeArgs,
    #[command(flatten)]
    pub matching: Matching,
    #[command(flatten)]
    pub searching: Searching,
    /// Print how the search will be done, and what it costs, on standard error.
    #[arg(help_heading = "What comes out", long)]
    pub explain: bool,
    /// Also print, after the pairs, the passages that documents share, such as quotations, a page inside
    /// another, pages put together: one JSON line each, with its kind, and which part of which document.
    #[arg(help_heading = "What comes out", long)]
    pub partial: bool,
}

#[derive(Debug, Args)]
pub struct FingerprintArgs {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub recipe: RecipeArgs,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// The first document: a text or HTML file, or with --in an id.
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The second document.
    #[arg(value_name = "B")]
    pub b: PathBuf,
    #[command(flatten)]
    pub recipe: RecipeArgs,
    #[command(flatten)]
    pub matching: Matching,
    /// Sketches: whether the texts are compared exactly, or their sketches alone [default: exact].
    #[arg(help_heading = "What is near", long, value_name = "HOW")]
    pub verify: Option<Verify>,
    /// Compare as a finished run of `dedup` did: with its table of how rare each feature is and, unless they are given, its
    /// recipe and smallest score. The figures are those of its pairs.jsonl, but for values that a run sees vary among
    /// the neighbours of a document.
    #[arg(help_heading = "What is near", long, value_name = "RUN")]
    pub like: Option<PathBuf>,
    /// Also print both fingerprints or sketches, and how alike their features are.
    #[arg(help_heading = "What comes out", short, long)]
    pub verbose: bool,
    /// Also write the comparison as a page: one file without script. It must not exist.
    #[arg(help_heading = "What comes out", long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The language of the page [default: Chinese where the locale is, else English].
    #[arg(help_heading = "What comes out", long, value_name = "LANGUAGE", requires = "html")]
    pub language: Option<PageLanguage>,
    /// A and B are the ids of documents in these files or folders.
    #[arg(help_heading = "What is read", long = "in", value_name = "INPUT", num_args = 1..)]
    pub documents: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: Reading,
}

#[derive(Debug, Args)]
pub struct Why {
    /// The output folder of a finished run of `dedup`.
    #[arg(value_name = "RUN")]
    pub results: PathBuf,
    /// The id of a document.
    #[arg(value_name = "ID")]
    pub id: String,
    /// The id of another: why the two are together, or are not.
    #[arg(value_name = "ID2")]
    pub other: Option<String>,
    /// The input of the run: the texts are read from it, compared as the run did, and their differences marked.
    #[arg(help_heading = "What is read", long = "in", value_name = "INPUT", num_args = 1..)]
    pub documents: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: Reading,
}

/// Serves a page about a finished run on this machine until it is told to stop (Ctrl-C, SIGTERM).
///
/// The page shows the groups and why each document goes, two documents side by side, what other thresholds would do, and pairs to
/// review. It reads the results and the run's input, and writes nothing but the judgements of --review. `docs/use/view.md` shows it.
#[cfg(unix)]
#[derive(Debug, Args)]
pub struct View {
    /// The output folder of a finished run of `dedup`.
    #[arg(value_name = "RUN")]
    pub results: PathBuf,
    /// The address to listen on, of this machine; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7718")]
    pub listen: std::net::SocketAddr,
    /// Append judgements on pairs to this file, which `eval` reads as a truth; it is made if there is none.
    #[arg(help_heading = "What comes out", long, value_name = "FILE")]
    pub review: Option<PathBuf>,
    /// The language that the page begins with [default: the browser's].
    #[arg(long, value_name = "LANGUAGE")]
    pub language: Option<PageLanguage>,
    /// The input of the run, in its order [default: the files that the run lists].
    #[arg(help_heading = "What is read", long = "in", value_name = "INPUT", num_args = 1..)]
    pub documents: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: Reading,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum PageLanguage {
    /// Chinese.
    Zh,
    /// English.
    En,
}

#[derive(Debug, Args)]
pub struct Keywords {
    /// The document: a text or HTML file, or - for standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How many features are printed [default: 20].
    #[arg(help_heading = "What comes out", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub top: Option<u32>,
    #[command(flatten)]
    pub recipe: RecipeArgs,
    /// The format of the file; `auto` goes by its name.
    #[arg(help_heading = "What is read", long, value_name = "FORMAT", default_value = "auto")]
    pub format: FormatArg,
    /// The charset of the file [default: what it declares, else what its bytes look like].
    #[arg(help_heading = "What is read", long, value_name = "LABEL")]
    pub charset: Option<String>,
}

/// Measures recall, precision and clusters on labelled documents, of nearsift's own pairs or of any
/// other tool's.
///
/// A truth file is a table (CSV, TSV, JSON lines; .gz and .zst are seen through) and is known by its
/// columns: `a b label` or `id1 id2 label`, the label being POS, GREY or NEG, or 1 or 0 (without it: POS);
/// `id cluster` or `id group`; `id origin rate`, with `edit` beside it; `core_id labelled_duplicates` (a
/// list of ids). A table `base variant op rate` tells how documents were edited, for the tables by edit
/// and rate. Pairs that no file lists are NEG. GREY pairs are left out of precision and recall.
#[derive(Debug, Args)]
pub struct Eval {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub configured: Configured,
    /// A field that is put before the text, with a blank between: CORE's titles.
    #[arg(help_heading = "What is read", long, value_name = "FIELD")]
    pub title_field: Option<String>,
    /// What is true: a file, or `fields` when the input has the columns itself. May be given again for
    /// a table of edits.
    #[arg(help_heading = "What is true", long, required = true, value_name = "FILE|fields")]
    pub truth: Vec<PathBuf>,
    /// Up to which combined edit two documents of one origin are POS, inclusive: the sum of their
    /// rates, the larger for two with edit `trunc`. Above it they are GREY. `any`: all are POS.
    #[arg(
        help_heading = "What is true",
        long,
        value_name = "RATE|any",
        default_value = "0.30",
        value_parser = parse_within
    )]
    pub positive_within: nearsift::evaluate::PositiveWithin,
    /// Measure these pairs instead of nearsift's: a table `a b score`, such as the output of `nearsift
    /// pairs`. The larger score is the more alike. Without --min-score every pair of the file is
    /// accepted.
    #[arg(help_heading = "What is measured", long, value_name = "FILE")]
    pub pairs: Option<PathBuf>,
    #[command(flatten)]
    pub recipe: RecipeArgs,
    #[command(flatten)]
    pub matching: Matching,
    #[command(flatten)]
    pub searching: Searching,
    /// How accepted pairs become clusters [default: as `dedup` for nearsift's pairs, components for
    /// others].
    #[arg(help_heading = "What is measured", long, value_name = "RULE")]
    pub cluster: Option<ClusterRule>,
    /// Add what exact similarities of all pairs reach at their best threshold: Jaccard and IDF cosine
    /// of long and short shingles (characters 5 and 3, or words 5 and 2 where most text has spaces).
    #[arg(help_heading = "What comes out", long)]
    pub peer_rows: bool,
    /// Samples for the confidence intervals; 0 for none.
    #[arg(help_heading = "What comes out", long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub replicates: u32,
    /// What decides the samples.
    #[arg(help_heading = "What comes out", long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// A folder for eval.json, the same content as --json; it must be empty or not exist.
    #[arg(help_heading = "What comes out", short, long, value_name = "DIR", value_parser = output())]
    pub output: Option<PathBuf>,
}

/// Proposes what near duplicates are among your own documents, without labels.
///
/// A sample of the documents is searched against all of them and the pairs that are found are compared
/// exactly. Shown are the scores of these and of random pairs, the threshold where the two kinds part, or
/// the default where they do not, some pairs of every score, and what `dedup` would find and cost.
#[derive(Debug, Args)]
pub struct Tune {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub recipe: RecipeArgs,
    #[command(flatten)]
    pub matching: Matching,
    #[command(flatten)]
    pub searching: Searching,
    /// The documents that are searched against all others.
    #[arg(help_heading = "What is looked at", long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u32).range(1..))]
    pub sample: u32,
    /// Random pairs of different documents, to see what chance scores.
    #[arg(help_heading = "What is looked at", long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub random_pairs: u32,
    /// What decides the samples.
    #[arg(help_heading = "What is looked at", long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Also forecast the cost for this number of similar documents.
    #[arg(help_heading = "What comes out", long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub documents: Option<u64>,
    /// Pairs that are shown of every score.
    #[arg(help_heading = "What comes out", long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub examples: u8,
    /// Write the settings, for --config: a folder, in which nearsift.toml is written, or a file that
    /// ends in .toml.
    #[arg(help_heading = "What comes out", short, long, value_name = "DIR", value_parser = output())]
    pub output: Option<PathBuf>,
    /// Replace a settings file that is there.
    #[arg(help_heading = "What comes out", long, requires = "output")]
    pub overwrite: bool,
}

/// Serves a folder of collections over HTTP until it is told to stop (SIGTERM, Ctrl-C).
///
/// A setting is given as a flag, in the environment (--max-body is NEARSIFT_MAX_BODY there) or in a TOML file
/// (max-body = "16MiB"); a flag wins over the environment, and that over the file. `docs/operate/http-api.md` has the routes.
#[cfg(unix)]
#[derive(Debug, Args)]
pub struct Serve {
    /// The folder of the collections; it is made if there is none.
    #[arg(value_name = "DIR", required_unless_present_any = ["new_key", "print_config", "ready"])]
    pub dir: Option<PathBuf>,
    /// Settings from a TOML file.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the settings and where each is from, and do nothing else.
    #[arg(long)]
    pub print_config: bool,
    /// Ask the service that runs with these settings whether it is ready, and do nothing else: exit status 0 if it is, else 1.
    #[arg(long, conflicts_with_all = ["dir", "print_config", "new_key"])]
    pub ready: bool,
    /// Make an API key: print it, and the line for the file of keys.
    #[arg(long, value_name = "read|write|admin", conflicts_with = "dir")]
    pub new_key: Option<nearsift_server::Scope>,
    #[command(flatten)]
    pub settings: ServeSettings,
}

/// What was given of the service's settings, by name: they have one table, in `nearsift-server`.
#[cfg(unix)]
#[derive(Debug, Default)]
pub struct ServeSettings(pub Vec<(String, String)>);

#[cfg(unix)]
impl Args for ServeSettings {
    fn augment_args(command: clap::Command) -> clap::Command {
        nearsift_server::SETTINGS.iter().fold(command, |command, setting| {
            let arg = clap::Arg::new(setting.name)
                .long(setting.name)
                .value_name(setting.value)
                .help(setting.help)
                .help_heading("Settings");
            command.arg(arg)
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        ServeSettings::augment_args(command)
    }
}

#[cfg(unix)]
impl clap::FromArgMatches for ServeSettings {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<ServeSettings, clap::Error> {
        let mut settings = ServeSettings::default();
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        self.0 = nearsift_server::SETTINGS
            .iter()
            .filter_map(|setting| {
                let value: &String = matches.get_one(setting.name)?;
                Some((setting.name.to_owned(), value.clone()))
            })
            .collect();
        Ok(())
    }
}

#[derive(Debug, Args)]
pub struct Completions {
    /// The shell that reads the script.
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct Man {
    /// The folder for the pages. It is made if there is none, and pages that are there are replaced.
    #[arg(short, long, value_name = "DIR", value_parser = output())]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct Vectors {
    /// Golden vectors: JSON lines of recipe, params, input and value.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Bench {
    #[command(subcommand)]
    pub what: Option<Benchmark>,
    /// Measure the speeds that planners go by, and keep them for later runs: in the file that
    /// NEARSIFT_CALIBRATION names, else in the user's settings.
    #[arg(long)]
    pub calibrate: bool,
}

#[derive(Debug, Subcommand)]
pub enum Benchmark {
    /// Search among fingerprints: memory, scans, queries, joins.
    Hamming(BenchHamming),
    /// The plans for searching and joining a number of fingerprints, and their expected cost.
    Plan(BenchPlan),
}

#[derive(Debug, Args)]
pub struct BenchPlan {
    /// Distinct fingerprints.
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(..=u64::from(u32::MAX)))]
    pub n: u64,
    /// Bits of a fingerprint: 64, 128 or 256.
    #[arg(long, value_name = "BITS", default_value_t = 64)]
    pub bits: u32,
    /// The largest distance, inclusive.
    #[arg(long, value_name = "K", default_value_t = 3)]
    pub max_distance: u32,
    /// The most memory for the index, such as 2GB.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
}

#[derive(Debug, Args)]
pub struct BenchHamming {
    /// Fingerprints; 10^9 of them need most of 24 GB.
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1_000..=4_000_000_000))]
    pub n: u64,
    /// The seed of the fingerprints.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Rounds of each measurement; figures are medians.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
}

/// One file for documents; `-` is none.
fn one_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        false => Ok(path),
        true => Err("name a file; documents go to standard output by --output -, without a folder"),
    })
}

/// A folder or file for results; `-` is neither.
fn output() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        false => Ok(path),
        true => {
            Err("the results are files and need a folder, not standard output: name a new folder; \
             `nearsift pairs` prints pairs (a folder of this name is ./-)")
        }
    })
}

/// Bytes from a number with an optional unit.
pub fn parse_size(text: &str) -> Result<u64, String> {
    nearsift_batch::numbers::parse_size(text).ok_or_else(|| {
        format!("'{text}' is not a size: expected a number and a unit, such as 500MB or 4GiB")
    })
}

fn parse_bounds(text: &str) -> Result<Bounds, String> {
    let mut bounds = Bounds::default();
    for part in text.split(',') {
        let wrong = || {
            format!(
                "'{part}' is no bound: expected checkpoint=, lanes=, sort=, ids= or hulls= and a number"
            )
        };
        let (name, number) = part.split_once('=').ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        match name {
            "checkpoint" => {
                bounds.checkpoint_bytes = number;
                bounds.resumable_bytes = number;
            }
            "lanes" => bounds.lane_bytes = number,
            "sort" => bounds.sorted_records = number as usize,
            "ids" => bounds.id_bytes = number,
            "hulls" => bounds.hull_bytes = number,
            _ => return Err(wrong()),
        }
    }
    Ok(bounds)
}

/// A day, as it is written.
fn parse_day(text: &str) -> Result<String, String> {
    let wrong = || format!("'{text}' is no day: expected YYYY-MM-DD");
    let shape: Vec<u8> =
        text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte }).collect();
    if shape != b"0000-00-00" {
        return Err(wrong());
    }
    let number = |part: &str| part.parse::<u32>().unwrap_or(0);
    match (number(&text[5..7]), number(&text[8..])) {
        (1..=12, 1..=31) => Ok(text.to_owned()),
        _ => Err(wrong()),
    }
}

/// The bytes of the shortest repeat. An input that follows the option is taken for its value.
fn parse_substrings(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| {
        format!(
            "'{text}' is no number of bytes: expected {} to {}; inputs come before --substrings, or behind its number",
            MinBytes::LEAST,
            MinBytes::MOST
        )
    })
}

/// One ASCII character, or a name of one.
fn parse_delimiter(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        ("comma", _) => Ok(b','),
        ("semicolon", _) => Ok(b';'),
        (_, [byte]) if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => Ok(*byte),
        _ => Err(format!(
            "'{text}' is not a delimiter: expected one ASCII character that is no quote and no line break, or tab"
        )),
    }
}

fn parse_within(text: &str) -> Result<nearsift::evaluate::PositiveWithin, String> {
    use nearsift::evaluate::PositiveWithin;
    if text == "any" {
        return Ok(PositiveWithin::Origin);
    }
    text.parse()
        .ok()
        .filter(|rate| (0.0..=2.0).contains(rate))
        .map(PositiveWithin::CombinedEdit)
        .ok_or_else(|| {
            format!("'{text}' is not a combined edit: expected a number from 0 to 2, or any")
        })
}

pub fn parse_score(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|score| (0.0..=1.0).contains(score))
        .ok_or_else(|| format!("'{text}' is not a score: expected a number from 0 to 1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn delimiters() {
        let check = |text, expect| assert_eq!(parse_delimiter(text), Ok(expect), "{text}");
        check(";", b';');
        check("|", b'|');
        check("tab", b'\t');
        check("\\t", b'\t');
        check("\t", b'\t');
        check("comma", b',');
        for bad in ["", ";;", "；", "\"", "\n"] {
            assert!(parse_delimiter(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        let check = |text, expect| assert_eq!(parse_size(text), Ok(expect), "{text}");
        check("1", 1);
        check("64MB", 64_000_000);
        check("1.5 GiB", 3 << 29);
        check("4gb", 4_000_000_000);
        for bad in ["", "MB", "-1", "0", "5 parsecs", "nan", "inf", "1e300GB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
