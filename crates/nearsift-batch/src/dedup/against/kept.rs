//! `--keep-state`: the sketches of what a run kept, beside it in the output, so that a later run need
//! not read the documents again to be compared with them.
//!
//! The folder `sketches` has three files. `manifest.json` names the recipe with its digest, and each file
//! of `kept/` with its bytes and documents, in order. `columns` has for each document, in that order, its
//! sketch (64 bytes), its number of features as far as 255 (1), the key of its text (16), the length of
//! its id (4) and the id. `keys` has the 32 keys of all documents, column after column, 4 bytes each. All
//! numbers are little-endian; each file is as [`crate::checkpoint::file`] writes it, with a checksum.

use std::fs;
use std::path::{Path, PathBuf};

use nearsift::dedup::{SketchCorpus, SketchEntry};
use nearsift::recipe::{Recipe, Sketched as SketchAndKeys};
use nearsift::sketch::join::{KeySource, NO_KEY};
use nearsift::sketch::{KEYS, Sketch, WORDS};
use nearsift_io::{Inputs, ReadOptions};
use serde::{Deserialize, Serialize};

use crate::checkpoint::file::{self, ByteReader, Reader, Writer};
use crate::checkpoint::{CorpusKeys, FileKeys};
use crate::corpus::Ids;
use crate::dedup::finish::Decided;
use crate::error::Error;
use crate::folder::Folder;

const FOLDER: &str = "sketches";
// Version 1 had other keys of texts.
const VERSION: u32 = 3;

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    version: u32,
    recipe: String,
    digest: String,
    documents: u64,
    files: Vec<KeptFile>,
}

/// A file of kept documents.
#[derive(Debug, Serialize, Deserialize)]
struct KeptFile {
    /// Below `kept/`.
    file: PathBuf,
    bytes: u64,
    documents: u64,
}

/// Whether a folder is the output of a run that left its sketches there.
pub fn is_in(output: &Path) -> bool {
    output.join(FOLDER).join("manifest.json").is_file()
}

/// The sketches of a job's documents, of which those of what stays are left for later jobs.
pub struct KeptSketches<'a> {
    pub corpus: &'a SketchCorpus,
    pub keys: CorpusKeys<'a>,
    pub recipe: &'a Recipe,
}

impl KeptSketches<'_> {
    /// Writes the sketches of what stays. Kept documents must be written.
    ///
    /// # Errors
    /// When the disk refuses, or ids or keys that were kept aside cannot be read.
    pub(in crate::dedup) fn write(
        &self,
        folder: &Folder,
        inputs: &Inputs,
        decided: &Decided<'_>,
    ) -> Result<(), Error> {
        folder.make(FOLDER)?;
        let path = |name: &str| folder.path(&format!("{FOLDER}/{name}"));
        // A file that changed while the run read it has nothing in `kept/`, and nothing here.
        let mut files = Vec::new();
        let mut stays = Vec::new();
        for (number, input) in inputs.files().iter().enumerate() {
            let file = inputs.output_path(input);
            let Ok(meta) = fs::metadata(folder.path("kept").join(&file)) else { continue };
            let before = stays.len();
            let records = inputs.records(number).unwrap_or_default();
            let documents = records.filter_map(|record| decided.records.document(record));
            stays.extend(documents.filter(|&document| decided.is_kept(document)));
            let documents = (stays.len() - before) as u64;
            files.push(KeptFile { file, bytes: meta.len(), documents });
        }
        self.write_columns(&path("columns"), &stays, &decided.ids)?;
        self.write_keys(&path("keys"), &stays)?;
        let manifest = Manifest {
            version: VERSION,
            recipe: self.recipe.to_string(),
            digest: format!("{:016x}", self.recipe.digest()),
            documents: stays.len() as u64,
            files,
        };
        let json = serde_json::to_vec_pretty(&manifest).map_err(Error::invalid)?;
        let path = path("manifest.json");
        fs::write(&path, json).map_err(|e| Error::io(&path, "write", &e))
    }

    fn write_columns(&self, path: &Path, stays: &[u32], ids: &Ids) -> Result<(), Error> {
        let error = |e| Error::io(path, "write", &e);
        let mut columns = Writer::begin(path).map_err(error)?;
        let mut content = Vec::new();
        for &document in stays {
            let SketchEntry { sketched, text_key, .. } = self.corpus.entry(document);
            let words = sketched.map_or([0; WORDS], |sketched| *sketched.sketch.words());
            content.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            content.push(sketched.map_or(0, |sketched| sketched.features as u8));
            content.extend_from_slice(&text_key.unwrap_or(0).to_le_bytes());
            let id = ids.get(document)?;
            let id = id.written().as_bytes();
            content.extend_from_slice(&(id.len() as u32).to_le_bytes());
            content.extend_from_slice(id);
            if content.len() >= 1 << 20 {
                columns.write(&content).map_err(error)?;
                content.clear();
            }
        }
        columns.write(&content).map_err(error)?;
        columns.finish().map_err(error)
    }

    fn write_keys(&self, path: &Path, stays: &[u32]) -> Result<(), Error> {
        let error = |e| Error::io(path, "write", &e);
        let mut keys = Writer::begin(path).map_err(error)?;
        for key in 0..KEYS {
            let column = self.keys.column(key)?;
            for part in stays.chunks(1 << 18) {
                let part = part.iter().flat_map(|&stays| column[stays as usize].to_le_bytes());
                keys.write(&part.collect::<Vec<u8>>()).map_err(error)?;
            }
        }
        keys.finish().map_err(error)
    }
}

/// The output of an earlier run, with the sketches of what it kept.
pub struct Kept {
    output: PathBuf,
    manifest: Manifest,
    /// Of each file the document behind its last.
    ends: Vec<u64>,
}

impl Kept {
    /// # Errors
    /// When it cannot be read, or is of another recipe; the message has both digests.
    pub fn open(output: &Path, recipe: &Recipe) -> Result<Kept, Error> {
        let path = output.join(FOLDER).join("manifest.json");
        let json = fs::read(&path).map_err(|e| Error::io(&path, "read", &e))?;
        let manifest: Manifest = serde_json::from_slice(&json)
            .map_err(|e| Error::invalid(format!("{}: {e}", path.display())))?;
        if manifest.version != VERSION {
            return Err(Error::invalid(format!(
                "{}: of version {}, and this program reads version {VERSION}: give its folder kept/ as the reference",
                path.display(),
                manifest.version
            )));
        }
        let digest = format!("{:016x}", recipe.digest());
        if manifest.digest != digest {
            return Err(Error::invalid(format!(
                "{}: the reference was sketched by the recipe '{}' (digest {}), and this run's is '{recipe}' (digest {digest}): give `recipe` {}, or its folder kept/ as the reference",
                output.display(),
                manifest.recipe,
                manifest.digest,
                manifest.recipe
            )));
        }
        let mut end = 0;
        let ends = manifest.files.iter().map(|file| {
            end += file.documents;
            end
        });
        let ends = ends.collect();
        Ok(Kept { output: output.to_owned(), manifest, ends })
    }

    fn damaged(&self, name: &str) -> Error {
        let path = self.output.join(FOLDER).join(name);
        Error::invalid(format!(
            "{}: damaged: give the folder kept/ as the reference, whose documents are then sketched again",
            path.display()
        ))
    }

    /// The columns, the ids, and where the keys are.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged.
    pub fn load(&self) -> Result<(SketchCorpus, Ids, FileKeys), Error> {
        let path = |name: &str| self.output.join(FOLDER).join(name);
        let columns = path("columns");
        let error = |e: std::io::Error| Error::io(&columns, "read", &e);
        let mut reader = Reader::open(&columns).map_err(error)?;
        let (mut corpus, mut ids) = (SketchCorpus::default(), Ids::default());
        let mut id = Vec::new();
        for _ in 0..self.manifest.documents {
            let mut fixed = [0; 8 * WORDS + 1 + 16 + 4];
            reader.read(&mut fixed).map_err(|_| self.damaged("columns"))?;
            let mut fixed = ByteReader(&fixed);
            let (entry, len) = entry(&mut fixed).ok_or_else(|| self.damaged("columns"))?;
            if u64::from(len) > reader.left() {
                return Err(self.damaged("columns"));
            }
            id.resize(len as usize, 0);
            reader.read(&mut id).map_err(|_| self.damaged("columns"))?;
            ids.push_written(std::str::from_utf8(&id).map_err(|_| self.damaged("columns"))?)?;
            corpus.push(entry);
            if corpus.len() % (1 << 16) == 0 {
                corpus.release_keys();
            }
        }
        corpus.release_keys();
        if !reader.finish().map_err(error)? {
            return Err(self.damaged("columns"));
        }
        let keys_path = path("keys");
        let len = file::checked_len(&keys_path).map_err(|e| Error::io(&keys_path, "read", &e))?;
        if len != Some(4 * KEYS as u64 * self.manifest.documents) {
            return Err(self.damaged("keys"));
        }
        let mut keys = FileKeys::default();
        keys.push(keys_path, corpus.len());
        Ok((corpus, ids, keys))
    }

    /// The file that a document is in.
    pub fn file(&self, document: u32) -> String {
        let number = self.ends.partition_point(|&end| end <= u64::from(document));
        let file = self.manifest.files.get(number);
        file.map_or_else(String::new, |file| self.path(file).display().to_string())
    }

    fn path(&self, file: &KeptFile) -> PathBuf {
        self.output.join("kept").join(&file.file)
    }

    /// The files that some documents, ascending, are in, and which of their records these are.
    ///
    /// # Errors
    /// When a file is not what the run left.
    pub fn inputs_of(
        &self,
        documents: &[u32],
        options: &ReadOptions,
    ) -> Result<(Inputs, Vec<u32>), Error> {
        let (mut paths, mut numbers) = (Vec::new(), Vec::with_capacity(documents.len()));
        let (mut rest, mut before) = (documents, 0);
        for (file, &end) in self.manifest.files.iter().zip(&self.ends) {
            let here = rest.partition_point(|&document| u64::from(document) < end);
            if here == 0 {
                continue;
            }
            let path = self.path(file);
            let bytes = fs::metadata(&path).map_err(|e| Error::io(&path, "read", &e))?.len();
            if bytes != file.bytes {
                let told = format!("{} bytes then, {bytes} now", file.bytes);
                return Err(self.changed(Error::invalid(format!("{}: {told}", path.display()))));
            }
            let start = end - file.documents;
            let (own, later) = rest.split_at(here);
            let number = |&document: &u32| (before + u64::from(document) - start) as u32;
            numbers.extend(own.iter().map(number));
            before += file.documents;
            rest = later;
            paths.push(path);
        }
        Ok((Inputs::resolve(&paths, options.clone())?, numbers))
    }

    /// What is said when the texts are not those that were sketched.
    pub fn changed(&self, error: Error) -> Error {
        match error {
            Error::Interrupted { .. } => error,
            error => Error::invalid(format!(
                "{}: the kept documents are not those that were sketched ({error}): give the folder kept/ as the reference, whose documents are then sketched again",
                self.output.display()
            )),
        }
    }
}

/// A document's numbers, and the length of its id.
fn entry(content: &mut ByteReader<'_>) -> Option<(SketchEntry, u32)> {
    let mut words = [0; WORDS];
    for word in &mut words {
        *word = content.u64()?;
    }
    let [features] = content.array()?;
    let text_key = Some(content.u128()?).filter(|&key| key != 0);
    let sketched = (words != [0; WORDS]).then(|| SketchAndKeys {
        sketch: Sketch::from_words(words),
        keys: [NO_KEY; KEYS],
        features: features.into(),
    });
    Some((SketchEntry { sketched, text_key, value: None }, content.u32()?))
}
