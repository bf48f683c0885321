//! `nearsift vectors`: checks golden vectors.

use nearsift::recipe::vectors::check;

use crate::Status;
use crate::args::Vectors;
use crate::failure::Failure;
use crate::output::{Out, escaped};

pub fn run(args: &Vectors) -> Result<Status, Failure> {
    let bytes = std::fs::read(&args.file).map_err(|e| Failure::at(&args.file, "read", &e))?;
    let text = String::from_utf8_lossy(&bytes);
    let report = check(text.lines());
    let mut out = Out::new();
    for difference in &report.differences {
        out.line(&escaped(&difference.to_string()))?;
    }
    out.line(&format!("passed {}, failed {}", report.passed, report.failed))?;
    out.finish()?;
    Ok(if report.failed == 0 { Status::Done } else { Status::Nothing })
}
