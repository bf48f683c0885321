//! Pairs to look at: a few of every score, with what differs.

use std::collections::BTreeMap;

use nearsift::compare::{Differences, Side, differences};
use nearsift::tune::Reservoir;

use super::report::Example;
use crate::corpus::Ids;
use crate::error::Error;
use nearsift::search::TextSource;

/// Characters of a beginning.
const BEGINNING: usize = 60;
/// Characters of the differences, and of what is equal around them.
const SHOWN: usize = 240;
const AROUND: usize = 12;
/// Texts are compared up to here, in characters.
const COMPARED: usize = 4_000;

/// The numbers of the items of each band that are shown: `count` of each, at random.
pub fn chosen(
    bands: impl IntoIterator<Item = usize>,
    seed: u64,
    count: u8,
) -> BTreeMap<usize, Vec<usize>> {
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (item, band) in bands.into_iter().enumerate() {
        members.entry(band).or_default().push(item);
    }
    for items in members.values_mut() {
        if items.len() > usize::from(count) {
            let mut reservoir = Reservoir::new(seed, usize::from(count).max(1));
            (0..items.len() as u32).for_each(|place| reservoir.offer(place));
            let taken = reservoir.finish();
            let mut place = 0..;
            items.retain(|_| taken.contains(place.next().unwrap_or(0)));
            items.truncate(count.into());
        }
    }
    members
}

/// Two documents with what differs in their texts.
pub fn example(
    texts: &impl TextSource<Error = Error>,
    ids: &Ids,
    a: u32,
    b: u32,
) -> Result<Example, Error> {
    let (left, right) = (texts.text(a)?, texts.text(b)?);
    let (left, right) = (start(&left, COMPARED), start(&right, COMPARED));
    Ok(Example {
        a: ids.get(a)?.into_owned(),
        b: ids.get(b)?.into_owned(),
        score: None,
        cosine: None,
        alignment: None,
        facts: None,
        distance: None,
        a_begins: start(left, BEGINNING).to_owned(),
        b_begins: start(right, BEGINNING).to_owned(),
        differences: marked(&differences(left, right)),
    })
}

fn start(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

/// The differences on one line.
fn marked(found: &Differences<'_>) -> String {
    let mut line = String::new();
    for piece in &found.pieces {
        match piece.side {
            // What counts as equal is shown once, as the first text writes it.
            Side::OnlyB if piece.is_equal => {}
            Side::OnlyA if piece.is_equal => line += &middle_left_out(piece.text),
            Side::Both => line += &middle_left_out(piece.text),
            Side::OnlyA if let Some(n) = piece.moved => {
                line += &format!("[~{n}: {}~]", middle_left_out(piece.text));
            }
            Side::OnlyB if let Some(n) = piece.moved => {
                line += &format!("{{~{n}: {}~}}", middle_left_out(piece.text));
            }
            Side::OnlyA => line += &format!("[-{}-]", middle_left_out(piece.text)),
            Side::OnlyB => line += &format!("{{+{}+}}", middle_left_out(piece.text)),
        }
        if line.chars().count() > SHOWN {
            return format!("{} …", start(&line, SHOWN));
        }
    }
    line
}

fn middle_left_out(text: &str) -> String {
    let characters = text.chars().count();
    if characters <= 2 * AROUND + 3 {
        return text.to_owned();
    }
    let end = text.char_indices().nth(characters - AROUND).map_or("", |(at, _)| &text[at..]);
    format!("{} … {end}", start(text, AROUND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_fit_on_a_line() {
        let check = |a: &str, b: &str, expect: &str| assert_eq!(marked(&differences(a, b)), expect);
        check("今天北京晴", "今天上海晴", "今天[-北京-]{+上海+}晴");
        let long = "一".repeat(100);
        check(
            &format!("{long}北"),
            &long,
            "一一一一一一一一一一一一 … 一一一一一一一一一一一一[-北-]",
        );
    }

    #[test]
    fn a_few_of_every_band() {
        let bands = [3, 3, 1, 3, 3, 1, 3];
        let some = chosen(bands, 1, 2);
        assert_eq!(some[&1], [2, 5]);
        assert!(some[&3].len() == 2 && some[&3].iter().all(|&item| bands[item] == 3));
        assert_eq!(chosen(bands, 1, 0).values().map(Vec::len).sum::<usize>(), 0);
    }
}
