//! Pairs and candidates as bytes: in external sorts, and in the work folder of a job.

use std::path::Path;

use nearsift::search::{Candidates, KnownTemplates, Near, Neighbourhoods, Templates, TextMeasures};
use nearsift::sketch::Score;
use nearsift::sketch::join::{Pair, Plan, Work};
use nearsift::verify::{Facts, Varying};

use crate::checkpoint::Checkpoint;
use crate::checkpoint::file::{self, ByteReader};
use crate::error::Error;
use crate::external_sort::Stored;

/// The pair in a file of the state.
pub fn save(pair: &Near, content: &mut Vec<u8>) {
    content.extend_from_slice(&pair.a.to_le_bytes());
    content.extend_from_slice(&pair.b.to_le_bytes());
    content.extend_from_slice(&pair.sketches.points().to_le_bytes());
    if let Some(texts) = pair.texts {
        let TextMeasures { score, cosine, alignment, jaccard, containment, form, facts } = texts;
        for measure in [score, cosine, alignment, jaccard, containment, form] {
            content.extend_from_slice(&measure.to_le_bytes());
        }
        content.extend_from_slice(&facts.agree.to_le_bytes());
        content.extend_from_slice(&facts.differ.to_le_bytes());
        content.extend_from_slice(&facts.letters.to_le_bytes());
    }
}

/// A pair whose texts were compared, as [`save`] wrote it.
pub fn load(content: &mut ByteReader<'_>) -> Option<Near> {
    let mut near = Near::of(&read_candidate(content)?, None);
    near.texts = Some(TextMeasures {
        score: content.f32()?,
        cosine: content.f32()?,
        alignment: content.f32()?,
        jaccard: content.f32()?,
        containment: content.f32()?,
        form: content.f32()?,
        facts: Facts { agree: content.u32()?, differ: content.u32()?, letters: content.u32()? },
    });
    Some(near)
}

impl Stored for Near {
    type Key = (u32, u32);
    const BYTES: usize = 46;

    fn key(&self) -> (u32, u32) {
        (self.a, self.b)
    }

    /// Without measures, these are none of a number.
    fn write(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        save(self, bytes);
        while bytes.len() < start + Near::BYTES {
            bytes.extend_from_slice(&f32::NAN.to_le_bytes());
        }
    }

    fn read(bytes: &[u8]) -> Option<Near> {
        let near = load(&mut ByteReader(bytes))?;
        Some(Near { texts: near.texts.filter(|texts| !texts.score.is_nan()), ..near })
    }
}

/// A candidate among those of its component.
#[derive(Debug, Clone, Copy)]
pub struct OfComponent {
    pub root: u32,
    pub pair: Pair,
}

impl Stored for OfComponent {
    type Key = (u32, u32, u32);
    const BYTES: usize = 14;

    fn key(&self) -> (u32, u32, u32) {
        (self.root, self.pair.a, self.pair.b)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.root.to_le_bytes());
        save(&Near::of(&self.pair, None), bytes);
    }

    fn read(bytes: &[u8]) -> Option<OfComponent> {
        let mut content = ByteReader(bytes);
        Some(OfComponent { root: content.u32()?, pair: read_candidate(&mut content)? })
    }
}

fn read_candidate(content: &mut ByteReader<'_>) -> Option<Pair> {
    let (a, b) = (content.u32()?, content.u32()?);
    Some(Pair { a, b, score: Score::from_points(content.u16()?)? })
}

/// The name of their file in the state.
pub const CANDIDATES: &str = "candidates";

/// Takes up what an earlier run found and left in a folder; `None` where there is nothing, or it is damaged.
///
/// # Errors
/// When the folder cannot be read.
pub fn load_candidates(folder: &Path) -> Result<Option<Candidates>, Error> {
    let path = folder.join(CANDIDATES);
    let content = file::read(&path).map_err(|e| Error::io(&path, "read", &e))?;
    Ok(content.and_then(|content| decode_candidates(&mut ByteReader(&content))))
}

/// Keeps them for a later run.
///
/// # Errors
/// When the disk is full or refuses.
pub fn save_candidates(found: &Candidates, state: &Checkpoint) -> Result<(), Error> {
    let Work { comparisons, hot_keys, hot_sketches, skipped } = found.work;
    let mut content = vec![u8::from(found.plan == Plan::Keys)];
    for number in [comparisons, hot_keys, hot_sketches, skipped, found.skipped] {
        content.extend_from_slice(&number.to_le_bytes());
    }
    content.extend_from_slice(&(found.pairs.len() as u64).to_le_bytes());
    let mut writer = state.begin(CANDIDATES)?;
    for pair in &found.pairs {
        save(&Near::of(pair, None), &mut content);
        if content.len() >= 1 << 20 {
            writer.write(&content)?;
            content.clear();
        }
    }
    writer.write(&content)?;
    writer.finish()
}

/// The name of their file in the state.
pub const TEMPLATES: &str = "templates";

/// What an earlier run found to vary around documents, and left in a folder; nothing where there is none, or it is damaged.
///
/// # Errors
/// When the folder cannot be read.
pub fn load_templates(folder: &Path) -> Result<KnownTemplates, Error> {
    let path = folder.join(TEMPLATES);
    let content = file::read(&path).map_err(|e| Error::io(&path, "read", &e))?;
    let known = content.and_then(|content| decode_templates(&mut ByteReader(&content)));
    Ok(known.unwrap_or_default())
}

/// Keeps them for a later run: for each document its number, its neighbours, and the slots that vary among them.
///
/// # Errors
/// When the disk is full or refuses.
pub fn save_templates(
    neighbourhoods: &Neighbourhoods,
    templates: &Templates,
    state: &Checkpoint,
) -> Result<(), Error> {
    let mut content = Vec::new();
    let mut writer = state.begin(TEMPLATES)?;
    for (document, neighbours) in neighbourhoods.iter() {
        let varying = templates.varying(document).places();
        let lens = [neighbours.len() as u32, varying.len() as u32];
        let numbers = std::iter::once(document).chain(lens).chain(neighbours);
        let numbers = numbers.chain(varying.iter().copied());
        content.extend(numbers.flat_map(u32::to_le_bytes));
        if content.len() >= 1 << 20 {
            writer.write(&content)?;
            content.clear();
        }
    }
    writer.write(&content)?;
    writer.finish()
}

fn decode_templates(content: &mut ByteReader<'_>) -> Option<KnownTemplates> {
    let mut known = KnownTemplates::default();
    while !content.0.is_empty() {
        let (document, neighbours, varying) = (content.u32()?, content.u32()?, content.u32()?);
        let mut numbers = |len| (0..len).map(|_| content.u32()).collect::<Option<Vec<u32>>>();
        let (neighbours, varying) = (numbers(neighbours)?, numbers(varying)?);
        known.add(document, neighbours.into(), Varying::of_places(varying)?);
    }
    Some(known)
}

fn decode_candidates(content: &mut ByteReader<'_>) -> Option<Candidates> {
    let plan = if content.array()? == [1] { Plan::Keys } else { Plan::AllPairs };
    let work = Work {
        comparisons: content.u64()?,
        hot_keys: content.u64()?,
        hot_sketches: content.u64()?,
        skipped: content.u64()?,
    };
    let skipped = content.u64()?;
    let pairs = (0..content.u64()?).map(|_| read_candidate(content)).collect::<Option<_>>()?;
    Some(Candidates { pairs, skipped, work, plan })
}
