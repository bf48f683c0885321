//! Sections of a file of JSON lines: read beside each other, and copied by several threads.

use std::fs;
use std::num::NonZeroUsize;

use nearsift_io::{
    AddedColumn, Cell, CellKind, Decide, Deciders, Decision, Error, Inputs, KeptWriter, Limits,
    Place, ReadOptions, Reader, Span, Written,
};
use proptest::prelude::*;

use crate::support::{Folder, Read, gz, read_by, read_from};

const AHEAD: NonZeroUsize = NonZeroUsize::MIN;

/// What can be in a line, and what ends it.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => (0..99_u32, "[a-z文 ]{0,40}").prop_map(|(id, text)| format!("{{\"id\":{id},\"text\":\"{text}\"}}").into_bytes()),
        1 => Just(b"{\"text\":".to_vec()),
        1 => Just(b" \t".to_vec()),
        // Longer than a record may be.
        1 => (1..400_usize).prop_map(|len| vec![b'x'; len]),
        // What a file would begin with that is compressed, or has a mark.
        1 => Just(b"\x1f\x8b\x08".to_vec()),
        1 => Just("\u{feff}{\"text\":\"mark\"}".as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    let end = prop_oneof![6 => Just("\n"), 1 => Just("\r\n"), 1 => Just("")];
    prop::collection::vec((line, end), 0..40).prop_map(|lines| {
        lines.iter().flat_map(|(line, end)| [line, end.as_bytes()].concat()).collect()
    })
}

fn options(batch_bytes: usize) -> ReadOptions {
    let limits = Limits { record_bytes: 120, ..Limits::default() };
    ReadOptions { batch_bytes, limits, ..ReadOptions::default() }
}

/// The file after a first pass that has cut it into sections.
fn first_pass(folder: &Folder, bytes: &[u8], batch_bytes: usize) -> (Inputs, Read) {
    let path = folder.file("in/a.jsonl", bytes);
    let inputs = Inputs::resolve(&[path], options(batch_bytes)).expect("inputs");
    let reader = Reader::in_background(&inputs, 0..1, AHEAD).expect("a thread");
    let read = read_by(&inputs, reader);
    (inputs, read)
}

fn sorted(mut read: Read) -> Read {
    read.notes.sort_by_key(|note| note.line);
    read
}

/// Decides by the number of a record, on any thread.
#[derive(Clone, Copy)]
struct ByNumber<'a>(&'a [Decision]);

impl Decide for ByNumber<'_> {
    fn decide(&mut self, place: Place) -> Decision {
        self.0[place.index as usize]
    }

    fn deciders(&self) -> Option<Deciders<'_>> {
        let own = *self;
        Some(Box::new(move || Box::new(own)))
    }

    fn cells(&mut self, place: Place) -> Vec<Cell> {
        vec![Cell::Integer(place.index as i64)]
    }
}

/// Files by their names, in order.
type Files = Vec<(String, Vec<u8>)>;

/// Writes the file on so many threads.
fn write(
    inputs: &Inputs,
    decisions: &[Decision],
    at_once: usize,
    columns: &[AddedColumn],
) -> (Result<Written, Error>, Files) {
    let output = tempfile::tempdir().expect("a folder");
    let [kept, unreadable] = ["kept", "unreadable"].map(|name| output.path().join(name));
    let writer = KeptWriter::new(inputs, &kept, &unreadable).adding(columns.to_vec());
    let written = writer.copying_sections(at_once).write_file_by(0, &mut ByNumber(decisions));
    let files = walkdir::WalkDir::new(output.path()).sort_by_file_name();
    let files = files.into_iter().map(|e| e.expect("a file")).filter(|e| e.file_type().is_file());
    let name_and_bytes = |e: walkdir::DirEntry| {
        let below = e.path().strip_prefix(output.path()).expect("below");
        (below.to_string_lossy().into_owned(), fs::read(e.path()).expect("a file"))
    };
    (written, files.map(name_and_bytes).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Sections one after another are the file: the same records with the same numbers and lines, and the same notes.
    #[test]
    fn sections_are_parts_of_the_whole(bytes in lines(), batch_bytes in 1..5000_usize, least in 1..900_u64) {
        let folder = Folder::new();
        let (inputs, whole) = first_pass(&folder, &bytes, batch_bytes);
        // What begins as something compressed has none.
        let ranges = inputs.sections(0, least);
        prop_assume!(!ranges.is_empty());
        let mut all = Read::default();
        for sections in ranges {
            let span = Span::Sections { file: 0, sections };
            let reader = Reader::again(&inputs, &span, AHEAD, false).expect("it was read");
            let read = read_from(&inputs, reader, all.decisions.len() as u64);
            all.documents.extend(read.documents);
            all.notes.extend(read.notes);
            all.decisions.extend(read.decisions);
        }
        prop_assert_eq!(sorted(all), sorted(whole));
    }

    /// What several threads write is what one writes, byte for byte.
    #[test]
    fn threads_write_the_same(bytes in lines(), batch_bytes in 1..5000_usize, seed in any::<u64>(), is_marked in any::<bool>()) {
        let folder = Folder::new();
        let (inputs, whole) = first_pass(&folder, &bytes, batch_bytes);
        let choice = [Decision::Keep, Decision::Keep, Decision::Drop, Decision::Unreadable];
        let decision = |at: usize| choice[(seed.rotate_left(at as u32) % 4) as usize];
        let decisions: Vec<_> = (0..whole.decisions.len()).map(decision).collect();
        let column = AddedColumn { name: "number".to_owned(), kind: CellKind::Integer };
        let columns = if is_marked { vec![column] } else { Vec::new() };
        let (one, expect) = write(&inputs, &decisions, 1, &columns);
        let (several, files) = write(&inputs, &decisions, 4, &columns);
        prop_assert_eq!(several.expect("written"), one.expect("written"));
        prop_assert_eq!(files, expect);
    }

    /// Where a byte is another one, or there are fewer or more, a pass over the sections says so, and nothing is written.
    #[test]
    fn changes_are_found(bytes in lines(), batch_bytes in 1..2400_usize, at in any::<prop::sample::Index>(), what in 0..3) {
        prop_assume!(!bytes.is_empty());
        let folder = Folder::new();
        let (inputs, whole) = first_pass(&folder, &bytes, batch_bytes);
        let sections = inputs.sections(0, 1);
        prop_assume!(sections.len() > 1);
        let mut other = bytes.clone();
        match what {
            0 => other[at.index(bytes.len())] ^= 1,
            1 => other.truncate(at.index(bytes.len())),
            _ => other.insert(at.index(bytes.len()), b'\n'),
        }
        folder.file("in/a.jsonl", &other);
        let changed = sections.into_iter().any(|sections| {
            let span = Span::Sections { file: 0, sections };
            let mut reader = Reader::again(&inputs, &span, AHEAD, false).expect("it was read");
            std::iter::from_fn(|| reader.next_batch().transpose()).any(|batch| {
                matches!(batch, Err(Error::Changed { .. }))
            })
        });
        prop_assert!(changed);
        let (written, files) = write(&inputs, &whole.decisions, 4, &[]);
        prop_assert!(matches!(written, Err(Error::Changed { .. })), "{written:?}");
        prop_assert!(files.is_empty());
    }
}

#[test]
fn only_plain_lines_have_sections() {
    let folder = Folder::new();
    let lines = b"{\"text\":\"a\"}\n".repeat(50);
    let check = |name: &str, bytes: &[u8], expect: usize| {
        let inputs = Inputs::resolve(&[folder.file(name, bytes)], options(800)).expect("inputs");
        assert!(inputs.sections(0, 1).is_empty(), "{name} was not read");
        read_by(&inputs, Reader::in_background(&inputs, 0..1, AHEAD).expect("a thread"));
        assert_eq!(inputs.sections(0, 1).len(), expect, "{name}");
    };
    // A section of 100 bytes has 8 lines of 13.
    check("a.jsonl", &lines, 7);
    check("one.jsonl", &lines[..13], 1);
    check("a.jsonl.gz", &gz(&lines), 0);
    check("a.json", &lines, 0);
    check("a.csv", b"id,text\n1,a\n", 0);
}

/// A file that has grown is no longer the one that was read, though its sections are.
#[test]
fn what_is_appended_is_found() {
    let folder = Folder::new();
    let lines = b"{\"text\":\"a\"}\n".repeat(50);
    let (inputs, whole) = first_pass(&folder, &lines, 800);
    folder.file("in/a.jsonl", b"{\"text\":\"a\"}\n".repeat(51));
    let (written, files) = write(&inputs, &whole.decisions, 4, &[]);
    assert!(matches!(written, Err(Error::Changed { .. })), "{written:?}");
    assert!(files.is_empty());
}

#[test]
fn a_pass_past_changes_keeps_the_numbers_of_other_files() {
    let folder = Folder::new();
    let lines = |first: u32, n: u32| -> String {
        (first..first + n).map(|id| format!("{{\"id\":{id},\"text\":\"{id}\"}}\n")).collect()
    };
    folder.file("in/a.jsonl", lines(0, 40));
    folder.file("in/b.jsonl", lines(40, 40));
    let inputs = Inputs::resolve(&[folder.path("in")], options(800)).expect("inputs");
    read_by(&inputs, Reader::in_background(&inputs, 0..2, AHEAD).expect("a thread"));
    folder.file("in/a.jsonl", lines(0, 60));
    let mut seen = Vec::new();
    for file in 0..2 {
        for sections in inputs.sections(file, 1) {
            let span = Span::Sections { file, sections };
            let mut reader = Reader::again(&inputs, &span, AHEAD, true).expect("it was read");
            while let Some(batch) = reader.next_batch().expect("goes on") {
                seen.extend(batch.records().map(|record| record.place.index));
            }
        }
    }
    assert_eq!(seen, (0..80).collect::<Vec<_>>());
    assert!(matches!(inputs.change(0), Some(Error::Changed { .. })));
    assert!(inputs.change(1).is_none());
}
