//! [`nearsift::fingerprint`]: the value and its text; votes.

use arbitrary::Unstructured;
use nearsift::fingerprint::votes::{Kernel, Votes, lane_hash};
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

/// Every kernel gives the sums that adding and subtracting bit by bit gives, however the features are
/// split into calls; the fingerprint holds their signs, and there is none without weight.
pub fn votes(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let bits = *input.choose(&Bits::ALL).unwrap_or(&Bits::B64);
    let split: u8 = input.arbitrary().unwrap_or(0);
    let mut hashes = Vec::new();
    let mut weights = Vec::new();
    while let (false, Ok(hash), Ok(weight)) =
        (input.is_empty(), input.arbitrary(), input.arbitrary())
    {
        hashes.push(hash);
        weights.push(weight);
    }
    let mut sums = vec![0i64; bits.count() as usize];
    for (&hash, &weight) in hashes.iter().zip(&weights) {
        for (bit, sum) in sums.iter_mut().enumerate() {
            let one = lane_hash(hash, bit / 64) >> (bit % 64) & 1 == 1;
            *sum += if one { i64::from(weight) } else { -i64::from(weight) };
        }
    }
    let words: Vec<u64> = sums
        .chunks(64)
        .map(|lane| lane.iter().enumerate().map(|(bit, &sum)| u64::from(sum > 0) << bit).sum())
        .collect();
    let voted = weights.iter().any(|&weight| weight > 0);
    let expected = voted.then(|| Fingerprint::from_words(bits, &words));
    let (first, second) = (hashes.len() * usize::from(split) / 255, hashes.len());
    for kernel in Kernel::available() {
        let mut votes = Votes::with_kernel(bits, kernel);
        votes.add(&hashes[..first], &weights[..first]);
        votes.add(&hashes[first..second], &weights[first..second]);
        assert_eq!(votes.sums(), sums, "{kernel}");
        assert_eq!(votes.finish(), expected, "{kernel}");
    }
}

/// Few features, many, and heavy ones.
pub fn votes_seeds() -> Vec<Vec<u8>> {
    let features = |n: u64, weight: u8| -> Vec<u8> {
        let feature = |i| [&lane_hash(i, 1).to_le_bytes()[..], &[weight]].concat();
        (0..n).flat_map(feature).collect()
    };
    [(1, 1), (3, 0), (40, 7), (300, 255), (700, 129)]
        .into_iter()
        .enumerate()
        .map(|(i, (n, weight))| [&[i as u8, 50 * i as u8], &features(n, weight)[..]].concat())
        .collect()
}
