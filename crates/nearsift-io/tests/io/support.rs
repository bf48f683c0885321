//! What the tests share.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use nearsift_io::{
    Body, Decision, Document, Inputs, KeptWriter, Note, Parser, ReadOptions, Reader, Written,
    prepare_output,
};
use tempfile::TempDir;

/// A folder for one test.
pub struct Folder(pub TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, in folders that are made, and returns its path.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(&path, bytes).expect("a file");
        path
    }
}

pub fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

pub fn zst(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    encoder.include_checksum(true).expect("an encoder");
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

pub fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).expect("an encoder");
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

pub fn bz2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// A tar archive of files.
pub fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o640);
        header.set_mtime(1_600_000_000);
        header.set_username("用户").expect("a short name");
        // Names that lead out of a folder are those that the library refuses to write.
        if name.contains("..") || name.starts_with('/') {
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            tar.append(&header, *bytes).expect("memory");
        } else {
            tar.append_data(&mut header, name, *bytes).expect("memory");
        }
    }
    tar.into_inner().expect("memory")
}

/// A zip archive of files.
pub fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = zip::write::SimpleFileOptions::default().unix_permissions(0o640);
        zip.start_file(*name, options).expect("memory");
        zip.write_all(bytes).expect("memory");
    }
    zip.finish().expect("memory").into_inner()
}

/// What one pass gave: documents as `id=text`, with the count of replaced characters behind; and notes as `line code`,
/// both those of the reader and those of the parser.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Read {
    pub documents: Vec<String>,
    pub notes: Vec<Note>,
    pub decisions: Vec<Decision>,
}

impl Read {
    /// The notes as `line code`.
    pub fn codes(&self) -> Vec<String> {
        let code = |n: &Note| match n.line {
            Some(line) => format!("{line} {}", n.reason.code()),
            None => n.reason.code().to_owned(),
        };
        self.notes.iter().map(code).collect()
    }
}

pub fn show(document: &Document<'_>) -> String {
    let text = match &document.body {
        Body::Text(text) => text.to_string(),
        Body::Plain { bytes, .. } => format!("plain:{}", String::from_utf8_lossy(bytes)),
        Body::Html { bytes, .. } => format!("html:{}", String::from_utf8_lossy(bytes)),
    };
    let replaced = if document.replaced > 0 {
        format!(" ({} replaced)", document.replaced)
    } else {
        String::new()
    };
    format!("{}={text}{replaced}", document.id.as_str())
}

/// The first pass.
pub fn read(inputs: &Inputs) -> Read {
    read_by(inputs, Reader::new(inputs))
}

pub fn read_by(inputs: &Inputs, reader: Reader) -> Read {
    read_from(inputs, reader, 0)
}

/// What a reader reads whose first record has this index.
pub fn read_from(inputs: &Inputs, mut reader: Reader, first: u64) -> Read {
    let parser = Parser::new(inputs);
    let mut all = Read::default();
    while let Some(batch) = reader.next_batch().expect("inputs that stay as they are") {
        assert_eq!(batch.first_index(), first + all.decisions.len() as u64);
        all.notes.extend_from_slice(batch.notes());
        for record in batch.records() {
            assert_eq!(record.place.index, first + all.decisions.len() as u64);
            match parser.parse(&record) {
                Ok(document) => {
                    all.documents.push(show(&document));
                    all.decisions.push(Decision::Keep);
                }
                Err(note) => {
                    all.notes.push(note);
                    all.decisions.push(Decision::Unreadable);
                }
            }
        }
        reader.recycle(batch);
    }
    all
}

/// Inputs of one path, with the default options.
pub fn inputs(path: impl AsRef<Path>) -> Inputs {
    Inputs::resolve(&[path.as_ref()], ReadOptions::default()).expect("inputs")
}

/// Both passes: what was read, what was written, and the folder that has `kept` and `unreadable`.
pub fn both(inputs: &Inputs, change: impl Fn(u64) -> Option<Decision>) -> (Read, Written, TempDir) {
    let all = read(inputs);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = prepare_output(folder.path(), inputs).expect("an output folder");
    let writer = KeptWriter::new(inputs, output.join("kept"), output.join("unreadable"));
    let decide = |place: nearsift_io::Place| {
        change(place.index).unwrap_or(all.decisions[place.index as usize])
    };
    let written = writer.write_all(decide).expect("an output");
    (all, written, folder)
}

/// Every file below a folder, with its content, in order; decompressed.
pub fn tree(folder: &Path) -> Vec<(String, String)> {
    if !folder.exists() {
        return Vec::new();
    }
    let files = walkdir::WalkDir::new(folder).sort_by_file_name();
    let files = files.into_iter().map(|e| e.expect("a file")).filter(|e| e.file_type().is_file());
    let content = |path: &Path| {
        let bytes = fs::read(path).expect("a file");
        let bytes = match bytes.as_slice() {
            [0x1f, 0x8b, ..] => {
                let mut plain = Vec::new();
                let mut decoder = flate2::read::MultiGzDecoder::new(&bytes[..]);
                std::io::Read::read_to_end(&mut decoder, &mut plain).expect("gzip");
                plain
            }
            [0xfd, b'7', b'z', b'X', ..] => {
                let mut plain = Vec::new();
                let mut decoder = lzma_rust2::XzReader::new(&bytes[..], true);
                std::io::Read::read_to_end(&mut decoder, &mut plain).expect("xz");
                plain
            }
            [b'B', b'Z', b'h', ..] => {
                let mut plain = Vec::new();
                let mut decoder = bzip2::read::MultiBzDecoder::new(&bytes[..]);
                std::io::Read::read_to_end(&mut decoder, &mut plain).expect("bzip2");
                plain
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] => zstd::decode_all(&bytes[..]).expect("zstd"),
            _ => bytes,
        };
        String::from_utf8_lossy(&bytes).into_owned()
    };
    files
        .map(|e| {
            let below =
                e.path().strip_prefix(folder).expect("below").to_string_lossy().into_owned();
            (below, content(e.path()))
        })
        .collect()
}
