//! What a finished run decided about a document, and on what.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use nearsift::search::Method;
use nearsift_io::DocumentId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::browse::{ClusterNumbers, PairNumbers};
use super::lookup::{Entry, Lookup, Results, each_line};
use super::run::RunOfSketches;
use crate::choice::{Choice, RecipeChoice, Verify};
use crate::corpus::Id;
use crate::error::Error;

/// The results of a finished run, for questions about single documents. No document is read.
#[derive(Debug)]
pub struct RunResults {
    pub(super) lookup: Lookup,
    settings: RunSettings,
    summary: Map<String, Value>,
    pub(super) sources: Vec<String>,
    /// Held while the tables are read for the next two.
    pub(super) reading: Mutex<()>,
    /// Read once, when clusters are listed.
    pub(super) clusters: OnceLock<ClusterNumbers>,
    /// Read once, when thresholds are looked at.
    pub(super) pairs: OnceLock<PairNumbers>,
}

/// What decided in a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunSettings {
    /// The method: `sketch` or `simhash`.
    pub method: String,
    /// The recipe in full.
    pub recipe: String,
    /// How pairs became groups.
    pub cluster: String,
    /// Which member of a group stayed.
    pub keep: String,
    /// The smallest score of near duplicates, where scores decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f64>,
    /// The largest Hamming distance of near duplicates, where it decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_distance: Option<u32>,
    /// How scores were verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
}

/// What a run decided about a document.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// Its id.
    pub id: Value,
    /// The number of its record over the whole input, from 1.
    pub record: u64,
    /// Whether it stayed.
    pub kept: bool,
    /// Its line of `removed.jsonl`, where it went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<Map<String, Value>>,
    /// Its line of `clusters.jsonl`, where it is like another document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterLine>,
    /// The lines of `pairs.jsonl` with it and its representative, where it went and was compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Map<String, Value>>,
    #[serde(skip)]
    document: u32,
}

/// A line of `clusters.jsonl`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClusterLine {
    /// Its number, from 1.
    pub cluster: u64,
    /// The name that it has in every run.
    pub name: String,
    /// Its documents.
    pub size: u64,
    /// The best of those that stay.
    pub representative: Value,
    /// All that stay, where that is more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Value>,
    /// The ids of its documents.
    pub members: Vec<Value>,
    /// Their records, from 1.
    pub records: Vec<u64>,
}

/// Why two documents of a run are together, or are not.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PairExplanation {
    /// Which case it is.
    pub verdict: Verdict,
    /// The lines of `pairs.jsonl` with both.
    pub pairs: Vec<Map<String, Value>>,
}

/// Why two documents are together, or are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// They are one document.
    SameDocument,
    /// They are in one group, and near each other.
    TogetherAsPair,
    /// They are in one group, through others.
    TogetherThroughOthers,
    /// They are near, and the rule of groups, or the largest size of one, keeps them apart.
    ApartByRule,
    /// The run has no pair of them: they were no candidates, or score too little.
    NoPair,
}

impl RunResults {
    /// Opens the folder of the results.
    ///
    /// # Errors
    /// A folder without results of `dedup`, unfinished or damaged ones.
    pub fn open(folder: &Path) -> Result<RunResults, Error> {
        let about = |what: String| Error::invalid(format!("{}: {what}", folder.display()));
        let json = fs::read(folder.join("summary.json")).map_err(|_| {
            about(match folder.join(".unfinished").is_dir() {
                true => "the run has not finished: go on with `resume`".to_owned(),
                false => {
                    "no results of `nearsift dedup`: expected summary.json in the folder".to_owned()
                }
            })
        })?;
        let broken = |e| about(format!("summary.json is not one of `nearsift dedup`: {e}"));
        let settings = serde_json::from_slice(&json).map_err(broken)?;
        let summary = serde_json::from_slice(&json).map_err(broken)?;
        Ok(RunResults {
            lookup: Lookup::open(folder)?,
            settings,
            sources: sources_of_field(&summary),
            summary,
            reading: Mutex::new(()),
            clusters: OnceLock::new(),
            pairs: OnceLock::new(),
        })
    }

    /// The folder of the results.
    pub fn folder(&self) -> &Path {
        self.lookup.folder()
    }

    /// The files of the input, by the names that the run knew them by: as they were given, so that relative ones are of the
    /// folder in which it ran.
    ///
    /// # Errors
    /// A list of inputs that cannot be read.
    pub fn inputs(&self) -> Result<Vec<PathBuf>, Error> {
        #[derive(Deserialize)]
        struct InputLine {
            file: PathBuf,
        }
        if !self.summary.contains_key("more_inputs") {
            let listed = self.summary.get("inputs").and_then(Value::as_array);
            let file = |line: &Value| line.get("file").and_then(Value::as_str).map(PathBuf::from);
            return Ok(listed.into_iter().flatten().filter_map(file).collect());
        }
        let path = self.lookup.folder().join("inputs.jsonl");
        let lines = fs::read_to_string(&path).map_err(|e| Error::io(&path, "read", &e))?;
        let file = |line: &str| serde_json::from_str(line).map(|line: InputLine| line.file);
        lines.lines().map(file).collect::<Result<_, _>>().map_err(Error::invalid)
    }

    /// Calls `each` with the record of each document that went, from 0, in order.
    ///
    /// # Errors
    /// A table that cannot be read or is damaged.
    pub(super) fn each_removed(&self, mut each: impl FnMut(u64)) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct RemovedLine {
            record: u64,
        }
        each_line(self.folder(), Results::Removed, |line: RemovedLine| {
            each(line.record.saturating_sub(1));
            Ok(())
        })
    }

    /// `summary.json`.
    pub fn summary(&self) -> &Map<String, Value> {
        &self.summary
    }

    /// What decided.
    pub fn settings(&self) -> &RunSettings {
        &self.settings
    }

    /// The method of the run, and its rarities where it compared texts.
    ///
    /// # Errors
    /// A recipe that this version does not know, or damaged rarities.
    pub fn method(&self) -> Result<(Method, Option<RunOfSketches>), Error> {
        let RunSettings { recipe, min_score, max_distance, verify, .. } = &self.settings;
        let is_exact = verify.as_deref() == Some("exact");
        let like = is_exact.then(|| RunOfSketches::open(self.lookup.folder())).transpose()?;
        let choice = Choice {
            recipe: RecipeChoice { recipe: Some(recipe.clone()), ..RecipeChoice::default() },
            min_score: *min_score,
            max_distance: *max_distance,
            verify: (!is_exact && max_distance.is_none()).then_some(Verify::Off),
            ..Choice::default()
        };
        Ok((choice.method()?, like))
    }

    /// How many documents were read.
    pub fn documents(&self) -> u64 {
        self.lookup.documents()
    }

    /// What was decided about the documents of an id, in the order of the input: ids need not be unique. An id of
    /// digits is looked for as a string and as a number.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn find(&self, id: &str) -> Result<Vec<Explanation>, Error> {
        let text = DocumentId::Text(id.into());
        let number: Option<serde_json::Number> = serde_json::from_str(id).ok();
        let number = number.map(|_| DocumentId::Number(id.into()));
        let mut found = Vec::new();
        for id in [Some(text), number].into_iter().flatten() {
            let id = Id::of(&id);
            let written = serde_json::to_value(&id).map_err(Error::invalid)?;
            for entry in self.lookup.find(&id)? {
                found.push(self.explain(entry, written.clone())?);
            }
        }
        found.sort_by_key(|explained| explained.record);
        Ok(found)
    }

    /// The names of the clusters that documents are in: of the run, or of the reference that has the document. `None` where the run has no
    /// document of an id, or one that is like no other.
    ///
    /// # Errors
    /// When a file cannot be read.
    ///
    /// # Complexity
    /// O(log documents) reads for each id, and one pass over two tables for all.
    pub(super) fn cluster_names(&self, ids: &[&Id<'_>]) -> Result<Vec<Option<String>>, Error> {
        #[derive(Deserialize)]
        struct NamedLine {
            cluster: u32,
            name: String,
        }
        #[derive(Deserialize)]
        struct RemovedLine {
            record: u64,
            cluster_name: Option<String>,
        }
        let entry = |id: &&Id<'_>| Ok(self.lookup.find(id)?.into_iter().next());
        let entries: Vec<Option<Entry>> = ids.iter().map(entry).collect::<Result<_, Error>>()?;
        let mut of_clusters: HashMap<u32, Option<String>> = HashMap::new();
        let mut of_references: HashMap<u64, Option<String>> = HashMap::new();
        for &Entry { cluster, record, .. } in entries.iter().flatten() {
            match cluster {
                0 => drop(of_references.insert(record + 1, None)),
                number => drop(of_clusters.insert(number, None)),
            }
        }
        let folder = self.lookup.folder();
        if !of_clusters.is_empty() {
            each_line(folder, Results::Clusters, |line: NamedLine| {
                of_clusters.entry(line.cluster).and_modify(|name| *name = Some(line.name));
                Ok(())
            })?;
        }
        if !of_references.is_empty() {
            each_line(folder, Results::Removed, |line: RemovedLine| {
                of_references.entry(line.record).and_modify(|name| *name = line.cluster_name);
                Ok(())
            })?;
        }
        let name = |entry: &Option<Entry>| match entry.as_ref()? {
            Entry { cluster: 0, record, .. } => of_references.get(&(record + 1))?.clone(),
            Entry { cluster, .. } => of_clusters.get(cluster)?.clone(),
        };
        Ok(entries.iter().map(name).collect())
    }

    /// The documents of an id.
    pub(super) fn entries(&self, id: &Value) -> Result<Vec<Entry>, Error> {
        match id {
            Value::String(text) => self.lookup.find(&Id::of(&DocumentId::Text(text.into()))),
            Value::Number(number) => {
                self.lookup.find(&Id::of(&DocumentId::Number(number.to_string().into())))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The line of `removed.jsonl` of a document; `None` where it stays.
    ///
    /// # Errors
    /// A file that cannot be read.
    ///
    /// # Complexity
    /// Reads one or two blocks.
    pub(super) fn removed_line(&self, entry: &Entry) -> Result<Option<Map<String, Value>>, Error> {
        let record = Value::from(entry.record + 1);
        let is_own = |line: &Map<String, Value>| line.get("record") == Some(&record);
        Ok(self.lookup.lines(Results::Removed, entry.document, is_own)?.into_iter().next())
    }

    pub(super) fn explain(&self, entry: Entry, id: Value) -> Result<Explanation, Error> {
        let removed = self.removed_line(&entry)?;
        let Entry { record, document, cluster, .. } = entry;
        let is_cluster = |line: &ClusterLine| line.cluster == u64::from(cluster);
        let cluster = match cluster {
            0 => None,
            number => self.lookup.lines(Results::Clusters, number, is_cluster)?.into_iter().next(),
        };
        let mut explained = Explanation {
            id,
            record: record + 1,
            kept: removed.is_none(),
            removed,
            cluster,
            pairs: Vec::new(),
            document,
        };
        let partner =
            explained.removed.as_ref().and_then(|line| line.get("representative")).cloned();
        if let Some(partner) = partner {
            explained.pairs = self.pairs_of(&explained, &partner)?;
        }
        Ok(explained)
    }

    /// The pairs of a document and one of this id.
    fn pairs_of(
        &self,
        explained: &Explanation,
        id: &Value,
    ) -> Result<Vec<Map<String, Value>>, Error> {
        let mut pairs = Vec::new();
        for other in self.entries(id)? {
            pairs.extend(self.pairs(explained.document.min(other.document), [&explained.id, id])?);
        }
        pairs.dedup();
        Ok(pairs)
    }

    fn pairs(&self, earlier: u32, ids: [&Value; 2]) -> Result<Vec<Map<String, Value>>, Error> {
        let is_of_both = |line: &Map<String, Value>| {
            let own = [line.get("a"), line.get("b")];
            own == ids.map(Some) || own == [ids[1], ids[0]].map(Some)
        };
        self.lookup.lines(Results::Pairs, earlier, is_of_both)
    }

    /// Why two documents are together, or are not.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn between(&self, a: &Explanation, b: &Explanation) -> Result<PairExplanation, Error> {
        let number =
            |explained: &Explanation| explained.cluster.as_ref().map(|cluster| cluster.cluster);
        let is_together = number(a).is_some() && number(a) == number(b);
        let pairs = match a.document == b.document {
            true => Vec::new(),
            false => self.pairs(a.document.min(b.document), [&a.id, &b.id])?,
        };
        let verdict = match (a.document == b.document, is_together, pairs.is_empty()) {
            (true, _, _) => Verdict::SameDocument,
            (_, true, false) => Verdict::TogetherAsPair,
            (_, true, true) => Verdict::TogetherThroughOthers,
            (_, false, false) => Verdict::ApartByRule,
            (_, false, true) => Verdict::NoPair,
        };
        Ok(PairExplanation { verdict, pairs })
    }
}

/// The sources by which clusters can be filtered: those of a field, of most documents.
fn sources_of_field(summary: &Map<String, Value>) -> Vec<String> {
    let table = summary.get("sources").filter(|table| table["by"] != "folder");
    let lines = table.and_then(|table| table["sources"].as_array()).into_iter().flatten();
    lines.take(30).filter_map(|line| Some(line.get("source")?.as_str()?.to_owned())).collect()
}
