//! Two pages by every measure, and what a page becomes.

use axum::extract::State;
use axum::response::Response;
use nearsift::compare::{Likeness, Piece, Side, differences};
use nearsift::feature::FeatureSet;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::Fingerprinter;
use nearsift::sketch::Score;
use nearsift::text::normalise::normalise;
use nearsift::verify::{MIN_SCORE, Profile, Verified, Verifier};
use nearsift_store::{Kind, Store, TextScore, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{App, Target, ok};
use crate::body::Body;
use crate::collections::Collection;
use crate::document::{About, Content, Made, Page, Read, read, written_keys};
use crate::pool::Interest;
use crate::problem::{Kind as ProblemKind, Problem, ProblemDetails};
use crate::scratch::Share;

/// Two pages.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Compare {
    a: Page,
    b: Page,
    /// Whether the answer has both texts in pieces, with what differs.
    #[serde(default)]
    differences: bool,
}

/// How alike two pages are.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Compared {
    /// Whether the two are near duplicates: by their texts where both are sent and the collection holds sketches, else
    /// by what the collection was created for. `null` when one has no fingerprint.
    near_duplicates: Option<bool>,
    /// Whether the texts are equal but for case, width, script and punctuation.
    #[serde(skip_serializing_if = "Option::is_none")]
    same_text: Option<bool>,
    /// The Hamming distance, in bits.
    distance: Option<u32>,
    /// The score of the sketches, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// Exact measures of the two texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<TextMeasures>,
    /// The table that says how rare each feature of the texts is.
    #[serde(skip_serializing_if = "Option::is_none")]
    rarity: Option<String>,
    /// What the recipe's features measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<FeatureMeasures>,
    a: Fingerprinted,
    b: Fingerprinted,
    /// The recipe of the collection.
    recipe: String,
    /// The score of near duplicates, or more, where a score decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_score: Option<f64>,
    /// The Hamming distance of near duplicates, or less, where it decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_distance: Option<u32>,
    /// Both texts in pieces, where that was asked and texts were sent: at most 100,000 characters of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    differences: Option<Vec<MarkedPiece>>,
    /// Whether the pieces end before the texts do.
    #[serde(skip_serializing_if = "Option::is_none")]
    differences_truncated: Option<bool>,
}

/// A piece of one of two texts, or of both.
#[derive(Debug, Serialize, ToSchema)]
struct MarkedPiece {
    /// `both`, `a` or `b`.
    side: &'static str,
    text: String,
    /// Present where the difference counts as none: letter case, width, script, white space, punctuation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_equal: bool,
    /// Present where the other text has the passage elsewhere: its number, the same on both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<u32>,
}

impl From<Piece<'_>> for MarkedPiece {
    fn from(piece: Piece<'_>) -> MarkedPiece {
        let side = match piece.side {
            Side::Both => "both",
            Side::OnlyA => "a",
            Side::OnlyB => "b",
        };
        let is_equal = piece.side != Side::Both && piece.is_equal;
        MarkedPiece { side, text: piece.text.to_owned(), is_equal, moved: piece.moved }
    }
}

/// What a page's fingerprint or sketch is made of.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Features {
    /// The heaviest, at most 200.
    features: Vec<WeighedFeature>,
    /// All distinct features of the part that was looked at.
    distinct: usize,
    /// The beginning of its main text, at most 4,000 characters.
    beginning: String,
    /// The characters of its main text.
    characters: usize,
    /// Whether only the first 100,000 characters were looked at.
    truncated: bool,
}

/// A feature of a text.
#[derive(Debug, Serialize, ToSchema)]
struct WeighedFeature {
    feature: String,
    /// How often it occurs.
    count: u32,
    /// How rare it is in the recipe's table.
    #[serde(skip_serializing_if = "Option::is_none")]
    rarity: Option<f64>,
    weight: u64,
}

/// Exact measures of two texts, each from 0 to 1.
#[derive(Debug, Serialize, ToSchema)]
struct TextMeasures {
    /// The value on one scale for all scripts.
    score: f64,
    /// The quadratic mean of `cosine` and `alignment`.
    value: f64,
    /// The cosine of the angle between the weighted features.
    cosine: f64,
    /// 2 x (the length of the longest common subsequence) / (both lengths), in letters and digits.
    alignment: f64,
    /// The sum of the smaller weights / the sum of the larger weights.
    jaccard: f64,
    /// 1 when one text contains the other.
    containment: f64,
    /// The different numbers that both texts have in the same place. Absent where none differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    agree: Option<u32>,
    /// The pairs of different numbers that stand in the same place; three or more lower the score. Absent where none
    /// differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    differ: Option<u32>,
}

impl From<Verified> for TextMeasures {
    fn from(verified: Verified) -> TextMeasures {
        let Verified { score, value, cosine, alignment, jaccard, containment, facts, .. } =
            verified;
        let facts = Some(facts).filter(|facts| facts.differ > 0);
        let (agree, differ) = (facts.map(|facts| facts.agree), facts.map(|facts| facts.differ));
        TextMeasures { score, value, cosine, alignment, jaccard, containment, agree, differ }
    }
}

/// What two sets of features measure.
#[derive(Debug, Serialize, ToSchema)]
struct FeatureMeasures {
    /// The features of the first page.
    features_a: usize,
    /// The features of the second page.
    features_b: usize,
    /// The features of both.
    shared: usize,
    /// Shared features / features of either, from 0 to 1.
    jaccard: f64,
    /// The sum of the smaller weights / the sum of the larger weights, from 0 to 1.
    weighted_jaccard: f64,
    /// Shared features / features of the smaller set, from 0 to 1.
    containment: f64,
    /// The cosine of the angle between the weight vectors, from 0 to 1.
    cosine: f64,
    /// The Euclidean distance between the weight vectors, in units of a weight.
    euclidean: f64,
}

impl From<Likeness> for FeatureMeasures {
    fn from(likeness: Likeness) -> FeatureMeasures {
        let Likeness { features_a, features_b, shared, jaccard, .. } = likeness;
        let Likeness { weighted_jaccard, containment, cosine, euclidean, .. } = likeness;
        FeatureMeasures {
            features_a,
            features_b,
            shared,
            jaccard,
            weighted_jaccard,
            containment,
            cosine,
            euclidean,
        }
    }
}

/// What a page becomes by the recipe of a collection.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Fingerprinted {
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sketch: Option<String>,
    /// The candidate keys of the sketch.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<String>,
    /// Why it has neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What was seen of its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<About>,
}

impl From<Made> for Fingerprinted {
    fn from(made: Made) -> Fingerprinted {
        let mut told = Fingerprinted {
            fingerprint: None,
            sketch: None,
            keys: None,
            reason: None,
            text: made.text,
        };
        match made.value {
            Ok(Value::Fingerprint(fingerprint)) => told.fingerprint = Some(fingerprint.to_string()),
            Ok(Value::Sketch(sketched)) => {
                told.sketch = Some(sketched.sketch.to_string());
                told.keys = Some(written_keys(&sketched.keys));
            }
            Err(reason) => told.reason = Some(reason.to_string()),
        }
        told
    }
}

/// What is compared of a text.
struct Text {
    features: FeatureSet,
    profile: Profile,
    key: Option<u128>,
    /// The text itself, where its differences are wanted.
    text: Option<String>,
}

impl Text {
    fn of(read: &Read, fingerprinter: &mut Fingerprinter<'_>, is_kept: Kept) -> Text {
        let frequencies = DocumentFrequencies::shipped();
        let idf = |hash| u32::from(frequencies.idf_sixteenths(hash));
        let text = &read.text;
        let features = fingerprinter.features(text).clone();
        let key = fingerprinter.page_key(&read.identity);
        // No body is that long, nor becomes so.
        let profile = Profile::of(&normalise(text), idf).unwrap_or_default();
        let text = (is_kept == Kept::WithText).then(|| text.clone());
        Text { features, key, profile, text }
    }
}

/// What is kept of a text until it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    WithText,
    MeasuresOnly,
}

/// A page with its share of the memory, which its profile takes until it is compared.
type Looked<'a> = (Made, Option<(Text, Share<'a>)>);

fn look<'a>(
    page: Page,
    collection: &'a Collection,
    kept: Kept,
    interest: Interest<'_>,
) -> Result<Looked<'a>, Problem> {
    let (kind, content) = (collection.store.kind(), page.content()?);
    let read = match content {
        Content::Value(_) => return Ok((content.make(collection, interest)?, None)),
        Content::Text(text) => Read::plain(text),
        Content::Html { bytes, charset } => {
            let _memory = collection.scratch().for_page(bytes.len())?;
            read(&bytes, charset.as_deref())
        }
    };
    let memory = collection.scratch().for_text(&read.text)?;
    interest.check()?;
    collection.with_fingerprinter(read.text.len(), |fingerprinter| {
        let made = read.make(kind, fingerprinter);
        interest.check()?;
        Ok((made, Some((Text::of(&read, fingerprinter, kept), memory))))
    })?
}

/// The measures that decide whether two pages are near.
struct Measures {
    /// Whether both pages have a fingerprint or a sketch.
    has_values: bool,
    /// The Hamming distance of the fingerprints or sketches, in bits.
    distance: Option<u32>,
    /// The score of the sketches.
    score: Option<Score>,
    /// The measures of the texts, where both are sent.
    verified: Option<Verified>,
}

impl Measures {
    fn of(values: Option<(Value, Value)>, verified: Option<Verified>) -> Measures {
        let (distance, score) = match &values {
            Some((Value::Fingerprint(a), Value::Fingerprint(b))) => (Some(a.distance(b)), None),
            Some((Value::Sketch(a), Value::Sketch(b))) => {
                (Some(a.sketch.distance(&b.sketch)), Some(a.sketch.score(&b.sketch)))
            }
            _ => (None, None),
        };
        Measures { has_values: values.is_some(), distance, score, verified }
    }

    /// Whether the texts are near, in a collection that keeps texts.
    fn near_by_text(&self, store: &Store) -> Option<bool> {
        let least = store.texts()?;
        let verified = self.verified.as_ref().filter(|_| self.has_values)?;
        Some(verified.score >= least.value())
    }

    /// Whether the pages are near, by what the collection compares.
    fn near(&self, store: &Store) -> Option<bool> {
        let by_text = self.near_by_text(store);
        match store.kind() {
            _ if by_text.is_some() => by_text,
            Kind::Fingerprints { max_distance, .. } => {
                self.distance.map(|distance| distance <= max_distance)
            }
            Kind::Sketches { min_score } => match &self.verified {
                Some(verified) if self.has_values => Some(verified.score >= MIN_SCORE),
                _ => self.score.map(|score| score >= min_score),
            },
        }
    }

    /// The least score, or the largest distance, by which [`Measures::near`] decides.
    fn bounds(&self, store: &Store) -> (Option<f64>, Option<u32>) {
        let is_by_text = self.near_by_text(store).is_some();
        match store.kind() {
            Kind::Fingerprints { max_distance, .. } if !is_by_text => (None, Some(max_distance)),
            Kind::Sketches { min_score } if !is_by_text && self.verified.is_none() => {
                (Some(min_score.value()), None)
            }
            _ => (Some(store.texts().map_or(MIN_SCORE, TextScore::value)), None),
        }
    }
}

/// Compares two pages by every measure.
fn judge(
    request: Compare,
    collection: &Collection,
    interest: Interest<'_>,
) -> Result<Compared, Problem> {
    let kept = if request.differences { Kept::WithText } else { Kept::MeasuresOnly };
    let (made_a, text_a) =
        look(request.a, collection, kept, interest).map_err(|problem| problem.below("/a"))?;
    let (made_b, text_b) =
        look(request.b, collection, kept, interest).map_err(|problem| problem.below("/b"))?;
    interest.check()?;
    let (text_a, _memory_a) = text_a.unzip();
    let (text_b, _memory_b) = text_b.unzip();
    let texts = text_a.zip(text_b);
    let verified = texts.as_ref().map(|(a, b)| Verifier::new().compare(&a.profile, &b.profile));
    let same_text = texts.as_ref().map(|(a, b)| a.key.is_some() && a.key == b.key);
    let marked = texts.as_ref().and_then(|(a, b)| {
        let (a, b) = a.text.as_deref().zip(b.text.as_deref())?;
        let found = differences(a, b);
        Some((found.pieces.into_iter().map(MarkedPiece::from).collect(), found.truncated))
    });
    let (differences, differences_truncated) = marked.unzip();
    let measures = Measures::of(made_a.value.ok().zip(made_b.value.ok()), verified);
    let (min_score, max_distance) = measures.bounds(&collection.store);
    Ok(Compared {
        min_score,
        max_distance,
        differences,
        differences_truncated,
        near_duplicates: match same_text {
            Some(true) => Some(true),
            _ => measures.near(&collection.store),
        },
        same_text,
        distance: measures.distance,
        score: measures.score.map(Score::value),
        verified: verified.map(TextMeasures::from),
        rarity: verified.map(|_| DocumentFrequencies::shipped().name()),
        features: texts.map(|(a, b)| Likeness::of(&a.features, &b.features).into()),
        a: made_a.into(),
        b: made_b.into(),
        recipe: collection.store.recipe().written.clone(),
    })
}

/// How alike two pages are, by every measure. Nothing is stored.
#[utoipa::path(post, path = "/v1/compare", operation_id = "compare", tag = "documents", request_body = Compare,
    responses((status = 200, body = Compared), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn compare(
    State(app): State<App>,
    target: Target,
    body: Body,
) -> Result<Response, Problem> {
    let work = move |interest: Interest<'_>| judge(body.parse()?, &target.collection, interest);
    Ok(ok(&app.documents.run(work).await??))
}

/// The fingerprint or sketch of a page, by the recipe of the collection. Nothing is stored.
#[utoipa::path(post, path = "/v1/fingerprint", operation_id = "fingerprint", tag = "documents", request_body = Page,
    responses((status = 200, body = Fingerprinted), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn fingerprint(
    State(app): State<App>,
    target: Target,
    body: Body,
) -> Result<Response, Problem> {
    let work = move |interest: Interest<'_>| {
        let page: Page = body.parse()?;
        page.content()?.make(&target.collection, interest).map(Fingerprinted::from)
    };
    Ok(ok(&app.documents.run(work).await??))
}

/// The features of a page by weight, by the recipe of the collection: what its fingerprint or sketch is made of. Nothing is stored.
#[utoipa::path(post, path = "/v1/features", operation_id = "features", tag = "documents", request_body = Page,
    responses((status = 200, body = Features), (status = "default", body = ProblemDetails, content_type = "application/problem+json")))]
pub(super) async fn features(
    State(app): State<App>,
    target: Target,
    body: Body,
) -> Result<Response, Problem> {
    let work = move |interest: Interest<'_>| explain(body.parse()?, &target.collection, interest);
    Ok(ok(&app.documents.run(work).await??))
}

fn explain(
    page: Page,
    collection: &Collection,
    interest: Interest<'_>,
) -> Result<Features, Problem> {
    /// Characters that are looked at, and shown.
    const LOOKED_AT: usize = 100_000;
    const SHOWN: usize = 4_000;
    /// Features that are answered.
    const MOST: usize = 200;
    let read = match page.content()? {
        Content::Value(_) => {
            return Err(Problem::new(
                ProblemKind::InvalidField,
                "A fingerprint or sketch has no features any more.",
            )
            .expecting("\"text\" or \"html_base64\""));
        }
        Content::Text(text) => Read::plain(text),
        Content::Html { bytes, charset } => {
            let _memory = collection.scratch().for_page(bytes.len())?;
            read(&bytes, charset.as_deref())
        }
    };
    let _memory = collection.scratch().for_text(&read.text)?;
    interest.check()?;
    let text: &str = &read.text;
    let end =
        |characters: usize| text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    let part = &text[..end(LOOKED_AT)];
    collection.with_fingerprinter(part.len(), |fingerprinter| {
        let mut explained = fingerprinter.explain(part);
        let distinct = explained.len();
        explained.truncate(MOST);
        let features = explained.into_iter().map(|own| WeighedFeature {
            feature: own.token,
            count: own.count,
            rarity: own.rarity,
            weight: own.weight,
        });
        Ok(Features {
            features: features.collect(),
            distinct,
            beginning: text[..end(SHOWN)].to_owned(),
            characters: text.chars().count(),
            truncated: part.len() < text.len(),
        })
    })?
}
