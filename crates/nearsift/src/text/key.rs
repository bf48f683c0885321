//! Keys by which content is the same: short names of bytes that nobody can forge.
//!
//! Whoever writes a document also chooses its bytes. A hash that is only fast, like XXH3, lets its writer build a
//! document that has the key of another, other words altogether, so that the other is removed as its duplicate. A key
//! here is the first 128 bits of BLAKE3. To build a document with the key of a *given* one takes about 2^128 hashes; to
//! build two documents of one's own that share a key takes about 2^64, and wins nothing: either may be removed as a
//! duplicate of the other, and both are the builder's. So 128 bits suffice, and half the memory of 256 serves.
//!
//! # References
//! O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 'BLAKE3: one function, fast everywhere', 2020.

/// The key of the given parts, joined: the first 16 bytes of their BLAKE3, so that `{:032x}` prints the first 32 hex
/// digits of what `b3sum` prints. Where one part ends and the next begins does not matter.
///
/// ```
/// use nearsift::text::key::content_key;
/// assert_eq!(content_key([b"ab".as_slice(), b"c"]), content_key([b"abc"]));
/// assert_eq!(format!("{:032x}", content_key([b"abc"])), "6437b3ac38465133ffb63b75273a8db5");
/// ```
///
/// # Complexity
/// O(bytes).
pub fn content_key<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> u128 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part.as_ref());
    }
    let mut first = [0; 16];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    u128::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_specification() {
        // The test vectors of BLAKE3: bytes 0, 1, .. 250, 0, ..; here their first 16 bytes.
        let check = |length: usize, expect: &str| {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            assert_eq!(format!("{:032x}", content_key([&bytes])), expect, "{length} bytes");
            let (head, tail) = bytes.split_at(length / 3);
            assert_eq!(content_key([head, tail]), content_key([&bytes]), "{length} bytes in parts");
        };
        check(0, "af1349b9f5f9a1a6a0404dea36dcc949");
        check(1, "2d3adedff11b61f14c886e35afa03673");
        check(1023, "10108970eeda3eb932baac1428c7a216");
        check(1024, "42214739f095a406f3fc83deb889744a");
        check(1025, "d00278ae47eb27b34faecf67b4fe263f");
    }
}
