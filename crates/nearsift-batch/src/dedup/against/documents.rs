//! Documents as a reference, sketched for the purpose or by an earlier run: candidates across, whose
//! texts are compared exactly.

use std::collections::HashMap;
use std::path::Path;

use nearsift::dedup::{MAX_DOCUMENTS, Reason, SketchCorpus};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::Recipe;
use nearsift::sketch::join::{CrossPair, CrossSettings, Keyed, Pair, cross};
use nearsift_io::Inputs;

use super::{Matched, PART, Partner, RunResults};
use crate::checkpoint::{Checkpoint, CorpusKeys, FileKeys, Manifest};
use crate::corpus::{self, Collected, Id, Ids, Records, Sketched, collect};
use crate::dedup::Job;
use crate::dedup::budget;
use crate::error::Error;
use crate::parts::Parts;
use crate::search::{Bounded, Texts, Wanted};
use nearsift::search::{Acceptance, Material, Templates, TextSource, verify};

/// Candidates that are compared between two looks at whether to go on.
const TOGETHER: usize = 1 << 17;

/// What a part is called as a reference.
pub(super) const PART_KIND: &str = "part";

/// Documents of a reference with their sketches.
struct Shelf<'a> {
    corpus: SketchCorpus,
    keys: Option<FileKeys>,
    ids: Ids,
    records: Records,
    /// Documents and files that could not be read.
    unreadable: u64,
    /// Documents that do not count, because their run removed them.
    left_out: u64,
    origin: Origin<'a>,
}

/// Where their texts are.
enum Origin<'a> {
    /// The last gives for each file with records the record behind its last.
    Files { inputs: &'a Inputs, ends: Vec<(u64, usize)> },
    /// Beside their sketches.
    Part(&'a Parts),
}

impl<'a> Shelf<'a> {
    fn of(read: Collected<Sketched>, origin: Origin<'a>) -> Shelf<'a> {
        Shelf {
            corpus: read.corpus.corpus,
            keys: read.keys,
            ids: read.ids,
            records: read.records,
            unreadable: read.problems.count(),
            left_out: 0,
            origin,
        }
    }

    /// Leaves out the documents that their run removed.
    fn keep_only_kept(&mut self, run: &RunResults) -> Result<(), Error> {
        run.each_removed(|record| {
            if let Some(document) = self.records.document(record) {
                self.corpus.exclude(document);
                self.left_out += 1;
            }
        })
    }
}

impl Job<'_> {
    /// Against documents that are sketched for it; long work is kept.
    pub(super) fn against_documents(
        &self,
        collected: &Collected<Sketched>,
        acceptance: Acceptance,
        recipe: &Recipe,
        path: &Path,
        number: usize,
    ) -> Result<Matched, Error> {
        let inputs = Inputs::resolve(&[path], self.files().options().clone())?;
        let read = self.read_reference(&inputs, recipe, &format!("reference-{number}"))?;
        self.against_read(collected, acceptance, &inputs, read, "documents")
    }

    /// Sketches the documents of a reference; long work is kept under a name.
    pub(super) fn read_reference(
        &self,
        inputs: &Inputs,
        recipe: &Recipe,
        name: &str,
    ) -> Result<Collected<Sketched>, Error> {
        let manifest = Manifest::new(inputs, vec![("recipe".to_owned(), recipe.to_string())]);
        let state = match self.state().zip(manifest) {
            Some((state, manifest)) => {
                let path = state.path(name);
                let bytes = state.shard_bytes();
                Some(Checkpoint::open(&path, &manifest, bytes, state.has_work())?)
            }
            None => None,
        };
        let wanted = corpus::Wanted::by(recipe);
        collect(self.context, Sketched::default(), inputs, &wanted, state.as_ref(), |_| Ok(()))
    }

    /// Against documents that were sketched for it.
    pub(super) fn against_read(
        &self,
        collected: &Collected<Sketched>,
        acceptance: Acceptance,
        inputs: &Inputs,
        read: Collected<Sketched>,
        kind: &'static str,
    ) -> Result<Matched, Error> {
        let ends = inputs.ends().collect();
        let shelf = Shelf::of(read, Origin::Files { inputs, ends });
        self.matched(collected, acceptance, &shelf, kind)
    }

    /// Against all documents of a part, such as a run left, or those that the run kept.
    pub(super) fn against_part(
        &self,
        collected: &Collected<Sketched>,
        acceptance: Acceptance,
        recipe: &Recipe,
        path: &Path,
    ) -> Result<Matched, Error> {
        let parts = Parts::open(&[path])?;
        parts.check_recipe(recipe)?;
        if matches!(acceptance, Acceptance::Verified(_)) && !parts.have_texts() {
            return Err(Error::invalid(format!(
                "{}: a part without texts, and texts are to be compared: let sketches decide by `verify` off, or make it again by `sketch` with texts",
                path.display()
            )));
        }
        let read = parts.collect(self.context, Sketched::default(), &self.scratch(), |_| Ok(()))?;
        let mut shelf = Shelf::of(read, Origin::Part(&parts));
        if self.settings.against_kept_only {
            shelf.keep_only_kept(&run_of_part(&parts, path)?)?;
        }
        self.matched(collected, acceptance, &shelf, PART_KIND)
    }

    fn matched(
        &self,
        collected: &Collected<Sketched>,
        acceptance: Acceptance,
        shelf: &Shelf<'_>,
        kind: &'static str,
    ) -> Result<Matched, Error> {
        let corpus = &collected.corpus.corpus;
        let (own, other) = (corpus.len() as u64, shelf.corpus.len() as u64);
        if own + other > MAX_DOCUMENTS as u64 {
            return Err(Error::invalid(format!(
                "{own} documents and a reference of {other} are more than {MAX_DOCUMENTS}: split the input"
            )));
        }
        if let Some(limit) = self.context.memory_bytes.filter(|_| self.state().is_some()) {
            let columns = corpus.bytes() + collected.ids.bytes();
            let reference = shelf.corpus.bytes() + shelf.ids.bytes();
            budget::check_reference(limit, own, columns, other, reference)?;
        }
        let first = corpus.first_of_text();
        let mut decided: Vec<Option<Decided>> = vec![None; corpus.len()];
        for (document, reference) in same_texts(corpus, &shelf.corpus, &first) {
            decided[document as usize] =
                Some(Decided { reference, reason: Reason::Exact, score: 1.0 });
        }

        let settings = CrossSettings::new(acceptance.candidate((own + other) as usize));
        let keys = CorpusKeys::of(&collected.keys, corpus);
        let reference_keys = CorpusKeys::of(&shelf.keys, &shelf.corpus);
        let documents = Keyed { sketches: corpus.sketches(), keys: &keys };
        let references = Keyed { sketches: shelf.corpus.sketches(), keys: &reference_keys };
        let (mut candidates, work) = cross(&documents, &references, settings)?;
        // Documents with the same text follow the first of them.
        candidates.retain(|pair| {
            first[pair.document as usize] == pair.document
                && decided[pair.document as usize].is_none()
        });
        match acceptance {
            Acceptance::Scored(_) => {
                for pair in &candidates {
                    let score = pair.score.value() as f32;
                    Decided::offer(&mut decided, pair, score);
                }
            }
            Acceptance::Verified(min_score) => {
                self.compare(collected, shelf, &candidates, min_score, &mut decided)?;
            }
        }
        let partner = |document: u32| {
            let leader = first[document as usize];
            let Decided { reference, reason, score } = decided[leader as usize]?;
            let id = shelf.ids.get(reference).map(Id::into_owned);
            let file = shelf.file(reference);
            Some(id.map(|id| Partner { document, id, file, reason, score }))
        };
        let partners = (0..corpus.len() as u32).filter_map(partner).collect::<Result<_, _>>()?;
        let (documents, unreadable) = (other - shelf.left_out, shelf.unreadable);
        Ok(Matched { kind, documents, unreadable, skipped: work.skipped, partners })
    }

    /// Compares the texts of candidates.
    fn compare(
        &self,
        collected: &Collected<Sketched>,
        shelf: &Shelf<'_>,
        candidates: &[CrossPair],
        min_score: f64,
        decided: &mut [Option<Decided>],
    ) -> Result<(), Error> {
        if candidates.is_empty() {
            return Ok(());
        }
        let memory = Some(self.context.memory_bytes.map_or(1 << 29, |bytes| bytes / 16));
        let folder = self.scratch();
        let mut documents: Vec<u32> = candidates.iter().map(|pair| pair.document).collect();
        documents.dedup();
        let inputs = self.files();
        let wanted = Wanted::from(documents).past_changes();
        let own = Texts::read(self.context, inputs, &collected.records, wanted, memory, &folder)?;
        let mut references: Vec<u32> = candidates.iter().map(|pair| pair.reference).collect();
        references.sort_unstable();
        references.dedup();
        let other = shelf.texts(self, references, memory, &folder)?;
        let shift = collected.corpus.corpus.len() as u32;
        let both = Bounded::by(self.context, Both { own, other, shift });
        let frequencies = collected.corpus.sample.table(DocumentFrequencies::shipped());
        let templates = Templates::default();
        let material = Material { texts: &both, frequencies: &frequencies, templates: &templates };
        for part in candidates.chunks(TOGETHER) {
            self.context.check()?;
            let pair =
                |of: &CrossPair| Pair { a: of.document, b: shift + of.reference, score: of.score };
            let pairs: Vec<Pair> = part.iter().map(pair).collect();
            for (place, measured) in verify(&pairs, material, min_score)? {
                Decided::offer(decided, &part[place], measured.score as f32);
            }
        }
        Ok(())
    }
}

/// The partner of a document so far.
#[derive(Debug, Clone, Copy)]
struct Decided {
    reference: u32,
    reason: Reason,
    score: f32,
}

impl Decided {
    /// A near duplicate: of several the nearest, of equally near ones the first of the reference.
    fn offer(decided: &mut [Option<Decided>], pair: &CrossPair, score: f32) {
        let own = &mut decided[pair.document as usize];
        let is_better = own.is_none_or(|best| {
            score > best.score || (score == best.score && pair.reference < best.reference)
        });
        if is_better {
            *own = Some(Decided { reference: pair.reference, reason: Reason::Near, score });
        }
    }
}

/// Each text of the input that the reference has, as its first document and the first of the reference.
fn same_texts(own: &SketchCorpus, other: &SketchCorpus, first: &[u32]) -> Vec<(u32, u32)> {
    let firsts = (0..own.len() as u32).filter(|&document| first[document as usize] == document);
    let keyed = firsts.filter_map(|document| Some((own.text_key(document)?, document)));
    let mut wanted: HashMap<u128, u32> = keyed.collect();
    let found = (0..other.len() as u32)
        .filter_map(|reference| Some((wanted.remove(&other.text_key(reference)?)?, reference)));
    found.collect()
}

/// The run that left a part.
///
/// # Errors
/// A part that no run left: none of its documents is known to have stayed.
fn run_of_part(parts: &Parts, path: &Path) -> Result<RunResults, Error> {
    // A run is given by its folder, or by that of its part.
    let folder = if path.join(PART).is_dir() { Some(path) } else { path.parent() };
    match (parts.run(), folder) {
        (Some(_), Some(folder)) => RunResults::open(folder),
        _ => Err(Error::invalid(format!(
            "{}: a part knows of no document whether it stayed, and `against-kept-only` asks for those that did: leave it out, or give the output of a run",
            path.display()
        ))),
    }
}

impl Shelf<'_> {
    /// The file that a document of the reference is in.
    fn file(&self, reference: u32) -> String {
        let record = self.records.of(reference);
        match &self.origin {
            Origin::Files { inputs, ends } => {
                let (_, number) = ends[ends.partition_point(|&(end, _)| end <= record)];
                inputs.files()[number].name()
            }
            Origin::Part(parts) => parts.file_of(record).unwrap_or_default().to_owned(),
        }
    }

    /// The texts of some documents, ascending.
    fn texts(
        &self,
        job: &Job<'_>,
        references: Vec<u32>,
        memory: Option<u64>,
        folder: &Path,
    ) -> Result<Texts, Error> {
        match &self.origin {
            Origin::Files { inputs, .. } => {
                Texts::read(job.context, inputs, &self.records, references, memory, folder)
            }
            Origin::Part(parts) => {
                parts.texts(job.context, Wanted::from(references), memory, folder)
            }
        }
    }
}

/// Texts of the input, and from `shift` on those of the reference.
struct Both {
    own: Texts,
    other: Texts,
    shift: u32,
}

impl TextSource for Both {
    type Error = Error;

    fn with_text<R>(&self, document: u32, f: impl FnOnce(&str) -> R) -> Result<R, Error> {
        match document.checked_sub(self.shift) {
            None => self.own.with_text(document, f),
            Some(reference) => self.other.with_text(reference, f),
        }
    }

    fn len_of(&self, document: u32) -> usize {
        match document.checked_sub(self.shift) {
            None => self.own.len_of(document),
            Some(reference) => self.other.len_of(reference),
        }
    }
}
