use std::collections::HashMap;

use testkit::random::Random;

use super::*;

/// Which bytes of each text repeat: every window by a table of all windows.
fn oracle(texts: &[Vec<u8>], window: usize) -> Vec<Vec<bool>> {
    let mut first: HashMap<&[u8], (usize, usize)> = HashMap::new();
    let mut marks: Vec<Vec<bool>> = texts.iter().map(|text| vec![false; text.len()]).collect();
    for (document, text) in texts.iter().enumerate() {
        for (start, bytes) in text.windows(window).enumerate() {
            let &mut (earlier, place) = first.entry(bytes).or_insert((document, start));
            if earlier < document || place + window <= start {
                marks[document][start..start + window].fill(true);
            }
        }
    }
    marks
}

/// Compares with the oracle, and every repeat with the bytes that it names.
fn check(texts: &[Vec<u8>], window: u32) {
    let found = repeats(texts, MinBytes(window)).expect("short texts");
    let mut marks: Vec<Vec<bool>> = texts.iter().map(|text| vec![false; text.len()]).collect();
    for repeat in &found {
        let text = &texts[repeat.document as usize];
        let (bytes, first) = (&text[repeat.range()], repeat.first_start as usize);
        assert!(bytes.len() >= window as usize, "{repeat:?} of {texts:?}");
        assert!((repeat.first_document, repeat.first_start) < (repeat.document, repeat.start));
        let earlier = &texts[repeat.first_document as usize][first..];
        let equal = earlier.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        assert!(equal >= window as usize, "{repeat:?} of {texts:?}");
        marks[repeat.document as usize][repeat.range()].fill(true);
    }
    assert!(found.is_sorted());
    assert_eq!(marks, oracle(texts, window as usize), "{found:?} of {texts:?}, {window}");
}

/// Texts that share stretches with each other and repeat themselves.
fn texts(random: &mut Random, letters: usize) -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = Vec::new();
    for document in 0..1 + random.below(8) {
        let mut text = Vec::new();
        for _ in 0..random.below(8) {
            match random.below(5) {
                0 => text.extend((0..random.below(60)).map(|_| b'a' + random.below(letters) as u8)),
                1 => {
                    let period = 1 + random.below(12);
                    let start = text.len();
                    text.extend((0..period).map(|_| b'a' + random.below(letters) as u8));
                    for at in start..start + random.below(120) {
                        text.push(text[at]);
                    }
                }
                2 => {
                    let (start, len) = (random.below(text.len() + 1), random.below(90));
                    let end = (start + len).min(text.len());
                    text.extend_from_within(start..end);
                }
                _ if document > 0 => {
                    let other = &texts[random.below(document)];
                    let start = random.below(other.len() + 1);
                    let end = (start + random.below(150)).min(other.len());
                    text.extend_from_slice(&other[start..end]);
                }
                _ => {}
            }
            if !text.is_empty() && random.below(3) == 0 {
                let at = random.below(text.len());
                text[at] = b'a' + random.below(letters) as u8;
            }
        }
        texts.push(text);
    }
    texts
}

#[test]
fn repeats_are_those_of_all_windows() {
    for case in 0..4000u64 {
        let mut random = Random::of_item(44, case);
        let window = [2, 3, 5, 8, 13, 32, 40][random.below(7)];
        let letters = [1, 2, 4, 26][random.below(4)];
        check(&texts(&mut random, letters), window);
    }
}

#[test]
fn repeats_of_chosen_texts() {
    let of = |texts: &[&str], window| {
        let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        check(&texts, window);
        let found = repeats(&texts, MinBytes(window)).expect("short texts");
        let mut ranges: Vec<_> = found.iter().map(|r| [r.document, r.start, r.end]).collect();
        ranges.dedup_by(|next, last| {
            let is_one = next[0] == last[0] && next[1] <= last[2];
            if is_one {
                last[2] = last[2].max(next[2]);
            }
            is_one
        });
        ranges
    };
    assert_eq!(of(&[], 32), [[0; 3]; 0]);
    assert_eq!(of(&["", "short", "short"], 32), [[0; 3]; 0]);
    // One letter: what is left has the length of a window.
    assert_eq!(of(&[&"a".repeat(10_000)], 32), [[0, 32, 10_000]]);
    assert_eq!(of(&[&"a".repeat(50), &"a".repeat(40)], 32), [[1, 0, 40]]);
    assert_eq!(of(&[&"a".repeat(70), &"a".repeat(40)], 32), [[0, 32, 70], [1, 0, 40]]);
    // Of a period that is no divisor of the window, a window as well.
    assert_eq!(of(&[&"abcdefg".repeat(100)], 32), [[0, 35, 700]]);
    let licence: String = (0..200u8).map(|n| char::from(b'!' + n % 89 / (1 + n / 89))).collect();
    let [one, two] = ["0", "~"].map(|s| s.repeat(30));
    let all = format!("{one}{licence}{two}{licence}");
    assert_eq!(of(&[&all, &licence], 100), [[0, 260, 460], [1, 0, 200]]);
}

#[test]
fn a_long_text_has_few_samples() {
    let mut random = Random::of_item(45, 1);
    let text: Vec<u8> = (0..1_000_000).map(|_| random.below(256) as u8).collect();
    let mut sampler = Sampler::new(MinBytes::new(500).expect("within bounds"));
    sampler.sample(&text).expect("a short text");
    // 2 / (windows of a gram + 1), within some per cent.
    let expect = 2.0 / 252.0 * 1e6;
    let got = sampler.samples().len() as f64;
    assert!((got / expect - 1.0).abs() < 0.05, "{got} samples, expected about {expect}");
    // A text of one letter has one sample.
    sampler.sample(&[b'a'; 1_000_000]).expect("a short text");
    assert_eq!(sampler.samples().len(), 1);
    assert_eq!(sampler.own_repeats(3).count(), 1);
}

#[test]
fn lengths_out_of_bounds_are_refused() {
    assert_eq!(MinBytes::new(31), Err(SubstringsError::MinBytes(31)));
    assert_eq!(MinBytes::new(65_536), Err(SubstringsError::MinBytes(65_536)));
    assert_eq!(MinBytes::new(500).map(MinBytes::get), Ok(500));
}
