//! Two pages by every measure, and what a page becomes.

use axum::extract::State;
use axum::response::Response;
use nearsift::compare::Likeness;
use nearsift::feature::FeatureSet;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::Fingerprinter;
use nearsift::text::normalise::normalise;
use nearsift::verify::{MIN_SCORE, Profile, Verified, Verifier};
use nearsift_store::{Kind, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{App, Target, ok};
use crate::body::Body;
use crate::document::{About, Content, Made, Page, Read, read, written_keys};
use crate::problem::{Problem, ProblemDetails};
use crate::scratch::Share;

/// Two pages.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Compare {
    a: Page,
    b: Page,
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
    /// Exact measures of the two texts: score, value, cosine, alignment, jaccard, containment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    verified: Option<Verified>,
    /// What the recipe's features measure: their numbers, jaccard, weighted_jaccard, containment, cosine, euclidean.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    features: Option<Likeness>,
    a: Fingerprinted,
    b: Fingerprinted,
    /// The recipe of the collection.
    recipe: String,
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
}

impl Text {
    fn of(read: &Read, fingerprinter: &mut Fingerprinter<'_>) -> Text {
        let frequencies = DocumentFrequencies::shipped();
        let idf = |hash| u32::from(frequencies.idf_sixteenths(hash));
        let text = &read.text;
        let features = fingerprinter.features(text).clone();
        let key = fingerprinter.page_key(&read.identity);
        // No body is that long, nor becomes so.
        let profile = Profile::of(&normalise(text), idf).unwrap_or_default();
        Text { features, key, profile }
    }
}

/// A page with its share of the memory, which its profile takes until it is compared.
type Looked<'a> = (Made, Option<(Text, Share<'a>)>);

fn look(page: Page, collection: &crate::collections::Collection) -> Result<Looked<'_>, Problem> {
    let (kind, content) = (collection.store.kind(), page.content()?);
    let read = match content {
        Content::Value(_) => return Ok((content.make(collection)?, None)),
        Content::Text(text) => Read::plain(text),
        Content::Html { bytes, charset } => {
            let _memory = collection.scratch().for_page(bytes.len())?;
            read(&bytes, charset.as_deref())
        }
    };
    let memory = collection.scratch().for_text(&read.text)?;
    collection.with_fingerprinter(read.text.len(), |fingerprinter| {
        let made = read.make(kind, fingerprinter);
        (made, Some((Text::of(&read, fingerprinter), memory)))
    })
}

fn judge(
    request: Compare,
    collection: &crate::collections::Collection,
) -> Result<Compared, Problem> {
    let (made_a, text_a) = look(request.a, collection).map_err(|problem| problem.below("/a"))?;
    let (made_b, text_b) = look(request.b, collection).map_err(|problem| problem.below("/b"))?;
    let (text_a, _memory_a) = text_a.unzip();
    let (text_b, _memory_b) = text_b.unzip();
    let texts = text_a.zip(text_b);
    let verified = texts.as_ref().map(|(a, b)| Verifier::new().compare(&a.profile, &b.profile));
    let same_text = texts.as_ref().map(|(a, b)| a.key.is_some() && a.key == b.key);
    let values = made_a.value.ok().zip(made_b.value.ok());
    let (distance, score) = match &values {
        Some((Value::Fingerprint(a), Value::Fingerprint(b))) => (Some(a.distance(b)), None),
        Some((Value::Sketch(a), Value::Sketch(b))) => {
            (Some(a.sketch.distance(&b.sketch)), Some(a.sketch.score(&b.sketch)))
        }
        _ => (None, None),
    };
    let by_text = collection.store.texts().and_then(|least| {
        let (_, verified) = values.as_ref().zip(verified)?;
        Some(verified.score >= least.value())
    });
    let near = match collection.store.kind() {
        _ if by_text.is_some() => by_text,
        Kind::Fingerprints { max_distance, .. } => {
            distance.map(|distance| distance <= max_distance)
        }
        Kind::Sketches { min_score } => match (&values, verified) {
            (Some(_), Some(verified)) => Some(verified.score >= MIN_SCORE),
            _ => score.map(|score| score >= min_score),
        },
    };
    Ok(Compared {
        near_duplicates: if same_text == Some(true) { Some(true) } else { near },
        same_text,
        distance,
        score: score.map(nearsift::sketch::Score::value),
        verified,
        features: texts.map(|(a, b)| Likeness::of(&a.features, &b.features)),
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
    let work = move || judge(body.parse()?, &target.collection);
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
    let work = move || {
        let page: Page = body.parse()?;
        page.content()?.make(&target.collection).map(Fingerprinted::from)
    };
    Ok(ok(&app.documents.run(work).await??))
}
