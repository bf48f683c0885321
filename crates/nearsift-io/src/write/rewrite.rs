//! Other texts for records that are kept.

use std::ops::Range;
use std::str::from_utf8;

use super::{Cell, Decision};
use crate::Format;
use crate::batch::{Place, Record};
use crate::parse::{Columns, Plan, json_text_range, quoted_field, row_text_range};

/// Whether texts are rewritten: where none is, none is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewriting {
    /// Every record is written as it is.
    None,
    /// Some may get another text.
    Some,
}

/// Makes a [`Decide`] for each of several threads.
pub type Deciders<'a> = Box<dyn Fn() -> Box<dyn Decide + 'a> + Sync + 'a>;

/// Who decides what becomes of the records of a file, and of the texts of those that are kept.
///
/// A closure that decides, and rewrites nothing, is one.
pub trait Decide {
    /// What becomes of a record. Asked once for each, in order.
    fn decide(&mut self, place: Place) -> Decision;

    /// What makes others that decide the same, for other threads; `None` where the records of a file must be decided in order.
    fn deciders(&self) -> Option<Deciders<'_>> {
        None
    }

    /// Whether [`see`](Decide::see) is to be called with a record. Asked once for each after it is decided; of rows of
    /// tables never.
    fn wants_to_see(&self, _: Place) -> bool {
        false
    }

    /// Takes a record that it wants to see, as a [`Batch`](crate::Batch) had it.
    fn see(&mut self, _: &Record<'_>) {}

    /// Whether [`rewrite`](Decide::rewrite) is to be asked.
    fn rewriting(&self) -> Rewriting {
        Rewriting::None
    }

    /// The text that a kept record gets; `None` when its own stays. Asked after the record is decided, in order; of a
    /// table when all of a row group are.
    fn rewrite(&mut self, _: Place, _: &str) -> Option<String> {
        None
    }

    /// The values of the [added columns](super::KeptWriter::adding) for a kept record, in their order. Asked where there are
    /// such columns, after the record is decided; of a table when all of a row group or batch are.
    fn cells(&mut self, _: Place) -> Vec<Cell> {
        Vec::new()
    }
}

impl<F: FnMut(Place) -> Decision> Decide for F {
    fn decide(&mut self, place: Place) -> Decision {
        self(place)
    }
}

/// Where the text of a record stands.
pub(super) struct Fields<'a> {
    pub(super) format: Format,
    pub(super) plan: &'a Plan,
    pub(super) delimiter: u8,
    pub(super) columns: &'a Columns,
}

impl Fields<'_> {
    /// The record with another text; `None` when it stays as it is.
    pub(super) fn rewritten(
        &self,
        record: &[u8],
        rewrite: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Option<Vec<u8>> {
        let record = from_utf8(record).ok()?;
        let (range, new) = match self.format {
            Format::JsonLines | Format::Json => {
                let range = json_text_range(record, self.plan)?;
                let text: String = serde_json::from_str(&record[range.clone()]).ok()?;
                (range, serde_json::to_string(&rewrite(&text)?).ok()?)
            }
            Format::Csv | Format::Tsv => {
                let (range, text) = row_text_range(record, self.delimiter, self.columns)?;
                (range, quoted_field(rewrite(&text)?.into(), self.delimiter).into_owned())
            }
            Format::Text => {
                let mark = if record.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
                (mark..record.len(), rewrite(&record[mark..])?)
            }
            _ => return None,
        };
        Some(spliced(record, range, &new))
    }
}

fn spliced(record: &str, range: Range<usize>, new: &str) -> Vec<u8> {
    [&record[..range.start], new, &record[range.end..]].concat().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadOptions;

    #[test]
    fn only_the_text_of_a_record_changes() {
        use Format::{Csv, Html, JsonLines, Text, Tsv};

        let check = |format: Format, field: &str, record: &str, expect: Option<&str>| {
            let options =
                ReadOptions { text_field: Some(field.to_owned()), ..ReadOptions::default() };
            let plan = Plan::new(&options).expect("a plan");
            let delimiter = if format == Tsv { b'\t' } else { b',' };
            let header = if format == Tsv { "id\ttext" } else { "id,text,more" };
            let columns = Columns::new(header.as_bytes(), delimiter, &plan);
            let fields = Fields { format, plan: &plan, delimiter, columns: &columns };
            let upper = |text: &str| (text != "same").then(|| text.to_uppercase());
            let got = fields.rewritten(record.as_bytes(), &mut |text| upper(text));
            let got = got.map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
            assert_eq!(got.as_deref(), expect, "{record}");
        };
        check(
            JsonLines,
            "text",
            r#"{ "n" : 1.50, "text": "a\u0062\n", "x": {"text": "c"} }"#,
            Some(r#"{ "n" : 1.50, "text": "AB\n", "x": {"text": "c"} }"#),
        );
        check(JsonLines, "a.b", r#"{"a":{"c":[1],"b":"x"}}"#, Some(r#"{"a":{"c":[1],"b":"X"}}"#));
        check(
            JsonLines,
            "a.b",
            r#"{"a.b":"x","a":{"c":"y"}}"#,
            Some(r#"{"a.b":"X","a":{"c":"y"}}"#),
        );
        // The last of several is the text.
        check(JsonLines, "text", r#"{"text":"x","text":"y"}"#, Some(r#"{"text":"x","text":"Y"}"#));
        check(JsonLines, "text", r#"{"text":"x","text":null}"#, None);
        check(JsonLines, "text", r#"{"text":"same"}"#, None);
        check(JsonLines, "text", r#"{"text":5}"#, None);
        check(JsonLines, "text", r#"[1]"#, None);
        check(JsonLines, "text", r#"{"text":"cut"#, None);
        check(Csv, "text", "1,a b,\"c\"\r\n", Some("1,A B,\"c\"\r\n"));
        check(Csv, "text", "1,\"a\n\"\"b\"\"\",c\n", Some("1,\"A\n\"\"B\"\"\",c\n"));
        check(Csv, "more", "1,a,\"x,y\"\n", Some("1,a,\"X,Y\"\n"));
        check(Csv, "more", "1,a,z", Some("1,a,Z"));
        check(Csv, "more", "1,a\n", None);
        check(Tsv, "text", "1\ta,b\n", Some("1\tA,B\n"));
        check(Text, "text", "\u{feff}one\ntwo", Some("\u{feff}ONE\nTWO"));
        check(Html, "text", "<p>one", None);
    }

    #[test]
    fn what_is_not_utf8_stays() {
        let plan = Plan::new(&ReadOptions::default()).expect("a plan");
        let columns = Columns::default();
        let fields =
            Fields { format: Format::JsonLines, plan: &plan, delimiter: b',', columns: &columns };
        let record = b"{\"text\":\"\xff\"}";
        assert_eq!(fields.rewritten(record, &mut |_| Some("new".to_owned())), None);
    }
}
