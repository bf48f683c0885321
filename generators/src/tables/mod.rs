//! Tables that are generated once, committed, and read at build time or embedded.

mod examples;
mod header;
mod normalise;
mod rarity;
mod words;

use std::path::Path;

use testkit::repository;

/// A generated table.
pub struct Table {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Which files it writes, from which source.
    pub about: &'static str,
    /// Writes or checks them: computes their bytes and hands each file to [`Mode::apply`].
    pub run: fn(Mode) -> Result<(), String>,
}

/// Every table.
pub const TABLES: &[Table] = &[
    Table {
        name: "normalise",
        about: "normalisation and script classes, from the Unicode data and OpenCC's dictionary",
        run: normalise::run,
    },
    Table {
        name: "words",
        about: "the word segmenter's double array, from jieba's dictionary and IDF list",
        run: words::run,
    },
    Table {
        name: "rarity",
        about: "document frequencies of features, from word counts of jieba and of symspellpy",
        run: rarity::run,
    },
    Table {
        name: "examples",
        about: "the example corpus, its pages in three charsets and its truth, from examples/source",
        run: examples::run,
    },
    Table { name: "header", about: "the C header, from bindings/c/src", run: header::run },
];

/// What to do with the bytes of a generated file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Write them.
    Write,
    /// Fail when the committed file holds others.
    Check,
}

impl Mode {
    /// Writes the bytes to a path below the repository's root, or compares them with that file.
    pub fn apply(self, path: &str, bytes: &[u8]) -> Result<(), String> {
        self.apply_below(repository(), path, bytes)
    }

    fn apply_below(self, root: &Path, path: &str, bytes: &[u8]) -> Result<(), String> {
        let file = root.join(path);
        let found = std::fs::read(&file).ok();
        if found.as_deref() == Some(bytes) {
            return Ok(());
        }
        match self {
            Mode::Write => {
                println!("{path}: {} bytes", bytes.len());
                std::fs::write(&file, bytes).map_err(|e| format!("{path}: {e}"))
            }
            Mode::Check => Err(format!(
                "{path} is not what its generator writes ({} bytes expected, {} found): run cargo xtask tables",
                bytes.len(),
                found.map_or_else(|| "none".to_owned(), |f| f.len().to_string()),
            )),
        }
    }
}

/// Runs the named tables, or all.
pub fn run(only: &[String], mode: Mode) -> Result<(), String> {
    if let Some(unknown) = only.iter().find(|name| TABLES.iter().all(|t| t.name != **name)) {
        let known: Vec<String> =
            TABLES.iter().map(|t| format!("{}: {}", t.name, t.about)).collect();
        return Err(format!("no table '{unknown}': expected one of\n{}", known.join("\n")));
    }
    TABLES
        .iter()
        .filter(|table| only.is_empty() || only.iter().any(|name| name == table.name))
        .try_for_each(|table| (table.run)(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is quick, so that `cargo test` finds a stale header as well as `cargo xtask test tables`.
    #[test]
    fn the_c_header_is_up_to_date() {
        assert_eq!(header::run(Mode::Check), Ok(()));
    }

    #[test]
    fn checking_changes_nothing_and_tells_what_is_stale() {
        let dir = std::env::temp_dir().join(format!("nearsift-tables-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let stale = Mode::Check.apply_below(&dir, "t.bin", b"new").unwrap_err();
        assert!(stale.contains("3 bytes expected, none found"), "{stale}");
        Mode::Write.apply_below(&dir, "t.bin", b"new").unwrap();
        assert_eq!(Mode::Check.apply_below(&dir, "t.bin", b"new"), Ok(()));
        assert!(Mode::Check.apply_below(&dir, "t.bin", b"newer").is_err());
        assert_eq!(std::fs::read(dir.join("t.bin")).unwrap(), b"new");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
