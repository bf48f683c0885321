//! `nearsift vectors`: checks golden vectors.

use std::fs::File;
use std::io::BufReader;

use nearsift::recipe::vectors::{Difference, Report, check_reader, evaluate};
use serde::Serialize;

use crate::Status;
use crate::args::{Global, Vectors};
use crate::failure::Failure;
use crate::output::{Out, escaped};

#[derive(Serialize)]
struct Checked<'r> {
    passed: u64,
    failed: u64,
    differences: Vec<Line<'r>>,
}

#[derive(Serialize)]
struct Line<'r> {
    line: u64,
    recipe: Option<&'r str>,
    message: String,
}

impl<'r> From<&'r Report> for Checked<'r> {
    fn from(report: &'r Report) -> Checked<'r> {
        let line = |d: &'r Difference| Line {
            line: d.line,
            recipe: d.recipe.as_deref(),
            message: d.to_string(),
        };
        Checked {
            passed: report.passed,
            failed: report.failed(),
            differences: report.differences.iter().map(line).collect(),
        }
    }
}

pub fn run(args: &Vectors, global: &Global) -> Result<Status, Failure> {
    let cannot = |e| Failure::at(&args.file, "read", &e);
    let file = BufReader::new(File::open(&args.file).map_err(cannot)?);
    let report = check_reader(file, &evaluate).map_err(cannot)?;
    let mut out = Out::new();
    if global.json {
        out.json(&Checked::from(&report))?;
    } else {
        for difference in &report.differences {
            out.line(&escaped(&difference.to_string()))?;
        }
        out.line(&format!("passed {}, failed {}", report.passed, report.failed()))?;
    }
    out.finish()?;
    // A file without a vector has shown nothing.
    let shown = report.passed > 0 && report.failed() == 0;
    Ok(if shown { Status::Done } else { Status::Nothing })
}
