//! `nearsift trim`: the lines, paragraphs or stretches that many documents repeat go, and the documents stay.

use clap::ValueEnum;
use nearsift::substrings::MinBytes;
use nearsift::verify::MIN_SCORE;
use nearsift_batch::dedup::ChangedFile;
use nearsift_batch::numbers::{grouped, plural, plural_of};
use nearsift_batch::trim::substrings::{self, Action, Compared, Ends};
use nearsift_batch::trim::{self, Settings, Stays, Summary, Unit};

use crate::args::{self, Global, Trim};
use crate::failure::Failure;
use crate::output::{Out, escaped, sum_up};
use crate::{Status, interrupt, resolve, terminal};

pub fn run(args: &Trim, global: &Global) -> Result<Status, Failure> {
    match args.substrings {
        Some(bytes) => run_substrings(args, bytes, global),
        None => run_pieces(args, global),
    }
}

fn run_pieces(args: &Trim, global: &Global) -> Result<Status, Failure> {
    let mut settings = Settings::default();
    settings.unit = match args.unit {
        None | Some(args::Unit::Line) => Unit::Line,
        Some(args::Unit::Paragraph) => Unit::Paragraph,
        Some(unit @ (args::Unit::Bytes | args::Unit::Letters)) => {
            return Err(wrong_unit(
                unit,
                "is for --substrings: expected line or paragraph without it",
            ));
        }
    };
    settings.keep = match args.keep.as_str() {
        "first" => Stays::First,
        "none" => Stays::None,
        other => {
            return Err(Failure::new(format!(
                "--keep {other}: expected first or none; other policies are for --substrings"
            )));
        }
    };
    settings.min_count = args.min_count;
    settings.min_bytes = args.min_bytes;
    settings.near = args.near.then(|| args.min_score.unwrap_or(MIN_SCORE));
    trim::check(&resolve::read_options(&args.input.reading, Vec::new()))?;
    let inputs = resolve::open(&args.input, Vec::new())?;
    let mut context = terminal::context(global, args.memory);
    context.earlier = resolve::earlier(args.overwrite);
    interrupt::listen(&context.interrupt);
    let summary = trim::run(&inputs, &settings, &args.output, &context)?;
    super::warn_of_changes(&summary.changed_files);
    sum_up(global, &summary, |out| print(&summary, args, out))?;
    Ok(status(summary.unreadable, &summary.changed_files))
}

fn run_substrings(args: &Trim, bytes: usize, global: &Global) -> Result<Status, Failure> {
    let min_bytes =
        MinBytes::new(bytes).map_err(|error| Failure::new(format!("--substrings {error}")))?;
    let mut settings = substrings::Settings::new(min_bytes);
    settings.compared = match args.unit {
        None | Some(args::Unit::Bytes) => Compared::Bytes,
        Some(args::Unit::Letters) => Compared::Letters,
        Some(unit @ (args::Unit::Line | args::Unit::Paragraph)) => {
            return Err(wrong_unit(
                unit,
                "cannot be used with --substrings: expected bytes or letters; \
                 --widen and --narrow choose where cuts end",
            ));
        }
    };
    let boundary = |boundary| match boundary {
        args::Boundary::Line => substrings::Boundary::Line,
        args::Boundary::Sentence => substrings::Boundary::Sentence,
    };
    settings.ends = match (args.widen, args.narrow) {
        (Some(widen), _) => Ends::Widened(boundary(widen)),
        (None, Some(narrow)) => Ends::Narrowed(boundary(narrow)),
        (None, None) => Ends::Character,
    };
    settings.keep = args.keep.parse().map_err(|e| Failure::new(format!("--keep: {e}")))?;
    settings.action = if args.mark { Action::Mark } else { Action::Remove };
    settings.marks.rename_all(args.mark_names.as_deref().unwrap_or_default())?;
    let reading = resolve::read_options(&args.input.reading, settings.fields());
    if settings.action == Action::Remove {
        trim::check(&reading)?;
    }
    let inputs = resolve::open(&args.input, settings.fields())?;
    let mut context = terminal::context(global, None);
    context.earlier = resolve::earlier(args.overwrite);
    interrupt::listen(&context.interrupt);
    let summary = substrings::run(&inputs, &settings, &args.output, &context)?;
    super::warn_of_changes(&summary.changed_files);
    sum_up(global, &summary, |out| print_substrings(&summary, args, out))?;
    match (summary.unmarked, status(summary.unreadable, &summary.changed_files)) {
        (0, status) => Ok(status),
        _ => Ok(Status::SomeUnreadable),
    }
}

fn wrong_unit(unit: args::Unit, problem: &str) -> Failure {
    let name =
        unit.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    Failure::new(format!("--unit {name} {problem}"))
}

fn status(unreadable: u64, changed: &[ChangedFile]) -> Status {
    if changed.is_empty() { Status::of_reading(unreadable) } else { Status::SomeUnreadable }
}

fn print_substrings(
    summary: &substrings::Summary,
    args: &Trim,
    out: &mut Out,
) -> Result<(), Failure> {
    let (done, tables) = match summary.action {
        Action::Remove => ("removed from", "kept/, removed.jsonl, summary.json"),
        Action::Mark => ("marked in", "marked/, repeats.jsonl, summary.json"),
    };
    out.line(&format!(
        "{} ({} bytes of {}) {done} {}: {} with some, {} with nothing else",
        plural(summary.repeats, "repeat"),
        grouped(summary.text_bytes_repeated),
        grouped(summary.text_bytes),
        plural(summary.documents, "document"),
        grouped(summary.documents_changed),
        grouped(summary.documents_removed)
    ))?;
    let folder = escaped(&args.output.display().to_string());
    out.line(&format!("results in {folder}: {tables}"))
}

fn print(summary: &Summary, args: &Trim, out: &mut Out) -> Result<(), Failure> {
    let names = match summary.unit {
        Unit::Line => ["line", "lines"],
        Unit::Paragraph => ["paragraph", "paragraphs"],
    };
    out.line(&format!(
        "{} of {} removed from {}: {} changed, {} removed because nothing was left of them",
        plural_of(summary.pieces_removed, names),
        grouped(summary.pieces),
        plural(summary.documents, "document"),
        grouped(summary.documents_changed),
        grouped(summary.documents_removed)
    ))?;
    if summary.near.is_some() {
        let nearly = grouped(summary.pieces_nearly_repeated);
        out.line(&format!("{nearly} of the {} removed nearly repeat another", names[1]))?;
    }
    let folder = escaped(&args.output.display().to_string());
    out.line(&format!("results in {folder}: kept/, removed.jsonl, summary.json"))
}
