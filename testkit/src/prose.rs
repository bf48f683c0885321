//! Words and stops as written text.

/// A part of a generated text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'w> {
    /// A word.
    Word(&'w str),
    /// What parts a sentence.
    Comma,
    /// What ends it.
    Stop,
}

/// Appends the parts as Chinese is written: without spaces.
pub fn push_chinese<'w>(parts: impl IntoIterator<Item = Part<'w>>, text: &mut String) {
    for part in parts {
        match part {
            Part::Word(word) => text.push_str(word),
            Part::Comma => text.push('，'),
            Part::Stop => text.push('。'),
        }
    }
}

/// Appends the parts as English is written: with spaces, and a capital where a sentence begins.
pub fn push_english<'w>(parts: impl IntoIterator<Item = Part<'w>>, text: &mut String) {
    let mut previous = None;
    for part in parts {
        match part {
            Part::Word(word) => {
                if previous.is_some() {
                    text.push(' ');
                }
                let start = text.len();
                text.push_str(word);
                if previous.is_none_or(|previous| previous == Part::Stop) {
                    text[start..].get_mut(..1).into_iter().for_each(str::make_ascii_uppercase);
                }
            }
            Part::Comma => text.push(','),
            Part::Stop => text.push('.'),
        }
        previous = Some(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing() {
        let parts = [
            Part::Word("ab"),
            Part::Comma,
            Part::Word("c"),
            Part::Word("d"),
            Part::Stop,
            Part::Word("e"),
        ];
        let mut text = String::from("> ");
        push_chinese(parts, &mut text);
        assert_eq!(text, "> ab，cd。e");
        let mut text = String::from("> ");
        push_english(parts, &mut text);
        assert_eq!(text, "> Ab, c d. E");
    }
}
