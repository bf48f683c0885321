//! What ends the program early, and with which status.

use std::fmt;
use std::io;
use std::path::Path;

use nearsift_batch::Error;

use crate::output::{Severity, option, tell};

/// The reason why a command cannot go on.
#[derive(Debug)]
pub enum Failure {
    /// A message for the user.
    Message(String),
    /// Standard output was closed by its reader: nothing to say, nothing wrong.
    ClosedPipe,
    /// The user asked to stop.
    Interrupted {
        /// Whether `--resume` goes on with the work.
        is_resumable: bool,
    },
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
            Failure::ClosedPipe => {}
            failure => tell(Severity::Error, &failure.to_string()),
        }
    }

    pub fn status(&self) -> u8 {
        match self {
            Failure::Message(_) => 2,
            Failure::ClosedPipe => 0,
            Failure::Interrupted { .. } => 130,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Message(message) => message,
            Failure::Interrupted { is_resumable: true } => {
                "interrupted: the work so far is kept; go on with --resume"
            }
            Failure::Interrupted { is_resumable: false } => "interrupted: nothing was written",
            Failure::ClosedPipe => "standard output was closed",
        })
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    /// In the words of the command line: settings are options here.
    fn from(error: Error) -> Failure {
        match error {
            Error::Interrupted { is_resumable } => Failure::Interrupted { is_resumable },
            // What the program's own function returned to the job.
            Error::Caller(own) => match own.downcast::<Failure>() {
                Ok(failure) => *failure,
                Err(other) => Failure::new(other),
            },
            error => Failure::Message(nearsift_batch::spell(&error.to_string(), option)),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::of_caller(failure)
    }
}

impl From<nearsift_io::Error> for Failure {
    fn from(error: nearsift_io::Error) -> Failure {
        Failure::from(Error::Input(error))
    }
}

impl From<nearsift_store::StoreError> for Failure {
    fn from(error: nearsift_store::StoreError) -> Failure {
        Failure::new(error)
    }
}

impl From<nearsift::recipe::RecipeError> for Failure {
    fn from(error: nearsift::recipe::RecipeError) -> Failure {
        Failure::new(error)
    }
}
