//! What the program keeps of Parquet files with odd columns, compared by pyarrow.

use std::path::Path;
use std::process::Command;

use crate::steps::Outcome;
use crate::tools::{program, python_with, quiet, repository, skipped_without};

/// The version that the files are made and compared with.
const PYARROW: &str = "pyarrow==26.0.1";

/// Makes the files, removes their duplicates, and compares every column, the schema and the metadata. Without Python or the
/// network there is nothing to compare with, and the step says so.
pub fn run() -> Outcome {
    let folder = repository().join("target/pyarrow");
    let python = match python_with(&[PYARROW], &folder) {
        Ok(programs) => programs.join("python"),
        Err(why) => return Ok(skipped_without(PYARROW, &why)),
    };
    let folder = folder.join("files");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    script(&python, "make", &folder)?;
    let mut dedup = Command::new(program("nearsift")?);
    dedup.arg("dedup").arg(folder.join("in")).arg("--output").arg(folder.join("out")).arg("-q");
    quiet(dedup)?;
    script(&python, "compare", &folder).map(|told| told.trim().to_owned())
}

fn script(python: &Path, what: &str, folder: &Path) -> Outcome {
    let mut command = Command::new(python);
    command.arg(repository().join("xtask/src/round_trip.py")).arg(what).arg(folder);
    quiet(command)
}
