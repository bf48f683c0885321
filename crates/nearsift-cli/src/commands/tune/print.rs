//! The report for people.

use nearsift::verify::Facts;

use crate::failure::Failure;
use crate::output::{Out, escaped};
use nearsift_batch::numbers::{grouped, plural};
use nearsift_batch::tune::{Band, Basis, Between, Number, Report, Seen};

pub fn print(out: &mut Out, report: &Report) -> Result<(), Failure> {
    let documents = &report.documents;
    out.line(&format!(
        "documents     {}: {} with the text of an earlier one, {} too short or empty, {} unreadable",
        grouped(documents.documents),
        grouped(documents.same_text),
        grouped(documents.unjudged),
        grouped(documents.unreadable)
    ))?;
    let sample = &report.sample;
    let of = match sample.anchors == sample.population {
        true => "(all, so nothing is estimated)".to_owned(),
        false => format!("of {}, seed {}", grouped(sample.population), report.seed),
    };
    out.line(&format!("searched      {} {of}", plural(sample.anchors, "document")))?;
    out.line(&format!(
        "compared      {} of {} with an earlier document, exactly",
        grouped(sample.verified),
        plural(sample.pairs, "pair")
    ))?;
    let random = &report.random;
    out.line(&format!(
        "by chance     {}: half score below {:.2}, 99% below {:.2}, the highest {:.2}",
        plural(random.pairs, "random pair"),
        random.median,
        random.p99,
        random.highest
    ))?;
    out.line("")?;
    seen(out, report)?;
    out.line("")?;
    let threshold = &report.threshold;
    let value = match (threshold.min_score, threshold.max_distance) {
        (_, Some(distance)) => format!("distance {distance}"),
        (score, None) => format!("score {}", score.unwrap_or_default()),
    };
    let basis = match threshold.basis {
        Basis::Proposed => "proposed",
        Basis::Default => "the default",
        Basis::Asked => "as asked",
    };
    out.line(&format!("threshold     {value}, {basis}: {}", threshold.because))?;
    precision(out, report)?;
    for band in &report.bands {
        examples(out, band)?;
    }
    out.line("")?;
    forecast(out, report)?;
    out.line("")?;
    out.line("settings")?;
    report.settings.lines().try_for_each(|line| out.line(&format!("    {}", escaped(line))))
}

/// What share of the accepted pairs are copies.
fn precision(out: &mut Out, report: &Report) -> Result<(), Failure> {
    if let Seen::Sketch { .. } = report.seen {
        out.line(&match &report.threshold.precision {
            Some(expected) => format!(
                "precision     {:.3} expected, 95% interval {:.3} to {:.3}, of pairs of different texts: related pairs are taken to thin out above the valley as they do on the slope towards it",
                expected.value, expected.low, expected.high
            ),
            None => "precision     not known: without a valley the pairs do not tell which of them are only related".to_owned(),
        })?;
    }
    let random = &report.random;
    if 100 * random.accepted > random.pairs {
        out.line(&format!(
            "warning       the threshold accepts {} of {}: much of the input is near to much of it, as pages of one form are, or copies of one text",
            grouped(random.accepted),
            plural(random.pairs, "random pair")
        ))?;
    }
    Ok(())
}

/// The histograms side by side.
fn seen(out: &mut Out, report: &Report) -> Result<(), Failure> {
    match &report.seen {
        Seen::Sketch { sketch_scores, random_sketch_scores, scores, random_scores } => {
            out.line(&format!(
                "{:<14}{:>12} {:>10} {:>12} {:>10}",
                "score", "sketches", "random", "texts", "random"
            ))?;
            let columns = [sketch_scores, random_sketch_scores, scores, random_scores];
            let is_used = |step: &usize| columns.iter().any(|column| column[*step] > 0);
            let most = scores.iter().copied().max().unwrap_or(0);
            let step = 1.0 / scores.len() as f64;
            for at in (0..scores.len()).filter(is_used) {
                let from = at as f64 * step;
                let line = format!(
                    "{:<14}{:>12} {:>10} {:>12} {:>10}  {}",
                    format!("{from:.2} to {:.2}", from + step),
                    grouped(columns[0][at]),
                    grouped(columns[1][at]),
                    grouped(columns[2][at]),
                    grouped(columns[3][at]),
                    bar(scores[at], most)
                );
                out.line(line.trim_end())?;
            }
        }
        Seen::Simhash {
            distances,
            random_distances,
            farthest,
            best_f1,
            chance_neighbours,
            bits,
        } => {
            out.line(&format!(
                "{:<10}{:>12} {:>10} {:>16} {:>10}",
                "distance", "pairs", "compared", "near duplicates", "random"
            ))?;
            let most = distances.iter().map(|d| d.pairs).max().unwrap_or(0);
            for at in distances {
                let random = random_distances.get(at.distance as usize).copied().unwrap_or(0);
                let line = format!(
                    "{:<10}{:>12} {:>10} {:>16} {:>10}  {}",
                    at.distance,
                    grouped(at.pairs),
                    grouped(at.verified),
                    grouped(at.near),
                    grouped(random),
                    bar(at.pairs, most)
                );
                out.line(line.trim_end())?;
            }
            out.line(&match best_f1 {
                Some(best) if best.turns_within_range => format!(
                    "F1 is highest up to distance {}: {:.3} (precision {:.3}, recall {:.3} of the near duplicates up to distance {farthest}, where the search ended)",
                    best.distance, best.f1, best.precision, best.recall_within_range
                ),
                Some(best) => format!(
                    "F1 still rises at distance {}, {:.3}; the search ended at distance {farthest}, beyond which chance pairs are too many",
                    best.distance, best.f1
                ),
                None => format!("no near duplicate up to distance {farthest}, where the search ended"),
            })?;
            out.line(&format!(
                "evenly spread fingerprints of {bits} bits would have {chance_neighbours:.2e} neighbours by chance"
            ))?;
        }
    }
    Ok(())
}

/// A bar whose length is the square root of the share: a few pairs show beside many.
fn bar(count: u64, most: u64) -> String {
    let share = count as f64 / most.max(1) as f64;
    "#".repeat((30.0 * share.sqrt()).ceil() as usize)
}

fn examples(out: &mut Out, band: &Band) -> Result<(), Failure> {
    if band.examples.is_empty() {
        return Ok(());
    }
    let verdict = match band.accepted {
        Some(true) => "near duplicates",
        Some(false) => "not near duplicates",
        None => "the threshold is between them",
    };
    out.line("")?;
    out.line(&format!("{}: {}, {verdict}", band.name, plural(band.pairs, "pair")))?;
    for pair in &band.examples {
        let measures =
            [("score", pair.score), ("cosine", pair.cosine), ("alignment", pair.alignment)];
        let measures =
            measures.iter().filter_map(|(name, value)| Some(format!("{name} {:.3}", (*value)?)));
        let facts = pair
            .facts
            .map(|Facts { agree, differ, .. }| format!("values: {agree} agree, {differ} differ"));
        let measures = measures.chain(facts).collect::<Vec<_>>().join(", ");
        out.line(&format!(
            "  {} | {}: {measures}",
            escaped(pair.a.shown()),
            escaped(pair.b.shown())
        ))?;
        out.line(&format!("    {}", escaped(&pair.differences)))?;
    }
    Ok(())
}

fn forecast(out: &mut Out, report: &Report) -> Result<(), Failure> {
    let forecast = &report.forecast;
    out.line("dedup of this input, on this machine")?;
    out.line(&format!("  pairs       {}", number(forecast.pairs)))?;
    out.line(&format!(
        "  removed     {} with the same text, {} near",
        number(forecast.removed_same_text),
        number(forecast.removed_near)
    ))?;
    out.line(&format!("  memory      {}", bytes(forecast.memory_bytes as f64)))?;
    out.line(&format!("  time        {}", seconds(forecast.seconds)))?;
    if let Some(larger) = &report.forecast.larger {
        out.line(&format!(
            "dedup of {}: as parts that have their own copies, to one corpus of which this is a random part",
            plural(larger.documents, "document")
        ))?;
        let whole = |value: f64| grouped(value.round() as u64);
        out.line(&format!("  pairs       {}", between(larger.pairs, whole)))?;
        out.line(&format!("  removed     {}", between(larger.removed, whole)))?;
        out.line(&format!("  memory      {}", between(larger.memory_bytes, bytes)))?;
        out.line(&format!("  time        {}", between(larger.seconds, seconds)))?;
    }
    Ok(())
}

fn number(number: Number) -> String {
    match number.standard_error {
        0 => grouped(number.value),
        error => format!("{} ± {}", grouped(number.value), grouped(error)),
    }
}

fn between(range: Between, show: impl Fn(f64) -> String) -> String {
    let (low, high) = (show(range.low), show(range.high));
    if low == high { low } else { format!("{low} to {high}") }
}

fn bytes(value: f64) -> String {
    let (unit, name) = match value {
        v if v >= 1e9 => (1e9, "GB"),
        v if v >= 1e6 => (1e6, "MB"),
        _ => (1e3, "kB"),
    };
    format!("{:.1} {name}", value / unit)
}

fn seconds(value: f64) -> String {
    match value {
        v if v >= 7200.0 => format!("{:.1} hours", v / 3600.0),
        v if v >= 120.0 => format!("{:.1} minutes", v / 60.0),
        v => format!("{v:.1} s"),
    }
}
