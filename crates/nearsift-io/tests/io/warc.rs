//! WARC, WET and ARC: files made here, and real ones where the evaluation data is.

use std::fs;
use std::io::Write;

use nearsift_io::{Decision, Inputs, ReadOptions};

use crate::support::{Folder, both, gz, inputs, read, tree, zst};

fn record(kind: &str, media: &str, id: usize, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{id}>\r\n\
         WARC-Target-URI: http://a/{id}\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn page(id: usize, header: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{header}\r\n");
    record("response", "application/http; msgtype=response", id, &[head.as_bytes(), body].concat())
}

/// What each kind of record gives.
#[test]
fn documents() {
    let check = |record: Vec<u8>, expect: &[&str], notes: &[&str]| {
        let folder = Folder::new();
        let got = read(&inputs(folder.file("a.warc", record)));
        assert_eq!(got.documents, expect);
        assert_eq!(got.codes(), notes);
    };
    let html = "Content-Type: text/html\r\n";
    check(page(1, html, b"<p>x"), &["urn:uuid:1=html:<p>x"], &[]);
    check(page(1, "content-type: text/plain\r\n", b"x"), &["urn:uuid:1=plain:x"], &[]);
    check(page(1, "Content-Type: image/png\r\n", b"\x89PNG"), &["urn:uuid:1="], &[]);
    check(page(1, "", b" <!DOCTYPE html>x"), &["urn:uuid:1=html: <!DOCTYPE html>x"], &[]);
    check(record("conversion", "text/plain", 2, b"wet"), &["urn:uuid:2=plain:wet"], &[]);
    check(record("resource", "text/html", 3, b"<b>"), &["urn:uuid:3=html:<b>"], &[]);
    for other in ["warcinfo", "request", "metadata", "revisit"] {
        check(record(other, "text/plain", 4, b"x"), &[], &[]);
    }
    let chunked = format!("{html}Transfer-Encoding: chunked\r\n");
    check(page(1, &chunked, b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"), &["urn:uuid:1=html:abc"], &[]);
    check(page(1, &chunked, b"<p>not in chunks"), &["urn:uuid:1=html:<p>not in chunks"], &[]);
    check(page(1, &chunked, b"9\r\nab"), &["urn:uuid:1=html:ab"], &[]);
    let zipped = format!("{html}Content-Encoding: gzip\r\n");
    check(page(1, &zipped, &gz(b"zipped")), &["urn:uuid:1=html:zipped"], &[]);
    check(page(1, &zipped, b"unzipped"), &["urn:uuid:1=html:unzipped"], &[]);
    check(page(1, &zipped, b"\x1f\x8b\x08broken"), &[], &["1 warc"]);
    // The bytes decide, not the label.
    check(page(1, &format!("{html}Content-Encoding: br\r\n"), b"?"), &["urn:uuid:1=html:?"], &[]);
    check(record("response", "application/http", 1, b"HTTP/9"), &[], &["1 warc"]);
    check(page(1, html, b"cut")[..150].to_vec(), &[], &["1 warc"]);
    check(b"junk\n".to_vec(), &[], &["1 warc"]);
}

#[test]
fn a_payload_that_unfolds_to_too_much() {
    let folder = Folder::new();
    let bomb = page(1, "Content-Encoding: gzip\r\n", &gz(&vec![b'x'; 100 << 20]));
    let path = folder.file("a.warc", [bomb, page(2, "", b"<html>y")].concat());
    let got = read(&inputs(path));
    assert_eq!(got.documents, ["urn:uuid:2=html:<html>y"]);
    assert_eq!(got.codes(), ["1 too_long"]);
}

#[test]
fn header_fields() {
    let folder = Folder::new();
    let path = folder.file("a.warc", page(1, "", b"<html>"));
    let options = ReadOptions {
        id_field: "WARC-Target-URI".to_owned(),
        fields: vec!["warc-type".to_owned(), "nothing".to_owned()],
        ..ReadOptions::default()
    };
    let inputs = Inputs::resolve(&[path], options).expect("inputs");
    let parser = nearsift_io::Parser::new(&inputs);
    let batch = nearsift_io::Reader::new(&inputs).next_batch().expect("a batch").expect("one");
    let document = parser.parse(&batch.record(0)).expect("a document");
    assert_eq!(document.id.as_str(), "http://a/1");
    let fields: Vec<_> =
        document.fields.iter().map(|f| f.as_ref().map(nearsift_io::Value::as_str)).collect();
    assert_eq!(fields, [Some("response"), None]);
}

/// The members of a file.
fn members(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = bytes;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let mut plain = Vec::new();
        let mut decoder = flate2::bufread::GzDecoder::new(rest);
        std::io::Read::read_to_end(&mut decoder, &mut plain).expect("a member");
        rest = decoder.into_inner();
        all.push(plain);
    }
    all
}

#[test]
fn a_member_a_record() {
    let folder = Folder::new();
    let info = record("warcinfo", "text/plain", 0, b"x");
    let pages: Vec<_> = (1..5).map(|id| page(id, "", b"<html>")).collect();
    let all: Vec<Vec<u8>> = std::iter::once(&info).chain(&pages).map(|r| gz(r)).collect();
    let path = folder.file("a.warc.gz", all.concat());
    let decide = |index| match index {
        1 => Some(Decision::Drop),
        2 => Some(Decision::Unreadable),
        _ => None,
    };
    let (_, written, output) = both(&inputs(path), decide);
    assert_eq!((written.kept, written.dropped, written.unreadable), (2, 1, 1));
    let kept = fs::read(output.path().join("kept/a.warc.gz")).expect("kept");
    assert_eq!(members(&kept), [info, pages[0].clone(), pages[3].clone()]);
    let aside = fs::read(output.path().join("unreadable/a.warc.gz")).expect("unreadable");
    assert_eq!(members(&aside), [pages[2].clone()]);
}

#[test]
fn a_damaged_member_costs_no_other() {
    let folder = Folder::new();
    let pages: Vec<_> =
        (0..4).map(|id| page(id, "", &[b"<html>".as_slice(), &noise(id, 3000)].concat())).collect();
    let mut damaged = gz(&pages[1]);
    damaged[10..50].fill(0xff);
    let cut = gz(&pages[2]);
    let cut = &cut[..cut.len() - 500];
    let bytes = [&gz(&pages[0])[..], &damaged, cut, &gz(&pages[3])].concat();
    let path = folder.file("a.warc.gz", bytes);
    let (got, _, output) = both(&inputs(&path), |_| None);
    let ids: Vec<_> = got.documents.iter().map(|d| &d[..10]).collect();
    assert_eq!(ids, ["urn:uuid:0", "urn:uuid:3"]);
    assert!(got.codes().iter().filter(|c| c.ends_with("member")).count() >= 2, "{:?}", got.codes());
    let kept = fs::read(output.path().join("kept/a.warc.gz")).expect("kept");
    assert_eq!(members(&kept), [pages[0].clone(), pages[3].clone()]);
    // The same with frames of zstd.
    let mut damaged = zst(&pages[1]);
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    // A byte of the page itself is wrong, which only the checksum tells.
    let mut wrong = gz(&pages[2]);
    let middle = wrong.len() / 2;
    wrong[middle] ^= 1;
    let path = folder.file("c.warc.gz", [gz(&pages[0]), wrong, gz(&pages[3])].concat());
    let got = read(&inputs(path));
    assert_eq!((got.documents.len(), got.codes()), (2, vec!["2 member".to_owned()]));
    let path = folder.file("b.warc.zst", [zst(&pages[0]), damaged, zst(&pages[3])].concat());
    let got = read(&inputs(path));
    let ids: Vec<_> = got.documents.iter().map(|d| &d[..10]).collect();
    assert_eq!(ids, ["urn:uuid:0", "urn:uuid:3"], "{:?}", got.notes);
}

/// Bytes that do not compress.
fn noise(seed: usize, len: usize) -> Vec<u8> {
    let mut state = seed as u64 * 2 + 1;
    let step = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(step).collect()
}

/// Each file of the evaluation data with the documents and notes that it has.
#[test]
fn real_files() {
    let Some(data) = testkit::data_dir() else { return };
    let check = |name: &str, documents: usize, notes: &[&str]| {
        let options =
            ReadOptions { format: Some(nearsift_io::Format::Warc), ..ReadOptions::default() };
        let path = data.join("warc").join(name);
        let inputs = Inputs::resolve(&[&path], options).expect("inputs");
        let (got, written, output) = both(&inputs, |_| None);
        assert_eq!(
            (got.documents.len(), got.codes()),
            (documents, notes.iter().map(|n| (*n).to_owned()).collect()),
            "{name}"
        );
        assert_eq!(written.kept as usize, documents, "{name}");
        // What was kept and what was put aside is the whole of the file.
        let plain = |bytes: &[u8]| {
            let mut plain = Vec::new();
            let mut decoder = flate2::write::MultiGzDecoder::new(&mut plain);
            match bytes.starts_with(&[0x1f, 0x8b]) {
                true => drop(decoder.write_all(bytes)),
                false => return bytes.len(),
            }
            drop(decoder);
            plain.len()
        };
        let sizes: usize = ["kept", "unreadable"]
            .iter()
            .filter_map(|tree| fs::read(output.path().join(tree).join(name)).ok())
            .map(|bytes| plain(&bytes))
            .sum();
        assert_eq!(sizes, plain(&fs::read(path).expect("the input")), "{name}");
    };
    check("warcio_example.warc", 1, &[]);
    check("warcio_example.warc.gz", 1, &[]);
    check("warcio_example.arc", 1, &[]);
    check("warcio_example.arc.gz", 1, &[]);
    // Its line breaks were changed after its length was taken.
    check("warcio_example-space-in-url.arc", 0, &["2 warc"]);
    check("warcio_bad.arc", 1, &["1 warc", "3 warc"]);
    check("warcio_example-bad-non-chunked.warc.gz", 1, &[]);
    check("warcio_example-bad.warc.gz.bad", 2, &[]);
    check("warcio_example-digest.warc", 0, &[]);
    check("warcio_example-iana.org-chunked.warc", 1, &[]);
    check("warcio_example-resource.warc.gz", 1, &[]);
    check("warcio_example-space-in-target-uri.warc.gz", 1, &[]);
    check("warcio_example-trunc.warc", 1, &["4 warc"]);
    check("warcio_example-wget-bad-target-uri.warc.gz", 3, &[]);
    // A record that goes over two members.
    check("warcio_example-wrong-chunks.warc.gz", 0, &["1 warc", "2 warc"]);
    check("warcio_post-test.warc.gz", 3, &[]);
    check("whirlwind-python_whirlwind.warc", 1, &[]);
    check("whirlwind-python_whirlwind.warc.gz", 1, &[]);
    check("whirlwind-python_whirlwind.warc.wet", 1, &[]);
    check("whirlwind-python_whirlwind.warc.wet.gz", 1, &[]);
    check("whirlwind-python_whirlwind.warc.wat", 0, &[]);
}

#[test]
fn formats_by_content() {
    let folder = Folder::new();
    let path = folder.file("no-extension", gz(&page(1, "", b"<html>")));
    assert_eq!(read(&inputs(path)).documents.len(), 1);
    assert!(tree(&folder.path("none")).is_empty());
}

/// A dictionary by itself and compressed, before frames that need it, of which one is damaged.
#[test]
fn frames_with_a_dictionary() {
    let pages: Vec<Vec<u8>> = (1..40)
        .map(|id| {
            page(id, "", format!("<html><p>page {id} of the harbour, by the council").as_bytes())
        })
        .collect();
    let dictionary = zstd::dict::from_samples(&pages, 2048).expect("a dictionary");
    let frame = |content: &[u8]| {
        let mut w = zstd::Encoder::with_dictionary(Vec::new(), 3, &dictionary).expect("an encoder");
        w.include_checksum(true).expect("an encoder");
        w.write_all(content).expect("memory");
        w.finish().expect("memory")
    };
    let skipped = |content: &[u8]| {
        [&[0x5d, 0x2a, 0x4d, 0x18][..], &(content.len() as u32).to_le_bytes(), content].concat()
    };
    let mut damaged = frame(&pages[1]);
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    let frames = [frame(&pages[0]), damaged, frame(&pages[2])].concat();
    for first in [skipped(&dictionary), skipped(&zst(&dictionary))] {
        let folder = Folder::new();
        let inputs = inputs(folder.file("a.warc.zst", [first, frames.clone()].concat()));
        let (all, written, output) = both(&inputs, |_| None);
        let ids: Vec<&str> = all.documents.iter().filter_map(|d| d.split('=').next()).collect();
        assert_eq!(ids, ["urn:uuid:1", "urn:uuid:3"], "{:?}", all.notes);
        assert_eq!(written.kept, 2);
        // What is written needs none.
        let kept = fs::read(output.path().join("kept/a.warc.zst")).expect("a file");
        let plain = zstd::decode_all(&kept[..]).expect("frames");
        assert_eq!(plain, [&pages[0][..], &pages[2]].concat());
    }
    // A frame that is skipped, and holds something else.
    let folder = Folder::new();
    let path = folder.file("a.warc.zst", [skipped(b"no dictionary"), zst(&pages[0])].concat());
    assert_eq!(read(&inputs(path)).documents.len(), 1);
}
