//! What the program answers to bad input: the tests expect it, and `docs/use/bad-input.md` lists it.

use crate::support::Run;

/// One answer.
pub struct Answer {
    /// What is wrong with the input.
    pub what: &'static str,
    pub status: i32,
    /// What standard error or standard output says, word for word, in the tests' own files.
    pub says: &'static str,
    /// What becomes of the documents.
    pub then: &'static str,
}

const fn answer(what: &'static str, status: i32, says: &'static str, then: &'static str) -> Answer {
    Answer { what, status, says, then }
}

impl Answer {
    /// What it says, without the name of a severity.
    fn own_words(&self) -> &'static str {
        let says = self.says;
        ["error: ", "warning: "].iter().find_map(|p| says.strip_prefix(p)).unwrap_or(says)
    }

    /// # Panics
    /// When the run did not answer so.
    #[track_caller]
    pub fn check(&self, run: &Run) {
        let shown = format!("{}\n{}", self.what, run.shown());
        assert_eq!(run.status, self.status, "{shown}");
        assert!(run.stderr.contains(self.says) || run.stdout.contains(self.says), "{shown}");
        if self.status == 2 {
            assert_eq!(run.stdout, "", "a fatal error prints no result: {shown}");
            let first = run.stderr.lines().find(|line| !line.starts_with("note: "));
            assert!(first.is_some_and(|line| line.starts_with("error: ")), "{shown}");
        }
        // Notes have a form in Chinese where they are made.
        let is_own = |line: &&str| !self.says.is_empty() && line.contains(self.own_words());
        let problems = ["error: ", "warning: "];
        let said = run.stderr.lines().filter(is_own);
        for message in said.filter_map(|line| problems.iter().find_map(|p| line.strip_prefix(p))) {
            // What follows it in lines of its own, with a gap before each.
            let rest = run.stderr.split_once(message).map_or("", |(_, rest)| rest);
            let list = rest.lines().skip(1).take_while(|line| line.starts_with("  "));
            let whole = std::iter::once(message).chain(list).collect::<Vec<_>>().join("\n");
            assert!(nearsift_cli::in_chinese(&whole).is_some(), "no Chinese for: {whole}");
        }
        if self.says.is_empty() {
            assert!(run.stderr.lines().all(|line| line.starts_with("note: ")), "{shown}");
        }
    }
}

pub const NOT_UTF_8: Answer = answer(
    "JSON line that is not UTF-8",
    0,
    "note: 1 character could not be decoded, in 1 document: compared as U+FFFD, kept byte for byte, and the same text only where the bytes are the same.",
    "The document is compared with U+FFFD in place of the bytes, and kept byte for byte.",
);
pub const NOT_ANY_CHARSET: Answer = answer(
    "Text file with bytes that no charset has",
    0,
    "could not be decoded, in 1 document",
    "The charset that fits best is taken; what it cannot read is counted; the file is kept as it is.",
);
pub const FALSE_CHARSET: Answer = answer(
    "Page that declares a false charset",
    0,
    "same text",
    "A declaration that is plainly false is overruled: the page matches its correct twin.",
);
pub const UTF_16: Answer = answer(
    "JSON lines in UTF-16",
    3,
    "warning: in/utf-16.jsonl:1: UTF-16 text; convert the file to UTF-8 first, as with `iconv -f UTF-16 -t UTF-8`",
    "The lines go to `unreadable/`; all other files are read.",
);
pub const NUL_AND_SURROGATES: Answer = answer(
    "NUL characters and lone surrogates",
    0,
    "note: 2 characters could not be decoded, in 1 document: compared as U+FFFD, kept byte for byte, and the same text only where the bytes are the same.",
    "NUL is a character like others; a lone surrogate becomes U+FFFD; the line is kept byte for byte.",
);
pub const EMPTY_FILE: Answer = answer(
    "Empty file",
    0,
    "",
    "JSON, JSON lines and CSV: no document. Text and HTML: one document without text. The empty file is kept.",
);
pub const EMPTY_TEXT: Answer = answer(
    "Empty text, or nothing but punctuation",
    0,
    "note: 3 documents had no fingerprint (3 without text, 0 with navigation only, 0 with too few features)",
    "No fingerprint is made up. Punctuation and symbols are the same text where all of them are the same; an empty text is nobody's duplicate, and stays.",
);
pub const LONG_LINE: Answer = answer(
    "Line beyond `--max-record-bytes` (64 MiB unless said)",
    3,
    "warning: in/long.jsonl:2: a record of 100000026 bytes, the limit is 67108864: skipped; raise --max-record-bytes to read it",
    "It is never held in memory; its bytes go to `unreadable/`; the lines before and after are read.",
);
pub const ENDLESS_LINE: Answer = answer(
    "1 GB without a line break",
    3,
    "warning: in/endless.jsonl:1: a record of 1000000000 bytes, the limit is 67108864: skipped; raise --max-record-bytes to read it",
    "The same.",
);
pub const DEEP_JSON: Answer = answer(
    "JSON a million brackets deep",
    3,
    "warning: in/deep.jsonl:2: not valid JSON at byte 1000001: EOF while parsing a list",
    "A deep value in a field that nobody asked for is skipped over, at any depth. A line that is cut short or no object is unreadable.",
);
pub const NESTED_TAGS: Answer = answer(
    "Page of 50,000 nested tags",
    0,
    "",
    "The main text is found all the same; time and memory have caps.",
);
pub const GZIP_BOMB: Answer = answer(
    "gzip or zstd bomb",
    3,
    "grows more than 256-fold when decompressed: not read further; raise --max-ratio if that is no accident",
    "What comes before is read; memory stays bounded; all other files are read.",
);
pub const TRUNCATED: Answer = answer(
    "Truncated `.zst` or `.gz`",
    3,
    "data from here on: cut short; what comes before is kept, fetch the file again",
    "The documents before the cut are read and kept; the half line goes to `unreadable/`.",
);
pub const CUT_TABLE: Answer = answer(
    "Parquet file that is cut short",
    3,
    "warning: in/cut.parquet: not a readable Parquet file: its last bytes are not PAR1: it is cut short, or another format; it is put aside whole",
    "Without its footer no part of it can be read: it goes to `unreadable/` whole. All other files are read.",
);
pub const CUT_RECORD: Answer = answer(
    "WARC record with a wrong length",
    3,
    "warning: in/pages.warc:1: not a readable WARC record: it is shorter than its Content-Length",
    "The next record is found by its first line; the bad one goes to `unreadable/`.",
);
pub const DAMAGED_MEMBER: Answer = answer(
    "Damaged member of a `.warc.gz`",
    3,
    "warning: in/pages.warc.gz:1: damaged gzip member: ",
    "The next member is found by its first bytes, and read.",
);
pub const TAR_HEADER: Answer = answer(
    "Damaged header in a tar archive",
    3,
    "warning: in/pack.tar: damaged tar member: a damaged header; the others are read, fetch the file again",
    "The next member is found by its header, and read; the archive that is written is whole.",
);
pub const CUT_ZIP: Answer = answer(
    "zip archive that is cut short",
    3,
    "warning: in/cut.zip: damaged zip data from here on: its directory is missing, what is left of its members is read; ",
    "Members are found by their own headers; the archive that is written is whole.",
);
pub const NESTED_ARCHIVE: Answer = answer(
    "Archive inside an archive",
    3,
    "warning: in/pack.tar!inner.zip: an archive inside an archive: not read, kept as in the input; unpack it first",
    "The other members are read.",
);
pub const ENCRYPTED: Answer = answer(
    "Encrypted member of a zip archive",
    3,
    "warning: in/pack.zip!secret.jsonl: encrypted: not read, and only in the input; decrypt it first",
    "The other members are read.",
);
pub const CHANGED: Answer = answer(
    "File that changes while it is read",
    3,
    "changed while the run read the input, and nothing of them is in kept/: summary.json lists them; run again on files that stay as they are.",
    "All other files are written. A file that goes before it is read is one that cannot be opened. Of a file that has changed when texts are read again, no text is compared. Where the input is read once more for `--partial` or a source field, such a change stops the run.",
);
pub const NOT_JSON: Answer = answer(
    "Line that is not JSON",
    3,
    "warning: in/broken.jsonl:2: not valid JSON at byte 2: key must be a string",
    "The line goes to `unreadable/` as it is, with its place and reason in `unreadable.jsonl`.",
);
pub const MISSING_TEXT: Answer = answer(
    "Missing text field",
    3,
    "warning: in/fields.jsonl:2: no text: the field \"text\" is missing; name the right one with --text-field",
    "The line goes to `unreadable/`.",
);
pub const MISSING_ID: Answer =
    answer("Missing id field", 0, "", "The document's id is `FILE:LINE`.");
pub const DUPLICATE_IDS: Answer = answer(
    "Duplicate ids",
    0,
    "note: 1 document had an id that another one has too: tell them apart by the number of their record.",
    "Both are documents; `removed.jsonl` and `clusters.jsonl` name records by number, too.",
);
pub const RAGGED: Answer = answer(
    "CSV row with too many fields",
    3,
    "warning: in/ragged.csv:3: expected 2 fields as in the header, got 3; quote a field that holds a delimiter",
    "The row goes to `unreadable/`, under the header.",
);
pub const FORBIDDEN_FOLDER: Answer = answer(
    "Folder without permission, inside an input folder",
    3,
    "warning: in/closed: cannot be listed: Permission denied (os error 13); what it holds is not read",
    "All other folders are read.",
);
pub const FORBIDDEN_FILE: Answer = answer(
    "File without permission, inside an input folder",
    3,
    "warning: in/secret.jsonl: cannot be opened: Permission denied (os error 13)",
    "All other files are read.",
);
pub const FORBIDDEN_INPUT: Answer = answer(
    "Input without permission, named itself",
    2,
    "error: in/closed: cannot be read: Permission denied (os error 13); ask for permission, or choose another place",
    "Nothing is read or written.",
);
pub const FORBIDDEN_OUTPUT: Answer = answer(
    "Output in a folder without permission",
    2,
    "error: closed/out: cannot be written: Permission denied (os error 13); ask for permission, or choose another place",
    "Nothing is read or written.",
);
pub const FULL_DISK: Answer = answer(
    "Disk full on output",
    2,
    "No space left on device (os error 28); free some space, or choose another place",
    "The message names the file; the unfinished results are removed; nothing has its final name.",
);
pub const FULL_STDOUT: Answer = answer(
    "Disk full on standard output",
    2,
    "error: standard output: cannot write: No space left on device (os error 28)",
    "What was printed before is incomplete, and the status says so.",
);
pub const OUTPUT_NOT_EMPTY: Answer = answer(
    "Output folder not empty",
    2,
    "error: full: the output folder is not empty; choose a new one, or empty it",
    "Nothing is read or written.",
);
pub const OUTPUT_IS_FILE: Answer = answer(
    "Output is a file",
    2,
    "error: in/good.jsonl: the output must be a folder, and this is a file; choose another name",
    "Nothing is read or written.",
);
pub const OUTPUT_IS_INPUT: Answer = answer(
    "Output equal to input",
    2,
    "error: in: the output is the input",
    "Nothing is read or written.",
);
pub const OUTPUT_IN_INPUT: Answer = answer(
    "Output inside an input folder",
    2,
    "error: in/out: the output lies inside the input",
    "Nothing is read or written.",
);
pub const OUTPUT_AROUND_INPUT: Answer = answer(
    "Input inside the output folder",
    2,
    "the output contains the input",
    "Nothing is read or written.",
);
pub const CLOSED_PIPE: Answer = answer(
    "Closed pipe, as when `head -1` has its line",
    0,
    "",
    "Quiet: whoever reads has what they wanted. `dedup` has written its results by then, and keeps its status.",
);
pub const ALL_EMPTY: Answer = answer(
    "Corpus of 20,000 empty documents",
    0,
    "note: 20,000 documents had no fingerprint (20,000 without text, 0 with navigation only, 0 with too few features)",
    "All stay; nothing is compared.",
);
pub const ALL_THE_SAME: Answer = answer(
    "Corpus of 2,000 identical documents",
    0,
    "1 group of 2,000 documents: 1 document kept, 1,999 removed (1,999 with the same text, 0 near)",
    "1,999 pairs, each with the first: not one for every two.",
);
pub const CROWD: Answer = answer(
    "Corpus of documents that are all alike, but not the same; texts that share every minwise key",
    0,
    "pairs of documents that are like many others were compared only where a group depends on it: the nearest of each were.",
    "At most 16 pairs for each document are compared beforehand (512 with `--cluster components` or `star`); the rest is counted in `summary.json`.",
);
pub const LARGE_GROUP: Answer = answer(
    "Group beyond `--max-cluster`",
    0,
    "documents stand for as many documents as --max-cluster allows, and more are like them (",
    "Each document that stays is a group with those that it stands for, full groups first: of n documents that are alike about n / N stay. How many are full, and their links with more, is in `summary.json`.",
);
pub const ONE_FORM: Answer = answer(
    "Reports of one template, with other values in each",
    0,
    "of one form are no near duplicates, because their values differ (",
    "Both stay. `summary.json` names a pair. Groups that may have no more than a form in common are named in a note of their own, with what to do.",
);
pub const NOT_A_NUMBER: Answer = answer(
    "NaN or Infinity in a record that is converted",
    0,
    "3 numbers that JSON does not have, NaN or Infinity, became null in the converted files: without --output-format records stay as they are.",
    "`summary.json` has the count.",
);
pub const UNUSED_PARAMETER: Answer = answer(
    "Recipe parameter without effect, or an unknown one",
    2,
    "'punctuation' has no effect with features=auto and weight=log-tf-root-idf: its parameters are ",
    "Nothing is read or written.",
);
pub const OUTPUT_IS_STDOUT: Answer = answer(
    "`--output -` of another command than `dedup`",
    2,
    "the results are files and need a folder, not standard output: name a new folder; `nearsift pairs` prints pairs (a folder of this name is ./-)",
    "Nothing is read or written, and no folder is made.",
);
pub const OUTPUT_FILE_EXISTS: Answer = answer(
    "`--output-file`: something is there already",
    2,
    "there.jsonl: is there already; choose another name, or remove it",
    "Nothing is read or written.",
);
pub const OUTPUT_FILE_WITHOUT_FORMAT: Answer = answer(
    "`--output-file`: its ending tells no format",
    2,
    "error: --output-file: expected .jsonl, .json, .csv, .tsv, each also with .gz, .zst, .xz or .bz2, or .parquet or .arrow, or name the format by --output-format, got \"all.data\"",
    "Nothing is read or written.",
);
pub const COLUMNS_DIFFER: Answer = answer(
    "`--output-file`: tables of other columns",
    2,
    "error: csv/c.csv: it has a column \"more\", unlike csv/a.csv: tables that become one file must have the same columns; give --output-format jsonl or a name that ends in .jsonl, whose lines may have any fields, or write a file for each input",
    "Nothing is written.",
);
pub const FOREIGN_FILE: Answer = answer(
    "`--overwrite`: a file that no run wrote",
    2,
    "which the earlier run did not write: --overwrite replaces only results of an earlier run; move it away, or choose another folder",
    "Nothing is read, written or removed.",
);
pub const NOT_OF_A_RUN: Answer = answer(
    "`--overwrite`: a folder of something else",
    2,
    "and no run of nearsift wrote a list of its files there: --overwrite replaces only results of an earlier run; move it away, or choose another folder",
    "Nothing is read, written or removed.",
);
pub const BENCHMARK_WITHOUT_FIELDS: Answer = answer(
    "`decontaminate`: a benchmark without the named fields",
    2,
    "error: mmlu.jsonl: no item has frage; it has: answer, id, question; name the fields of the texts with --benchmark-fields",
    "Nothing is read of the documents, or written.",
);
pub const BENCHMARK_WITHOUT_ITEMS: Answer = answer(
    "`decontaminate`: an empty benchmark",
    2,
    "error: --benchmarks: there are no items in empty.jsonl",
    "Nothing is read of the documents, or written.",
);
pub const BENCHMARK_OF_EMPTY_ITEMS: Answer = answer(
    "`decontaminate`: items with empty questions",
    0,
    "note: 2 fields of items are empty",
    "The run goes on: such items are found nowhere, and are counted.",
);
pub const BENCHMARK_IN_THE_CORPUS: Answer = answer(
    "`decontaminate`: a corpus that is its own benchmark",
    0,
    "warning: mmlu.jsonl is a benchmark and among the documents: its items are found in themselves",
    "The run goes on, and finds each item in itself.",
);
pub const SAVED_INDEX_EXISTS: Answer = answer(
    "`decontaminate --save-index`: the file exists",
    2,
    "error: --save-index items.index: there is such a file; name a new one",
    "Nothing is read of the documents, or written.",
);
pub const SAVED_INDEX_DAMAGED: Answer = answer(
    "`decontaminate`: a damaged or cut file of `--save-index`",
    2,
    "error: items.index: the saved benchmarks are damaged; make the file again from the benchmarks, by --save-index",
    "Nothing is read of the documents, or written.",
);
pub const SAVED_INDEX_OF_ANOTHER_VERSION: Answer = answer(
    "`decontaminate`: a file of `--save-index` of another version",
    2,
    "error: items.index: saved benchmarks of another version of nearsift; make the file again from the benchmarks, by --save-index",
    "Nothing is read of the documents, or written.",
);
pub const COLUMN_TAKEN: Answer = answer(
    "`--mark`: a file has a column of such a name",
    2,
    "error: --mark-names: in/b.csv: it has a column \"kept\" already; give the added one another name",
    "Nothing is written.",
);
pub const FIELD_TAKEN: Answer = answer(
    "`--mark`: one JSON object further on has such a field",
    3,
    "1 document has a field of the name of an added column already, and stayed as it was: give that column another name with --mark-names.",
    "It is in `marked/` without the columns.",
);
pub const SCORE_OUT_OF_RANGE: Answer = answer(
    "Threshold out of range",
    2,
    "error: invalid value '1.5' for '--min-score <S>': '1.5' is not a score: expected a number from 0 to 1",
    "Nothing is read or written.",
);
pub const TOO_LITTLE_MEMORY: Answer = answer(
    "Memory limit that is too small",
    2,
    "bytes at least and may use 1000: raise the memory limit to ",
    "The message has the number that works; nothing is written.",
);
pub const NO_REFERENCE: Answer = answer(
    "`--against` of what is not there",
    2,
    "error: nowhere: cannot read the reference: No such file or directory (os error 2)",
    "Nothing is read or written.",
);
pub const REFERENCE_OF_ANOTHER_RECIPE: Answer = answer(
    "`--against` an earlier run with `--keep-state` that another recipe has sketched",
    2,
    "error: old/part: this part was made by the recipe '",
    "Both recipes are named, and what to do: nothing is read or written.",
);
pub const INDEX_OF_ANOTHER_RECIPE: Answer = answer(
    "`--against` an index of another recipe, or of fingerprints",
    2,
    "fingerprints of two recipes cannot be compared; use the store's recipe and dictionaries, or make a new store",
    "Both are named; nothing is written.",
);
pub const OUTPUT_IN_REFERENCE: Answer = answer(
    "Output inside a reference",
    2,
    "error: old/kept/new: the output would lie in the reference old: choose another folder",
    "A reference is never changed; nothing is read or written.",
);
pub const REFERENCE_CHANGED: Answer = answer(
    "`--against` an earlier run without `--keep-state` whose input has changed since",
    0,
    "warning: kept: its input has changed: compared with the documents that this run kept, and what resembles only one that it removed stays; a run with --keep-state needs no input to be a reference",
    "The number of documents, the bytes of their texts and how common each feature is must be those of the run.",
);
pub const REFERENCE_GONE: Answer = answer(
    "`--against` an earlier run without `--keep-state` whose input is not there any more",
    0,
    "warning: kept: its input one/part.jsonl is not there: compared with the documents that this run kept, and what resembles only one that it removed stays; a run with --keep-state needs no input to be a reference",
    "",
);
pub const REFERENCE_DAMAGED: Answer = answer(
    "`--against` an earlier run with `--keep-state` whose part is damaged",
    2,
    "error: old/part: this part has 0 of its 1 shards: copy it again as a whole, or make it again, by `sketch` or by the run that left it",
    "Every file of it has a checksum; nothing is written.",
);
pub const KEPT_ONLY_OF_PART: Answer = answer(
    "`--against-kept-only` with a part that no run left",
    2,
    "error: sketched: a part knows of no document whether it stayed, and --against-kept-only asks for those that did: leave it out, or give the output of a run",
    "Nothing is written.",
);
pub const NOT_REWRITTEN: Answer = answer(
    "`trim`: file whose texts cannot be rewritten",
    2,
    "error: page.html: the text of html cannot be rewritten in its place: convert it first, by `nearsift dedup --output-format jsonl`",
    "Nothing is read or written.",
);
pub const UNKNOWN_IDS: Answer = answer(
    "`eval`: truth whose ids are all unknown",
    2,
    "error: unknown-ids.csv: none of its ids is the id of a document, such as '1'; see --id-field",
    "Nothing is measured. When only some are unknown, these rows are left out and counted.",
);
pub const ONE_CLASS: Answer = answer(
    "`eval`: truth of one class",
    2,
    "error: one-class.csv: the truth has no pair of near duplicates: with one class only, nothing can be measured",
    "Nothing is measured.",
);
pub const CONTRADICTION: Answer = answer(
    "`eval`: truth that contradicts itself",
    2,
    "error: contradiction.csv: '1' and '2' are labelled both POS and GREY: keep one of the two",
    "Nothing is measured.",
);
pub const INTERRUPTED: Answer = answer(
    "Ctrl-C, or a polite request to end",
    130,
    "error: interrupted: nothing was written",
    "The unfinished results are removed. A second Ctrl-C does not wait for the work in hand.",
);

pub const VIEW_UNFINISHED: Answer = answer(
    "`view`: run that has not finished",
    2,
    "error: out: the run has not finished: go on with --resume",
    "Nothing is served.",
);
pub const VIEW_MOVED: Answer = answer(
    "`view`: run that was moved, or a folder of something else",
    2,
    "error: nowhere: no results of `nearsift dedup`: expected summary.json in the folder",
    "Nothing is served. A run that is moved while it is shown: the page says so, and goes on when it is back.",
);
pub const VIEW_DAMAGED: Answer = answer(
    "`view`: index of the run that is damaged, or of another version",
    2,
    "error: out: lookup.idx is damaged, or of other results than those beside it: run `nearsift dedup` again",
    "Nothing is served.",
);
pub const VIEW_OPEN: Answer = answer(
    "`view --listen` on an address that others reach",
    2,
    "error: 192.0.2.1:80: not a loopback address, and a view asks for no key: listen on 127.0.0.1 or [::1]",
    "Nothing is served.",
);
pub const VIEW_NO_JUDGEMENTS: Answer = answer(
    "`view --review` of a file that holds something else",
    2,
    "error: truth.tsv: expected judgements of --review, found another line at byte 0: ",
    "The file stays as it is. A last line that a crash tore is removed before the next judgement: nobody was told that it was taken.",
);

pub const REPEAT_TOO_SHORT: Answer = answer(
    "`trim --substrings`: a length that the search does not guarantee",
    2,
    "--substrings 31 bytes is no length of a repeat: expected 32 to 65535 bytes",
    "Nothing is read or written.",
);
pub const REPEAT_TOO_LONG: Answer = answer(
    "`trim --substrings`: a length above the limit",
    2,
    "--substrings 65536 bytes is no length of a repeat: expected 32 to 65535 bytes",
    "Nothing is read or written.",
);
pub const REPEAT_NOT_A_NUMBER: Answer = answer(
    "`trim --substrings` right before an input, or with what is no number",
    2,
    "error: invalid value 'a.jsonl' for '--substrings [<BYTES>]': 'a.jsonl' is no number of bytes: expected 32 to 65535; inputs come before --substrings, or behind its number",
    "Nothing is read or written.",
);
pub const UNIT_UNKNOWN: Answer = answer(
    "`trim --substrings`: an unknown unit",
    2,
    "error: invalid value 'word' for '--unit <UNIT>'",
    "Nothing is read or written. The possible units are named.",
);
pub const UNIT_OF_PIECES: Answer = answer(
    "`trim --substrings`: a unit of lines or paragraphs",
    2,
    "error: --unit line cannot be used with --substrings: expected bytes or letters; --widen and --narrow choose where cuts end",
    "Nothing is read or written.",
);
pub const UNIT_OF_SUBSTRINGS: Answer = answer(
    "`trim` without `--substrings`: a unit of stretches",
    2,
    "error: --unit letters is for --substrings: expected line or paragraph without it",
    "Nothing is read or written.",
);
pub const WIDEN_AND_NARROW: Answer = answer(
    "`trim --substrings`: `--widen` with `--narrow`",
    2,
    "error: the argument '--widen <UNIT>' cannot be used with '--narrow <UNIT>'",
    "Nothing is read or written.",
);
pub const ENDS_WITHOUT_SUBSTRINGS: Answer = answer(
    "`trim`: `--widen`, `--narrow` or `--mark` without `--substrings`",
    2,
    "error: the following required arguments were not provided:",
    "Nothing is read or written. The missing option is named.",
);
pub const SUBSTRINGS_WITH_PIECES: Answer = answer(
    "`trim --substrings` with options of lines and paragraphs, such as `--min-count`, `--near` or `--memory`",
    2,
    "error: the argument '--substrings [<BYTES>]' cannot be used with '--m",
    "Nothing is read or written. The other option is named.",
);
pub const KEEP_UNKNOWN: Answer = answer(
    "`trim --substrings`: a policy that is none, or lacks its field",
    2,
    "error: --keep: 'newest' is not a keep policy: expected first, longest, newest:FIELD, highest:FIELD or ranked:FIELD=VALUE,VALUE,...",
    "Nothing is read or written.",
);
pub const KEEP_OF_SUBSTRINGS: Answer = answer(
    "`trim` without `--substrings`: a policy of documents",
    2,
    "error: --keep longest: expected first or none; other policies are for --substrings",
    "Nothing is read or written.",
);
pub const KEEP_FIELD_MISSING: Answer = answer(
    "`trim --substrings`: documents without the field of the policy, or without a number or day in it",
    0,
    "warning: documents without a value for the keep policy 'newest:date': 2; they come after all others",
    "The run goes on. Where no document has the field the first copy stays; `summary.json` counts them as `without_keep_value`.",
);
pub const REPEATS_COLUMN_TAKEN: Answer = answer(
    "`trim --substrings --mark`: a file has a column of such a name",
    2,
    "error: --mark-names: in/b.csv: it has a column \"repeats\" already; give the added one another name",
    "Nothing is written.",
);
pub const REPEATS_FIELD_TAKEN: Answer = answer(
    "`trim --substrings --mark`: one JSON object further on has such a field",
    3,
    "warning: documents with a field of the name of an added column: 1; they stayed as they were; give the column another name with --mark-names",
    "It is in `marked/` without the columns.",
);
pub const MARK_NAME_UNKNOWN: Answer = answer(
    "`--mark-names`: no such column",
    2,
    "error: --mark-names \"repeat\": the columns are repeats, repeated_bytes, only_repeats",
    "Nothing is read or written.",
);
pub const MARK_NAME_WITHOUT_NAME: Answer = answer(
    "`--mark-names`: a column without its new name",
    2,
    "error: --mark-names \"repeats\": expected COLUMN=NAME, with commas between them",
    "Nothing is read or written.",
);
pub const MARK_NAME_TWICE: Answer = answer(
    "`--mark-names`: two columns of one name",
    2,
    "error: --mark-names \"repeats\": another column has the name \"only_repeats\"",
    "Nothing is read or written.",
);
pub const REWRITTEN_CHARSET: Answer = answer(
    "`trim --substrings`: texts in another charset than UTF-8",
    2,
    "error: --charset gbk: a text that is rewritten must be UTF-8; convert the files first, as with `iconv -f gbk -t UTF-8`",
    "Nothing is read or written.",
);
pub const TEXT_NOT_REWRITTEN: Answer = answer(
    "`trim --substrings`: a format whose texts cannot be rewritten",
    2,
    "the text of html cannot be rewritten",
    "Nothing is written; `--mark` lists the repeats.",
);
pub const NO_RUN_TO_ADD: Answer = answer(
    "`clusters`: a folder without results of `dedup`",
    2,
    "error: other: no results of `nearsift dedup`: expected summary.json in the folder",
    "The table has the runs before that one.",
);
pub const RUN_TO_ADD_UNFINISHED: Answer = answer(
    "`clusters`: a run that has not finished",
    2,
    "error: begun: the run has not finished: go on with --resume",
    "The table has the runs before that one.",
);
pub const RUN_TO_ADD_OF_OTHERS: Answer = answer(
    "`clusters`: results of another command than `dedup`",
    2,
    "error: trimmed: no results of `nearsift dedup`: expected clusters.jsonl in the folder",
    "The table has the runs before that one.",
);
pub const RUN_TO_ADD_DAMAGED: Answer = answer(
    "`clusters`: a run with a damaged table",
    2,
    "error: torn/clusters.jsonl:2: damaged, or no line of `nearsift dedup`, at byte 5: EOF while parsing a string; run `nearsift dedup` again",
    "The table has the runs before that one.",
);
pub const RUN_TO_ADD_WITHOUT_NAMES: Answer = answer(
    "`clusters`: a run of an earlier version, whose clusters have no names",
    2,
    "error: nameless: an earlier version wrote these results, in which clusters have no names: run `nearsift dedup` again",
    "The table has the runs before that one.",
);
pub const RUN_TO_ADD_TWICE: Answer = answer(
    "`clusters`: a run that is given twice, or that the table has",
    0,
    "run: the table had it",
    "It is not added again, and the status is 0: the command can be repeated.",
);
pub const RUN_TO_ADD_TOO_LATE: Answer = answer(
    "`clusters`: a run behind one that was compared with it",
    2,
    "which was compared with this run, so that documents would be counted twice: add runs in the order in which they were made, to a table of another name",
    "The table has the runs before that one.",
);
pub const DAY_OF_RUN: Answer = answer(
    "`clusters --seen`: what is no day",
    2,
    "error: invalid value '28.11.2026' for '--seen <DAY>': '28.11.2026' is no day: expected YYYY-MM-DD",
    "The table stays as it is.",
);
pub const TABLE_OF_OTHERS: Answer = answer(
    "`clusters`: a table that was changed by others",
    2,
    "error: t.jsonl: not the table that t.jsonl.runs is of: one of the two was changed, or it is no table of `nearsift clusters`; give another name, and add all runs again",
    "The table stays as it is.",
);
pub const TABLE_WITHOUT_LIST: Answer = answer(
    "`clusters`: a table that is none, or whose list of runs is missing",
    2,
    "error: t.jsonl: no table of `nearsift clusters`, or without the list of its runs, t.jsonl.runs: give another name, and add all runs again",
    "The table stays as it is.",
);
pub const TABLE_OF_OTHER_FORMAT: Answer = answer(
    "`clusters`: a table with the name of another format",
    2,
    "error: t.parquet: the table is JSON lines: give it a name that ends in .jsonl",
    "Nothing is written.",
);
pub const TABLE_IS_FOLDER: Answer = answer(
    "`clusters`: a folder in the place of the table",
    2,
    "error: run: a folder, and the table is a file: name the table before the runs, as in `nearsift clusters clusters.jsonl RUN`",
    "Nothing is written.",
);
pub const TABLE_WITHOUT_FOLDER: Answer = answer(
    "`clusters`: a table in a folder that does not exist",
    2,
    "error: new/t.jsonl: its folder does not exist: make the folder, or choose another place",
    "Nothing is written.",
);
pub const TABLE_IS_STDOUT: Answer = answer(
    "`clusters`: standard output in the place of the table",
    2,
    "error: -: the table is a file that later runs are added to, not standard output: name a file, such as clusters.jsonl",
    "Nothing is written.",
);
pub const PART_UNFINISHED: Answer = answer(
    "`join`: a folder that holds no complete part",
    2,
    "error: unfinished: no complete part, for it has no part.json: give the folder that `sketch` wrote, or begin it again to complete it",
    "Nothing is written.",
);
pub const PART_TWICE: Answer = answer(
    "`join`: a part that is given twice",
    2,
    "error: parts/../parts/0: this part is given twice, also as parts/0: leave one of them out",
    "Nothing is written.",
);
pub const PART_OF_OTHERS: Answer = answer(
    "`join`: parts of different settings",
    2,
    "error: longest: this part was made with --keep longest, and parts/0 with first: make one of them again by `sketch`",
    "Nothing is written.",
);
pub const PART_OF_OTHER_RECIPE: Answer = answer(
    "`join`: parts of another recipe than the one that is asked for",
    2,
    "error: parts/0: this part was made by the recipe 'sketch",
    "Both digests are named. Nothing is written.",
);
pub const PART_WITHOUT_TEXTS: Answer = answer(
    "`join`: texts are to be compared, and the parts have none",
    2,
    "error: --verify exact compares texts, and these parts have none: make them again by `sketch` with texts, or let sketches decide by --verify off",
    "Nothing is written.",
);
pub const PARTS_TOO_LARGE: Answer = answer(
    "`join`: more documents than one join can number",
    2,
    "error: parts/1: with this part there are 4294967400 documents, and one join takes 4294967294: join fewer parts at a time",
    "The part is named with which there are too many. Nothing is written.",
);
pub const PART_CUT_SHORT: Answer = answer(
    "`join`: a part that lacks a file",
    2,
    "error: parts/0: this part has ",
    "The message tells how many of its shards are there. Nothing gets its name.",
);
pub const PART_DAMAGED: Answer = answer(
    "`join`: a part with a damaged file",
    2,
    "error: parts/1/000-00000000.texts: damaged: make the part parts/1 again, by `sketch` or by the run that left it",
    "Every file of a part has a checksum. Nothing gets its name.",
);
pub const DECISIONS_MISSING: Answer = answer(
    "`apply`: a folder without decisions",
    2,
    "error: parts: no decisions about parts: give the folder that `join` wrote, once it is complete",
    "Nothing is written.",
);
pub const DECISIONS_OF_OTHERS: Answer = answer(
    "`apply`: decisions about other parts",
    2,
    "error: joined: nothing was decided here about the part longest: these are decisions about 2 parts (parts/0, parts/1); give the part that was joined, as it was then",
    "Nothing is written.",
);
pub const PART_FILES_OTHER: Answer = answer(
    "`apply`: other files than those of the part",
    2,
    "error: parts/0: of this part these are not the files that were read: 0.jsonl was there, and 1.jsonl.zst is in its place; name the same files, folders or patterns, in the same order",
    "Nothing is written.",
);
pub const PART_FILE_CHANGED: Answer = answer(
    "`apply`: a file that has changed since its part was made",
    3,
    "changed while it was being read: expected 201 records, got 202",
    "All other files of the part are written; `summary.json` lists the file.",
);
pub const RUN_WITHOUT_PART: Answer = answer(
    "`regroup`: a run that left nothing for other decisions",
    2,
    "error: plain: not the folder of a run that can be decided anew: run it with --keep-pairs-from",
    "Nothing is written.",
);
pub const RUN_OF_OTHER_KEEP: Answer = answer(
    "`regroup`: a keep policy whose values the run did not keep",
    2,
    "error: --keep newest:date: the run kept the values of first, and of no other policy: give that one or first, or run it again",
    "Nothing is written.",
);
pub const KEPT_ONLY_OF_MARKS: Answer = answer(
    "`--against-kept-only` with a run that kept all documents, with marks",
    2,
    "error: marked: this run kept all documents, with marks, and --against-kept-only asks for those that stayed: leave it out, or give a run without --mark",
    "Nothing is written.",
);
pub const RUN_DAMAGED: Answer = answer(
    "`regroup`: a run whose part is damaged",
    2,
    "run/part/part.json: damaged (",
    "Nothing is written.",
);
pub const KEEP_PAIRS_ABOVE: Answer = answer(
    "`--keep-pairs-from` above `--min-score`",
    2,
    "error: --keep-pairs-from 0.9 is above --min-score 0.63, from which on pairs are kept anyway: give a score from 0 to that",
    "Nothing is written.",
);
pub const RUN_AGAINST: Answer = answer(
    "`regroup`: a run that was made against references",
    2,
    "error: against: this run was made against references, and groups that are made anew know none: run it again with the other settings",
    "Nothing is written.",
);
pub const KEEP_PAIRS_OF_STREAM: Answer = answer(
    "`--keep-pairs-from` of standard input",
    2,
    "error: --keep-pairs-from needs files that can be read again: not standard input or pipes",
    "Nothing is written.",
);

/// All of them, in the order of the page.
pub const ALL: &[&Answer] = &[
    &NOT_UTF_8,
    &NOT_ANY_CHARSET,
    &FALSE_CHARSET,
    &UTF_16,
    &NUL_AND_SURROGATES,
    &EMPTY_FILE,
    &EMPTY_TEXT,
    &LONG_LINE,
    &ENDLESS_LINE,
    &DEEP_JSON,
    &NESTED_TAGS,
    &GZIP_BOMB,
    &TRUNCATED,
    &CUT_TABLE,
    &CUT_RECORD,
    &DAMAGED_MEMBER,
    &TAR_HEADER,
    &CUT_ZIP,
    &NESTED_ARCHIVE,
    &ENCRYPTED,
    &CHANGED,
    &NOT_JSON,
    &MISSING_TEXT,
    &MISSING_ID,
    &DUPLICATE_IDS,
    &RAGGED,
    &FORBIDDEN_FOLDER,
    &FORBIDDEN_FILE,
    &FORBIDDEN_INPUT,
    &FORBIDDEN_OUTPUT,
    &FULL_DISK,
    &FULL_STDOUT,
    &OUTPUT_NOT_EMPTY,
    &OUTPUT_IS_FILE,
    &OUTPUT_IS_INPUT,
    &OUTPUT_IN_INPUT,
    &OUTPUT_AROUND_INPUT,
    &CLOSED_PIPE,
    &ALL_EMPTY,
    &ALL_THE_SAME,
    &CROWD,
    &LARGE_GROUP,
    &ONE_FORM,
    &NOT_A_NUMBER,
    &UNUSED_PARAMETER,
    &OUTPUT_IS_STDOUT,
    &OUTPUT_FILE_EXISTS,
    &OUTPUT_FILE_WITHOUT_FORMAT,
    &COLUMNS_DIFFER,
    &FOREIGN_FILE,
    &NOT_OF_A_RUN,
    &BENCHMARK_WITHOUT_FIELDS,
    &BENCHMARK_WITHOUT_ITEMS,
    &BENCHMARK_OF_EMPTY_ITEMS,
    &BENCHMARK_IN_THE_CORPUS,
    &SAVED_INDEX_EXISTS,
    &SAVED_INDEX_DAMAGED,
    &SAVED_INDEX_OF_ANOTHER_VERSION,
    &COLUMN_TAKEN,
    &FIELD_TAKEN,
    &SCORE_OUT_OF_RANGE,
    &TOO_LITTLE_MEMORY,
    &NO_REFERENCE,
    &REFERENCE_OF_ANOTHER_RECIPE,
    &INDEX_OF_ANOTHER_RECIPE,
    &OUTPUT_IN_REFERENCE,
    &REFERENCE_CHANGED,
    &REFERENCE_GONE,
    &REFERENCE_DAMAGED,
    &NOT_REWRITTEN,
    &UNKNOWN_IDS,
    &ONE_CLASS,
    &CONTRADICTION,
    &VIEW_UNFINISHED,
    &VIEW_MOVED,
    &VIEW_DAMAGED,
    &VIEW_OPEN,
    &VIEW_NO_JUDGEMENTS,
    &INTERRUPTED,
    &REPEAT_TOO_SHORT,
    &REPEAT_TOO_LONG,
    &REPEAT_NOT_A_NUMBER,
    &UNIT_UNKNOWN,
    &UNIT_OF_PIECES,
    &UNIT_OF_SUBSTRINGS,
    &WIDEN_AND_NARROW,
    &ENDS_WITHOUT_SUBSTRINGS,
    &SUBSTRINGS_WITH_PIECES,
    &KEEP_UNKNOWN,
    &KEEP_OF_SUBSTRINGS,
    &KEEP_FIELD_MISSING,
    &REPEATS_COLUMN_TAKEN,
    &REPEATS_FIELD_TAKEN,
    &MARK_NAME_UNKNOWN,
    &MARK_NAME_WITHOUT_NAME,
    &MARK_NAME_TWICE,
    &REWRITTEN_CHARSET,
    &TEXT_NOT_REWRITTEN,
    &NO_RUN_TO_ADD,
    &RUN_TO_ADD_UNFINISHED,
    &RUN_TO_ADD_OF_OTHERS,
    &RUN_TO_ADD_DAMAGED,
    &RUN_TO_ADD_WITHOUT_NAMES,
    &RUN_TO_ADD_TWICE,
    &RUN_TO_ADD_TOO_LATE,
    &DAY_OF_RUN,
    &TABLE_OF_OTHERS,
    &TABLE_WITHOUT_LIST,
    &TABLE_OF_OTHER_FORMAT,
    &TABLE_IS_FOLDER,
    &TABLE_WITHOUT_FOLDER,
    &TABLE_IS_STDOUT,
    &PART_UNFINISHED,
    &PART_TWICE,
    &PART_OF_OTHERS,
    &PART_OF_OTHER_RECIPE,
    &PART_WITHOUT_TEXTS,
    &PARTS_TOO_LARGE,
    &PART_CUT_SHORT,
    &PART_DAMAGED,
    &DECISIONS_MISSING,
    &DECISIONS_OF_OTHERS,
    &PART_FILES_OTHER,
    &PART_FILE_CHANGED,
    &RUN_WITHOUT_PART,
    &RUN_OF_OTHER_KEEP,
    &KEPT_ONLY_OF_MARKS,
    &KEPT_ONLY_OF_PART,
    &RUN_DAMAGED,
    &KEEP_PAIRS_ABOVE,
    &RUN_AGAINST,
    &KEEP_PAIRS_OF_STREAM,
];

/// The page cannot say anything else than the tests expect.
#[test]
fn the_page_lists_every_answer() {
    let path = testkit::repository().join("docs/use/bad-input.md");
    let page = std::fs::read_to_string(&path).expect("docs/use/bad-input.md");
    let mut rows =
        String::from("| input | status | what it says | and then |\n|---|---|---|---|\n");
    for Answer { what, status, says, then } in ALL {
        // A code span that holds a backtick needs two around it.
        let says = match *says {
            "" => "nothing".to_owned(),
            says if says.contains('`') => format!("`` {says} ``"),
            says => format!("`{says}`"),
        };
        rows.push_str(&format!("| {what} | {status} | {says} | {then} |\n"));
    }
    assert!(page.contains(&rows), "docs/use/bad-input.md has not exactly these rows:\n{rows}");
}
