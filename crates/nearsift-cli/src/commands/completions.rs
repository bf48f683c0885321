//! `nearsift completions`: a script by which a shell completes the command line.

use clap_complete::generate;

use crate::args::Completions;
use crate::failure::Failure;
use crate::output::Out;
use crate::{Status, settings};

pub fn run(args: &Completions) -> Result<Status, Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut settings::command(), "nearsift", &mut script);
    let script = String::from_utf8(script).map_err(Failure::new)?;
    let mut out = Out::new();
    out.line(script.trim_end())?;
    out.finish()?;
    Ok(Status::Done)
}
