//! The stable hash of a feature, and its kernels for shingles.
//!
//! The hash is XXH3-64 with seed 0 and the default secret. Shingles are short, so most of the cost of
//! a library call would be finding out how short: here the length is known when a whole stretch of
//! text is hashed. The library stays the oracle of every kernel.
//!
//! # References
//! xxHash fast digest algorithm, XXH3 specification, sections 'Small inputs: 4-8 bytes' and
//! '9-16 bytes'.

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
    let bytes = text.as_bytes();
    // Scripts come in stretches of one width: ASCII, or the three bytes of nearly all Han.
    match (width(bytes), n) {
        (Some(1), 4) => fixed::<1, 4>(bytes, hash_4_to_8::<4>, out),
        (Some(1), 5) => fixed::<1, 5>(bytes, hash_4_to_8::<5>, out),
        (Some(1), 6) => fixed::<1, 6>(bytes, hash_4_to_8::<6>, out),
        (Some(3), 2) => fixed::<3, 6>(bytes, hash_4_to_8::<6>, out),
        (Some(3), 3) => fixed::<3, 9>(bytes, hash_9_to_16::<9>, out),
        (Some(3), 4) => fixed::<3, 12>(bytes, hash_9_to_16::<12>, out),
        (Some(3), 5) => fixed::<3, 15>(bytes, hash_9_to_16::<15>, out),
        _ => char_shingles(text, n, |shingle| out.push(hash_token(shingle))),
    }
}

/// The bytes that each character takes, when all take 1 or all take 3.
fn width(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        0..0x80 if bytes.is_ascii() => Some(1),
        // In valid UTF-8 a byte of E0 to EF begins exactly three bytes: when every third byte is one,
        // nothing else fits between.
        0xe0..=0xef if bytes.len().is_multiple_of(3) => {
            let threes = bytes.chunks_exact(3).all(|c| c[0] & 0xf0 == 0xe0);
            threes.then_some(3)
        }
        _ => None,
    }
}

/// Hashes every window of `LEN` bytes that starts at a multiple of `WIDTH`.
#[inline]
fn fixed<const WIDTH: usize, const LEN: usize>(
    bytes: &[u8],
    hash: impl Fn(&[u8; LEN]) -> u64,
    out: &mut Vec<u64>,
) {
    out.extend(
        bytes.windows(LEN).step_by(WIDTH).filter_map(|window| window.first_chunk()).map(hash),
    );
}

// Words of XXH3's default secret, by their byte offset.
const SECRET_8: u64 = 0x1cad_21f7_2c81_017c;
const SECRET_16: u64 = 0xdb97_9083_e96d_d4de;
const SECRET_24: u64 = 0x1f67_b3b7_a4a4_4072;
const SECRET_32: u64 = 0x78e5_c0cc_4ee6_79cb;
const SECRET_40: u64 = 0x2172_ffcc_7dd0_5a82;
const SECRET_48: u64 = 0x8e24_43f7_7446_08b8;

#[inline(always)]
fn hash_4_to_8<const LEN: usize>(input: &[u8; LEN]) -> u64 {
    const { assert!(LEN >= 4 && LEN <= 8) };
    let word =
        |at: usize| u32::from_le_bytes([input[at], input[at + 1], input[at + 2], input[at + 3]]);
    let both = u64::from(word(LEN - 4)).wrapping_add(u64::from(word(0)) << 32);
    let mut hash = both ^ (SECRET_8 ^ SECRET_16);
    hash ^= hash.rotate_left(49) ^ hash.rotate_left(24);
    hash = hash.wrapping_mul(0x9fb2_1c65_1e98_df25);
    hash ^= (hash >> 35).wrapping_add(LEN as u64);
    hash = hash.wrapping_mul(0x9fb2_1c65_1e98_df25);
    hash ^ hash >> 28
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
        fn kernels_equal_the_library_on_any_text(
            text in prop_oneof!["[ -~]{0,40}", "[一-龥]{0,20}", "[a-c一-三éß😀]{0,20}", "\\PC{0,20}"],
            n in 1usize..=9,
        ) {
            check(&text, n);
        }
    }
}
