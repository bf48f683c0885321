//! UTF-16 and UTF-32: charsets whose units are wider than a byte.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

use super::{CharsetSource, Decoded, Utf8Shape};

/// The bytes that decide about a document, from its start.
const SAMPLE: usize = 4096;

/// In which order the bytes of a unit stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    fn unit(self, unit: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(unit),
            Order::Big => u32::from_be_bytes(unit),
        }
    }
}

/// The order of UTF-32 that begins with a byte order mark, and the mark's length. The mark of UTF-32LE is that of
/// UTF-16LE and a NUL: it is UTF-32 when the units that follow are characters.
pub(super) fn utf32_by_mark(bytes: &[u8]) -> Option<(Order, usize)> {
    let order = match bytes {
        [0, 0, 0xfe, 0xff, ..] => Order::Big,
        [0xff, 0xfe, 0, 0, ..] => Order::Little,
        _ => return None,
    };
    let units = bytes[..bytes.len().min(SAMPLE)].as_chunks::<4>().0;
    let characters = units.iter().filter(|&&unit| char::from_u32(order.unit(unit)).is_some());
    (characters.count() * 10 >= units.len() * 9).then_some((order, 4))
}

/// UTF-32 without a mark: nine of ten units are usual characters, which no other charset's bytes imitate, since a
/// quarter of the bytes are NULs in one place.
pub(super) fn utf32_by_units(bytes: &[u8]) -> Option<Order> {
    memchr::memchr(0, bytes)?;
    let units = bytes[..bytes.len().min(SAMPLE)].as_chunks::<4>().0;
    let is_of = |order: &Order| {
        let usual = |&&unit: &&[u8; 4]| {
            char::from_u32(order.unit(unit)).is_some_and(|c| c != '\0' && is_usual(c))
        };
        units.len() >= 2 && units.iter().filter(usual).count() * 10 >= units.len() * 9
    };
    [Order::Little, Order::Big].into_iter().find(is_of)
}

/// Decodes UTF-32. Units that are no characters, and a last one that is cut short, become U+FFFD.
pub(super) fn decode_utf32(order: Order, source: CharsetSource, bytes: &[u8]) -> Decoded<'_> {
    let charset = match order {
        Order::Little => "UTF-32LE",
        Order::Big => "UTF-32BE",
    };
    let (units, rest) = bytes.as_chunks::<4>();
    let mut replaced = usize::from(!rest.is_empty());
    let mut text = String::with_capacity(bytes.len() / 2 + 3);
    for &unit in units {
        let c = char::from_u32(order.unit(unit));
        replaced += usize::from(c.is_none());
        text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    if !rest.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    Decoded { text: Cow::Owned(text), charset, source, replaced, overruled: None }
}

/// UTF-16 without a mark.
pub(super) fn utf16_by_units(bytes: &[u8], shape: &Utf8Shape) -> Option<&'static Encoding> {
    utf16_by_nuls(bytes, shape).or_else(|| utf16_by_high_bytes(bytes, shape))
}

/// UTF-16 without a NUL, which is text without ASCII, blanks and line breaks among it. It is of one small script, so that
/// the high bytes are one control character; or it is of Chinese or Japanese, with their punctuation or kana.
fn utf16_by_high_bytes(bytes: &[u8], shape: &Utf8Shape) -> Option<&'static Encoding> {
    const LEAST: usize = 8;
    let units = bytes[..bytes.len().min(SAMPLE)].as_chunks::<2>().0;
    let controls = |&&b: &&u8| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    if units.len() < LEAST {
        return None;
    }
    let many = |n: usize| n * 100 >= units.len() * 95;
    let is_of = |charset: &&'static Encoding| {
        let half = usize::from(*charset == UTF_16LE);
        let high = |unit: &[u8; 2]| unit[half];
        let low = |unit: &[u8; 2]| unit[1 - half];
        let is_small_script = (1..=0x1f).any(|page| {
            let is_high = |unit: &&[u8; 2]| high(unit) == page && low(unit) != page;
            controls(&&page) && many(units.iter().filter(is_high).count())
        });
        if is_small_script {
            return true;
        }
        let is_telling = |unit: &&[u8; 2]| match (high(unit), low(unit)) {
            (0x30, low) => !(0x12..=0x40).contains(&low),
            (0xff, low) => (0x01..0x66).contains(&low),
            _ => false,
        };
        let telling = units.iter().filter(is_telling).count();
        let ideographs = units.iter().filter(|unit| (0x4e..=0x9f).contains(&high(unit))).count();
        !shape.valid && telling * 64 >= units.len() && telling > 0 && many(telling + ideographs)
    };
    [UTF_16LE, UTF_16BE].into_iter().find(is_of)
}

/// UTF-16 without a mark: NULs are the high halves of ASCII characters, so they stand at odd places
/// (little endian) or at even ones, and what is read that way is text.
fn utf16_by_nuls(bytes: &[u8], shape: &Utf8Shape) -> Option<&'static Encoding> {
    memchr::memchr(0, bytes)?;
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let units = sample.as_chunks::<2>().0;
    let nuls_at = |half: usize| units.iter().filter(|unit| unit[half] == 0).count();
    let (even, odd) = (nuls_at(0), nuls_at(1));
    let (charset, nuls, others) =
        if odd > even { (UTF_16LE, odd, even) } else { (UTF_16BE, even, odd) };
    let read = |unit: &[u8; 2]| match odd > even {
        true => u16::from_le_bytes(*unit),
        false => u16::from_be_bytes(*unit),
    };
    let controls =
        sample.iter().filter(|&&b| b > 0 && b < 0x20 && !b.is_ascii_whitespace()).count();
    let not_bytewise = !shape.valid || controls * 10 > sample.len();
    let enough = nuls * 10 >= units.len() * 7 || (not_bytewise && nuls * 64 >= units.len());
    if nuls < 2 || !enough || others * 8 > nuls {
        return None;
    }
    let partners = units.iter().map(read).filter(|&unit| unit > 0 && unit < 0x100);
    let (ascii, all) = partners.fold((0, 0), |(ascii, all), unit| {
        (ascii + usize::from(unit < 0x80 && (unit >= 0x20 || is_line_space(unit))), all + 1)
    });
    let text = char::decode_utf16(units.iter().map(read))
        .filter(|c| c.as_ref().is_ok_and(|&c| is_usual(c)))
        .count();
    // A surrogate pair is one character of two units: it counts as half, and is rare.
    (ascii * 10 >= all * 9 && text * 10 >= units.len() * 9).then_some(charset)
}

fn is_line_space(unit: u16) -> bool {
    matches!(unit, 0x09..=0x0d)
}

fn is_usual(c: char) -> bool {
    c.is_alphanumeric()
        || c.is_ascii_graphic()
        || c.is_whitespace()
        || matches!(c, '\u{a0}'..='\u{bf}' | '\u{300}'..='\u{36f}' | '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}')
}
