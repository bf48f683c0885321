//! Which documents of a group stay, so that each other one is near one of them.

use std::collections::HashSet;

use rayon::prelude::*;

use super::majority::{Accepted, Capped, Groups, Link, Linked, ordered};
use super::{Judge, KeepOrder};
use crate::threads::in_pool;

/// After this many refusals the judge is not called again for a document: only links place it. So a group that
/// falls into very many parts takes linear time.
pub(super) const REFUSALS: u32 = 16;

/// Documents of a large group that are judged together, on all threads.
pub(super) const TOGETHER: usize = 1024;

/// No document.
const NONE: u32 = u32::MAX;

/// Where a document of a component went.
pub(super) struct Placed {
    pub document: u32,
    /// The document that stays in its place, or itself.
    pub representative: u32,
    /// The best kept document of its cluster.
    pub best: u32,
}

/// The documents of a component, each placed.
pub(super) struct Covered {
    pub placed: Vec<Placed>,
    /// Accepted pairs of documents and their representatives that were no links.
    pub judged: Vec<Link>,
    pub capped: Capped,
}

/// Goes through the documents of a component from the best one on. Each goes to the first of the kept documents of its own
/// group that it is near: by a link, else by the judge. If there is none it goes to the first kept
/// document of another group that it is linked with. If there is none either it is kept.
///
/// A kept document stands for `most` documents at most, itself among them.
///
/// # Complexity
/// O(links + n log n) and at most 16 refusals of the judge for each document.
///
/// # Errors
/// When the judge cannot judge.
pub(super) fn cover<J: Judge>(
    links: &[Linked],
    groups: &mut Groups,
    keep: &KeepOrder,
    most: u32,
    accepted: &mut Accepted<'_, J>,
    judges: &(impl Fn() -> J + Sync),
) -> Result<Covered, J::Error> {
    let cover = Cover::new(links, groups, keep, most);
    cover.place(accepted, judges)
}

/// Documents have their turns here: their places in the order of keeping.
struct Cover {
    /// The document of each turn.
    documents: Vec<u32>,
    /// The group of each, as a number below that of the documents.
    groups: Vec<u32>,
    /// The turns of better documents that each is linked with: from `starts[turn]` to `starts[turn + 1]`, ascending.
    better: Vec<u32>,
    starts: Vec<usize>,
    /// Documents in each group.
    sizes: Vec<u32>,
    most: u32,
    /// The turn of the document that stays for each one that was placed.
    representatives: Vec<u32>,
    /// How many documents a kept one stands for, itself among them.
    loads: Vec<u32>,
    /// For each group the first and the last of its kept documents that are not full.
    open: Vec<[u32; 2]>,
    /// The next of them.
    next: Vec<u32>,
}

impl Cover {
    fn new(links: &[Linked], groups: &mut Groups, keep: &KeepOrder, most: u32) -> Cover {
        let n = groups.documents.len();
        let mut places: Vec<u32> = (0..n as u32).collect();
        places.sort_unstable_by_key(|&place| keep.rank(groups.documents[place as usize]));
        let mut turn_of = vec![0; n];
        for (turn, &place) in (0..).zip(&places) {
            turn_of[place as usize] = turn;
        }
        let mut sizes = vec![0; n];
        let group = |&place: &u32| {
            let root = groups.components.root(place);
            sizes[root as usize] += 1;
            root
        };
        let of_turns: Vec<u32> = places.iter().map(group).collect();
        let documents = places.iter().map(|&place| groups.documents[place as usize]).collect();

        let turn = |document: u32| turn_of[groups.place(document) as usize];
        let ends = || links.iter().map(|Linked { link, .. }| ordered(turn(link.a), turn(link.b)));
        let mut starts = vec![0; n + 1];
        ends().for_each(|(_, worse)| starts[worse as usize + 1] += 1);
        for turn in 1..starts.len() {
            starts[turn] += starts[turn - 1];
        }
        let (mut better, mut free) = (vec![0; links.len()], starts.clone());
        for (best, worse) in ends() {
            let free = &mut free[worse as usize];
            better[*free] = best;
            *free += 1;
        }
        for turn in 0..n {
            better[starts[turn]..starts[turn + 1]].sort_unstable();
        }
        Cover {
            documents,
            groups: of_turns,
            better,
            starts,
            sizes,
            most,
            representatives: vec![NONE; n],
            loads: vec![0; n],
            open: vec![[NONE; 2]; n],
            next: vec![NONE; n],
        }
    }

    fn place<J: Judge>(
        mut self,
        accepted: &mut Accepted<'_, J>,
        judges: &(impl Fn() -> J + Sync),
    ) -> Result<Covered, J::Error> {
        let (mut judged, mut capped, mut full) = (Vec::new(), Capped::default(), HashSet::new());
        for turn in 0..self.documents.len() as u32 {
            let [own, other] = self.linked(turn, |full_one| {
                capped.links += 1;
                full.insert(full_one);
            });
            let to = if own != NONE {
                own
            } else if let Some((near, strength)) = self.judge(turn, accepted, judges)? {
                let (a, b) = ordered(self.document(near), self.document(turn));
                judged.push(Link { a, b, strength });
                near
            } else {
                other
            };
            match to {
                NONE => self.keep(turn),
                near => {
                    self.representatives[turn as usize] = near;
                    self.loads[near as usize] += 1;
                }
            }
        }
        let is_full = |&turn: &u32| {
            let turn = turn as usize;
            self.representatives[turn] == turn as u32 && self.loads[turn] == self.most
        };
        let is_of_more = |&turn: &u32| self.sizes[self.groups[turn as usize] as usize] > self.most;
        full.extend((0..self.documents.len() as u32).filter(is_full).filter(is_of_more));
        capped.groups = full.len() as u32;
        Ok(Covered { placed: self.placed(), judged, capped })
    }

    fn document(&self, turn: u32) -> u32 {
        self.documents[turn as usize]
    }

    fn links_of(&self, turn: u32) -> &[u32] {
        &self.better[self.starts[turn as usize]..self.starts[turn as usize + 1]]
    }

    fn is_open(&self, turn: u32) -> bool {
        self.representatives[turn as usize] == turn && self.loads[turn as usize] < self.most
    }

    /// The first open kept documents that one is linked with: of its own group, and of others. `NONE` for none.
    fn linked(&self, turn: u32, mut is_full: impl FnMut(u32)) -> [u32; 2] {
        let mut first = [NONE; 2];
        for &near in self.links_of(turn) {
            if self.representatives[near as usize] != near {
                continue;
            }
            if !self.is_open(near) {
                is_full(near);
                continue;
            }
            let is_other = self.groups[near as usize] != self.groups[turn as usize];
            let first = &mut first[usize::from(is_other)];
            *first = near.min(*first);
        }
        first
    }

    /// The first open kept document of its group that the judge finds one near to, and their strength.
    fn judge<J: Judge>(
        &mut self,
        turn: u32,
        accepted: &mut Accepted<'_, J>,
        judges: &(impl Fn() -> J + Sync),
    ) -> Result<Option<(u32, u32)>, J::Error> {
        let group = self.groups[turn as usize] as usize;
        let (mut before, mut at) = (NONE, self.open[group][0]);
        let mut refusals = 0;
        while at != NONE && refusals < REFUSALS {
            let next = self.next[at as usize];
            if !self.is_open(at) {
                self.close(group, before, at);
                at = next;
                continue;
            }
            let (a, b) = ordered(self.document(at), self.document(turn));
            if accepted.judged(a, b).is_none()
                && self.sizes[group] as usize >= TOGETHER
                && in_pool()
            {
                self.judge_ahead(turn, at, accepted, judges)?;
            }
            let strength = match accepted.judged(a, b) {
                Some(strength) => strength,
                None => accepted.judge(a, b)?,
            };
            match strength {
                Some(strength) => return Ok(Some((at, strength))),
                None => refusals += 1,
            }
            (before, at) = (at, next);
        }
        Ok(None)
    }

    /// Judges the next documents of a group against one of its kept documents, on all threads.
    fn judge_ahead<J: Judge>(
        &self,
        turn: u32,
        kept: u32,
        accepted: &mut Accepted<'_, J>,
        judges: &(impl Fn() -> J + Sync),
    ) -> Result<(), J::Error> {
        let room = (self.most - self.loads[kept as usize]) as usize;
        let pairs: Vec<(u32, u32)> = (turn..self.documents.len() as u32)
            .take(4 * TOGETHER)
            .filter(|&other| self.groups[other as usize] == self.groups[kept as usize])
            .filter(|&other| self.linked(other, |_| {})[0] == NONE)
            .map(|other| ordered(self.document(kept), self.document(other)))
            .filter(|&(a, b)| accepted.judged(a, b).is_none())
            .take(TOGETHER.min(room))
            .collect();
        let judged: Vec<Option<u32>> = pairs
            .par_iter()
            .with_min_len(32)
            .map_init(judges, |judge, &(a, b)| judge.strength(a, b))
            .collect::<Result<_, J::Error>>()?;
        pairs.into_iter().zip(judged).for_each(|(pair, strength)| accepted.learn(pair, strength));
        Ok(())
    }

    /// Keeps a document, and offers it to the others of its group.
    fn keep(&mut self, turn: u32) {
        self.representatives[turn as usize] = turn;
        self.loads[turn as usize] = 1;
        let [first, last] = &mut self.open[self.groups[turn as usize] as usize];
        match *last {
            NONE => *first = turn,
            last => self.next[last as usize] = turn,
        }
        *last = turn;
    }

    /// Takes a kept document that is full out of its group's list, given the one before it.
    fn close(&mut self, group: usize, before: u32, full: u32) {
        let next = self.next[full as usize];
        let [first, last] = &mut self.open[group];
        match before {
            NONE => *first = next,
            before => self.next[before as usize] = next,
        }
        if *last == full {
            *last = before;
        }
    }

    /// The clusters: a group that is not too large and not all kept is one, and of another one each kept document with
    /// those that it stands for.
    fn placed(&self) -> Vec<Placed> {
        let n = self.documents.len();
        let (mut best, mut sizes, mut kept) = (vec![NONE; n], vec![0u32; n], vec![0u32; n]);
        for turn in 0..n {
            let group = self.groups[self.representatives[turn] as usize] as usize;
            sizes[group] += 1;
            kept[group] += u32::from(self.representatives[turn] as usize == turn);
            best[group] = best[group].min(self.representatives[turn]);
        }
        let place = |turn: usize| {
            let representative = self.representatives[turn];
            let group = self.groups[representative as usize] as usize;
            let is_divided = sizes[group] > self.most || kept[group] == sizes[group];
            let best = if is_divided { representative } else { best[group] };
            Placed {
                document: self.documents[turn],
                representative: self.document(representative),
                best: self.document(best),
            }
        };
        (0..n).map(place).collect()
    }
}
