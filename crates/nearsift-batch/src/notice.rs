//! What is worth knowing about a job, and no failure.

/// A notice of a job. Its message names settings in backticks, such as `max-cluster`; [`spell`] puts them as a command
/// line or another language has them.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Notice<'a> {
    /// How much it matters.
    pub level: Level,
    /// What it is about.
    pub topic: Topic,
    /// One line, in which ids and file names are as the input has them: escape it before it is shown.
    pub message: &'a str,
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something is lost, or may be.
    Warning,
    /// Good to know.
    Note,
}

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Topic {
    /// A record or a file of the input.
    Input,
    /// What the job is expected to take.
    Forecast,
    /// Work that is kept, or taken up.
    Resume,
    /// What the documents are compared with beside each other.
    Reference,
    /// What was found.
    Result,
}

/// Every setting that messages name.
const SETTINGS: [&str; 47] = [
    "against",
    "benchmark-fields",
    "benchmark-id-field",
    "benchmarks",
    "bits",
    "charset",
    "cluster",
    "delimiter",
    "dry-run",
    "follow-links",
    "format",
    "id-field",
    "idf",
    "keep",
    "keep-pairs-from",
    "keep-state",
    "levels",
    "mark",
    "mark-names",
    "max-cluster",
    "max-distance",
    "max-file-bytes",
    "max-ratio",
    "max-record-bytes",
    "max-window-log",
    "memory",
    "method",
    "min-score",
    "near",
    "output",
    "output-compression",
    "output-file",
    "output-format",
    "overwrite",
    "partial",
    "preset",
    "recipe",
    "resume",
    "review",
    "save-index",
    "source-field",
    "stop-words",
    "tables",
    "text-field",
    "user-dictionary",
    "verify",
    "without-texts",
];

/// The text with each setting in backticks replaced by what `name` makes of it.
///
/// ```
/// let said = nearsift_batch::spell("give a higher `min-score`", |name| format!("--{name}"));
/// assert_eq!(said, "give a higher --min-score");
/// ```
pub fn spell(text: &str, name: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        out += before;
        match after.split_once('`').filter(|(setting, _)| SETTINGS.contains(setting)) {
            Some((setting, behind)) => {
                out += &name(setting);
                rest = behind;
            }
            None => {
                out.push('`');
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_are_spelled() {
        let check = |text: &str, expect: &str| {
            assert_eq!(spell(text, |name| format!("--{name}")), expect, "{text}");
        };
        check("", "");
        check("give `memory` 2GB, or `resume`", "give --memory 2GB, or --resume");
        check("`nearsift recipes` lists them", "`nearsift recipes` lists them");
        check("a`b.jsonl: `memory", "a`b.jsonl: `memory");
        check("`a`memory`", "`a--memory");
        check("``memory``", "`--memory`");
    }

    #[test]
    fn messages_of_readers_and_writers_are_spelled() {
        use nearsift_io::{Codec, Conversion, Format, Inputs, Lack, Note, ReadOptions, Reason};

        let check = |message: String, expect: &str| {
            assert_eq!(spell(&message, |name| format!("--{name}")), expect);
        };
        let of_options = |options: ReadOptions| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("a.jsonl");
            std::fs::write(&path, "{}").expect("written");
            Inputs::resolve(&[path], options).expect_err("refused").to_string()
        };
        let options = ReadOptions::default;
        check(
            of_options(ReadOptions { text_field: Some(String::new()), ..options() }),
            "--text-field: expected the name of a field, got \"\"",
        );
        check(
            of_options(ReadOptions { id_field: String::new(), ..options() }),
            "--id-field: expected the name of a field, got \"\"",
        );
        check(
            of_options(ReadOptions { delimiter: Some(b'\n'), ..options() }),
            "--delimiter: expected an ASCII character that is no quote and no line break, got \"0xa\"",
        );
        check(
            "rar".parse::<Codec>().expect_err("no codec").to_string(),
            "--output-compression: expected none, gz, zst, xz or bz2, got \"rar\"",
        );
        let text = |_: nearsift_io::Body<'_>, _: Option<&str>| String::new();
        check(
            Conversion::new(Format::Warc, None, text).expect_err("not written").to_string(),
            "--output-format: expected jsonl, json, csv, tsv, parquet or arrow, got \"warc\"",
        );
        let unspelled = "a `b` \\ is not a setting";
        let field = || unspelled.to_owned();
        for (reason, expect) in [
            (
                Reason::Ratio { limit: 9 },
                "grows more than 9-fold when decompressed: not read further; raise --max-ratio if that is no accident",
            ),
            (
                Reason::Bomb { format: "Arrow" },
                "Arrow data that unfolds to too much: not read further; raise --max-ratio if that is no accident",
            ),
            (
                Reason::TooLarge { limit: 9 },
                "gives more than 9 bytes: not read further; raise --max-file-bytes if that is no accident",
            ),
            (
                Reason::Window { compression: "zstd", limit: 9 },
                "needs a zstd window of more than 2^9 bytes: not read; raise --max-window-log, up to 31",
            ),
            (
                Reason::TooLong { bytes: 9, limit: 8 },
                "a record of 9 bytes, the limit is 8: skipped; raise --max-record-bytes to read it",
            ),
            (
                Reason::MissingField { field: field(), got: Lack::Null },
                "no text: the field \"a `b` \\\\ is not a setting\" is null; name the right one with --text-field",
            ),
        ] {
            check(
                Note::new("a.jsonl", Some(1), reason.clone()).to_string(),
                &format!("a.jsonl:1: {expect}"),
            );
        }
    }
}
