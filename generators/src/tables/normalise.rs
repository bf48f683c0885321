//! Makes `crates/nearsift/data/normalise.bin`: the table behind `text::normalise` and `text::script`.
//!
//! The layout and the origin of the data are described in `crates/nearsift/data/README-normalise.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::props::GeneralCategory;
use icu_properties::{CodePointMapData, CodePointMapDataBorrowed};
use nearsift::text::normalise::{Chinese, Steps};
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};
use unicode_normalization::{IsNormalized, is_nfc_quick};
use unicode_script::{Script, UnicodeScript};

use super::Mode;
use crate::sources::package_folder;

/// The version of the mapping: it changes when any character of the table changes its value.
const VERSION: u32 = 2;
const MAGIC: &[u8; 4] = b"NSNM";
const TABLE: &str = "crates/nearsift/data/normalise.bin";
const OPENCC: &str = "ferrous-opencc";
const TRADITIONAL_TO_SIMPLIFIED: &str = "assets/dictionaries/TSCharacters.txt";

/// Marks a character whose result depends on its neighbours or is not one unit long. It is a
/// surrogate, so no character maps to it.
const SLOW: u16 = 0xd800;

/// Makes the table anew or checks the one that is there.
///
/// # Errors
/// A sentence that says what failed: the dictionary is not to be found, or the file differs.
pub fn run(mode: Mode) -> Result<(), String> {
    let dictionary = package_folder(OPENCC)?.join(TRADITIONAL_TO_SIMPLIFIED);
    mode.apply(TABLE, &table(&read_dictionary(&dictionary)?))
}

/// Traditional -> Simplified, the first candidate of each line. A chain (A -> B, B -> C) is followed
/// to its end, so that converting twice changes nothing more.
fn read_dictionary(path: &Path) -> Result<BTreeMap<char, char>, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut first = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let pair = line.split_once('\t').and_then(|(from, to)| {
            Some((single(from.chars())?, single(to.split(' ').next()?.chars())?))
        });
        let (from, to) = pair.ok_or_else(|| {
            format!("{}:{}: expected CHARACTER <tab> CHARACTER ...", path.display(), index + 1)
        })?;
        first.insert(from, to);
    }
    let end = |mut c: char| {
        // A chain is two links long today; a loop would end here too.
        for _ in 0..8 {
            c = first.get(&c).copied().unwrap_or(c);
        }
        c
    };
    Ok(first.keys().map(|&from| (from, end(from))).filter(|(from, to)| from != to).collect())
}

fn single(mut chars: impl Iterator<Item = char>) -> Option<char> {
    chars.next().filter(|_| chars.next().is_none())
}

fn table(simplified: &BTreeMap<char, char>) -> Vec<u8> {
    let maker = Maker { simplified, nfkd: DecomposingNormalizerBorrowed::new_nfkd() };
    let mut out = Vec::new();
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    let (major, minor, patch) = unicode_normalization::UNICODE_VERSION;
    out.extend([major, minor, patch, 0]);
    let (major, minor, patch) = char::UNICODE_VERSION;
    out.extend([major, minor, patch, 0]);
    for unit in 0..=0xffff {
        let value = char::from_u32(unit).and_then(|c| maker.alone(c)).unwrap_or(SLOW);
        out.extend(value.to_le_bytes());
    }
    for blocks in (0x100..0x1100u32).collect::<Vec<_>>().chunks(8) {
        let inert = |block: &u32| (block << 8..(block + 1) << 8).all(|c| maker.is_inert(c));
        out.push(blocks.iter().enumerate().map(|(bit, b)| u8::from(inert(b)) << bit).sum());
    }
    push_classes(&mut out);
    let elsewhere: Vec<_> = simplified.iter().filter(|(from, to)| past_bmp(**from, **to)).collect();
    out.extend((elsewhere.len() as u32).to_le_bytes());
    for (&from, &to) in elsewhere {
        out.extend(u32::from(from).to_le_bytes());
        out.extend(u32::from(to).to_le_bytes());
    }
    out
}

fn past_bmp(from: char, to: char) -> bool {
    u32::from(from) > 0xffff || u32::from(to) > 0xffff
}

struct Maker<'a> {
    simplified: &'a BTreeMap<char, char>,
    nfkd: DecomposingNormalizerBorrowed<'static>,
}

impl Maker<'_> {
    /// The one unit that `c` becomes in whatever text it stands, or `None`.
    fn alone(&self, c: char) -> Option<u16> {
        let form = single(as_defined(c).chars())?;
        let to = self.simplified.get(&form).copied().unwrap_or(form);
        let stable = single(as_defined(form).chars()) == Some(form);
        let starts = [c, form, to].into_iter().all(|c| self.starts(c));
        u16::try_from(u32::from(to)).ok().filter(|_| stable && starts)
    }

    /// Whether nothing that stands before `c` can combine with it: all that it decomposes to begins
    /// with a starter that is no second part of a composition.
    fn starts(&self, c: char) -> bool {
        let part = |c: char| {
            canonical_combining_class(c) == 0
                && is_nfc_quick(std::iter::once(c)) != IsNormalized::Maybe
        };
        part(c) && self.nfkd.normalize_iter([c].into_iter()).next().is_some_and(part)
    }

    /// Whether no step changes the code point or lets it meet its neighbours.
    fn is_inert(&self, code: u32) -> bool {
        char::from_u32(code).is_none_or(|c| {
            self.starts(c)
                && single(as_defined(c).chars()) == Some(c)
                && !self.simplified.contains_key(&c)
        })
    }
}

/// What all steps but the last make of a character, one by one: only all steps together look into the table that is made
/// here.
fn as_defined(c: char) -> String {
    Steps { chinese: Chinese::Keep, ..Steps::default() }.normalise(c.encode_utf8(&mut [0; 4]))
}

/// The classes in two levels: for each 256 code points the number of a block, then the blocks, two
/// bits a character, lowest bits first.
fn push_classes(out: &mut Vec<u8>) {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    for block in 0..0x1100u32 {
        let classes: Vec<u8> = (block << 8..(block + 1) << 8).map(class_of).collect();
        let packed: Vec<u8> =
            classes.chunks(4).map(|c| c[0] | c[1] << 2 | c[2] << 4 | c[3] << 6).collect();
        let number = blocks.iter().position(|b| *b == packed).unwrap_or_else(|| {
            blocks.push(packed);
            blocks.len() - 1
        });
        out.push(u8::try_from(number).expect("at most 256 different blocks"));
    }
    out.extend((blocks.len() as u32).to_le_bytes());
    out.extend(blocks.concat());
}

const SEPARATOR: u8 = 0;
const ALPHABETIC: u8 = 1;
const UNSPACED: u8 = 2;
const SIGN: u8 = 3;

static CATEGORIES: CodePointMapDataBorrowed<'static, GeneralCategory> =
    CodePointMapData::<GeneralCategory>::new();

/// Whether a character that is no letter carries meaning by itself: mathematical and currency signs and other
/// symbols (arrows, stars, emoji and their colours of skin), and the signs of parts of a whole, which are punctuation in
/// Unicode. What stands for a character or an object that is not there is none.
fn is_sign(c: char) -> bool {
    use GeneralCategory as G;
    match c {
        '%' | '\u{66a}' | '\u{2030}' | '\u{2031}' | '\u{1f3fb}'..='\u{1f3ff}' => true,
        '\u{fffc}' | '\u{fffd}' => false,
        _ => matches!(CATEGORIES.get(c), G::MathSymbol | G::CurrencySymbol | G::OtherSymbol),
    }
}

fn class_of(code: u32) -> u8 {
    let Some(c) = char::from_u32(code) else { return SEPARATOR };
    // Variation selectors and the like are marks that show nothing.
    let invisible = matches!(code, 0x34f | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0xfe00..=0xfe0f | 0xe0100..=0xe01ef);
    if invisible || !(c.is_alphabetic() || c.is_numeric() || is_combining_mark(c)) {
        return if is_sign(c) { SIGN } else { SEPARATOR };
    }
    let unspaced = match c.script() {
        // Shared characters: unspaced when every script that uses them is.
        Script::Common | Script::Inherited => {
            let mut users = c.script_extension().iter().peekable();
            users.peek().is_some() && users.all(is_unspaced)
        }
        script => is_unspaced(script),
    };
    if unspaced { UNSPACED } else { ALPHABETIC }
}

/// Scripts whose words are not parted by spaces, and Hangul, whose words carry their particles.
fn is_unspaced(script: Script) -> bool {
    use Script as S;
    matches!(
        script,
        S::Han
            | S::Bopomofo
            | S::Hiragana
            | S::Katakana
            | S::Hangul
            | S::Yi
            | S::Nushu
            | S::Tangut
            | S::Khitan_Small_Script
            | S::Thai
            | S::Lao
            | S::Khmer
            | S::Myanmar
            | S::Tibetan
            | S::Tai_Le
            | S::New_Tai_Lue
            | S::Tai_Tham
            | S::Tai_Viet
            | S::Ahom
            | S::Javanese
            | S::Balinese
            | S::Buginese
    )
}
