//! [`nearsift::fingerprint`]: the value and its text.

use arbitrary::Unstructured;
use nearsift::fingerprint::{Bits, Fingerprint};

/// Any text parses exactly when it is 8, 16, 32 or 64 hex digits, and then prints as the same
/// digits in lower case; any words print as text that parses to them; the distance of two
/// fingerprints is the number of unequal bits of their digits.
pub fn hex(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let valid =
        [8, 16, 32, 64].contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    match text.parse::<Fingerprint>() {
        Ok(fingerprint) => {
            assert!(valid, "'{text}' was accepted");
            assert_eq!(fingerprint.to_string(), text.to_ascii_lowercase());
            assert_eq!(fingerprint.bits().count() as usize, 4 * text.len());
        }
        Err(error) => assert!(!valid, "'{text}' was refused: {error}"),
    }

    let mut input = Unstructured::new(data);
    let bits = *input.choose(&Bits::ALL).unwrap_or(&Bits::B64);
    let mut value =
        || Fingerprint::from_words(bits, &input.arbitrary::<[u64; 4]>().unwrap_or([0; 4]));
    let (a, b) = (value(), value());
    let (a_hex, b_hex) = (a.to_string(), b.to_string());
    assert_eq!(a_hex.parse(), Ok(a));
    assert_eq!(Fingerprint::from_words(bits, a.words()), a);
    let naive: u32 = a_hex
        .chars()
        .zip(b_hex.chars())
        .map(|(x, y)| (x.to_digit(16).expect("hex") ^ y.to_digit(16).expect("hex")).count_ones())
        .sum();
    assert_eq!(a.distance(&b), naive, "{a} {b}");
}

/// Fingerprints of every width, and what is nearly one.
pub fn hex_seeds() -> Vec<Vec<u8>> {
    let good = "0123456789abcdefFEDCBA98765432100123456789abcdef0123456789ABCDEF";
    let texts =
        [&good[..8], &good[..16], &good[..32], good, &good[..15], "+000000000000000", "é23456é"];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
