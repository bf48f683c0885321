//! What `dedup` says of its own while it works: each sentence once, so that programs can have all of them in another language.

use std::fmt::Display;

use crate::context::Context;
use crate::notice::{Level, Topic};

/// Declares the remarks, and the list of them.
macro_rules! remarks {
    ($($(#[$doc:meta])* $name:ident: $level:ident, $topic:ident, $template:literal;)*) => {
        /// A remark of a job, with its level, its topic and its sentence.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Remark {
            $($(#[$doc])* $name,)*
        }

        impl Remark {
            const fn parts(self) -> (Level, Topic, &'static str) {
                match self {
                    $(Remark::$name => (Level::$level, Topic::$topic, $template),)*
                }
            }
        }

        /// The sentences of all remarks of `dedup`: `{}` stands for a value, and settings stand in backticks, as in a
        /// [`Notice`](crate::Notice).
        pub const REMARKS: &[&str] = &[$($template,)*];
    };
}

remarks! {
    /// There is nothing left to do.
    Complete: Note, Resume, "the run was complete: its results have their names";
    /// After an error.
    WorkKept: Note, Resume, "the work so far is kept: go on with `resume`";
    /// Documents, memory, bytes on disk, minutes.
    Forecast: Note, Forecast, "forecast: about {} documents, {} of memory, {} on disk, {} minutes";
    /// The limit, documents, what they take, the limit to give.
    LittleMemory: Warning, Forecast,
        "`memory` {} may be too little: about {} documents take at least {}; give `memory` {}";
    /// The folder, what is free, what is needed.
    LittleDisk: Warning, Forecast,
        "{}: {} are free on its disk, and up to {} may be needed: free some, or choose another place; where it fills up, the work is kept for `resume`";
    /// The reference, how many of it, and how many could be.
    ReferenceUnreadable: Warning, Reference,
        "{}: {} of this reference could not be read; compared with {} documents";
    /// The reference, the score of sketches.
    ReferenceOfSketches: Note, Reference,
        "{}: an index keeps no texts: sketches that score {} or more are near";
    /// The run.
    ReferenceChanged: Warning, Reference,
        "{}: its input has changed: compared with the documents that this run kept, and what resembles only one that it removed stays; a run with `keep-state` needs no input to be a reference";
    /// The run, a file of its input.
    ReferenceGone: Warning, Reference,
        "{}: its input {} is not there: compared with the documents that this run kept, and what resembles only one that it removed stays; a run with `keep-state` needs no input to be a reference";
    /// Passages, pairs.
    Passages: Note, Result, "`partial`: passages that documents share: {}, in pairs: {}";
    /// Runs of letters, documents, places.
    CommonPassages: Note, Result,
        "`partial`: short runs of letters in more than {} documents each, skipped as boilerplate: {}, at places: {}";
    /// Of how many one was kept.
    MissedPassages: Warning, Result,
        "`partial`: one of {} short runs of letters was kept, for want of memory: short passages are missed; give a larger `memory`";
    /// After the first unreadable records.
    MoreUnreadable: Warning, Input, "more of the kind are counted, not listed";
}

impl Context<'_> {
    /// Passes a remark on, with its values.
    pub(crate) fn remark(&self, remark: Remark, values: &[&dyn Display]) {
        let (level, topic, template) = remark.parts();
        self.notice(level, topic, &filled(template, values));
    }
}

/// The template with the values in its places.
fn filled(template: &str, values: &[&dyn Display]) -> String {
    debug_assert_eq!(template.matches("{}").count(), values.len(), "{template}");
    let mut parts = template.split("{}");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for (part, value) in parts.zip(values) {
        out += &value.to_string();
        out += part;
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn values_fill_the_places_in_order() {
        assert_eq!(filled("a {} b {}", &[&1, &"{}"]), "a 1 b {}");
        assert_eq!(filled("nothing", &[]), "nothing");
    }

    #[test]
    fn dedup_says_nothing_but_remarks() {
        // A sentence that is made in its place would be in no list, and so in no other language.
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut folders = vec![sources.join("dedup")];
        let mut files = vec![sources.join("partial.rs"), sources.join("folder.rs")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("sources") {
                let path = entry.expect("an entry").path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        assert!(files.len() > 30);
        for file in files.iter().filter(|file| file.exists()) {
            let source = std::fs::read_to_string(file).expect("a source");
            assert!(!source.contains("context.notice("), "{}", file.display());
        }
    }
}
