//! Which charset bytes are in, by statistics.
//!
//! The guesser knows how often letters follow each other in each charset's languages, but gives a charset up at its
//! first malformed byte. So each charset is asked about with what is malformed in it blanked out, and one *claims* the
//! bytes when the guesser then names it. A multi-byte charset with few errors goes before one of single bytes, in which
//! nothing can be malformed. Of several that claim the bytes the guesser names one, asked piece by piece about what is
//! malformed in none of them; where it names other charsets, the fewest errors decide.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{
    BIG5, DecoderResult, EUC_JP, EUC_KR, Encoding, GB18030, GBK, IBM866, ISO_8859_2, ISO_8859_4,
    ISO_8859_5, ISO_8859_6, ISO_8859_7, ISO_8859_8, KOI8_U, SHIFT_JIS, WINDOWS_874, WINDOWS_1250,
    WINDOWS_1251, WINDOWS_1252, WINDOWS_1253, WINDOWS_1254, WINDOWS_1255, WINDOWS_1256,
    WINDOWS_1257, WINDOWS_1258,
};

const MULTI_BYTE: [&Encoding; 5] = [GB18030, BIG5, SHIFT_JIS, EUC_JP, EUC_KR];

const SINGLE_BYTE: [&Encoding; 18] = [
    WINDOWS_1252,
    WINDOWS_1251,
    WINDOWS_1250,
    ISO_8859_2,
    WINDOWS_1256,
    WINDOWS_1254,
    WINDOWS_874,
    WINDOWS_1255,
    WINDOWS_1253,
    ISO_8859_7,
    KOI8_U,
    IBM866,
    ISO_8859_5,
    ISO_8859_6,
    ISO_8859_8,
    WINDOWS_1257,
    ISO_8859_4,
    WINDOWS_1258,
];

/// A charset is no candidate with more than one error in this many characters past ASCII.
const CHARACTERS_AN_ERROR: usize = 12;

/// With one without errors beside it, one with more than one error in so many characters claims nothing: bytes of one
/// multi-byte charset are few errors of another.
const CHARACTERS_AN_ERROR_BESIDE_NONE: usize = 40;

/// The bytes that are looked at, and those of a second look where the first leaves a doubt.
const SAMPLES: [usize; 2] = [4 << 10, 32 << 10];

/// The charset by statistics, for bytes that are not UTF-8.
pub(super) fn guess(bytes: &[u8]) -> &'static Encoding {
    let short = telling(bytes, SAMPLES[0]);
    let first = by_statistics(&short);
    if MULTI_BYTE.contains(&first) && !is_thai(&short) && is_unrivalled(first, &short) {
        return first;
    }
    let sample = telling(bytes, SAMPLES[1]);
    if is_thai(&sample) {
        return WINDOWS_874;
    }
    let whole = if sample == short { first } else { by_statistics(&sample) };
    let claimed = best(&MULTI_BYTE, &sample, whole).or_else(|| best(&SINGLE_BYTE, &sample, whole));
    claimed.map_or(whole, |claim| claim.charset)
}

/// Whether a multi-byte charset has no error, and no other one was given up for a few errors.
///
/// The guesser lets a few bytes pass that decoders do not, such as 0xff in GBK.
fn is_unrivalled(first: &'static Encoding, sample: &[u8]) -> bool {
    MULTI_BYTE.iter().all(|&charset| match blank_malformed(charset, sample) {
        Some(blanked) if charset == first => blanked.errors == 0,
        Some(blanked) => blanked.errors == 0 || !blanked.has_next_to_none(),
        None => charset != first,
    })
}

/// The best of the charsets that claim a sample; `whole` is what the guesser names for the sample as it is.
fn best(
    charsets: &[&'static Encoding],
    sample: &[u8],
    whole: &'static Encoding,
) -> Option<Blanked> {
    let mut claims: Vec<Blanked> =
        charsets.iter().filter_map(|&c| claim(c, sample, whole)).collect();
    // The guesser names windows-1252 where nothing else fits.
    if claims.iter().any(|claim| claim.errors == 0 && claim.charset != WINDOWS_1252) {
        claims.retain(Blanked::has_next_to_none);
    }
    let named = (claims.len() > 1).then(|| most_named(&claims, sample)).flatten();
    if let Some(at) = named {
        return Some(claims.swap_remove(at));
    }
    claims.into_iter().min_by_key(|claim| claim.errors)
}

/// The place of the charset among `claims` that the guesser names for the most bytes past ASCII: it is asked about each
/// piece of the sample, without what is malformed in any of them. `None` when it names none of them.
///
/// A damaged byte puts what follows it out of step up to the next byte of ASCII, and characters out of step are rare
/// ones. In the whole sample a line of them outweighs the others; as a piece it has only its own weight.
fn most_named(claims: &[Blanked], sample: &[u8]) -> Option<usize> {
    let mut bytes = sample.to_vec();
    for claim in claims {
        for (byte, &own) in bytes.iter_mut().zip(&claim.bytes) {
            *byte = if own == b' ' { b' ' } else { *byte };
        }
    }
    let mut named = vec![0; claims.len()];
    for piece in pieces(&bytes) {
        let charset = by_statistics(piece);
        if let Some(at) = claims.iter().position(|claim| claim.charset == charset) {
            named[at] += piece.iter().filter(|byte| !byte.is_ascii()).count();
        }
    }
    let most = named.iter().copied().max().filter(|&most| most > 0)?;
    (0..claims.len()).filter(|&at| named[at] == most).min_by_key(|&at| claims[at].errors)
}

/// The pieces of a sample: at least 64 bytes each, except the last one. Each ends before a byte that no character
/// of several bytes contains in any charset.
fn pieces(sample: &[u8]) -> impl Iterator<Item = &[u8]> {
    const LEAST: usize = 64;
    // GB18030 has characters of four bytes with digits in them, Big5 and others have letters in characters of two.
    let is_boundary = |&byte: &u8| byte < b'0';
    let mut rest = sample;
    std::iter::from_fn(move || {
        let end = rest.iter().skip(LEAST).position(is_boundary);
        let (piece, after) = rest.split_at(end.map_or(rest.len(), |end| LEAST + end));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The neighbourhoods of bytes past ASCII, up to this many bytes. Pages are mostly ASCII, which says nothing.
fn telling(bytes: &[u8], most: usize) -> Vec<u8> {
    const NEAR: usize = 16;
    let mut sample = Vec::with_capacity(most.min(bytes.len()));
    let mut at = 0;
    while sample.len() < most {
        let Some(first) = bytes[at..].iter().position(|b| !b.is_ascii()) else { break };
        let begin = at + first.saturating_sub(NEAR);
        let mut end = at + first + 1;
        let limit = bytes.len().min(begin + most - sample.len());
        // More than NEAR ASCII bytes in a row end the neighbourhood.
        let mut quiet = 0;
        while end < limit && quiet < NEAR {
            quiet = if bytes[end].is_ascii() { quiet + 1 } else { 0 };
            end += 1;
        }
        sample.extend_from_slice(&bytes[begin..end]);
        at = end;
    }
    sample
}

/// What the guesser names. No country is given: `cn` would make it never say Big5.
fn by_statistics(sample: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    // Never `last`: a sample may end inside a character.
    detector.feed(sample, false);
    match detector.guess(None, Utf8Detection::Deny) {
        charset if charset == GBK => GB18030,
        charset => charset,
    }
}

/// A sample in which blanks stand for what is malformed in a charset.
struct Blanked {
    charset: &'static Encoding,
    bytes: Vec<u8>,
    /// How many places are malformed.
    errors: usize,
    /// Characters past ASCII.
    characters: usize,
}

impl Blanked {
    fn has_next_to_none(&self) -> bool {
        self.errors * CHARACTERS_AN_ERROR_BESIDE_NONE <= self.characters
    }
}

/// A charset that the guesser names once its errors are blanked out.
fn claim(charset: &'static Encoding, sample: &[u8], whole: &'static Encoding) -> Option<Blanked> {
    let blanked = blank_malformed(charset, sample)?;
    let named = if blanked.errors == 0 { whole } else { by_statistics(&blanked.bytes) };
    (named == charset).then_some(blanked)
}

/// `None` when there are too many errors.
fn blank_malformed(charset: &'static Encoding, sample: &[u8]) -> Option<Blanked> {
    let mut decoder = charset.new_decoder_without_bom_handling();
    let mut text = String::with_capacity(sample.len() * 3 + 16);
    let mut bytes = sample.to_vec();
    let (mut errors, mut at) = (0, 0);
    if charset.is_single_byte() && sample.iter().any(|byte| matches!(byte, 0x80..=0x9f)) {
        // Decoders take some bytes for control characters, which no text has.
        let is_control = |byte: u8| {
            let byte = [byte];
            let (text, _) = charset.decode_without_bom_handling(&byte);
            text.chars().all(|c| ('\u{80}'..='\u{9f}').contains(&c))
        };
        let controls = std::array::from_fn::<bool, 32, _>(|at| is_control(0x80 + at as u8));
        for byte in &mut bytes {
            if matches!(*byte, 0x80..=0x9f) && controls[usize::from(*byte - 0x80)] {
                *byte = b' ';
                errors += 1;
            }
        }
    }
    loop {
        let rest = &sample[at..];
        let (result, read) = decoder.decode_to_string_without_replacement(rest, &mut text, false);
        at += read;
        match result {
            DecoderResult::InputEmpty => break,
            DecoderResult::OutputFull => text.reserve(sample.len() + 16),
            DecoderResult::Malformed(bad, after) => {
                let end = at.saturating_sub(usize::from(after));
                bytes[end.saturating_sub(usize::from(bad))..end].fill(b' ');
                errors += 1;
            }
        }
    }
    let characters = text.chars().filter(|c| !c.is_ascii()).count();
    let is_few = errors * CHARACTERS_AN_ERROR <= characters;
    is_few.then_some(Blanked { charset, bytes, errors, characters })
}

/// Whether the bytes past ASCII are spelt as Thai in windows-874 is: marks above and below stand behind a consonant or
/// another mark, vowels written in front stand before a consonant. The guesser goes by blanks, of which Thai has few.
fn is_thai(sample: &[u8]) -> bool {
    let is_consonant = |b: u8| matches!(b, 0xa1..=0xce);
    let is_mark = |b: u8| matches!(b, 0xd1 | 0xd4..=0xda | 0xe7..=0xee);
    let is_leading = |b: u8| matches!(b, 0xe0..=0xe4);
    let is_other =
        |b: u8| matches!(b, 0xcf | 0xd0 | 0xd2 | 0xd3 | 0xdf | 0xe5 | 0xe6 | 0xef..=0xfb);
    let (mut letters, mut marks, mut leading, mut wrong) = (0, 0, 0, 0);
    let mut before = b' ';
    for &b in sample {
        letters += usize::from(!b.is_ascii());
        marks += usize::from(is_mark(b));
        leading += usize::from(is_leading(b));
        let is_right = match b {
            _ if is_leading(before) => is_consonant(b),
            _ if is_mark(b) => is_consonant(before) || is_mark(before),
            _ => b.is_ascii() || is_consonant(b) || is_leading(b) || is_other(b),
        };
        wrong += usize::from(!is_right);
        before = b;
    }
    letters >= 16
        && wrong * 40 <= letters
        && marks * 10 >= letters
        && leading * 25 >= letters
        && (marks + leading) * 2 <= letters
}
