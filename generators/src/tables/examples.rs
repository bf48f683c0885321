//! The generated files of `examples/`, made from `examples/source` by `testkit::examples`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use testkit::examples::{Generated, examples_dir, generate};

use super::Mode;

/// Writes or checks the corpus, its pages and its truth.
///
/// # Errors
///
/// A mistake in a source, a file that cannot be read or written or, when checking, the first file
/// that is not what the sources give.
pub fn run(mode: Mode) -> Result<(), String> {
    let files = generate().map_err(|mistake| mistake.to_string())?;
    let root = examples_dir();
    for stale in stale_pages(&root, &files)? {
        match mode {
            Mode::Write => std::fs::remove_file(&stale).map_err(|e| at(&stale, &e))?,
            Mode::Check => {
                return Err(format!(
                    "{} is made by no source of examples/source: run cargo xtask tables examples",
                    stale.display()
                ));
            }
        }
    }
    for file in &files {
        if mode == Mode::Write
            && let Some(folder) = root.join(&file.path).parent()
        {
            std::fs::create_dir_all(folder).map_err(|e| at(folder, &e))?;
        }
        mode.apply(&format!("examples/{}", file.path), &file.bytes)?;
    }
    Ok(())
}

/// The pages on disk that no document asks for any more, as after a renamed document.
fn stale_pages(root: &Path, files: &[Generated]) -> Result<Vec<PathBuf>, String> {
    let wanted = files.iter().map(|f| root.join(&f.path)).collect::<BTreeSet<_>>();
    let mut stale = Vec::new();
    let pages = root.join("pages");
    if !pages.exists() {
        return Ok(stale);
    }
    for folder in entries(&pages)? {
        stale.extend(entries(&folder)?.into_iter().filter(|page| !wanted.contains(page)));
    }
    Ok(stale)
}

/// What a folder holds, by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut paths = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>())
        .map_err(|e| at(folder, &e))?;
    paths.sort();
    Ok(paths)
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
