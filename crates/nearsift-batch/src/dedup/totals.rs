//! What clusters have become over several runs: their sizes, days and sources added up in one table.
//!
//! A cluster keeps its name from run to run: what a run removed because a reference has it names the reference's cluster, and what it keeps makes
//! clusters of its own. So the runs' tables add up by name, and none of them is changed.
//!
//! Beside the table lies a list of the runs that are in it, with the digest of the table. Both are written anew and renamed, the table
//! first: of a process that is killed between the two, the new list is still there, and tells by the digest that it is the right one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lookup::{Results, each_line};
use crate::error::Error;

/// A line of the table, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClusterTotal {
    /// The name that the cluster has in every run.
    pub name: String,
    /// Its documents, over all runs.
    pub size: u64,
    /// The document that stayed in the first run that had the cluster.
    pub representative: Value,
    /// The day of that run.
    pub first_seen: String,
    /// The day of the last run with a document of the cluster.
    pub last_seen: String,
    /// How many runs had documents of it.
    pub runs: u64,
    /// Its documents by source, of runs with a source field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, u64>,
    /// Whether a run has it only because a reference has: the reference's document is then one more.
    #[serde(skip)]
    is_of_reference: bool,
}

/// The runs that a table has, and what it has become.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct TotalsSummary {
    /// Runs that were added.
    pub added: Vec<PathBuf>,
    /// Runs that the table had.
    pub known: Vec<PathBuf>,
    /// Clusters of the table.
    pub clusters: u64,
    /// Documents in them.
    pub documents: u64,
}

/// The list of runs.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Runs {
    /// Of the table.
    digest: String,
    runs: Vec<KnownRun>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KnownRun {
    folder: PathBuf,
    digest: String,
    seen: String,
    /// Runs and files that it was compared with and that the table did not have then.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    missing: BTreeSet<PathBuf>,
}

/// Adds the clusters of finished runs to a table, which may not exist yet. A run that the table has is not added again. Runs come in the
/// order in which they were made: each after those that it was compared with.
///
/// `seen` is the day of the runs, as `2026-11-28`; without it each run has the day, in UTC, on which its summary was written.
///
/// # Errors
/// A folder without results of `dedup`, or with unfinished or damaged ones, a run that a run in the table was compared with, a table that
/// was changed by others, or a disk that refuses. The table then has the runs before that one.
///
/// # Complexity
/// For each run O(table + run) time, and memory for the clusters of one run.
pub fn add_runs(
    table: &Path,
    runs: &[PathBuf],
    seen: Option<&str>,
) -> Result<TotalsSummary, Error> {
    check_place(table)?;
    let totals = Totals { table: table.to_owned() };
    let mut known = totals.runs()?;
    let mut summary =
        TotalsSummary { added: Vec::new(), known: Vec::new(), clusters: 0, documents: 0 };
    for folder in runs {
        let run = FinishedRun::read(folder, seen)?;
        if known.runs.iter().any(|known| known.digest == run.digest) {
            summary.known.push(folder.clone());
            continue;
        }
        let canonical = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let is_of_it = |known: &&KnownRun| known.missing.iter().any(|m| m.starts_with(&canonical));
        if let Some(later) = known.runs.iter().find(is_of_it) {
            return Err(Error::invalid(format!(
                "{}: the table has {}, which was compared with this run, so that documents would be counted twice: add runs in the order in which they were made, to a table of another name",
                folder.display(),
                later.folder.display()
            )));
        }
        let mut references = References { before: &known.runs, found: HashMap::new() };
        let grown = run.clusters(&mut references)?;
        let missing = references.missing();
        known.runs.push(KnownRun {
            folder: canonical,
            digest: run.digest,
            seen: run.seen,
            missing,
        });
        totals.merge(grown, &mut known)?;
        summary.added.push(folder.clone());
    }
    for row in totals.rows()? {
        let row = row?;
        summary.clusters += 1;
        summary.documents += row.size;
    }
    Ok(summary)
}

/// Endings of files that are no JSON lines.
const OTHER_FORMATS: [&str; 10] =
    ["arrow", "bz2", "csv", "feather", "gz", "json", "parquet", "tsv", "xz", "zst"];

/// # Errors
/// A table that is no file, or whose name tells another format than JSON lines.
fn check_place(table: &Path) -> Result<(), Error> {
    let problem = |problem: &str| Err(Error::invalid(format!("{}: {problem}", table.display())));
    if table == Path::new("-") {
        return problem(
            "the table is a file that later runs are added to, not standard output: name a file, such as clusters.jsonl",
        );
    }
    if table.is_dir() {
        return problem(
            "a folder, and the table is a file: name the table before the runs, as in `nearsift clusters clusters.jsonl RUN`",
        );
    }
    let ending = table.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    if ending.is_some_and(|ending| OTHER_FORMATS.contains(&ending.as_str())) {
        return problem("the table is JSON lines: give it a name that ends in .jsonl");
    }
    match table.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            problem("its folder does not exist: make the folder, or choose another place")
        }
        _ => Ok(()),
    }
}

struct Totals {
    table: PathBuf,
}

impl Totals {
    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.table.clone().into_os_string();
        name.push(ending);
        name.into()
    }

    /// The runs that the table has.
    fn runs(&self) -> Result<Runs, Error> {
        let digest = match fs::metadata(&self.table) {
            Ok(_) => digest_of(&self.table)?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Runs::default()),
            Err(e) => return Err(Error::io(&self.table, "read", &e)),
        };
        let [path, new] = [".runs", ".runs.new"].map(|ending| self.beside(ending));
        let read = |path: &Path| -> Option<Runs> {
            let runs: Runs = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
            (runs.digest == digest).then_some(runs)
        };
        if let Some(runs) = read(&path) {
            return Ok(runs);
        }
        // The process that wrote the table was killed before it renamed the list.
        if let Some(runs) = read(&new) {
            fs::rename(&new, &path).map_err(|e| Error::io(&path, "write", &e))?;
            return Ok(runs);
        }
        let (table, list) = (self.table.display(), path.display());
        Err(Error::invalid(match path.exists() {
            true => format!(
                "{table}: not the table that {list} is of: one of the two was changed, or it is no table of `nearsift clusters`; give another name, and add all runs again"
            ),
            false => format!(
                "{table}: no table of `nearsift clusters`, or without the list of its runs, {list}: give another name, and add all runs again"
            ),
        }))
    }

    /// The rows of the table, by name.
    fn rows(&self) -> Result<Box<dyn Iterator<Item = Result<ClusterTotal, Error>> + '_>, Error> {
        let error = |e: &std::io::Error| Error::io(&self.table, "read", e);
        let file = match File::open(&self.table) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Box::new(std::iter::empty()));
            }
            Err(e) => return Err(error(&e)),
        };
        Ok(Box::new(BufReader::new(file).lines().map(move |line| {
            let line = line.map_err(|e| error(&e))?;
            serde_json::from_str(&line)
                .map_err(|e| Error::invalid(format!("{}: {e}", self.table.display())))
        })))
    }

    /// Adds the clusters of a run, the last of `runs`, to the table.
    fn merge(&self, grown: BTreeMap<String, ClusterTotal>, runs: &mut Runs) -> Result<(), Error> {
        let new = self.beside(".new");
        let error = |e: &std::io::Error| Error::io(&new, "write", e);
        let mut file = BufWriter::new(File::create(&new).map_err(|e| error(&e))?);
        let mut write = |mut row: ClusterTotal| -> Result<(), Error> {
            row.size += u64::from(row.is_of_reference);
            let line = serde_json::to_string(&row).map_err(Error::invalid)?;
            writeln!(file, "{line}").map_err(|e| error(&e))
        };
        let mut grown = grown.into_values().peekable();
        for row in self.rows()? {
            let mut row = row?;
            while let Some(before) = grown.next_if(|next| next.name < row.name) {
                write(before)?;
            }
            if let Some(more) = grown.next_if(|next| next.name == row.name) {
                row.add(&more);
            }
            write(row)?;
        }
        grown.try_for_each(write)?;
        let file = file.into_inner().map_err(|e| error(e.error()))?;
        file.sync_all().map_err(|e| error(&e))?;
        runs.digest = digest_of(&new)?;
        let [path, new_list] = [".runs", ".runs.new"].map(|ending| self.beside(ending));
        let json = serde_json::to_vec_pretty(runs).map_err(Error::invalid)?;
        let error = |e: &std::io::Error| Error::io(&new_list, "write", e);
        let mut list = File::create(&new_list).map_err(|e| error(&e))?;
        list.write_all(&json).and_then(|()| list.sync_all()).map_err(|e| error(&e))?;
        fs::rename(&new, &self.table).map_err(|e| Error::io(&self.table, "write", &e))?;
        fs::rename(&new_list, &path).map_err(|e| Error::io(&path, "write", &e))
    }
}

impl ClusterTotal {
    /// Adds what a later run has of the same cluster.
    fn add(&mut self, later: &ClusterTotal) {
        self.size += later.size;
        self.runs += later.runs;
        self.last_seen.clone_from(&later.last_seen);
        for (source, documents) in &later.sources {
            *self.sources.entry(source.clone()).or_default() += documents;
        }
    }
}

/// The folder of a finished run.
struct FinishedRun<'a> {
    folder: &'a Path,
    /// Of its tables.
    digest: String,
    seen: String,
}

/// What of a line of `removed.jsonl` says that a reference has the document.
#[derive(Deserialize)]
struct ReferredLine {
    reference: Option<Value>,
    #[serde(default)]
    reference_file: PathBuf,
    reference_run: Option<PathBuf>,
    cluster_name: Option<String>,
    source: Option<String>,
}

/// What a line of `clusters.jsonl` says of the sizes of a cluster.
#[derive(Deserialize)]
struct RunClusterLine {
    /// Earlier versions gave none.
    name: Option<String>,
    size: u64,
    representative: Value,
    #[serde(default)]
    sources: BTreeMap<String, u64>,
}

/// Where a run's references are: in which of the runs that the table has.
struct References<'a> {
    before: &'a [KnownRun],
    /// By the place that the run names: the resolved place, and the index of the run.
    found: HashMap<PathBuf, (PathBuf, Option<usize>)>,
}

impl<'a> References<'a> {
    /// The run that a reference is, or is a file of. Each place is resolved once.
    fn run_of(&mut self, place: PathBuf) -> Option<&'a KnownRun> {
        let before = self.before;
        let (_, run) = self.found.entry(place).or_insert_with_key(|place| {
            let resolved = place.canonicalize().unwrap_or_else(|_| place.clone());
            let run = before.iter().rposition(|run| resolved.starts_with(&run.folder));
            (resolved, run)
        });
        run.map(|run| &before[run])
    }

    /// The places in none of the runs.
    fn missing(self) -> BTreeSet<PathBuf> {
        let places = self.found.into_values();
        places.filter(|(_, run)| run.is_none()).map(|(place, _)| place).collect()
    }
}

impl FinishedRun<'_> {
    fn read<'a>(folder: &'a Path, seen: Option<&str>) -> Result<FinishedRun<'a>, Error> {
        const TABLES: [&str; 3] = ["summary.json", "clusters.jsonl", "removed.jsonl"];
        if let Some(name) = TABLES.iter().find(|name| !folder.join(name).is_file()) {
            let folder_name = folder.display();
            return Err(Error::invalid(match folder.join(".unfinished").is_dir() {
                true => format!("{folder_name}: the run has not finished: go on with `resume`"),
                false => format!(
                    "{folder_name}: no results of `nearsift dedup`: expected {name} in the folder"
                ),
            }));
        }
        let summary = folder.join("summary.json");
        let meta = fs::metadata(&summary).map_err(|e| Error::io(&summary, "read", &e))?;
        let seen = match seen {
            Some(seen) => seen.to_owned(),
            None => {
                let time = meta.modified().map_err(|e| Error::io(&summary, "read", &e))?;
                let time = jiff::Timestamp::try_from(time).map_err(Error::invalid)?;
                time.strftime("%Y-%m-%d").to_string()
            }
        };
        let digests = TABLES.map(|name| digest_of(&folder.join(name)));
        let mut digest = String::new();
        for one in digests {
            digest += &one?;
        }
        let key = nearsift::text::key::content_key([digest]);
        Ok(FinishedRun { folder, digest: format!("{key:032x}"), seen })
    }

    fn of_earlier_version(&self) -> Error {
        Error::invalid(format!(
            "{}: an earlier version wrote these results, in which clusters have no names: run `nearsift dedup` again",
            self.folder.display()
        ))
    }

    /// The clusters with documents of the run.
    fn clusters(
        &self,
        references: &mut References<'_>,
    ) -> Result<BTreeMap<String, ClusterTotal>, Error> {
        let total = |name: &str, representative, first_seen: &str| ClusterTotal {
            name: name.to_owned(),
            size: 0,
            representative,
            first_seen: first_seen.to_owned(),
            last_seen: self.seen.clone(),
            runs: 1,
            sources: BTreeMap::new(),
            is_of_reference: false,
        };
        let mut grown: BTreeMap<String, ClusterTotal> = BTreeMap::new();
        each_line(self.folder, Results::Clusters, |line: RunClusterLine| {
            let name = line.name.ok_or_else(|| self.of_earlier_version())?;
            let row = total(&name, line.representative, &self.seen);
            let row = ClusterTotal { size: line.size, sources: line.sources, ..row };
            grown.insert(name, row);
            Ok(())
        })?;
        each_line(self.folder, Results::Removed, |line: ReferredLine| {
            let ReferredLine { reference, reference_file, reference_run, cluster_name, source } =
                line;
            let Some(reference) = reference else { return Ok(()) };
            let name = cluster_name.ok_or_else(|| self.of_earlier_version())?;
            let run = references.run_of(reference_run.unwrap_or(reference_file));
            let row = grown.entry(name).or_insert_with_key(|name| {
                let first_seen = run.map_or(&self.seen, |run| &run.seen);
                ClusterTotal { is_of_reference: true, ..total(name, reference, first_seen) }
            });
            row.size += 1;
            if let Some(source) = source {
                *row.sources.entry(source).or_default() += 1;
            }
            Ok(())
        })?;
        Ok(grown)
    }
}

/// The digest of a file's content.
fn digest_of(path: &Path) -> Result<String, Error> {
    let error = |e: &std::io::Error| Error::io(path, "read", e);
    let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(|e| error(&e))?);
    let mut digest = xxhash_rust::xxh3::Xxh3::new();
    loop {
        let bytes = file.fill_buf().map_err(|e| error(&e))?;
        if bytes.is_empty() {
            return Ok(format!("{:032x}", digest.digest128()));
        }
        digest.update(bytes);
        let read = bytes.len();
        file.consume(read);
    }
}
