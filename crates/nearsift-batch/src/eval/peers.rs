//! What exact similarities of all pairs reach, each at its best threshold.

use nearsift::evaluate::exact::{Features, Shingle};
use nearsift::evaluate::{Truth, main_class};
use nearsift::join::Threads;
use nearsift::text::script::Class;

use super::documents::Documents;
use super::figures::{Row, row, row_at};
use super::pairs::Scored;
use crate::error::Error;
use nearsift::dedup::Clustering;

/// Below this no similarity of any use lies.
const FLOOR: f64 = 0.1;

/// Jaccard and IDF cosine of long and of short shingles: of characters, or of words where most of the
/// text has spaces.
///
/// # Errors
/// A set that is too large to compare exactly.
pub fn rows(truth: &Truth, documents: &Documents, rule: Clustering) -> Result<Vec<Row>, Error> {
    let texts: Vec<&str> = documents.texts.iter().map(|t| t.text.as_ref()).collect();
    let unspaced = texts.iter().filter(|t| main_class(t) == Some(Class::Unspaced)).count();
    let shingles = if 2 * unspaced >= texts.len() {
        [(Shingle::Characters(5), "characters 5"), (Shingle::Characters(3), "characters 3")]
    } else {
        [(Shingle::Words(5), "words 5"), (Shingle::Words(2), "words 2")]
    };
    let mut rows = Vec::new();
    for (shingle, name) in shingles {
        let features = Features::of_texts(&texts, shingle, Threads::Current);
        let jaccard = features.jaccard(FLOOR, Threads::Current).map_err(Error::invalid)?;
        rows.push(best(truth, format!("exact Jaccard, {name}"), jaccard, rule)?);
        let cosine = features.cosine(FLOOR, Threads::Current).map_err(Error::invalid)?;
        rows.push(best(truth, format!("exact IDF cosine, {name}"), cosine, rule)?);
    }
    Ok(rows)
}

fn best(
    truth: &Truth,
    method: String,
    pairs: Vec<nearsift::evaluate::ScoredPair>,
    rule: Clustering,
) -> Result<Row, Error> {
    let searched = "its best F1".to_owned();
    let scored = Scored {
        method,
        recipe: None,
        pairs,
        threshold: FLOOR,
        searched,
        rarity: None,
        unknown: 0,
        clustering: Clustering::Components,
    };
    let (_, ranking) = row(truth, &scored, rule, None)?;
    let threshold = ranking.best_f1().map_or(FLOOR, |o| o.threshold);
    Ok(row_at(truth, &scored, &ranking, threshold, rule, None))
}
