//! `nearsift decontaminate`: passages of test sets in documents.

use nearsift_batch::decontaminate::{self, Action, BenchmarkFiles, Settings, Summary};
use nearsift_batch::numbers::{grouped, plural};

use crate::args::{Decontaminate, Global};
use crate::failure::Failure;
use crate::output::{Out, Severity, escaped, option, sum_up, tell};
use crate::{Status, interrupt, language, resolve, terminal};

pub fn run(args: &Decontaminate, global: &Global) -> Result<Status, Failure> {
    let settings = settings(args)?;
    let inputs = resolve::open(&args.input, settings.fields())?;
    let mut context = terminal::context(global, args.memory);
    context.earlier = resolve::earlier(args.overwrite);
    interrupt::listen(&context.interrupt);
    let summary = decontaminate::run(&inputs, &settings, &args.output, &context)?;
    super::warn_of_changes(&summary.changed_files);
    sum_up(global, &summary, |out| print(&summary, args, out))?;
    match summary.changed_files.is_empty() && summary.unmarked == 0 {
        true => Ok(Status::of_reading(summary.unreadable + summary.unreadable_items)),
        false => Ok(Status::SomeUnreadable),
    }
}

fn settings(args: &Decontaminate) -> Result<Settings, Failure> {
    let mut settings = Settings::new(BenchmarkFiles {
        paths: args.benchmarks.clone(),
        fields: args.benchmark_fields.clone(),
        id_field: args.benchmark_id_field.clone(),
        save: args.save_index.clone(),
    });
    settings.action = match (args.mark, args.dry_run) {
        (true, _) => Action::Mark,
        (_, true) => Action::DryRun,
        _ => Action::Remove,
    };
    if let Some(names) = &args.mark_names {
        settings.marks = names.parse()?;
    }
    settings.source_field.clone_from(&args.source_field);
    settings.language = language::given(args.language);
    let check = |name: &str, value: Option<f64>, from: f64, to: f64| match value {
        Some(value) if !(from..=to).contains(&value) => {
            Err(Failure::new(format!("--{name} {value}: expected a number from {from} to {to}")))
        }
        value => Ok(value),
    };
    let rule = &mut settings.rule;
    if let Some(coverage) = check("min-coverage", args.min_coverage, 0.05, 1.0)? {
        rule.min_coverage = coverage;
    }
    if let Some(bits) = check("min-weight", args.min_weight, 1.0, 10_000.0)? {
        rule.min_bits = bits;
    }
    Ok(settings)
}

fn print(summary: &Summary, args: &Decontaminate, out: &mut Out) -> Result<(), Failure> {
    for line in &summary.benchmarks {
        out.line(&format!(
            "{}: {} of {} found, in {}",
            escaped(&line.benchmark),
            grouped(line.items_found),
            plural(line.items, "item"),
            plural(line.documents, "document")
        ))?;
    }
    let what = match summary.action {
        Action::Remove => "removed",
        Action::Mark => "marked",
        Action::DryRun => "found",
    };
    out.line(&format!(
        "{} of {} {what}: they have items of the benchmarks",
        grouped(summary.contaminated),
        plural(summary.documents, "document"),
    ))?;
    for warning in summary.warnings_in(language::of_environment()) {
        tell(Severity::Note, &nearsift_batch::spell(&warning, option));
    }
    let files = match summary.action {
        Action::Remove => "kept/, ",
        Action::Mark => "marked/, ",
        Action::DryRun => {
            out.line("dry run: nothing was removed, and no document was written")?;
            ""
        }
    };
    let folder = escaped(&args.output.display().to_string());
    out.line(&format!("results in {folder}: {files}report.html, hits.jsonl, summary.json"))
}
