//! The pairs that are measured: nearsift's own, or another tool's.

use std::ops::ControlFlow;
use std::path::Path;

use nearsift::compare::score_of_distance;
use nearsift::dedup::{Clustering, Corpus, Entry, Options, SketchCorpus};
use nearsift::evaluate::ScoredPair;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::feature::sample::FrequencySample;
use nearsift::join::Threads;
use nearsift::recipe::Recipe;
use nearsift::sketch::Score;
use nearsift_io::ReadOptions;

use super::Settings;
use super::documents::Documents;
use super::table::{self, about};
use crate::context::Context;
use crate::error::Error;
use crate::search::{Workspace, decide};
use nearsift::search::{
    Acceptance, Candidates, Method, PairScope, clustering_within, join_settings,
};

/// Pairs with scores, and which of them count as accepted.
pub struct Scored {
    /// What made the pairs.
    pub method: String,
    /// For nearsift's own pairs: the recipe in full.
    pub recipe: Option<String>,
    pub pairs: Vec<ScoredPair>,
    /// The smallest accepted score, inclusive.
    pub threshold: f64,
    /// What the threshold means, and how far below it pairs were looked for.
    pub searched: String,
    /// Where texts were compared: the table that says how rare each feature is.
    pub rarity: Option<String>,
    /// Rows that name a document that is not there.
    pub unknown: u64,
    /// How such pairs become groups, unless it is said.
    pub clustering: Clustering,
}

/// All pairs that the chosen method can score, also below its threshold, so that every threshold can
/// be judged.
///
/// # Errors
/// An unknown recipe, or a threshold out of range.
pub fn scored_pairs(
    settings: &Settings,
    context: &Context<'_>,
    documents: &Documents,
) -> Result<Scored, Error> {
    match settings.method.clone() {
        Method::Simhash { recipe, max_distance } => {
            by_simhash(settings, context, documents, recipe, max_distance)
        }
        Method::Sketch { recipe, acceptance } => by_sketch(context, documents, recipe, acceptance),
    }
}

/// Sketches that score at least this are looked at, so that thresholds below the default can be judged.
const FLOOR: f64 = 0.2;
/// Texts that score less are not distinguished further.
const VERIFIED_FLOOR: f64 = 0.25;

fn by_sketch(
    context: &Context<'_>,
    documents: &Documents,
    recipe: Recipe,
    acceptance: Acceptance,
) -> Result<Scored, Error> {
    let recipe = documents.with_corpus(recipe);
    recipe.fingerprinter()?;
    let mut corpus = SketchCorpus::default();
    let mut sample = FrequencySample::default();
    for (entry, features) in documents.sketches(&recipe) {
        if let (Some(key), Some(_)) = (entry.text_key, entry.sketched) {
            sample.add(key, &features);
        }
        corpus.push(entry);
    }
    let floor = match acceptance {
        Acceptance::Verified(_) => Acceptance::Verified(VERIFIED_FLOOR.min(acceptance.min_score())),
        Acceptance::Scored(score) => Acceptance::Scored(score.min(Score::at_least(FLOOR))),
    };
    let join = corpus
        .join(join_settings(floor, corpus.len(), context.memory_bytes))
        .map_err(Error::invalid)?;
    let frequencies = sample.table(DocumentFrequencies::shipped());
    let Ok(candidates) = Candidates::find(&corpus, &join, PairScope::AllPairs, acceptance);
    let workspace = Workspace::scratch(context, &context.scratch);
    let decision = decide(&corpus, candidates, frequencies, floor, workspace, |_| Ok(documents))?;
    let first = corpus.first_of_text();
    let pairs = decision.of_all_documents(&first)?;
    let pairs: Vec<ScoredPair> = pairs
        .map(|near| ScoredPair { a: near.a, b: near.b, score: f64::from(near.score()) })
        .collect();
    if pairs.len() >= MOST_PAIRS {
        return Err(Error::invalid(format!(
            "more than {MOST_PAIRS} pairs: too many documents are alike; evaluate a sample"
        )));
    }
    let verified = if matches!(acceptance, Acceptance::Verified(_)) { ", verified" } else { "" };
    Ok(Scored {
        method: format!("sketch{verified}"),
        recipe: Some(recipe.to_string()),
        pairs,
        threshold: acceptance.min_score(),
        searched: format!("{acceptance}; {}", decision.plan),
        rarity: matches!(acceptance, Acceptance::Verified(_))
            .then(|| decision.frequencies().name()),
        unknown: 0,
        clustering: Clustering::Majority,
    })
}

fn by_simhash(
    settings: &Settings,
    context: &Context<'_>,
    documents: &Documents,
    recipe: Recipe,
    accepted: u32,
) -> Result<Scored, Error> {
    let recipe = documents.with_corpus(recipe);
    recipe.fingerprinter()?;
    let bits = recipe.bits().count();
    let mut corpus = Corpus::new(recipe.bits());
    for (outcome, text_key) in documents.fingerprints(&recipe) {
        corpus.push(Entry { fingerprint: outcome.fingerprint(), text_key, value: None });
    }
    // Beyond a quarter of the bits unrelated documents prevail.
    let floor = accepted.max(bits / 4);
    let options = Options {
        threads: Threads::Current,
        memory_bytes: context.memory_bytes,
        ..Options::new(floor)
    };
    let mut pairs = Vec::new();
    let flow = corpus
        .pairs(&options, |pair| {
            let score = score_of_distance(pair.distance, bits);
            pairs.push(ScoredPair { a: pair.a, b: pair.b, score });
            match pairs.len() {
                MOST_PAIRS => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        })
        .map_err(Error::invalid)?;
    if flow.is_break() {
        return Err(Error::invalid(format!(
            "more than {MOST_PAIRS} pairs within distance {floor}: too many documents are alike; evaluate a sample"
        )));
    }
    Ok(Scored {
        method: settings.recipe_as_given.clone().unwrap_or_else(|| recipe.name().to_owned()),
        recipe: Some(recipe.to_string()),
        pairs,
        threshold: score_of_distance(accepted, bits),
        searched: format!("distance {accepted} of {bits} bits, searched up to {floor}"),
        rarity: None,
        unknown: 0,
        clustering: clustering_within(accepted, bits),
    })
}

/// The most pairs that are held: 24 bytes each, twice.
const MOST_PAIRS: usize = 50_000_000;

/// Another tool's pairs.
///
/// # Errors
/// A file that is no table of pairs, or whose ids are all unknown.
pub fn given_pairs(
    file: &Path,
    settings: &Settings,
    context: &Context<'_>,
    options: &ReadOptions,
    documents: &Documents,
) -> Result<Scored, Error> {
    let (mut pairs, mut rows, mut unknown) = (Vec::new(), 0u64, 0u64);
    table::read(file, options, &["a", "b", "score", "id1", "id2"], |row| {
        rows += 1;
        let id = |column: usize, name: &str| {
            row.text(column).or_else(|| row.text(column + 3)).ok_or_else(|| {
                about(file, row.line, &format!("expected an id in the column '{name}', found none"))
            })
        };
        let score = match row.text(2) {
            None => 1.0,
            Some(text) => text.parse::<f64>().ok().filter(|s| s.is_finite()).ok_or_else(|| {
                about(file, row.line, &format!("expected a number as score, found '{text}'"))
            })?,
        };
        match (documents.number(id(0, "a")?), documents.number(id(1, "b")?)) {
            (Some(a), Some(b)) => pairs.push(ScoredPair { a, b, score }),
            _ => unknown += 1,
        }
        if pairs.len() > MOST_PAIRS {
            return Err(Error::invalid(format!(
                "{}: more than {MOST_PAIRS} pairs",
                file.display()
            )));
        }
        Ok(())
    })?;
    if rows > 0 && rows == unknown {
        return Err(Error::invalid(format!(
            "{}: none of its ids is the id of a document; see `id-field`",
            file.display()
        )));
    }
    let lowest = pairs.iter().map(|p| p.score).reduce(f64::min);
    let threshold = settings.pairs_min_score.or(lowest).unwrap_or(0.0);
    let searched = match settings.pairs_min_score {
        Some(_) => context.spell("as given with `min-score`"),
        None => "every pair of the file".to_owned(),
    };
    Ok(Scored {
        method: file.display().to_string(),
        recipe: None,
        pairs,
        threshold,
        searched,
        rarity: None,
        unknown,
        clustering: Clustering::Components,
    })
}
