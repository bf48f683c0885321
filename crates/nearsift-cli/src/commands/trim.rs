//! `nearsift trim`: the lines or paragraphs that many documents repeat go, and the documents stay.

use nearsift::verify::MIN_SCORE;
use nearsift_batch::numbers::{grouped, plural, plural_of};
use nearsift_batch::trim::{self, Settings, Stays, Summary, Unit};

use crate::args::{self, Global, Trim};
use crate::failure::Failure;
use crate::output::{Out, escaped, sum_up};
use crate::{Status, interrupt, resolve, terminal};

pub fn run(args: &Trim, global: &Global) -> Result<Status, Failure> {
    let mut settings = Settings::default();
    settings.unit = match args.unit {
        args::Unit::Line => Unit::Line,
        args::Unit::Paragraph => Unit::Paragraph,
    };
    settings.keep = match args.keep {
        args::Stays::First => Stays::First,
        args::Stays::None => Stays::None,
    };
    settings.min_count = args.min_count;
    settings.min_bytes = args.min_bytes;
    settings.near = args.near.then(|| args.min_score.unwrap_or(MIN_SCORE));
    trim::check(&resolve::read_options(&args.input.reading, Vec::new()))?;
    let inputs = resolve::open(&args.input, Vec::new())?;
    let context = terminal::context(global, args.memory);
    interrupt::listen(&context.interrupt);
    let summary = trim::run(&inputs, &settings, &args.output, &context)?;
    super::warn_of_changes(&summary.changed_files);
    sum_up(global, &summary, |out| print(&summary, args, out))?;
    match summary.changed_files.is_empty() {
        true => Ok(Status::of_reading(summary.unreadable)),
        false => Ok(Status::SomeUnreadable),
    }
}

fn print(summary: &Summary, args: &Trim, out: &mut Out) -> Result<(), Failure> {
    let names = match args.unit {
        args::Unit::Line => ["line", "lines"],
        args::Unit::Paragraph => ["paragraph", "paragraphs"],
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
