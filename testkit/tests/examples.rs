//! The example corpus is what its sources give, and its truth is consistent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use encoding_rs::Encoding;
use testkit::examples::{Document, Edit, documents, examples_dir, generate, truth};
use testkit::json_lines;

fn all() -> Vec<Document> {
    documents().unwrap_or_else(|mistake| panic!("{mistake}"))
}

#[test]
fn committed_files_are_what_the_sources_give() {
    let generated = generate().unwrap_or_else(|mistake| panic!("{mistake}"));
    for file in &generated {
        let path = examples_dir().join(&file.path);
        let committed = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(
            committed == file.bytes,
            "{} is not what examples/source gives: run `cargo xtask examples`",
            file.path
        );
    }
    let expected = generated.iter().map(|f| f.path.clone()).collect::<BTreeSet<_>>();
    let mut found = BTreeSet::new();
    for folder in ["big5", "gbk", "utf-8"] {
        for entry in fs::read_dir(examples_dir().join("pages").join(folder)).expect("pages") {
            let name = entry.expect("an entry").file_name().into_string().expect("a UTF-8 name");
            found.insert(format!("pages/{folder}/{name}"));
        }
    }
    let pages = expected.into_iter().filter(|p| p.starts_with("pages/")).collect::<BTreeSet<_>>();
    assert_eq!(found, pages, "pages that no source gives: run `cargo xtask examples`");
}

#[test]
fn generating_twice_gives_the_same_bytes() {
    assert_eq!(generate(), generate());
}

#[test]
fn documents_are_well_formed() {
    let documents = all();
    let mut ids = BTreeSet::new();
    for d in &documents {
        let id = &d.id;
        assert!(ids.insert(id), "{id} twice");
        assert!(
            id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
            "{id}"
        );
        assert!(is_date(&d.date), "{id}: date {}", d.date);
        let host = d.url.strip_prefix("https://").and_then(|u| u.split('/').next());
        assert!(host.is_some_and(|h| h.ends_with(".example")), "{id}: url {}", d.url);
        let quality: f64 = d.quality.parse().unwrap_or_else(|e| panic!("{id}: quality {e}"));
        assert!((0.0..=1.0).contains(&quality), "{id}: quality {quality}");
        assert_eq!(d.text.trim().is_empty(), d.edit == Edit::Empty, "{id}");
    }
    assert!((60..=80).contains(&documents.len()), "{} documents", documents.len());
}

fn is_date(date: &str) -> bool {
    let digits = date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c });
    digits.eq("0000-00-00".chars())
}

/// A derived document stands in its original's group and family and later in the corpus; a
/// document that looks like another stands alone or heads its own group.
#[test]
fn groups_are_consistent() {
    let documents = all();
    let corpus = json_lines(&examples_dir().join("corpus.jsonl"));
    let place = corpus
        .iter()
        .enumerate()
        .map(|(i, line)| (line["id"].as_str().expect("an id").to_owned(), i))
        .collect::<BTreeMap<_, _>>();
    let by_id = documents.iter().map(|d| (&d.id, d)).collect::<BTreeMap<_, _>>();
    let mut size = BTreeMap::<_, usize>::new();
    let mut family = BTreeMap::new();
    for d in &documents {
        *size.entry(&d.group).or_default() += 1;
        assert_eq!(*family.entry(&d.group).or_insert(&d.family), &d.family, "{}", d.id);
        assert_eq!(d.of.is_some(), d.edit.is_derived(), "{}", d.id);
        if let Some(of) = &d.of {
            assert_eq!(by_id[of].group, d.group, "{}", d.id);
            assert!(!by_id[of].edit.is_derived(), "{}: {of} is itself derived", d.id);
            assert!(place[of] < place[&d.id], "{} stands before {of}", d.id);
        }
    }
    for d in &documents {
        match d.edit {
            Edit::Singleton | Edit::Empty => assert_eq!(size[&d.group], 1, "{}", d.id),
            Edit::Original => assert!(size[&d.group] > 1, "{}", d.id),
            _ => {}
        }
    }
    let kinds = documents.iter().map(|d| d.edit).collect::<BTreeSet<_>>();
    assert_eq!(kinds, Edit::ALL.into_iter().collect(), "every kind of edit is shown");
}

#[test]
fn truth_lists_every_document_and_page_once() {
    let corpus = json_lines(&examples_dir().join("corpus.jsonl"));
    let ids = corpus.iter().map(|l| l["id"].as_str().expect("an id").to_owned());
    let rows = truth("truth.tsv").unwrap_or_else(|mistake| panic!("{mistake}"));
    assert_eq!(rows.iter().map(|t| t.id.clone()).collect::<Vec<_>>(), ids.collect::<Vec<_>>());
    assert!(rows.iter().all(|t| !t.note.is_empty()));

    let rows = truth("truth-pages.tsv").unwrap_or_else(|mistake| panic!("{mistake}"));
    let mut paths = BTreeSet::new();
    for row in &rows {
        assert!(examples_dir().join(&row.id).is_file(), "{}", row.id);
        assert!(paths.insert(&row.id), "{} twice", row.id);
    }
    let pages = all().iter().map(|d| d.pages.len()).sum::<usize>();
    assert_eq!(paths.len(), pages);
}

/// Each page, read by the charset its bytes are really in, holds its document line by line, and
/// read by a false declaration it does not.
#[test]
fn pages_decode_by_their_real_charset_to_the_text() {
    let (mut missing, mut false_label) = (0, 0);
    for d in all() {
        for page in &d.pages {
            let path = examples_dir().join(format!("pages/{}/{}.html", page.folder(), d.id));
            let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let html = decode(&path, &bytes, page.charset);
            let mut rest = html.as_str();
            for line in d.text.lines().map(str::trim).filter(|l| !l.is_empty()) {
                let line = format!(">{}</", escape(line));
                let at = rest.find(&line).unwrap_or_else(|| {
                    panic!("{}: no {line:?} after the lines above it", path.display())
                });
                rest = &rest[at + line.len()..];
            }
            let Some(label) = &page.declared else {
                assert!(!html.contains("charset="), "{}", path.display());
                missing += 1;
                continue;
            };
            let head = html.split("<title>").next().unwrap_or_default();
            let declaration = [format!("charset={label}\""), format!("charset=\"{label}\"")];
            assert!(declaration.iter().any(|d| head.contains(d)), "{}", path.display());
            let declared = Encoding::for_label(label.as_bytes()).expect("a known label");
            if declared != page.charset {
                assert_ne!(declared.decode_without_bom_handling(&bytes).0, html);
                false_label += 1;
            }
        }
    }
    assert!(missing >= 2 && false_label >= 2, "missing {missing}, false {false_label}");
}

fn decode(path: &Path, bytes: &[u8], charset: &'static Encoding) -> String {
    let text = charset.decode_without_bom_handling_and_without_replacement(bytes);
    text.unwrap_or_else(|| panic!("{}: not {}", path.display(), charset.name())).into_owned()
}

fn escape(line: &str) -> String {
    [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;")]
        .iter()
        .fold(line.to_owned(), |line, (from, to)| line.replace(from, to))
}

#[test]
fn the_readme_counts_every_family() {
    let readme = fs::read_to_string(examples_dir().join("README.md")).expect("examples/README.md");
    let documents = all();
    let mut sizes = BTreeMap::<_, usize>::new();
    for d in &documents {
        *sizes.entry(&d.family).or_default() += 1;
    }
    for (family, size) in sizes {
        let row = format!("| `{family}` | {size} |");
        assert_eq!(readme.matches(&row).count(), 2, "{row:?}, in English and in Chinese");
    }
    let pages = documents.iter().map(|d| d.pages.len()).sum::<usize>();
    for total in [
        format!("{} short documents", documents.len()),
        format!("{} 篇短文", documents.len()),
        format!("{pages} web pages"),
        format!("{pages} 个网页"),
    ] {
        assert!(readme.contains(&total), "examples/README.md does not say {total:?}");
    }
}
