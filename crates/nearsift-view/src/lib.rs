//! Finished runs of `nearsift dedup` in a browser: their groups, why each document goes, two documents side by side, other
//! thresholds, and pairs to review.
//!
//! [`View`] serves the page of `nearsift-server` on this machine, and answers its questions from the folder of the results and from
//! the run's input, where that is still there. `docs/use/view.md` shows it.
//!
//! | module | owns |
//! |---|---|
//! | `run` | an opened run: its results, its texts, the judgements of its reviewers |
//! | `routes` | the questions of the page, and their bounds |
//! | `query` | the parameters of a question |
//!
//! # What never happens
//!
//! - A file of the run or of its input is written. Judgements go to a file of their own, and only where one was named.
//! - A table of the run is in memory as a whole.
//! - A score, a difference or a verdict that is not the core's.
//! - A request of another machine, or of a page of another site, is answered.

mod query;
mod routes;
mod run;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use nearsift_io::ReadOptions;
pub use nearsift_server::StopSignals;
use nearsift_server::{LocalServer, ServeError};

use run::Run;

/// What is shown, and where.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ViewSettings {
    /// The folder of the results.
    pub run: PathBuf,
    /// A loopback address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The input of the run; empty for the files that the run lists, as far as they are still there.
    pub inputs: Vec<PathBuf>,
    /// How the input is read.
    pub reading: ReadOptions,
    /// The file that judgements of reviewers are appended to; `None` for a view that writes nothing.
    pub review: Option<PathBuf>,
    /// The language that the page begins with; `None` for the browser's.
    pub language: Option<Language>,
    /// The folder for the file without a name that holds the texts.
    pub scratch: PathBuf,
}

/// A language of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Chinese.
    Chinese,
    /// English.
    English,
}

impl Language {
    /// Its tag.
    pub fn tag(self) -> &'static str {
        match self {
            Language::Chinese => "zh",
            Language::English => "en",
        }
    }
}

impl ViewSettings {
    /// A run on a free port of this machine, with its own inputs, and nothing written.
    pub fn new(run: impl Into<PathBuf>) -> ViewSettings {
        ViewSettings {
            run: run.into(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            inputs: Vec::new(),
            reading: ReadOptions::default(),
            review: None,
            language: None,
            scratch: std::env::temp_dir(),
        }
    }
}

/// Why a run cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// The results, the input or the file of the judgements.
    #[error(transparent)]
    Run(#[from] nearsift_batch::Error),
    /// The address.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// A run that is shown.
pub struct View {
    server: LocalServer,
    run: Arc<Run>,
}

impl View {
    /// Opens the run, and listens. Texts are read in the background.
    ///
    /// # Errors
    /// A folder without results, unfinished or damaged ones; an input that was named and cannot be read; a file of judgements that
    /// cannot be written; an address that others reach, or that is taken.
    pub fn start(settings: ViewSettings) -> Result<View, ViewError> {
        let listen = settings.listen;
        let run = Arc::new(Run::open(settings)?);
        let server = LocalServer::start(listen, routes::router(&run))?;
        // Reads what the first list needs while the browser starts. Without the thread the first request reads it.
        let own = Arc::clone(&run);
        let reading = std::thread::Builder::new().name("nearsift-prepare".to_owned());
        drop(reading.spawn(move || drop(own.results.prepare())));
        Ok(View { server, run })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Why no texts are shown, where that is so.
    pub fn without_texts(&self) -> Option<&str> {
        self.run.without_texts()
    }

    /// Listens to SIGINT and SIGTERM. Call it before the address is printed: a signal before it ends the process at once.
    ///
    /// # Errors
    /// When the system sends no signals.
    pub fn stop_signals(&self) -> Result<StopSignals, ViewError> {
        Ok(self.server.stop_signals()?)
    }

    /// Runs until one of the signals comes.
    pub fn run(self, signals: StopSignals) {
        self.server.run(signals);
    }

    /// Stops.
    pub fn stop(self) {
        self.server.stop();
    }
}
