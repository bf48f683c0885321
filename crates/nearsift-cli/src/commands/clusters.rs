//! `nearsift clusters`: what clusters have become over several runs.

use nearsift_batch::dedup::{TotalsSummary, add_runs};
use nearsift_batch::numbers::plural;

use crate::Status;
use crate::args::{Clusters, Global};
use crate::failure::Failure;
use crate::output::{Out, escaped, sum_up};

pub fn run(args: &Clusters, global: &Global) -> Result<Status, Failure> {
    let summary = add_runs(&args.table, &args.runs, args.seen.as_deref())?;
    sum_up(global, &summary, |out| print(&summary, args, out))?;
    Ok(Status::Done)
}

fn print(summary: &TotalsSummary, args: &Clusters, out: &mut Out) -> Result<(), Failure> {
    for run in &summary.known {
        let run = escaped(&run.display().to_string());
        out.line(&format!("{run}: the table had it"))?;
    }
    out.line(&format!(
        "{}: {} added, {} of {} in all",
        escaped(&args.table.display().to_string()),
        plural(summary.added.len() as u64, "run"),
        plural(summary.clusters, "cluster"),
        plural(summary.documents, "document")
    ))
}
