//! Hash functions of other SimHash libraries, for recipes that reproduce their fingerprints.
//!
//! None of them is for new fingerprints: [`crate::feature::hash_token`] is.

use md5::{Digest, Md5};
use sha1::Sha1;
use siphasher::sip::SipHasher;
use std::hash::Hasher;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The first 8 bytes of the MD5 digest, most significant first.
pub fn md5_first(bytes: &[u8]) -> u64 {
    be_u64(&md5(bytes)[..8])
}

/// The last 8 bytes of the MD5 digest, most significant first.
pub fn md5_last(bytes: &[u8]) -> u64 {
    be_u64(&md5(bytes)[8..])
}

/// The MD5 digest (RFC 1321).
pub fn md5(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes).into()
}

/// The SHA-1 digest (RFC 3174).
pub fn sha1(bytes: &[u8]) -> [u8; 20] {
    Sha1::digest(bytes).into()
}

fn be_u64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// XXH3-64 with a seed.
pub fn xxh3(bytes: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// SipHash-2-4 with keys over the bytes and a final byte 0xff, as Rust's standard library hashes a
/// string.
///
/// # References
/// Aumasson and Bernstein, 'SipHash: a fast short-input PRF', INDOCRYPT 2012.
pub fn siphash_str(text: &str, keys: (u64, u64)) -> u64 {
    let mut hasher = SipHasher::new_with_keys(keys.0, keys.1);
    hasher.write(text.as_bytes());
    hasher.write(&[0xff]);
    hasher.finish()
}

/// The string hash of the articles on SimHash, modulo 2^128: multiply and XOR, as Python 2 hashed
/// strings. `units` are code points or UTF-16 code units. An empty string is 0.
///
/// It does not mix: a string of one or two units leaves most high bits at 0.
///
/// ```
/// use nearsift::fingerprint::hash::string_hash;
/// assert_eq!(string_hash([]), 0);
/// assert_eq!(string_hash([97]), ((97 << 7) * 1_000_003 ^ 97) ^ 1);
/// ```
pub fn string_hash(units: impl IntoIterator<Item = u32>) -> u128 {
    let (mut hash, mut length) = (0u128, 0u128);
    for unit in units {
        let unit = u128::from(unit);
        if length == 0 {
            hash = unit << 7;
        }
        hash = hash.wrapping_mul(1_000_003) ^ unit;
        length += 1;
    }
    hash ^ length
}

/// Jenkins' lookup3 `hashlittle2` with both seeds 0: the primary hash in the high 32 bits and the
/// secondary one in the low.
///
/// # References
/// Jenkins, 'lookup3.c', 2006, public domain.
pub fn lookup3(bytes: &[u8]) -> u64 {
    lookup3_in(bytes, u64::from(u32::MAX))
}

/// [`lookup3`] as it comes out where its 32-bit words are kept in 64-bit integers that are never cut
/// off: what is shifted out of 32 bits stays, and finds its way into the result.
pub fn lookup3_uncut(bytes: &[u8]) -> u64 {
    lookup3_in(bytes, u64::MAX)
}

/// lookup3 with every intermediate result cut off by the mask.
fn lookup3_in(bytes: &[u8], mask: u64) -> u64 {
    let rotate = |x: u64, by: u32| (x << by | x >> (32 - by)) & mask;
    let plus = |x: u64, y: u64| x.wrapping_add(y) & mask;
    let minus = |x: u64, y: u64| x.wrapping_sub(y) & mask;
    // Words of 4 bytes; a short last word is padded with zeros.
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));

    let start = plus(0xdead_beef, bytes.len() as u64);
    let (mut a, mut b, mut c) = (start, start, start);
    let add = |block: &[u8], a: &mut u64, b: &mut u64, c: &mut u64| {
        for (state, bytes) in [a, b, c].into_iter().zip(block.chunks(4)) {
            *state = plus(*state, word(bytes));
        }
    };
    // The last block has 1 to 12 bytes and another mixer.
    let (full, last) = bytes.split_at(bytes.len().saturating_sub(1) / 12 * 12);
    for block in full.chunks_exact(12) {
        add(block, &mut a, &mut b, &mut c);
        for (i, by) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
            let (x, y, z) = match i % 3 {
                0 => (&mut a, &mut c, b),
                1 => (&mut b, &mut a, c),
                _ => (&mut c, &mut b, a),
            };
            *x = minus(*x, *y) ^ rotate(*y, by);
            *y = plus(*y, z);
        }
    }
    if !last.is_empty() {
        add(last, &mut a, &mut b, &mut c);
        for (i, by) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
            let (x, y) = match i % 3 {
                0 => (&mut c, b),
                1 => (&mut a, c),
                _ => (&mut b, a),
            };
            *x = minus(*x ^ y, rotate(y, by));
        }
    }
    c << 32 | b
}

/// A 64-bit MurmurHash of one lane, as the Java library hutool has it: the block step and finaliser
/// of MurmurHash3's x64 variant, seed 0.
///
/// # References
/// Appleby, 'MurmurHash3', 2011, public domain, for the constants.
pub fn murmur_one_lane(bytes: &[u8]) -> u64 {
    let scramble = |block: &[u8]| {
        let k = block.iter().rev().fold(0, |k, &byte| k << 8 | u64::from(byte));
        k.wrapping_mul(0x87c3_7b91_1142_53d5).rotate_left(31).wrapping_mul(0x4cf5_ad43_2745_937f)
    };
    let blocks = bytes.chunks_exact(8);
    let tail = blocks.remainder();
    let mut hash = 0u64;
    for block in blocks {
        hash = (hash ^ scramble(block)).rotate_left(27).wrapping_mul(5).wrapping_add(0x52dc_e729);
    }
    // An empty tail scrambles to 0.
    hash ^= scramble(tail) ^ bytes.len() as u64;
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup3_equals_the_published_values() {
        // The driver that comes with lookup3.c prints these.
        assert_eq!(lookup3(b""), 0xdead_beef_dead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551_ce72_26e6);
        assert_eq!(lookup3_uncut(b""), 0xdead_beef_dead_beef);
    }

    #[test]
    fn digests_equal_the_published_values() {
        // RFC 1321, A.5 and FIPS 180-1, appendix A.
        assert_eq!(md5_first(b"abc"), 0x9001_5098_3cd2_4fb0);
        assert_eq!(md5_last(b"abc"), 0xd696_3f7d_28e1_7f72);
        assert_eq!(be_u64(&sha1(b"abc")[12..]), 0x7850_c26c_9cd0_d89d);
    }

    #[test]
    fn siphash_equals_the_reference_implementation() {
        // Its key and message are the bytes 0, 1, 2, ...; the message ends before 0xff here.
        let keys = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let mut hasher = SipHasher::new_with_keys(keys.0, keys.1);
        hasher.write(&(0..15).collect::<Vec<u8>>());
        assert_eq!(hasher.finish(), 0xa129_ca61_49be_45e5);
    }
}
