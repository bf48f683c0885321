//! From documents to their repeats: two passes over the input, with sorts between them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use nearsift::partial::Letters;
use nearsift::substrings::{Groups, MinBytes, Occurrence, Placed, Repeat, Sampler, resolve};
use nearsift_io::Inputs;
use rayon::prelude::*;

use super::super::documents::{Documents, read_documents};
use super::order::{DocumentOrder, PolicyValues, value_of};
use super::stored::{DocumentSample, KeptHull, OpenOccurrence};
use super::{Action, Compared, Settings};
use crate::bits::Bits;
use crate::context::{Context, Phase};
use crate::corpus::Records;
use crate::error::Error;
use crate::external_sort::{Sorted, Sorter, Stored};
use crate::folder::Folder;
use crate::read_at;
use crate::scan::{Pass, Seen, scan};

/// What the passes found.
pub struct Found {
    /// By document and place, in what is compared.
    pub repeats: Sorted<Repeat>,
    pub documents: Documents,
    /// Documents without a value for the policy.
    pub without_keep_value: u64,
}

/// Finds all repeats.
///
/// # Errors
/// What [`scan`] returns, or a disk that is full or refuses.
pub fn find(
    inputs: &Inputs,
    settings: &Settings,
    folder: &Folder,
    context: &Context<'_>,
) -> Result<Found, Error> {
    let search = Search { inputs, settings, aside: &folder.path(""), context };
    let mut repeats = search.sorter();
    let mut values = PolicyValues::new(&settings.keep, inputs);
    let (samples, documents) = search.samples(folder, &mut repeats, &mut values)?;
    let without_keep_value = values.missing();
    let order = values.order();
    let open = search.open_occurrences(&samples, &order, &mut repeats)?;
    drop(samples);
    if open.len() > 0 {
        let hulls = search.hulls(&open, &documents.records, &order)?;
        drop(open);
        search.resolve(&hulls, &order, &mut repeats)?;
    }
    Ok(Found { repeats: repeats.finish()?, documents, without_keep_value })
}

struct Search<'a> {
    inputs: &'a Inputs,
    settings: &'a Settings,
    /// The folder for what does not stay in memory.
    aside: &'a Path,
    context: &'a Context<'a>,
}

/// What of documents is compared. Keeps its working memory from document to document.
#[derive(Default)]
pub struct ComparedText {
    pub letters: Letters,
    bytes: Vec<u8>,
}

impl ComparedText {
    /// What of a document is compared: nothing where a cut text could not be written back.
    pub fn of<'t>(&'t mut self, settings: &Settings, seen: &'t Seen<'_>) -> &'t [u8] {
        let is_whole = seen.replaced == 0 && seen.text.page.is_none();
        let is_used = is_whole || settings.action == Action::Mark;
        let text: &str = if is_used { &seen.text.text } else { "" };
        match settings.compared {
            Compared::Bytes => text.as_bytes(),
            Compared::Letters => {
                self.letters.fill(text);
                self.bytes.clear();
                self.letters.utf8_into(&mut self.bytes);
                &self.bytes
            }
        }
    }
}

impl Search<'_> {
    fn sorter<T: Stored>(&self) -> Sorter<T> {
        Sorter::new(self.aside, self.context.bounds.sorted_records)
    }

    /// The first pass: takes the samples of all documents, repeats within one, and what the policy compares.
    fn samples(
        &self,
        folder: &Folder,
        repeats: &mut Sorter<Repeat>,
        values: &mut PolicyValues<'_>,
    ) -> Result<(Sorted<DocumentSample>, Documents), Error> {
        let settings = self.settings;
        let mut samples = self.sorter();
        let reading = values.reading();
        let documents = read_documents(
            self.context,
            self.inputs,
            Phase::Samples,
            folder,
            || (Sampler::new(settings.min_bytes), ComparedText::default()),
            |(sampler, text), seen| {
                sampler.sample(text.of(settings, seen)).map_err(Error::invalid)?;
                let own: Vec<Repeat> = sampler.own_repeats(0).collect();
                Ok((sampler.samples().to_vec(), own, value_of(reading, seen)))
            },
            |document, (own_samples, own_repeats, value)| {
                values.push(value);
                own_repeats.into_iter().try_for_each(|repeat| {
                    repeats.push(Repeat { document, first_document: document, ..repeat })
                })?;
                let mut own = own_samples.into_iter();
                own.try_for_each(|sample| samples.push(DocumentSample { sample, document }))
            },
        )?;
        Ok((samples.finish()?, documents))
    }

    /// Places the samples: those that equal one of a document before theirs are repeats, and what shares its gram with others is returned.
    fn open_occurrences(
        &self,
        samples: &Sorted<DocumentSample>,
        order: &DocumentOrder,
        repeats: &mut Sorter<Repeat>,
    ) -> Result<Sorted<OpenOccurrence>, Error> {
        let mut groups = Groups::new(self.settings.min_bytes);
        let mut open = self.sorter();
        for (number, placed) in order.samples(samples).enumerate() {
            if number.is_multiple_of(1 << 16) {
                self.context.check()?;
            }
            let DocumentSample { sample, document } = placed?;
            match groups.place(&sample, document) {
                Placed::Held => {}
                Placed::Repeat(repeat) => repeats.push(repeat)?,
                Placed::Open { group, held, own } => {
                    let mut both = held.into_iter().chain([own]);
                    both.try_for_each(|own| open.push(OpenOccurrence { own, group }))?;
                }
            }
        }
        open.finish()
    }

    /// The second pass: the hulls of open occurrences.
    fn hulls(
        &self,
        open: &Sorted<OpenOccurrence>,
        records: &Records,
        order: &DocumentOrder,
    ) -> Result<Hulls<'_>, Error> {
        let settings = self.settings;
        let mut wanted = Bits::default();
        for open in open.iter() {
            wanted.set(records.of(open?.own.document));
        }
        let mut kept = HullWriter::new(self.aside, settings.min_bytes)?;
        let mut by_group = self.sorter();
        let mut rows = open.rows_of(|open| open.own.document);
        let is_wanted = |record| wanted.has(record);
        let pass = Pass { wanted: Some(&is_wanted), ..Pass::new(Phase::Hulls) };
        scan(
            self.context,
            self.inputs,
            &pass,
            ComparedText::default,
            |text, seen| text.of(settings, &seen).to_vec(),
            |place, done| {
                let Ok(text) = done else { return Ok(()) };
                let Some(document) = records.document(place.index) else { return Ok(()) };
                for open in rows.of(document)? {
                    let address = kept.keep(&open.own, &text)?;
                    let own = Occurrence { document: order.rank(document), ..open.own };
                    by_group.push(KeptHull { open: OpenOccurrence { own, ..open }, address })?;
                }
                Ok(())
            },
        )?;
        let in_memory = self.context.bounds.hull_bytes;
        Ok(Hulls {
            by_group: by_group.finish()?,
            file: kept.finish()?,
            in_memory,
            aside: self.aside,
        })
    }

    /// Finds what open occurrences share.
    fn resolve(
        &self,
        hulls: &Hulls<'_>,
        order: &DocumentOrder,
        repeats: &mut Sorter<Repeat>,
    ) -> Result<(), Error> {
        let min_bytes = self.settings.min_bytes;
        let mut batch = Batch::default();
        let mut group: Vec<KeptHull> = Vec::new();
        let mut all = hulls.by_group.iter();
        loop {
            let next = all.next().transpose()?;
            let is_end = next.is_none_or(|next| {
                group.first().is_some_and(|first| first.open.group != next.open.group)
            });
            if is_end && !group.is_empty() {
                let bytes = |hull: &KeptHull| hull.open.own.hull(min_bytes).len() as u64;
                batch.bytes += group.iter().map(bytes).sum::<u64>();
                batch.groups.push(std::mem::take(&mut group));
                if batch.bytes > hulls.in_memory || next.is_none() {
                    self.context.check()?;
                    let done: Vec<Vec<Repeat>> = std::mem::take(&mut batch)
                        .groups
                        .into_par_iter()
                        .map(|group| hulls.resolve(&group, min_bytes))
                        .collect::<Result<_, _>>()?;
                    let mut found = done.into_iter().flatten();
                    found.try_for_each(|repeat| repeats.push(order.of_ranks(repeat)))?;
                }
            }
            match next {
                Some(next) => group.push(next),
                None => return Ok(()),
            }
        }
    }
}

/// Groups of open occurrences that are resolved side by side, and the bytes of their hulls.
#[derive(Default)]
struct Batch {
    groups: Vec<Vec<KeptHull>>,
    bytes: u64,
}

/// The hulls of open occurrences, on disk.
struct Hulls<'a> {
    /// With the ranks of their documents in place of the documents.
    by_group: Sorted<KeptHull>,
    file: File,
    /// Bytes that are in memory at once. A group of more is read from the disk again and again.
    in_memory: u64,
    aside: &'a Path,
}

impl Hulls<'_> {
    /// The repeats of a group.
    fn resolve(&self, group: &[KeptHull], min_bytes: MinBytes) -> Result<Vec<Repeat>, Error> {
        let occurrences: Vec<Occurrence> = group.iter().map(|hull| hull.open.own).collect();
        let hull = |own: &Occurrence| own.hull(min_bytes);
        let bytes: usize = occurrences.iter().map(|own| hull(own).len()).sum();
        // Those of a small group are read once.
        let mut starts = Vec::new();
        let mut memory = Vec::new();
        if bytes as u64 <= self.in_memory {
            for (own, kept) in occurrences.iter().zip(group) {
                starts.push(memory.len());
                self.read(kept.address, hull(own).len(), &mut memory)?;
            }
        }
        let mut read = |nth: usize, range: Range<u32>, into: &mut Vec<u8>| {
            let before = (range.start - hull(&occurrences[nth]).start) as usize;
            match starts.get(nth) {
                Some(start) => {
                    into.extend_from_slice(&memory[start + before..][..range.len()]);
                    Ok(())
                }
                None => self.read(group[nth].address + before as u64, range.len(), into),
            }
        };
        let mut found = Vec::new();
        resolve(&occurrences, min_bytes, &mut read, &mut |repeat| {
            found.push(repeat);
            Ok(())
        })?;
        Ok(found)
    }

    /// Appends bytes from an address.
    fn read(&self, address: u64, len: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        let start = into.len();
        into.resize(start + len, 0);
        read_at(&self.file, &mut into[start..], address)
            .map_err(|e| Error::io(self.aside, "read back work in", &e))
    }
}

/// Writes hulls one after another. Those of one document that overlap share their bytes.
struct HullWriter<'a> {
    aside: &'a Path,
    min_bytes: MinBytes,
    file: BufWriter<File>,
    len: u64,
    /// The document of the last hull, and where in it what was written ends.
    last: Option<(u32, u32)>,
}

impl HullWriter<'_> {
    fn new(aside: &Path, min_bytes: MinBytes) -> Result<HullWriter<'_>, Error> {
        let file = tempfile::tempfile_in(aside);
        let file = file.map_err(|e| Error::io(aside, "keep work in", &e))?;
        let file = BufWriter::with_capacity(1 << 20, file);
        Ok(HullWriter { aside, min_bytes, file, len: 0, last: None })
    }

    /// Writes the hull of an occurrence, and returns its address. Occurrences come in the order of the input.
    fn keep(&mut self, own: &Occurrence, text: &[u8]) -> Result<u64, Error> {
        let hull = own.hull(self.min_bytes);
        let written = match self.last {
            Some((document, end)) if document == own.document => end.max(hull.start),
            _ => hull.start,
        };
        let address = self.len - u64::from(written - hull.start);
        self.last = Some((own.document, written.max(hull.end)));
        let new = text.get(written.min(hull.end) as usize..hull.end as usize);
        let new = new.ok_or_else(|| {
            Error::invalid(
                "a document is shorter than it was when it was read first: the input has changed",
            )
        })?;
        self.file.write_all(new).map_err(|e| Error::io(self.aside, "keep work in", &e))?;
        self.len += new.len() as u64;
        Ok(address)
    }

    fn finish(self) -> Result<File, Error> {
        let file = self.file.into_inner();
        file.map_err(|e| Error::io(self.aside, "keep work in", e.error()))
    }
}
