//! From pairs of distinct sketches to pairs of documents, in ascending order.
//!
//! The search finds pairs in no order and some of them several times. They are gathered, sorted and
//! read off document by document. When there are more than the memory may hold, only those of the
//! first documents are kept, and the search is made again for the rest.

use std::convert::Infallible;
use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::groups::Repeats;
use super::search::Sink;
use super::{KeySource, Pair, SketchJoin, Work};
use crate::threads::{lock, unlocked};

/// Which pairs of documents stand for a pair of sketches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// All of them.
    Full,
    /// The pair of their first documents; and repeats are paired with the first of their sketch.
    Compact,
}

impl<K: KeySource> SketchJoin<'_, K> {
    /// Calls `f` with every pair of documents that was found, each once with `a < b`, in ascending
    /// order of `(a, b)`, until it breaks.
    ///
    /// A sketch that m documents share gives m (m - 1) / 2 pairs; [`SketchJoin::for_each_link`]
    /// gives m - 1.
    ///
    /// # Errors
    /// When a column of keys cannot be read: some pairs may have been given before.
    ///
    /// # Complexity
    /// The search as [`SketchJoin::explain`] forecasts it, and O(log n) for each pair. Pairs beyond
    /// the memory limit are searched again, once for each part of them that fits.
    pub fn for_each_pair<B>(
        &self,
        f: impl FnMut(Pair) -> ControlFlow<B>,
    ) -> Result<(ControlFlow<B>, Work), K::Error> {
        self.for_each(Form::Full, f)
    }

    /// Calls `f` with the pairs in compact form, in ascending order of `(a, b)`, until it breaks:
    /// each repeated document is linked to the first document of its sketch, and each two sketches
    /// that score high enough are linked by their first documents.
    ///
    /// # Errors
    /// As [`SketchJoin::for_each_pair`].
    pub fn for_each_link<B>(
        &self,
        f: impl FnMut(Pair) -> ControlFlow<B>,
    ) -> Result<(ControlFlow<B>, Work), K::Error> {
        self.for_each(Form::Compact, f)
    }

    /// Every pair, as [`SketchJoin::for_each_pair`] gives them; 12 bytes a pair.
    ///
    /// # Errors
    /// When a column of keys cannot be read.
    pub fn pairs(&self) -> Result<(Vec<Pair>, Work), K::Error> {
        self.collect(Form::Full)
    }

    /// Every link, as [`SketchJoin::for_each_link`] gives them; 12 bytes a link.
    ///
    /// # Errors
    /// When a column of keys cannot be read.
    pub fn links(&self) -> Result<(Vec<Pair>, Work), K::Error> {
        self.collect(Form::Compact)
    }

    fn collect(&self, form: Form) -> Result<(Vec<Pair>, Work), K::Error> {
        let mut pairs = Vec::new();
        let (ControlFlow::Continue(()), work) = self.for_each(form, |pair| {
            pairs.push(pair);
            ControlFlow::<Infallible>::Continue(())
        })?;
        Ok((pairs, work))
    }

    fn for_each<B>(
        &self,
        form: Form,
        mut f: impl FnMut(Pair) -> ControlFlow<B>,
    ) -> Result<(ControlFlow<B>, Work), K::Error> {
        let repeats = self.groups.repeat().then(|| Repeats::of(&self.groups));
        let view = View { join: self, form, repeats };
        let documents = self.documents() as u32;
        let (mut start, mut work) = (0, None);
        while start < documents {
            let gather = Gather {
                view: &view,
                start,
                end: AtomicU32::new(documents),
                edges: Mutex::default(),
                sorted: AtomicUsize::new(0),
            };
            let from = if view.both_ways() { 0 } else { start };
            let done = self.search(from, &gather)?;
            work.get_or_insert(done);
            let (range, edges) = gather.finish();
            let next = range.end;
            if let ControlFlow::Break(broken) = view.emit(range, &edges, &mut f) {
                return Ok((ControlFlow::Break(broken), work.unwrap_or_default()));
            }
            start = next;
        }
        Ok((ControlFlow::Continue(()), work.unwrap_or_default()))
    }
}

/// A join as seen by one form of its pairs.
struct View<'j, 'a, K> {
    join: &'j SketchJoin<'a, K>,
    form: Form,
    /// Only when some sketch is repeated.
    repeats: Option<Repeats>,
}

impl<K: KeySource> View<'_, '_, K> {
    /// Whether a pair of documents may begin with one of the later sketch.
    fn both_ways(&self) -> bool {
        self.form == Form::Full && self.repeats.is_some()
    }

    /// The first document from `start` on with which pairs of this form begin that have the sketch
    /// of the document `first`.
    #[inline]
    fn due(&self, first: u32, start: u32) -> Option<u32> {
        match &self.repeats {
            Some(repeats) if self.form == Form::Full => repeats.from(first, start).next(),
            _ => (first >= start).then_some(first),
        }
    }

    /// Calls `f` with the pairs that begin with documents of the range, given their sketches'
    /// edges, sorted.
    fn emit<B>(
        &self,
        range: Range<u32>,
        edges: &[u64],
        f: &mut impl FnMut(Pair) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        /// Edges that one task scores, about. Few enough to take little memory; fewer in tests, for more tasks.
        const STRETCH: usize = if cfg!(test) { 3 } else { 1 << 13 };
        let workers = &self.join.workers;
        // Each document of a sketch may be in a pair with each of another: that many pairs are not gathered.
        if workers.count() == 1 || self.both_ways() {
            return self.emit_in_order(range, edges, f);
        }
        let mut stretches = Vec::with_capacity(edges.len() / STRETCH + 1);
        let mut start = range.start;
        for edge in edges.iter().step_by(STRETCH).skip(1) {
            let end = (edge >> 32) as u32;
            if start < end {
                stretches.push(start..end);
                start = end;
            }
        }
        stretches.push(start..range.end);
        for some in stretches.chunks(8 * workers.count()) {
            let scored = workers.map(some.to_vec(), |documents| {
                let mut pairs = Vec::new();
                let _ = self.emit_in_order(documents, edges, &mut |pair| {
                    pairs.push(pair);
                    ControlFlow::<Infallible>::Continue(())
                });
                pairs
            });
            scored.into_iter().flatten().try_for_each(&mut *f)?;
        }
        ControlFlow::Continue(())
    }

    /// As [`View::emit`], on the calling thread.
    fn emit_in_order<B>(
        &self,
        range: Range<u32>,
        edges: &[u64],
        f: &mut impl FnMut(Pair) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let sketches = self.join.sketches;
        let from = |edges: &[u64], document: u32| {
            edges.partition_point(|&edge| edge < u64::from(document) << 32)
        };
        let mut others = Vec::new();
        // Those of documents that are the first of their sketch follow each other.
        let mut rest = &edges[from(edges, range.start)..];
        for a in range {
            let first = self.join.first_of(a);
            if first != a && self.form == Form::Compact {
                continue;
            }
            others.clear();
            let mut edges = if first == a { rest } else { &edges[from(edges, first)..] };
            let end = edges.iter().take_while(|&&edge| edge >> 32 == u64::from(first)).count();
            (edges, rest) = if first == a { edges.split_at(end) } else { (&edges[..end], rest) };
            let targets = edges.iter().map(|&edge| edge as u32);
            match (&self.repeats, self.form) {
                (None, _) => others.extend(targets),
                (Some(repeats), Form::Compact) => {
                    others.extend(repeats.from(first, a + 1));
                    others.extend(targets);
                }
                (Some(repeats), Form::Full) => {
                    others.extend(repeats.from(first, a + 1));
                    targets.for_each(|to| others.extend(repeats.from(to, a + 1)));
                }
            }
            others.sort_unstable();
            let (Some(sketch), false) = (sketches.get(a as usize), others.is_empty()) else {
                continue;
            };
            others.iter().for_each(|&b| sketches.prefetch(b));
            for &b in &others {
                let other = crate::sketch::Sketch::from_words(*sketches.words(b));
                f(Pair { a, b, score: sketch.score(&other) })?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The found pairs that begin with documents of a range, as many as fit the memory: the range ends
/// earlier when there are more.
struct Gather<'v, 'j, 'a, K> {
    view: &'v View<'j, 'a, K>,
    start: u32,
    end: AtomicU32,
    /// `from << 32 | to`, both the first documents of sketches.
    edges: Mutex<Vec<u64>>,
    /// So many of them are in order, each once.
    sorted: AtomicUsize,
}

impl<K: KeySource> Gather<'_, '_, '_, K> {
    /// Sorts the edges, drops those that were found before and, if still more than half of the room
    /// is taken, those of the later documents.
    fn make_room(&self, edges: &mut Vec<u64>) {
        edges.sort_unstable();
        edges.dedup();
        self.sorted.store(edges.len(), Ordering::Relaxed);
        if edges.len() * 2 <= self.view.join.pair_capacity {
            return;
        }
        let due = |edge: u64| self.view.due((edge >> 32) as u32, self.start).unwrap_or(u32::MAX);
        let mut dues: Vec<u32> = edges.iter().map(|&edge| due(edge)).collect();
        let half = dues.len() / 2;
        let middle = *dues.select_nth_unstable(half).1;
        let end = middle.max(self.start + 1).min(self.end());
        self.end.store(end, Ordering::Relaxed);
        edges.retain(|&edge| due(edge) < end);
        self.sorted.store(edges.len(), Ordering::Relaxed);
    }

    fn finish(self) -> (Range<u32>, Vec<u64>) {
        let end = self.end();
        let mut edges = unlocked(self.edges);
        self.view.join.workers.sort(&mut edges);
        edges.dedup();
        (self.start..end, edges)
    }
}

impl<K: KeySource> Sink for Gather<'_, '_, '_, K> {
    /// Drops repeats before the room is used up: the thread whose pair fills it would have to sort
    /// alone, and all others would wait.
    fn pause(&self) {
        let mut edges = lock(&self.edges);
        let quarter = self.view.join.pair_capacity / 4;
        let fresh = edges.len() - self.sorted.load(Ordering::Relaxed);
        if edges.len() >= 3 * quarter && fresh >= quarter {
            self.view.join.workers.sort(&mut edges);
            edges.dedup();
            self.sorted.store(edges.len(), Ordering::Relaxed);
        }
    }

    fn take(&self, found: &mut Vec<(u32, u32)>) {
        let mut edges = lock(&self.edges);
        for (a, b) in found.drain(..) {
            if self.wants(a) {
                edges.push(u64::from(a) << 32 | u64::from(b));
            }
            if self.view.both_ways() && self.wants(b) {
                edges.push(u64::from(b) << 32 | u64::from(a));
            }
            if edges.len() >= self.view.join.pair_capacity {
                self.make_room(&mut edges);
            }
        }
    }

    fn wants(&self, document: u32) -> bool {
        self.view.due(document, self.start).is_some_and(|due| due < self.end())
    }

    fn end(&self) -> u32 {
        self.end.load(Ordering::Relaxed)
    }
}
