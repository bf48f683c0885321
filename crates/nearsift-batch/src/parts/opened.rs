//! Parts, one after another as one corpus.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use nearsift::dedup::{Clustering, Keep, MAX_DOCUMENTS};
use nearsift::feature::sample::FrequencySample;
use nearsift::recipe::Recipe;
use nearsift::search::{Acceptance, Candidates};
use nearsift_io::Inputs;
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::{PartManifest, PartOfRun, PartSummary};
use crate::checkpoint::FileKeys;
use crate::context::{Context, Phase};
use crate::corpus::shard::{self, ShardPlace};
use crate::corpus::texts::{Block, Blocks};
use crate::corpus::{self, Collected, Columns, Ids, Lacking, Records, Sketched, SourceColumn};
use crate::dedup::clustering_of;
use crate::error::Error;
use crate::folder::PART;
use crate::search::{TextStore, Texts, Wanted};

/// Parts of one corpus, in order: the documents of the first come first.
#[derive(Debug)]
pub struct Parts {
    parts: Vec<Part>,
}

/// A part.
#[derive(Debug)]
pub(crate) struct Part {
    pub folder: PathBuf,
    pub manifest: PartManifest,
    /// The number of its first document among those of all parts.
    pub first_document: u64,
    /// The number of its first record among those of all parts.
    pub first_record: u64,
    /// What tells it from other parts.
    pub digest: String,
}

impl Part {
    /// A part by itself.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn open(folder: &Path) -> Result<Part, Error> {
        let of_run = folder.join(PART);
        let folder = if Part::is_of_run(folder) { of_run.as_path() } else { folder };
        let manifest = PartManifest::read(folder)?;
        let path = PartManifest::path(folder);
        let json = fs::read(&path).map_err(|e| Error::io(&path, "read", &e))?;
        Ok(Part {
            folder: folder.to_owned(),
            manifest,
            first_document: 0,
            first_record: 0,
            digest: format!("{:016x}", xxh3_64(&json)),
        })
    }

    /// Whether a folder is a part, or that of a run that left one.
    pub fn is_at(folder: &Path) -> bool {
        PartManifest::is_in(folder) || Part::is_of_run(folder)
    }

    fn is_of_run(folder: &Path) -> bool {
        !PartManifest::is_in(folder) && PartManifest::is_in(&folder.join(PART))
    }

    /// Where it says what it is.
    pub fn manifest_path(&self) -> PathBuf {
        PartManifest::path(&self.folder)
    }

    /// What it has.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn summary(&self) -> Result<PartSummary, Error> {
        let error = |e| Error::io(&self.folder, "read", &e);
        let mut bytes = 0;
        for entry in fs::read_dir(&self.folder).map_err(error)? {
            bytes += entry.and_then(|entry| entry.metadata()).map_err(error)?.len();
        }
        let PartManifest { documents, unreadable, text_bytes, .. } = self.manifest;
        Ok(PartSummary { part: self.folder.clone(), documents, unreadable, text_bytes, bytes })
    }

    /// Its files, found again and held to what was read of them; or those that are given, which may lie elsewhere.
    ///
    /// # Errors
    /// When they are not the files that were read.
    pub fn inputs(&self, moved: &[PathBuf]) -> Result<Inputs, Error> {
        let PartManifest { arguments, options, passes, .. } = &self.manifest;
        let arguments = if moved.is_empty() { arguments } else { moved };
        let inputs = Inputs::resolve(arguments, options.clone())?;
        inputs.hold_to(passes.clone()).map_err(|error| {
            Error::invalid(format!("{}: of this part {error}", self.folder.display()))
        })?;
        Ok(inputs)
    }

    /// Calls `each` with the ids of its documents, in order, as they are kept.
    ///
    /// # Errors
    /// A shard that cannot be read or is missing, or what `each` returns.
    pub fn each_id(&self, mut each: impl FnMut(&str) -> Result<(), Error>) -> Result<(), Error> {
        self.each_lane(|lane| shard::each_id(&self.folder, lane, &mut each))
    }

    /// Calls `each` with the number of each lane, which returns how many shards of it there are.
    ///
    /// # Errors
    /// What `each` returns; a part of whose shards only some are there.
    fn each_lane(&self, mut each: impl FnMut(usize) -> Result<usize, Error>) -> Result<(), Error> {
        let mut found = 0;
        for lane in 0..self.manifest.lanes.len() {
            found += each(lane)?;
        }
        match found == self.manifest.shards() {
            true => Ok(()),
            false => Err(cut_short(self, found)),
        }
    }

    /// Its shards in order.
    fn shards(&self) -> impl Iterator<Item = ShardPlace> {
        let lanes = self.manifest.lanes.iter().enumerate();
        lanes.flat_map(|(lane, &shards)| (0..shards).map(move |shard| (lane, shard)))
    }

    fn damaged(&self, path: &Path) -> Error {
        Error::invalid(format!(
            "{}: damaged: make the part {} again, by `sketch` or by the run that left it",
            path.display(),
            self.folder.display()
        ))
    }
}

/// Which records of a part are documents, and which of its files hold none.
///
/// # Errors
/// A shard that cannot be read or is missing.
pub(crate) fn records_of(part: &Part) -> Result<(Records, Lacking), Error> {
    let (mut records, mut lacking) = (Records::default(), Lacking::default());
    part.manifest.notes.iter().for_each(|note| lacking.note(note));
    // Of the lanes before.
    let mut before = 0;
    part.each_lane(|lane| {
        let mut own = 0;
        let shards = shard::each_head(&part.folder, lane, |head| {
            head.unreadable.iter().for_each(|&record| records.skip(before + record));
            head.notes.iter().for_each(|note| lacking.note(note));
            own = head.records;
            Ok(())
        })?;
        before += own;
        Ok(shards)
    })?;
    Ok((records, lacking))
}

fn cut_short(part: &Part, shards: usize) -> Error {
    Error::invalid(format!(
        "{}: this part has {shards} of its {} shards: copy it again as a whole, or make it again, by `sketch` or by the run that left it",
        part.folder.display(),
        part.manifest.shards()
    ))
}

impl Parts {
    /// Opens parts that were made by the same settings.
    ///
    /// # Errors
    /// When one is no complete part, is given twice, is of another recipe or other settings than the first, or there are more
    /// documents than one join can number.
    pub fn open(folders: &[impl AsRef<Path>]) -> Result<Parts, Error> {
        let mut parts: Vec<Part> = Vec::with_capacity(folders.len());
        let (mut documents, mut records) = (0, 0);
        let mut known: HashMap<String, PathBuf> = HashMap::new();
        for folder in folders {
            let mut part = Part::open(folder.as_ref())?;
            if let Some(first) = parts.first() {
                check_alike(first, &part)?;
            }
            if let Some(twice) = known.insert(part.digest.clone(), part.folder.clone()) {
                return Err(Error::invalid(format!(
                    "{}: this part is given twice, also as {}: leave one of them out",
                    part.folder.display(),
                    twice.display()
                )));
            }
            (part.first_document, part.first_record) = (documents, records);
            documents += part.manifest.documents;
            records += part.manifest.records;
            check_room(&part, documents)?;
            parts.push(part);
        }
        match parts.is_empty() {
            true => Err(Error::invalid("no parts: give the folders that `sketch` wrote")),
            false => Ok(Parts { parts }),
        }
    }

    /// The recipe of all parts, as it is written.
    pub fn recipe(&self) -> &str {
        &self.parts[0].manifest.recipe
    }

    /// Whether the parts have sketches, and not fingerprints.
    pub fn are_sketches(&self) -> bool {
        self.parts[0].manifest.sketches
    }

    /// Whether the parts have the texts of their documents.
    pub fn have_texts(&self) -> bool {
        self.parts[0].manifest.texts
    }

    pub(crate) fn all(&self) -> &[Part] {
        &self.parts
    }

    /// Which member of a group stays.
    ///
    /// # Errors
    /// A policy that no version of this program wrote.
    pub(crate) fn keep(&self) -> Result<Keep, Error> {
        self.parts[0].manifest.keep.parse().map_err(Error::invalid)
    }

    pub(crate) fn source_field(&self) -> Option<&str> {
        self.parts[0].manifest.source_field.as_deref()
    }

    /// What decided in the run that left the one part, if it is of a run.
    pub(crate) fn run(&self) -> Option<&PartOfRun> {
        match &self.parts[..] {
            [part] => part.manifest.run.as_ref(),
            _ => None,
        }
    }

    /// The folder with the scores of all pairs that a decision may accept, where one part has them.
    pub(crate) fn scores(&self, acceptance: Acceptance, clustering: Clustering) -> Option<&Path> {
        let run = self.run()?;
        let was = (Acceptance::Verified(run.min_score), clustering_of(&run.cluster)?);
        let is_kept = !run.against
            && Candidates::are_same(was, (acceptance, clustering))
            && run.from.is_some_and(|from| acceptance.min_score() >= from);
        is_kept.then_some(&self.parts[0].folder)
    }

    /// The file that a record is from, by its number among those of all parts.
    pub(crate) fn file_of(&self, record: u64) -> Option<&str> {
        let after = self.parts.partition_point(|part| part.first_record <= record);
        let part = &self.parts[after.checked_sub(1)?];
        let files = &part.manifest.files;
        let place = files.partition_point(|file| part.first_record + file.end <= record);
        files.get(place).map(|file| file.file.as_str())
    }

    /// Refuses a recipe that did not make the parts.
    ///
    /// # Errors
    /// When it did not.
    pub(crate) fn check_recipe(&self, recipe: &Recipe) -> Result<(), Error> {
        let PartManifest { recipe: own, digest: its, .. } = &self.parts[0].manifest;
        let digest = format!("{:016x}", recipe.digest());
        match digest == *its {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "{}: this part was made by the recipe '{own}' (digest {its}), and '{recipe}' (digest {digest}) was asked: give `recipe` {own}, with the dictionaries that it was made with",
                self.parts[0].folder.display()
            ))),
        }
    }

    /// The columns of all documents. `on_note` gets the lines about records that are none.
    ///
    /// # Errors
    /// A part that cannot be read, is damaged or cut short, or what `on_note` returns.
    pub(crate) fn collect<C: Columns>(
        &self,
        context: &Context<'_>,
        columns: C,
        folder: &Path,
        mut on_note: impl FnMut(&str) -> Result<(), Error>,
    ) -> Result<Collected<C>, Error> {
        let ids = Ids::in_folder(folder, context.bounds.id_bytes);
        let sources = self.source_field().map(|_| SourceColumn::default());
        let mut all = Collected::new(columns, ids, Some(FileKeys::default()), sources);
        let bytes = self.parts.iter().map(|part| part.manifest.text_bytes).sum();
        let progress = context.begin(Phase::Fingerprints, bytes);
        let mut done = 0;
        for part in &self.parts {
            context.check()?;
            let (mut record, problems, mut found) = (part.first_record, all.problems.count(), 0);
            part.each_lane(|lane| {
                let (counts, problems) = (all.counts, all.problems.count());
                let from = corpus::From { records: record, counts, problems };
                let taken = all.take_up(&part.folder, lane, from, &mut on_note)?;
                record += taken.records;
                found += taken.shards;
                Ok(taken.shards)
            })?;
            if all.corpus.len() as u64 != part.first_document + part.manifest.documents {
                return Err(cut_short(part, found));
            }
            part.manifest.notes.iter().try_for_each(|note| on_note(note))?;
            all.problems.restore(problems + part.manifest.unreadable);
            done += part.manifest.text_bytes;
            progress.at(done);
        }
        all.counts.duplicate_ids = all.ids.duplicates()?;
        Ok(all)
    }

    /// How common features are, as one pass over all documents would have counted them: over a sample of the texts that their keys
    /// decide.
    ///
    /// # Errors
    /// A part that cannot be read or is damaged, or an interruption.
    pub(crate) fn sample(
        &self,
        context: &Context<'_>,
        recipe: &Recipe,
        columns: &Sketched,
    ) -> Result<FrequencySample, Error> {
        if let [part] = &self.parts[..]
            && let Some(sample) = shard::kept_sample(&part.folder, part.manifest.shards())?
        {
            return Ok(sample);
        }
        let corpus = &columns.corpus;
        let documents = 0..corpus.len() as u32;
        let key_of = |document: u32| {
            let key = corpus.text_key(document)?;
            corpus.sketch(document).map(|_| key)
        };
        let mut of_keys = FrequencySample::default();
        documents.clone().filter_map(key_of).for_each(|key| of_keys.add(key, &[]));
        let least = of_keys.least_level();
        let mut seen = HashSet::new();
        let wanted: Vec<u32> = documents
            .filter(|&document| {
                let key = key_of(document).filter(|&key| FrequencySample::wants_at(least, key));
                key.is_some_and(|key| seen.insert(key))
            })
            .collect();
        let mut sample = FrequencySample::default();
        recipe.fingerprinter()?;
        self.each_text(
            context,
            Phase::Counting,
            &wanted,
            || recipe.counter(),
            |fingerprinter, text| {
                // What has a sketch has features.
                match fingerprinter.sketch(text) {
                    Ok(_) => fingerprinter.sketched_features(),
                    Err(_) => Vec::new(),
                }
            },
            |document, features| {
                if let Some(key) = corpus.text_key(document) {
                    sample.add(key, &features);
                }
                Ok(())
            },
        )?;
        Ok(sample)
    }

    /// The texts of documents, in the form that is wanted. Those that do not fit into `memory` bytes go into files without a name
    /// in `folder`.
    ///
    /// # Errors
    /// A part that cannot be read or is damaged, a disk that refuses, or an interruption.
    pub(crate) fn texts(
        &self,
        context: &Context<'_>,
        wanted: Wanted,
        memory: Option<u64>,
        folder: &Path,
    ) -> Result<Texts, Error> {
        let mut store = TextStore::of(wanted, memory);
        let (form, documents) = (store.form(), store.documents().to_vec());
        self.each_text(
            context,
            Phase::Comparing,
            &documents,
            || (),
            |(), text| form(text),
            |document, text| store.push(document, &text, folder),
        )?;
        store.finish(folder)
    }

    /// Gives what `work` makes of the texts of some documents, ascending, to `each`, in order. `work` runs on all threads, each
    /// with what `make` gives.
    ///
    /// # Errors
    /// A part that cannot be read, is damaged or has no texts; what `each` returns, or an interruption.
    pub(crate) fn each_text<W: Send, T: Send>(
        &self,
        context: &Context<'_>,
        phase: Phase,
        wanted: &[u32],
        make: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, &str) -> T + Sync,
        mut each: impl FnMut(u32, T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        /// Blocks that are unpacked together, for each thread.
        const BLOCKS: usize = 4;
        if wanted.is_empty() {
            return Ok(());
        }
        let at_once = BLOCKS * rayon::current_num_threads();
        let bytes = self.parts.iter().map(|part| part.manifest.text_bytes).sum();
        let progress = context.begin(phase, bytes);
        let mut done = 0;
        for part in &self.parts {
            let mut first = part.first_document as u32;
            for place in part.shards() {
                let path = shard::texts_path(&part.folder, place);
                let read = |e: std::io::Error| match e.kind() {
                    std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof => {
                        part.damaged(&path)
                    }
                    _ => Error::io(&path, "read the texts of the part in", &e),
                };
                let mut blocks = Blocks::open(&path).map_err(read)?;
                loop {
                    context.check()?;
                    let (group, is_ended) =
                        next_blocks(&mut blocks, at_once, wanted, &mut first).map_err(read)?;
                    let made = group.par_iter().map_init(&make, |worker, (first, block)| {
                        work_on(block, *first, wanted, |text| work(worker, text))
                    });
                    let made: Vec<Option<Vec<(u32, T)>>> = made.collect();
                    for made in made {
                        let made = made.ok_or_else(|| part.damaged(&path))?;
                        made.into_iter().try_for_each(|(document, made)| each(document, made))?;
                    }
                    if is_ended {
                        break;
                    }
                }
                if !blocks.finish().map_err(read)? {
                    return Err(part.damaged(&path));
                }
            }
            done += part.manifest.text_bytes;
            progress.at(done);
        }
        Ok(())
    }
}

/// Reads the next blocks that hold wanted documents, at most `most`, each with its first document. Returns `true` at the end of the
/// shard. `first` is the first document of the next block.
fn next_blocks(
    blocks: &mut Blocks,
    most: usize,
    wanted: &[u32],
    first: &mut u32,
) -> std::io::Result<(Vec<(u32, Block)>, bool)> {
    let mut group = Vec::with_capacity(most);
    while group.len() < most {
        let is_wanted = |documents| !within(wanted, *first, documents).is_empty();
        let Some((documents, block)) = blocks.next_block(is_wanted)? else {
            return Ok((group, true));
        };
        group.extend(block.map(|block| (*first, block)));
        *first += documents;
    }
    Ok((group, false))
}

/// What `work` makes of each wanted text of a block; `None` for a damaged block.
fn work_on<T>(
    block: &Block,
    first: u32,
    wanted: &[u32],
    mut work: impl FnMut(&str) -> T,
) -> Option<Vec<(u32, T)>> {
    let own = &wanted[within(wanted, first, block.documents)];
    let mut own = own.iter().copied().peekable();
    let mut made = Vec::with_capacity(own.len());
    block.each_text(|place, text| {
        if let Some(document) = own.next_if_eq(&(first + place)) {
            made.push((document, work(text)));
        }
    })?;
    Some(made)
}

/// The places in `wanted`, which ascends, of the documents from `first` on.
fn within(wanted: &[u32], first: u32, documents: u32) -> Range<usize> {
    let before = |document: u64| wanted.partition_point(|&own| u64::from(own) < document);
    let first = u64::from(first);
    before(first)..before(first + u64::from(documents))
}

/// Refuses a part that was made otherwise than the first.
fn check_alike(first: &Part, part: &Part) -> Result<(), Error> {
    let of = |part: &Part| {
        let PartManifest { recipe, digest, keep, source_field, texts, .. } = &part.manifest;
        [
            ("recipe", format!("{recipe} (digest {digest})")),
            ("keep", keep.clone()),
            ("source-field", source_field.clone().unwrap_or_else(|| "none".to_owned())),
            ("without-texts", if *texts { "off" } else { "on" }.to_owned()),
        ]
    };
    for ((name, one), (_, other)) in of(first).into_iter().zip(of(part)) {
        if one != other {
            return Err(Error::invalid(format!(
                "{}: this part was made with `{name}` {other}, and {} with {one}: make one of them again by `sketch`",
                part.folder.display(),
                first.folder.display()
            )));
        }
    }
    Ok(())
}

/// Refuses the part by which there are more documents than can be numbered.
fn check_room(part: &Part, documents: u64) -> Result<(), Error> {
    if documents <= MAX_DOCUMENTS as u64 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{}: with this part there are {documents} documents, and one join takes {MAX_DOCUMENTS}: join fewer parts at a time",
        part.folder.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_within_a_block() {
        let check = |first, documents, expect: Range<usize>| {
            assert_eq!(within(&[3, 5, 9, u32::MAX - 1], first, documents), expect);
        };
        check(0, 3, 0..0);
        check(0, 4, 0..1);
        check(5, 5, 1..3);
        check(10, u32::MAX - 10, 3..4);
        check(u32::MAX - 1, 1, 3..4);
    }
}
