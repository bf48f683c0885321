//! The files of a generated corpus, each with its final name only when it is complete.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::text::Corpus;
use super::{Arguments, Format};

/// What was written.
#[derive(Debug, Default, Clone, Copy)]
pub struct Written {
    pub files: u64,
    pub text_bytes: u64,
    pub file_bytes: u64,
}

/// Writes all files, several at a time. A file that is there is left as it is.
pub fn files(corpus: &Corpus, arguments: &Arguments) -> Result<Written, String> {
    let at = |path: &Path, e: io::Error| format!("{}: {e}", path.display());
    fs::create_dir_all(&arguments.out).map_err(|e| at(&arguments.out, e))?;
    let documents = corpus.settings().documents;
    let count = documents.div_ceil(arguments.file_documents);
    let next = AtomicU64::new(0);
    let written = Mutex::new(Written::default());
    let work = || -> Result<(), String> {
        loop {
            let file = next.fetch_add(1, Ordering::Relaxed);
            if file >= count {
                return Ok(());
            }
            let first = file * arguments.file_documents;
            let range = first..documents.min(first + arguments.file_documents);
            let extension = match arguments.format {
                Format::Jsonl => "jsonl.zst",
                Format::Parquet => "parquet",
            };
            let path = arguments.out.join(format!("part-{file:05}.{extension}"));
            let partial = path.with_extension("partial");
            let text_bytes = match arguments.format {
                Format::Jsonl => lines(corpus, range, &partial),
                Format::Parquet => table(corpus, range, &partial).map_err(io::Error::other),
            };
            let text_bytes = text_bytes.map_err(|e| at(&partial, e))?;
            let file_bytes = fs::rename(&partial, &path)
                .and_then(|()| path.metadata())
                .map_err(|e| at(&path, e))?
                .len();
            let mut all = written.lock().unwrap_or_else(PoisonError::into_inner);
            all.files += 1;
            all.text_bytes += text_bytes;
            all.file_bytes += file_bytes;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a writer ends"))
    })?;
    Ok(written.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The fields of a document beside its text.
struct Fields {
    id: String,
    origin: String,
    edit: &'static str,
    rate: f64,
    language: &'static str,
}

fn id(index: u64) -> String {
    format!("d{index:010}")
}

fn fields(corpus: &Corpus, index: u64) -> Fields {
    let origin = corpus.origin(index);
    let original = origin.map_or(index, |origin| origin.original);
    Fields {
        id: id(index),
        origin: id(original),
        edit: origin.map_or("none", |origin| origin.edit.name()),
        rate: origin.map_or(0.0, |origin| f64::from(origin.percent) / 100.0),
        language: if corpus.is_chinese(original) { "zh" } else { "en" },
    }
}

fn lines(corpus: &Corpus, range: std::ops::Range<u64>, path: &Path) -> io::Result<u64> {
    let mut encoder = zstd::Encoder::new(BufWriter::new(File::create(path)?), 3)?;
    encoder.include_checksum(true)?;
    let (mut line, mut text, mut bytes) = (String::new(), String::new(), 0);
    for index in range {
        text.clear();
        corpus.push_text(index, &mut text);
        bytes += text.len() as u64;
        let Fields { id, origin, edit, rate, language } = fields(corpus, index);
        line.clear();
        // The words hold nothing that JSON escapes.
        writeln!(
            line,
            r#"{{"id":"{id}","text":"{text}","origin":"{origin}","edit":"{edit}","rate":{rate},"lang":"{language}"}}"#
        )
        .map_err(io::Error::other)?;
        encoder.write_all(line.as_bytes())?;
    }
    encoder.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(bytes)
}

const SCHEMA: &str = "message corpus {
    required binary id (STRING);
    required binary text (STRING);
    required binary origin (STRING);
    required binary edit (STRING);
    required double rate;
    required binary lang (STRING);
}";

/// Rows of a row group.
const GROUP: u64 = 20_000;

fn table(
    corpus: &Corpus,
    range: std::ops::Range<u64>,
    path: &Path,
) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_dictionary_enabled(false)
        .build();
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?;
    let mut bytes = 0;
    let mut first = range.start;
    while first < range.end {
        let end = range.end.min(first + GROUP);
        let all: Vec<Fields> = (first..end).map(|index| fields(corpus, index)).collect();
        let texts: Vec<String> = (first..end)
            .map(|index| {
                let mut text = String::new();
                corpus.push_text(index, &mut text);
                text
            })
            .collect();
        bytes += texts.iter().map(|text| text.len() as u64).sum::<u64>();
        let mut group = writer.next_row_group()?;
        strings(&mut group, all.iter().map(|f| f.id.as_str()))?;
        strings(&mut group, texts.iter().map(String::as_str))?;
        strings(&mut group, all.iter().map(|f| f.origin.as_str()))?;
        strings(&mut group, all.iter().map(|f| f.edit))?;
        let rates: Vec<f64> = all.iter().map(|f| f.rate).collect();
        let mut column = group.next_column()?.ok_or("a column is missing")?;
        column.typed::<DoubleType>().write_batch(&rates, None, None)?;
        column.close()?;
        strings(&mut group, all.iter().map(|f| f.language))?;
        group.close()?;
        first = end;
    }
    writer.close()?;
    Ok(bytes)
}

fn strings<'s, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl Iterator<Item = &'s str>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let values: Vec<ByteArray> = values.map(|value| value.as_bytes().to_vec().into()).collect();
    let mut column = group.next_column()?.ok_or("a column is missing")?;
    column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
    column.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::text::Settings;
    use crate::corpus::vocabulary::Vocabulary;

    #[test]
    fn lines_carry_their_truth() {
        let chinese = Vocabulary::chinese("经济 90 n\n市场 50 n\n城市 9 n").unwrap();
        let words: String = (0..300u16)
            .map(|n| {
                format!(
                    "wo{}{} ",
                    char::from(b'a' + (n % 26) as u8),
                    char::from(b'a' + (n / 26) as u8)
                )
            })
            .collect();
        let english = Vocabulary::english([words.as_str()]).unwrap();
        let settings = Settings { documents: 300, seed: 3, duplicates_per_mille: 300 };
        let corpus = Corpus::new(settings, chinese, english);
        let path = std::env::temp_dir().join(format!("nearsift-generate-{}", std::process::id()));
        lines(&corpus, 0..300, &path).unwrap();
        let read = zstd::decode_all(File::open(&path).unwrap()).unwrap();
        fs::remove_file(&path).unwrap();
        let read = String::from_utf8(read).unwrap();
        let mut duplicates = 0;
        for (line, index) in read.lines().zip(0..) {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["id"], id(index));
            let origin = corpus.origin(index);
            assert_eq!(value["origin"], id(origin.map_or(index, |o| o.original)));
            duplicates += u32::from(value["edit"] != "none");
        }
        assert!((50..130).contains(&duplicates), "{duplicates}");
        assert_eq!(read.lines().count(), 300);
    }
}
