//! `nearsift compare`: two documents by every measure, with their differences marked.

use std::io::Write;
use std::path::{Path, PathBuf};

use nearsift::sketch::{BITS, VALUES};
use nearsift::verify::Facts;
use nearsift_batch::compare::{Comparison, PairOfTexts, SketchMeasures, Wanted};
use nearsift_batch::dedup::RunOfSketches;
use nearsift_batch::fingerprint::Value;
use nearsift_batch::{FoundDocument, Method, Text};
use tempfile::NamedTempFile;

use crate::args::{self, Compare, Global, Reading};
use crate::failure::Failure;
use crate::output::{ADDED, MOVED, Out, REMOVED, escaped, escaped_text};
use crate::resolve::{method, read_one, read_options};
use crate::{Status, language, terminal};

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
    if let Some(path) = &args.html {
        write_page(path, &comparison, args.language)?;
    }
    let mut out = Out::new();
    if global.json {
        out.json(&comparison)?;
    } else {
        print(&mut out, &comparison, args.verbose)?;
    }
    out.finish()?;
    Ok(if comparison.near_duplicates { Status::Done } else { Status::Nothing })
}

/// Writes the comparison as a page.
fn write_page(
    path: &Path,
    comparison: &Comparison,
    language: Option<args::PageLanguage>,
) -> Result<(), Failure> {
    let page = comparison.page(language::given(language)).map_err(Failure::new)?;
    let failed =
        |e: &dyn std::fmt::Display| Failure::new(format!("{}: cannot write: {e}", path.display()));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // The file has its name only when it is whole.
    let mut file =
        NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(|e| failed(&e))?;
    file.write_all(page.as_bytes()).map_err(|e| failed(&e))?;
    file.persist_noclobber(path).map_err(|e| failed(&e.error))?;
    Ok(())
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
        (
            Some(SketchMeasures { equal_values: Some(equal), sketch_score: Some(score), .. }),
            Some(d),
            _,
        ) => {
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
            // What counts as equal is shown once, as the first text writes it.
            "a" if piece.is_equal => text.push_str(&piece_text),
            "b" if piece.is_equal => {}
            "a" if let Some(n) = piece.moved => {
                text.push_str(&out.styled(MOVED, &format!("[~{n}: {piece_text}~]")));
            }
            "b" if let Some(n) = piece.moved => {
                text.push_str(&out.styled(MOVED, &format!("{{~{n}: {piece_text}~}}")));
            }
            "a" => text.push_str(&out.styled(REMOVED, &format!("[-{piece_text}-]"))),
            "b" => text.push_str(&out.styled(ADDED, &format!("{{+{piece_text}+}}"))),
            _ => text.push_str(&piece_text),
        }
    }
    out.line(&text)?;
    if c.differences.iter().any(|piece| piece.is_equal) {
        out.line("(not marked: differences of case, width, script, white space and punctuation, which do not count)")?;
    }
    if c.differences.iter().any(|piece| piece.moved.is_some()) {
        out.line("([~1: ...~] stands at {~1: ...~} in the second text)")?;
    }
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
