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
const SETTINGS: [&str; 23] = [
    "against",
    "bits",
    "charset",
    "cluster",
    "dry-run",
    "format",
    "id-field",
    "keep",
    "keep-state",
    "max-cluster",
    "max-distance",
    "max-record-bytes",
    "memory",
    "method",
    "min-score",
    "near",
    "output-format",
    "partial",
    "recipe",
    "resume",
    "source-field",
    "text-field",
    "verify",
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
}
