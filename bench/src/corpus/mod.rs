//! A generated corpus for the deduplication benchmark: documents of about 1 KB, Chinese and English,
//! of which a given part are near-duplicates of an earlier document, made by known edits.
//!
//! A document is decided by the settings and its number alone, on any platform: a duplicate is written
//! by generating its original again, so that writing takes no memory that grows with the corpus.

pub mod lexicon;

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use lexicon::{Lexicon, WORDS};
use testkit::prose::{Part, push_chinese, push_english};
use testkit::random::Random;

/// Changes with the text that the same settings give.
const GENERATION: u32 = 1;

/// Ends a sentence, in place of a word.
const STOP: u16 = u16::MAX;

/// Parts a sentence, in place of a word.
const COMMA: u16 = u16::MAX - 1;

/// What decides a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The number of documents.
    pub documents: u64,
    /// Another seed is another corpus.
    pub seed: u64,
    /// How many of 1,000 documents are Chinese; the others are English.
    pub chinese_per_mille: u32,
    /// How many of 1,000 documents are near-duplicates of an earlier one.
    pub duplicates_per_mille: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            documents: 1_000_000,
            seed: 1,
            chinese_per_mille: 500,
            duplicates_per_mille: 100,
        }
    }
}

/// How a near-duplicate differs from its original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edit {
    /// Not at all.
    Exact,
    /// One word in 100 is another one.
    Replace1,
    /// One word in 20 is another one.
    Replace5,
    /// One word is put in for every 50.
    Insert,
    /// One word in 50 is left out.
    Delete,
    /// One sentence stands elsewhere, if there are several.
    Move,
    /// A sentence is added at the end, the same under many documents.
    Append,
}

impl Edit {
    /// All of them; equally many duplicates are made by each.
    pub const ALL: [Edit; 7] = [
        Edit::Exact,
        Edit::Replace1,
        Edit::Replace5,
        Edit::Insert,
        Edit::Delete,
        Edit::Move,
        Edit::Append,
    ];

    /// The name in the file of the truth.
    pub fn name(self) -> &'static str {
        match self {
            Edit::Exact => "exact",
            Edit::Replace1 => "replace-1%",
            Edit::Replace5 => "replace-5%",
            Edit::Insert => "insert-2%",
            Edit::Delete => "delete-2%",
            Edit::Move => "move",
            Edit::Append => "append",
        }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The original of a near-duplicate, and what was done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The number of the original, which is not a duplicate itself.
    pub original: u64,
    /// The kind of edit.
    pub edit: Edit,
}

/// A corpus, ready to give any of its documents.
pub struct Corpus {
    settings: Settings,
    chinese: Lexicon,
    english: Lexicon,
}

/// A corpus on disk.
#[derive(Debug, Clone)]
pub struct Files {
    /// One document on each line: `{"id","text","date","score"}`.
    pub documents: PathBuf,
    /// The near-duplicates: id, id of the original, edit; separated by tabs, under a line of names.
    pub truth: PathBuf,
}

impl Corpus {
    /// The corpus of these settings.
    pub fn new(settings: Settings) -> Corpus {
        Corpus { settings, chinese: Lexicon::chinese(), english: Lexicon::english() }
    }

    /// Where document `index` comes from, if it is a near-duplicate. The first document never is.
    pub fn origin(&self, index: u64) -> Option<Origin> {
        let mut random = Random::of_item(self.settings.seed ^ 0x6f72_6967_696e, index);
        if index == 0 || !random.per_mille(self.settings.duplicates_per_mille) {
            return None;
        }
        let edit = *random.pick(&Edit::ALL);
        let mut original = random.below(index as usize) as u64;
        // A duplicate of a duplicate would differ from the first by both edits.
        while let Some(origin) = self.origin(original) {
            original = origin.original;
        }
        Some(Origin { original, edit })
    }

    /// Appends the text of document `index`.
    pub fn push_text(&self, index: u64, text: &mut String) {
        let origin = self.origin(index);
        let source = origin.map_or(index, |origin| origin.original);
        let mut random = Random::of_item(self.settings.seed, source);
        let chinese = random.per_mille(self.settings.chinese_per_mille);
        let lexicon = if chinese { &self.chinese } else { &self.english };
        let mut words = compose(lexicon, &mut random);
        if let Some(origin) = origin {
            let mut random = Random::of_item(self.settings.seed ^ 0x6564_6974, index);
            apply(origin.edit, &mut words, lexicon, &mut random);
        }
        let parts = words.iter().map(|&word| part(lexicon, word));
        if chinese {
            push_chinese(parts, text);
        } else {
            push_english(parts, text);
        }
    }

    /// Appends document `index` as a line of JSON.
    pub fn push_line(&self, index: u64, line: &mut String) {
        use fmt::Write;
        let mut random = Random::of_item(self.settings.seed ^ 0x6669_656c_6473, index);
        // The words hold nothing that JSON escapes.
        write!(line, r#"{{"id":"{}","text":""#, id(index)).expect("strings take all");
        self.push_text(index, line);
        let (year, month, day) =
            (2015 + random.below(10), 1 + random.below(12), 1 + random.below(28));
        let (whole, tenth) = (random.below(100), random.below(10));
        writeln!(line, r#"","date":"{year}-{month:02}-{day:02}","score":{whole}.{tenth}}}"#)
            .expect("strings take all");
    }

    /// The corpus as files in a folder of its own below `dir`, named by the settings; written if they
    /// are not there already.
    pub fn write(&self, dir: &Path) -> io::Result<Files> {
        let Settings { documents, seed, chinese_per_mille, duplicates_per_mille } = self.settings;
        let name = format!(
            "corpus-v{GENERATION}-{documents}-seed{seed}-zh{chinese_per_mille}-dup{duplicates_per_mille}"
        );
        let dir = dir.join(name);
        let files = Files { documents: dir.join("docs.jsonl"), truth: dir.join("truth.tsv") };
        // The truth is the last to get its name: it is there only when all is.
        if files.truth.is_file() {
            return Ok(files);
        }
        std::fs::create_dir_all(&dir)?;
        let partial = |path: &Path| path.with_extension("partial");
        let mut lines = BufWriter::with_capacity(1 << 20, File::create(partial(&files.documents))?);
        let mut truth = BufWriter::new(File::create(partial(&files.truth))?);
        writeln!(truth, "id\toriginal\tedit")?;
        let mut line = String::new();
        for index in 0..documents {
            line.clear();
            self.push_line(index, &mut line);
            lines.write_all(line.as_bytes())?;
            if let Some(Origin { original, edit }) = self.origin(index) {
                writeln!(truth, "{}\t{}\t{edit}", id(index), id(original))?;
            }
        }
        lines.flush()?;
        truth.flush()?;
        std::fs::rename(partial(&files.documents), &files.documents)?;
        std::fs::rename(partial(&files.truth), &files.truth)?;
        Ok(files)
    }
}

/// The id of document `index`.
pub fn id(index: u64) -> String {
    format!("d{index:08}")
}

/// Words and marks of a text of about 1 KB: 400 to 1,300 bytes and the rest of the last sentence.
fn compose(lexicon: &Lexicon, random: &mut Random) -> Vec<u16> {
    let target = 400 + random.below(900);
    // Half of the words come from all of the lexicon and half from the document's own corner of it:
    // texts on two subjects share fewer words than their language would make them.
    let subject = random.below(WORDS);
    let mut words = Vec::with_capacity(320);
    let mut bytes = 0;
    while bytes < target {
        let length = 6 + random.below(12);
        for position in 1..=length {
            if random.below(4) == 0 {
                let particle = lexicon.particle(random);
                bytes += lexicon.word(particle).len() + 1;
                words.push(particle);
            }
            let word = word_on(subject, lexicon, random);
            bytes += lexicon.word(word).len() + 1;
            words.push(word);
            if position % 6 == 0 && position < length {
                words.push(COMMA);
            }
        }
        words.push(STOP);
    }
    words
}

#[inline]
fn word_on(subject: usize, lexicon: &Lexicon, random: &mut Random) -> u16 {
    let word = lexicon.draw(random);
    if random.next_u64() >> 63 == 0 {
        return word;
    }
    ((usize::from(word) + subject) % WORDS) as u16
}

fn apply(edit: Edit, words: &mut Vec<u16>, lexicon: &Lexicon, random: &mut Random) {
    let count = words.len();
    // A place that holds a word: marks stay.
    let place = |words: &[u16], random: &mut Random| {
        loop {
            let at = random.below(words.len());
            if words[at] < COMMA {
                return at;
            }
        }
    };
    match edit {
        Edit::Exact => {}
        Edit::Replace1 | Edit::Replace5 => {
            let share = if edit == Edit::Replace1 { 100 } else { 20 };
            for _ in 0..(count / share).max(1) {
                let at = place(words, random);
                let old = words[at];
                while words[at] == old {
                    words[at] = lexicon.draw(random);
                }
            }
        }
        Edit::Insert => {
            for _ in 0..(count / 50).max(1) {
                let at = place(words, random);
                words.insert(at, lexicon.draw(random));
            }
        }
        Edit::Delete => {
            for _ in 0..(count / 50).max(1) {
                let at = place(words, random);
                words.remove(at);
            }
        }
        Edit::Move => {
            let mut sentences: Vec<Vec<u16>> =
                words.split_inclusive(|&word| word == STOP).map(<[u16]>::to_vec).collect();
            if let Some(others) = sentences.len().checked_sub(1).filter(|&n| n > 0) {
                let (from, to) = (random.below(others + 1), random.below(others));
                let moved = sentences.remove(from);
                sentences.insert(if to < from { to } else { to + 1 }, moved);
            }
            *words = sentences.concat();
        }
        Edit::Append => {
            // One of sixteen notices that stand under many documents.
            let mut notice = Random::of_item(0x6e6f_7469_6365, random.below(16) as u64);
            words.extend((0..10).map(|_| lexicon.draw(&mut notice)));
            words.push(STOP);
        }
    }
}

/// A word or a mark as it is written.
fn part(lexicon: &Lexicon, word: u16) -> Part<'_> {
    match word {
        STOP => Part::Stop,
        COMMA => Part::Comma,
        word => Part::Word(lexicon.word(word)),
    }
}

#[cfg(test)]
mod tests;
