//! [`nearsift::compare`]: differences of two texts.

use nearsift::compare::{Side, differences};

use crate::assert_same;

/// The pieces of each side join to that side's text: to all of it, or where the work was capped, to
/// its beginning. The first byte says where the bytes are split in two texts.
pub fn differences_of_texts(data: &[u8]) {
    let Some((&at, rest)) = data.split_first() else { return };
    let (a, b) = rest.split_at(rest.len() * usize::from(at) / 255);
    let (a, b) = (String::from_utf8_lossy(a), String::from_utf8_lossy(b));
    let found = differences(&a, &b);
    for (text, other) in [(&a, Side::OnlyB), (&b, Side::OnlyA)] {
        let joined: String =
            found.pieces.iter().filter(|p| p.side != other).map(|p| p.text).collect();
        if found.truncated {
            assert_same(&joined, text.get(..joined.len()).unwrap_or(text), "the pieces of a side");
        } else {
            assert_same(&joined, text, "the pieces of a side");
        }
    }
    let moved = |side| -> std::collections::BTreeSet<u32> {
        found.pieces.iter().filter(|p| p.side == side).filter_map(|p| p.moved).collect()
    };
    assert_eq!(moved(Side::OnlyA), moved(Side::OnlyB), "the moved passages of a side");
    assert!(moved(Side::Both).is_empty(), "what both have was moved");
    if a == b {
        assert!(found.pieces.iter().all(|p| p.side == Side::Both), "equal texts differ");
    }
}

/// Pairs of texts with an edit between them.
pub fn differences_seeds() -> Vec<Vec<u8>> {
    let pairs = [
        ("今天北京晴。明天有雨。", "今天上海晴。明天有雨。"),
        ("The cat sat. It ran away!", "It ran away! The cat sat down."),
        ("", "one two three"),
        (
            "沿海地区预计降雨将持续至周日晚上，请注意防范。One more sentence stands behind the first one.",
            "One more sentence stands behind the first one. 沿海地区预计降雨将持续至周日晚上,请注意防范。",
        ),
        ("同一个句子。", "同一个句子。"),
    ];
    let seed = |(a, b): (&str, &str)| {
        let at = (a.len() * 255).div_ceil((a.len() + b.len()).max(1)) as u8;
        [&[at], a.as_bytes(), b.as_bytes()].concat()
    };
    pairs.into_iter().map(seed).collect()
}
