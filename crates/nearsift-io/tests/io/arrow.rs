//! Arrow IPC: files and streams are made here and compared batch by batch.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float64Array, Int64Array,
    LargeListArray, ListArray, RecordBatch, StringArray, StringViewArray, StructArray,
    TimestampMillisecondArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use nearsift_io::{Decision, Inputs, Limits, ReadOptions, Reader};
use proptest::prelude::*;

use crate::support::{Folder, Read, both, read};

/// Rows `start..end`, of which `i % 5 == 3` have no text.
fn batch(rows: std::ops::Range<usize>) -> RecordBatch {
    let there = |i: &usize| (i % 5 != 3).then_some(*i);
    let all = || rows.clone();
    let ids: Int64Array = all().map(|i| i as i64).collect();
    let texts: StringArray = all().map(|i| there(&i).map(|i| format!("第 {i} 篇"))).collect();
    let inner: StringViewArray = all().map(|i| there(&i).map(|i| format!("inner {i}"))).collect();
    let group = StructArray::from(vec![(
        Arc::new(Field::new("text", DataType::Utf8View, true)),
        Arc::new(inner) as ArrayRef,
    )]);
    let kinds: DictionaryArray<Int32Type> =
        all().map(|i| there(&i).map(|i| ["a", "b", "c"][i % 3])).collect();
    let flags: BooleanArray = all().map(|i| there(&i).map(|i| i % 2 == 0)).collect();
    let scores: Float64Array = all().map(|i| there(&i).map(|i| i as f64 / 8.0)).collect();
    let times: TimestampMillisecondArray =
        all().map(|i| there(&i).map(|i| i as i64 * 1001)).collect();
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(
        all().map(|i| there(&i).map(|i| (0..i as i32 % 4).map(Some).collect::<Vec<_>>())),
    );
    let columns: [(&str, ArrayRef); 8] = [
        ("id", Arc::new(ids)),
        ("text", Arc::new(texts)),
        ("meta", Arc::new(group)),
        ("kind", Arc::new(kinds)),
        ("flag", Arc::new(flags)),
        ("score", Arc::new(scores)),
        ("at", Arc::new(times)),
        ("list", Arc::new(lists)),
    ];
    let fields: Vec<_> =
        columns.iter().map(|(n, a)| Field::new(*n, a.data_type().clone(), true)).collect();
    let metadata = std::collections::HashMap::from([("来源".to_owned(), "x".to_owned())]);
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    RecordBatch::try_new(schema, columns.into_iter().map(|c| c.1).collect()).expect("a batch")
}

fn stream(batches: &[RecordBatch], codec: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(codec).expect("options");
    let schema = batches[0].schema();
    let mut writer =
        StreamWriter::try_new_with_options(Vec::new(), &schema, options).expect("a writer");
    batches.iter().for_each(|batch| writer.write(batch).expect("a batch"));
    writer.into_inner().expect("a stream")
}

fn file(batches: &[RecordBatch], codec: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(codec).expect("options");
    let options = options.with_dictionary_handling(arrow_ipc::writer::DictionaryHandling::Delta);
    let schema = batches[0].schema();
    let mut writer =
        FileWriter::try_new_with_options(Vec::new(), &schema, options).expect("a writer");
    batches.iter().for_each(|batch| writer.write(batch).expect("a batch"));
    writer.write_metadata("written by", "a test");
    writer.into_inner().expect("a file")
}

fn batches_of(path: &Path) -> Vec<RecordBatch> {
    let bytes = fs::read(path).expect("a file");
    if bytes.starts_with(b"ARROW1") {
        let reader = FileReader::try_new(std::io::Cursor::new(bytes), None).expect("a file");
        assert_eq!(reader.custom_metadata()["written by"], "a test");
        return reader.map(|b| b.expect("a batch")).collect();
    }
    StreamReader::try_new(&bytes[..], None)
        .expect("a stream")
        .map(|b| b.expect("a batch"))
        .collect()
}

fn options(field: &str) -> ReadOptions {
    ReadOptions { text_field: Some(field.to_owned()), ..ReadOptions::default() }
}

fn inputs(path: &Path) -> Inputs {
    let options = ReadOptions { fields: vec!["list".to_owned()], ..options("text") };
    Inputs::resolve(&[path], options).expect("inputs")
}

#[test]
fn kept_rows_are_the_rows() {
    // The same dictionary in every batch, as a file must have it.
    let whole = batch(0..900);
    let batches: Vec<_> = (0..3).map(|i| whole.slice(i * 300, 300)).collect();
    for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        for (name, bytes) in
            [("a.arrows", stream(&batches, codec)), ("a.feather", file(&batches, codec))]
        {
            let folder = Folder::new();
            let path = folder.file(name, bytes);
            let decide = |index: u64| match index % 3 {
                0 => Some(Decision::Keep),
                1 => Some(Decision::Drop),
                _ => Some(Decision::Unreadable),
            };
            let (all, written, output) = both(&inputs(&path), decide);
            assert_eq!(all.documents[1], "1=第 1 篇");
            assert_eq!((all.decisions.len(), all.notes.len()), (900, 180));
            assert_eq!((written.kept, written.dropped, written.unreadable), (300, 300, 300));
            for (tree, rest) in [("kept", 0), ("unreadable", 2)] {
                let got = batches_of(&output.path().join(tree).join(name));
                assert_eq!(got.len(), 3, "batches are kept");
                for (got, before) in got.iter().zip(&batches) {
                    let chosen: BooleanArray = (0..300).map(|i| Some(i % 3 == rest)).collect();
                    let expect = arrow_select::filter::filter_record_batch(before, &chosen);
                    assert_eq!(*got, expect.expect("rows"), "{name} {codec:?}");
                    assert_eq!(got.schema(), before.schema());
                }
            }
            let size = |path: &Path| fs::metadata(path).expect("a file").len();
            let kept = size(&output.path().join("kept").join(name));
            assert!(kept < size(&path) * 3 / 4, "compressed as before: {kept}");
        }
    }
}

#[test]
fn fields() {
    let folder = Folder::new();
    let path = folder.file("a.arrow", stream(&[batch(0..4)], None));
    let check = |field: &str, expect: [Option<&str>; 4]| {
        let options = ReadOptions { fields: vec![field.to_owned()], ..options("id") };
        assert!(
            Reader::new(&Inputs::resolve(&[&path], options.clone()).expect("inputs"))
                .next_batch()
                .expect("a batch")
                .is_some_and(|b| b.notes()[0].reason.code() == "wrong_type")
        );
        let options = ReadOptions { text_field: Some("meta.text".to_owned()), ..options };
        let inputs = Inputs::resolve(&[&path], options).expect("inputs");
        let parser = nearsift_io::Parser::new(&inputs);
        let batch = Reader::new(&inputs).next_batch().expect("a batch").expect("one");
        let got: Vec<_> = batch
            .records()
            .map(|r| match parser.parse(&r) {
                Ok(d) => d.fields[0].as_ref().map(|v| v.as_str().to_owned()),
                Err(_) => Some("no text".to_owned()),
            })
            .collect();
        let expect: Vec<_> = expect.iter().map(|e| e.map(str::to_owned)).collect();
        assert_eq!(got, expect, "{field}");
    };
    let last = Some("no text");
    check("id", [Some("0"), Some("1"), Some("2"), last]);
    check("kind", [Some("a"), Some("b"), Some("c"), last]);
    check("flag", [Some("true"), Some("false"), Some("true"), last]);
    check("score", [Some("0"), Some("0.125"), Some("0.25"), last]);
    let times = ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01.001Z", "1970-01-01T00:00:02.002Z"];
    check("at", [Some(times[0]), Some(times[1]), Some(times[2]), last]);
    check("meta.text", [Some("inner 0"), Some("inner 1"), Some("inner 2"), last]);
    check("list", [Some("[]"), Some("[0]"), Some("[0,1]"), last]);
    check("meta.nothing", [None, None, None, last]);
}

/// Lists of every kind, and tables without a text.
#[test]
fn lists() {
    let texts = || {
        let mut lists = ListBuilder::new(StringBuilder::new());
        lists.append_value([Some("a, \"b\""), None, Some("中\n")]);
        lists.append_value([None::<&str>; 0]);
        lists.append_null();
        lists.finish()
    };
    let numbers = [Some(vec![Some(1), None, Some(-2)]), Some(vec![]), None];
    let large = LargeListArray::from_iter_primitive::<Int32Type, _, _>(numbers.clone());
    let pairs = [Some(vec![Some(0.5), Some(f64::NAN)]), None, Some(vec![None, Some(2.0)])];
    let pairs = FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(pairs, 2);
    let kinds: DictionaryArray<Int32Type> = ["x", "y", "x"].into_iter().collect();
    let field = Arc::new(Field::new_list_field(kinds.data_type().clone(), true));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([2, 0, 1]);
    let kinds = ListArray::new(field, offsets, Arc::new(kinds), None);
    let field = Arc::new(Field::new_list_field(texts().data_type().clone(), true));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([1, 1, 1]);
    let deep = ListArray::new(field, offsets, Arc::new(texts()), None);
    let columns: [(&str, ArrayRef); 6] = [
        ("n", Arc::new(Int64Array::from(vec![5, 6, 7]))),
        ("texts", Arc::new(texts())),
        ("large", Arc::new(large)),
        ("pairs", Arc::new(pairs)),
        ("kinds", Arc::new(kinds)),
        ("deep", Arc::new(deep)),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(n, a)| (n, a, true)));
    let folder = Folder::new();
    let path = folder.file("a.arrow", stream(&[batch.expect("a batch")], None));
    let fields = ["n", "texts", "large", "pairs", "kinds", "deep", "nothing"];
    let read = |record_bytes| {
        let options = ReadOptions {
            text_field: None,
            fields: fields.map(str::to_owned).to_vec(),
            limits: Limits { record_bytes, ..Limits::default() },
            ..ReadOptions::default()
        };
        let inputs = Inputs::resolve(&[&path], options).expect("inputs");
        let parser = nearsift_io::Parser::new(&inputs);
        let batch = Reader::new(&inputs).next_batch().expect("a batch").expect("one");
        let row = |record| {
            let columns = parser.columns(&record).expect("a table");
            assert_eq!(columns[..5], [true; 5]);
            assert!(!columns[6]);
            let document = parser.parse(&record).ok()?;
            assert_eq!(document.body, nearsift_io::Body::Text("".into()));
            let shown = document.fields.iter().map(|f| f.as_ref().map(|v| v.as_str().to_owned()));
            Some(shown.collect::<Vec<_>>())
        };
        batch.records().map(row).collect::<Vec<_>>()
    };
    let text = r#"["a, \"b\"","中\n"]"#;
    let expect = [
        [Some("5"), Some(text), Some("[1,-2]"), Some("[0.5,\"NaN\"]"), Some("[\"x\",\"y\"]")],
        [Some("6"), Some("[]"), Some("[]"), None, Some("[]")],
        [Some("7"), None, None, Some("[2]"), Some("[\"x\"]")],
    ];
    let expect = expect.map(|row| {
        let row = row.into_iter().chain([None, None]);
        Some(row.map(|f| f.map(str::to_owned)).collect::<Vec<_>>())
    });
    assert_eq!(read(text.len()), expect);
    assert_eq!(read(text.len() - 1), [None, expect[1].clone(), expect[2].clone()]);
}

fn survives(name: &str, bytes: &[u8]) -> Read {
    let folder = Folder::new();
    let path = folder.file(name, bytes);
    let (got, written, output) = both(&inputs(&path), |_| None);
    assert_eq!(written.kept as usize, got.documents.len());
    let kept = output.path().join("kept").join(name);
    if kept.exists() {
        let again = read(&inputs(&kept));
        assert_eq!(again.decisions.len(), got.documents.len(), "{:?}", got.codes());
    }
    got
}

#[test]
fn damage() {
    let batches: Vec<_> = (0..3).map(|i| batch(i * 100..i * 100 + 100)).collect();
    let bytes = stream(&batches, Some(CompressionType::ZSTD));
    let good = survives("a.arrows", &bytes);
    assert_eq!((good.documents.len(), good.notes.len()), (240, 60));
    for cut in [bytes.len() * 9 / 10, bytes.len() / 2] {
        let got = survives("a.arrows", &bytes[..cut]);
        assert!(
            got.documents.len() < 240 && got.codes().iter().any(|c| c.ends_with("damaged")),
            "{:?}",
            got.codes()
        );
    }
    // The compressed text of the second batch.
    let zstd: Vec<usize> = memchr::memmem::find_iter(&bytes, &[0x28, 0xb5, 0x2f, 0xfd]).collect();
    let mut broken = bytes.clone();
    broken[zstd[zstd.len() / 2]] ^= 1;
    let got = survives("a.arrows", &broken);
    assert_eq!(got.documents.len(), 160, "the other two batches");
    assert!(got.notes.iter().any(|n| n.reason.code() == "rows" && n.line == Some(101)));
    for (bytes, code) in [
        (&b""[..], "not_readable"),
        (b"ARROW1\0\0", "not_readable"),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f", "not_readable"),
        (b"hello world, I am no such thing", "not_readable"),
    ] {
        assert_eq!(survives("a.arrow", bytes).codes(), [code]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn damage_anywhere(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
        codec in prop_oneof![Just(None), Just(Some(CompressionType::LZ4_FRAME))],
        is_file in any::<bool>(),
    ) {
        let whole = batch(0..60);
        let batches = [whole.slice(0, 30), whole.slice(30, 30)];
        let mut bytes = if is_file { file(&batches, codec) } else { stream(&batches, codec) };
        if let Some(cut) = cut {
            bytes.remove(cut.index(bytes.len()));
        }
        for (place, byte) in places {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        survives("a.arrow", &bytes);
    }
}
