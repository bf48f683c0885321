//! From pairs of distinct values to pairs of documents, in ascending order.
//!
//! The search finds pairs of values in no order. They are kept as directed edges, sorted, and read
//! off document by document. When there are more than the memory may hold, the documents are cut
//! into ranges whose edges do fit, and the edges of each range are found again.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};
use std::sync::Mutex;

use super::groups::{Groups, Postings};
use super::search::{Delivery, Sink};
use super::{Known, Pair, SelfJoin, Work, chunks};
use crate::pages;
use crate::prefetch::prefetch_one;
use crate::threads::{lock, unlocked};

/// Which pairs of documents stand for a pair of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// All of them.
    Full,
    /// The pair of their first documents; and repeats are paired with the first of their value.
    Compact,
}

impl SelfJoin<'_> {
    /// Calls `f` with every pair of documents within the distance, each once with `a < b`, in
    /// ascending order of `(a, b)`, until it breaks.
    ///
    /// A fingerprint that m documents share gives m (m - 1) / 2 pairs; [`SelfJoin::for_each_link`]
    /// gives m - 1.
    ///
    /// # Complexity
    /// The search as [`SelfJoin::explain`] forecasts it, and O(log n) for each pair. Pairs beyond
    /// the memory limit are searched again, once for each part of them that fits.
    pub fn for_each_pair<B>(&self, f: impl FnMut(Pair) -> ControlFlow<B>) -> ControlFlow<B> {
        self.for_each(Form::Full, f)
    }

    /// Calls `f` with the pairs in compact form, in ascending order of `(a, b)`, until it breaks:
    /// each repeated document is linked to the first document of its value, and each two values
    /// within the distance are linked by their first documents.
    ///
    /// Components of the links are those of the full pairs.
    pub fn for_each_link<B>(&self, f: impl FnMut(Pair) -> ControlFlow<B>) -> ControlFlow<B> {
        self.for_each(Form::Compact, f)
    }

    /// Every pair, as [`SelfJoin::for_each_pair`] gives them; 12 bytes a pair.
    pub fn pairs(&self) -> Vec<Pair> {
        self.collect(Form::Full)
    }

    /// Every link, as [`SelfJoin::for_each_link`] gives them; 12 bytes a link.
    pub fn links(&self) -> Vec<Pair> {
        self.collect(Form::Compact)
    }

    /// The number of pairs that [`SelfJoin::for_each_pair`] would give, and the work that counting
    /// took. No pair is kept in memory.
    pub fn count_pairs(&self) -> (u64, Work) {
        let postings = self.known().groups.postings();
        let size = |value: u32| {
            postings.as_ref().map_or(1, |postings| postings.of_value(value).len() as u64)
        };
        let repeats = (0..self.distinct() as u32).map(|v| size(v) * (size(v) - 1) / 2).sum();
        let total = Mutex::new(repeats);
        let sink = Batches(|found: &[(u32, u32)]| {
            *lock(&total) += found.iter().map(|&(a, b)| size(a) * size(b)).sum::<u64>();
            ControlFlow::Continue(())
        });
        let (_, work) = self.search(Delivery::ExactlyOnce, &sink);
        (unlocked(total), work)
    }

    fn collect(&self, form: Form) -> Vec<Pair> {
        let mut pairs = Vec::new();
        let ControlFlow::Continue(()) = self.for_each(form, |pair| {
            pairs.push(pair);
            ControlFlow::<Infallible>::Continue(())
        });
        pairs
    }

    fn for_each<B>(&self, form: Form, mut f: impl FnMut(Pair) -> ControlFlow<B>) -> ControlFlow<B> {
        let found = self.edges_if_distinct(form);
        let known = self.known();
        let view = View { join: self, known, form, postings: known.groups.postings() };
        let found = found.unwrap_or_else(|| view.all_edges(false).1);
        let (degrees, work) = match found {
            Found::Edges(edges) => return view.emit(0..self.documents(), edges, &mut f),
            Found::TooMany { degrees, work } => (degrees, work),
        };
        let mut start = 0;
        while start < self.documents() {
            let (end, sources) = view.next_range(start, &degrees);
            let edges = view.edges_from(&sources, &work);
            view.emit(start..end, edges, &mut f)?;
            start = end;
        }
        ControlFlow::Continue(())
    }

    /// Where it is not known whether values are equal: every edge of all values as if they were not, unless
    /// the search meets two that are. Then nothing is known but that.
    fn edges_if_distinct(&self, form: Form) -> Option<Found> {
        if self.known.get().is_some() {
            return None;
        }
        let known = self.known_with(Groups::Distinct(self.documents()));
        let view = View { join: self, known: &known, form, postings: None };
        let (ended, found) = view.all_edges(true);
        if ended.is_break() {
            return None;
        }
        // Another thread may have come to the same.
        let _ = self.known.set(known);
        Some(found)
    }
}

/// A set of values.
struct ValueSet(Vec<u64>);

impl ValueSet {
    fn new(values: usize) -> ValueSet {
        ValueSet(vec![0; values.div_ceil(64)])
    }

    fn has(&self, value: u32) -> bool {
        self.0[value as usize / 64] >> (value % 64) & 1 == 1
    }

    /// Whether it was not in the set before.
    fn insert(&mut self, value: u32) -> bool {
        let new = !self.has(value);
        self.0[value as usize / 64] |= 1 << (value % 64);
        new
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().enumerate().flat_map(|(i, &word)| {
            (0..64u32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| i as u32 * 64 + bit)
        })
    }
}

/// Directed edges between values, `source << 32 | target`, sorted, each once. Between near values they are complete; a
/// few may be between others.
struct Edges {
    edges: Vec<u64>,
    /// The first edge whose source was not looked up yet.
    cursor: usize,
    ahead: Ahead,
}

/// What is known of some edges that stand side by side, looked up together: their targets lie anywhere in
/// memory, and many are waited for at once.
#[derive(Default)]
struct Ahead {
    /// The place of the first edge.
    first: usize,
    targets: Vec<Target>,
}

/// Where an edge leads.
#[derive(Clone, Copy)]
struct Target {
    value: u32,
    distance: u32,
    /// Where the value's documents begin and end in the postings, if there are postings.
    documents: (u32, u32),
}

impl Ahead {
    /// Edges looked up together.
    const COUNT: usize = 256;

    /// Where the edge at a place leads; those after it are looked up too.
    #[inline]
    fn target(&mut self, edges: &[u64], place: usize, view: &View<'_, '_>) -> Target {
        let known = place.checked_sub(self.first).and_then(|at| self.targets.get(at));
        if let Some(&known) = known {
            return known;
        }
        self.first = place;
        self.targets.clear();
        let edges = edges[place..].iter().take(Self::COUNT);
        edges.clone().for_each(|&edge| view.ask_for(edge));
        self.targets.extend(edges.map(|&edge| view.look_up(edge)));
        self.targets[0]
    }
}

impl Edges {
    /// Whether it is plain that no edge leads from the source, which is looked up for the first time if it
    /// has one document only.
    #[inline]
    fn lead_nowhere_from(&self, source: u32) -> bool {
        self.edges.get(self.cursor).is_none_or(|&edge| edge >> 32 > u64::from(source))
    }

    /// Appends the targets of a source to `to`. Sources that are looked up for the first time come
    /// in ascending order.
    fn targets_of(
        &mut self,
        source: u32,
        seen_before: bool,
        view: &View<'_, '_>,
        to: &mut Vec<Target>,
    ) {
        let Edges { edges, cursor, ahead } = self;
        let lowest = u64::from(source) << 32;
        let start = if seen_before {
            edges.partition_point(|&edge| edge < lowest)
        } else {
            *cursor += edges[*cursor..].iter().take_while(|&&edge| edge < lowest).count();
            *cursor
        };
        let row = edges[start..].iter().take_while(|&&edge| edge >> 32 == u64::from(source));
        if seen_before {
            to.extend(row.map(|&edge| view.look_up(edge)));
        } else {
            to.extend((start..).zip(row).map(|(place, _)| ahead.target(edges, place, view)));
        }
    }
}

/// How many edges lead from values, by groups of values: far less memory than a number for each.
struct Degrees(Vec<u64>);

impl Degrees {
    /// Values in a group, as a power of two.
    const GROUP: u32 = 5;

    fn new(values: usize) -> Degrees {
        Degrees(vec![0; (values >> Degrees::GROUP) + 1])
    }

    fn add(&mut self, source: u32) {
        self.0[(source >> Degrees::GROUP) as usize] += 1;
    }

    /// The edges that lead from the value's group.
    fn of_group(&self, value: u32) -> u64 {
        self.0[(value >> Degrees::GROUP) as usize]
    }
}

/// What the first search found.
enum Found {
    Edges(Edges),
    /// More edges than fit the memory: how many there are, and how much work it was to find them.
    TooMany {
        degrees: Degrees,
        work: Work,
    },
}

/// A join as seen by one form of its pairs.
struct View<'j, 'a> {
    join: &'j SelfJoin<'a>,
    known: &'j Known,
    form: Form,
    /// Only when some value is repeated.
    postings: Option<Postings>,
}

impl View<'_, '_> {
    /// Whether the document of some pair that comes first can be of value `from` and the other of
    /// value `to`.
    #[inline]
    fn leads(&self, from: u32, to: u32) -> bool {
        // Values are numbered by their first documents.
        from < to
            || (self.form == Form::Full
                && self.postings.as_ref().is_some_and(|postings| {
                    // A value with one document has no later one.
                    !postings.is_alone(to)
                        && (postings.of_value(to).last())
                            .is_some_and(|&last| last > self.known.groups.first(from))
                }))
    }

    /// Every edge that leads, if they fit the memory; and whether the search came to its end, or met equal values where it
    /// should end.
    fn all_edges(&self, only_distinct: bool) -> (ControlFlow<()>, Found) {
        let capacity = self.join.pair_capacity;
        // Edges are kept until they are too many; from then on they are only counted.
        let state: Mutex<(Vec<u64>, Option<Degrees>)> = Mutex::default();
        let sink = Batches(|found: &[(u32, u32)]| {
            let mut state = lock(&state);
            let (edges, degrees) = &mut *state;
            reserve(edges, found.len() * 2, capacity);
            for &(a, b) in found {
                edges.push(u64::from(a) << 32 | u64::from(b));
                if self.leads(b, a) {
                    edges.push(u64::from(b) << 32 | u64::from(a));
                }
            }
            if edges.len() > capacity || degrees.is_some() {
                let degrees =
                    degrees.get_or_insert_with(|| Degrees::new(self.known.groups.values()));
                edges.drain(..).for_each(|edge| degrees.add((edge >> 32) as u32));
                edges.shrink_to(found.len() * 4);
            }
            ControlFlow::Continue(())
        });
        let (ended, work) =
            self.join.search_among(self.known, Delivery::Candidates { only_distinct }, &sink);
        let found = match unlocked(state) {
            (_, Some(degrees)) => Found::TooMany { degrees, work },
            (edges, None) => Found::Edges(self.sorted(edges)),
        };
        (ended, found)
    }

    fn sorted(&self, mut edges: Vec<u64>) -> Edges {
        self.join.workers.sort(&mut edges);
        edges.dedup();
        Edges { edges, cursor: 0, ahead: Ahead::default() }
    }

    /// The end of a range of documents from `start` whose edges fit the memory, at least one document, and
    /// the values that these edges lead from.
    fn next_range(&self, start: usize, degrees: &Degrees) -> (usize, ValueSet) {
        let distinct = self.known.groups.values();
        let mut sources = ValueSet::new(distinct);
        let mut groups = ValueSet::new((distinct >> Degrees::GROUP) + 1);
        let mut edges = 0;
        let capacity = self.join.pair_capacity as u64;
        for document in start..self.join.documents() {
            let value = self.known.groups.value_of(document as u32);
            if self.skips(document) || sources.has(value) {
                continue;
            }
            let group = degrees.of_group(value);
            if group > capacity {
                // How its edges are shared out is not known: any value may have as many as there are values.
                edges += group.min(distinct as u64);
            } else if groups.insert(value >> Degrees::GROUP) {
                edges += group;
            }
            if edges > capacity && document > start {
                return (document, sources);
            }
            sources.insert(value);
        }
        (self.join.documents(), sources)
    }

    /// Whether no pair of this form begins with the document.
    fn skips(&self, document: usize) -> bool {
        let document = document as u32;
        self.form == Form::Compact && self.join.first_of(document) != document
    }

    /// The edges that lead from these values: by searching all again, which took `work` before, or
    /// by comparing these with all, whichever is cheaper.
    fn edges_from(&self, sources: &ValueSet, work: &Work) -> Edges {
        let join = self.join;
        let speed = join.speed;
        let again =
            work.comparisons as f64 * speed.comparison_ns + work.moves as f64 * speed.move_ns;
        let across = sources.iter().count() as f64 * join.distinct() as f64 * speed.comparison_ns;
        let edges = Mutex::new(Vec::new());
        let edge = |from: u32, to: u32| u64::from(from) << 32 | u64::from(to);
        if across < again {
            match join.column.bits().words() {
                1 => self.compare_across::<1>(sources, &edges),
                2 => self.compare_across::<2>(sources, &edges),
                _ => self.compare_across::<4>(sources, &edges),
            }
        } else {
            let sink = Batches(|found: &[(u32, u32)]| {
                let mut edges = lock(&edges);
                reserve(&mut edges, found.len() * 2, join.pair_capacity);
                for &(a, b) in found {
                    if sources.has(a) {
                        edges.push(edge(a, b));
                    }
                    if sources.has(b) && self.leads(b, a) {
                        edges.push(edge(b, a));
                    }
                }
                ControlFlow::Continue(())
            });
            let _ = join.search(Delivery::Candidates { only_distinct: false }, &sink);
        }
        self.sorted(unlocked(edges))
    }

    /// Adds the edges that lead from the sources, by comparing them with all values.
    fn compare_across<const W: usize>(&self, sources: &ValueSet, edges: &Mutex<Vec<u64>>) {
        /// Values and sources that are compared at a time.
        const CHUNK: usize = 1 << 12;
        const QUERIES: usize = 64;
        let values = chunks::<W>(self.join.words(self.known));
        let sources: Vec<u32> = sources.iter().collect();
        let _ = self.join.workers.run(values.len().div_ceil(CHUNK), &|chunk| {
            let first = chunk * CHUNK;
            let chunk = &values[first..values.len().min(first + CHUNK)];
            let mut hits = Vec::new();
            for sources in sources.chunks(QUERIES) {
                let queries: Vec<[u64; W]> = sources.iter().map(|&v| values[v as usize]).collect();
                self.join.kernel.across_within(&queries, chunk, self.join.max_distance, &mut hits);
                let mut edges = lock(edges);
                reserve(&mut edges, hits.len(), self.join.pair_capacity);
                for (query, place) in hits.drain(..) {
                    let (from, to) = (sources[query as usize], first as u32 + place);
                    if from != to && self.leads(from, to) {
                        edges.push(u64::from(from) << 32 | u64::from(to));
                    }
                }
            }
            ControlFlow::Continue(())
        });
    }

    /// Calls `f` with the pairs that begin with documents of the range, given their values' edges.
    fn emit<B>(
        &self,
        range: Range<usize>,
        mut edges: Edges,
        f: &mut impl FnMut(Pair) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let Some(postings) = &self.postings else {
            // Documents and values are the same, and so is the order of their pairs.
            let Edges { edges, ahead, .. } = &mut edges;
            return edges.iter().enumerate().try_for_each(|(place, &edge)| {
                let Target { value: b, distance, .. } = ahead.target(edges, place, self);
                let a = (edge >> 32) as u32;
                if self.is_near(distance) {
                    f(Pair { a, b, distance })
                } else {
                    ControlFlow::Continue(())
                }
            });
        };
        let groups = &self.known.groups;
        let mut rows =
            Rows::with_room(self.join.pair_capacity.saturating_sub(edges.edges.capacity()));
        let mut targets: Vec<Target> = Vec::new();
        let mut own: Vec<u64> = Vec::new();
        for document in range {
            if self.skips(document) {
                continue;
            }
            let a = document as u32;
            let value = groups.value_of(a);
            let is_alone = postings.is_alone(value);
            if is_alone && edges.lead_nowhere_from(value) {
                continue;
            }
            if !is_alone && let Some(row) = rows.of(value) {
                emit_row(a, after(row, a), f)?;
                rows.forget_after(value, a, postings);
                continue;
            }
            targets.clear();
            edges.targets_of(value, groups.first(value) != a, self, &mut targets);
            targets.retain(|target| self.is_near(target.distance));
            self.fill_row(a, value, postings, &targets, &mut own);
            emit_row(a, &own, f)?;
            if self.form == Form::Full {
                rows.keep(value, a, &own, postings);
            }
        }
        ControlFlow::Continue(())
    }

    /// Sets `row` to the pairs of document `a` with later documents, in ascending order: those of its own value, and those of near values.
    /// In the compact form, each near value has one document.
    fn fill_row(
        &self,
        a: u32,
        value: u32,
        postings: &Postings,
        targets: &[Target],
        row: &mut Vec<u64>,
    ) {
        row.clear();
        match self.form {
            Form::Compact => {
                let repeats = &postings.of_value(value)[1..];
                row.extend(repeats.iter().map(|&b| in_row(b, 0)));
                let first = |to: &Target| postings.documents(to.documents)[0];
                row.extend(targets.iter().map(|to| in_row(first(to), to.distance)));
            }
            Form::Full => {
                let mut add_later = |documents: &[u32], distance| {
                    let later = &documents[documents.partition_point(|&b| b <= a)..];
                    row.extend(later.iter().map(|&b| in_row(b, distance)));
                };
                add_later(postings.of_value(value), 0);
                for to in targets {
                    add_later(postings.documents(to.documents), to.distance);
                }
            }
        }
        row.sort_unstable();
    }

    /// Whether an edge is of near values: the search also finds candidates that are not near.
    fn is_near(&self, distance: u32) -> bool {
        distance <= self.join.max_distance
    }

    /// Asks for what is looked up of an edge soon.
    fn ask_for(&self, edge: u64) {
        let (words, width) = (self.join.words(self.known), self.join.column.bits().words());
        prefetch_one(words, edge as u32 as usize * width);
        if let Some(postings) = &self.postings {
            postings.ask_for(edge as u32);
        }
    }

    fn look_up(&self, edge: u64) -> Target {
        let (from, value) = ((edge >> 32) as u32, edge as u32);
        let (words, width) = (self.join.words(self.known), self.join.column.bits().words());
        let of = |value: u32| &words[value as usize * width..][..width];
        Target {
            value,
            distance: crate::hamming::distance(of(from), of(value)),
            documents: self.postings.as_ref().map_or((0, 0), |postings| postings.bounds(value)),
        }
    }
}

/// What pairs a document has, ascending: the other document, and the distance. Documents of one value have the same but for those
/// before them.
type Row = [u64];

/// The place of a document in a row.
#[inline]
fn in_row(document: u32, distance: u32) -> u64 {
    u64::from(document) << 32 | u64::from(distance)
}

/// The part of a row that comes after a document.
#[inline]
fn after(row: &Row, document: u32) -> &Row {
    &row[row.partition_point(|&other| other < in_row(document + 1, 0))..]
}

/// Calls `f` with the pairs of a document and those of a row.
#[inline]
fn emit_row<B>(a: u32, row: &Row, f: &mut impl FnMut(Pair) -> ControlFlow<B>) -> ControlFlow<B> {
    row.iter().try_for_each(|&other| f(Pair { a, b: (other >> 32) as u32, distance: other as u32 }))
}

/// A cache of the rows of values that have further documents. It holds as many rows as there is room for.
struct Rows {
    held: HashMap<u32, Box<Row>>,
    room: usize,
}

impl Rows {
    /// An empty cache with room for `room` pairs.
    fn with_room(room: usize) -> Rows {
        Rows { held: HashMap::new(), room }
    }

    fn of(&self, value: u32) -> Option<&Row> {
        self.held.get(&value).map(|row| &**row)
    }

    /// Stores the row of a value's document, unless the document is the value's last or there is no room.
    fn keep(&mut self, value: u32, document: u32, row: &Row, postings: &Postings) {
        let cost = row.len() + Rows::BESIDE;
        if cost <= self.room && !postings.is_last(value, document) {
            self.room -= cost;
            self.held.insert(value, row.into());
        }
    }

    /// Removes the row of a value after its last document was reported.
    fn forget_after(&mut self, value: u32, document: u32, postings: &Postings) {
        if postings.is_last(value, document)
            && let Some(row) = self.held.remove(&value)
        {
            self.room += row.len() + Rows::BESIDE;
        }
    }

    /// The overhead of a row, in pairs.
    const BESIDE: usize = 8;
}

/// A sink that calls a function with each batch of pairs.
pub(super) struct Batches<F>(pub(super) F);

impl<F: Fn(&[(u32, u32)]) -> ControlFlow<()> + Sync> Sink for Batches<F> {
    fn take(&self, found: &mut Vec<(u32, u32)>) -> ControlFlow<()> {
        let ended = (self.0)(found);
        found.clear();
        ended
    }
}

/// Reserves room for more edges: doubles the capacity, but not beyond `capacity` edges unless they are needed.
fn reserve(edges: &mut Vec<u64>, more: usize, capacity: usize) {
    let needed = edges.len() + more;
    if needed > edges.capacity() {
        let wanted = (edges.capacity() * 2).min(capacity).max(needed);
        pages::reserve_exact(edges, wanted - edges.len());
    }
}
