//! `nearsift why`: what a finished run decided about a document, and on what.

use nearsift_batch::compare::{Comparison, PairOfTexts};
use nearsift_batch::dedup::{
    ClusterLine, Explanation, PairExplanation, RunResults, RunSettings, Verdict,
};
use nearsift_batch::numbers::plural;
use serde::Serialize;
use serde_json::{Map, Value};

use super::compare::print as print_comparison;
use crate::args::{Global, Why};
use crate::failure::Failure;
use crate::output::{Out, Severity, escaped, tell};
use crate::resolve::read_options;
use crate::{Status, terminal};

/// Members of a cluster that are shown.
const MEMBERS: usize = 12;

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    run: &'a RunSettings,
    documents: &'a [Explanation],
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<&'a [Explanation]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    between: Option<&'a PairExplanation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<&'a Comparison>,
}

pub fn run(args: &Why, global: &Global) -> Result<Status, Failure> {
    let results = RunResults::open(&args.results)?;
    let documents = results.find(&args.id)?;
    let others = args.other.as_deref().map(|id| results.find(id)).transpose()?;
    let mut absent = documents.is_empty().then_some(&args.id).into_iter().collect::<Vec<_>>();
    if others.as_ref().is_some_and(Vec::is_empty) {
        absent.extend(&args.other);
    }
    for id in &absent {
        let all = plural(results.documents(), "document");
        tell(
            Severity::Error,
            &format!("{}: none of the {all} of the run has this id", escaped(id)),
        );
    }
    if !absent.is_empty() {
        return Ok(Status::Nothing);
    }
    let between = match (documents.as_slice(), others.as_deref()) {
        ([one], Some([other])) => Some(results.between(one, other)?),
        _ => None,
    };
    let comparison = match args.documents.is_empty() {
        true => None,
        false => compared(args, global, &results, &documents, others.as_deref())?,
    };
    let mut out = Out::new();
    if global.json {
        out.json(&Answer {
            run: results.settings(),
            documents: &documents,
            others: others.as_deref(),
            between: between.as_ref(),
            comparison: comparison.as_ref(),
        })?;
    } else {
        let settings = results.settings();
        let all = documents.iter().chain(others.iter().flatten());
        all.into_iter().try_for_each(|explained| print(&mut out, settings, explained))?;
        if let Some(between) = &between {
            print_between(&mut out, settings, between, comparison.as_ref())?;
        } else if others.is_some() {
            out.line(
                "several documents have one of these ids: name two unique ids to compare them",
            )?;
        }
        if let Some(comparison) = &comparison {
            out.line("")?;
            print_comparison(&mut out, comparison, false)?;
        }
    }
    out.finish()?;
    Ok(Status::Done)
}

/// The texts of the two documents, or of one and its representative, compared as the run did.
fn compared(
    args: &Why,
    global: &Global,
    results: &RunResults,
    documents: &[Explanation],
    others: Option<&[Explanation]>,
) -> Result<Option<Comparison>, Failure> {
    let [one] = documents else { return Ok(None) };
    let partner = match (others, &one.removed) {
        (Some([other]), _) => Some((shown(&other.id), other.record)),
        (None, Some(line)) => line
            .get("representative")
            .map(shown)
            .zip(line.get("representative_record").and_then(Value::as_u64)),
        _ => None,
    };
    let Some((partner, record)) = partner else { return Ok(None) };
    let inputs = nearsift_batch::open(&args.documents, read_options(&args.reading, Vec::new()))?;
    let names = [shown(&one.id), partner];
    let context = terminal::context(global, None);
    let wanted = [names[0].as_str(), names[1].as_str()];
    let mut found = nearsift_batch::find_documents(&inputs, &wanted, &context)?.into_iter();
    let mut text = |id: &str, record: u64| {
        let of_id = found.next().unwrap_or_default();
        let of_record = of_id.into_iter().find(|found| found.record + 1 == record);
        of_record.map(|found| found.text).ok_or_else(|| {
            Failure::new(format!(
                "--in: {id} is not record {record} of this input: give the whole input of the run, in its order"
            ))
        })
    };
    let texts = [text(&names[0], one.record)?, text(&names[1], record)?];
    let (method, like) = results.method()?;
    Ok(Some(PairOfTexts { names, texts }.compare(&method, like.as_ref())?))
}

/// An id, or another value, as people read it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn print(out: &mut Out, settings: &RunSettings, explained: &Explanation) -> Result<(), Failure> {
    let name = format!("{} (record {})", escaped(&shown(&explained.id)), explained.record);
    match &explained.removed {
        None => out.line(&format!("{name}: kept"))?,
        Some(line) => print_removed(out, settings, explained, &name, line)?,
    }
    match &explained.cluster {
        None if explained.kept => out.line("    no other document of the run is near it")?,
        None => {}
        Some(cluster) => print_cluster(out, explained, cluster)?,
    }
    Ok(())
}

fn print_removed(
    out: &mut Out,
    settings: &RunSettings,
    explained: &Explanation,
    name: &str,
    line: &Map<String, Value>,
) -> Result<(), Failure> {
    let field = |name: &str| line.get(name).map(shown);
    let reason = field("reason").unwrap_or_default();
    let partner = match (field("representative"), field("reference")) {
        (Some(id), _) => {
            let record = field("representative_record").unwrap_or_default();
            format!("{} (record {record})", escaped(&id))
        }
        (None, Some(id)) => {
            let file = field("reference_file").unwrap_or_default();
            format!("{} in the reference {}", escaped(&id), escaped(&file))
        }
        (None, None) => String::new(),
    };
    let score = line.get("score").and_then(Value::as_f64);
    // Its copy went, too, and the document that stays for both is no copy.
    let what = match reason.as_str() {
        "exact-duplicate" if score.is_some_and(|score| score < 1.0) => {
            "the same text as another that went, near-duplicate"
        }
        reason => reason,
    };
    out.line(&format!("{name}: removed, {what} of {partner}"))?;
    print_figures(out, settings, line)?;
    explained.pairs.iter().try_for_each(|pair| print_measures(out, pair))
}

/// What decided, with its threshold.
fn print_figures(
    out: &mut Out,
    settings: &RunSettings,
    line: &Map<String, Value>,
) -> Result<(), Failure> {
    let number = |name: &str| line.get(name).and_then(Value::as_f64);
    match (number("score"), number("distance"), settings.min_score, settings.max_distance) {
        (_, Some(distance), _, Some(most)) => {
            out.line(&format!("    Hamming distance {distance}, near is at most {most}"))
        }
        (Some(score), _, Some(least), _) => {
            out.line(&format!("    score {score:.4}, near is at least {least}"))
        }
        _ => Ok(()),
    }
}

/// What two texts and their sketches measure.
fn print_measures(out: &mut Out, pair: &Map<String, Value>) -> Result<(), Failure> {
    let number = |name: &str| pair.get(name).and_then(Value::as_f64);
    let measure = |(name, shown): (&str, &str)| Some(format!("{shown} {:.4}", number(name)?));
    let texts = [
        ("cosine", "cosine"),
        ("alignment", "alignment"),
        ("jaccard", "Jaccard"),
        ("containment", "containment"),
    ];
    let texts: Vec<String> = texts.into_iter().filter_map(measure).collect();
    if !texts.is_empty() {
        out.line(&format!("    texts: {}", texts.join(", ")))?;
    }
    if let (Some(agree), Some(differ)) = (number("agree"), number("differ")) {
        out.line(&format!("    facts: {agree} agree, {differ} differ at the same places"))?;
    }
    match (number("sketch_score"), number("distance")) {
        (Some(score), Some(distance)) => {
            out.line(&format!("    sketches: score {score:.4}, Hamming distance {distance}"))
        }
        _ => Ok(()),
    }
}

fn print_cluster(
    out: &mut Out,
    explained: &Explanation,
    cluster: &ClusterLine,
) -> Result<(), Failure> {
    let ClusterLine { cluster: number, name, size, representative, kept, members, .. } = cluster;
    let is_other = |member: &&Value| **member != explained.id;
    let others: Vec<String> =
        members.iter().filter(is_other).take(MEMBERS).map(|id| escaped(&shown(id))).collect();
    let more = members.iter().filter(is_other).count().saturating_sub(MEMBERS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    out.line(&format!("    cluster {number} ({name}) of {}", plural(*size, "document")))?;
    out.line(&format!("    with it: {}{more}", others.join(", ")))?;
    match kept.len() {
        0 => out.line(&format!("    stays: {}", escaped(&shown(representative)))),
        _ => {
            let stay: Vec<String> =
                kept.iter().take(MEMBERS).map(|id| escaped(&shown(id))).collect();
            out.line(&format!("    {} of them stay: {}", kept.len(), stay.join(", ")))
        }
    }
}

fn print_between(
    out: &mut Out,
    settings: &RunSettings,
    between: &PairExplanation,
    comparison: Option<&Comparison>,
) -> Result<(), Failure> {
    let rule = &settings.cluster;
    let verdict = match between.verdict {
        Verdict::SameDocument => "both ids are of one document".to_owned(),
        Verdict::TogetherAsPair => "together: they are near each other".to_owned(),
        Verdict::TogetherThroughOthers => {
            "together through others: the run has no pair of the two themselves".to_owned()
        }
        Verdict::ApartByRule => format!(
            "apart, though near each other: too few of one group are near those of the other (rule of groups: {rule}), or the group is full"
        ),
        Verdict::NoPair => match comparison.map(|c| c.no_candidate(settings.min_score)) {
            Some(why) => format!("apart: {why}"),
            None => "apart: the run has no pair of the two; they were no candidates, or too little alike. With --in, the texts are compared".to_owned(),
        },
        _ => String::new(),
    };
    out.line(&verdict)?;
    for pair in &between.pairs {
        print_figures(out, settings, pair)?;
        print_measures(out, pair)?;
    }
    Ok(())
}
