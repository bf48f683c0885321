//! Exact repeats of texts.

use std::collections::HashMap;

use nearsift::substrings::{MinBytes, repeats};

/// The repeats of the texts that the bytes make are the windows that stand earlier, by a table of all windows.
///
/// The first byte chooses the length of a window, the others are texts: a byte of 0 ends one, and a byte of 1 to 7 with the one behind it copies bytes from
/// the beginning of all that was written.
pub fn find_repeats(data: &[u8]) {
    let [first, rest @ ..] = data else { return };
    let window = MinBytes::LEAST + usize::from(*first) % 40;
    let texts = texts(rest);
    let mut goes: Vec<Vec<bool>> = texts.iter().map(|text| vec![false; text.len()]).collect();
    let mut earliest: HashMap<&[u8], (usize, usize)> = HashMap::new();
    for (document, text) in texts.iter().enumerate() {
        for (start, bytes) in text.windows(window).enumerate() {
            let &mut (earlier, place) = earliest.entry(bytes).or_insert((document, start));
            if earlier < document || place + window <= start {
                goes[document][start..start + window].fill(true);
            }
        }
    }
    let min_bytes = MinBytes::new(window).expect("within bounds");
    let found = repeats(&texts, min_bytes).expect("short texts");
    let mut got: Vec<Vec<bool>> = texts.iter().map(|text| vec![false; text.len()]).collect();
    for repeat in &found {
        let bytes = &texts[repeat.document as usize][repeat.range()];
        let earlier = &texts[repeat.first_document as usize][repeat.first_start as usize..];
        assert!(earlier.starts_with(&bytes[..window]), "{repeat:?} of {texts:?}");
        got[repeat.document as usize][repeat.range()].fill(true);
    }
    assert_eq!(got, goes, "windows of {window} bytes of {texts:?}");
}

fn texts(data: &[u8]) -> Vec<Vec<u8>> {
    /// Bytes of all texts together.
    const MOST: usize = 20_000;
    let mut all: Vec<u8> = Vec::new();
    let mut texts = vec![Vec::new()];
    let mut bytes = data.iter().copied();
    while let Some(byte) = bytes.next() {
        if all.len() >= MOST {
            break;
        }
        let own = match byte {
            0 => {
                texts.push(Vec::new());
                continue;
            }
            1..=7 => {
                let start = usize::from(bytes.next().unwrap_or(0)) % (all.len() + 1);
                let end = (start + usize::from(byte) * 16).min(all.len());
                all[start..end].to_vec()
            }
            byte => vec![byte],
        };
        all.extend_from_slice(&own);
        texts.last_mut().expect("one text").extend(own);
    }
    texts
}

/// Texts with copies, and a periodic one.
pub fn find_repeats_seeds() -> Vec<Vec<u8>> {
    let words = b"one text of some words, and of no other words at all, for copies";
    let mut copies = vec![3];
    copies.extend_from_slice(words);
    copies.extend_from_slice(&[4, 0, b'x', 4, 3, 0, 3, 9, b'y', 4, 0]);
    let mut periodic = vec![0];
    periodic.extend(b"abcabcab".iter().cycle().take(150));
    periodic.extend_from_slice(&[0, 7, 1, 7, 2, b'z', 7, 0]);
    vec![copies, periodic]
}
