//! The items of benchmarks in one file, for jobs to come.
//!
//! The file begins with eight bytes that name its kind and version. Then come the length of what follows and its XXH3-128, little-endian,
//! and JSON lines in zstd: an object with the names of fields in their order; a string, the name of a benchmark, before its items; and of
//! each item an array of its number, its id and an object of its texts by their fields. It holds items alone: what searches them is made of them again, so that no file can lead it astray.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use tempfile::NamedTempFile;
use xxhash_rust::xxh3::Xxh3;

use crate::corpus::Id;
use crate::error::{BE_WRITTEN, Error};

const MAGIC: &[u8; 8] = b"nsbench1";
/// The magic, the length, the checksum.
const HEADER: u64 = 8 + 8 + 16;
/// The longest line that is read.
const LONGEST: u64 = 1 << 30;

/// A line of the file.
pub enum Line<'a> {
    /// Fields of the items that follow, in their order.
    Fields(Vec<String>),
    /// The name of a benchmark whose items follow.
    File(String),
    Item {
        /// The number of the item in its file, from 1.
        record: u64,
        id: Id<'static>,
        /// Names of fields in ascending order, with their texts.
        texts: Vec<(String, Cow<'a, str>)>,
    },
}

/// Texts as an object, in their order.
struct Texts<'a>(&'a [(String, Cow<'a, str>)]);

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (field, text) in self.0 {
            map.serialize_entry(field, text)?;
        }
        map.end()
    }
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Line::Fields(fields) => Fields { fields: fields.clone() }.serialize(serializer),
            Line::File(name) => name.serialize(serializer),
            Line::Item { record, id, texts } => (record, id, Texts(texts)).serialize(serializer),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    fields: Vec<String>,
}

/// An item as it is read.
type ReadItem = (u64, Id<'static>, BTreeMap<String, String>);

impl Line<'static> {
    fn parse(json: &[u8]) -> serde_json::Result<Line<'static>> {
        match json.first() {
            Some(b'"') => Ok(Line::File(serde_json::from_slice(json)?)),
            Some(b'{') => {
                let Fields { fields } = serde_json::from_slice(json)?;
                Ok(Line::Fields(fields))
            }
            _ => {
                let (record, id, texts): ReadItem = serde_json::from_slice(json)?;
                let texts = texts.into_iter().map(|(field, text)| (field, Cow::Owned(text)));
                Ok(Line::Item { record, id, texts: texts.collect() })
            }
        }
    }
}

/// The digest of all items, and the file that they are saved in, if they are.
pub struct Saved {
    digest: Xxh3,
    file: Option<Writing>,
}

struct Writing {
    path: PathBuf,
    encoder: zstd::Encoder<'static, BufWriter<NamedTempFile>>,
}

impl Saved {
    /// # Errors
    /// A file that is there already, or cannot be written.
    pub fn new(path: Option<&Path>) -> Result<Saved, Error> {
        let file = path.map(Writing::begin).transpose()?;
        Ok(Saved { digest: Xxh3::new(), file })
    }

    pub fn line(&mut self, line: &Line<'_>) -> Result<(), Error> {
        let mut json = serde_json::to_vec(line).map_err(Error::invalid)?;
        json.push(b'\n');
        self.digest.update(&json);
        match &mut self.file {
            Some(Writing { path, encoder }) => {
                encoder.write_all(&json).map_err(|e| Error::io(path, BE_WRITTEN, &e))
            }
            None => Ok(()),
        }
    }

    /// The digest; the file has its name from here on.
    pub fn finish(self) -> Result<u128, Error> {
        if let Some(Writing { path, encoder }) = self.file {
            Writing::end(&path, encoder).map_err(|e| Error::io(&path, BE_WRITTEN, &e))?;
        }
        Ok(self.digest.digest128())
    }
}

impl Writing {
    fn begin(path: &Path) -> Result<Writing, Error> {
        let error = |e| Error::io(path, BE_WRITTEN, &e);
        if path.exists() {
            let problem = format!(" {}: there is such a file; name a new one", path.display());
            return Err(Error::Setting { setting: "save-index", problem });
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut file = BufWriter::new(NamedTempFile::new_in(folder).map_err(error)?);
        file.write_all(&[0; HEADER as usize]).map_err(error)?;
        let encoder = zstd::Encoder::new(file, 3).map_err(error)?;
        Ok(Writing { path: path.to_owned(), encoder })
    }

    fn end(
        path: &Path,
        encoder: zstd::Encoder<'static, BufWriter<NamedTempFile>>,
    ) -> std::io::Result<()> {
        let mut temporary = encoder.finish()?.into_inner().map_err(std::io::Error::from)?;
        let file = temporary.as_file_mut();
        let (length, checksum) = checked(file)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(MAGIC)?;
        file.write_all(&length.to_le_bytes())?;
        file.write_all(&checksum.to_le_bytes())?;
        file.sync_all()?;
        temporary.persist_noclobber(path)?;
        Ok(())
    }
}

/// The length of what stands behind the header, and its checksum.
fn checked(file: &mut File) -> std::io::Result<(u64, u128)> {
    file.seek(SeekFrom::Start(HEADER))?;
    let mut digest = Xxh3::new();
    let mut length = 0;
    let mut part = vec![0; 1 << 16];
    loop {
        match file.read(&mut part)? {
            0 => return Ok((length, digest.digest128())),
            read => {
                digest.update(&part[..read]);
                length += read as u64;
            }
        }
    }
}

/// Whether a file begins as one of these, of any version.
pub fn is_saved(path: &Path) -> bool {
    let mut start = [0; 7];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == MAGIC[..7]
}

pub fn damaged(path: &Path) -> Error {
    Error::invalid(format!(
        "{}: the saved benchmarks are damaged; make the file again from the benchmarks, by `save-index`",
        path.display()
    ))
}

/// Calls `each` with every line.
///
/// # Errors
/// A file that cannot be read, is damaged or of another version, or what `each` returns.
pub fn read(
    path: &Path,
    each: &mut dyn FnMut(Line<'static>) -> Result<(), Error>,
) -> Result<(), Error> {
    let error = |e| Error::io(path, "read", &e);
    let mut file = File::open(path).map_err(error)?;
    let mut header = [0; HEADER as usize];
    file.read_exact(&mut header).map_err(|_| damaged(path))?;
    if header[..8] != MAGIC[..] {
        return Err(Error::invalid(format!(
            "{}: saved benchmarks of another version of nearsift; make the file again from the benchmarks, by `save-index`",
            path.display()
        )));
    }
    let (length, checksum) = checked(&mut file).map_err(error)?;
    if header[8..16] != length.to_le_bytes() || header[16..] != checksum.to_le_bytes() {
        return Err(damaged(path));
    }
    file.seek(SeekFrom::Start(HEADER)).map_err(error)?;
    let mut lines = BufReader::new(zstd::Decoder::new(file).map_err(error)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = lines.by_ref().take(LONGEST).read_until(b'\n', &mut line);
        if read.map_err(|_| damaged(path))? == 0 {
            return Ok(());
        }
        each(Line::parse(&line).map_err(|_| damaged(path))?)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn save(path: &Path) -> u128 {
        let mut saved = Saved::new(Some(path)).expect("begun");
        saved.line(&Line::File("mmlu.jsonl".to_owned())).expect("written");
        for record in 1..=3 {
            let texts = vec![
                ("answer".to_owned(), Cow::Borrowed("yes")),
                ("question".to_owned(), Cow::Owned(format!("问题 {record}?"))),
            ];
            let id = Id::text("a").into_owned();
            saved.line(&Line::Item { record, id, texts }).expect("written");
        }
        saved.finish().expect("saved")
    }

    fn lines(path: &Path) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        read(path, &mut |line| {
            lines.push(serde_json::to_string(&line).expect("JSON"));
            Ok(())
        })?;
        Ok(lines)
    }

    #[test]
    fn what_is_saved_comes_back_and_damage_is_detected() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("items.index");
        save(&path);
        assert!(is_saved(&path));
        let found = lines(&path).expect("whole");
        assert_eq!(found.len(), 4);
        assert_eq!(found[1], r#"[1,"a",{"answer":"yes","question":"问题 1?"}]"#);
        assert!(Saved::new(Some(&path)).is_err(), "no file is replaced");

        let whole = std::fs::read(&path).expect("bytes");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).expect("written");
            assert!(lines(&path).is_err() || !is_saved(&path), "byte {at}");
            std::fs::write(&path, &whole[..at]).expect("written");
            assert!(lines(&path).is_err(), "{at} bytes");
        }
    }
}
