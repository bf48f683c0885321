//! The program `nearsift`: arguments -> settings -> one call. No algorithm lives here.
//!
//! The program is [`main`] of its own process: it sets a handler of signals and writes to the standard streams.
//!
//! ```no_run
//! let status = nearsift_cli::main(std::env::args_os());
//! std::process::exit(status.into());
//! ```

mod args;
mod calibration;
mod chinese;
mod commands;
mod environment;
mod examples;
mod failure;
mod interrupt;
mod language;
mod other_names;
mod output;
mod resolve;
mod settings;
mod terminal;

use std::ffi::OsString;

use args::{Cli, Color, Command, ProgressForm};
use failure::Failure;
use nearsift_batch::numbers::plural_of;
use output::{Severity, tell};

/// Runs the program with its arguments, the first being its name, and returns its exit status: 0 done, 1 nothing found, 2 a
/// usage or fatal error, 3 done but for documents that could not be read, 130 interrupted. A usage error ends the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match settings::command_line(&arguments) {
        Ok(cli) => cli,
        Err(failure) => {
            failure.tell();
            return failure.status();
        }
    };
    match cli.global.color {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
    match run(&cli) {
        Ok(status) => {
            terminal::tell_times();
            status.code()
        }
        Err(failure) => {
            failure.tell();
            failure.status()
        }
    }
}

/// An error or warning of the program in Chinese, where it is known: what [`main`] prints where the locale is Chinese. Lines of a message about
/// the command line that are indented belong to the line before them.
pub fn in_chinese(message: &str) -> Option<String> {
    chinese::translated(&settings::in_one_line(message))
}

fn run(cli: &Cli) -> Result<Status, Failure> {
    if let Some(threads) = cli.global.threads {
        rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads)).build_global().map_err(
            |e| {
                Failure::new(format!(
                    "cannot start {threads} threads: {e}; give a smaller --threads"
                ))
            },
        )?;
    }
    if cli.global.quiet {
        output::be_quiet();
        terminal::show(Some(ProgressForm::Off));
    }
    match &cli.command {
        Command::Dedup(args) => commands::dedup::run(args, &cli.global),
        Command::Trim(args) => commands::trim::run(args, &cli.global),
        Command::Decontaminate(args) => commands::decontaminate::run(args, &cli.global),
        Command::Sketch(args) => commands::parts::sketch(args, &cli.global),
        Command::Join(args) => commands::parts::join(args, &cli.global),
        Command::Apply(args) => commands::parts::apply(args, &cli.global),
        Command::Regroup(args) => commands::parts::regroup(args, &cli.global),
        Command::Pairs(args) => commands::pairs::run(args, &cli.global),
        Command::Fingerprint(args) => commands::fingerprint::run(args, &cli.global),
        Command::Compare(args) => commands::compare::run(args, &cli.global),
        Command::Why(args) => commands::why::run(args, &cli.global),
        Command::Clusters(args) => commands::clusters::run(args, &cli.global),
        Command::Keywords(args) => commands::keywords::run(args, &cli.global),
        Command::Recipes => commands::recipes::run(&cli.global),
        Command::Eval(args) => commands::eval::run(args, &cli.global),
        Command::Tune(args) => commands::tune::run(args, &cli.global),
        Command::Index(args) => commands::index::run(args, &cli.global),
        Command::Vectors(args) => commands::vectors::run(args, &cli.global),
        #[cfg(unix)]
        Command::View(args) => commands::view::run(args),
        #[cfg(unix)]
        Command::Serve(args) => commands::serve::run(args, &cli.global),
        Command::Bench(args) => commands::bench::run(args, &cli.global),
        Command::Completions(args) => commands::completions::run(args),
        Command::Man(args) => commands::man::run(args),
    }
}

/// How a command ended, when it did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    /// Everything was done.
    Done,
    /// What was asked for is not there: not near duplicates, vectors that fail.
    Nothing,
    /// Done, but some documents were unreadable.
    SomeUnreadable,
}

impl Status {
    /// The status of a command that could not read `unreadable` documents and files; warns of them.
    fn of_reading(unreadable: u64) -> Status {
        if unreadable == 0 {
            return Status::Done;
        }
        let what = plural_of(unreadable, ["document or file", "documents or files"]);
        tell(Severity::Warning, &format!("{what} could not be read; all others were"));
        Status::SomeUnreadable
    }
}

impl Status {
    fn code(self) -> u8 {
        match self {
            Status::Done => 0,
            Status::Nothing => 1,
            Status::SomeUnreadable => 3,
        }
    }
}
