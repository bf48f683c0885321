//! `nearsift dedup`: the documents worth keeping, and why the others went.

use std::path::Path;

use nearsift::dedup::Keep;
use nearsift_batch::Method;
use nearsift_batch::dedup::{self, Done, GroupShown, Output, OutputFormat, Settings, Summary};
use nearsift_batch::numbers::{grouped, plural};
use nearsift_io::Format;

use crate::args::{self, Dedup, Global};
use crate::failure::Failure;
use crate::output::{Out, Severity, escaped, option, sum_up, tell};
use crate::{Status, calibration, interrupt, resolve, terminal};

pub fn run(args: &Dedup, global: &Global) -> Result<Status, Failure> {
    let settings = settings(args)?;
    if args.progress.is_some() {
        terminal::show(args.progress);
    }
    let mut context = terminal::context(global, args.searching.memory);
    let mut options = resolve::read_options(&args.input.reading, settings.fields());
    // A checkpoint is of whole batches.
    let most = usize::try_from(context.bounds.checkpoint_bytes).unwrap_or(usize::MAX);
    options.batch_bytes = options.batch_bytes.min(most);
    if let Method::Simhash { recipe, .. } = &settings.method {
        context.join_speed = calibration::join_speed(recipe.bits());
    }
    settings.check()?;
    let inputs = nearsift_batch::open(&resolve::paths(&args.input)?, options)?;
    interrupt::listen(&context.interrupt);
    let output = Output { folder: args.output.clone(), resume: args.resume };
    let summary = match dedup::run(&inputs, &settings, &output, &context)? {
        Done::Finished(summary) => summary,
        Done::AlreadyFinished { is_complete: true } => return Ok(Status::Done),
        _ => return Ok(Status::SomeUnreadable),
    };
    let read = Status::of_reading(summary.unread());
    super::warn_of_changes(&summary.changed_files);
    sum_up(global, &summary, |out| print(&summary, out, &args.output))?;
    let is_complete =
        summary.changed_files.is_empty() && summary.unconverted + summary.unmarked == 0;
    match is_complete {
        true => Ok(read),
        false => Ok(Status::SomeUnreadable),
    }
}

fn settings(args: &Dedup) -> Result<Settings, Failure> {
    let keep: Keep = args.keep.parse().map_err(|e| Failure::new(format!("--keep: {e}")))?;
    let mut settings = Settings::default();
    settings.method = resolve::method(&args.recipe, &args.matching, args.searching.verify)?;
    settings.keep = keep;
    settings.clustering = args.cluster.map(resolve::clustering);
    settings.max_cluster = args.max_cluster;
    settings.partial = args.partial;
    settings.source_field.clone_from(&args.source_field);
    settings.output_format = output_format(args)?;
    settings.dry_run = args.dry_run;
    settings.against.clone_from(&args.against);
    settings.keep_state = args.keep_state;
    settings.parquet_tables = args.tables == args::TableFormat::Parquet;
    if args.mark {
        settings.mark = Some(args.mark_names.as_deref().unwrap_or_default().parse()?);
    }
    Ok(settings)
}

/// The format that is written in place of the input's, if one was given.
fn output_format(args: &Dedup) -> Result<Option<OutputFormat>, Failure> {
    let Some(format) = args.output_format else { return Ok(None) };
    let format = match format {
        args::OutputFormat::Jsonl => Format::JsonLines,
        args::OutputFormat::Json => Format::Json,
        args::OutputFormat::Csv => Format::Csv,
        args::OutputFormat::Tsv => Format::Tsv,
        args::OutputFormat::Parquet => Format::Parquet,
        args::OutputFormat::Arrow => Format::Arrow,
    };
    let codec = args.output_compression.as_deref().map(str::parse).transpose()?;
    Ok(Some(OutputFormat { format, codec }))
}

/// The result on the terminal.
fn print(summary: &Summary, out: &mut Out, folder: &Path) -> Result<(), Failure> {
    let shown = summary.largest_groups();
    shown.iter().try_for_each(|group| print_group(group, out))?;
    let more = summary.groups.saturating_sub(shown.len() as u64);
    if more > 0 {
        out.line(&format!("and {}", plural(more, "smaller group")))?;
    }
    if summary.groups > 0 {
        out.line("")?;
    }
    let removed = &summary.removed;
    out.line(&format!(
        "{} of {}: {} kept, {} removed ({} with the same text, {} near)",
        plural(summary.groups, "group"),
        plural(summary.documents(), "document"),
        plural(summary.kept, "document"),
        grouped(removed.total()),
        grouped(removed.exact),
        grouped(removed.near)
    ))?;
    if !summary.against.is_empty() {
        out.line(&format!(
            "of these, {} went because a reference has them ({} with the same text, {} near)",
            grouped(removed.of_reference()),
            grouped(removed.exact_of_reference),
            grouped(removed.near_of_reference)
        ))?;
    }
    for warning in summary.warnings() {
        tell(Severity::Note, &nearsift_batch::spell(&warning, option));
    }
    if summary.dry_run {
        out.line("dry run: nothing was removed, and no document was written")?;
    }
    if summary.marked {
        out.line("nothing was removed: every document is in marked/, with columns that say what was decided")?;
    }
    let kept = match (summary.dry_run, summary.marked) {
        (true, _) => "",
        (false, true) => "marked/, ",
        (false, false) => "kept/, ",
    };
    let folder = escaped(&folder.display().to_string());
    out.line(&format!(
        "results in {folder}: {kept}report.html, removed.jsonl, pairs.jsonl, clusters.jsonl, summary.json"
    ))
}

fn print_group(group: &GroupShown, out: &mut Out) -> Result<(), Failure> {
    out.line(&format!("group of {}", grouped(group.size)))?;
    for member in &group.members {
        out.line(&format!("    {:<9} {}", member.what, escaped(&member.id)))?;
    }
    if group.more() > 0 {
        out.line(&format!("    and {} more", grouped(group.more())))?;
    }
    Ok(())
}
