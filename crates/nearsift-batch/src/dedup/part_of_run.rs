//! What a run leaves for other decisions about its documents, and these decisions.

use std::fs;
use std::path::Path;

use nearsift::dedup::{Clustering, Keep};
use nearsift::recipe::Recipe;
use nearsift::search::{Acceptance, Method};

use super::{Done, Job, Output, Settings, clustering_of, join_keeping, name_of};
use crate::context::Context;
use crate::corpus::{Collected, Columns};
use crate::error::Error;
use crate::folder::PART;
use crate::parts::{self, PartManifest, PartOfRun, Parts};
use crate::report::PageLanguage;
use crate::search::{CANDIDATES, TEMPLATES};

/// What a run is decided by anew; what is `None` stays as it was.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Regroup {
    /// The least score of near duplicates.
    pub min_score: Option<f64>,
    /// How pairs become groups.
    pub clustering: Option<Clustering>,
    /// With [`Clustering::Majority`]: the most different texts that a document stands for.
    pub max_cluster: Option<u32>,
    /// Which member of a group stays: the policy of the run, or [`Keep::First`]. The run knows no values of others.
    pub keep: Option<Keep>,
    /// Whether removed, pairs and clusters are written as Parquet, too.
    pub parquet_tables: bool,
    /// The language of `report.html`.
    pub language: PageLanguage,
    /// The day that `report.html` names.
    pub date: Option<String>,
}

/// Decides anew about the documents of a run with [`Settings::keep_pairs_from`], as [`run`](super::run) of its input with these
/// settings does, and writes the reasons into a folder; [`apply`](super::apply) of the run writes by it what stays. No input is read.
///
/// What the run compared is not compared again, unless the new score is below [`Settings::keep_pairs_from`], or other pairs are
/// worth a comparison: they differ between scores below and from 0.6, and between majority and the other two rules. Then texts are
/// compared that the run left.
///
/// # Errors
/// A run that left no part, was made against references, or whose part is damaged; a keep policy that it has no values of; an output folder that is not empty
/// or cannot be written, or an interruption.
///
/// # Complexity
/// Reads the part; 110 bytes a document and 60 a pair.
pub fn regroup(
    run: &Path,
    changes: &Regroup,
    output: &Output,
    context: &Context<'_>,
) -> Result<Done, Error> {
    let part = run.join(PART);
    let without_scores = || {
        Error::invalid(format!(
            "{}: not the folder of a run that can be decided anew: run it with `keep-pairs-from`",
            run.display()
        ))
    };
    if !PartManifest::is_in(&part) {
        return Err(without_scores());
    }
    let parts = Parts::open(&[part])?;
    let damaged = || Error::invalid(format!("{}: its part is of no run", run.display()));
    let was = parts.run().ok_or_else(damaged)?;
    if was.from.is_none() {
        return Err(without_scores());
    }
    if was.against {
        return Err(Error::invalid(format!(
            "{}: this run was made against references, and groups that are made anew know none: run it again with the other settings",
            run.display()
        )));
    }
    let own = parts.keep()?;
    let keep = changes.keep.clone().unwrap_or_else(|| own.clone());
    if keep != own && keep != Keep::First {
        let problem = format!(
            " {keep}: the run kept the values of {own}, and of no other policy: give that one or first, or run it again"
        );
        return Err(Error::Setting { setting: "keep", problem });
    }
    let settings = Settings {
        method: Method::Sketch {
            recipe: Recipe::parse(parts.recipe()).map_err(Error::invalid)?,
            acceptance: Acceptance::Verified(changes.min_score.unwrap_or(was.min_score)),
        },
        keep,
        clustering: changes.clustering.or_else(|| clustering_of(&was.cluster)),
        max_cluster: changes.max_cluster.unwrap_or(was.max_cluster),
        parquet_tables: changes.parquet_tables,
        language: changes.language,
        date: changes.date.clone(),
        ..Settings::default()
    };
    join_keeping(&parts, &settings, output, context)
}

impl Job<'_> {
    /// What the part of this run will say of itself, where it leaves one.
    pub(super) fn part_manifest<C: Columns>(
        &self,
        acceptance: Acceptance,
        recipe: &Recipe,
        collected: &Collected<C>,
    ) -> Result<Option<PartManifest>, Error> {
        let inputs = self.origin.files().filter(|_| self.settings.part_setting().is_some());
        let Some(inputs) = inputs else { return Ok(None) };
        let mut settings = parts::Settings::new(recipe.clone());
        settings.keep = self.settings.keep.clone();
        settings.source_field.clone_from(&self.settings.source_field);
        let mut manifest = PartManifest::of(inputs, &settings, collected)?;
        manifest.run = Some(PartOfRun {
            min_score: acceptance.min_score(),
            cluster: name_of(self.clustering()).to_owned(),
            max_cluster: self.settings.max_cluster,
            from: self.settings.keep_pairs_from,
            against: !self.settings.against.is_empty(),
        });
        Ok(Some(manifest))
    }

    /// Leaves the part of this run among its results: the work that was kept, under other names.
    pub(super) fn leave_part(&self, manifest: Option<&PartManifest>) -> Result<(), Error> {
        let (Some(manifest), Some(folder), Some(state)) = (manifest, self.folder, self.state())
        else {
            return Ok(());
        };
        folder.make(PART)?;
        let part = folder.path(PART);
        let with_scores = self.settings.keep_pairs_from.is_some();
        let work = || -> std::io::Result<()> {
            for entry in fs::read_dir(state.path(""))? {
                let entry = entry?;
                if is_of_part(&entry.path(), with_scores) {
                    link_or_copy(&entry.path(), &part.join(entry.file_name()))?;
                }
            }
            Ok(())
        };
        work().map_err(|e| folder.cannot_write(PART, &e))?;
        manifest.write(&part)
    }
}

/// Whether a file of the work that is kept belongs to a part, with the scores of pairs or without.
fn is_of_part(path: &Path, with_scores: bool) -> bool {
    const KINDS: [&str; 4] = ["columns", "keys", "texts", "sample"];
    match path.extension() {
        Some(kind) => KINDS.iter().any(|of| kind == *of) || (with_scores && kind == "pairs"),
        None => {
            let of_scores = [CANDIDATES, TEMPLATES];
            with_scores
                && of_scores.iter().any(|name| path.file_name().is_some_and(|own| own == *name))
        }
    }
}

/// Gives a file another name; where the file system has no second names, copies it.
fn link_or_copy(from: &Path, to: &Path) -> std::io::Result<()> {
    match fs::hard_link(from, to) {
        Err(_) => fs::copy(from, to).map(drop),
        linked => linked,
    }
}
