//! `nearsift dedup`: the documents worth keeping, and why the others went.

use nearsift::dedup::Keep;
use nearsift_batch::dedup::{self, Done, GroupShown, Output, OutputFormat, Settings, Summary};
use nearsift_batch::numbers::{grouped, plural};
use nearsift_batch::{Context, Method};
use nearsift_io::{Format, Inputs};

use crate::args::{self, Dedup, Global};
use crate::failure::Failure;
use crate::output::{Out, Severity, StandardOutput, escaped, option, sum_up, tell};
use crate::{Status, calibration, interrupt, language, resolve, terminal};

pub fn run(args: &Dedup, global: &Global) -> Result<Status, Failure> {
    if is_stream(args) {
        check_stream(args, global)?;
    }
    let settings = settings(args)?;
    if args.progress.is_some() {
        terminal::show(args.progress);
    }
    let mut context = terminal::context(global, args.searching.memory);
    context.earlier = resolve::earlier(args.overwrite);
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
    if is_stream(args) {
        return stream(&inputs, &settings, &context);
    }
    let mut output = Output::new(&args.output);
    output.resume = args.resume;
    output.file.clone_from(&args.output_file);
    let summary = match dedup::run(&inputs, &settings, &output, &context)? {
        Done::Finished(summary) => summary,
        Done::AlreadyFinished { is_complete: true } => return Ok(Status::Done),
        _ => return Ok(Status::SomeUnreadable),
    };
    let read = Status::of_reading(summary.unread());
    super::warn_of_changes(&summary.changed_files);
    sum_up(global, &summary, |out| print(&summary, out, args))?;
    Ok(status(&summary, read))
}

/// Whether the documents go to standard output.
fn is_stream(args: &Dedup) -> bool {
    args.output.as_os_str() == "-"
}

/// What of the arguments needs a folder, where there is none.
fn check_stream(args: &Dedup, global: &Global) -> Result<(), Failure> {
    let in_folder = [("--resume", args.resume), ("--output-file", args.output_file.is_some())];
    if let Some((name, _)) = in_folder.into_iter().find(|(_, is_set)| *is_set) {
        return Err(Failure::new(format!(
            "{name} needs a folder for the results, and --output - has none: name a folder, or leave out {name}"
        )));
    }
    if global.json {
        return Err(Failure::new(
            "--json prints the summary where --output - writes the documents: leave out --json, or name a folder",
        ));
    }
    Ok(())
}

/// Writes the documents to standard output, and all else to standard error.
fn stream(inputs: &Inputs, settings: &Settings, context: &Context<'_>) -> Result<Status, Failure> {
    let out = StandardOutput::default();
    let summary = match dedup::stream(inputs, settings, Box::new(out.clone()), context) {
        Err(_) if out.is_closed() => return Err(Failure::ClosedPipe),
        summary => summary?,
    };
    let read = Status::of_reading(summary.unread());
    for warning in summary.warnings_in(language::of_environment()) {
        tell(Severity::Note, &nearsift_batch::spell(&warning, option));
    }
    let totals = language::of_environment().pick([totals(&summary), totals_in_chinese(&summary)]);
    tell(Severity::Note, &totals);
    Ok(status(&summary, read))
}

fn status(summary: &Summary, read: Status) -> Status {
    let is_complete =
        summary.changed_files.is_empty() && summary.unconverted + summary.unmarked == 0;
    if is_complete { read } else { Status::SomeUnreadable }
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
    settings.output_format = output_format(args.output_format, args.output_compression.as_deref())?;
    settings.dry_run = args.dry_run;
    settings.against.clone_from(&args.against);
    settings.against_kept_only = args.against_kept_only;
    settings.keep_state = args.keep_state;
    settings.language = language::given(args.report.language);
    settings.date.clone_from(&args.report.date);
    settings.keep_pairs_from = args.keep_pairs_from;
    settings.parquet_tables = args.tables == args::TableFormat::Parquet;
    if args.mark {
        settings.mark = Some(args.mark_names.as_deref().unwrap_or_default().parse()?);
    }
    Ok(settings)
}

/// The format that is written in place of the input's, if one was given.
pub(super) fn output_format(
    format: Option<args::OutputFormat>,
    codec: Option<&str>,
) -> Result<Option<OutputFormat>, Failure> {
    let Some(format) = format else { return Ok(None) };
    let format = match format {
        args::OutputFormat::Jsonl => Format::JsonLines,
        args::OutputFormat::Json => Format::Json,
        args::OutputFormat::Csv => Format::Csv,
        args::OutputFormat::Tsv => Format::Tsv,
        args::OutputFormat::Parquet => Format::Parquet,
        args::OutputFormat::Arrow => Format::Arrow,
    };
    let codec = codec.map(str::parse).transpose()?;
    Ok(Some(OutputFormat { format, codec }))
}

/// The result on the terminal.
fn print(summary: &Summary, out: &mut Out, args: &Dedup) -> Result<(), Failure> {
    print_groups(summary, out)?;
    if summary.dry_run {
        out.line("dry run: nothing was removed, and no document was written")?;
    }
    let file = args.output_file.as_ref().map(|file| escaped(&file.display().to_string()));
    let folder = escaped(&args.output.display().to_string());
    if summary.marked {
        let place = file.as_deref().unwrap_or("marked/");
        out.line(&format!("nothing was removed: every document is in {place}, with columns that say what was decided"))?;
    }
    let kept = match (summary.dry_run, summary.marked, &file) {
        (true, ..) => "",
        // The line above names it.
        (false, true, Some(_)) => "",
        (false, false, Some(file)) => {
            out.line(&format!("documents in {file}"))?;
            ""
        }
        (false, true, None) => "marked/, ",
        (false, false, None) => "kept/, ",
    };
    out.line(&format!(
        "results in {folder}: {kept}report.html, removed.jsonl, pairs.jsonl, clusters.jsonl, summary.json"
    ))
}

/// The largest groups, and what was found in all.
pub(super) fn print_groups(summary: &Summary, out: &mut Out) -> Result<(), Failure> {
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
    out.line(&totals(summary))?;
    if !summary.against.is_empty() {
        out.line(&format!(
            "of these, {} went because a reference has them ({} with the same text, {} near)",
            grouped(removed.of_reference()),
            grouped(removed.exact_of_reference),
            grouped(removed.near_of_reference)
        ))?;
    }
    for warning in summary.warnings_in(language::of_environment()) {
        tell(Severity::Note, &nearsift_batch::spell(&warning, option));
    }
    Ok(())
}

fn totals(summary: &Summary) -> String {
    let removed = &summary.removed;
    format!(
        "{} of {}: {} kept, {} removed ({} with the same text, {} near)",
        plural(summary.groups, "group"),
        plural(summary.documents(), "document"),
        plural(summary.kept, "document"),
        grouped(removed.total()),
        grouped(removed.exact),
        grouped(removed.near)
    )
}

fn totals_in_chinese(summary: &Summary) -> String {
    let removed = &summary.removed;
    format!(
        "{} 篇文档中有 {} 组：保留 {} 篇，移除 {} 篇（{} 篇文本相同，{} 篇近似）",
        grouped(summary.documents()),
        grouped(summary.groups),
        grouped(summary.kept),
        grouped(removed.total()),
        grouped(removed.exact),
        grouped(removed.near)
    )
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
