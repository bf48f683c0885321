//! `nearsift serve`: the HTTP service over a folder of collections.

use std::path::Path;

use nearsift_server::{Config, NewKey};

use crate::args::{Global, Serve};
use crate::failure::Failure;
use crate::output::{Out, Severity, tell};
use crate::{Status, environment};

pub fn run(args: &Serve, global: &Global) -> Result<Status, Failure> {
    if let Some(scope) = args.new_key {
        let made = NewKey::new(scope).map_err(Failure::new)?;
        let mut out = Out::new();
        out.line("# The key, for the client. It is shown this once, and kept nowhere:")?;
        out.line(&made.key)?;
        out.line("# Its line, for the file that --keys-file names:")?;
        out.line(&made.line)?;
        out.finish()?;
        return Ok(Status::Done);
    }
    let dir = match &args.dir {
        Some(dir) => dir,
        // The settings do not depend on it.
        None if args.print_config || args.ready => Path::new("."),
        None => {
            return Err(Failure::new("expected the folder of the collections: nearsift serve DIR"));
        }
    };
    let environment = |name: &str| match name {
        // As `--threads` stands for `--workers`.
        "NEARSIFT_WORKERS" => {
            environment::get(name).or_else(|| environment::get("NEARSIFT_THREADS"))
        }
        name => environment::get(name),
    };
    let file = args.config.clone().or_else(environment::config);
    let threads = global.threads.map(|threads| ("workers".to_owned(), threads.to_string()));
    // Of two for one setting the later counts.
    let flags: Vec<_> = threads.into_iter().chain(args.settings.0.iter().cloned()).collect();
    let config = Config::load(dir, file.as_deref(), environment, &flags).map_err(Failure::new)?;
    if args.print_config {
        let mut out = Out::new();
        out.line(config.print().trim_end())?;
        out.finish()?;
        return Ok(Status::Done);
    }
    if args.ready {
        return match nearsift_server::ready(&config).map_err(Failure::new)? {
            Ok(()) => Ok(Status::Done),
            Err(why) => {
                tell(Severity::Error, &why);
                Ok(Status::Nothing)
            }
        };
    }
    nearsift_server::serve(config).map_err(Failure::new)?;
    Ok(Status::Done)
}
