//! Parquet: files are made here, column by column, and compared value by value.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use nearsift_io::{Decision, Inputs, Limits, ReadOptions, Reader};
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use crate::support::{Folder, Read, both, inputs, read};

/// Columns of every physical type, optional and nested ones among them.
const SCHEMA: &str = "message odd_types {
    REQUIRED INT64 id;
    OPTIONAL GROUP meta { OPTIONAL BYTE_ARRAY text (UTF8); REQUIRED INT32 n; }
    OPTIONAL INT32 day (DATE);
    OPTIONAL INT64 at (TIMESTAMP(MICROS,true));
    OPTIONAL INT96 old;
    OPTIONAL DOUBLE score;
    REQUIRED BOOLEAN flag;
    OPTIONAL FIXED_LEN_BYTE_ARRAY (16) key (UUID);
    OPTIONAL INT32 price (DECIMAL(9,2));
    OPTIONAL GROUP tags (LIST) { REPEATED GROUP list { OPTIONAL BYTE_ARRAY element (UTF8); } }
}";

fn text(i: usize) -> String {
    format!("第 {i} 篇")
}

/// A file of `rows` rows in groups of `group_rows`.
fn file(rows: usize, group_rows: usize, properties: WriterProperties) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(SCHEMA).expect("a schema"));
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).expect("a writer");
    for start in (0..rows).step_by(group_rows.max(1)) {
        let range = start..(start + group_rows).min(rows);
        let mut group = writer.next_row_group().expect("a group");
        write_group(&mut group, range);
        group.close().expect("a group");
    }
    writer.close().expect("a file");
    bytes
}

fn write_group(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    rows: std::ops::Range<usize>,
) {
    macro_rules! put {
        ($type:ty, $values:expr, $definitions:expr, $repetitions:expr) => {{
            let mut column = group.next_column().expect("a column").expect("one more");
            let (values, definitions): (Vec<_>, Option<Vec<i16>>) = ($values, $definitions);
            let repetitions: Option<Vec<i16>> = $repetitions;
            column
                .typed::<$type>()
                .write_batch(&values, definitions.as_deref(), repetitions.as_deref())
                .expect("values");
            column.close().expect("a column");
        }};
    }
    let is_null = |i: &usize| i % 5 == 3;
    let there = || rows.clone().filter(|i| !is_null(i));
    let levels = |max: i16| Some(rows.clone().map(|i| max - i16::from(is_null(&i))).collect());
    put!(Int64Type, rows.clone().map(|i| i as i64).collect(), None, None);
    put!(
        ByteArrayType,
        there().map(|i| ByteArray::from(text(i).into_bytes())).collect(),
        levels(2),
        None
    );
    put!(
        Int32Type,
        rows.clone().map(|i| i as i32).collect(),
        Some(rows.clone().map(|_| 1).collect()),
        None
    );
    put!(Int32Type, there().map(|i| i as i32).collect(), levels(1), None);
    put!(Int64Type, there().map(|i| i as i64 * 1_000_001).collect(), levels(1), None);
    put!(
        Int96Type,
        there().map(|i| Int96::from(vec![i as u32, 0, 2_440_588])).collect(),
        levels(1),
        None
    );
    put!(DoubleType, there().map(|i| i as f64 / 8.0).collect(), levels(1), None);
    put!(BoolType, rows.clone().map(|i| i % 2 == 0).collect(), None, None);
    put!(
        FixedLenByteArrayType,
        there().map(|i| FixedLenByteArray::from(vec![i as u8; 16])).collect(),
        levels(1),
        None
    );
    put!(Int32Type, there().map(|i| 5 - i as i32).collect(), levels(1), None);
    // A list of i % 4 elements, the second of them null; every seventh list is null itself.
    let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
    for i in rows.clone() {
        match (i % 7, i % 4) {
            (6, _) => definitions.push(0),
            (_, 0) => definitions.push(1),
            (_, n) => {
                for j in 0..n {
                    definitions.push(if j == 1 { 2 } else { 3 });
                    if j != 1 {
                        values.push(ByteArray::from(format!("{i}/{j}").into_bytes()));
                    }
                }
                repetitions.extend((0..n).map(|j| i16::from(j > 0)));
                continue;
            }
        }
        repetitions.push(0);
    }
    put!(ByteArrayType, values, Some(definitions), Some(repetitions));
}

fn options() -> ReadOptions {
    ReadOptions {
        text_field: Some("meta.text".to_owned()),
        fields: vec!["tags".to_owned()],
        ..ReadOptions::default()
    }
}

fn nested(path: &Path) -> Inputs {
    Inputs::resolve(&[path], options()).expect("inputs")
}

/// Every row as a line of text.
fn rows_of(path: &Path) -> Vec<String> {
    let reader = SerializedFileReader::new(fs::File::open(path).expect("a file")).expect("Parquet");
    reader.get_row_iter(None).expect("rows").map(|r| r.expect("a row").to_string()).collect()
}

fn properties(compression: Compression) -> WriterProperties {
    WriterProperties::builder()
        .set_compression(compression)
        .set_key_value_metadata(Some(vec![KeyValue::new("来源".to_owned(), "x\0y".to_owned())]))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build()
}

const COMPRESSIONS: &[Compression] =
    &[Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::LZ4, Compression::LZ4_RAW];

#[test]
fn kept_rows_are_the_rows() {
    let mut compressions = COMPRESSIONS.to_vec();
    compressions.push(Compression::GZIP(GzipLevel::default()));
    compressions.push(Compression::BROTLI(BrotliLevel::default()));
    compressions.push(Compression::ZSTD(ZstdLevel::default()));
    for compression in compressions {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties =
                properties(compression).into_builder().set_writer_version(version).build();
            let folder = Folder::new();
            let path = folder.file("a.parquet", file(1000, 300, properties));
            let decide = |index: u64| match index % 3 {
                0 => Some(Decision::Keep),
                1 => Some(Decision::Drop),
                _ => Some(Decision::Unreadable),
            };
            let (all, written, output) = both(&nested(&path), decide);
            assert_eq!(all.decisions.len(), 1000);
            assert_eq!(all.documents[1], format!("1={}", text(1)));
            assert_eq!(all.notes.len(), 200, "every fifth text is null");
            assert_eq!(all.codes()[0], "4 missing_field");
            assert_eq!((written.kept, written.dropped, written.unreadable), (334, 333, 333));
            let before = rows_of(&path);
            for (tree, rest) in [("kept", 0), ("unreadable", 2)] {
                let path = output.path().join(tree).join("a.parquet");
                let expect: Vec<_> =
                    before.iter().enumerate().filter(|(i, _)| i % 3 == rest).map(|r| r.1).collect();
                let got = rows_of(&path);
                assert_eq!(got.iter().collect::<Vec<_>>(), expect, "{compression:?} {version:?}");
                same_but_rows(&folder.path("a.parquet"), &path, 4);
            }
        }
    }
}

/// Schema, metadata, compression and the number of row groups are the same.
fn same_but_rows(before: &Path, after: &Path, groups: usize) {
    let open =
        |path| SerializedFileReader::new(fs::File::open(path).expect("a file")).expect("Parquet");
    let (before, after) = (open(before), open(after));
    let (a, b) = (before.metadata(), after.metadata());
    assert_eq!(a.file_metadata().schema(), b.file_metadata().schema());
    assert_eq!(a.file_metadata().key_value_metadata(), b.file_metadata().key_value_metadata());
    assert_eq!((a.num_row_groups(), b.num_row_groups()), (groups, groups));
    for (a, b) in a.row_group(0).columns().iter().zip(b.row_group(0).columns()) {
        assert_eq!(a.compression(), b.compression());
        assert_eq!(a.statistics().is_some(), b.statistics().is_some());
        assert_eq!(a.dictionary_page_offset().is_some(), b.dictionary_page_offset().is_some());
    }
}

#[test]
fn nothing_kept_and_no_rows() {
    let folder = Folder::new();
    for rows in [0, 10] {
        let path = folder.file("a.parquet", file(rows, 4, WriterProperties::new()));
        let (_, written, output) = both(&nested(&path), |_| Some(Decision::Drop));
        assert_eq!(written.dropped as usize, rows);
        assert_eq!(rows_of(&output.path().join("kept/a.parquet")), Vec::<String>::new());
        assert!(!output.path().join("unreadable").exists());
    }
}

#[test]
fn fields() {
    let folder = Folder::new();
    let path = folder.file("a.parquet", file(3, 9, WriterProperties::new()));
    let check = |field: &str, expect: &[Option<&str>]| {
        let options = ReadOptions { fields: vec![field.to_owned()], ..options() };
        let inputs = Inputs::resolve(&[&path], options).expect("inputs");
        let parser = nearsift_io::Parser::new(&inputs);
        let batch = Reader::new(&inputs).next_batch().expect("a batch").expect("one");
        let documents = batch.records().map(|r| parser.parse(&r).expect("a document"));
        let got: Vec<_> =
            documents.map(|d| d.fields[0].as_ref().map(|v| v.as_str().to_owned())).collect();
        let expect: Vec<_> = expect.iter().map(|e| e.map(str::to_owned)).collect();
        assert_eq!(got, expect, "{field}");
    };
    check("id", &[Some("0"), Some("1"), Some("2")]);
    check("meta.n", &[Some("0"), Some("1"), Some("2")]);
    check("day", &[Some("1970-01-01"), Some("1970-01-02"), Some("1970-01-03")]);
    check(
        "at",
        &[
            Some("1970-01-01T00:00:00Z"),
            Some("1970-01-01T00:00:01.000001Z"),
            Some("1970-01-01T00:00:02.000002Z"),
        ],
    );
    check(
        "old",
        &[
            Some("1970-01-01T00:00:00Z"),
            Some("1970-01-01T00:00:00.000000001Z"),
            Some("1970-01-01T00:00:00.000000002Z"),
        ],
    );
    check("score", &[Some("0"), Some("0.125"), Some("0.25")]);
    check("flag", &[Some("true"), Some("false"), Some("true")]);
    let key = "01010101-0101-0101-0101-010101010101";
    check("key", &[Some(&key.replace("01", "00")), Some(key), Some(&key.replace("01", "02"))]);
    check("price", &[Some("0.05"), Some("0.04"), Some("0.03")]);
    check("tags", &[Some("[]"), Some("[\"1/0\"]"), Some("[\"2/0\"]")]);
    check("tags.list", &[None, None, None]);
    check("tags.list.element", &[None, None, None]);
    check("meta", &[None, None, None]);
    check("nothing", &[None, None, None]);
}

/// The values of columns that are of one row group, with their definition and repetition levels.
enum Values<'a> {
    Texts(&'a [&'a str]),
    Numbers(&'a [i64]),
}

/// A file of one row group.
fn columns_file(schema: &str, columns: &[(Values<'_>, &[i16], &[i16])]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, schema, Arc::default()).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    for (values, definitions, repetitions) in columns {
        let mut column = group.next_column().expect("a column").expect("one more");
        let (definitions, repetitions) = (Some(*definitions), Some(*repetitions));
        let written = match values {
            Values::Texts(texts) => {
                let texts: Vec<_> = texts.iter().map(|t| ByteArray::from(*t)).collect();
                let column = column.typed::<ByteArrayType>();
                column.write_batch(&texts, definitions, repetitions)
            }
            Values::Numbers(numbers) => {
                column.typed::<Int64Type>().write_batch(numbers, definitions, repetitions)
            }
        };
        written.expect("values");
        column.close().expect("a column");
    }
    group.close().expect("a group");
    writer.close().expect("a file");
    bytes
}

/// The rows of a file that is read for its fields only: which columns there are, and each row's values.
fn fields_only(path: &Path, fields: &[&str], limits: Limits) -> (Vec<bool>, Vec<Vec<String>>) {
    let options = ReadOptions {
        text_field: None,
        fields: fields.iter().map(|f| (*f).to_owned()).collect(),
        limits,
        ..ReadOptions::default()
    };
    let inputs = Inputs::resolve(&[path], options).expect("inputs");
    let parser = nearsift_io::Parser::new(&inputs);
    let batch = Reader::new(&inputs).next_batch().expect("a batch").expect("one");
    assert!(batch.notes().is_empty(), "{:?}", batch.notes());
    let columns = batch.records().next().and_then(|r| parser.columns(&r)).expect("a table");
    let row = |record| match parser.parse(&record) {
        Ok(document) => {
            assert_eq!(document.body, nearsift_io::Body::Text("".into()));
            let shown = |f: &Option<nearsift_io::Value<'_>>| match f {
                Some(value) => value.as_str().to_owned(),
                None => "none".to_owned(),
            };
            document.fields.iter().map(shown).collect()
        }
        Err(note) => vec![note.reason.code().to_owned()],
    };
    (columns, batch.records().map(row).collect())
}

/// Lists as Parquet may write them: of three levels, of two, and unannotated.
#[test]
fn lists() {
    let schema = "message lists {
        OPTIONAL GROUP texts (LIST) { REPEATED GROUP list { OPTIONAL BYTE_ARRAY element (UTF8); } }
        REQUIRED GROUP numbers (LIST) { REPEATED INT64 element; }
        REPEATED INT64 bare;
        OPTIONAL GROUP rows (LIST) { REPEATED GROUP list { REQUIRED GROUP element { REQUIRED INT64 n; } } }
        OPTIONAL GROUP deep (LIST) { REPEATED GROUP list {
            REQUIRED GROUP element (LIST) { REPEATED GROUP list { REQUIRED INT64 element; } } } }
        OPTIONAL GROUP outer { OPTIONAL GROUP inner (LIST) { REPEATED GROUP list { REQUIRED INT64 element; } } }
    }";
    let texts = Values::Texts(&["a, \"b\"", "中\n", ""]);
    let bytes = columns_file(
        schema,
        &[
            // Two members and a null between them; empty; null; one; one null.
            (texts, &[3, 2, 3, 1, 0, 3, 2], &[0, 1, 1, 0, 0, 0, 0]),
            (Values::Numbers(&[1, -2, 3]), &[1, 1, 0, 1, 0, 0], &[0, 1, 0, 0, 0, 0]),
            (Values::Numbers(&[7, i64::MAX]), &[0, 1, 1, 0, 0, 0], &[0, 0, 1, 0, 0, 0]),
            (Values::Numbers(&[1]), &[2, 0, 0, 0, 0], &[0; 5]),
            (Values::Numbers(&[1]), &[3, 0, 0, 0, 0], &[0; 5]),
            (Values::Numbers(&[5]), &[0, 1, 2, 3, 0], &[0; 5]),
        ],
    );
    let folder = Folder::new();
    let path = folder.file("a.parquet", bytes);
    let fields = ["texts", "numbers", "bare", "rows", "deep", "outer.inner", "outer", "nothing"];
    let (columns, rows) = fields_only(&path, &fields, Limits::default());
    assert_eq!(columns, [true, true, true, false, false, true, false, false]);
    let expect = [
        [r#"["a, \"b\"","中\n"]"#, "[1,-2]", "[]", "none"],
        ["[]", "[]", "[7,9223372036854775807]", "none"],
        ["none", "[3]", "[]", "[]"],
        [r#"[""]"#, "[]", "[]", "[5]"],
        ["[]", "[]", "[]", "none"],
    ];
    for (row, [texts, numbers, bare, inner]) in rows.iter().zip(expect) {
        let expect = [texts, numbers, bare, "none", "none", inner, "none", "none"];
        assert_eq!(*row, expect);
    }
    assert_eq!(rows.len(), expect.len());
    // An array may be as long as a record, inclusive.
    let limits = |record_bytes| Limits { record_bytes, ..Limits::default() };
    let longest = expect[0][0].len();
    assert_eq!(fields_only(&path, &["texts"], limits(longest)).1[0], [expect[0][0]]);
    let short = fields_only(&path, &["texts"], limits(longest - 1)).1;
    assert_eq!((&short[0][0], &short[1][0]), (&"too_long".to_owned(), &"[]".to_owned()));
    // A list is no id and no text.
    let options = ReadOptions { id_field: "texts".to_owned(), text_field: None, ..options() };
    let got = read(&Inputs::resolve(&[&path], options).expect("inputs"));
    assert!(got.documents[0].ends_with("a.parquet:1="), "{}", got.documents[0]);
    let options = ReadOptions { text_field: Some("texts".to_owned()), ..ReadOptions::default() };
    let got = read(&Inputs::resolve(&[&path], options).expect("inputs"));
    assert_eq!(got.codes(), ["wrong_type"]);
}

/// Lists by the hundreds, over many runs of rows, are those that the values say.
#[test]
fn long_columns_of_lists() {
    let folder = Folder::new();
    let path = folder.file("a.parquet", file(1000, 300, WriterProperties::new()));
    let (_, rows) = fields_only(&path, &["tags", "id"], Limits::default());
    assert_eq!(rows.len(), 1000);
    for (i, row) in rows.iter().enumerate() {
        let members: Vec<_> =
            (0..i % 4).filter(|j| *j != 1).map(|j| format!("\"{i}/{j}\"")).collect();
        let list = if i % 7 == 6 { "none".to_owned() } else { format!("[{}]", members.join(",")) };
        assert_eq!(*row, [list, i.to_string()]);
    }
}

/// A file that is no table with a text column is put aside whole.
#[test]
fn files_that_are_refused() {
    let good = file(10, 10, WriterProperties::new());
    let check = |bytes: &[u8], field: &str, code: &str, words: &str| {
        let folder = Folder::new();
        let path = folder.file("in/a.parquet", bytes);
        folder.file("in/b.parquet", &good);
        let options = ReadOptions { text_field: Some(field.to_owned()), ..ReadOptions::default() };
        let inputs = Inputs::resolve(&[path.parent().expect("a folder")], options).expect("inputs");
        let (got, _, output) = both(&inputs, |_| None);
        let notes: Vec<_> = got.notes.iter().filter(|n| n.line.is_none()).collect();
        assert_eq!(notes[0].reason.code(), code, "{notes:?}");
        assert!(notes[0].to_string().contains(words), "{}", notes[0]);
        let aside = fs::read(output.path().join("unreadable/a.parquet")).expect("put aside");
        assert_eq!(aside, bytes);
        assert!(!output.path().join("kept/a.parquet").exists());
        if field == "meta.text" {
            assert_eq!(got.documents.len(), 8, "the other file");
        }
    };
    check(&good, "body", "no_column", "no column \"body\", there are \"id\", \"meta.text\"");
    check(&good, "meta", "wrong_type", "got a group of columns");
    check(&good, "tags.list.element", "wrong_type", "got a list");
    check(&good, "id", "wrong_type", "got numbers");
    check(b"", "meta.text", "not_readable", "not a readable Parquet file");
    check(b"PAR1", "meta.text", "not_readable", "not a readable Parquet file");
    check(b"PAR1\xff\xff\xff\xffPAR1", "meta.text", "not_readable", "longer than the file");
    check(&good[..good.len() - 1], "meta.text", "not_readable", "cut short");
    check(&crate::support::gz(&good), "meta.text", "not_readable", "decompress it first");
    // A schema that is nested too deep to descend into.
    let deep = {
        let mut footer = vec![0x15, 2, 0x19, 0xfc, 0x80, 0x80, 0x10];
        for _ in 0..1 << 18 {
            // A group with one child, of the name "a".
            footer.extend([0x48, 1, b'a', 0x15, 2, 0]);
        }
        footer.extend([0x16, 0, 0x19, 0x0c, 0]);
        let length = (footer.len() as u32).to_le_bytes();
        [b"PAR1", &footer[..], &length, b"PAR1"].concat()
    };
    check(&deep, "meta.text", "not_readable", "");
}

/// Reads and writes whatever is there. What could be read can be written, and is what the notes say it is.
fn survives(bytes: &[u8], folder: &Folder) -> Read {
    let path = folder.file("a.parquet", bytes);
    let (got, written, output) = both(&nested(&path), |_| None);
    assert_eq!(written.kept as usize, got.documents.len());
    let kept = output.path().join("kept/a.parquet");
    if kept.exists() {
        // A document without an id is named by its row, which is another one in the output.
        let named = |read: &Read| -> Vec<String> {
            let place = |shown: &String| shown.starts_with('/').then(|| shown.find('=')).flatten();
            read.documents.iter().map(|d| d[place(d).unwrap_or(0)..].to_owned()).collect()
        };
        assert_eq!(named(&read(&nested(&kept))), named(&got), "{:?}", got.codes());
    }
    got
}

#[test]
fn damage_in_one_page() {
    let folder = Folder::new();
    for compression in [Compression::UNCOMPRESSED, Compression::ZSTD(ZstdLevel::default())] {
        let bytes = file(400, 100, properties(compression));
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes.clone())).expect("Parquet");
        for column in 0..reader.metadata().row_group(1).num_columns() {
            let (start, _) = reader.metadata().row_group(1).column(column).byte_range();
            let mut bytes = bytes.clone();
            bytes[start as usize..start as usize + 6].fill(0xff);
            let got = survives(&bytes, &folder);
            let damage: Vec<_> = got.notes.iter().filter(|n| n.reason.code() == "rows").collect();
            assert_eq!(damage.len(), 1, "{column}");
            assert_eq!(damage[0].line, Some(101));
            assert!(
                damage[0].to_string().contains("100 rows from here on cannot be read"),
                "{}",
                damage[0]
            );
            assert_eq!(got.documents.len(), 240, "three groups of 80 texts");
        }
    }
}

#[test]
fn a_footer_that_lies_about_its_rows() {
    let folder = Folder::new();
    let bytes = file(50, 50, WriterProperties::new());
    // The number of rows of the file and of its only group, 50, as a zigzag number.
    let footer = bytes.len()
        - 8
        - u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().expect("four")) as usize;
    let places: Vec<usize> = (footer..bytes.len() - 9)
        .filter(|&i| bytes[i..].starts_with(&[0x16, 100]) || bytes[i..].starts_with(&[0x26, 100]))
        .collect();
    assert!(!places.is_empty());
    for (claimed, most) in [(0_u8, 0), (60, 30), (102, 50), (126, 50)] {
        for &place in &places {
            let mut bytes = bytes.clone();
            bytes[place + 1] = claimed;
            let got = survives(&bytes, &folder);
            assert!(got.decisions.len() == most || got.decisions.len() == 50, "{:?}", got.codes());
            if got.decisions.len() < 50 {
                assert!(got.codes().iter().any(|c| c.ends_with("rows")), "{:?}", got.codes());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn damage_anywhere(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
        compressed in any::<bool>(),
    ) {
        let compression = if compressed { Compression::SNAPPY } else { Compression::UNCOMPRESSED };
        let mut bytes = file(60, 25, properties(compression));
        if let Some(cut) = cut {
            bytes.remove(cut.index(bytes.len()));
        }
        for (place, byte) in places {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        survives(&bytes, &Folder::new());
    }

    #[test]
    fn batches_of_any_size(rows in 0_usize..600, group_rows in 1_usize..400, batch_bytes in 1_usize..500) {
        let folder = Folder::new();
        let path = folder.file("a.parquet", file(rows, group_rows, WriterProperties::new()));
        let whole = read(&nested(&path));
        let small = Inputs::resolve(&[&path], ReadOptions { batch_bytes, ..options() }).expect("inputs");
        prop_assert_eq!(&read(&small), &whole);
        prop_assert_eq!(whole.decisions.len(), rows);
    }
}

/// A file of one column of text, written from a few values and runs of a dictionary.
fn one_column(values: &[ByteArray], definitions: Option<&[i16]>) -> Vec<u8> {
    let kind = if definitions.is_some() { "OPTIONAL" } else { "REQUIRED" };
    let schema = format!("message m {{ {kind} BYTE_ARRAY text (UTF8); }}");
    let schema = Arc::new(parse_message_type(&schema).expect("a schema"));
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(8 << 20).build();
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    let mut column = group.next_column().expect("a column").expect("one");
    column.typed::<ByteArrayType>().write_batch(values, definitions, None).expect("values");
    column.close().expect("a column");
    group.close().expect("a group");
    writer.close().expect("a file");
    bytes
}

#[test]
fn bombs() {
    let folder = Folder::new();
    // A megabyte, four thousand times.
    let long = ByteArray::from(vec![b'x'; 1 << 20]);
    let path = folder.file("long.parquet", one_column(&vec![long; 4000], None));
    let limits = Limits { ratio: 64, ..Limits::default() };
    let resolve = |path: &Path| {
        Inputs::resolve(&[path], ReadOptions { limits, ..ReadOptions::default() }).expect("inputs")
    };
    let got = read(&resolve(&path));
    assert_eq!(got.codes().len(), 1, "{:?}", got.codes());
    assert!(got.notes[0].to_string().contains("raise `max-ratio`"), "{}", got.notes[0]);
    assert!(got.documents.len() < 4000);
    // Nulls that cost nothing.
    let rows = 3 << 20;
    let path = folder.file("nulls.parquet", one_column(&[], Some(&vec![0; rows])));
    assert!(fs::metadata(&path).expect("a file").len() < 10_000);
    let got = read(&resolve(&path));
    assert_eq!((got.documents.len(), got.codes()), (0, vec!["1 rows".to_owned()]));
    // Lists of one member of a dictionary, of more than 64 MiB in the first rows.
    let rows = 1200;
    let members = vec!["x".repeat(1 << 18); rows];
    let members: Vec<_> = members.iter().map(String::as_str).collect();
    let (ones, zeros) = (vec![1; rows], vec![0; rows]);
    let columns = [(Values::Texts(&members), &ones[..], &zeros[..])];
    let bytes = columns_file("message lists { REPEATED BYTE_ARRAY tags (UTF8); }", &columns);
    let path = folder.file("lists.parquet", bytes);
    let read_lists = |fields: &[&str]| {
        let fields = fields.iter().map(|f| (*f).to_owned()).collect();
        let options = ReadOptions { text_field: None, fields, limits, ..ReadOptions::default() };
        read(&Inputs::resolve(&[&path], options).expect("inputs"))
    };
    let got = read_lists(&["tags"]);
    assert_eq!((got.documents.len(), got.codes()), (0, vec!["1 rows".to_owned()]));
    assert!(got.notes[0].to_string().contains("raise `max-ratio`"), "{}", got.notes[0]);
    assert_eq!(read_lists(&[]).documents.len(), rows);
}

#[test]
fn a_text_that_is_too_long() {
    let folder = Folder::new();
    let texts = ["a", &"x".repeat(1000), "c"].map(ByteArray::from);
    let path = folder.file("a.parquet", one_column(&texts, None));
    let limits = Limits { record_bytes: 999, ..Limits::default() };
    let inputs = Inputs::resolve(&[&path], ReadOptions { limits, ..ReadOptions::default() });
    let (got, written, output) = both(&inputs.expect("inputs"), |_| None);
    assert_eq!(got.codes(), ["2 too_long"]);
    assert_eq!((written.kept, written.unreadable), (2, 1));
    let row = |tree: &str| rows_of(&output.path().join(tree).join("a.parquet"));
    assert_eq!((row("kept").len(), row("unreadable").len()), (2, 1));
}

#[test]
fn two_schemas_and_a_missing_column() {
    let folder = Folder::new();
    folder.file("in/a.parquet", one_column(&[ByteArray::from("a")], None));
    folder.file("in/b.parquet", one_column(&[ByteArray::from("b")], Some(&[1])));
    folder.file("in/c.parquet", file(5, 5, WriterProperties::new()));
    folder.file("in/d.jsonl", "{\"text\":\"d\"}\n");
    let (got, written, output) = both(&inputs(folder.path("in")), |_| None);
    assert_eq!(written.kept, 3);
    assert_eq!(got.codes(), ["no_column"]);
    for name in ["a.parquet", "b.parquet"] {
        same_but_rows(&folder.path("in").join(name), &output.path().join("kept").join(name), 1);
    }
}

#[test]
fn an_input_that_changes() {
    let folder = Folder::new();
    let bytes = file(100, 50, WriterProperties::new());
    let path = folder.file("a.parquet", &bytes);
    for change in [0, 1] {
        fs::write(&path, &bytes).expect("a file");
        let inputs = nested(&path);
        read(&inputs);
        let mut changed = bytes.clone();
        match change {
            // A value of a page of the ids.
            0 => changed[100] ^= 1,
            _ => changed = file(100, 49, WriterProperties::new()),
        }
        fs::write(&path, &changed).expect("a change");
        let writer =
            nearsift_io::KeptWriter::new(&inputs, folder.path("kept"), folder.path("aside"));
        let error = writer.write_all(|_| Decision::Keep).expect_err("a changed input");
        assert!(error.to_string().contains("a.parquet"), "{error}");
        assert!(!folder.path("kept/a.parquet").exists());
    }
}
