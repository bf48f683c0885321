//! `nearsift compare`: two documents by every measure, with their differences marked.

use std::path::Path;

use nearsift::compare::{Likeness, Side, differences, score_of_distance};
use nearsift::feature::FeatureSet;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::fingerprint::Fingerprint;
use nearsift::recipe::{Fingerprinter, Outcome};
use nearsift::sketch::{BITS, Sketch, VALUES};
use nearsift::text::normalise::normalise;
use nearsift::verify::{Facts, Profile, Verified, Verifier};
use serde::Serialize;

use super::fingerprint::Value;
use crate::Status;
use crate::args::{Compare, Global};
use crate::documents::{Text, read_one};
use crate::failure::Failure;
use crate::near::{Rule, Way, way};
use crate::output::{ADDED, Out, REMOVED, escaped, escaped_text};

#[derive(Serialize)]
struct Comparison {
    recipe: String,
    a: Document,
    b: Document,
    #[serde(flatten)]
    judged: Judged,
    /// What the texts measure, weighed by the shipped document frequencies.
    verified: Verified,
    /// What the recipe's features measure.
    #[serde(flatten)]
    likeness: Likeness,
    same_text: bool,
    near_duplicates: bool,
    differences: Vec<Marked>,
    differences_truncated: bool,
}

#[derive(Serialize)]
struct Document {
    file: String,
    #[serde(flatten)]
    value: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    characters: u32,
}

/// What two fingerprints or sketches say; null when a document has none.
#[derive(Serialize)]
struct Judged {
    /// Bits that differ, and their share.
    distance: Option<u32>,
    ratio: Option<f64>,
    #[serde(flatten)]
    sketches: Option<Sketches>,
    /// What decides.
    score: Option<f64>,
    #[serde(flatten)]
    wanted: Wanted,
    #[serde(skip)]
    is_near: bool,
}

#[derive(Serialize)]
struct Sketches {
    equal_values: Option<u32>,
    sketch_score: Option<f64>,
}

/// What near duplicates have at most or at least.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    MaxDistance(u32),
    MinScore(f64),
}

#[derive(Serialize)]
struct Marked {
    side: &'static str,
    text: String,
}

pub fn run(args: &Compare, global: &Global) -> Result<Status, Failure> {
    if [&args.a, &args.b].iter().all(|path| path.as_os_str() == "-") {
        return Err(Failure::new(
            "-: expected one document on standard input, got both; name a file for one of them",
        ));
    }
    let way = way(&args.recipe, &args.matching, args.verify)?;
    let (Way::Simhash { recipe, .. } | Way::Sketch { recipe, .. }) = &way;
    let mut fingerprinter = recipe.fingerprinter()?;
    let read = |path| read_one(path, args.format, args.charset.as_deref());
    let (one_a, one_b) = (read(&args.a)?, read(&args.b)?);
    let a = Looked::at(&args.a, &one_a, &way, &mut fingerprinter)?;
    let b = Looked::at(&args.b, &one_b, &way, &mut fingerprinter)?;
    let verified = Verifier::new().compare(&a.profile, &b.profile);
    let judged = judge(&way, a.made.zip(b.made), &verified);
    let same_text = a.text_key.is_some() && a.text_key == b.text_key;
    let marked = differences(&one_a.text, &one_b.text);
    let comparison = Comparison {
        recipe: recipe.to_string(),
        verified,
        likeness: Likeness::of(&a.features, &b.features),
        a: a.document,
        b: b.document,
        same_text,
        near_duplicates: same_text || judged.is_near,
        judged,
        differences: marked
            .pieces
            .iter()
            .map(|piece| Marked {
                side: match piece.side {
                    Side::Both => "both",
                    Side::OnlyA => "a",
                    Side::OnlyB => "b",
                },
                text: piece.text.to_owned(),
            })
            .collect(),
        differences_truncated: marked.truncated,
    };
    let mut out = Out::new();
    if global.json {
        out.json(&comparison)?;
    } else {
        print(&mut out, &comparison)?;
    }
    out.finish()?;
    Ok(if comparison.near_duplicates { Status::Done } else { Status::Nothing })
}

#[derive(Clone, Copy)]
enum Made {
    Fingerprint(Fingerprint),
    Sketch(Sketch),
}

/// All that is compared of one document.
struct Looked {
    document: Document,
    made: Option<Made>,
    text_key: Option<u128>,
    features: FeatureSet,
    profile: Profile,
}

impl Looked {
    /// # Errors
    /// A text of 4 GiB or more.
    fn at(
        path: &Path,
        one: &Text<'_>,
        way: &Way,
        fingerprinter: &mut Fingerprinter<'_>,
    ) -> Result<Looked, Failure> {
        let made = match way {
            Way::Simhash { .. } => match one.fingerprint(fingerprinter) {
                Outcome::Fingerprint(fingerprint) => Ok(Made::Fingerprint(fingerprint)),
                Outcome::None(reason) => Err(reason),
            },
            Way::Sketch { .. } => one.sketch(fingerprinter).map(|s| Made::Sketch(s.sketch)),
        };
        let (text_key, characters) = (one.key(fingerprinter), fingerprinter.length());
        let value = match (&made, way) {
            (Ok(Made::Fingerprint(fingerprint)), _) => {
                Value::Fingerprint(Some(fingerprint.to_string()))
            }
            (Ok(Made::Sketch(sketch)), _) => Value::Sketch(Some(sketch.to_string())),
            (Err(_), Way::Simhash { .. }) => Value::Fingerprint(None),
            (Err(_), Way::Sketch { .. }) => Value::Sketch(None),
        };
        let frequencies = DocumentFrequencies::shipped();
        let idf = |hash| u32::from(frequencies.idf_sixteenths(hash));
        let too_long = |e| Failure::new(format!("{}: {e}", path.display()));
        let profile = Profile::of(&normalise(&one.text), idf).map_err(too_long)?;
        Ok(Looked {
            document: Document {
                file: path.display().to_string(),
                value,
                reason: made.err().map(|reason| reason.to_string()),
                characters,
            },
            made: made.ok(),
            text_key,
            features: fingerprinter.features(&one.text).clone(),
            profile,
        })
    }
}

/// What is said of two documents that both have a fingerprint or a sketch, or not.
fn judge(way: &Way, both: Option<(Made, Made)>, verified: &Verified) -> Judged {
    match way {
        Way::Simhash { recipe, max_distance } => {
            let bits = recipe.bits().count();
            let distance = match both {
                Some((Made::Fingerprint(a), Made::Fingerprint(b))) => Some(a.distance(&b)),
                _ => None,
            };
            Judged {
                distance,
                ratio: distance.map(|d| f64::from(d) / f64::from(bits)),
                sketches: None,
                score: distance.map(|d| score_of_distance(d, bits)),
                wanted: Wanted::MaxDistance(*max_distance),
                is_near: distance.is_some_and(|d| d <= *max_distance),
            }
        }
        Way::Sketch { rule, .. } => {
            let both = match both {
                Some((Made::Sketch(a), Made::Sketch(b))) => Some((a, b)),
                _ => None,
            };
            let sketch_score = both.map(|(a, b)| a.score(&b).value());
            let score = match rule {
                // Without a sketch, only the same text counts.
                Rule::Verified(_) => both.map(|_| verified.score),
                Rule::Scored(_) => sketch_score,
            };
            Judged {
                distance: both.map(|(a, b)| a.distance(&b)),
                ratio: both.map(|(a, b)| f64::from(a.distance(&b)) / f64::from(BITS)),
                sketches: Some(Sketches {
                    equal_values: both.map(|(a, b)| a.equal_values(&b)),
                    sketch_score,
                }),
                score,
                wanted: Wanted::MinScore(rule.min_score()),
                is_near: score.is_some_and(|score| score >= rule.min_score()),
            }
        }
    }
}

fn print(out: &mut Out, c: &Comparison) -> Result<(), Failure> {
    let shown = |document: &Document| {
        let (hex, name) = match &document.value {
            Value::Fingerprint(hex) => (hex, "fingerprint"),
            Value::Sketch(hex) => (hex, "sketch"),
        };
        hex.clone().unwrap_or_else(|| {
            format!("no {name} ({})", document.reason.as_deref().unwrap_or("unknown"))
        })
    };
    for (name, document) in [("A", &c.a), ("B", &c.b)] {
        out.line(&format!("{name}  {}  {}", shown(document), escaped(&document.file)))?;
    }
    out.line(&format!("recipe              {}", c.recipe))?;
    let j = &c.judged;
    let (most, least) = match j.wanted {
        Wanted::MaxDistance(most) => (format!(" (near: at most {most})"), String::new()),
        Wanted::MinScore(least) => (String::new(), format!(" (near: at least {least})")),
    };
    if let (Some(distance), Some(ratio), Some(score)) = (j.distance, j.ratio, j.score) {
        out.line(&format!("Hamming distance    {distance}{most}"))?;
        out.line(&format!("distance / bits     {ratio:.4}"))?;
        if let Some(Sketches { equal_values: Some(equal), sketch_score: Some(score) }) = j.sketches
        {
            out.line(&format!("equal values        {equal} of {VALUES}"))?;
            out.line(&format!("score of sketches   {score:.4}"))?;
        }
        out.line(&format!("score               {score:.4}{least}"))?;
    }
    let v = &c.verified;
    out.line(&format!(
        "verified            {:.4} (cosine {:.4}, alignment {:.4}, Jaccard {:.4}, containment {:.4})",
        v.score, v.cosine, v.alignment, v.jaccard, v.containment
    ))?;
    let Facts { agree, differ, .. } = v.facts;
    if differ > 0 {
        out.line(&format!(
            "numbers             {agree} agree, {differ} differ at the same places"
        ))?;
    }
    let l = &c.likeness;
    out.line(&format!(
        "features            {} and {}, {} shared",
        l.features_a, l.features_b, l.shared
    ))?;
    out.line(&format!("cosine              {:.4}", l.cosine))?;
    out.line(&format!("Euclidean distance  {:.2}", l.euclidean))?;
    out.line(&format!(
        "Jaccard             {:.4} (weighted {:.4})",
        l.jaccard, l.weighted_jaccard
    ))?;
    out.line(&format!("containment         {:.4}", l.containment))?;
    let verdict = match (c.near_duplicates, c.same_text) {
        (true, true) => "the same text but for case, width, script or punctuation",
        (true, false) => "near duplicates",
        (false, _) => "not near duplicates",
    };
    out.line(&format!("verdict             {verdict}"))?;
    out.line("")?;
    let mut text = String::new();
    for piece in &c.differences {
        let piece_text = escaped_text(&piece.text);
        match piece.side {
            "a" => text.push_str(&out.styled(REMOVED, &format!("[-{piece_text}-]"))),
            "b" => text.push_str(&out.styled(ADDED, &format!("{{+{piece_text}+}}"))),
            _ => text.push_str(&piece_text),
        }
    }
    out.line(&text)?;
    if c.differences_truncated {
        out.line("(the texts are longer than what is compared here: the rest is not shown)")?;
    }
    Ok(())
}
