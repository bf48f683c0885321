//! Reading `examples/source/*.txt`.
//!
//! ```text
//! # What this family of documents shows.
//!
//! === metro-light
//! group: metro
//! edit: light
//! of: metro-original
//! ...
//! page: qichuan utf-8 utf-8
//!
//! The text, verbatim to the next line that begins with `=== `.
//! ```

use std::fmt;
use std::ops::RangeInclusive;

use encoding_rs::Encoding;

use super::{Mistake, examples_dir, read_text, sorted_entries};

/// How a document came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Edit {
    /// The first of its group.
    Original,
    /// 1-3% of the characters changed: corrected figures, a few words.
    Light,
    /// 5-10% of the characters changed.
    Medium,
    /// 20-30% of the characters changed.
    Heavy,
    /// The same paragraphs in another order.
    Reorder,
    /// Traditional characters, with or without another vocabulary.
    Traditional,
    /// Adverts, source lines, disclaimers added.
    Advert,
    /// A page's navigation and footer left around the text.
    Boilerplate,
    /// The same characters with other white space.
    Exact,
    /// Full width and half width, capitals and small letters, punctuation.
    CaseWidth,
    /// Looks like a document of another group and is not one.
    HardNegative,
    /// Unlike every other document.
    Singleton,
    /// No text at all.
    Empty,
}

impl Edit {
    /// Every kind, in the order of the declaration.
    pub const ALL: [Self; 13] = [
        Self::Original,
        Self::Light,
        Self::Medium,
        Self::Heavy,
        Self::Reorder,
        Self::Traditional,
        Self::Advert,
        Self::Boilerplate,
        Self::Exact,
        Self::CaseWidth,
        Self::HardNegative,
        Self::Singleton,
        Self::Empty,
    ];

    /// The name in the sources and in the truth tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Light => "light",
            Self::Medium => "medium",
            Self::Heavy => "heavy",
            Self::Reorder => "reorder",
            Self::Traditional => "traditional",
            Self::Advert => "advert",
            Self::Boilerplate => "boilerplate",
            Self::Exact => "exact",
            Self::CaseWidth => "case/width",
            Self::HardNegative => "hard-negative",
            Self::Singleton => "singleton",
            Self::Empty => "empty",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|edit| edit.name() == name)
    }

    /// The share of changed characters that this kind allows, in thousandths, both ends included;
    /// `None` where the kind says nothing about it.
    pub const fn changed_per_mille(self) -> Option<RangeInclusive<u32>> {
        match self {
            Self::Light => Some(10..=30),
            Self::Medium => Some(50..=100),
            Self::Heavy => Some(200..=300),
            Self::Exact => Some(0..=0),
            _ => None,
        }
    }

    /// Whether a document of this kind is made from another one of its group.
    pub const fn is_derived(self) -> bool {
        !matches!(self, Self::Original | Self::HardNegative | Self::Singleton | Self::Empty)
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A web page that shows a document.
#[derive(Clone, Debug)]
pub struct Page {
    /// The name of the template in `examples/source/sites`.
    pub site: String,
    /// The charset of the bytes.
    pub charset: &'static Encoding,
    /// The charset as the page's `meta` element names it, true or false; `None` for a page that
    /// names none.
    pub declared: Option<String>,
}

impl Page {
    /// The name of the folder of pages in this charset.
    pub fn folder(&self) -> String {
        self.charset.name().to_ascii_lowercase()
    }
}

/// A document of the example corpus.
#[derive(Clone, Debug)]
pub struct Document {
    /// Unique in the corpus.
    pub id: String,
    /// The source file's name without `.txt`: documents that are shown together.
    pub family: String,
    /// Documents of one group are near duplicates; of two groups are not.
    pub group: String,
    /// How it came about.
    pub edit: Edit,
    /// The document that it was made from.
    pub of: Option<String>,
    /// The headline; short announcements and the empty document have none.
    pub title: Option<String>,
    /// Where it might have been found; always below the reserved domain `example`.
    pub url: String,
    /// `YYYY-MM-DD`.
    pub date: String,
    /// Who published it.
    pub source: String,
    /// 0 to 1, as written, with two decimals.
    pub quality: String,
    /// Why it stands in its group.
    pub note: String,
    /// The web pages to make of it.
    pub pages: Vec<Page>,
    /// The text, white space included.
    pub text: String,
}

/// Every document of the sources, by family and then in the order of the file.
///
/// # Errors
///
/// The first [`Mistake`] in a source, with its file and line.
pub fn documents() -> Result<Vec<Document>, Mistake> {
    let mut documents = Vec::new();
    for path in sorted_entries(&examples_dir().join("source"))? {
        if path.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        let family = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        parse(&family, &read_text(&path)?, &mut documents)?;
    }
    Ok(documents)
}

/// Adds the documents of one source file.
fn parse(family: &str, source: &str, documents: &mut Vec<Document>) -> Result<(), Mistake> {
    let mut lines = source.lines().enumerate().peekable();
    let at = |line: usize| format!("examples/source/{family}.txt:{}", line + 1);
    while let Some((line, head)) = lines.next() {
        let Some(id) = head.strip_prefix("=== ") else {
            if head.is_empty() || head.starts_with("# ") {
                continue;
            }
            return Err(Mistake::new(
                at(line),
                format!("expected '# ', '=== ' or an empty line, got {head:?}"),
            ));
        };
        let mut header = Header::default();
        for (line, field) in lines.by_ref().take_while(|(_, field)| !field.is_empty()) {
            header.add(field).map_err(|what| Mistake::new(at(line), what))?;
        }
        let mut text = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.starts_with("=== ")) {
            text.push(line);
        }
        while text.last().is_some_and(|line| line.is_empty()) {
            text.pop();
        }
        let document = header
            .into_document(id, family, text.join("\n"))
            .map_err(|what| Mistake::new(at(line), what))?;
        documents.push(document);
    }
    Ok(())
}

/// The lines `key: value` above a document's text.
#[derive(Default)]
struct Header {
    fields: Vec<(String, String)>,
    pages: Vec<Page>,
}

impl Header {
    fn add(&mut self, line: &str) -> Result<(), String> {
        const KEYS: [&str; 9] =
            ["group", "edit", "of", "title", "url", "date", "source", "quality", "note"];
        let (key, value) = line
            .split_once(": ")
            .ok_or_else(|| format!("expected 'key: value' or an empty line, got {line:?}"))?;
        if value.contains('\t') {
            return Err(format!("{key}: a value may hold no tab"));
        }
        if key == "page" {
            self.pages.push(page(value)?);
            return Ok(());
        }
        if !KEYS.contains(&key) {
            return Err(format!("unknown key {key:?}; known: page, {}", KEYS.join(", ")));
        }
        if self.fields.iter().any(|(k, _)| k == key) {
            return Err(format!("{key} given twice"));
        }
        self.fields.push((key.to_owned(), value.to_owned()));
        Ok(())
    }

    fn take(&mut self, key: &str) -> Option<String> {
        let place = self.fields.iter().position(|(k, _)| k == key)?;
        Some(self.fields.swap_remove(place).1)
    }

    fn into_document(mut self, id: &str, family: &str, text: String) -> Result<Document, String> {
        let mut need = |key: &str| self.take(key).ok_or_else(|| format!("{id}: no {key}"));
        let edit = need("edit")?;
        Ok(Document {
            id: id.to_owned(),
            family: family.to_owned(),
            group: need("group")?,
            edit: Edit::from_name(&edit).ok_or_else(|| format!("{id}: unknown edit {edit:?}"))?,
            url: need("url")?,
            date: need("date")?,
            source: need("source")?,
            quality: need("quality")?,
            note: need("note")?,
            of: self.take("of"),
            title: self.take("title"),
            pages: self.pages,
            text,
        })
    }
}

/// Reads `SITE CHARSET DECLARED`, where a DECLARED of `-` means that the page names no charset.
fn page(value: &str) -> Result<Page, String> {
    let [site, charset, declared] = value.split(' ').collect::<Vec<_>>()[..] else {
        return Err(format!("page: expected 'SITE CHARSET DECLARED', got {value:?}"));
    };
    Ok(Page {
        site: site.to_owned(),
        charset: Encoding::for_label(charset.as_bytes())
            .ok_or_else(|| format!("page: unknown charset {charset:?}"))?,
        declared: (declared != "-").then(|| declared.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expect: Result<&[(&str, &str)], &str>) {
        let mut documents = Vec::new();
        let got = parse("f", source, &mut documents);
        let texts: Vec<_> = documents.iter().map(|d| (d.id.as_str(), d.text.as_str())).collect();
        match expect {
            Ok(expect) => assert_eq!((got, texts.as_slice()), (Ok(()), expect), "{source}"),
            Err(expect) => {
                let got = got.expect_err(source).to_string();
                assert!(got.contains(expect), "{got:?} does not hold {expect:?}");
            }
        }
    }

    const HEAD: &str =
        "group: g\nedit: original\nurl: u\ndate: d\nsource: s\nquality: 0.50\nnote: n\n";

    #[test]
    fn documents_keep_their_white_space() {
        check("", Ok(&[]));
        check("# about\n\n", Ok(&[]));
        check(&format!("=== a\n{HEAD}\n  x \n\n\ty\n\n"), Ok(&[("a", "  x \n\n\ty")]));
        check(
            &format!("# about\n\n=== a\n{HEAD}\nx\n\n=== b\n{HEAD}\n"),
            Ok(&[("a", "x"), ("b", "")]),
        );
        check(&format!("=== a\n{HEAD}"), Ok(&[("a", "")]));
    }

    #[test]
    fn mistakes_name_their_line() {
        check("x\n", Err("f.txt:1: expected '# '"));
        check("=== a\ngroup: g\n\nx\n", Err("f.txt:1: a: no edit"));
        check("=== a\ngroup g\n", Err("f.txt:2: expected 'key: value'"));
        check("=== a\ngroup: g\ngroup: h\n", Err("f.txt:3: group given twice"));
        check("=== a\nsize: 1\n", Err("f.txt:2: unknown key \"size\""));
        check("=== a\npage: site utf-9 -\n", Err("f.txt:2: page: unknown charset \"utf-9\""));
        check("=== a\npage: site\n", Err("f.txt:2: page: expected"));
        check(&format!("=== a\n{}\n", HEAD.replace("original", "odd")), Err("unknown edit"));
    }
}
