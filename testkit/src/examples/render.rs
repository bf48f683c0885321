//! Making the corpus, its pages and its truth from the sources.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use encoding_rs::Encoding;
use serde::Serialize;

use super::source::{Document, Edit, Page, documents};
use super::{Generated, Mistake, examples_dir, read_text, sorted_entries};

/// Every generated file of `examples/`, by path.
///
/// # Errors
///
/// The first [`Mistake`] in a source: an unknown document or template, a share of changed
/// characters that its kind of edit does not allow, a character that a page's charset lacks.
pub fn generate() -> Result<Vec<Generated>, Mistake> {
    let documents = documents()?;
    let by_id = documents.iter().map(|d| (d.id.as_str(), d)).collect::<BTreeMap<_, _>>();
    let changed = documents.iter().map(|d| changed(d, &by_id)).collect::<Result<Vec<_>, _>>()?;
    let templates = templates()?;

    let mut order = (0..documents.len()).collect::<Vec<_>>();
    order.sort_by_key(|&i| (&documents[i].date, i));
    let mut corpus = Vec::new();
    let mut truth = Table::new(&["group", "edit", "id", "note", "of", "changed", "family"]);
    for i in order {
        let d = &documents[i];
        serde_json::to_writer(&mut corpus, &Line::from(d))
            .map_err(|e| Mistake::new(&d.id, e.to_string()))?;
        corpus.push(b'\n');
        let of = d.of.as_deref().unwrap_or_default();
        truth.row(&[&d.group, d.edit.name(), &d.id, &d.note, of, &changed[i], &d.family]);
    }

    let mut pages = Vec::new();
    for (d, changed) in documents.iter().zip(&changed) {
        for (nth, page) in d.pages.iter().enumerate() {
            let template = templates.get(&page.site).ok_or_else(|| {
                Mistake::new(&d.id, format!("no template examples/source/sites/{}.html", page.site))
            })?;
            // A second page of one text differs from the first by what stands around it.
            let (edit, note) = match nth {
                0 => (d.edit, d.note.clone()),
                _ => {
                    let first = page_path(d, &d.pages[0]);
                    (Edit::Boilerplate, format!("The text of {first} on another site's page."))
                }
            };
            let bytes = html(d, page, template)?;
            pages.push((page_path(d, page), d, page, edit, note, changed, bytes));
        }
    }
    pages.sort_by(|a, b| a.0.cmp(&b.0));
    let mut page_truth =
        Table::new(&["group", "edit", "path", "note", "id", "changed", "charset", "declared"]);
    for (path, d, page, edit, note, changed, _) in &pages {
        let declared = page.declared.as_deref().unwrap_or_default();
        let charset = page.folder();
        page_truth.row(&[&d.group, edit.name(), path, note, &d.id, changed, &charset, declared]);
    }

    let mut files = vec![
        Generated { path: "corpus.jsonl".to_owned(), bytes: corpus },
        Generated { path: "truth.tsv".to_owned(), bytes: truth.0.into_bytes() },
        Generated { path: "truth-pages.tsv".to_owned(), bytes: page_truth.0.into_bytes() },
    ];
    files.extend(pages.into_iter().map(|(path, .., bytes)| Generated { path, bytes }));
    Ok(files)
}

/// A line of `corpus.jsonl`.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    url: &'a str,
    date: &'a str,
    source: &'a str,
    quality: serde_json::Number,
    text: &'a str,
}

impl<'a> From<&'a Document> for Line<'a> {
    fn from(d: &'a Document) -> Self {
        Self {
            id: &d.id,
            title: d.title.as_deref(),
            url: &d.url,
            date: &d.date,
            source: &d.source,
            quality: d
                .quality
                .parse()
                .ok()
                .and_then(serde_json::Number::from_f64)
                .unwrap_or_else(|| 0.into()),
            text: &d.text,
        }
    }
}

/// Tab-separated values under a line of names.
struct Table(String);

impl Table {
    fn new(names: &[&str]) -> Self {
        Self(names.join("\t") + "\n")
    }

    fn row(&mut self, cells: &[&str]) {
        self.0 += &cells.join("\t");
        self.0.push('\n');
    }
}

/// The share of characters changed against the document it was made from, with three decimals;
/// empty where it was made from none.
fn changed(d: &Document, by_id: &BTreeMap<&str, &Document>) -> Result<String, Mistake> {
    let Some(of) = &d.of else {
        return if d.edit.is_derived() {
            Err(Mistake::new(&d.id, format!("edit {} needs 'of'", d.edit)))
        } else {
            Ok(String::new())
        };
    };
    let original = by_id
        .get(of.as_str())
        .ok_or_else(|| Mistake::new(&d.id, format!("'of' names no document: {of:?}")))?;
    let per_mille = changed_per_mille(&original.text, &d.text);
    if let Some(range) = d.edit.changed_per_mille()
        && !range.contains(&per_mille)
    {
        return Err(Mistake::new(
            &d.id,
            format!("edit {} allows {range:?} per mille changed, got {per_mille}", d.edit),
        ));
    }
    Ok(format!("{}.{:03}", per_mille / 1000, per_mille % 1000))
}

/// The edit distance (insert, delete, replace one character) over the longer length, white space
/// left out, in thousandths, halves rounded up.
///
/// # Complexity
///
/// Time is the product of the lengths, memory one of them.
fn changed_per_mille(a: &str, b: &str) -> u32 {
    let letters = |s: &str| s.chars().filter(|c| !c.is_whitespace()).collect::<Vec<_>>();
    let (a, b) = (letters(a), letters(b));
    let mut row = (0..=b.len()).collect::<Vec<_>>();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    let longer = a.len().max(b.len()).max(1);
    u32::try_from((2000 * row[b.len()] + longer) / (2 * longer)).unwrap_or(u32::MAX)
}

/// The templates of the sites, by name.
fn templates() -> Result<BTreeMap<String, String>, Mistake> {
    let mut templates = BTreeMap::new();
    for path in sorted_entries(&examples_dir().join("source/sites"))? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        templates.insert(name, read_text(&path)?);
    }
    Ok(templates)
}

/// The path of a page below `examples/`.
fn page_path(d: &Document, page: &Page) -> String {
    format!("pages/{}/{}.html", page.folder(), d.id)
}

/// The bytes of a page.
fn html(d: &Document, page: &Page, template: &str) -> Result<Vec<u8>, Mistake> {
    let at = || page_path(d, page);
    let title = d.title.as_deref().ok_or_else(|| Mistake::new(at(), "a page needs a title"))?;
    let mut paragraphs = String::new();
    let mut links = String::new();
    for (i, line) in d.text.lines().map(str::trim).filter(|l| !l.is_empty()).enumerate() {
        let line = escape(line);
        writeln!(paragraphs, "<p>{line}</p>").expect("writing to a string");
        writeln!(links, "<li><a href=\"/{i}\">{line}</a></li>").expect("writing to a string");
    }
    let meta = match page.declared.as_deref() {
        None => String::new(),
        Some("utf-8") => "<meta charset=\"utf-8\">".to_owned(),
        Some(label) => {
            format!("<meta http-equiv=\"Content-Type\" content=\"text/html; charset={label}\">")
        }
    };
    let values = [
        ("meta", meta.as_str()),
        ("title", &escape(title)),
        ("url", &escape(&d.url)),
        ("date", &d.date),
        ("source", &escape(&d.source)),
        ("paragraphs", paragraphs.trim_end()),
        ("links", links.trim_end()),
    ];
    encode(&fill(template, &values).map_err(|what| Mistake::new(at(), what))?, page.charset)
        .map_err(|what| Mistake::new(at(), what))
}

/// Replaces each `{{name}}` of a template by its value.
fn fill(template: &str, values: &[(&str, &str)]) -> Result<String, String> {
    let mut filled = String::with_capacity(2 * template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").ok_or("'{{' without '}}'")?;
        let (_, value) = values
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| format!("the template asks for an unknown value {name:?}"))?;
        filled += before;
        filled += value;
        rest = after;
    }
    filled += rest;
    Ok(filled)
}

/// The bytes of a text in a charset that must have all its characters.
fn encode(text: &str, charset: &'static Encoding) -> Result<Vec<u8>, String> {
    let (bytes, _, lossy) = charset.encode(text);
    if lossy {
        let lacks = |c: &char| charset.encode(c.encode_utf8(&mut [0; 4])).2;
        let missing = text.chars().filter(lacks).collect::<String>();
        return Err(format!("{} lacks {missing:?}", charset.name()));
    }
    Ok(bytes.into_owned())
}

/// A text as it stands in an element or in a quoted attribute.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"']) {
        return Cow::Borrowed(text);
    }
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    Cow::Owned(text.replace('"', "&quot;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_changed_characters() {
        let check = |a: &str, b: &str, expect: u32| {
            assert_eq!(changed_per_mille(a, b), expect, "{a:?} {b:?}");
            assert_eq!(changed_per_mille(b, a), expect, "{b:?} {a:?}");
        };
        check("", "", 0);
        check("", "a", 1000);
        check("a b\nc", "　abc", 0);
        check("kitten", "sitting", 429);
        check("地铁六号线", "地铁5号线", 200);
        check("abcdefgh", "abcdefg", 125);
    }

    #[test]
    fn templates_are_filled_once() {
        let check = |template: &str, expect: Result<&str, &str>| {
            let got = fill(template, &[("a", "{{b}}"), ("b", "2")]);
            assert_eq!(got.as_deref().map_err(String::as_str), expect, "{template}");
        };
        check("", Ok(""));
        check("x{{a}}y{{b}}{{b}}", Ok("x{{b}}y22"));
        check("{ {b} }", Ok("{ {b} }"));
        check("{{c}}", Err("the template asks for an unknown value \"c\""));
        check("{{b", Err("'{{' without '}}'"));
    }

    #[test]
    fn a_charset_must_have_every_character() {
        assert_eq!(encode("铁A", encoding_rs::GBK), Ok(b"\xcc\xfaA".to_vec()));
        assert_eq!(encode("鐵A", encoding_rs::BIG5), Ok(b"\xc5KA".to_vec()));
        assert_eq!(encode("铁轨车", encoding_rs::BIG5), Err("Big5 lacks \"铁轨车\"".to_owned()));
    }

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape("a < b & \"c\""), "a &lt; b &amp; &quot;c&quot;");
        assert_eq!(escape("plain"), "plain");
    }
}
