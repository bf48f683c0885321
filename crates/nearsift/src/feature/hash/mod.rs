//! The stable hash of a feature, and its kernels for shingles.
//!
//! The hash is XXH3-64 with seed 0 and the default secret. Shingles are short, so most of the cost of
//! a library call would be finding out how short: here the length is known when a whole stretch of
//! text is hashed. The library stays the oracle of every kernel.
//!
//! # References
//! xxHash fast digest algorithm, XXH3 specification, sections on inputs of 1 to 3, 4 to 8 and
//! 9 to 16 bytes.

#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::shingle::char_shingles;

/// The stable hash of a feature: XXH3-64, seed 0, over the UTF-8 bytes of the normalised token.
///
/// Anyone can recompute it: the algorithm is specified outside this project and will not change.
///
/// ```
/// assert_eq!(nearsift::feature::hash_token("中国"), xxhash_rust::xxh3::xxh3_64("中国".as_bytes()));
/// ```
#[inline]
pub fn hash_token(token: &str) -> u64 {
    xxh3_64(token.as_bytes())
}

/// Appends the hash of every run of `n` consecutive characters, in order: what [`hash_token`] gives
/// for each token of [`char_shingles`].
///
/// # Panics
/// When `n` is 0.
///
/// # Complexity
/// O(bytes); about 1.5 ns a shingle where all characters take equally many bytes.
pub fn hash_char_shingles(text: &str, n: usize, out: &mut Vec<u64>) {
    assert!(n > 0, "a shingle has at least one character");
    // Scripts come in runs of one width: ASCII, or the three bytes of nearly all Han.
    let mut start = 0;
    while start < text.len() {
        let bytes = &text.as_bytes()[start..];
        let (width, length) = run(bytes);
        let run = &bytes[..length];
        let inside = match (width, n) {
            (1, 3) => fixed::<1, 3>(run, one_by_one, hash_1_to_3::<3>, out),
            (1, 4) => windows_of_4_to_8::<1, 4>(run, out),
            (1, 5) => windows_of_4_to_8::<1, 5>(run, out),
            (1, 6) => windows_of_4_to_8::<1, 6>(run, out),
            (3, 2) => windows_of_4_to_8::<3, 6>(run, out),
            (3, 3) => windows_of_9_to_16::<3, 9>(run, out),
            (3, 4) => windows_of_9_to_16::<3, 12>(run, out),
            (3, 5) => windows_of_9_to_16::<3, 15>(run, out),
            _ => 0,
        };
        // The shingles that start in this run and were not inside it end at most n - 1 characters
        // after it.
        let after = &text[start + length..];
        let end = after.char_indices().nth(n - 1).map_or(after.len(), |(at, _)| at);
        let across = &text[start + inside * width..start + length + end];
        char_shingles(across, n, |shingle| out.push(hash_token(shingle)));
        start += length;
    }
}

/// Appends the hashes of all runs of 2 characters and then those of all runs of 3: what two calls of
/// [`hash_char_shingles`] give.
///
/// # Complexity
/// O(bytes); about 1.2 ns a shingle of Han characters.
pub(super) fn hash_pairs_and_triples(text: &str, out: &mut Vec<u64>) {
    let bytes = text.as_bytes();
    // Nearly all stretches of unspaced scripts are characters of three bytes.
    if bytes.iter().step_by(3).all(|first| first & 0xf0 == 0xe0) {
        windows_of_4_to_8::<3, 6>(bytes, out);
        windows_of_9_to_16::<3, 9>(bytes, out);
    } else {
        hash_char_shingles(text, 2, out);
        hash_char_shingles(text, 3, out);
    }
}

/// Appends the hash of each of these parts of a text: what [`hash_token`] gives for each.
///
/// # Complexity
/// O(bytes); about 2 ns a part of up to 8 bytes.
pub(super) fn hash_parts(text: &str, parts: &[Range<u32>], out: &mut Vec<u64>) {
    out.extend(parts.iter().map(|part| {
        let (start, end) = (part.start as usize, part.end as usize);
        match (text.as_bytes()[start..].first_chunk(), end - start) {
            (Some(&bytes), len @ 1..=8) => hash_1_to_8(u64::from_le_bytes(bytes), len as u32),
            _ => hash_token(&text[start..end]),
        }
    }));
}

/// The width in bytes of the first character of valid UTF-8, and the length in bytes of the run of
/// characters of that width.
fn run(bytes: &[u8]) -> (usize, usize) {
    let length = |width: usize, is_first: fn(u8) -> bool| {
        bytes.iter().step_by(width).take_while(|&&first| is_first(first)).count() * width
    };
    match bytes[0] {
        0..0x80 => (1, length(1, |b| b < 0x80)),
        0xe0..=0xef => (3, length(3, |b| b & 0xf0 == 0xe0)),
        0xc0..=0xdf => (2, length(2, |b| b & 0xe0 == 0xc0)),
        _ => (4, length(4, |b| b & 0xf8 == 0xf0)),
    }
}

/// Hashes every window of `LEN` bytes that starts at a multiple of `WIDTH`, and returns how many
/// there are. `many` may hash some of the first ones, and returns how many.
#[inline]
fn fixed<const WIDTH: usize, const LEN: usize>(
    bytes: &[u8],
    many: impl Fn(&[u8], &mut [u64]) -> usize,
    hash: impl Fn(&[u8; LEN]) -> u64,
    out: &mut Vec<u64>,
) -> usize {
    let count = bytes.len().checked_sub(LEN).map_or(0, |more| more / WIDTH + 1);
    let before = out.len();
    // The length is known: a loop over places has nothing to grow.
    out.resize(before + count, 0);
    let places = &mut out[before..];
    let done = many(bytes, places);
    let windows = bytes[done * WIDTH..].windows(LEN).step_by(WIDTH);
    for (place, window) in places[done..].iter_mut().zip(windows) {
        *place = window.first_chunk().map_or(0, &hash);
    }
    count
}

/// [`fixed`] for windows of 4 to 8 bytes.
#[inline]
fn windows_of_4_to_8<const WIDTH: usize, const LEN: usize>(
    bytes: &[u8],
    out: &mut Vec<u64>,
) -> usize {
    fixed::<WIDTH, LEN>(bytes, hash_many_4_to_8::<WIDTH, LEN>, hash_4_to_8::<LEN>, out)
}

/// [`fixed`] for windows of 9 to 16 bytes.
#[inline]
fn windows_of_9_to_16<const WIDTH: usize, const LEN: usize>(
    bytes: &[u8],
    out: &mut Vec<u64>,
) -> usize {
    fixed::<WIDTH, LEN>(bytes, one_by_one, hash_9_to_16::<LEN>, out)
}

/// None is hashed with others.
fn one_by_one(_bytes: &[u8], _out: &mut [u64]) -> usize {
    0
}

/// The first of the windows of [`fixed`], as many as the instructions of this machine are good for.
#[inline]
fn hash_many_4_to_8<const WIDTH: usize, const LEN: usize>(bytes: &[u8], out: &mut [u64]) -> usize {
    #[cfg(target_arch = "x86_64")]
    return x86::hash_4_to_8::<WIDTH, LEN>(bytes, out);
    #[cfg(not(target_arch = "x86_64"))]
    one_by_one(bytes, out)
}

// Words of XXH3's default secret, by their byte offset.
const SECRET_0: u32 = 0x396c_feb8;
const SECRET_4: u32 = 0xbe4b_a423;
const SECRET_8: u64 = 0x1cad_21f7_2c81_017c;
const SECRET_16: u64 = 0xdb97_9083_e96d_d4de;
const SECRET_24: u64 = 0x1f67_b3b7_a4a4_4072;
const SECRET_32: u64 = 0x78e5_c0cc_4ee6_79cb;
const SECRET_40: u64 = 0x2172_ffcc_7dd0_5a82;
const SECRET_48: u64 = 0x8e24_43f7_7446_08b8;

/// What a hash of 4 to 8 bytes is multiplied by.
const MIX_4_TO_8: u64 = 0x9fb2_1c65_1e98_df25;

#[inline(always)]
fn hash_1_to_3<const LEN: usize>(input: &[u8; LEN]) -> u64 {
    const { assert!(LEN >= 1 && LEN <= 3) };
    let byte = |at: usize| u32::from(input[at]);
    mix_1_to_3([0, LEN / 2, LEN - 1].map(byte), LEN as u32)
}

/// The first, the middle and the last byte of a token.
#[inline(always)]
fn mix_1_to_3([first, middle, last]: [u32; 3], len: u32) -> u64 {
    let combined = first << 16 | middle << 24 | last | len << 8;
    let mut hash = u64::from(combined) ^ u64::from(SECRET_0 ^ SECRET_4);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    hash = (hash ^ hash >> 29).wrapping_mul(0x1656_67b1_9e37_79f9);
    hash ^ hash >> 32
}

#[inline(always)]
fn hash_4_to_8<const LEN: usize>(input: &[u8; LEN]) -> u64 {
    const { assert!(LEN >= 4 && LEN <= 8) };
    let word =
        |at: usize| u32::from_le_bytes([input[at], input[at + 1], input[at + 2], input[at + 3]]);
    mix_4_to_8([word(0), word(LEN - 4)], LEN as u32)
}

/// The first and the last four bytes of a token.
#[inline(always)]
fn mix_4_to_8([first, last]: [u32; 2], len: u32) -> u64 {
    let both = u64::from(last).wrapping_add(u64::from(first) << 32);
    let mut hash = both ^ (SECRET_8 ^ SECRET_16);
    hash ^= hash.rotate_left(49) ^ hash.rotate_left(24);
    hash = hash.wrapping_mul(MIX_4_TO_8);
    hash ^= (hash >> 35).wrapping_add(len.into());
    hash = hash.wrapping_mul(MIX_4_TO_8);
    hash ^ hash >> 28
}

/// Of the lowest 1 to 8 bytes of a word. How long a word of a text is no processor can guess, so that no
/// branch asks.
#[inline(always)]
fn hash_1_to_8(bytes: u64, len: u32) -> u64 {
    let byte = |at: u32| (bytes >> (8 * at)) as u32 & 0xff;
    let short = mix_1_to_3([0, len / 2, len - 1].map(byte), len);
    let long = mix_4_to_8([bytes as u32, (bytes >> (8 * len.saturating_sub(4))) as u32], len);
    std::hint::select_unpredictable(len < 4, short, long)
}

#[inline(always)]
fn hash_9_to_16<const LEN: usize>(input: &[u8; LEN]) -> u64 {
    const { assert!(LEN >= 9 && LEN <= 16) };
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&input[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let low = word(0) ^ (SECRET_24 ^ SECRET_32);
    let high = word(LEN - 8) ^ (SECRET_40 ^ SECRET_48);
    let product = u128::from(low) * u128::from(high);
    let folded = product as u64 ^ (product >> 64) as u64;
    let mut hash =
        (LEN as u64).wrapping_add(low.swap_bytes()).wrapping_add(high).wrapping_add(folded);
    hash ^= hash >> 37;
    hash = hash.wrapping_mul(0x1656_6791_9e37_79f9);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, n: usize) {
        let (mut expect, mut found) = (vec![7], vec![7]);
        char_shingles(text, n, |shingle| expect.push(xxh3_64(shingle.as_bytes())));
        hash_char_shingles(text, n, &mut found);
        assert_eq!(found, expect, "{text:?} {n}");
        if n == 3 {
            let (mut expect, mut found) = (vec![7], vec![7]);
            hash_char_shingles(text, 2, &mut expect);
            hash_char_shingles(text, 3, &mut expect);
            hash_pairs_and_triples(text, &mut found);
            assert_eq!(found, expect, "{text:?}");
        }
    }

    #[test]
    fn kernels_equal_the_library() {
        for text in [
            "",
            "a",
            "中",
            "abcdefghijkl",
            "汉字六个字啊",
            "aé中😀",
            "éé",
            "中文a",
            "a中文",
            "ßßßßßß",
        ] {
            (1..=9).for_each(|n| check(text, n));
        }
    }

    proptest! {
        #[test]
        fn parts_are_hashed_as_tokens(
            text in "[a-z]{0,40}",
            parts in prop::collection::vec((any::<prop::sample::Index>(), 0u32..20), 0..20),
        ) {
            let end = text.len() as u32;
            let part = |(start, len): (prop::sample::Index, u32)| {
                let start = start.index(text.len() + 1) as u32;
                start..end.min(start + len)
            };
            let parts: Vec<Range<u32>> = parts.into_iter().map(part).collect();
            let token = |part: &Range<u32>| hash_token(&text[part.start as usize..part.end as usize]);
            let mut found = Vec::new();
            hash_parts(&text, &parts, &mut found);
            prop_assert_eq!(found, parts.iter().map(token).collect::<Vec<_>>());
        }

        #[test]
        fn kernels_equal_the_library_on_any_text(
            text in prop_oneof!["[ -~]{0,90}", "[一-龥]{0,50}", "[a-c一-三éß😀]{0,20}", "\\PC{0,20}"],
            n in 1usize..=9,
        ) {
            check(&text, n);
        }
    }
}
