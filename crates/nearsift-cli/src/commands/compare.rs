//! `nearsift compare`: two documents by every measure, with their differences marked.

use nearsift::compare::{Likeness, Side, differences, score_of_distance};
use nearsift::recipe::Outcome;
use serde::Serialize;

use crate::Status;
use crate::args::{Compare, Global};
use crate::documents::{Text, read_one};
use crate::failure::Failure;
use crate::output::{ADDED, Out, REMOVED, escaped, escaped_text};

#[derive(Serialize)]
struct Comparison {
    recipe: String,
    a: Document,
    b: Document,
    /// Bits that differ, and their share; absent when a document has no fingerprint.
    distance: Option<u32>,
    ratio: Option<f64>,
    score: Option<f64>,
    max_distance: u32,
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
    fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    characters: u32,
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
    let recipe = crate::recipes::recipe(&args.recipe, "simhash64")?;
    let max_distance = super::max_distance(&args.matching, &recipe)?;
    let read = |path| read_one(path, args.format, args.charset.as_deref());
    let (one_a, one_b) = (read(&args.a)?, read(&args.b)?);
    let mut fingerprinter = recipe.fingerprinter()?;
    let mut look = |path: &std::path::Path, one: &Text<'_>| {
        let outcome = one.fingerprint(&mut fingerprinter);
        let (key, characters) = (fingerprinter.text_key(), fingerprinter.length());
        let reason = match outcome {
            Outcome::Fingerprint(_) => None,
            Outcome::None(reason) => Some(reason.to_string()),
        };
        let fingerprint = outcome.fingerprint().map(|f| f.to_string());
        let document =
            Document { file: path.display().to_string(), fingerprint, reason, characters };
        (document, outcome.fingerprint(), key, fingerprinter.features(&one.text).clone())
    };
    let (a, print_a, key_a, features_a) = look(&args.a, &one_a);
    let (b, print_b, key_b, features_b) = look(&args.b, &one_b);
    let distance = print_a.zip(print_b).map(|(x, y)| x.distance(&y));
    let bits = recipe.bits().count();
    let same_text = key_a.is_some() && key_a == key_b;
    let marked = differences(&one_a.text, &one_b.text);
    let comparison = Comparison {
        recipe: recipe.to_string(),
        a,
        b,
        distance,
        ratio: distance.map(|d| f64::from(d) / f64::from(bits)),
        score: distance.map(|d| score_of_distance(d, bits)),
        max_distance,
        likeness: Likeness::of(&features_a, &features_b),
        same_text,
        near_duplicates: same_text || distance.is_some_and(|d| d <= max_distance),
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

fn print(out: &mut Out, c: &Comparison) -> Result<(), Failure> {
    let shown = |document: &Document| match (&document.fingerprint, &document.reason) {
        (Some(hex), _) => hex.clone(),
        (None, reason) => format!("no fingerprint ({})", reason.as_deref().unwrap_or("unknown")),
    };
    for (name, document) in [("A", &c.a), ("B", &c.b)] {
        out.line(&format!("{name}  {}  {}", shown(document), escaped(&document.file)))?;
    }
    out.line(&format!("recipe              {}", c.recipe))?;
    if let (Some(distance), Some(ratio), Some(score)) = (c.distance, c.ratio, c.score) {
        out.line(&format!("Hamming distance    {distance} (near: at most {})", c.max_distance))?;
        out.line(&format!("distance / bits     {ratio:.4}"))?;
        out.line(&format!("score               {score:.4}"))?;
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
