//! Saves the intact documents of a damaged segment.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use nearsift::fingerprint::Bits;
use nearsift::hamming::index::{Index, Search};
use nearsift::sketch::KEYS;

use super::ids::Ids;
use super::{Contents, Finder, OFFSET_BYTES, Pieces, Section, Segment, Unread};
use crate::StoreError;
use crate::bitmap::Bitmap;
use crate::disk::Disk;
use crate::id_filter::UNFILTERED;
use crate::schema::{Kind, Schema};
use crate::sealed::{Identity, PAGE, SealedFile};
use crate::text;

/// The ranks of the documents with fields on damaged pages.
fn ranks_of(pages: &[u64], contents: &Contents, schema: &Schema) -> BTreeSet<u32> {
    let mut lost = BTreeSet::new();
    for &page in pages {
        let bytes = page * PAGE as u64..(page + 1) * PAGE as u64;
        for (section, size) in [
            (Section::Numbers, 8),
            (Section::Expiries, 4),
            (Section::Offsets, OFFSET_BYTES as u64),
            (Section::TextOffsets, OFFSET_BYTES as u64),
            (Section::Values, 8 * schema.words() as u64),
        ] {
            let range = contents.section(section);
            if bytes.end <= range.start || range.end <= bytes.start {
                continue;
            }
            let first = bytes.start.saturating_sub(range.start) / size;
            let last = (bytes.end.min(range.end) - range.start).div_ceil(size);
            // An offset ends one document and begins the next.
            let before = u64::from(matches!(section, Section::Offsets | Section::TextOffsets));
            let ranks = first.saturating_sub(before)..last.min(u64::from(contents.documents));
            lost.extend(ranks.map(|rank| rank as u32));
        }
    }
    lost
}

impl Segment {
    /// Opens a segment with damaged pages. Also returns the ranks of the documents that cannot be read. The segment answers no searches, but
    /// can be a source of a new segment.
    pub(crate) fn open_what_is_whole(
        disk: &dyn Disk,
        path: &Path,
        identity: Identity,
        schema: &Arc<Schema>,
    ) -> Result<(Segment, BTreeSet<u32>), StoreError> {
        let (file, pages) = SealedFile::open(disk, path, identity)?.forgiving();
        let contents = Contents::read(&file, schema)?;
        let documents = contents.documents;
        let words = |section| file.read_numbers(contents.section(section), u64::from_le_bytes);
        let mut lost = ranks_of(&pages, &contents, schema);
        let finder = match schema.kind {
            Kind::Fingerprints { bits, .. } => {
                Finder::Saved(save_values(&file, &contents, bits, &pages, &mut lost)?)
            }
            Kind::Sketches { .. } => super::open_keys(&file, &contents, path)?,
        };
        let segment = Segment {
            number: identity.number,
            documents,
            dead: Bitmap::new(documents),
            filtered_in: UNFILTERED,
            schema: Arc::clone(schema),
            ids: Ids::default(),
            numbers: words(Section::Numbers)?,
            expiries: file.read_numbers(contents.section(Section::Expiries), u32::from_le_bytes)?,
            finder,
            file,
            contents,
        };
        segment.lose_pieces(Pieces::Records, &mut lost)?;
        segment.lose_pieces(Pieces::Texts, &mut lost)?;
        segment.lose_keys(&mut lost);
        Ok((segment, lost))
    }

    /// Whether parts of it may be damaged.
    pub(super) fn is_salvaged(&self) -> bool {
        self.file.is_forgiving()
    }

    /// Documents with a piece that cannot be read.
    fn lose_pieces(&self, pieces: Pieces, lost: &mut BTreeSet<u32>) -> Result<(), StoreError> {
        let (bytes, _) = pieces.sections();
        if self.contents.section(bytes).is_empty() {
            return Ok(());
        }
        let damaged = |at: u64| !self.file.is_whole(at);
        for rank in 0..self.documents {
            if lost.contains(&rank) {
                continue;
            }
            let at = self.contents.offset_at(pieces, rank);
            let offsets = self.file.read_vec(at, 2 * OFFSET_BYTES)?;
            let whole = self.piece_place(pieces, &offsets, at).is_ok_and(|place| {
                let mut pages = place.start / PAGE as u64..=(place.end.max(1) - 1) / PAGE as u64;
                pages.all(|page| !damaged(page * PAGE as u64)) && self.is_readable(pieces, rank)
            });
            if !whole {
                lost.insert(rank);
            }
        }
        Ok(())
    }

    fn is_readable(&self, pieces: Pieces, rank: u32) -> bool {
        match pieces {
            Pieces::Records => self.record(rank).is_ok(),
            Pieces::Texts => self.text(rank).is_ok_and(|text| text::unpack(&text).is_some()),
        }
    }

    /// Sketches of which not all keys are known. Entries of damaged tables do not add up.
    fn lose_keys(&self, lost: &mut BTreeSet<u32>) {
        let Finder::Sketches { tables, layout, .. } = &self.finder else { return };
        let finder = self.contents.section(Section::Finder);
        for t in 0..KEYS {
            let from = finder.start + (t * layout.table_bytes()) as u64;
            let to = from + layout.table_bytes() as u64;
            let whole = (from / PAGE as u64..to.div_ceil(PAGE as u64))
                .all(|page| self.file.is_whole(page * PAGE as u64));
            if whole {
                continue;
            }
            // Which of the entries are true cannot be told from the tables alone: a document keeps its
            // other keys, and only those are lost of which nothing of this table is left.
            let mut seen = vec![0u8; self.documents as usize];
            layout.read(tables, t).each_below(1 << 32, |_, rank| {
                if let Some(seen) = seen.get_mut(rank as usize) {
                    *seen = seen.saturating_add(1);
                }
            });
            lost.extend((0u32..).zip(&seen).filter(|(_, seen)| **seen != 1).map(|(rank, _)| rank));
        }
    }
}

/// The words of all documents of a damaged index, and which of them are lost.
fn save_values(
    file: &SealedFile,
    contents: &Contents,
    bits: Bits,
    pages: &[u64],
    lost: &mut BTreeSet<u32>,
) -> Result<Vec<u64>, StoreError> {
    let finder = contents.section(Section::Finder);
    let index = Index::read_with((finder.end - finder.start) as usize, |to| {
        file.read(to, finder.start).map_err(Unread::Store)
    });
    let unfit = |what: String| StoreError::damaged(file.path(), finder.start, what);
    let index = index.map_err(|unread| match unread {
        Unread::Store(error) => error,
        Unread::Index(error) => unfit(error.to_string()),
    })?;
    let documents = contents.documents as usize;
    if index.bits() != bits || index.documents() != documents as u64 {
        return Err(unfit("the index is of other documents".to_owned()));
    }
    let damaged: BTreeSet<u64> = pages.iter().copied().collect();
    let whole = |part: std::ops::Range<usize>| {
        let first = (finder.start + part.start as u64) / PAGE as u64;
        let last = (finder.start + part.end as u64 - 1) / PAGE as u64;
        damaged.range(first..=last).next().is_none()
    };
    let words = bits.words();
    let mut values = vec![0; documents * words];
    let mut known = vec![false; documents];
    index.each_whole_value(&whole, &mut |place, value| {
        if let Some(known) = known.get_mut(place as usize) {
            *known = true;
            values[place as usize * words..][..words].copy_from_slice(value);
        }
    });
    lost.extend((0u32..).zip(&known).filter(|(_, known)| !**known).map(|(rank, _)| rank));
    Ok(values)
}
