//! A finished run to look at: its clusters by page and in several orders, the members of one, ids that contain a text, and what
//! another threshold would do.
//!
//! No table is in memory as a whole: of each cluster there are 16 bytes and 4 for each order, and the lines that are shown are
//! read by their blocks.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use memchr::memmem;
use rayon::prelude::*;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::lookup::{Results, damaged};
use super::why::{Explanation, RunResults};
use crate::error::Error;
use crate::lock;
use crate::report::visible_line;

/// What every line of `clusters.jsonl` begins with.
const CLUSTER: &[u8] = b"{\"cluster\":";

/// How the fields with a cluster and with sources begin where they are not the first.
const CLUSTER_KEY: &[u8] = b",\"cluster\":";
const SOURCES_KEY: &[u8] = b",\"sources\":{";

/// Sources that clusters can be filtered by: a bit each, and one for all others.
const SOURCES: usize = 31;

/// Bins of scores from 0 to 1.
const BINS: usize = 1000;
/// Larger Hamming distances share the last bin.
const DISTANCES: usize = 257;
/// Pairs of each hundredth of the scale that are remembered for review.
const SAMPLED: usize = 64;

/// In which order clusters are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClusterOrder {
    /// By their number.
    #[default]
    Number,
    /// The largest first, equal ones by number.
    Size,
    /// Those with the least alike removal first, equal ones by number.
    Nearness,
}

/// A run's clusters, as they are listed.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct ClusterPage {
    /// Clusters in the list, over all pages.
    pub total: u64,
    /// Those of the page.
    pub clusters: Vec<ClusterHead>,
}

/// A cluster in a list.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ClusterHead {
    /// Its number, from 1.
    pub cluster: u32,
    /// The name that it has in every run.
    pub name: String,
    /// Its documents.
    pub size: u64,
    /// The id of the best of those that stay.
    pub representative: Value,
    /// The record of the representative, from 1.
    pub representative_record: u64,
    /// How many of its documents stay.
    pub kept: u64,
    /// How near the least alike removed document is to the one that stays in its place: a score, or a Hamming distance.
    pub weakest: Option<f32>,
    /// Members by source, where the run had a field for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, u64>,
}

/// Some members of a cluster.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct ClusterMembers {
    /// The cluster.
    #[serde(flatten)]
    pub head: ClusterHead,
    /// The members of the page, in the order of the input.
    pub members: Vec<Member>,
}

/// A member of a cluster.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Member {
    /// Its id.
    pub id: Value,
    /// Its record, from 1.
    pub record: u64,
    /// Its line of `removed.jsonl`, where it went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<Map<String, Value>>,
}

/// A document whose id contains what was looked for.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct FoundId {
    /// Its id.
    pub id: Value,
    /// Its record, from 1.
    pub record: u64,
    /// Its cluster; `None` where it is like no other.
    pub cluster: Option<u64>,
}

/// What thresholds up from the run's own would do, bin by bin.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Curve {
    /// `score` or `distance`.
    pub measure: &'static str,
    /// The run's own threshold, inclusive.
    pub limit: f64,
    /// Width of a bin.
    pub step: f64,
    /// In each bin from 0 on: pairs; removed documents by how near they are to the one that stays; clusters by their nearest removal.
    pub pairs: Vec<u64>,
    /// See `pairs`.
    pub removed: Vec<u64>,
    /// See `pairs`.
    pub clusters: Vec<u64>,
}

/// Numbers about all clusters, by their number from 1.
#[derive(Debug)]
pub(super) struct ClusterNumbers {
    sizes: Vec<u32>,
    /// Of the least and of the most alike removal; the larger the nearer.
    weakest: Vec<f32>,
    strongest: Vec<f32>,
    /// Bits of the sources that members are from.
    sources: Vec<u32>,
    removed: Vec<u64>,
    by_size: OnceLock<Vec<u32>>,
    by_nearness: OnceLock<Vec<u32>>,
}

/// What is known of the pairs of a run.
#[derive(Debug)]
pub(super) struct PairNumbers {
    counts: Vec<u64>,
    /// Where lines of pairs begin, by hundredths of the scale, in a random order that every run repeats.
    sampled: Vec<Vec<(u64, u64)>>,
}

/// A scale on which larger is nearer.
#[derive(Debug, Clone, Copy)]
struct Scale {
    is_distance: bool,
}

impl Scale {
    /// The value of a line; `None` where nothing was measured.
    fn of(self, line: &[u8]) -> Option<f32> {
        match self.is_distance {
            true => Some(-number_after::<f32>(line, b",\"distance\":").unwrap_or(0.0)),
            false => number_after(line, b",\"score\":"),
        }
    }

    /// As people read it.
    fn shown(self, value: f32) -> Option<f32> {
        value.is_finite().then_some(if self.is_distance { -value + 0.0 } else { value })
    }

    fn bins(self) -> usize {
        if self.is_distance { DISTANCES } else { BINS + 1 }
    }

    fn bin(self, value: f32) -> usize {
        let bin = if self.is_distance { -value } else { value * BINS as f32 + 1e-3 };
        (bin.max(0.0) as usize).min(self.bins() - 1)
    }
}

impl RunResults {
    fn scale(&self) -> Scale {
        Scale { is_distance: self.settings().max_distance.is_some() }
    }

    /// The sources that clusters can be listed by, those of most documents first: at most 30, and none where the run had no
    /// field for them.
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// Reads the tables once for the orders of clusters, unless that was done. Listing them does it, too.
    ///
    /// # Errors
    /// A table that cannot be read.
    ///
    /// # Complexity
    /// One parallel pass over clusters.jsonl and removed.jsonl; 28 bytes for each cluster.
    pub fn prepare(&self) -> Result<(), Error> {
        self.numbers().map(drop)
    }

    fn numbers(&self) -> Result<&ClusterNumbers, Error> {
        // Of requests at the same time one reads the tables, and the others wait.
        let _reading = lock(&self.reading);
        if let Some(numbers) = self.clusters.get() {
            return Ok(numbers);
        }
        let read = self.read_numbers()?;
        Ok(self.clusters.get_or_init(|| read))
    }

    /// The bits of the sources that a line of clusters names at its end.
    fn source_bits(&self, line: &[u8]) -> Result<u32, Error> {
        let Some(at) = memmem::rfind(line, SOURCES_KEY).filter(|_| !self.sources.is_empty()) else {
            return Ok(0);
        };
        let names = &line[at + SOURCES_KEY.len() - 1..line.len() - 1];
        let names: BTreeMap<String, IgnoredAny> =
            serde_json::from_slice(names).map_err(|_| damaged(self.lookup.folder()))?;
        Ok(names.keys().fold(0, |bits, name| {
            let name = visible_line(name);
            let nth = self.sources.iter().position(|own| *own == name).unwrap_or(SOURCES);
            bits | 1u32 << nth
        }))
    }

    fn read_numbers(&self) -> Result<ClusterNumbers, Error> {
        let blocks = self.lookup.map_blocks(Results::Clusters, |_, bytes| {
            let line = |line| {
                let broken = || damaged(self.lookup.folder());
                let cluster = cluster_of_line(line).ok_or_else(broken)?;
                let size: u32 = number_after(line, b",\"size\":").ok_or_else(broken)?;
                Ok((cluster, size, self.source_bits(line)?))
            };
            lines(bytes).map(line).collect::<Result<Vec<_>, Error>>()
        })?;
        let count = blocks.iter().map(Vec::len).sum::<usize>();
        let mut numbers = ClusterNumbers {
            sizes: Vec::with_capacity(count),
            sources: Vec::with_capacity(count),
            weakest: vec![f32::INFINITY; count],
            strongest: vec![f32::NEG_INFINITY; count],
            removed: vec![0; self.scale().bins()],
            by_size: OnceLock::new(),
            by_nearness: OnceLock::new(),
        };
        for (cluster, size, sources) in blocks.into_iter().flatten() {
            if cluster as usize != numbers.sizes.len() + 1 {
                return Err(damaged(self.lookup.folder()));
            }
            numbers.sizes.push(size);
            numbers.sources.push(sources);
        }
        self.read_removals(&mut numbers)?;
        Ok(numbers)
    }

    fn read_removals(&self, numbers: &mut ClusterNumbers) -> Result<(), Error> {
        let scale = self.scale();
        let blocks = self.lookup.map_blocks(Results::Removed, |_, bytes| {
            // A line without a cluster is of a document that a reference has.
            let line = |line| Some((number_after::<u32>(line, CLUSTER_KEY)?, scale.of(line)?));
            Ok(lines(bytes).filter_map(line).collect::<Vec<_>>())
        })?;
        for (cluster, value) in blocks.into_iter().flatten() {
            let at = (cluster as usize).wrapping_sub(1);
            let (Some(least), Some(most)) =
                (numbers.weakest.get_mut(at), numbers.strongest.get_mut(at))
            else {
                return Err(damaged(self.lookup.folder()));
            };
            *least = least.min(value);
            *most = most.max(value);
            numbers.removed[scale.bin(value)] += 1;
        }
        Ok(())
    }

    /// A page of the clusters: `range` of those from a source, if one is given, in an order.
    ///
    /// # Errors
    /// A table that cannot be read.
    ///
    /// # Complexity
    /// O(clusters) where a source is given. The first call is that of [`prepare`](RunResults::prepare).
    pub fn clusters(
        &self,
        order: ClusterOrder,
        source: Option<&str>,
        range: Range<usize>,
    ) -> Result<ClusterPage, Error> {
        let numbers = self.numbers()?;
        let count = numbers.sizes.len();
        let sorted = numbers.in_order(order);
        let nth = |nth: usize| sorted.map_or(nth as u32, |sorted| sorted[nth]);
        let (total, page): (usize, Vec<u32>) = match source {
            None => (count, range.take_while(|&at| at < count).map(nth).collect()),
            Some(name) => {
                let bit = self.sources.iter().position(|own| own == name);
                let bit = bit.map_or(0, |bit| 1u32 << bit);
                let of_source = (0..count).map(nth);
                let of_source: Vec<u32> =
                    of_source.filter(|&at| numbers.sources[at as usize] & bit != 0).collect();
                let page = of_source.iter().skip(range.start).take(range.len()).copied();
                (of_source.len(), page.collect())
            }
        };
        let wanted: Vec<u32> = page.iter().map(|at| at + 1).collect();
        Ok(ClusterPage { total: total as u64, clusters: self.heads(numbers, &wanted)? })
    }

    /// The heads of clusters by their numbers, in this order.
    fn heads(&self, numbers: &ClusterNumbers, wanted: &[u32]) -> Result<Vec<ClusterHead>, Error> {
        let mut sorted = wanted.to_vec();
        sorted.sort_unstable();
        let mut found: BTreeMap<u32, ClusterHead> = BTreeMap::new();
        self.lookup.lines_of_keys(
            Results::Clusters,
            &sorted,
            cluster_of_line,
            |number, line| {
                let line: HeadLine<'_> =
                    serde_json::from_slice(line).map_err(|_| damaged(self.lookup.folder()))?;
                found.insert(number, self.head(numbers, &line)?);
                Ok(())
            },
        )?;
        let head = |number| found.get(number).cloned().ok_or_else(|| damaged(self.lookup.folder()));
        wanted.iter().map(head).collect()
    }

    fn head(&self, numbers: &ClusterNumbers, line: &HeadLine<'_>) -> Result<ClusterHead, Error> {
        let broken = |_| damaged(self.lookup.folder());
        let mut place = 0;
        for_each_element(line.members, |nth, id| {
            if id.get() == line.representative.get() {
                place = nth;
            }
        })
        .map_err(broken)?;
        let records: Vec<u64> = window(line.records, &(place..place + 1)).map_err(broken)?;
        let kept = match line.kept {
            Some(kept) => for_each_element(kept, |_, _| ()).map_err(broken)? as u64,
            None => 1,
        };
        let weakest = numbers.weakest.get((line.cluster as usize).wrapping_sub(1));
        Ok(ClusterHead {
            cluster: line.cluster,
            name: line.name.clone(),
            size: line.size,
            representative: serde_json::from_str(line.representative.get()).map_err(broken)?,
            representative_record: records.first().copied().unwrap_or(0),
            kept,
            weakest: weakest.and_then(|weakest| self.scale().shown(*weakest)),
            sources: line.sources.clone(),
        })
    }

    /// Some members of a cluster, and why each went; `None` where there is no such cluster.
    ///
    /// # Errors
    /// A table that cannot be read.
    ///
    /// # Complexity
    /// Reads the cluster's line, and a block of removed.jsonl for each member of the page.
    pub fn cluster(
        &self,
        number: u32,
        range: Range<usize>,
    ) -> Result<Option<ClusterMembers>, Error> {
        let numbers = self.numbers()?;
        let mut found = None;
        let mut take = |_, line: &[u8]| {
            let broken = |_| damaged(self.lookup.folder());
            let line: HeadLine<'_> = serde_json::from_slice(line).map_err(broken)?;
            let ids: Vec<Value> = window(line.members, &range).map_err(broken)?;
            let records: Vec<u64> = window(line.records, &range).map_err(broken)?;
            found = Some((self.head(numbers, &line)?, ids, records));
            Ok(())
        };
        self.lookup.lines_of_keys(Results::Clusters, &[number], cluster_of_line, &mut take)?;
        let Some((head, ids, records)) = found else { return Ok(None) };
        let member = |(id, record): (Value, u64)| {
            let entry = self.entries(&id)?.into_iter().find(|entry| entry.record + 1 == record);
            let removed = entry.map(|entry| self.removed_line(&entry)).transpose()?.flatten();
            Ok(Member { id, record, removed })
        };
        let members = ids.into_iter().zip(records).map(member).collect::<Result<_, Error>>()?;
        Ok(Some(ClusterMembers { head, members }))
    }

    /// What was decided about the document of an id and a record, from 1; `None` where there is none.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn at(&self, id: &Value, record: u64) -> Result<Option<Explanation>, Error> {
        let entries = self.entries(id)?;
        match entries.into_iter().find(|entry| entry.record + 1 == record) {
            Some(entry) => self.explain(entry, id.clone()).map(Some),
            None => Ok(None),
        }
    }

    /// The lines of `pairs.jsonl` among some documents, which are `(id, record)`.
    ///
    /// # Errors
    /// A file that cannot be read.
    ///
    /// # Complexity
    /// Reads the blocks that may have pairs of each of them.
    pub fn pairs_among(
        &self,
        documents: &[(&Value, u64)],
    ) -> Result<Vec<Map<String, Value>>, Error> {
        let is_one = |id: Option<&Value>| documents.iter().any(|(own, _)| Some(*own) == id);
        let mut found = Vec::new();
        for (id, record) in documents {
            let Some(entry) = self.entries(id)?.into_iter().find(|e| e.record + 1 == *record)
            else {
                continue;
            };
            let is_among = |line: &Map<String, Value>| {
                let (a, b) = (line.get("a"), line.get("b"));
                (a == Some(id) || b == Some(id)) && is_one(a) && is_one(b)
            };
            found.extend(self.lookup.lines(Results::Pairs, entry.document, is_among)?);
        }
        let mut seen = std::collections::BTreeSet::new();
        found.retain(|line| seen.insert(serde_json::to_string(line).unwrap_or_default()));
        Ok(found)
    }

    /// Documents whose id is this one or contains it, at most `most`: that of the very id first, then members of groups in the
    /// order of the groups.
    ///
    /// # Errors
    /// A table that cannot be read.
    ///
    /// # Complexity
    /// Where fewer are found, one parallel pass over clusters.jsonl.
    pub fn search(&self, text: &str, most: usize) -> Result<Vec<FoundId>, Error> {
        let exact = self.find(text)?;
        let mut found: Vec<FoundId> = exact
            .into_iter()
            .take(most)
            .map(|own| FoundId {
                id: own.id,
                record: own.record,
                cluster: own.cluster.map(|cluster| cluster.cluster),
            })
            .collect();
        if text.is_empty() {
            return Ok(found);
        }
        let written = serde_json::to_string(text).map_err(Error::invalid)?;
        let finder = memmem::Finder::new(&written.as_bytes()[1..written.len() - 1]);
        let blocks = self.lookup.map_blocks(Results::Clusters, |_, bytes| {
            let mut of_block = Vec::new();
            if finder.find(bytes).is_none() {
                return Ok(of_block);
            }
            for line in lines(bytes).filter(|line| finder.find(line).is_some()) {
                if of_block.len() >= most {
                    break;
                }
                let line: HeadLine<'_> =
                    serde_json::from_slice(line).map_err(|_| damaged(self.lookup.folder()))?;
                of_block.extend(self.ids_with(&line, text, most)?);
            }
            Ok(of_block)
        })?;
        for one in blocks.into_iter().flatten() {
            if found.len() >= most {
                break;
            }
            if !found.iter().any(|other| other.record == one.record) {
                found.push(one);
            }
        }
        Ok(found)
    }

    fn ids_with(
        &self,
        line: &HeadLine<'_>,
        text: &str,
        most: usize,
    ) -> Result<Vec<FoundId>, Error> {
        let broken = |_| damaged(self.lookup.folder());
        let mut found: Vec<(usize, Value)> = Vec::new();
        for_each_element(line.members, |nth, id| {
            let Ok(id) = serde_json::from_str(id.get()) else { return };
            let contains = match &id {
                Value::String(id) => id.contains(text),
                other => other.to_string().contains(text),
            };
            if contains && found.len() < most {
                found.push((nth, id));
            }
        })
        .map_err(broken)?;
        let last = found.last().map_or(0, |(nth, _)| nth + 1);
        let records: Vec<u64> = window(line.records, &(0..last)).map_err(broken)?;
        let cluster = Some(line.cluster.into());
        let one = |(nth, id): (usize, Value)| {
            let record = *records.get(nth)?;
            Some(FoundId { id, record, cluster })
        };
        Ok(found.into_iter().filter_map(one).collect())
    }

    fn pair_numbers(&self) -> Result<&PairNumbers, Error> {
        let _reading = lock(&self.reading);
        if let Some(numbers) = self.pairs.get() {
            return Ok(numbers);
        }
        let scale = self.scale();
        let empty = || PairNumbers {
            counts: vec![0; scale.bins()],
            sampled: vec![Vec::new(); scale.bins().div_ceil(10)],
        };
        let add = |all: &mut PairNumbers, start: u64, bytes: &[u8]| {
            let mut at = start;
            for line in bytes.split(|byte| *byte == b'\n') {
                let place = at;
                at += line.len() as u64 + 1;
                let Some(value) = scale.of(line).filter(|_| !line.is_empty()) else { continue };
                let bin = scale.bin(value);
                all.counts[bin] += 1;
                all.sampled[bin / 10].push((shuffled(place), place));
            }
            all.sampled.iter_mut().for_each(keep_sampled);
        };
        let merge = |mut all: PairNumbers, own: PairNumbers| {
            all.counts.iter_mut().zip(own.counts).for_each(|(sum, count)| *sum += count);
            for (sum, sampled) in all.sampled.iter_mut().zip(own.sampled) {
                sum.extend(sampled);
                keep_sampled(sum);
            }
            all
        };
        let mut whole = self.lookup.reduce_blocks(Results::Pairs, empty, add, merge)?;
        // In one order, however the blocks were shared among threads.
        whole.sampled.iter_mut().for_each(|sampled| sampled.sort_unstable());
        Ok(self.pairs.get_or_init(|| whole))
    }

    /// What other thresholds would do, from the run's own on: pairs, removals and clusters by how near they are.
    ///
    /// # Errors
    /// A table that cannot be read.
    ///
    /// # Complexity
    /// The first call reads pairs.jsonl once, in parallel.
    pub fn curve(&self) -> Result<Curve, Error> {
        let (numbers, pairs, scale) = (self.numbers()?, self.pair_numbers()?, self.scale());
        let mut clusters = vec![0; scale.bins()];
        for most in numbers.strongest.iter().filter(|most| most.is_finite()) {
            clusters[scale.bin(*most)] += 1;
        }
        let settings = self.settings();
        let limit = match settings.max_distance {
            Some(distance) => f64::from(distance),
            None => settings.min_score.unwrap_or(0.0),
        };
        Ok(Curve {
            measure: if scale.is_distance { "distance" } else { "score" },
            limit,
            step: if scale.is_distance { 1.0 } else { 1.0 / BINS as f64 },
            pairs: pairs.counts.clone(),
            removed: numbers.removed.clone(),
            clusters,
        })
    }

    /// Pairs to review, those nearest to a threshold first: lines of `pairs.jsonl`, a random sample that every call repeats.
    ///
    /// # Errors
    /// A table that cannot be read.
    pub fn borderline(
        &self,
        threshold: f64,
        most: usize,
    ) -> Result<Vec<Map<String, Value>>, Error> {
        let (numbers, scale) = (self.pair_numbers()?, self.scale());
        let value = if scale.is_distance { -threshold } else { threshold };
        let own = scale.bin(value as f32) / 10;
        let mut bins: Vec<usize> = (0..numbers.sampled.len()).collect();
        bins.sort_by_key(|&bin| (bin.abs_diff(own), bin));
        let places = bins.into_iter().flat_map(|bin| &numbers.sampled[bin]).take(most);
        places.map(|(_, place)| self.lookup.line_at(Results::Pairs, *place)).collect()
    }
}

impl ClusterNumbers {
    /// Places of clusters in an order; `None` for that of their numbers.
    fn in_order(&self, order: ClusterOrder) -> Option<&[u32]> {
        let all = || 0..self.sizes.len() as u32;
        match order {
            ClusterOrder::Number => None,
            ClusterOrder::Size => Some(self.by_size.get_or_init(|| {
                let mut order: Vec<u32> = all().collect();
                order.par_sort_by_key(|&at| (u32::MAX - self.sizes[at as usize], at));
                order
            })),
            ClusterOrder::Nearness => Some(self.by_nearness.get_or_init(|| {
                let mut order: Vec<u32> = all().collect();
                let value = |at: u32| self.weakest[at as usize];
                order.par_sort_by(|&a, &b| value(a).total_cmp(&value(b)).then(a.cmp(&b)));
                order
            })),
        }
    }
}

/// A line of `clusters.jsonl` whose lists are not read yet: they may have millions of members.
#[derive(Deserialize)]
struct HeadLine<'l> {
    cluster: u32,
    name: String,
    size: u64,
    #[serde(borrow)]
    representative: &'l RawValue,
    #[serde(borrow, default)]
    kept: Option<&'l RawValue>,
    #[serde(borrow)]
    members: &'l RawValue,
    #[serde(borrow)]
    records: &'l RawValue,
    #[serde(default)]
    sources: BTreeMap<String, u64>,
}

/// The number that a line of clusters begins with.
fn cluster_of_line(line: &[u8]) -> Option<u32> {
    let digits = line.strip_prefix(CLUSTER)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// The lines of a block.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// The number of a field that is not the first one of a line: `key` is its name in quotes, with the comma before and the colon
/// behind. In a text of JSON quotes are escaped, so that these bytes stand nowhere else.
fn number_after<N: std::str::FromStr>(line: &[u8], key: &[u8]) -> Option<N> {
    let rest = &line[memmem::rfind(line, key)? + key.len()..];
    let end = rest.iter().position(|byte| matches!(byte, b',' | b'}'))?;
    std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
}

/// A number in a random order that is the same in every run.
fn shuffled(place: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&place.to_le_bytes())
}

fn keep_sampled(sampled: &mut Vec<(u64, u64)>) {
    if sampled.len() > SAMPLED {
        sampled.sort_unstable();
        sampled.truncate(SAMPLED);
    }
}

/// Calls `each` with the elements of a JSON array and their places, none of which is parsed yet, and returns how many there are.
fn for_each_element<'a>(
    array: &'a RawValue,
    each: impl FnMut(usize, &'a RawValue),
) -> serde_json::Result<usize> {
    struct Elements<F>(F);

    impl<'de, F: FnMut(usize, &'de RawValue)> Visitor<'de> for Elements<F> {
        type Value = usize;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<usize, A::Error> {
            let mut count = 0;
            while let Some(element) = elements.next_element::<&RawValue>()? {
                (self.0)(count, element);
                count += 1;
            }
            Ok(count)
        }
    }

    serde_json::Deserializer::from_str(array.get()).deserialize_seq(Elements(each))
}

/// The elements of an array in a range.
fn window<T: DeserializeOwned>(
    array: &RawValue,
    range: &Range<usize>,
) -> serde_json::Result<Vec<T>> {
    let mut found = Vec::new();
    for_each_element(array, |nth, element| {
        if range.contains(&nth) {
            found.push(serde_json::from_str(element.get()));
        }
    })?;
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_arrays() {
        let check = |json: &str, range: Range<usize>, expect: &[u64], count: usize| {
            let array: &RawValue = serde_json::from_str(json).expect("JSON");
            assert_eq!(window::<u64>(array, &range).expect("an array"), expect);
            assert_eq!(for_each_element(array, |_, _| ()).expect("an array"), count);
        };
        check("[]", 0..3, &[], 0);
        check("[5, 6,7,8]", 1..3, &[6, 7], 4);
        check("[5,6]", 1..9, &[6], 2);
        check("[5,6]", 7..9, &[], 2);
        let array: &RawValue = serde_json::from_str("{}").expect("JSON");
        assert!(for_each_element(array, |_, _| ()).is_err());
    }

    #[test]
    fn numbers_are_those_of_their_fields() {
        let line = serde_json::json!({
            "id": ",\"score\":7,", "other": "x,", "score": 0.5, "cluster": 12
        });
        let line = line.to_string();
        let line = line.as_bytes();
        assert_eq!(number_after::<f32>(line, b",\"score\":"), Some(0.5));
        assert_eq!(number_after::<u32>(br#"{"a":1,"cluster":12}"#, CLUSTER_KEY), Some(12));
        assert_eq!(number_after::<u32>(br#"{"a":1,"cluster":"x"}"#, CLUSTER_KEY), None);
        assert_eq!(number_after::<u32>(b"{\"a\":1}", CLUSTER_KEY), None);
        assert_eq!(cluster_of_line(br#"{"cluster":7,"name":""}"#), Some(7));
        assert_eq!(cluster_of_line(br#"{"name":"","cluster":7}"#), None);
    }

    #[test]
    fn values_have_bins() {
        let scores = Scale { is_distance: false };
        assert_eq!([scores.bin(0.0), scores.bin(0.63), scores.bin(1.0)], [0, 630, 1000]);
        let distances = Scale { is_distance: true };
        assert_eq!([distances.bin(-3.0), distances.bin(0.0), distances.bin(-900.0)], [3, 0, 256]);
    }
}
