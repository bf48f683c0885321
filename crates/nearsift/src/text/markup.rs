//! Markup as it is handed to the tokenizer.
//!
//! The tokenizer goes from one attribute with a value in double quotes to the next by calling itself, so that a tag of some
//! ten thousand attributes overflows the stack of the thread and ends the process. It returns to its loop wherever no
//! white space follows the closing quote, which means the same. So that white space is left out here.

use std::convert::Infallible;

use html5gum::{Readable, Reader, StringReader};

/// Reads markup for the tokenizer, which then takes a bounded part of the stack whatever the markup is.
#[derive(Debug)]
pub(super) struct MarkupReader<'a> {
    input: StringReader<'a>,
    /// Whether the last thing read was a double quote that was looked for: a value ended, or a quote stood in a name.
    is_after_quote: bool,
}

impl<'a> MarkupReader<'a> {
    pub(super) fn new(markup: &'a [u8]) -> MarkupReader<'a> {
        MarkupReader { input: markup.to_reader(), is_after_quote: false }
    }
}

impl Reader for MarkupReader<'_> {
    type Error = Infallible;

    /// Where the tokenizer reads one byte after such a quote, a value in quotes ended: of an attribute or in a doctype.
    #[inline]
    fn read_byte(&mut self) -> Result<Option<u8>, Infallible> {
        let mut byte = self.input.read_byte()?;
        if std::mem::take(&mut self.is_after_quote) {
            while byte.is_some_and(|byte| byte.is_ascii_whitespace()) {
                byte = self.input.read_byte()?;
            }
        }
        Ok(byte)
    }

    #[inline]
    fn try_read_string(&mut self, text: &[u8], case_sensitive: bool) -> Result<bool, Infallible> {
        self.is_after_quote = false;
        self.input.try_read_string(text, case_sensitive)
    }

    #[inline]
    fn read_until<'b>(
        &'b mut self,
        needle: &[u8],
        char_buf: &'b mut [u8; 4],
    ) -> Result<Option<&'b [u8]>, Infallible> {
        let MarkupReader { input, is_after_quote } = self;
        let read = input.read_until(needle, char_buf)?;
        *is_after_quote = read == Some(b"\"");
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use html5gum::{DefaultEmitter, Token, Tokenizer};
    use proptest::prelude::*;

    use super::*;

    fn tokens<R: Reader<Error = Infallible>>(reader: R) -> Vec<Token> {
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        // White space that is missing between attributes is a parse error, which changes nothing.
        let tokens = Tokenizer::new_with_emitter(reader, emitter).map(|Ok(token)| token);
        tokens.filter(|token| !matches!(token, Token::Error(_))).collect()
    }

    fn check(markup: &str) {
        assert_eq!(
            tokens(MarkupReader::new(markup.as_bytes())),
            tokens(markup.to_reader()),
            "{markup}"
        );
    }

    #[test]
    fn the_tokens_are_those_of_the_markup() {
        for markup in [
            r#"<p a="1" b = "2"  c='3' d=4 e>text "quoted" and  more "</p>"#,
            r#"<p a="1"/>x<p a="1" / b="2" >"#,
            "<p a=\"1\"\r\n\t b=\"2\"\n>\r\n\"\r\n</p>",
            r#"<p "a" "b" ="c" d="#,
            r#"<p a="1" "#,
            r#"<!DOCTYPE html PUBLIC "-//W3C//DTD" "http://x" >y"#,
            r#"<!-- " a " --><script>" x "</script><title>" t "</title><?xml encoding="x" ?>"#,
            r#"<a href="x" href="y" title=" z "> " </a>"#,
        ] {
            check(markup);
        }
    }

    proptest! {
        #[test]
        fn the_tokens_are_those_of_any_markup(
            markup in "(<p|<a|</a|>|/|\"|'|=| |\n|\r|\t|&amp;|&|x|y=|中|\0|<!--|-->|<!doctype|<script>|</script>){0,40}",
        ) {
            check(&markup);
        }
    }

    /// A thread of little stack reads a tag of very many attributes.
    #[test]
    fn very_many_attributes_take_no_stack() {
        let markup = format!("<p {}>text</p>", r#"a="1" "#.repeat(300_000));
        let read = move || tokens(MarkupReader::new(markup.as_bytes())).len();
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(read);
        assert_eq!(thread.expect("a thread").join().expect("read to its end"), 3);
    }
}
