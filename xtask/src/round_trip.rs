//! What the program keeps of Parquet files with odd columns, compared by pyarrow.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::Outcome;
use crate::tools::{cargo, quiet, repository, works};

/// The version that the files are made and compared with.
const PYARROW: &str = "pyarrow==26.0.1";

/// Makes the files, removes their duplicates, and compares every column, the schema and the metadata. Without Python or the
/// network there is nothing to compare with, and the step says so.
pub fn run() -> Outcome {
    let python = match interpreter() {
        Ok(python) => python,
        Err(why) => {
            let why = why.lines().last().unwrap_or_default().to_owned();
            return Ok(format!("skipped: no {PYARROW}: {why}"));
        }
    };
    let folder = repository().join("target/pyarrow/files");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    script(&python, "make", &folder)?;
    let mut dedup = cargo(&["run", "--quiet", "--locked", "--package", "nearsift-cli", "--"]);
    dedup.arg("dedup").arg(folder.join("in")).arg("--output").arg(folder.join("out")).arg("-q");
    quiet(dedup)?;
    script(&python, "compare", &folder).map(|told| told.trim().to_owned())
}

fn script(python: &Path, what: &str, folder: &Path) -> Outcome {
    let mut command = Command::new(python);
    command.arg(repository().join("xtask/src/round_trip.py")).arg(what).arg(folder);
    quiet(command)
}

/// An interpreter that has pyarrow, in the target folder.
fn interpreter() -> Result<PathBuf, String> {
    let venv = repository().join("target/pyarrow/venv");
    let python = venv.join("bin/python");
    let has = || {
        let mut command = Command::new(&python);
        let (_, version) = PYARROW.split_once("==").unwrap_or_default();
        let check = format!("import pyarrow; assert pyarrow.__version__ == '{version}'");
        command.args(["-c", &check]);
        python.exists() && works(command)
    };
    if !has() {
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(&venv);
        quiet(make)?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PYARROW]);
        quiet(install)?;
    }
    Ok(python)
}
