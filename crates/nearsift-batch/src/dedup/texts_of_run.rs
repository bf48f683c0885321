//! The texts of a run's input, read again for people who look at the run.
//!
//! One pass in the background compresses each text into a file without a name: later a text is read by its record, whatever
//! format and compression the input has.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nearsift::text::extract::PageKind;
use nearsift_io::{DocumentId, Inputs};
use rayon::prelude::*;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::text_search::{Snippet, WantedWords};
use crate::context::{Context, Interrupt, Observer, Phase};
use crate::corpus::Id;
use crate::documents::Text;
use crate::error::Error;
use crate::lock;
use crate::read_at;
use crate::scan::{Pass, Seen, scan};

/// How much zstd packs a text: the least, because texts are read once and looked at rarely.
const PACKING: i32 = 1;

/// The head of a packed text: the kind of page, and the lengths of its four parts.
const HEAD: usize = 1 + 4 * 4;

/// Records that are searched between two looks at what was found.
const SEARCHED_AT_ONCE: usize = 256;

/// The length of the bytes of a text that has none of its own.
const NO_BYTES: u32 = u32::MAX;

/// The texts of a run's input. The pass that reads them ends when this is dropped.
#[derive(Debug)]
pub struct RunTexts {
    shared: Arc<Shared>,
    interrupt: Interrupt,
    thread: Option<JoinHandle<()>>,
}

/// How far the texts are read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextsState {
    /// They are being read: bytes of the input so far, and of all of it.
    Reading {
        /// Bytes that were read.
        done: u64,
        /// All bytes, about.
        total: u64,
    },
    /// All of them are there.
    Ready,
    /// The input could not be read to its end; what was read before is there.
    Failed(String),
}

/// Which texts are searched, and for how long.
#[derive(Debug)]
#[non_exhaustive]
pub struct TextSearch<'s> {
    /// Records before it are not searched, from 0.
    pub from: u64,
    /// The most texts that are found.
    pub most: usize,
    /// No text is begun later than this, but for the first one.
    pub time: Duration,
    /// No text is begun after a request to stop, but for the first one.
    pub interrupt: &'s Interrupt,
}

impl TextSearch<'_> {
    /// A search from a record on.
    pub fn new(from: u64, most: usize, time: Duration, interrupt: &Interrupt) -> TextSearch<'_> {
        TextSearch { from, most, time, interrupt }
    }
}

/// What a search has found in texts.
#[derive(Debug)]
#[non_exhaustive]
pub struct FoundTexts {
    /// Texts with all words, in the order of the input.
    pub hits: Vec<TextHit>,
    /// The record, from 0, at which the search goes on: all before it, from the first of the search, were searched.
    pub next: u64,
    /// Records that have been read so far.
    pub read: u64,
}

/// A text that has what was searched for.
#[derive(Debug)]
#[non_exhaustive]
pub struct TextHit {
    /// The id of its document, as the input has it.
    pub id: Value,
    /// Its record, from 1.
    pub record: u64,
    /// Where it has the words.
    pub snippet: Snippet,
}

#[derive(Debug)]
struct Shared {
    file: File,
    path: PathBuf,
    /// Of each record that was read.
    places: RwLock<Vec<Place>>,
    state: Mutex<TextsState>,
}

/// Where the packed text of a record is; of no length where the record is no document.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    at: u64,
    len: u32,
    /// Bits of the hash of the document's id: the input may not be the one that the run read.
    id: u32,
}

impl RunTexts {
    /// Begins to read. The file takes about half the size of the texts, in the folder `scratch`.
    ///
    /// # Errors
    /// When the system gives no file or thread.
    pub fn start(inputs: Inputs, scratch: &Path) -> Result<RunTexts, Error> {
        let file =
            tempfile::tempfile_in(scratch).map_err(|e| Error::io(scratch, "write into", &e))?;
        let total = inputs.total_bytes();
        let shared = Arc::new(Shared {
            file,
            path: scratch.to_owned(),
            places: RwLock::default(),
            state: Mutex::new(TextsState::Reading { done: 0, total }),
        });
        let interrupt = Interrupt::default();
        let (own, stop) = (Arc::clone(&shared), interrupt.clone());
        let no_thread = |e: &dyn std::fmt::Display| {
            Error::invalid(format!("cannot start a thread for the texts: {e}"))
        };
        // Threads of its own, half of the processor: questions about the run do not wait behind the texts.
        let threads = (rayon::current_num_threads() / 2).max(1);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| no_thread(&e))?;
        let thread = std::thread::Builder::new()
            .name("nearsift-texts".to_owned())
            .spawn(move || {
                let state = match pool.install(|| own.read(&inputs, stop)) {
                    Ok(()) => TextsState::Ready,
                    Err(error) => TextsState::Failed(error.to_string()),
                };
                *lock(&own.state) = state;
            })
            .map_err(|e| no_thread(&e))?;
        Ok(RunTexts { shared, interrupt, thread: Some(thread) })
    }

    /// How far they are read.
    pub fn state(&self) -> TextsState {
        lock(&self.shared.state).clone()
    }

    /// The text of a document by its id and record, from 1. `None` where it has not been read yet, or cannot be.
    ///
    /// # Errors
    /// A record with another id: the input is not the one that the run read. A file that cannot be read.
    pub fn text(&self, id: &Value, record: u64) -> Result<Option<Text<'static>>, Error> {
        let Some(place) = self.shared.place(id, record)? else { return Ok(None) };
        let bytes = self.shared.unpack(place, u64::MAX)?;
        unpacked(&bytes).map(Some).ok_or_else(|| self.shared.broken())
    }

    /// The first characters of a document's text, at most `characters`, as [`text`](RunTexts::text) finds it.
    ///
    /// # Errors
    /// As [`text`](RunTexts::text).
    ///
    /// # Complexity
    /// Reads and unpacks no more of the text than it needs, and a block.
    pub fn beginning(
        &self,
        id: &Value,
        record: u64,
        characters: usize,
    ) -> Result<Option<String>, Error> {
        let Some(place) = self.shared.place(id, record)? else { return Ok(None) };
        let most = HEAD + 4 * characters;
        let bytes = self.shared.unpack(place, most as u64)?;
        let len = length_at(&bytes, 1).ok_or_else(|| self.shared.broken())? as usize;
        let text = &bytes[HEAD..bytes.len().min(HEAD + len)];
        Ok(Some(String::from_utf8_lossy(text).chars().take(characters).collect()))
    }

    /// Texts that have all words, in the order of the input. The same search finds the same texts, whatever time it has: with less
    /// it ends earlier, and another one goes on from [`FoundTexts::next`].
    ///
    /// # Errors
    /// A file that cannot be read.
    ///
    /// # Complexity
    /// O(bytes of the texts) on the threads of the caller's pool; each thread holds one text.
    pub fn search(
        &self,
        words: &WantedWords,
        search: &TextSearch<'_>,
    ) -> Result<FoundTexts, Error> {
        let end = Instant::now() + search.time;
        let is_over = || search.interrupt.is_requested() || Instant::now() >= end;
        let mut found = FoundTexts { hits: Vec::new(), next: search.from, read: 0 };
        loop {
            let (places, read) = self.shared.places_from(found.next)?;
            found.read = read;
            if places.is_empty() || found.hits.len() >= search.most {
                return Ok(found);
            }
            let first = found.next;
            let work = |(nth, place): (u64, &Place)| {
                let record = first + nth;
                let is_begun = record == search.from || !is_over();
                is_begun.then(|| self.shared.hit(words, place, record + 1))
            };
            let done: Vec<Option<Result<Option<TextHit>, Error>>> =
                places.par_iter().enumerate().map(|(n, place)| work((n as u64, place))).collect();
            for one in done {
                let Some(hit) = one else { return Ok(found) };
                found.next += 1;
                found.hits.extend(hit?);
                if found.hits.len() >= search.most {
                    return Ok(found);
                }
            }
        }
    }
}

impl Drop for RunTexts {
    fn drop(&mut self) {
        self.interrupt.request();
        if let Some(thread) = self.thread.take() {
            // A panic there is in the log; nobody waits for the texts any more.
            drop(thread.join());
        }
    }
}

impl Observer for Shared {
    fn advance(&self, _: Phase, done: u64) {
        if let TextsState::Reading { done: seen, .. } = &mut *lock(&self.state) {
            *seen = done;
        }
    }
}

impl Shared {
    /// Reads all texts.
    fn read(&self, inputs: &Inputs, interrupt: Interrupt) -> Result<(), Error> {
        let context = Context { interrupt, ..Context::observed_by(self) };
        let mut at = 0;
        let mut file = &self.file;
        let work =
            |(): &mut (), seen: Seen<'_>| (id_bits(seen.id.as_str()), packed(seen.id, seen.text));
        scan(
            &context,
            inputs,
            &Pass::new(Phase::Comparing),
            || (),
            work,
            |place, done| {
                let Ok((id, packed)) = done else { return Ok(()) };
                let packed = packed?;
                file.write_all(&packed).map_err(|e| Error::io(&self.path, "write into", &e))?;
                let own = Place { at, len: packed.len() as u32, id };
                at += packed.len() as u64;
                let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
                let record = usize::try_from(place.index).map_err(Error::invalid)?;
                if places.len() <= record {
                    places.resize(record + 1, Place::default());
                }
                places[record] = own;
                Ok(())
            },
        )?;
        Ok(())
    }

    fn place(&self, id: &Value, record: u64) -> Result<Option<Place>, Error> {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let at = usize::try_from(record).ok().and_then(|record| record.checked_sub(1));
        let Some(place) = at.and_then(|at| places.get(at)).filter(|place| place.len > 0) else {
            return Ok(None);
        };
        let written = match id {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if place.id != id_bits(&written) {
            return Err(Error::invalid(format!(
                "record {record} of the input has another id than in the run: give the whole input of the run, in its order"
            )));
        }
        Ok(Some(*place))
    }

    /// Some places from a record on, from 0, and how many there are in all.
    fn places_from(&self, record: u64) -> Result<(Vec<Place>, u64), Error> {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let read = places.len() as u64;
        let from = usize::try_from(record.min(read)).map_err(Error::invalid)?;
        let to = places.len().min(from + SEARCHED_AT_ONCE);
        Ok((places[from..to].to_vec(), read))
    }

    /// Where a record, from 1, has all words.
    fn hit(
        &self,
        words: &WantedWords,
        place: &Place,
        record: u64,
    ) -> Result<Option<TextHit>, Error> {
        if place.len == 0 {
            return Ok(None);
        }
        let bytes = self.unpack(*place, u64::MAX)?;
        let Parts { text, id, .. } = Parts::of(&bytes).ok_or_else(|| self.broken())?;
        let Some(snippet) = words.find(text) else { return Ok(None) };
        let id = serde_json::from_slice(id).map_err(|_| self.broken())?;
        Ok(Some(TextHit { id, record, snippet }))
    }

    /// The first bytes of what was packed.
    fn unpack(&self, place: Place, most: u64) -> Result<Vec<u8>, Error> {
        /// More than a block of zstd takes: what is unpacked first needs no more of the packed bytes than this and its own length.
        const BLOCK: u64 = 160 << 10;
        let len = u64::from(place.len).min(most.saturating_add(BLOCK));
        let mut packed = vec![0; usize::try_from(len).map_err(Error::invalid)?];
        let failed = |e: std::io::Error| Error::io(&self.path, "read from", &e);
        read_at(&self.file, &mut packed, place.at).map_err(failed)?;
        let mut bytes = Vec::new();
        let unpacking = zstd::stream::read::Decoder::new(packed.as_slice()).map_err(failed)?;
        unpacking.take(most).read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    fn broken(&self) -> Error {
        Error::invalid("the file that the texts were put into is damaged: open the run again")
    }
}

fn id_bits(id: &str) -> u32 {
    xxh3_64(id.as_bytes()) as u32
}

/// A text with all that decides about it and the id of its document, compressed.
fn packed(id: &DocumentId<'_>, text: &Text<'_>) -> Result<Vec<u8>, Error> {
    let too_long = || Error::invalid("a text of 4 GiB or more cannot be shown");
    let length = |len: usize| u32::try_from(len).ok().filter(|len| *len < NO_BYTES);
    let id = serde_json::to_vec(&Id::of(id)).map_err(Error::invalid)?;
    let lengths = [
        length(text.text.len()).ok_or_else(too_long)?,
        length(text.identity.len()).ok_or_else(too_long)?,
        match &text.raw {
            Some(raw) => length(raw.len()).ok_or_else(too_long)?,
            None => NO_BYTES,
        },
        length(id.len()).ok_or_else(too_long)?,
    ];
    let mut bytes = vec![u8::from(text.is_navigation_only())];
    lengths.iter().for_each(|len| bytes.extend(len.to_le_bytes()));
    bytes.extend(text.text.as_bytes());
    bytes.extend(text.identity.as_bytes());
    bytes.extend(text.raw.as_deref().unwrap_or_default());
    bytes.extend(id);
    zstd::bulk::compress(&bytes, PACKING).map_err(Error::invalid)
}

fn length_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The parts of what was packed.
struct Parts<'b> {
    text: &'b str,
    identity: &'b str,
    raw: Option<&'b [u8]>,
    /// JSON.
    id: &'b [u8],
}

impl<'b> Parts<'b> {
    /// `None` for bytes that were not packed so.
    fn of(bytes: &'b [u8]) -> Option<Parts<'b>> {
        let lens = [1, 5, 9, 13].map(|at| length_at(bytes, at));
        let [text, identity, raw, id] = lens;
        let (text, rest) = bytes.get(HEAD..)?.split_at_checked(text? as usize)?;
        let (identity, rest) = rest.split_at_checked(identity? as usize)?;
        let raw = raw.filter(|len| *len != NO_BYTES);
        let (own, rest) = rest.split_at_checked(raw.unwrap_or(0) as usize)?;
        Some(Parts {
            text: std::str::from_utf8(text).ok()?,
            identity: std::str::from_utf8(identity).ok()?,
            raw: raw.map(|_| own),
            id: rest.get(..id? as usize)?,
        })
    }
}

fn unpacked(bytes: &[u8]) -> Option<Text<'static>> {
    let Parts { text, identity, raw, .. } = Parts::of(bytes)?;
    Some(Text {
        page: (bytes[0] == 1).then_some(PageKind::NavigationOnly),
        identity: identity.to_owned(),
        raw: raw.map(|raw| raw.to_vec().into()),
        ..Text::plain(text.to_owned().into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_packed_whole() {
        let check = |text: Text<'static>| {
            let id = DocumentId::Number("17".into());
            let packed = packed(&id, &text).expect("packed");
            let bytes = zstd::stream::decode_all(packed.as_slice()).expect("unpacked");
            assert_eq!(Parts::of(&bytes).expect("parts").id, b"17");
            let found = unpacked(&bytes).expect("a text");
            assert_eq!(
                (&found.text, &found.identity, &found.raw),
                (&text.text, &text.identity, &text.raw)
            );
            assert_eq!(found.is_navigation_only(), text.is_navigation_only());
        };
        check(Text::plain("".into()));
        check(Text::plain("今天".into()));
        check(Text {
            raw: Some(b"\xff\xfe".to_vec().into()),
            ..Text::plain("\u{fffd}\u{fffd}".into())
        });
        check(Text {
            page: Some(PageKind::NavigationOnly),
            identity: "title".to_owned(),
            ..Text::plain("links".into())
        });
        assert!(unpacked(b"").is_none() && unpacked(&[0; 5]).is_none());
        assert!(unpacked(&[0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
    }

    #[test]
    fn a_search_goes_on_where_the_one_before_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let input = folder.path().join("in.jsonl");
        let line = |n: u32| match n % 10 {
            9 => "no document\n".to_owned(),
            _ => format!("{{\"id\":\"d{n}\",\"text\":\"第{n}篇漢語文章\"}}\n"),
        };
        std::fs::write(&input, (0..1_000).map(line).collect::<String>()).expect("an input");
        let inputs = crate::open(&[input], nearsift_io::ReadOptions::default()).expect("inputs");
        let texts = RunTexts::start(inputs, folder.path()).expect("texts");
        while texts.state() != TextsState::Ready {
            assert!(!matches!(texts.state(), TextsState::Failed(_)), "{:?}", texts.state());
            std::thread::sleep(Duration::from_millis(2));
        }
        let words = WantedWords::of("汉语 7篇").expect("words");
        let forever = Duration::from_secs(600);
        let all = |most, time, interrupt: &Interrupt| {
            let (mut records, mut searches, mut from) = (Vec::new(), 0, 0);
            loop {
                let search = TextSearch::new(from, most, time, interrupt);
                let found = texts.search(&words, &search).expect("a search");
                assert!(found.next > from && found.hits.len() <= most);
                records.extend(found.hits.iter().map(|hit| hit.record));
                searches += 1;
                from = found.next;
                if from == found.read {
                    return (records, searches);
                }
            }
        };
        let expect: Vec<u64> = (0..1_000).filter(|n| n % 10 == 7).map(|n| n + 1).collect();
        let calm = Interrupt::default();
        assert_eq!(all(1_000, forever, &calm), (expect.clone(), 1));
        assert_eq!(all(30, forever, &calm), (expect.clone(), 4));
        // Without time, or for someone who has gone, each search is one record.
        assert_eq!(all(30, Duration::ZERO, &calm).0, expect);
        let gone = Interrupt::default();
        gone.request();
        assert_eq!(all(30, forever, &gone), (expect, 999));
        let found = texts.search(&words, &TextSearch::new(u64::MAX, 9, forever, &calm));
        assert!(found.expect("a search").hits.is_empty());
        let first = texts.search(&words, &TextSearch::new(0, 1, forever, &calm)).expect("one");
        assert_eq!((&first.hits[0].id, first.next), (&Value::from("d7"), 8));
    }
}
