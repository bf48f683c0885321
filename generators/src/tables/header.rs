//! The header of the C library, by cbindgen.

use std::path::PathBuf;

use cbindgen::{Builder, Config};
use testkit::repository;

use super::Mode;

/// The crate whose functions the header declares.
const CRATE: &str = "bindings/c";

/// Writes or checks the header.
pub fn run(mode: Mode) -> Result<(), String> {
    let root = repository().join(CRATE);
    let config = Config::from_file(root.join("cbindgen.toml"))
        .map_err(|e| format!("{CRATE}/cbindgen.toml: {e}"))?;
    let sources = sources(&root.join("src"))?;
    let builder = sources.iter().fold(Builder::new().with_config(config), Builder::with_src);
    let bindings = builder.generate().map_err(|e| format!("{CRATE}: {e}"))?;
    let mut header = Vec::new();
    bindings.write(&mut header);
    mode.apply(&format!("{CRATE}/include/nearsift.h"), &header)
}

/// The crate's modules in the order of their names, which is that of the header's parts.
fn sources(folder: &std::path::Path) -> Result<Vec<PathBuf>, String> {
    let error = |e: std::io::Error| format!("{}: {e}", folder.display());
    let files: Result<Vec<PathBuf>, _> =
        std::fs::read_dir(folder).map_err(error)?.map(|file| Ok(file?.path())).collect();
    let mut files = files.map_err(error)?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.sort_unstable();
    Ok(files)
}
