//! Logs, to standard error. Nothing in them is of a document, and nothing that a client chose is unchecked.

use crate::config::Log;

/// Starts to write logs, if none are written yet.
pub(crate) fn start(log: Log) {
    let to_stderr = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .with_target(false)
        .with_writer(std::io::stderr);
    // Another subscriber of the process, as of tests, stays.
    let _set = match log {
        Log::Text => tracing::subscriber::set_global_default(to_stderr.finish()),
        Log::Json => {
            tracing::subscriber::set_global_default(to_stderr.json().flatten_event(true).finish())
        }
        Log::Off => Ok(()),
    };
}
