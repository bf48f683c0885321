//! Finding dense balls among the values of an index that is built, and taking them out of its tables.

use super::super::Ids;
use super::super::dense::{self, Dense, hash, lines_of};
use super::super::image::Part;
use super::super::kernel::{LINE, PADDING};
use super::filer::{Postings, write_ids};
use super::settle::{Filed, Id, Packed};
use super::{Bucket, Source};
use crate::hamming::distance;
use crate::hamming::planner::binomial;

/// Words of a shell around the centre for each value there, at the most: they are looked up one by one.
const WORDS_OF_A_VALUE: f64 = 64.0;
/// The fewest values of a ball.
const FEWEST: u64 = if cfg!(test) { 64 } else { 4096 };
/// Values of a bucket that are looked at to find a centre.
const SAMPLE: u64 = 1024;
/// Centres of a table for which all values are compared in vain.
const IN_VAIN: usize = 4;

/// A dense ball and its documents, as they will stand in the image.
pub(super) struct Ball<const W: usize> {
    centre: [u64; W],
    radius: u32,
    pub(super) documents: usize,
    lines: Vec<u8>,
    /// Whole values, in the order of their hashes.
    packed: Packed,
}

impl<const W: usize> Ball<W> {
    fn holds(&self, value: &[u64; W]) -> bool {
        distance(value, &self.centre) <= self.radius
    }

    /// The most bytes that it takes in an image, beside its ids.
    pub(super) fn bytes(&self) -> usize {
        dense::RECORD + self.lines.len() + self.packed.bytes().len() + PADDING + 2 * LINE
    }
}

/// The dense balls that crowd buckets of a table: `most` at the most.
pub(super) fn dense_balls<const W: usize>(
    source: &Source<'_, W>,
    (image, part): (&[u8], &Part<W>),
    most: usize,
) -> Vec<Ball<W>> {
    let mut buckets = Bucket::crowded(source, image, part);
    buckets.sort_by_key(|bucket| (std::cmp::Reverse(bucket.len), bucket.key));
    let mut balls: Vec<Ball<W>> = Vec::new();
    let mut in_vain = 0;
    for bucket in buckets {
        if balls.len() == most || in_vain == IN_VAIN {
            break;
        }
        let mut sample = bucket.values(image, part, SAMPLE);
        let all = sample.len();
        sample.retain(|value| !balls.iter().any(|ball| ball.holds(value)));
        if 2 * sample.len() <= all {
            continue;
        }
        let centre = majority(&sample);
        let most_within = |radius: u32| {
            let within = |value: &&[u64; W]| distance(*value, &centre) <= radius;
            2 * sample.iter().filter(within).count() > all
        };
        // What the bucket says of it, for all values are many more.
        let free_bits = 64 * W as u32 - part.table.key_bits;
        if !most_within(largest_radius(free_bits, f64::from(bucket.len))) {
            continue;
        }
        let found = match source.ids.bytes() {
            0 => ball_around::<(), W>(source, &centre, &balls),
            _ => ball_around::<u64, W>(source, &centre, &balls),
        };
        match found {
            Some(ball) if most_within(ball.radius) => balls.push(ball),
            _ => in_vain += 1,
        }
    }
    balls
}

/// The value that has each bit as most values have it.
fn majority<const W: usize>(values: &[[u64; W]]) -> [u64; W] {
    let mut centre = [0; W];
    for bit in 0..64 * W {
        let ones = values.iter().filter(|value| value[bit / 64] >> (bit % 64) & 1 == 1).count();
        centre[bit / 64] |= u64::from(2 * ones > values.len()) << (bit % 64);
    }
    centre
}

/// The largest radius of a ball, of words of so many bits, in which so many values can be dense.
fn largest_radius(bits: u32, values: f64) -> u32 {
    let mut words = 1.0;
    let mut radius = 0;
    while radius < bits {
        words += binomial(bits, radius + 1);
        if words > values * WORDS_OF_A_VALUE {
            break;
        }
        radius += 1;
    }
    radius
}

/// The dense ball around a centre, without what other balls hold; `None` if there is none.
fn ball_around<I: Id, const W: usize>(
    source: &Source<'_, W>,
    centre: &[u64; W],
    others: &[Ball<W>],
) -> Option<Ball<W>> {
    let distance = |value: &[u64; W]| distance(value, centre);
    let chunk = source.values.len().div_ceil(source.workers.count().min(64)).max(1);
    let starts: Vec<usize> = (0..source.values.len()).step_by(chunk).collect();
    let chunks = |start: usize| (start..).zip(source.values[start..].iter().take(chunk));
    let shells = source.workers.map(starts.clone(), |start| {
        let mut shells = vec![0u64; 64 * W + 1];
        chunks(start).for_each(|(_, value)| shells[distance(value) as usize] += 1);
        shells
    });
    let shells = shells.into_iter().reduce(|mut sum, shells| {
        sum.iter_mut().zip(shells).for_each(|(sum, more)| *sum += more);
        sum
    })?;
    // Equal values are one, and what others hold is theirs: it may be less, but no more.
    let radius = dense_radius::<W>(&shells)?;
    let gathered = source.workers.map(starts, |start| {
        let inside = chunks(start).filter(|(_, value)| {
            distance(value) <= radius && !others.iter().any(|other| other.holds(value))
        });
        let filed = inside.map(|(document, value)| {
            let difference: [u64; W] = std::array::from_fn(|w| value[w] ^ centre[w]);
            let id = I::of(&source.ids, document);
            (hash(&difference), Filed { entry: *value, id })
        });
        filed.collect::<Vec<_>>()
    });
    let mut documents = gathered.concat();
    source.workers.sort(&mut documents);
    let mut shells = vec![0u64; 64 * W + 1];
    let same = |a: &(u64, Filed<I, W>), b: &(u64, Filed<I, W>)| a.1.entry == b.1.entry;
    let equal = documents.chunk_by(same);
    equal.for_each(|equal| shells[distance(&equal[0].1.entry) as usize] += 1);
    let radius = dense_radius::<W>(&shells)?;
    documents.retain(|(_, filed)| distance(&filed.entry) <= radius);
    let hashes: Vec<u64> = documents.chunk_by(same).map(|equal| equal[0].0).collect();
    let lines = lines_of(&hashes)?;
    let filed: Vec<Filed<I, W>> = documents.into_iter().map(|(_, filed)| filed).collect();
    let packed = Packed::of(&filed, 8 * W);
    Some(Ball { centre: *centre, radius, documents: filed.len(), lines, packed })
}

/// The largest radius whose shell is dense, by the number of values in each shell, if the values within it are enough.
fn dense_radius<const W: usize>(shells: &[u64]) -> Option<u32> {
    let is_dense = |radius: &u32| {
        shells[*radius as usize] as f64 * WORDS_OF_A_VALUE >= binomial(64 * W as u32, *radius)
    };
    // Past half of the bits shells get smaller again, and no small ball is so large.
    let radius = (0..=8 * W as u32).rev().find(is_dense)?;
    (shells[..=radius as usize].iter().sum::<u64>() >= FEWEST).then_some(radius)
}

/// Writes dense balls from byte `at` of the image on, and moves it past them. So many values and documents are
/// before theirs.
pub(super) fn add_balls<const W: usize>(
    balls: &[Ball<W>],
    (mut values, mut documents): (u64, usize),
    image: &mut [u8],
    at: &mut usize,
    postings: &mut Postings,
) -> Vec<Dense<W>> {
    let mut record_from = *at;
    *at = (*at + balls.len() * dense::RECORD).next_multiple_of(LINE);
    let mut added = Vec::with_capacity(balls.len());
    for ball in balls {
        let record_at = record_from..record_from + dense::RECORD;
        record_from = record_at.end;
        let lines_at = *at..*at + ball.lines.len();
        image[lines_at.clone()].copy_from_slice(&ball.lines);
        let values_end = lines_at.end + ball.packed.bytes().len();
        image[lines_at.end..values_end].copy_from_slice(ball.packed.bytes());
        let values_at = lines_at.end..values_end + PADDING;
        *at = values_at.end.next_multiple_of(LINE);
        postings.append(&ball.packed, values);
        let ids_from = postings.ids_at.start + documents * postings.id_bytes;
        let ids_end = ids_from + ball.documents * postings.id_bytes;
        write_ids(&ball.packed.ids, postings.id_bytes, &mut image[ids_from..ids_end]);
        let (around, len) = ((ball.centre, ball.radius), ball.packed.entries as u64);
        let dense = Dense::new(around, len, values, [record_at, lines_at, values_at]);
        let dense = dense.expect("a ball has lines");
        dense.write(image);
        added.push(dense);
        values += len;
        documents += ball.documents;
    }
    added
}

/// Documents apart from those in dense balls.
pub(super) struct Rest<const W: usize> {
    pub(super) balls: Vec<Ball<W>>,
    values: Vec<[u64; W]>,
    ids: RestIds,
}

enum RestIds {
    None,
    U32(Vec<u32>),
    U64(Vec<u64>),
}

impl<const W: usize> Rest<W> {
    /// What is left of documents without those in the balls.
    pub(super) fn of(source: &Source<'_, W>, balls: Vec<Ball<W>>) -> Rest<W> {
        let outside: Vec<u32> = (source.values.iter().zip(0..))
            .filter(|(value, _)| !balls.iter().any(|ball| ball.holds(value)))
            .map(|(_, document)| document)
            .collect();
        let values = outside.iter().map(|&document| source.values[document as usize]).collect();
        let ids = match source.ids {
            Ids::None => RestIds::None,
            Ids::Positions => RestIds::U32(outside),
            Ids::U32(ids) => {
                RestIds::U32(outside.into_iter().map(|document| ids[document as usize]).collect())
            }
            Ids::U64(ids) => {
                RestIds::U64(outside.into_iter().map(|document| ids[document as usize]).collect())
            }
        };
        Rest { balls, values, ids }
    }

    /// The documents in no ball.
    pub(super) fn source<'a>(&'a self, whole: &Source<'a, W>) -> Source<'a, W> {
        let ids = match &self.ids {
            RestIds::None => Ids::None,
            RestIds::U32(ids) => Ids::U32(ids),
            RestIds::U64(ids) => Ids::U64(ids),
        };
        Source { values: &self.values, ids, ..*whole }
    }
}
