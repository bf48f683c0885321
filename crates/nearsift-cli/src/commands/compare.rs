//! `nearsift compare`: two documents by every measure, with their differences marked.

use std::path::PathBuf;

use nearsift::compare::{Likeness, Side, differences};
use nearsift::feature::FeatureSet;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::{Fingerprinter, Outcome};
use nearsift::search::{ComparedDocument, Decision, MethodValue, TextMeasures};
use nearsift::sketch::{BITS, VALUES};
use nearsift::text::normalise::normalise;
use nearsift::verify::{Facts, Profile, Verifier};
use serde::Serialize;

use crate::args::{Compare, Global, Reading};
use crate::failure::Failure;
use crate::output::{ADDED, Out, REMOVED, escaped, escaped_text};
use crate::resolve::{method, read_one, read_options};
use crate::{Status, terminal};
use nearsift_batch::dedup::RunOfSketches;
use nearsift_batch::fingerprint::Value;
use nearsift_batch::{FoundDocument, Method, Text};

/// Two documents by every measure.
#[derive(Serialize)]
pub(super) struct Comparison {
    recipe: String,
    a: Document,
    b: Document,
    #[serde(flatten)]
    judged: Judged,
    /// The table that says how rare each feature is: `shipped`, or `file:` and the digest of a run's.
    rarity: String,
    /// What the texts measure.
    verified: Verification,
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

/// What two texts measure, in the precision of `pairs.jsonl`.
#[derive(Serialize)]
struct Verification {
    score: f32,
    #[serde(flatten)]
    texts: TextMeasures,
}

impl Verification {
    fn of(texts: TextMeasures) -> Verification {
        Verification { score: texts.score, texts }
    }
}

#[derive(Serialize)]
struct Marked {
    side: &'static str,
    text: String,
}

pub fn run(args: &Compare, global: &Global) -> Result<Status, Failure> {
    let like = args.like.as_deref().map(RunOfSketches::open).transpose()?;
    let method = chosen(args, like.as_ref())?;
    let names = [&args.a, &args.b].map(|path| path.display().to_string());
    let texts = match args.documents.is_empty() {
        true => files(args)?,
        false => documents(&names, &args.documents, &args.reading, global)?,
    };
    let pair = PairOfTexts { names, texts };
    let comparison = pair.compare(&method, like.as_ref())?;
    let mut out = Out::new();
    if global.json {
        out.json(&comparison)?;
    } else {
        print(&mut out, &comparison, args.verbose)?;
    }
    out.finish()?;
    Ok(if comparison.near_duplicates { Status::Done } else { Status::Nothing })
}

/// The documents of two files.
fn files(args: &Compare) -> Result<[Text<'static>; 2], Failure> {
    if [&args.a, &args.b].iter().all(|path| path.as_os_str() == "-") {
        return Err(Failure::new(
            "-: expected one document on standard input, got both; name a file for one of them",
        ));
    }
    let Reading { format, charset, .. } = &args.reading;
    let read = |path| read_one(path, *format, charset.as_deref());
    Ok([read(&args.a)?, read(&args.b)?])
}

/// The documents of two ids.
fn documents(
    ids: &[String; 2],
    inputs: &[PathBuf],
    reading: &Reading,
    global: &Global,
) -> Result<[Text<'static>; 2], Failure> {
    let inputs = nearsift_batch::open(inputs, read_options(reading, Vec::new()))?;
    let wanted = [ids[0].as_str(), ids[1].as_str()];
    let context = terminal::context(global, None);
    let mut found = nearsift_batch::find_documents(&inputs, &wanted, &context)?.into_iter();
    let one = |id: &str, found: Option<Vec<FoundDocument>>| {
        let mut found = found.unwrap_or_default();
        match (found.pop(), found.as_slice()) {
            (Some(only), []) => Ok(only.text),
            (None, _) => Err(Failure::new(format!(
                "{id}: no document of the input has this id; ids are those of the field --id-field, else FILE:LINE"
            ))),
            (Some(last), others) => {
                let records = others.iter().chain([&last]).map(|of| (of.record + 1).to_string());
                let records = records.collect::<Vec<_>>().join(", ");
                Err(Failure::new(format!(
                    "{id}: expected one document of this id, found the records {records}"
                )))
            }
        }
    };
    Ok([one(wanted[0], found.next())?, one(wanted[1], found.next())?])
}

/// Two documents to compare.
pub(super) struct PairOfTexts {
    /// What they are called: files or ids.
    pub names: [String; 2],
    pub texts: [Text<'static>; 2],
}

impl PairOfTexts {
    /// All measures, and the differences; with the rarities of a run where one is given.
    ///
    /// # Errors
    /// A text of 4 GiB or more.
    pub(super) fn compare(
        &self,
        method: &Method,
        like: Option<&RunOfSketches>,
    ) -> Result<Comparison, Failure> {
        let shipped = DocumentFrequencies::shipped();
        let (frequencies, rarity) = match like {
            Some(run) => (&run.frequencies, format!("file:{:016x}", run.frequencies.digest())),
            None => (shipped, shipped.name()),
        };
        let recipe = method.recipe();
        let mut fingerprinter = recipe.fingerprinter()?;
        let [one_a, one_b] = &self.texts;
        let a = Looked::at(&self.names[0], one_a, method, frequencies, &mut fingerprinter)?;
        let b = Looked::at(&self.names[1], one_b, method, frequencies, &mut fingerprinter)?;
        let decision = Decision::of(method, &a.compared, &b.compared, &mut Verifier::new());
        let marked = differences(&one_a.text, &one_b.text);
        Ok(Comparison {
            recipe: recipe.to_string(),
            rarity,
            verified: Verification::of(decision.texts),
            likeness: Likeness::of(&a.features, &b.features),
            a: a.document,
            b: b.document,
            same_text: decision.is_same_text,
            near_duplicates: decision.is_near,
            judged: Judged::of(method, &decision),
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
        })
    }
}

/// All that is compared of one document.
struct Looked {
    document: Document,
    compared: ComparedDocument,
    features: FeatureSet,
}

impl Looked {
    /// # Errors
    /// A text of 4 GiB or more.
    fn at(
        name: &str,
        one: &Text<'_>,
        method: &Method,
        frequencies: &DocumentFrequencies,
        fingerprinter: &mut Fingerprinter<'_>,
    ) -> Result<Looked, Failure> {
        let made = match method {
            Method::Simhash { .. } => match one.fingerprint(fingerprinter) {
                Outcome::Fingerprint(fingerprint) => Ok(MethodValue::Fingerprint(fingerprint)),
                Outcome::None(reason) => Err(reason),
            },
            Method::Sketch { .. } => {
                one.sketch(fingerprinter).map(|made| MethodValue::Sketch(made.sketch))
            }
        };
        let (text_key, characters) = (one.key(fingerprinter), fingerprinter.length());
        let value = match (&made, method) {
            (Ok(MethodValue::Fingerprint(fingerprint)), _) => {
                Value::Fingerprint(Some(fingerprint.to_string()))
            }
            (Ok(MethodValue::Sketch(sketch)), _) => Value::Sketch(Some(sketch.to_string())),
            (Err(_), Method::Simhash { .. }) => Value::Fingerprint(None),
            (Err(_), Method::Sketch { .. }) => Value::Sketch(None),
        };
        let idf = |hash| u32::from(frequencies.idf_sixteenths(hash));
        let too_long = |e| Failure::new(format!("{name}: {e}"));
        let profile = Profile::of(&normalise(&one.text), idf).map_err(too_long)?;
        Ok(Looked {
            document: Document {
                file: name.to_owned(),
                value,
                reason: made.err().map(|reason| reason.to_string()),
                characters,
            },
            compared: ComparedDocument { value: made, text_key, profile },
            features: fingerprinter.features(&one.text).clone(),
        })
    }
}

impl Comparison {
    /// Why a run has no pair of the two.
    pub(super) fn no_candidate(&self, min_score: Option<f64>) -> String {
        match (self.judged.score, min_score) {
            (Some(score), Some(least)) if score < least => {
                format!("they score {score:.4}, and near is at least {least}")
            }
            (Some(_), Some(_)) => {
                "their texts are near, and the search did not make them candidates: their sketches share no key, or are too far apart".to_owned()
            }
            _ => "they are too far apart".to_owned(),
        }
    }
}

impl Judged {
    fn of(method: &Method, decision: &Decision) -> Judged {
        let Decision { distance, ratio, equal_values, sketch_score, score, .. } = *decision;
        let (sketches, wanted) = match method {
            Method::Simhash { max_distance, .. } => (None, Wanted::MaxDistance(*max_distance)),
            Method::Sketch { acceptance, .. } => (
                Some(Sketches { equal_values, sketch_score }),
                Wanted::MinScore(acceptance.min_score()),
            ),
        };
        Judged { distance, ratio, sketches, score, wanted }
    }
}

/// The method that was chosen on the command line, else that of the run.
fn chosen(args: &Compare, like: Option<&RunOfSketches>) -> Result<Method, Failure> {
    let Some(run) = like else { return method(&args.recipe, &args.matching, args.verify) };
    let mut recipe = args.recipe.clone();
    recipe.recipe.get_or_insert_with(|| run.recipe.clone());
    let mut matching = args.matching.clone();
    if matching.min_score().is_none() && matching.max_distance.is_none() {
        matching.min_score = Some(run.min_score);
    }
    method(&recipe, &matching, args.verify)
}

/// The verdict first, then what it rests on; with `verbose` also what the recipe makes of both documents.
pub(super) fn print(out: &mut Out, c: &Comparison, verbose: bool) -> Result<(), Failure> {
    let j = &c.judged;
    let why = match (j.distance, j.score, &j.wanted) {
        (Some(distance), _, Wanted::MaxDistance(most)) => {
            format!(": Hamming distance {distance}, near is at most {most}")
        }
        (_, Some(score), Wanted::MinScore(least)) => {
            format!(": score {score:.4}, near is at least {least}")
        }
        _ => String::new(),
    };
    let verdict = match (c.near_duplicates, c.same_text) {
        (true, true) => "the same text but for case, width, script or punctuation".to_owned(),
        (true, false) => format!("near duplicates{why}"),
        (false, _) => format!("not near duplicates{why}"),
    };
    out.line(&format!("verdict             {verdict}"))?;
    for (name, document) in [("A", &c.a), ("B", &c.b)] {
        let without = match (&document.reason, &document.value) {
            (None, _) => String::new(),
            (Some(reason), Value::Fingerprint(_)) => format!(" (no fingerprint: {reason})"),
            (Some(reason), Value::Sketch(_)) => format!(" (no sketch: {reason})"),
        };
        out.line(&format!("{name}                   {}{without}", escaped(&document.file)))?;
    }
    let v = &c.verified.texts;
    out.line(&format!(
        "texts               {:.4} (cosine {:.4}, alignment {:.4}, Jaccard {:.4}, containment {:.4}; rarity {})",
        v.score, v.cosine, v.alignment, v.jaccard, v.containment, c.rarity
    ))?;
    let Facts { agree, differ, .. } = v.facts;
    if differ > 0 {
        out.line(&format!(
            "numbers             {agree} agree, {differ} differ at the same places"
        ))?;
    }
    match (&j.sketches, j.distance, j.ratio) {
        (Some(Sketches { equal_values: Some(equal), sketch_score: Some(score) }), Some(d), _) => {
            out.line(&format!(
                "sketches            {score:.4} (Hamming distance {d} of {BITS}, {equal} of {VALUES} values equal)"
            ))?;
        }
        (None, Some(distance), Some(ratio)) => out.line(&format!(
            "fingerprints        {:.4} (Hamming distance {distance}, {ratio:.4} of the bits)",
            j.score.unwrap_or_default()
        ))?,
        _ => {}
    }
    out.line(&format!("recipe              {}", c.recipe))?;
    if verbose {
        print_features(out, c)?;
    }
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

/// What the recipe makes of both documents, and how alike their features are.
fn print_features(out: &mut Out, c: &Comparison) -> Result<(), Failure> {
    for (name, document) in [("A", &c.a), ("B", &c.b)] {
        let (Value::Fingerprint(hex) | Value::Sketch(hex)) = &document.value;
        out.line(&format!("value of {name}          {}", hex.as_deref().unwrap_or("none")))?;
    }
    let l = &c.likeness;
    out.line(&format!(
        "features            {} and {}, {} shared",
        l.features_a, l.features_b, l.shared
    ))?;
    out.line(&format!(
        "of the features     cosine {:.4}, Euclidean distance {:.2}, Jaccard {:.4} (weighted {:.4}), containment {:.4}",
        l.cosine, l.euclidean, l.jaccard, l.weighted_jaccard, l.containment
    ))
}
