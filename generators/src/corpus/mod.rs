//! `cargo xtask generate-corpus`: documents for measurements at scale, as JSON lines and as Parquet.
//!
//! The text has the word statistics of the dictionary and of the repository's own English pages. Every
//! document carries its truth: `origin`, `edit` and `rate`, as `nearsift eval --truth fields` reads it.

mod text;
mod vocabulary;
mod write;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use testkit::repository;

use crate::sources::package_folder;
use text::{Corpus, Settings};
use vocabulary::Vocabulary;

/// What is generated, and where it goes.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The number of documents, of about 1.5 KB each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=u64::from(u32::MAX)))]
    documents: u64,
    /// The folder for the files; it is made
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Another seed is another corpus
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many of 1,000 documents are near-duplicates of an earlier one
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(0..=900))]
    duplicates: u32,
    /// The format of the files
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,
    /// Documents of a file
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    file_documents: u64,
    /// Files that are written at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
}

/// The format of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// JSON lines, compressed by zstd.
    Jsonl,
    /// Parquet, compressed by zstd.
    Parquet,
}

/// English pages whose words are counted, and folders of them.
const PAGES: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/use",
    "docs/understand",
    "docs/operate",
    "examples/README.md",
    "examples/corpus.jsonl",
];

/// The files of [`PAGES`]; those of a folder by their names.
///
/// # Errors
/// A sentence for the terminal: which folder could not be read.
fn pages() -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for page in PAGES.map(|page| repository().join(page)) {
        if !page.is_dir() {
            files.push(page);
            continue;
        }
        let failed = |e: std::io::Error| format!("{}: {e}", page.display());
        let entries = std::fs::read_dir(&page).map_err(failed)?;
        let mut inside: Vec<PathBuf> = entries
            .map(|entry| entry.map(|e| e.path()))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        inside.sort();
        files.append(&mut inside);
    }
    Ok(files)
}

/// Writes the corpus.
///
/// # Errors
/// A sentence for the terminal: what could not be read or written.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let dictionary = read(package_folder("jieba-rs")?.join("src/data/dict.txt"))?;
    let pages: Vec<String> = pages()?.into_iter().map(read).collect::<Result<_, _>>()?;
    let settings = Settings {
        documents: arguments.documents,
        seed: arguments.seed,
        duplicates_per_mille: arguments.duplicates,
    };
    let corpus = Corpus::new(
        settings,
        Vocabulary::chinese(&dictionary)?,
        Vocabulary::english(pages.iter().map(String::as_str))?,
    );
    let written = write::files(&corpus, arguments)?;
    println!(
        "{} documents, {} bytes of text, {} bytes in {} files below {}",
        settings.documents,
        written.text_bytes,
        written.file_bytes,
        written.files,
        arguments.out.display()
    );
    Ok(())
}
