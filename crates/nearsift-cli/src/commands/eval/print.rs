//! The report as tables.

use crate::failure::Failure;
use crate::output::{Out, escaped};
use nearsift_batch::eval::{Figure, Report, Row, Stratum, TruthReport};
use nearsift_batch::numbers::{grouped, plural};

pub fn print(out: &mut Out, report: &Report) -> Result<(), Failure> {
    let row = &report.measured;
    out.line(&format!("documents   {}", grouped(report.documents as u64)))?;
    out.line(&format!("truth       {}", truth(&report.truth)))?;
    out.line(&format!("measured    {}", escaped(&row.method)))?;
    out.line(&format!("threshold   score >= {} ({})", score(row.threshold), row.chosen))?;
    out.line(&format!(
        "clusters    {}: {} of two documents or more, the largest of {}",
        report.cluster,
        grouped(row.clusters as u64),
        grouped(row.largest_cluster as u64)
    ))?;
    out.line("")?;
    figures(out, report)?;
    let rows: Vec<&Row> = std::iter::once(row).chain(&report.best).chain(&report.peers).collect();
    if rows.len() > 1 {
        out.line("")?;
        methods(out, &rows)?;
    }
    for dimension in &report.strata {
        out.line("")?;
        strata(out, dimension.by, &dimension.strata)?;
    }
    Ok(())
}

fn truth(truth: &TruthReport) -> String {
    let mut text = format!(
        "{}: {}, {}",
        truth.kind.name(),
        plural(truth.positive_pairs, "positive pair"),
        plural(truth.grey_pairs, "grey pair")
    );
    if let Some(most) = truth.positive_within {
        text += &format!("; positive up to a combined edit of {most}");
    }
    text
}

/// The figures of what is measured, with intervals.
fn figures(out: &mut Out, report: &Report) -> Result<(), Failure> {
    let row = &report.measured;
    let header = match &report.intervals {
        Some(how) => {
            let percent = (how.confidence * 100.0).round();
            format!("{:<22}{:>8}   {percent}% interval", "", "value")
        }
        None => format!("{:<22}{:>8}", "", "value"),
    };
    out.line(&header)?;
    let at = |threshold: Option<f64>| match threshold {
        Some(threshold) => format!("at score >= {}", score(threshold)),
        None => "no threshold is precise enough".to_owned(),
    };
    let accepted = &row.accepted;
    let documents = &row.documents;
    let with_grey = match report.truth.grey_pairs {
        0 => String::new(),
        _ => format!("with grey pairs {}", ratio(Some(row.cluster_ari_with_grey))),
    };
    let lines: [(&str, Figure, String); 8] = [
        ("R@P99", row.recall_at_p99.recall, at(row.recall_at_p99.threshold)),
        ("R@P99 x100", row.recall_at_p99_x100.recall, at(row.recall_at_p99_x100.threshold)),
        (
            "precision",
            row.precision,
            format!(
                "{} true, {} false, {} grey",
                grouped(accepted.true_pairs),
                grouped(accepted.false_pairs),
                grouped(accepted.grey_pairs)
            ),
        ),
        ("recall", row.recall, format!("{} missed", grouped(accepted.missed_pairs))),
        ("F1", row.f1, String::new()),
        ("ARI of pairs", row.pair_ari, String::new()),
        ("ARI of clusters", row.cluster_ari, with_grey),
        (
            "macro-F1",
            row.macro_f1,
            format!(
                "documents: duplicates F1 {}, others F1 {}",
                ratio(documents.duplicate_f1),
                ratio(documents.single_f1)
            ),
        ),
    ];
    for (name, figure, more) in lines {
        let interval = match figure.interval {
            Some([low, high]) => format!("{} to {}", ratio(Some(low)), ratio(Some(high))),
            None => String::new(),
        };
        let line = match &report.intervals {
            Some(_) => format!("{name:<22}{:>8}   {interval:<15} {more}", ratio(figure.value)),
            None => format!("{name:<22}{:>8}   {more}", ratio(figure.value)),
        };
        out.line(line.trim_end())?;
    }
    Ok(())
}

/// One line a method.
fn methods(out: &mut Out, rows: &[&Row]) -> Result<(), Failure> {
    let width = rows.iter().map(|row| row.method.chars().count()).max().unwrap_or(0).clamp(8, 48);
    out.line(&format!(
        "{:<width$}  {:>6} {:>6}   {:>9} {:>6} {:>9} {:>6} {:>6}  {}",
        "method", "R@P99", "x100", "threshold", "recall", "precision", "F1", "ARI", "threshold is"
    ))?;
    for row in rows {
        let chosen = if row.chosen == "its best F1" { "its best F1" } else { "as asked" };
        out.line(&format!(
            "{:<width$}  {:>6} {:>6}   {:>9} {:>6} {:>9} {:>6} {:>6}  {chosen}",
            escaped(&row.method),
            ratio(row.recall_at_p99.recall.value),
            ratio(row.recall_at_p99_x100.recall.value),
            score(row.threshold),
            ratio(row.recall.value),
            ratio(row.precision.value),
            ratio(row.f1.value),
            ratio(row.cluster_ari.value),
        ))?;
    }
    Ok(())
}

fn strata(out: &mut Out, by: &str, strata: &[Stratum]) -> Result<(), Failure> {
    let width = strata.iter().map(|s| s.name.chars().count()).max().unwrap_or(0).clamp(14, 40);
    out.line(&format!(
        "{:<width$}  {:>9} {:>6} {:>9} {:>9} {:>6}",
        format!("by {by}"),
        "positive",
        "recall",
        "false",
        "precision",
        "R@P99"
    ))?;
    for stratum in strata {
        out.line(&format!(
            "{:<width$}  {:>9} {:>6} {:>9} {:>9} {:>6}",
            escaped(&stratum.name),
            grouped(stratum.positives),
            ratio(stratum.recall),
            grouped(stratum.false_pairs),
            ratio(stratum.precision),
            ratio(stratum.recall_at_p99),
        ))?;
    }
    Ok(())
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

/// Scores are of any scale: enough digits to tell them apart.
fn score(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
