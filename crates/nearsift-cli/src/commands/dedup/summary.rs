//! What a run did, for people and programs.

use std::collections::BTreeMap;
use std::path::Path;

use askama::Template;
use nearsift::cluster::Cluster;
use nearsift::dedup::{Clustering, Found, Options, Reason};
use nearsift::hamming::CHANCE_WARNING;
use nearsift::join::Explanation;
use nearsift::recipe::Recipe;
use nearsift_io::Inputs;
use serde::Serialize;

use super::collect::{Collected, Counts, Ids};
use super::{kept_and_removed, member_line};
use crate::failure::Failure;
use crate::output::{Out, escaped};
use crate::report::{Example, Figure, Group, Histogram, Report, grouped, visible};
use crate::scan::{UNREADABLE, plural, plural_of};

/// `summary.json`. Nothing in it depends on time, threads or the machine.
#[derive(Debug, Serialize)]
pub struct Summary {
    nearsift: &'static str,
    method: &'static str,
    recipe: String,
    recipe_digest: String,
    bits: u32,
    max_distance: u32,
    keep: String,
    cluster: &'static str,
    plan: String,
    inputs: Vec<InputLine>,
    skipped_files: u64,
    documents: u64,
    text_bytes: u64,
    pub kept: u64,
    pub removed: Removed,
    unreadable: u64,
    without_text: u64,
    navigation_only: u64,
    too_few_features: u64,
    duplicate_ids: u64,
    documents_with_replaced_characters: u64,
    replaced_characters: u64,
    without_keep_value: u64,
    groups: u64,
    largest_group: u64,
    group_sizes: BTreeMap<u64, u64>,
    pairs: u64,
    distances: Vec<u64>,
    chance_neighbours: f64,
    #[serde(skip)]
    largest: Vec<Shown>,
}

#[derive(Debug, Default, Serialize)]
pub struct Removed {
    exact: u64,
    near: u64,
}

impl Removed {
    pub fn total(&self) -> u64 {
        self.exact + self.near
    }
}

#[derive(Debug, Serialize)]
struct InputLine {
    file: String,
    format: String,
}

/// A group for the report and the terminal.
#[derive(Debug)]
struct Shown {
    size: u64,
    kept: String,
    removed: Vec<String>,
    lines: Vec<String>,
}

/// So many groups are shown, and so many members of each.
const GROUPS: usize = 20;
const MEMBERS: usize = 12;

impl Summary {
    pub fn new(
        inputs: &Inputs,
        collected: &Collected,
        recipe: &Recipe,
        options: &Options,
        explanation: &Explanation,
    ) -> Summary {
        let counts: &Counts = &collected.counts;
        let documents = collected.corpus.len() as u64;
        Summary {
            nearsift: env!("CARGO_PKG_VERSION"),
            method: "simhash",
            recipe: recipe.to_string(),
            recipe_digest: format!("{:016x}", recipe.digest()),
            bits: recipe.bits().count(),
            max_distance: options.max_distance,
            keep: options.keep.to_string(),
            cluster: match options.clustering {
                Clustering::Components => "components",
                Clustering::Star => "star",
            },
            plan: explanation.plan.to_string(),
            inputs: inputs
                .files()
                .iter()
                .map(|f| InputLine { file: f.name(), format: f.format().to_string() })
                .collect(),
            skipped_files: inputs.skipped().files,
            documents,
            text_bytes: counts.text_bytes,
            kept: documents,
            removed: Removed::default(),
            unreadable: collected.problems.count(),
            without_text: counts.without_text,
            navigation_only: counts.navigation_only,
            too_few_features: counts.too_few_features,
            duplicate_ids: counts.duplicate_ids,
            documents_with_replaced_characters: counts.documents_replaced,
            replaced_characters: counts.characters_replaced,
            without_keep_value: counts.without_value,
            groups: 0,
            largest_group: 0,
            group_sizes: BTreeMap::new(),
            pairs: 0,
            distances: Vec::new(),
            chance_neighbours: explanation.chance_neighbours,
            largest: Vec::new(),
        }
    }

    pub fn count_pair(&mut self, distance: u32) {
        let distance = distance as usize;
        if self.distances.len() <= distance {
            self.distances.resize(distance + 1, 0);
        }
        self.distances[distance] += 1;
        self.pairs += 1;
    }

    pub fn count_removal(&mut self, reason: Reason) {
        match reason {
            Reason::Exact => self.removed.exact += 1,
            Reason::Near => self.removed.near += 1,
        }
        self.kept -= 1;
    }

    /// Counts a group, and remembers it while it is among the largest.
    pub fn count_group(&mut self, group: &Cluster<'_>, found: &Found<'_>, ids: &Ids) {
        let Cluster { members, representative, .. } = *group;
        let size = members.len() as u64;
        self.groups += 1;
        self.largest_group = self.largest_group.max(size);
        *self.group_sizes.entry(size).or_default() += 1;
        if self.largest.len() == GROUPS && self.largest[GROUPS - 1].size >= size {
            return;
        }
        let gone = || members.iter().copied().filter(|&m| m != representative);
        let mut lines = vec![member_line(ids, representative, "kept")];
        lines.extend(gone().take(MEMBERS).map(|m| {
            let removal = found.removal(m);
            let what = match (removal.reason, removal.distance) {
                (Reason::Near, Some(distance)) => format!("near {distance}"),
                _ => "same text".to_owned(),
            };
            member_line(ids, m, &what)
        }));
        let more = (members.len() - 1).saturating_sub(MEMBERS);
        if more > 0 {
            lines.push(format!("    and {} more", grouped(more as u64)));
        }
        let shown = Shown {
            size,
            kept: visible(ids.get(representative)),
            removed: gone().take(MEMBERS).map(|m| visible(ids.get(m))).collect(),
            lines,
        };
        // Equal sizes keep the order of their first members.
        let place = self.largest.partition_point(|s| s.size >= size);
        self.largest.insert(place, shown);
        self.largest.truncate(GROUPS);
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |count: u64, line: String| {
            if count > 0 {
                warnings.push(line);
            }
        };
        warn(
            u64::from(self.documents + self.unreadable == 0),
            "The input holds no document: check it, and give --format if its name tells another."
                .into(),
        );
        warn(
            self.unreadable,
            format!(
                "{} could not be read: unreadable.jsonl says where and why, unreadable/ has what there was to read.",
                plural_of(self.unreadable, UNREADABLE)
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
                "{} could not be decoded, in {}: compared as U+FFFD, kept byte for byte.",
                plural(self.replaced_characters, "character"),
                plural(self.documents_with_replaced_characters, "document")
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
        let unjudged = self.without_text + self.navigation_only + self.too_few_features;
        warn(
            unjudged,
            format!(
                "{} had no fingerprint ({} without text, {} with navigation only, {} with too few features): such documents match only where the text is the same.",
                plural(unjudged, "document"),
                self.without_text,
                self.navigation_only,
                self.too_few_features
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
            u64::from(self.chance_neighbours > CHANCE_WARNING),
            format!(
                "A document has {:.2} neighbours within distance {} by chance alone: use a smaller distance or more bits.",
                self.chance_neighbours, self.max_distance
            ),
        );
        warnings
    }

    /// The result on the terminal.
    pub fn print(&self, out: &mut Out, folder: &Path) -> Result<(), Failure> {
        for group in &self.largest {
            out.line(&format!("group of {}", grouped(group.size)))?;
            for line in &group.lines {
                out.line(line)?;
            }
        }
        let more = self.groups.saturating_sub(self.largest.len() as u64);
        if more > 0 {
            out.line(&format!("and {}", plural(more, "smaller group")))?;
        }
        if self.groups > 0 {
            out.line("")?;
        }
        out.line(&format!(
            "{} of {}: {} ({} with the same text, {} near)",
            plural(self.groups, "group"),
            plural(self.documents, "document"),
            kept_and_removed(self),
            grouped(self.removed.exact),
            grouped(self.removed.near)
        ))?;
        for warning in self.warnings() {
            out.line(&format!("note: {}", escaped(&warning)))?;
        }
        out.line(&format!("results in {}: kept/, report.html, removed.jsonl, pairs.jsonl, clusters.jsonl, summary.json", escaped(&folder.display().to_string())))
    }

    /// The report's page.
    pub fn report(&self, examples: Vec<Example>) -> Result<String, Failure> {
        let figure = |name, value: u64| Figure { name, value: grouped(value) };
        let report = Report {
            lead: format!("{}, {}.", plural(self.documents, "document"), kept_and_removed(self)),
            figures: vec![
                figure("Documents", self.documents),
                figure("Kept", self.kept),
                figure("Removed, same text", self.removed.exact),
                figure("Removed, near", self.removed.near),
                figure("Groups", self.groups),
                figure("Largest group", self.largest_group),
                figure("Unreadable", self.unreadable),
            ],
            warnings: self.warnings(),
            distances: Histogram::of_distances(&self.distances),
            sizes: self.sizes(),
            largest: self
                .largest
                .iter()
                .map(|g| {
                    let more = g.size - 1 - g.removed.len() as u64;
                    let tail = if more > 0 {
                        format!(" and {} more", grouped(more))
                    } else {
                        String::new()
                    };
                    Group {
                        size: g.size,
                        kept: g.kept.clone(),
                        removed: g.removed.join(", ") + &tail,
                    }
                })
                .collect(),
            examples,
            settings: vec![
                ("Program", format!("nearsift {}", self.nearsift)),
                ("Method", self.method.to_owned()),
                ("Recipe", self.recipe.clone()),
                ("Recipe digest", self.recipe_digest.clone()),
                ("Largest distance", format!("{} of {} bits", self.max_distance, self.bits)),
                ("Groups are", self.cluster.to_owned()),
                ("Kept is", self.keep.clone()),
                ("Search plan", self.plan.clone()),
            ],
        };
        report.render().map_err(Failure::new)
    }

    /// Sizes up to 9 one by one, larger ones by powers of ten.
    fn sizes(&self) -> Vec<(String, u64)> {
        let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
        for (&size, &groups) in &self.group_sizes {
            let bin = if size < 10 { size } else { 10u64.pow(size.ilog10()) };
            *bins.entry(bin).or_default() += groups;
        }
        let label = |bin: u64| {
            if bin < 10 {
                bin.to_string()
            } else {
                format!("{} to {}", grouped(bin), grouped(bin * 10 - 1))
            }
        };
        bins.into_iter().map(|(bin, groups)| (label(bin), groups)).collect()
    }
}
