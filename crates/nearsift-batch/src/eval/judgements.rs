//! Judgements of reviewers on pairs: a truth file that grows line by line.
//!
//! Every judgement is appended and synced, and none is ever changed: of a pair the last one counts, here and for the truth that
//! [`eval`](super::run) reads.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nearsift::evaluate::wilson_interval;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::lock;

/// What a reviewer says of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JudgedLabel {
    /// Near duplicates.
    #[serde(rename = "POS")]
    Same,
    /// No near duplicates.
    #[serde(rename = "NEG")]
    Different,
    /// The reviewer cannot say: such pairs count neither way.
    #[serde(rename = "GREY")]
    Unsure,
}

/// A judgement, as the file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The id of a document.
    pub a: Value,
    /// The id of another.
    pub b: Value,
    /// What the reviewer says.
    pub label: JudgedLabel,
    /// Who said it.
    #[serde(default)]
    pub who: String,
    /// When: RFC 3339, UTC.
    #[serde(default)]
    pub when: String,
}

/// Judgements of all reviewers so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReviewFigures {
    /// Pairs that were judged near duplicates.
    pub same: u64,
    /// Pairs that were judged different.
    pub different: u64,
    /// Pairs of which nobody could say.
    pub unsure: u64,
    /// The share of `same` among the decided pairs; `None` before there is one.
    pub precision: Option<f64>,
    /// The 95 % interval of the precision by Wilson's method.
    pub interval: [f64; 2],
}

/// The file of the judgements. Several programs may append to one file: what others wrote is read before each answer.
#[derive(Debug)]
pub struct Judgements {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Bytes that were read, up to the end of a line.
    read: u64,
    last: HashMap<(String, String), Judgement>,
}

/// The longest name of a reviewer, in characters.
const WHO: usize = 100;

/// A pair whatever its order.
fn key(a: &Value, b: &Value) -> (String, String) {
    let (a, b) = (a.to_string(), b.to_string());
    if a <= b { (a, b) } else { (b, a) }
}

impl Judgements {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// A file that cannot be written, or that has lines that are no judgements.
    pub fn open(path: &Path) -> Result<Judgements, Error> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = file.map_err(|e| Error::io(path, "write", &e))?;
        let state = State { file, read: 0, last: HashMap::new() };
        let judgements = Judgements { path: path.to_owned(), state: Mutex::new(state) };
        judgements.refresh(&mut lock(&judgements.state))?;
        Ok(judgements)
    }

    /// Reads what was appended since.
    fn refresh(&self, state: &mut State) -> Result<(), Error> {
        let failed = |e: std::io::Error| Error::io(&self.path, "read", &e);
        state.file.seek(SeekFrom::Start(state.read)).map_err(failed)?;
        let mut lines = BufReader::new((&state.file).take(u64::MAX));
        let mut line = Vec::new();
        loop {
            line.clear();
            let len = lines.read_until(b'\n', &mut line).map_err(failed)?;
            // A line without its end is being written, or was torn by a crash.
            if len == 0 || line.last() != Some(&b'\n') {
                return Ok(());
            }
            state.read += len as u64;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let judgement: Judgement = serde_json::from_slice(&line).map_err(|e| {
                Error::invalid(format!(
                    "{}: expected judgements of `review`, found another line at byte {}: {e}",
                    self.path.display(),
                    state.read - len as u64
                ))
            })?;
            state.last.insert(key(&judgement.a, &judgement.b), judgement);
        }
    }

    /// Appends a judgement, and returns once it is on the disk.
    ///
    /// # Errors
    /// A file that cannot be written, such as on a full disk: the judgement is not taken then.
    pub fn append(&self, mut judgement: Judgement) -> Result<(), Error> {
        judgement.who = judgement.who.chars().filter(|c| !c.is_control()).take(WHO).collect();
        let mut line = serde_json::to_vec(&judgement).map_err(Error::invalid)?;
        line.push(b'\n');
        let failed = |e: std::io::Error| Error::io(&self.path, "write", &e);
        let mut state = lock(&self.state);
        // Other programs that review wait: a line without an end is one of a crash, and of nobody who is writing.
        state.file.lock().map_err(failed)?;
        let appended = self.refresh(&mut state).and_then(|()| {
            self.end_last_line(&mut state)?;
            let len = state.read;
            let written = state.file.write_all(&line).and_then(|()| state.file.sync_data());
            // The part of a line that a full disk took must not stay before the next one.
            written.inspect_err(|_| drop(state.file.set_len(len))).map_err(failed)
        });
        drop(state.file.unlock());
        appended?;
        self.refresh(&mut state)
    }

    /// Ends a last line that has no end: a whole one that somebody wrote by hand is kept, a torn one was never acknowledged.
    fn end_last_line(&self, state: &mut State) -> Result<(), Error> {
        let failed = |e: std::io::Error| Error::io(&self.path, "write", &e);
        let mut rest = Vec::new();
        state.file.seek(SeekFrom::Start(state.read)).map_err(failed)?;
        state.file.read_to_end(&mut rest).map_err(failed)?;
        if rest.is_empty() {
            return Ok(());
        }
        match serde_json::from_slice::<Judgement>(&rest) {
            Ok(_) => state.file.write_all(b"\n").map_err(failed)?,
            Err(_) => state.file.set_len(state.read).map_err(failed)?,
        }
        self.refresh(state)
    }

    /// The last judgement of a pair.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn of(&self, a: &Value, b: &Value) -> Result<Option<Judgement>, Error> {
        let mut state = lock(&self.state);
        self.refresh(&mut state)?;
        Ok(state.last.get(&key(a, b)).cloned())
    }

    /// The figures over all pairs.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn figures(&self) -> Result<ReviewFigures, Error> {
        let mut state = lock(&self.state);
        self.refresh(&mut state)?;
        let count = |label| state.last.values().filter(|own| own.label == label).count() as u64;
        let [same, different] = [count(JudgedLabel::Same), count(JudgedLabel::Different)];
        let decided = same + different;
        Ok(ReviewFigures {
            same,
            different,
            unsure: count(JudgedLabel::Unsure),
            precision: (decided > 0).then(|| same as f64 / decided as f64),
            interval: wilson_interval(same, decided),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(a: &str, b: &str, label: JudgedLabel) -> Judgement {
        let (a, b) = (Value::from(a), Value::from(b));
        Judgement { a, b, label, who: "li\n".to_owned(), when: "2026-01-02T03:04:05Z".to_owned() }
    }

    #[test]
    fn the_last_judgement_of_a_pair_counts_and_none_is_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("truth.jsonl");
        let (one, other) = (Judgements::open(&path).unwrap(), Judgements::open(&path).unwrap());
        one.append(judgement("x", "y", JudgedLabel::Same)).unwrap();
        other.append(judgement("y", "x", JudgedLabel::Different)).unwrap();
        one.append(judgement("x", "z", JudgedLabel::Unsure)).unwrap();
        for judgements in [&one, &other, &Judgements::open(&path).unwrap()] {
            let figures = judgements.figures().unwrap();
            assert_eq!((figures.same, figures.different, figures.unsure), (0, 1, 1));
            let last = judgements.of(&"x".into(), &"y".into()).unwrap().expect("a judgement");
            assert_eq!((last.label, last.who.as_str()), (JudgedLabel::Different, "li"));
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
    }

    #[test]
    fn a_torn_line_spoils_no_other_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("truth.jsonl");
        let judgements = Judgements::open(&path).unwrap();
        judgements.append(judgement("x", "y", JudgedLabel::Same)).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"a\":").unwrap();
        assert_eq!(judgements.figures().unwrap().same, 1);
        judgements.append(judgement("x", "z", JudgedLabel::Same)).unwrap();
        assert_eq!(judgements.figures().unwrap().same, 2);
        // A line of an editor that ends files without a line feed is whole.
        let by_hand = serde_json::to_string(&judgement("x", "w", JudgedLabel::Same)).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(by_hand.as_bytes()).unwrap();
        judgements.append(judgement("x", "v", JudgedLabel::Same)).unwrap();
        let read = std::fs::read_to_string(&path).unwrap();
        assert!(read.ends_with('\n') && read.lines().count() == 4, "{read}");
        assert_eq!(Judgements::open(&path).unwrap().figures().unwrap().same, 4);
        std::fs::write(&path, "a\tb\n").unwrap();
        assert!(Judgements::open(&path).is_err(), "a table of another form");
    }
}
