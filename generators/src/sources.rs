//! What is generated from: files of other packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::command::quiet;
use testkit::repository;

/// The folder with the sources of a package that the lock file names.
///
/// # Errors
/// What cargo says, or that the lock file does not name it.
pub fn package_folder(name: &str) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    command.current_dir(repository());
    let metadata: serde_json::Value =
        serde_json::from_str(&quiet(command)?).map_err(|e| format!("cargo metadata: {e}"))?;
    metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == name)
        .and_then(|package| Path::new(package["manifest_path"].as_str()?).parent())
        .map(Path::to_owned)
        .ok_or_else(|| format!("cargo metadata names no package {name}"))
}
