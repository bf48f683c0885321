//! What a user should know about a run.

use nearsift::hamming::CHANCE_WARNING;

use super::{Place, Search, Summary};
use crate::dedup::against::Reference;
use crate::numbers::{grouped, plural, plural_of};

/// Sentences with settings in backticks.
#[derive(Default)]
struct Warnings(Vec<String>);

impl Warnings {
    /// Adds a sentence where there is something to count.
    fn add(&mut self, count: u64, line: String) {
        if count > 0 {
            self.0.push(line);
        }
    }
}

impl Summary {
    /// What a user should know, one sentence each, with settings in backticks.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Warnings::default();
        self.warn_of_files(&mut warnings);
        self.warn_of_documents(&mut warnings);
        self.warn_of_unjudged(&mut warnings);
        self.warn_of_groups(&mut warnings);
        self.warn_of_search(&mut warnings);
        warnings.0
    }

    /// Of what was read and written.
    fn warn_of_files(&self, warnings: &mut Warnings) {
        warnings.add(
            u64::from(self.documents + self.unreadable == 0),
            "The input holds no document: check it, and give `format` if its name tells another."
                .into(),
        );
        warnings.add(
            self.unreadable,
            format!(
                "{} could not be read: {}.",
                plural_of(self.unreadable, ["document or file", "documents or files"]),
                match self.place {
                    Place::Stream => "unreadable.jsonl says where and why, of a run with a folder for its results",
                    _ => "unreadable.jsonl says where and why, unreadable/ has what there was to read",
                }
            ),
        );
        warnings.add(
            self.carried_over,
            format!(
                "{} no documents: {} {}.",
                plural_of(self.carried_over, ["file holds", "files hold"]),
                if self.carried_over == 1 { "it is" } else { "they are" },
                match (self.place, self.marked) {
                    (Place::Files, true) => "in marked/ as in the input",
                    (Place::Files, false) => "in kept/ as in the input",
                    _ => "not among what was written",
                }
            ),
        );
        warnings.add(
            self.unmarked,
            format!(
                "{} of the name of an added column already, and stayed as it was: give that column another name with `mark-names`.",
                plural_of(self.unmarked, ["document has a field", "documents have a field"])
            ),
        );
        warnings.add(
            self.numbers_as_null,
            format!(
                "{} that JSON does not have, NaN or Infinity, became null in the converted files: without `output-format` records stay as they are.",
                plural(self.numbers_as_null, "number")
            ),
        );
        warnings.add(
            self.changed_files.len() as u64,
            format!(
                "{} changed while the run read the input, and nothing of them is in kept/: summary.json lists them; run again on files that stay as they are.",
                plural_of(self.changed_files.len() as u64, ["file was", "files were"])
            ),
        );
    }

    /// Of documents that lack something.
    fn warn_of_documents(&self, warnings: &mut Warnings) {
        warnings.add(
            self.duplicate_ids,
            format!(
                "{} had an id that another one has too: tell them apart by the number of their record.",
                plural(self.duplicate_ids, "document")
            ),
        );
        warnings.add(
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
        warnings.add(
            self.without_keep_value,
            format!(
                "{} had no value for the keep policy '{}': they come after all others.",
                plural(self.without_keep_value, "document"),
                self.keep
            ),
        );
    }

    /// Of documents that are compared with few others, or none, and of files that are not read.
    fn warn_of_unjudged(&self, warnings: &mut Warnings) {
        let unjudged =
            self.without_text + self.navigation_only + self.too_few_features + self.undecodable;
        warnings.add(
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
        warnings.add(
            self.too_long,
            format!(
                "{} had a text of more than 1 GiB and was compared with none: split such records into documents.",
                plural(self.too_long, "document")
            ),
        );
        warnings.add(
            self.skipped_files,
            format!(
                "{} in the folders had no known extension and were not read.",
                plural(self.skipped_files, "file")
            ),
        );
    }

    /// Of groups at the largest size, and of references.
    fn warn_of_groups(&self, warnings: &mut Warnings) {
        warnings.add(
            u64::from(self.capped_groups),
            format!(
                "{} for as many documents as `max-cluster` allows, and more are like them ({}), of which others stay: look at the largest groups, a page template may hold them together.",
                plural_of(self.capped_groups.into(), ["document stands", "documents stand"]),
                plural(self.capped_links, "link")
            ),
        );
        for skipped in self.against.iter().filter_map(Reference::skipped) {
            warnings.add(1, skipped);
        }
    }

    /// Of what was not compared, and of documents of one form.
    fn warn_of_search(&self, warnings: &mut Warnings) {
        match &self.search {
            Search::Simhash { chance_neighbours, max_distance, .. } => warnings.add(
                u64::from(*chance_neighbours > CHANCE_WARNING),
                format!(
                    "A document has {chance_neighbours:.2} neighbours within distance {max_distance} by chance alone: use a smaller distance or more bits."
                ),
            ),
            Search::Sketch {
                candidates_skipped,
                hot_keys,
                comparisons_skipped,
                same_form_apart,
                same_form_together,
                ..
            } => {
                if let Some(form) = same_form_together {
                    warnings.add(
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
                    warnings.add(
                        form.pairs,
                        format!(
                            "{} of one form {} no near duplicates, because their values differ ({}).",
                            plural(form.pairs, "pair"),
                            if form.pairs == 1 { "is" } else { "are" },
                            form.example()
                        ),
                    );
                }
                warnings.add(
                    *candidates_skipped,
                    format!(
                        "{} of documents that are like many others were compared only where a group depends on it: the nearest of each were.",
                        plural(*candidates_skipped, "pair")
                    ),
                );
                warnings.add(
                    *comparisons_skipped,
                    format!(
                        "{} hot, shared by very many documents: {} among these skipped; most pairs that are alike share another key.",
                        plural_of(*hot_keys, ["key is", "keys are"]),
                        plural_of(*comparisons_skipped, ["comparison was", "comparisons were"])
                    ),
                );
            }
        }
    }
}
