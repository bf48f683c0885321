//! The committed table behind [`normalise`](mod@super::normalise) and [`script`](super::script):
//! its layout is described in `data/README-normalise.md`.

const BYTES: &[u8] = include_bytes!("../../data/normalise.bin");

const MAP_AT: usize = 16;
const INERT_AT: usize = MAP_AT + 2 * MAP_LEN;
const CLASS_INDEX_AT: usize = INERT_AT + INERT_LEN;
const CLASS_COUNT_AT: usize = CLASS_INDEX_AT + CLASS_INDEX_LEN;
const CLASSES_AT: usize = CLASS_COUNT_AT + 4;
const CLASSES_LEN: usize = 64 * u32_at(CLASS_COUNT_AT) as usize;
const PAIR_COUNT_AT: usize = CLASSES_AT + CLASSES_LEN;
const PAIRS_LEN: usize = u32_at(PAIR_COUNT_AT) as usize;

const MAP_LEN: usize = 0x1_0000;
const INERT_LEN: usize = 0x1000 / 8;
const CLASS_INDEX_LEN: usize = 0x1100;

const _: () = assert!(
    BYTES[0] == b'N' && BYTES[1] == b'S' && BYTES[2] == b'N' && BYTES[3] == b'M',
    "normalise.bin begins with NSNM"
);
const _: () = assert!(BYTES.len() == PAIR_COUNT_AT + 4 + 8 * PAIRS_LEN, "normalise.bin is whole");

/// The version of the mapping.
pub(super) const VERSION: u32 = u32_at(4);
/// The Unicode version of its compatibility forms.
pub(super) const UNICODE_NFKC: (u8, u8, u8) = (BYTES[8], BYTES[9], BYTES[10]);
/// The Unicode version of its lower case.
pub(super) const UNICODE_CASE: (u8, u8, u8) = (BYTES[12], BYTES[13], BYTES[14]);

/// In [`MAP`]: the result depends on the neighbours, or is not one unit long.
pub(super) const SLOW: u16 = 0xd800;

/// For each unit of the BMP the unit that all steps together make of it, or [`SLOW`].
pub(super) static MAP: [u16; MAP_LEN] = {
    let mut map = [0; MAP_LEN];
    let mut i = 0;
    while i < MAP_LEN {
        map[i] = u16::from_le_bytes([BYTES[MAP_AT + 2 * i], BYTES[MAP_AT + 2 * i + 1]]);
        i += 1;
    }
    map
};

static INERT: [u8; INERT_LEN] = copy(INERT_AT);
static CLASS_INDEX: [u8; CLASS_INDEX_LEN] = copy(CLASS_INDEX_AT);
static CLASSES: [u8; CLASSES_LEN] = copy(CLASSES_AT);

/// Traditional and simplified character where one of them lies past the BMP, in order of the first.
static SIMPLIFIED_PAST_BMP: [(u32, u32); PAIRS_LEN] = {
    let mut pairs = [(0, 0); PAIRS_LEN];
    let mut i = 0;
    while i < PAIRS_LEN {
        let at = PAIR_COUNT_AT + 4 + 8 * i;
        pairs[i] = (u32_at(at), u32_at(at + 4));
        i += 1;
    }
    pairs
};

const fn u32_at(at: usize) -> u32 {
    u32::from_le_bytes([BYTES[at], BYTES[at + 1], BYTES[at + 2], BYTES[at + 3]])
}

const fn copy<const N: usize>(at: usize) -> [u8; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = BYTES[at + i];
        i += 1;
    }
    out
}

/// Whether a character past the BMP lies in a block of 256 that no step changes.
#[inline]
pub(super) fn is_inert_past_bmp(c: char) -> bool {
    let block = (u32::from(c) as usize >> 8) - 0x100;
    INERT[block / 8] >> (block % 8) & 1 == 1
}

/// Class bits of a sign that carries meaning; those of the other classes are in [`class`](super::script::class).
pub(super) const SIGN: u8 = 3;

/// The two class bits of a character.
#[inline]
pub(super) fn class_bits(c: char) -> u8 {
    let code = u32::from(c) as usize;
    let block = CLASS_INDEX[code >> 8] as usize;
    CLASSES[block * 64 + (code & 0xff) / 4] >> (code % 4 * 2) & 3
}

/// The simplified form where it or the traditional form lies past the BMP.
pub(super) fn simplified_past_bmp(c: char) -> Option<char> {
    let found = SIMPLIFIED_PAST_BMP.binary_search_by_key(&u32::from(c), |pair| pair.0).ok()?;
    char::from_u32(SIMPLIFIED_PAST_BMP[found].1)
}
