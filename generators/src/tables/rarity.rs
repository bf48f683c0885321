//! Counts `crates/nearsift/data/rarity.bin`, the shipped document frequencies of hashed features,
//! over documents drawn word by word from published counts of words. `docs/understand/rarity.md` says why, and
//! how good it is; the reader is `nearsift::feature::frequency`.

use std::path::{Path, PathBuf};
use std::process::Command;

use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::{Fingerprinter, Recipe};
use testkit::command::quiet;
use testkit::random::Random;
use testkit::repository;
use xxhash_rust::xxh3::xxh3_64;

use super::Mode;
use crate::sources::package_folder;

/// The table, from the root of the repository.
pub const TABLE: &str = "crates/nearsift/data/rarity.bin";

/// The documents drawn for each language. The rarest feature that the table tells from an unknown one
/// is in 26 of them.
const DOCUMENTS: u32 = 1 << 15;

/// The number of words of a document: at least the first, and less than both together.
const WORDS: (usize, usize) = (40, 320);

/// Features are counted apart where they differ in the top bits of their hash.
const LOG2_COUNTS: u32 = 24;
const LOG2_ENTRIES: u32 = 20;

/// English words with their counts: the PyPI package symspellpy, MIT.
const ENGLISH: Wheel = Wheel {
    requirement: "symspellpy==6.10.1",
    sha256: "a653a6c125839a21ada87c3e044d690fc3b39872efbd7b7270db3de9471315e1",
    file: "symspellpy/frequency_dictionary_en_82_765.txt",
    xxh3: 0x3d76_3383_0c1d_c08f,
};

/// Writes or checks the table.
///
/// # Errors
/// A sentence for the terminal: the sources were not found or are not understood, the file could
/// not be written, or, when checking, it differs.
pub fn run(mode: Mode) -> Result<(), String> {
    let path = package_folder("jieba-rs")?.join("src/data/dict.txt");
    let chinese = std::fs::read_to_string(&path).map_err(|e| at(&path, &e))?;
    mode.apply(TABLE, &build(&chinese, &ENGLISH.read()?, DOCUMENTS)?)
}

/// The bytes of the table for two lists of words (`word count` a line; what follows is not read).
///
/// # Errors
/// A sentence that names the line.
fn build(chinese: &str, english: &str, documents: u32) -> Result<Vec<u8>, String> {
    let recipe = Recipe::parse("simhash64").map_err(|e| e.to_string())?;
    let mut features = recipe.counter();
    let mut counts = vec![0; 1 << LOG2_COUNTS];
    // Of one size, so that each language's frequencies are relative to its own documents.
    for (list, separator) in [(chinese, ""), (english, " ")] {
        Words::parse(list)?.count(separator, documents, &mut features, &mut counts);
    }
    let table = DocumentFrequencies::from_counts(documents.into(), &counts, LOG2_ENTRIES);
    Ok(table.to_bytes())
}

/// The words of a language, to be drawn by their counts.
struct Words<'t> {
    words: Vec<&'t str>,
    /// The counts summed up to and including each word.
    sums: Vec<usize>,
}

impl<'t> Words<'t> {
    fn parse(list: &'t str) -> Result<Words<'t>, String> {
        let (mut words, mut sums) = (Vec::new(), Vec::new());
        let mut sum = 0;
        for (line, number) in list.trim_start_matches('\u{feff}').lines().zip(1..) {
            let mut fields = line.split_whitespace();
            let (word, count) = fields
                .next()
                .zip(fields.next().and_then(|count| count.parse::<usize>().ok()))
                .ok_or_else(|| format!("word counts, line {number}: '{line}'"))?;
            sum += count;
            words.push(word);
            sums.push(sum);
        }
        if sum == 0 { Err("no word has a count".to_owned()) } else { Ok(Words { words, sums }) }
    }

    /// Draws documents, each word without regard to the others, and adds each to the counts of its
    /// distinct features.
    fn count(
        &self,
        separator: &str,
        documents: u32,
        features: &mut Fingerprinter<'_>,
        counts: &mut [u32],
    ) {
        let total = self.sums.last().copied().unwrap_or(0);
        let mut text = String::new();
        for document in 0..documents {
            let mut random = Random::of_item(0, document.into());
            text.clear();
            for _ in 0..WORDS.0 + random.below(WORDS.1) {
                let drawn = random.below(total);
                text.push_str(self.words[self.sums.partition_point(|&sum| sum <= drawn)]);
                text.push_str(separator);
            }
            for hash in features.count(&text).0 {
                counts[(hash >> (64 - LOG2_COUNTS)) as usize] += 1;
            }
        }
    }
}

/// A file of a package for Python, pinned.
struct Wheel {
    requirement: &'static str,
    sha256: &'static str,
    file: &'static str,
    /// The XXH3-64 of the file.
    xxh3: u64,
}

impl Wheel {
    /// The file's text, from the target folder, where pip puts it when it is not there yet.
    fn read(&self) -> Result<String, String> {
        let folder = repository().join("target/rarity");
        let file = folder.join(self.file);
        if let Ok(text) = self.checked(&file) {
            return Ok(text);
        }
        self.install(&folder)
            .map_err(|e| format!("{} is needed, from PyPI by pip: {e}", self.requirement))?;
        self.checked(&file)
    }

    fn checked(&self, file: &Path) -> Result<String, String> {
        let text = std::fs::read_to_string(file).map_err(|e| at(file, &e))?;
        if xxh3_64(text.as_bytes()) == self.xxh3 {
            return Ok(text);
        }
        Err(format!("{} is not the file of {}", file.display(), self.requirement))
    }

    fn install(&self, folder: &Path) -> Result<(), String> {
        std::fs::create_dir_all(folder).map_err(|e| at(folder, &e))?;
        let pinned: PathBuf = folder.join("requirements.txt");
        std::fs::write(&pinned, format!("{} --hash=sha256:{}\n", self.requirement, self.sha256))
            .map_err(|e| at(&pinned, &e))?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(["--no-deps", "--no-compile", "--only-binary", ":all:", "--require-hashes"])
            .args(["--upgrade", "--target"])
            .arg(folder)
            .arg("--requirement")
            .arg(&pinned);
        quiet(pip).map(drop)
    }
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_words_are_common_features() {
        let chinese = "的 900 uj\n中国 90 ns\n饕餮 1 n\n";
        let english = "the 900\nzebra 50\nquagga 1\n";
        let bytes = build(chinese, english, 500).unwrap();
        assert_eq!(bytes, build(chinese, english, 500).unwrap());
        let table = DocumentFrequencies::from_bytes(&bytes).unwrap();
        let idf = |feature| table.idf_sixteenths(nearsift::feature::hash_token(feature));
        assert_eq!(idf("的的"), idf("the"));
        assert!(idf("的的") < 11 && idf("中国的") < idf("饕餮的"));
        assert!(idf("thethe") == 165 && idf("ethet") < 11 && idf("zebra") < idf("quagg"));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (list, expect) in [("a 1\nb\n", "line 2"), ("a x\n", "line 1"), ("", "no word")] {
            let error = build("的 1\n", list, 1).unwrap_err();
            assert!(error.contains(expect), "{error}");
        }
    }
}
