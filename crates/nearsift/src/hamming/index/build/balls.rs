//! Finds dense balls among the values of an index, and takes their values out of its tables.

use super::super::Ids;
use super::super::ball::{self, StoredBall, hash, lines_of};
use super::super::image::Part;
use super::super::kernel::{LINE, PADDING};
use super::sort::{Encoded, Id, Packed};
use super::writer::{Postings, write_ids};
use super::{Bucket, Source};
use crate::hamming::distance;
use crate::hamming::planner::binomial;

/// The most words of a shell around the centre for each value in it. A query looks the words up one by one.
const WORDS_OF_A_VALUE: f64 = 64.0;
/// The fewest values of a ball.
const FEWEST: u64 = if cfg!(test) { 64 } else { 4096 };
/// Values of a bucket that are sampled to find a centre.
const SAMPLE: u64 = 1024;
/// After this many centres without a ball, the search of a table ends.
const IN_VAIN: usize = 4;

/// A dense ball and its documents, as the image will store them.
pub(super) struct Ball<const W: usize> {
    centre: [u64; W],
    radius: u32,
    pub(super) documents: usize,
    /// Its cache-line buckets.
    lines: Vec<u8>,
    /// Whole values, in the order of their hashes.
    packed: Packed,
}

impl<const W: usize> Ball<W> {
    fn holds(&self, value: &[u64; W]) -> bool {
        distance(value, &self.centre) <= self.radius
    }

    /// The most bytes of the ball in an image, without its ids.
    pub(super) fn bytes(&self) -> usize {
        ball::RECORD + self.lines.len() + self.packed.bytes().len() + PADDING + 2 * LINE
    }
}

/// At most `most` dense balls that overfill buckets of a table.
pub(super) fn dense_balls<const W: usize>(
    source: &Source<'_, W>,
    (image, part): (&[u8], &Part<W>),
    most: usize,
) -> Vec<Ball<W>> {
    let mut buckets = Bucket::overfull(source, image, part);
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
        // Tests the bucket's sample first: comparing all values takes far longer.
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

/// The bitwise majority of the values.
fn majority<const W: usize>(values: &[[u64; W]]) -> [u64; W] {
    let mut centre = [0; W];
    for bit in 0..64 * W {
        let ones = values.iter().filter(|value| value[bit / 64] >> (bit % 64) & 1 == 1).count();
        centre[bit / 64] |= u64::from(2 * ones > values.len()) << (bit % 64);
    }
    centre
}

/// The largest radius, in words of `bits` bits, at which `values` values can be dense in a ball.
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

/// The dense ball around a centre, without the values of other balls; `None` if it is not dense.
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
    // Equal values count once, and values of other balls do not count: so the true radius is at most this.
    let radius = dense_radius::<W>(&shells)?;
    let gathered = source.workers.map(starts, |start| {
        let inside = chunks(start).filter(|(_, value)| {
            distance(value) <= radius && !others.iter().any(|other| other.holds(value))
        });
        let encoded = inside.map(|(document, value)| {
            let difference: [u64; W] = std::array::from_fn(|w| value[w] ^ centre[w]);
            let id = I::of(&source.ids, document);
            (hash(&difference), Encoded { entry: *value, id })
        });
        encoded.collect::<Vec<_>>()
    });
    let mut documents = gathered.concat();
    source.workers.sort(&mut documents);
    let mut shells = vec![0u64; 64 * W + 1];
    let same = |a: &(u64, Encoded<I, W>), b: &(u64, Encoded<I, W>)| a.1.entry == b.1.entry;
    let equal = documents.chunk_by(same);
    equal.for_each(|equal| shells[distance(&equal[0].1.entry) as usize] += 1);
    let radius = dense_radius::<W>(&shells)?;
    documents.retain(|(_, encoded)| distance(&encoded.entry) <= radius);
    let hashes: Vec<u64> = documents.chunk_by(same).map(|equal| equal[0].0).collect();
    let lines = lines_of(&hashes)?;
    let encoded: Vec<Encoded<I, W>> = documents.into_iter().map(|(_, encoded)| encoded).collect();
    let packed = Packed::of(&encoded, 8 * W);
    Some(Ball { centre: *centre, radius, documents: encoded.len(), lines, packed })
}

/// The largest radius whose shell is dense, given the number of values in each shell; `None` if too few values are within it.
fn dense_radius<const W: usize>(shells: &[u64]) -> Option<u32> {
    let is_dense = |radius: &u32| {
        shells[*radius as usize] as f64 * WORDS_OF_A_VALUE >= binomial(64 * W as u32, *radius)
    };
    // Beyond half of the bits the shells get smaller again, and no small ball has that radius.
    let radius = (0..=8 * W as u32).rev().find(is_dense)?;
    (shells[..=radius as usize].iter().sum::<u64>() >= FEWEST).then_some(radius)
}

/// Writes dense balls from byte `at` of the image on, and moves `at` past them. `values` and `documents` are the numbers of values
/// and documents before them.
pub(super) fn add_balls<const W: usize>(
    balls: &[Ball<W>],
    (mut values, mut documents): (u64, usize),
    image: &mut [u8],
    at: &mut usize,
    postings: &mut Postings,
) -> Vec<StoredBall<W>> {
    let mut record_from = *at;
    *at = (*at + balls.len() * ball::RECORD).next_multiple_of(LINE);
    let mut added = Vec::with_capacity(balls.len());
    for ball in balls {
        let record_at = record_from..record_from + ball::RECORD;
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
        let dense = StoredBall::new(around, len, values, [record_at, lines_at, values_at]);
        let dense = dense.expect("a ball has lines");
        dense.write(image);
        added.push(dense);
        values += len;
        documents += ball.documents;
    }
    added
}

/// The documents outside of all dense balls.
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
    /// The documents of `source` outside of the balls.
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

    /// The documents as a source of values.
    pub(super) fn source<'a>(&'a self, whole: &Source<'a, W>) -> Source<'a, W> {
        let ids = match &self.ids {
            RestIds::None => Ids::None,
            RestIds::U32(ids) => Ids::U32(ids),
            RestIds::U64(ids) => Ids::U64(ids),
        };
        Source { values: &self.values, ids, ..*whole }
    }
}
