//! What ends the program early, and with which status.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::interrupt;
use crate::output::{Level, tell};

/// The reason why a command cannot go on.
#[derive(Debug)]
pub enum Failure {
    /// A message for the user.
    Message(String),
    /// Whoever read standard output has gone: nothing to say, nothing wrong.
    ClosedPipe,
    /// The user asked to stop.
    Interrupted,
}

impl Failure {
    pub fn new(message: impl fmt::Display) -> Failure {
        Failure::Message(message.to_string())
    }

    /// A file that cannot be read or written.
    pub fn at(path: &Path, action: &str, error: &io::Error) -> Failure {
        Failure::Message(format!("{}: cannot {action}: {error}", path.display()))
    }

    /// Says what happened, on standard error.
    pub fn tell(&self) {
        match self {
            Failure::Message(message) => tell(Level::Error, message),
            Failure::Interrupted if interrupt::keeps_work() => {
                tell(Level::Error, "interrupted: the work so far is kept; go on with --resume");
            }
            Failure::Interrupted => tell(Level::Error, "interrupted: nothing was written"),
            Failure::ClosedPipe => {}
        }
    }

    pub fn status(&self) -> ExitCode {
        match self {
            Failure::Message(_) => ExitCode::from(2),
            Failure::ClosedPipe => ExitCode::SUCCESS,
            Failure::Interrupted => ExitCode::from(130),
        }
    }
}

impl From<nearsift_io::Error> for Failure {
    fn from(error: nearsift_io::Error) -> Failure {
        Failure::new(error)
    }
}

impl From<nearsift::recipe::RecipeError> for Failure {
    fn from(error: nearsift::recipe::RecipeError) -> Failure {
        Failure::new(error)
    }
}
