//! `nearsift sketch`, `join` and `apply`: one `dedup`, cut in parts for many machines; and `regroup`, which decides about a part anew.

use std::path::Path;

use nearsift_batch::Method;
use nearsift_batch::dedup::{self, AppliedSummary, Apply, Done, Output, Settings, Summary};
use nearsift_batch::numbers::{grouped, plural, size};
use nearsift_batch::parts::{self, PartSummary, Parts};

use crate::args::{self, Global, Join, SketchPart};
use crate::failure::Failure;
use crate::output::{Out, escaped, sum_up};
use crate::{Status, calibration, interrupt, language, resolve, terminal};

/// Makes a part.
pub fn sketch(args: &SketchPart, global: &Global) -> Result<Status, Failure> {
    terminal::show(args.progress);
    let mut settings = parts::Settings::new(resolve::recipe(&args.recipe, "sketch")?);
    settings.keep = args.keep.parse().map_err(|e| Failure::new(format!("--keep: {e}")))?;
    settings.source_field.clone_from(&args.source_field);
    settings.texts &= !args.without_texts;
    let context = terminal::context(global, args.memory);
    let mut options = resolve::read_options(&args.input.reading, settings.fields());
    // A checkpoint is of whole batches.
    let most = usize::try_from(context.bounds.checkpoint_bytes).unwrap_or(usize::MAX);
    options.batch_bytes = options.batch_bytes.min(most);
    let inputs = nearsift_batch::open(&resolve::paths(&args.input)?, options)?;
    interrupt::listen(&context.interrupt);
    let summary = parts::sketch(&inputs, &settings, &args.output, &context)?;
    sum_up(global, &summary, |out| print_part(&summary, out))?;
    Ok(Status::of_reading(summary.unreadable))
}

fn print_part(summary: &PartSummary, out: &mut Out) -> Result<(), Failure> {
    out.line(&format!(
        "{}: a part of {}, {} for {} of text",
        escaped(&summary.part.display().to_string()),
        plural(summary.documents, "document"),
        size(summary.bytes),
        size(summary.text_bytes)
    ))
}

/// Decides about the documents of parts.
pub fn join(args: &Join, global: &Global) -> Result<Status, Failure> {
    terminal::show(args.deciding.progress);
    let parts = Parts::open(&args.parts)?;
    let mut settings = Settings::default();
    settings.method = method(args, &parts)?;
    settings.clustering = args.cluster.map(resolve::clustering);
    settings.max_cluster = args.max_cluster;
    settings.language = language::given(args.deciding.report.language);
    settings.date.clone_from(&args.deciding.report.date);
    settings.parquet_tables = args.deciding.tables == args::TableFormat::Parquet;
    let mut context = terminal::context(global, args.searching.memory);
    context.earlier = resolve::earlier(args.deciding.overwrite);
    if let Method::Simhash { recipe, .. } = &settings.method {
        context.join_speed = calibration::join_speed(recipe.bits());
    }
    interrupt::listen(&context.interrupt);
    let mut output = Output::new(&args.output);
    output.resume = args.deciding.resume;
    let done = dedup::join(&parts, &settings, &output, &context)?;
    sum_up_decisions(done, global, &args.output, "next, for each part: nearsift apply PART")
}

/// Decides anew about the documents of a run.
pub fn regroup(args: &args::Regroup, global: &Global) -> Result<Status, Failure> {
    terminal::show(args.deciding.progress);
    let keep = args.keep.as_deref().map(str::parse).transpose();
    let mut changes = dedup::Regroup::default();
    changes.min_score = args.min_score;
    changes.clustering = args.cluster.map(resolve::clustering);
    changes.max_cluster = args.max_cluster;
    changes.keep = keep.map_err(|e| Failure::new(format!("--keep: {e}")))?;
    changes.parquet_tables = args.deciding.tables == args::TableFormat::Parquet;
    changes.language = language::given(args.deciding.report.language);
    changes.date.clone_from(&args.deciding.report.date);
    let mut context = terminal::context(global, args.memory);
    context.earlier = resolve::earlier(args.deciding.overwrite);
    interrupt::listen(&context.interrupt);
    let mut output = Output::new(&args.output);
    output.resume = args.deciding.resume;
    let done = dedup::regroup(&args.run, &changes, &output, &context)?;
    let next = format!("next: nearsift apply {}", escaped(&args.run.display().to_string()));
    sum_up_decisions(done, global, &args.output, &next)
}

/// What was decided; `next` says which command goes on, without its options.
fn sum_up_decisions(
    done: Done,
    global: &Global,
    output: &Path,
    next: &str,
) -> Result<Status, Failure> {
    let summary = match done {
        Done::Finished(summary) => summary,
        Done::AlreadyFinished { is_complete: true } => return Ok(Status::Done),
        _ => return Ok(Status::SomeUnreadable),
    };
    sum_up(global, &summary, |out| print_decisions(&summary, out, output, next))?;
    Ok(Status::of_reading(summary.unread()))
}

/// The method that the options mean; without a recipe that of the parts.
fn method(args: &Join, parts: &Parts) -> Result<Method, Failure> {
    let mut recipe = args.recipe.clone();
    recipe.recipe.get_or_insert_with(|| parts.recipe().to_owned());
    let verify = match (args.searching.verify, args.matching.method) {
        // Without texts there is one way to decide.
        (None, None) if !parts.have_texts() && parts.are_sketches() => Some(args::Verify::Off),
        (given, _) => given,
    };
    resolve::method(&recipe, &args.matching, verify)
}

fn print_decisions(
    summary: &Summary,
    out: &mut Out,
    output: &Path,
    next: &str,
) -> Result<(), Failure> {
    super::dedup::print_groups(summary, out)?;
    let folder = escaped(&output.display().to_string());
    out.line(&format!(
        "results in {folder}: decisions/, report.html, removed.jsonl, pairs.jsonl, clusters.jsonl, summary.json"
    ))?;
    out.line(&format!("{next} --decisions {folder} --output DIR"))
}

/// Writes what stays of the files of a part.
pub fn apply(args: &args::Apply, global: &Global) -> Result<Status, Failure> {
    terminal::show(args.progress);
    let mut settings = Apply::default();
    settings.inputs.clone_from(&args.inputs);
    settings.output_format =
        super::dedup::output_format(args.output_format, args.output_compression.as_deref())?;
    settings.resume = args.resume;
    if args.mark {
        settings.mark = Some(args.mark_names.as_deref().unwrap_or_default().parse()?);
    }
    let mut context = terminal::context(global, None);
    context.earlier = resolve::earlier(args.overwrite);
    interrupt::listen(&context.interrupt);
    let summary = dedup::apply(&args.part, &args.decisions, &settings, &args.output, &context)?;
    if summary.was_finished {
        return Ok(Status::Done);
    }
    super::warn_of_changes(&summary.changed_files);
    sum_up(global, &summary, |out| print_applied(&summary, out, args))?;
    let read = Status::of_reading(summary.unreadable);
    let is_complete =
        summary.changed_files.is_empty() && summary.unconverted + summary.unmarked == 0;
    Ok(if is_complete { read } else { Status::SomeUnreadable })
}

fn print_applied(
    summary: &AppliedSummary,
    out: &mut Out,
    args: &args::Apply,
) -> Result<(), Failure> {
    let folder = escaped(&args.output.display().to_string());
    let (name, done) = match summary.marked {
        true => ("marked", "all written, with columns that say what was decided"),
        false => ("kept", "those that stay written"),
    };
    out.line(&format!(
        "{}: {} of {} stay; {done} to {folder}/{name}",
        escaped(&args.part.display().to_string()),
        grouped(summary.kept),
        plural(summary.documents, "document"),
    ))
}
