//! `nearsift vectors`: checks golden vectors.

use std::fs::File;
use std::io::BufReader;

use nearsift::recipe::vectors::{check_reader, evaluate};

use crate::Status;
use crate::args::Vectors;
use crate::failure::Failure;
use crate::output::{Out, escaped};

pub fn run(args: &Vectors) -> Result<Status, Failure> {
    let cannot = |e| Failure::at(&args.file, "read", &e);
    let file = BufReader::new(File::open(&args.file).map_err(cannot)?);
    let report = check_reader(file, &evaluate).map_err(cannot)?;
    let mut out = Out::new();
    for difference in &report.differences {
        out.line(&escaped(&difference.to_string()))?;
    }
    out.line(&format!("passed {}, failed {}", report.passed, report.failed()))?;
    out.finish()?;
    Ok(if report.failed() == 0 { Status::Done } else { Status::Nothing })
}
