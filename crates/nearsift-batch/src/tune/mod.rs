//! A threshold for the user's own documents, with evidence, and what it will cost.

mod by_simhash;
mod by_sketch;
mod examples;
mod forecast;
mod report;

use nearsift::recipe::Recipe;
use nearsift_io::Inputs;

use crate::context::Context;
use crate::corpus::{self, Collected, Columns, Counts, with_statistics};
use crate::error::Error;
use forecast::Stopwatch;
use nearsift::search::Method;
pub use report::{
    Band, Basis, Between, Distance, Documents, Example, Expected, F1, Forecast, Larger, Number,
    Random, Report, Sample, Seen, Threshold,
};

/// What is looked at.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// How near duplicates are found, with the threshold that is judged.
    pub method: Method,
    /// Whether the threshold of the method was chosen: then no other is proposed.
    pub is_threshold_given: bool,
    /// Documents that are searched against all others.
    pub sample: u32,
    /// Random pairs of different documents, which show what chance scores.
    pub random_pairs: u32,
    /// What decides the samples.
    pub seed: u64,
    /// For how many documents of the kind the cost is forecast, too.
    pub documents: Option<u64>,
    /// Pairs that are shown of every score.
    pub examples: u8,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            method: Method::default(),
            is_threshold_given: false,
            sample: 100_000,
            random_pairs: 10_000,
            seed: 1,
            documents: None,
            examples: 2,
        }
    }
}

/// Proposes what near duplicates are among documents, without labels.
///
/// # Errors
/// A method that does not compare texts, an input that cannot be read, or an interruption.
pub fn run(inputs: &Inputs, settings: &Settings, context: &Context<'_>) -> Result<Report, Error> {
    let run = Run { settings, inputs, context };
    match settings.method.clone() {
        Method::Sketch { recipe, acceptance } => run.by_sketch(recipe, acceptance),
        Method::Simhash { recipe, max_distance } => run.by_simhash(recipe, max_distance),
    }
}

/// A run at work.
struct Run<'a> {
    settings: &'a Settings,
    inputs: &'a Inputs,
    context: &'a Context<'a>,
}

/// Pairs that are compared exactly, at most; fewer documents are searched when they have more.
const MAX_PAIRS: usize = 1_000_000;

impl Run<'_> {
    /// Reads all documents into columns.
    fn collect<C: Columns>(
        &self,
        columns: C,
        recipe: Recipe,
        watch: &mut Stopwatch,
    ) -> Result<(Collected<C>, Recipe), Error> {
        let recipe = with_statistics(self.context, recipe, self.inputs)?;
        let collected = corpus::collect(
            self.context,
            columns,
            self.inputs,
            &corpus::Wanted::by(&recipe),
            None,
            |_| Ok(()),
        )?;
        watch.read(collected.counts.text_bytes);
        Ok((collected, recipe))
    }

    fn report(&self, method: &'static str, recipe: &Recipe, documents: Documents) -> Report {
        Report::new(method, recipe.to_string(), self.settings.seed, documents)
    }
}

fn documents<C: Columns>(collected: &Collected<C>, first: &[u32]) -> Documents {
    let Counts { without_text, navigation_only, too_few_features, too_long, text_bytes, .. } =
        collected.counts;
    let same_text = (0u32..).zip(first).filter(|(document, first)| document != *first).count();
    Documents {
        documents: first.len() as u64,
        same_text: same_text as u64,
        unjudged: without_text + navigation_only + too_few_features + too_long,
        unreadable: collected.problems.count(),
        text_bytes,
    }
}
