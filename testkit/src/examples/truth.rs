//! Reading the truth of the example corpus, for tests and benchmarks.

use super::source::Edit;
use super::{Mistake, examples_dir, read_text};

/// A line of `examples/truth.tsv` or `examples/truth-pages.tsv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Documents of one group are near duplicates; of two groups are not.
    pub group: String,
    /// How the document came about.
    pub edit: Edit,
    /// The id of the document, or the path of the page below `examples/`.
    pub id: String,
    /// Why it stands in its group.
    pub note: String,
}

/// The lines of a truth table, in the order of the file; the name is `truth.tsv` or
/// `truth-pages.tsv`.
///
/// # Errors
///
/// A [`Mistake`] that names the line which has too few columns or an unknown kind of edit.
pub fn truth(name: &str) -> Result<Vec<Truth>, Mistake> {
    let path = examples_dir().join(name);
    let text = read_text(&path)?;
    text.lines()
        .enumerate()
        .skip(1)
        .map(|(i, line)| {
            let wrong = |what: &str| Mistake::new(format!("{}:{}", path.display(), i + 1), what);
            let mut cells = line.split('\t').map(str::to_owned);
            let mut cell = || cells.next().ok_or_else(|| wrong("expected at least four columns"));
            let (group, edit, id, note) = (cell()?, cell()?, cell()?, cell()?);
            let edit = Edit::from_name(&edit).ok_or_else(|| wrong("unknown kind of edit"))?;
            Ok(Truth { group, edit, id, note })
        })
        .collect()
}
