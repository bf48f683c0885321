//! What a run did, for people and programs.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use nearsift::cluster::{Capped, Cluster};
use nearsift::dedup::{Clustering, Found, Keep, Reason};
use nearsift::hamming::CHANCE_WARNING;
use nearsift::recipe::Recipe;
use nearsift::verify::Facts;
use nearsift_io::{InputFile, Inputs, Note};
use serde::Serialize;

use super::against::Reference;
use super::kept_files::KeptFiles;
use crate::context::Context;
use crate::corpus::{Collected, Columns, Counts, Id, Ids};
use crate::error::Error;
use crate::folder::Folder;
use crate::numbers::{grouped, plural, plural_of};
use crate::partial::PartialSummary;
use crate::report::{
    Example, Gone, Group, Nearness, Report, Setting, Sizes, SourceTable, is_zero, visible,
    visible_line,
};
use crate::scan::Problems;
use crate::search::{Decision, OfOneForm};
use nearsift::search::{Acceptance, Near};

/// `summary.json`. Nothing in it depends on time, threads or the machine.
#[derive(Debug, Serialize)]
pub struct Summary {
    nearsift: &'static str,
    method: &'static str,
    recipe: String,
    recipe_digest: String,
    keep: String,
    cluster: &'static str,
    #[serde(flatten)]
    search: Search,
    /// The first [`INPUTS`] files; when there are more, all of them are in `inputs.jsonl`.
    inputs: Vec<InputLine>,
    #[serde(skip_serializing_if = "is_zero")]
    more_inputs: u64,
    /// How many files of each format there are.
    #[serde(skip)]
    formats: BTreeMap<String, u64>,
    skipped_files: u64,
    /// Nothing was removed, and no document was written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    documents: u64,
    text_bytes: u64,
    /// Documents that stay.
    pub kept: u64,
    /// Documents that go, by reason.
    pub removed: Removals,
    /// What the documents were compared with beside each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Reference>,
    unreadable: u64,
    /// Files and members of archives that hold no document, because none of their records has the field of the text.
    #[serde(skip_serializing_if = "is_zero")]
    pub carried_over: u64,
    /// Rows among the unreadable ones that could be read, and not be converted.
    #[serde(skip_serializing_if = "is_zero")]
    pub unconverted: u64,
    /// Numbers that JSON does not have, such as NaN, that became null in what was converted.
    #[serde(skip_serializing_if = "is_zero")]
    pub numbers_as_null: u64,
    without_text: u64,
    navigation_only: u64,
    too_few_features: u64,
    #[serde(skip_serializing_if = "is_zero")]
    too_long: u64,
    #[serde(skip_serializing_if = "is_zero")]
    undecodable: u64,
    duplicate_ids: u64,
    documents_with_replaced_characters: u64,
    replaced_characters: u64,
    /// The charset that what could not be decoded looks like.
    #[serde(skip)]
    likely_charset: Option<&'static str>,
    without_keep_value: u64,
    /// Groups of two documents or more.
    pub groups: u64,
    largest_group: u64,
    group_sizes: BTreeMap<u64, u64>,
    pairs: u64,
    /// Documents that stand for as many as the largest size allows, and links with more that are near them.
    capped_groups: u32,
    capped_links: u64,
    /// What `--partial` found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) partial: Option<PartialSummary>,
    /// Files that were not written, because they had changed since they were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<ChangedFile>,
    /// How many documents of each source went, where there is more than one source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sources: Option<SourceTable>,
    #[serde(skip)]
    largest: Vec<GroupShown>,
}

/// How near duplicates were searched for, and how near they are.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Search {
    /// By SimHash fingerprints.
    Simhash {
        /// Bits of a fingerprint.
        bits: u32,
        /// The largest Hamming distance of near duplicates, inclusive, in bits.
        max_distance: u32,
        /// How candidates are searched for.
        plan: String,
        /// How many pairs lie at distance 0, 1, 2, ...
        distances: Vec<u64>,
        /// Unrelated documents near to one, if fingerprints were spread evenly.
        chance_neighbours: f64,
    },
    /// By dual sketches.
    Sketch {
        /// The smallest score of near duplicates, inclusive, from 0 to 1.
        min_score: f64,
        /// `exact` where texts decide, `off` where sketches do.
        verify: &'static str,
        /// The table that says how rare each feature is: `shipped`, or `corpus:` and its digest. Texts are weighed by it.
        #[serde(skip_serializing_if = "Option::is_none")]
        rarity: Option<String>,
        /// How candidates are searched for.
        plan: String,
        /// The expected share of pairs that are compared, by their similarity.
        expected_recall: BTreeMap<String, f64>,
        /// Pairs of sketches that were compared.
        comparisons: u64,
        /// Pairs whose sketches score high enough.
        candidates: u64,
        /// Candidates that were not compared, of documents that are like many others.
        candidates_passed_over: u64,
        /// Keys that very many sketches have.
        crowded_keys: u64,
        /// Comparisons under such keys that were not made.
        comparisons_passed_over: u64,
        /// Pairs of one form that were kept apart, because they differ in their facts.
        #[serde(skip_serializing_if = "Option::is_none")]
        same_form_apart: Option<Box<SameForm>>,
        /// Groups whose documents may have no more than a form in common.
        #[serde(skip_serializing_if = "Option::is_none")]
        same_form_together: Option<Box<SameForm>>,
        /// How many pairs score from 0 to 0.05, from 0.05 to 0.1, and so on; the last includes 1.
        scores: Vec<u64>,
    },
}

/// Documents of one form: many values that stand at the same places differ.
#[derive(Debug, Serialize)]
pub struct SameForm {
    #[serde(skip_serializing_if = "is_zero")]
    groups: u64,
    #[serde(skip_serializing_if = "is_zero")]
    documents: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pairs: u64,
    /// Two of them.
    a: Id<'static>,
    b: Id<'static>,
    /// In how many values these two agree and differ.
    #[serde(flatten)]
    facts: Facts,
}

impl SameForm {
    /// # Errors
    /// When an id cannot be read back.
    fn of_pair(pair: &Near, ids: &Ids) -> Result<SameForm, Error> {
        Ok(SameForm {
            groups: 0,
            documents: 0,
            pairs: 0,
            a: ids.get(pair.a)?.into_owned(),
            b: ids.get(pair.b)?.into_owned(),
            facts: pair.facts(),
        })
    }

    fn example(&self) -> String {
        let Facts { agree, differ, .. } = self.facts;
        let [a, b] = [&self.a, &self.b].map(Id::shown);
        format!("such as {a} and {b}: {differ} of {} values differ", agree + differ)
    }
}

/// The bins of the scores' histogram.
const SCORE_BINS: usize = 20;

impl Search {
    /// # Errors
    /// When an id cannot be read back.
    pub(super) fn of_sketches<T>(
        acceptance: Acceptance,
        decision: &Decision<'_, T>,
        ids: &Ids,
    ) -> Result<Search, Error> {
        let same_form_apart = match decision.apart.example {
            Some(pair) => {
                let pairs = decision.apart.pairs;
                Some(Box::new(SameForm { pairs, ..SameForm::of_pair(&pair, ids)? }))
            }
            None => None,
        };
        let expected =
            [0.2, 0.3, 0.4, 0.5, 0.6, 0.8].map(|s| (s.to_string(), decision.plan.recall(s)));
        Ok(Search::Sketch {
            min_score: acceptance.min_score(),
            verify: match acceptance {
                Acceptance::Verified(_) => "exact",
                Acceptance::Scored(_) => "off",
            },
            rarity: match acceptance {
                Acceptance::Verified(_) => Some(decision.frequencies().name()),
                Acceptance::Scored(_) => None,
            },
            plan: decision.plan.to_string(),
            expected_recall: expected.into(),
            comparisons: decision.work.comparisons,
            candidates: decision.candidates,
            candidates_passed_over: decision.skipped,
            crowded_keys: decision.work.crowded_keys,
            comparisons_passed_over: decision.work.passed_over,
            same_form_apart,
            same_form_together: None,
            scores: Vec::new(),
        })
    }

    fn method(&self) -> &'static str {
        match self {
            Search::Simhash { .. } => "simhash",
            Search::Sketch { .. } => "sketch",
        }
    }

    fn plan(&self) -> &str {
        match self {
            Search::Simhash { plan, .. } | Search::Sketch { plan, .. } => plan,
        }
    }

    /// Counts a pair at a distance.
    fn count_distance(&mut self, distance: u32) {
        if let Search::Simhash { distances, .. } = self {
            let distance = distance as usize;
            if distances.len() <= distance {
                distances.resize(distance + 1, 0);
            }
            distances[distance] += 1;
        }
    }

    /// Counts a pair of a score from 0 to 1.
    fn count_score(&mut self, score: f64) {
        if let Search::Sketch { scores, .. } = self {
            scores.resize(SCORE_BINS, 0);
            scores[score_bin(score)] += 1;
        }
    }
}

/// The bin of a score: 0.05 each, but for rounding.
fn score_bin(score: f64) -> usize {
    ((score * SCORE_BINS as f64 + 1e-9) as usize).min(SCORE_BINS - 1)
}

/// How many documents go, by reason.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Removals {
    /// Copies of an earlier text, whatever stands for their group.
    pub exact: u64,
    /// Near duplicates that are no copies.
    pub near: u64,
    /// What references have.
    #[serde(skip_serializing_if = "is_zero")]
    pub exact_of_reference: u64,
    /// Near duplicates of a document of a reference.
    #[serde(skip_serializing_if = "is_zero")]
    pub near_of_reference: u64,
}

impl Removals {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.exact + self.near + self.of_reference()
    }

    /// Those that a reference has.
    pub fn of_reference(&self) -> u64 {
        self.exact_of_reference + self.near_of_reference
    }
}

/// So many input files are listed in the summary.
const INPUTS: usize = 1000;

/// A file of the input.
#[derive(Debug, Serialize)]
struct InputLine {
    file: String,
    format: String,
}

impl InputLine {
    fn of(file: &InputFile) -> InputLine {
        InputLine { file: file.name(), format: file.format().to_string() }
    }
}

fn formats(inputs: &Inputs) -> BTreeMap<String, u64> {
    let mut formats = BTreeMap::new();
    for file in inputs.files() {
        *formats.entry(file.format().to_string()).or_default() += 1;
    }
    formats
}

/// A file that was not the same in all passes, and what differed.
#[derive(Debug, Serialize)]
pub struct ChangedFile {
    file: String,
    message: String,
}

impl ChangedFile {
    /// Takes what ended the writing of a file.
    ///
    /// # Errors
    /// What it was, if it was anything but a change.
    pub(crate) fn of(file: &InputFile, error: nearsift_io::Error) -> Result<ChangedFile, Error> {
        match error {
            nearsift_io::Error::Changed { .. } | nearsift_io::Error::Gone { .. } => {
                Ok(ChangedFile { file: file.name(), message: error.to_string() })
            }
            error => Err(error.into()),
        }
    }

    /// What differed, with the name of the file.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// A group to look at: its first members.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GroupShown {
    /// All documents of the group.
    pub size: u64,
    /// Some of its members, the one that stays first.
    pub members: Vec<MemberShown>,
}

impl GroupShown {
    /// How many members are not shown.
    pub fn more(&self) -> u64 {
        self.size - self.members.len() as u64
    }
}

/// A member of a group.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemberShown {
    /// Its id as it is in the input.
    pub id: String,
    /// `kept`, `same text`, or how near it is to the one that stays in its place.
    pub what: String,
}

/// Groups that are shown, and members of each.
const GROUPS: usize = 20;
const MEMBERS: usize = 12;

impl Summary {
    pub(super) fn new<C: Columns>(
        inputs: &Inputs,
        collected: &Collected<C>,
        recipe: &Recipe,
        keep: &Keep,
        clustering: Clustering,
        search: Search,
    ) -> Summary {
        let counts: &Counts = &collected.counts;
        let documents = collected.corpus.len() as u64;
        Summary {
            nearsift: env!("CARGO_PKG_VERSION"),
            method: search.method(),
            recipe: recipe.to_string(),
            recipe_digest: format!("{:016x}", recipe.digest()),
            keep: keep.to_string(),
            cluster: match clustering {
                Clustering::Components => "components",
                Clustering::Star => "star",
                Clustering::Majority => "majority",
            },
            search,
            inputs: inputs.files().iter().take(INPUTS).map(InputLine::of).collect(),
            more_inputs: inputs.files().len().saturating_sub(INPUTS) as u64,
            formats: formats(inputs),
            skipped_files: inputs.skipped().files,
            dry_run: false,
            documents,
            text_bytes: counts.text_bytes,
            kept: documents,
            removed: Removals::default(),
            against: Vec::new(),
            unreadable: collected.problems.count(),
            carried_over: 0,
            unconverted: 0,
            numbers_as_null: 0,
            without_text: counts.without_text,
            navigation_only: counts.navigation_only,
            too_few_features: counts.too_few_features,
            too_long: counts.too_long,
            undecodable: counts.undecodable,
            duplicate_ids: counts.duplicate_ids,
            documents_with_replaced_characters: counts.documents_replaced,
            replaced_characters: counts.characters_replaced,
            likely_charset: collected.likely_charset(),
            without_keep_value: counts.without_value,
            groups: 0,
            largest_group: 0,
            group_sizes: BTreeMap::new(),
            pairs: 0,
            capped_groups: 0,
            capped_links: 0,
            partial: None,
            changed_files: Vec::new(),
            sources: None,
            largest: Vec::new(),
        }
    }

    /// Writes the list of all input files, when the summary has only the first.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn write_inputs(&self, inputs: &Inputs, folder: &Folder) -> Result<(), Error> {
        if self.more_inputs == 0 {
            return Ok(());
        }
        let mut table = folder.table("inputs.jsonl")?;
        inputs.files().iter().try_for_each(|file| table.line(&InputLine::of(file)))?;
        table.finish()
    }

    /// Counts a pair at a Hamming distance.
    pub(super) fn count_pair(&mut self, distance: u32) {
        self.search.count_distance(distance);
        self.pairs += 1;
    }

    /// Counts a pair of a score from 0 to 1, and returns which bin of the histogram it is in.
    pub(super) fn count_scored(&mut self, score: f64) -> u32 {
        self.search.count_score(score);
        self.pairs += 1;
        score_bin(score) as u32
    }

    /// Remembers what the largest size of a group kept apart.
    pub(super) fn set_capped(&mut self, capped: Capped) {
        self.capped_groups = capped.groups;
        self.capped_links = capped.links;
    }

    /// The largest groups, of each some members.
    pub fn largest_groups(&self) -> &[GroupShown] {
        &self.largest
    }

    /// Documents and files that could not be read.
    pub fn unread(&self) -> u64 {
        self.unreadable - self.unconverted
    }

    /// How many documents were read.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    pub(super) fn is_of_sketches(&self) -> bool {
        matches!(self.search, Search::Sketch { .. })
    }

    pub(super) fn count_removal(&mut self, reason: Reason) {
        match reason {
            Reason::Exact => self.removed.exact += 1,
            Reason::Near => self.removed.near += 1,
        }
        self.kept -= 1;
    }

    /// Counts a document that went because a reference has it.
    pub(super) fn count_referred(&mut self, reason: Reason) {
        match reason {
            Reason::Exact => self.removed.exact_of_reference += 1,
            Reason::Near => self.removed.near_of_reference += 1,
        }
        self.kept -= 1;
    }

    /// Counts a group, and remembers it while it is among the largest. `score` is what decided about two
    /// documents, where they were compared with each other.
    ///
    /// # Errors
    /// When an id cannot be read back.
    pub(super) fn count_group(
        &mut self,
        group: &Cluster<'_>,
        found: &Found<'_>,
        ids: &Ids,
        score: &impl Fn(u32, u32) -> Option<f32>,
    ) -> Result<(), Error> {
        let Cluster { members, representative, .. } = *group;
        let size = members.len() as u64;
        self.groups += 1;
        self.largest_group = self.largest_group.max(size);
        *self.group_sizes.entry(size).or_default() += 1;
        if self.largest.len() == GROUPS && self.largest[GROUPS - 1].size >= size {
            return Ok(());
        }
        let scored = self.is_of_sketches();
        // Each document that stays, the best first, and those that go in its favour.
        let mut order = members.to_vec();
        order.sort_by_key(|&m| {
            let stays = found.clusters().representative(m);
            (stays != representative, stays, m != stays)
        });
        let member = |document, what| -> Result<MemberShown, Error> {
            Ok(MemberShown { id: ids.get(document)?.to_string(), what })
        };
        let mut shown = vec![member(representative, "kept".to_owned())?];
        for &m in order.iter().skip(1).take(MEMBERS) {
            let removal = found.removal(m);
            let what = match removal.distance {
                _ if removal.representative == m => "kept".to_owned(),
                _ if removal.is_same_text => "same text".to_owned(),
                Some(distance) if !scored => format!("near {distance}"),
                _ => match score(m, removal.representative) {
                    Some(score) => format!("near {score:.2}"),
                    None => "near".to_owned(),
                },
            };
            shown.push(member(m, what)?);
        }
        let shown = GroupShown { size, members: shown };
        // Equal sizes keep the order of their first members.
        let place = self.largest.partition_point(|s| s.size >= size);
        self.largest.insert(place, shown);
        self.largest.truncate(GROUPS);
        Ok(())
    }

    /// Counts what was written of the files of what is kept, and lists what could not be.
    ///
    /// # Errors
    /// When the disk refuses the list.
    pub(super) fn set_kept_files(
        &mut self,
        context: &Context<'_>,
        files: KeptFiles,
        list: &Path,
    ) -> Result<(), Error> {
        let KeptFiles { changed, carried_over, unconverted, nulls } = files;
        self.numbers_as_null = nulls;
        self.changed_files = changed;
        self.carried_over = carried_over;
        self.list_unconverted(context, &unconverted, list)
    }

    /// Counts and lists rows of the kept documents that could not be converted: they are unreadable ones.
    fn list_unconverted(
        &mut self,
        context: &Context<'_>,
        rows: &[Note],
        list: &Path,
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut problems = Problems::default();
        let mut lines = String::new();
        for note in rows {
            problems.add(context, note);
            lines += &serde_json::to_string(note).map_err(Error::invalid)?;
            lines.push('\n');
        }
        let append = || OpenOptions::new().append(true).open(list)?.write_all(lines.as_bytes());
        append()
            .map_err(|e| Error::invalid(format!("unreadable.jsonl: cannot be written: {e}")))?;
        self.unconverted = rows.len() as u64;
        self.unreadable += self.unconverted;
        self.documents -= self.unconverted;
        self.kept -= self.unconverted;
        Ok(())
    }

    /// Says which groups may have no more than a form in common.
    ///
    /// # Errors
    /// When an id cannot be read back.
    pub(super) fn set_same_form(&mut self, groups: &OfOneForm, ids: &Ids) -> Result<(), Error> {
        if let Search::Sketch { same_form_together, .. } = &mut self.search
            && let Some(pair) = &groups.example
        {
            let OfOneForm { groups, documents, .. } = *groups;
            let form = SameForm { groups, documents, ..SameForm::of_pair(pair, ids)? };
            *same_form_together = Some(Box::new(form));
        }
        Ok(())
    }

    /// What a user should know, one sentence each, with settings in backticks.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |count: u64, line: String| {
            if count > 0 {
                warnings.push(line);
            }
        };
        warn(
            u64::from(self.documents + self.unreadable == 0),
            "The input holds no document: check it, and give `format` if its name tells another."
                .into(),
        );
        warn(
            self.unreadable,
            format!(
                "{} could not be read: unreadable.jsonl says where and why, unreadable/ has what there was to read.",
                plural_of(self.unreadable, ["document or file", "documents or files"])
            ),
        );
        warn(
            self.carried_over,
            format!(
                "{} no record with the text field: {} in kept/ as in the input, byte for byte.",
                plural_of(self.carried_over, ["file has", "files have"]),
                if self.carried_over == 1 { "it is" } else { "they are" },
            ),
        );
        warn(
            self.numbers_as_null,
            format!(
                "{} that JSON does not have, NaN or Infinity, became null in the converted files: without `output-format` records stay as they are.",
                plural(self.numbers_as_null, "number")
            ),
        );
        warn(
            self.changed_files.len() as u64,
            format!(
                "{} changed while the run read the input, and nothing of them is in kept/: summary.json lists them; run again on files that stay as they are.",
                plural_of(self.changed_files.len() as u64, ["file was", "files were"])
            ),
        );
        warn(
            self.duplicate_ids,
            format!(
                "{} had an id that another one has too: tell them apart by the number of their record.",
                plural(self.duplicate_ids, "document")
            ),
        );
        warn(
            self.replaced_characters,
            format!(
                "{} could not be decoded, in {}: compared as U+FFFD, kept byte for byte, and the same text only where the bytes are the same. {}",
                plural(self.replaced_characters, "character"),
                plural(self.documents_with_replaced_characters, "document"),
                match self.likely_charset {
                    Some(charset) => format!(
                        "The bytes look like {charset}: give `charset` {}.",
                        charset.to_lowercase()
                    ),
                    None =>
                        "If the input is not in UTF-8, name its charset with `charset`.".to_owned(),
                }
            ),
        );
        warn(
            self.without_keep_value,
            format!(
                "{} had no value for the keep policy '{}': they come after all others.",
                plural(self.without_keep_value, "document"),
                self.keep
            ),
        );
        let unjudged =
            self.without_text + self.navigation_only + self.too_few_features + self.undecodable;
        warn(
            unjudged,
            format!(
                "{} had no fingerprint ({} without text, {} with navigation only, {} with too few features{}): such documents match only where the text is the same.",
                plural(unjudged, "document"),
                grouped(self.without_text),
                grouped(self.navigation_only),
                grouped(self.too_few_features),
                match self.undecodable {
                    0 => String::new(),
                    n => format!(", {} of which too much could not be decoded", grouped(n)),
                }
            ),
        );
        warn(
            self.too_long,
            format!(
                "{} had a text of more than 1 GiB and was compared with none: split such records into documents.",
                plural(self.too_long, "document")
            ),
        );
        warn(
            self.skipped_files,
            format!(
                "{} in the folders had no known extension and were not read.",
                plural(self.skipped_files, "file")
            ),
        );
        warn(
            u64::from(self.capped_groups),
            format!(
                "{} for as many documents as `max-cluster` allows, and more are like them ({}), of which others stay: look at the largest groups, a page template may hold them together.",
                plural_of(self.capped_groups.into(), ["document stands", "documents stand"]),
                plural(self.capped_links, "link")
            ),
        );
        for passed_over in self.against.iter().filter_map(Reference::passed_over) {
            warn(1, passed_over);
        }
        match &self.search {
            Search::Simhash { chance_neighbours, max_distance, .. } => warn(
                u64::from(*chance_neighbours > CHANCE_WARNING),
                format!(
                    "A document has {chance_neighbours:.2} neighbours within distance {max_distance} by chance alone: use a smaller distance or more bits."
                ),
            ),
            Search::Sketch {
                candidates_passed_over,
                crowded_keys,
                comparisons_passed_over,
                same_form_apart,
                same_form_together,
                ..
            } => {
                if let Some(form) = same_form_together {
                    warn(
                        form.groups,
                        format!(
                            "{} of {} may have only a form in common ({}): look at them in report.html. Where they are different documents, run 'nearsift tune' on the input, or give a higher `min-score`.",
                            plural(form.groups, "group"),
                            plural(form.documents, "document"),
                            form.example()
                        ),
                    );
                }
                if let Some(form) = same_form_apart {
                    warn(
                        form.pairs,
                        format!(
                            "{} of one form {} no near duplicates, because their values differ ({}).",
                            plural(form.pairs, "pair"),
                            if form.pairs == 1 { "is" } else { "are" },
                            form.example()
                        ),
                    );
                }
                warn(
                    *candidates_passed_over,
                    format!(
                        "{} of documents that are like many others were compared only where a group depends on it: the nearest of each were.",
                        plural(*candidates_passed_over, "pair")
                    ),
                );
                warn(
                    *comparisons_passed_over,
                    format!(
                        "{} shared by so many documents that {} of the comparisons among these were not made; most pairs that are alike share another key.",
                        plural_of(*crowded_keys, ["key is", "keys are"]),
                        grouped(*comparisons_passed_over)
                    ),
                );
            }
        }
        warnings
    }

    /// The report, with pairs to show, the least alike first.
    pub(super) fn report(&self, context: &Context<'_>, examples: Vec<Example>) -> Report {
        let near = match &self.search {
            Search::Simhash { max_distance, bits, .. } => {
                ("Largest distance", format!("{max_distance} of {bits} bits"))
            }
            Search::Sketch { min_score, verify, .. } => {
                ("Smallest score", format!("{min_score}, verified: {verify}"))
            }
        };
        let settings = [
            ("Program", format!("nearsift {}", self.nearsift)),
            ("Input", self.input()),
            ("Method", self.method.to_owned()),
            ("Recipe", self.recipe.clone()),
            ("Recipe digest", self.recipe_digest.clone()),
            near,
            ("Groups are", self.cluster.to_owned()),
            ("Kept is", self.keep.clone()),
            ("Search plan", self.search.plan().to_owned()),
        ];
        let against = self.against.iter().map(|reference| ("Against", reference.to_string()));
        let largest = self.largest.iter().map(|g| Group {
            size: g.size,
            kept: visible_line(&g.members[0].id),
            more: g.more(),
            removed: g.members[1..]
                .iter()
                .map(|m| Gone { id: visible_line(&m.id), why: m.what.clone() })
                .collect(),
        });
        Report {
            documents: self.documents,
            text_bytes: self.text_bytes,
            kept: self.kept,
            removed_exact: self.removed.exact + self.removed.exact_of_reference,
            removed_near: self.removed.near + self.removed.near_of_reference,
            unreadable: self.unreadable,
            groups: self.groups,
            largest_group: self.largest_group,
            pairs: self.pairs,
            warnings: self.warnings().iter().map(|w| visible(&context.spell(w))).collect(),
            nearness: match &self.search {
                Search::Simhash { distances, max_distance, .. } => {
                    Nearness::of_distances(distances, *max_distance)
                }
                Search::Sketch { scores, min_score, .. } => Nearness::of_scores(scores, *min_score),
            },
            group_sizes: Sizes::of(self.group_sizes.iter().map(|(&size, &groups)| (size, groups))),
            sources: self.sources.clone(),
            largest: largest.collect(),
            examples,
            settings: settings
                .into_iter()
                .chain(against)
                .map(|(name, value)| Setting { name, value: visible(&value) })
                .collect(),
        }
    }

    /// The files by format.
    fn input(&self) -> String {
        let formats: Vec<String> =
            self.formats.iter().map(|(format, &n)| format!("{} {format}", grouped(n))).collect();
        let files = plural(self.formats.values().sum(), "file");
        format!("{files}: {}", formats.join(", "))
    }
}
