//! Texts that a store keeps beside fingerprints or sketches, and what compares them.
//!
//! A text is kept as the core normalises it, which is what its measures are defined on, and compressed by zstd.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::text::normalise::normalise;
use nearsift::verify::{Profile, Profiler, Verifier};

use crate::StoreError;
use crate::codec::{Input, Output};
use crate::store::{Loan, TextMemory};

/// The longest text that is kept, in bytes of UTF-8, before and after normalisation: 1.4 million Chinese characters.
pub const MAX_TEXT_BYTES: usize = 4 << 20;

/// The score of sketches from which on documents of a store with texts are worth a look at these. What the texts score
/// decides; near duplicates by their texts hardly ever have sketches that score less.
pub const CANDIDATE_SCORE: f64 = 0.25;

/// The level of compression: the higher ones take several times as long for a tenth less.
const LEVEL: i32 = 1;

/// The most bytes of a packed text: that of the longest one, if it cannot be compressed, and its length.
pub(crate) const MAX_PACKED_BYTES: usize = MAX_TEXT_BYTES + MAX_TEXT_BYTES / 128 + 64;

/// How alike two texts are by the core's exact measures, from 0 to 1, in billionths.
///
/// It is [`Verified::score`](nearsift::verify::Verified::score), rounded down; near duplicates begin at
/// [`TextScore::NEAR`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextScore(u32);

const BILLION: u32 = 1_000_000_000;

impl TextScore {
    /// From which on texts are near duplicates unless another is asked: [`nearsift::verify::MIN_SCORE`].
    pub const NEAR: TextScore = TextScore((nearsift::verify::MIN_SCORE * BILLION as f64) as u32);

    /// The score of a number, which is brought into 0 to 1.
    pub fn of(score: f64) -> TextScore {
        TextScore((score.clamp(0.0, 1.0) * f64::from(BILLION)) as u32)
    }

    /// From 0 to 1.
    pub fn value(self) -> f64 {
        f64::from(self.0) / f64::from(BILLION)
    }

    pub(crate) fn billionths(self) -> u32 {
        self.0
    }

    /// `None` of more than 1.
    pub(crate) fn from_billionths(billionths: u32) -> Option<TextScore> {
        (billionths <= BILLION).then_some(TextScore(billionths))
    }

    /// Smaller is nearer.
    pub(crate) fn rank(self) -> u32 {
        BILLION - self.0
    }

    pub(crate) fn of_rank(rank: u32) -> TextScore {
        TextScore(BILLION.saturating_sub(rank))
    }
}

/// A text as a store keeps it: normalised and compressed. Cloning shares it.
///
/// It is made by the thread that has the text, because one thread writes for all.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Arc<[u8]>);

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Text").field(&self.0.len()).finish()
    }
}

impl Text {
    /// The text of a document, not normalised yet.
    ///
    /// # Errors
    /// [`StoreError::Invalid`]: it is longer than [`MAX_TEXT_BYTES`], before or after normalisation.
    ///
    /// # Complexity
    /// Linear in the text's bytes; memory for the normalised text, which is at most 11 times as long, and 1 MB for
    /// each thread that makes any.
    pub fn new(text: &str) -> Result<Text, StoreError> {
        check_length(text.len(), "")?;
        let normalised = normalise(text);
        check_length(normalised.len(), " after normalisation")?;
        Ok(Text(pack(&normalised).into()))
    }

    /// Bytes that it takes in a batch and on the disk.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Length and compressed bytes.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.0
    }
}

fn check_length(bytes: usize, when: &str) -> Result<(), StoreError> {
    if bytes <= MAX_TEXT_BYTES {
        return Ok(());
    }
    Err(StoreError::Invalid(format!(
        "the text has {bytes} bytes{when}, and {MAX_TEXT_BYTES} are the most that a store keeps: leave the document out, or cut it into parts"
    )))
}

type Codec = (zstd::bulk::Compressor<'static>, zstd::bulk::Decompressor<'static>);

/// Does something with this thread's codec, whose memory takes longer to make than most texts to pack.
fn with_codec<T>(work: impl FnOnce(&mut Codec) -> T) -> T {
    thread_local! {
        static CODEC: RefCell<Option<Codec>> = const { RefCell::new(None) };
    }
    CODEC.with_borrow_mut(|codec| {
        work(codec.get_or_insert_with(|| {
            let compressor = zstd::bulk::Compressor::new(LEVEL).expect("a level that there is");
            (compressor, zstd::bulk::Decompressor::new().expect("no dictionary"))
        }))
    })
}

/// The length of a normalised text in 4 bytes, and a zstd frame.
fn pack(normalised: &str) -> Vec<u8> {
    let mut packed = Vec::new();
    packed.put_u32(normalised.len() as u32);
    let frame = with_codec(|(compressor, _)| compressor.compress(normalised.as_bytes()));
    packed.put(&frame.expect("room for any text"));
    packed
}

/// The length of the text that is packed, as it says.
pub(crate) fn packed_length(packed: &[u8]) -> Option<usize> {
    Input(packed).u32().map(|length| length as usize).filter(|&length| length <= MAX_TEXT_BYTES)
}

/// The text again; `None` if the bytes are none.
///
/// # Complexity
/// Linear in the text's bytes, which are at most [`MAX_TEXT_BYTES`], whatever the packed bytes are.
pub(crate) fn unpack(packed: &[u8]) -> Option<String> {
    let length = packed_length(packed)?;
    let mut bytes = Vec::with_capacity(length);
    let unpacked =
        with_codec(|(_, decompressor)| decompressor.decompress_to_buffer(&packed[4..], &mut bytes));
    (unpacked.ok()? == length).then(|| String::from_utf8(bytes).ok())?
}

/// What compares texts, and keeps its working memory from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    profiler: Profiler,
    verifier: Verifier,
    /// The longest text that was compared, in bytes.
    longest: usize,
    /// Where the memory for long texts is from.
    memory: TextMemory,
}

/// Tools that have compared a longer text are not kept, with the memory that it took.
const USUAL_BYTES: usize = 256 << 10;

/// Bytes of memory for each letter: of a profile, while it is made, and of the longer text while two are compared.
const PROFILE: usize = 24;
const PROFILING: usize = 100;
const ALIGNING: usize = 32;

/// Comparisons of texts of fewer letters together are not counted: all of them at a time take little.
const SMALL: usize = 64 << 10;

/// The memory that comparing a text with another one takes, in bytes, given the letters of both: the profile of the first is
/// at hand while that of the other is made and the two are aligned.
fn comparison_bytes(own: usize, other: usize) -> usize {
    match own + other {
        ..=SMALL => 0,
        _ => PROFILE * own + (PROFILING + ALIGNING) * own.max(other),
    }
}

impl Tools {
    /// That take the memory for long texts from somewhere.
    pub(crate) fn new(memory: TextMemory) -> Tools {
        Tools { memory, ..Tools::default() }
    }

    /// Whether their memory is worth keeping.
    pub(crate) fn are_kept(&self) -> bool {
        self.longest <= USUAL_BYTES
    }

    /// What is compared of a text; `None` if it is too long.
    ///
    /// # Complexity
    /// Linear in the text's bytes: some 100 bytes of memory for each letter while it runs, and 24 after that.
    fn profile(&mut self, text: &str) -> Option<Profile> {
        self.longest = self.longest.max(text.len());
        let frequencies = DocumentFrequencies::shipped();
        let idf = |hash| u32::from(frequencies.idf_sixteenths(hash));
        self.profiler.profile(text, idf).ok()
    }
}

/// The most bytes of texts that one text is compared with; the first is compared however long it is.
const MOST_BYTES: usize = 32 << 20;

/// Compares one text with candidates by the core's one decision, which is that of `nearsift dedup`.
pub(crate) struct Comparer<'a> {
    tools: &'a mut Tools,
    packed: &'a [u8],
    /// That of the text, made when it is first compared, and its letters.
    own: Option<(Profile, usize)>,
    least: TextScore,
    bytes: usize,
    /// Bytes of memory that are lent.
    lent: usize,
    loan: Option<Loan>,
}

/// What came of comparing a candidate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// The texts score as much as they must, or more.
    Near(TextScore),
    Far,
    /// It was not compared: those before it took all the work that one text may take.
    TooMuch,
}

/// A text that is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl<'a> Comparer<'a> {
    /// Compares a text with others that must score at least so much.
    pub(crate) fn new(tools: &'a mut Tools, packed: &'a [u8], least: TextScore) -> Comparer<'a> {
        Comparer { tools, packed, own: None, least, bytes: 0, lent: 0, loan: None }
    }

    /// Compares it with a candidate.
    ///
    /// # Complexity
    /// As [`Verifier`]; of all candidates together at most [`MOST_BYTES`] and one text.
    pub(crate) fn compare(&mut self, candidate: &[u8]) -> Result<Compared, Unreadable> {
        let length = packed_length(candidate).ok_or(Unreadable)?;
        if self.bytes > 0 && self.bytes + length > MOST_BYTES {
            return Ok(Compared::TooMuch);
        }
        self.bytes += length;
        let text = unpack(candidate).ok_or(Unreadable)?;
        let letters = text.chars().count();
        let (unpacked, own_letters) = match &self.own {
            Some((_, letters)) => (None, *letters),
            None => {
                let own = unpack(self.packed).ok_or(Unreadable)?;
                let letters = own.chars().count();
                (Some(own), letters)
            }
        };
        self.borrow(comparison_bytes(own_letters, letters));
        let Comparer { tools, own, least, .. } = self;
        if let Some(text) = unpacked {
            *own = Some((tools.profile(&text).ok_or(Unreadable)?, own_letters));
        }
        let Some((own, _)) = own else { return Err(Unreadable) };
        let other = tools.profile(&text).ok_or(Unreadable)?;
        #[cfg(test)]
        COMPARISONS.set(COMPARISONS.get() + 1);
        let found = tools.verifier.compare_at_least(own, &other, least.value());
        Ok(found.map_or(Compared::Far, |found| Compared::Near(TextScore::of(found.score))))
    }

    /// Borrows so much memory in all. What is lent already is given back before more is waited for.
    fn borrow(&mut self, bytes: usize) {
        if bytes > self.lent {
            self.loan = None;
            self.loan = self.tools.memory.borrow(bytes);
            self.lent = bytes;
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Comparisons of texts by this thread.
    pub(crate) static COMPARISONS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_packed_and_unpacked() {
        for text in ["", "a", "今天北京晴。", &"長い text ".repeat(10_000)] {
            let packed = Text::new(text).expect("it fits");
            assert_eq!(unpack(packed.packed()).as_deref(), Some(&*normalise(text)));
            assert!(packed.packed().len() <= MAX_PACKED_BYTES);
        }
    }

    #[test]
    fn long_texts_are_refused_before_and_after_they_grow() {
        assert!(Text::new(&"x".repeat(MAX_TEXT_BYTES)).is_ok());
        for (text, said) in [
            ("x".repeat(MAX_TEXT_BYTES + 1), "4194305 bytes, and"),
            ("\u{fdfa}".repeat(MAX_TEXT_BYTES / 8), "bytes after normalisation"),
        ] {
            let refused = Text::new(&text).expect_err("too long").to_string();
            assert!(refused.contains(said), "{refused}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_within_bounds() {
        let packed = Text::new("今天北京晴。今天北京晴。").expect("it fits").packed().to_vec();
        for cut in 0..packed.len() {
            assert_eq!(unpack(&packed[..cut]), None, "{cut}");
        }
        let with_length = |length: u32| [&length.to_le_bytes(), &packed[4..]].concat();
        for length in [0, 1, u32::MAX, MAX_TEXT_BYTES as u32, MAX_TEXT_BYTES as u32 + 1] {
            assert_eq!(unpack(&with_length(length)), None, "{length}");
        }
        // A frame of more than any text is not unpacked to see.
        let bomb = zstd::bulk::compress(&vec![b'x'; 64 << 20], 1).expect("compressed");
        let bomb = [&(MAX_TEXT_BYTES as u32).to_le_bytes(), &bomb[..]].concat();
        assert_eq!(unpack(&bomb), None);
        let no_utf8 = zstd::bulk::compress(&[0xff; 8], 1).expect("compressed");
        assert_eq!(unpack(&[&8u32.to_le_bytes(), &no_utf8[..]].concat()), None);
    }

    #[test]
    fn scores_are_those_of_the_core() {
        assert_eq!(TextScore::NEAR.value(), nearsift::verify::MIN_SCORE);
        let texts =
            ["今天北京的天气晴朗，适合出门散步", "今天上海的天气晴朗，适合出门散步", "完全不同"];
        let frequencies = DocumentFrequencies::shipped();
        let idf = |hash| u32::from(frequencies.idf_sixteenths(hash));
        let mut tools = Tools::default();
        for a in texts {
            let own = Text::new(a).expect("it fits");
            let mut comparer = Comparer::new(&mut tools, own.packed(), TextScore::NEAR);
            for b in texts {
                let expected = Verifier::new().compare_at_least(
                    &Profile::of(&normalise(a), idf).expect("short"),
                    &Profile::of(&normalise(b), idf).expect("short"),
                    nearsift::verify::MIN_SCORE,
                );
                let expected = expected
                    .map_or(Compared::Far, |found| Compared::Near(TextScore::of(found.score)));
                let other = Text::new(b).expect("it fits");
                assert_eq!(comparer.compare(other.packed()), Ok(expected), "{a} {b}");
            }
        }
    }

    #[test]
    fn work_on_one_text_is_bounded() {
        let mut tools = Tools::default();
        let (short, long) = (Text::new("短").expect("it fits"), "长".repeat(MAX_TEXT_BYTES / 3));
        let long = Text::new(&long).expect("it fits");
        let mut comparer = Comparer::new(&mut tools, short.packed(), TextScore::NEAR);
        let compared = (0..12)
            .take_while(|_| comparer.compare(long.packed()).expect("a text") != Compared::TooMuch);
        assert_eq!(compared.count(), MOST_BYTES / MAX_TEXT_BYTES);
    }

    /// Comparisons of long texts borrow their memory, one loan at a time, and give it back; short ones do not.
    #[test]
    fn memory_for_long_texts_is_borrowed() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        struct Lent(Arc<[AtomicUsize; 2]>, usize);
        impl Drop for Lent {
            fn drop(&mut self) {
                self.0[0].fetch_sub(self.1, Ordering::Relaxed);
            }
        }
        let counts = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let lender = Arc::clone(&counts);
        let memory = TextMemory::Lent(Arc::new(move |bytes| {
            assert_eq!(lender[0].fetch_add(bytes, Ordering::Relaxed), 0, "one loan at a time");
            lender[1].fetch_add(1, Ordering::Relaxed);
            Box::new(Lent(Arc::clone(&lender), bytes))
        }));
        let at_work = || counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        let mut tools = Tools::new(memory);
        let text = |letters: usize| Text::new(&"长".repeat(letters)).expect("it fits");
        let (short, long, longer) = (text(1_000), text(100_000), text(200_000));
        let mut comparer = Comparer::new(&mut tools, short.packed(), TextScore::NEAR);
        let mut check = |candidate: &Text, expect: [usize; 2]| {
            comparer.compare(candidate.packed()).expect("a text");
            assert_eq!(at_work(), expect);
        };
        check(&short, [0, 0]);
        check(&long, [comparison_bytes(1_000, 100_000), 1]);
        // What is lent is enough for less.
        check(&short, [comparison_bytes(1_000, 100_000), 1]);
        check(&longer, [comparison_bytes(1_000, 200_000), 2]);
        drop(comparer);
        assert_eq!(at_work(), [0, 2]);
        // Two of the longest texts of Chinese took 210 MB when it was measured.
        let longest = MAX_TEXT_BYTES / 3;
        assert!((210_000_000..300_000_000).contains(&comparison_bytes(longest, longest)));
    }
}
