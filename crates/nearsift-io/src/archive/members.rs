//! The first pass over an archive: the records of its members, one member after another.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Archive, Kind, Member, prepare};
use crate::inputs::{InputFile, Seen, State};
use crate::parse::Slot;
use crate::split::{Passed, Piece, Pieces, Way, open_documents};
use crate::{Format, Reason};

pub(crate) struct Members {
    archive: Archive,
    name: Arc<str>,
    way: Way,
    current: Option<(Arc<str>, Box<dyn Pieces>)>,
    /// Records of the member that is read.
    records: u64,
    seen: Vec<(Arc<str>, Seen)>,
    queue: VecDeque<Piece>,
    /// How many members are of other kinds, and the first of them.
    others: Option<(u64, String)>,
    start: usize,
}

impl Members {
    pub(crate) fn open(file: &InputFile, way: &Way, start: usize) -> Result<Self, Reason> {
        Ok(Self {
            archive: Archive::open(file.origin(), file.format(), &way.options.limits)?,
            name: file.name().into(),
            way: way.clone(),
            current: None,
            records: 0,
            seen: Vec::new(),
            queue: VecDeque::new(),
            others: None,
            start,
        })
    }

    /// Begins with a member of documents.
    fn begin(&mut self, member: &Member, format: Format) {
        let name = Archive::full_name(&self.name, member);
        self.records = 0;
        let stream = self.archive.content(member);
        let opened = stream.and_then(|s| prepare(s, format, &self.way.options));
        let opened = opened.and_then(|(content, damage)| {
            if let Some(reason) = damage {
                self.queue.push_back(Piece::Note { name: Arc::clone(&name), reason });
            }
            open_documents(content, format, &self.way, self.start)
        });
        match opened {
            Ok(pieces) => {
                self.current = Some((Arc::clone(&name), pieces));
                self.queue.push_back(Piece::Member { name, format });
            }
            Err(reason) => {
                let passed = Passed::default();
                let seen = Seen { records: 0, state: State::Refused, passed };
                self.seen.push((Arc::clone(&name), seen));
                self.queue.push_back(Piece::Note { name, reason });
            }
        }
    }
}

impl Pieces for Members {
    fn next(&mut self, buffer: &mut Vec<u8>, cells: &mut Vec<Slot<'static>>) -> Option<Piece> {
        loop {
            if let Some(piece) = self.queue.pop_front() {
                return Some(piece);
            }
            if let Some((name, pieces)) = &mut self.current {
                if let Some(piece) = pieces.next(buffer, cells) {
                    self.records += u64::from(matches!(piece, Piece::Record { .. }));
                    return Some(piece);
                }
                let (records, passed) = (self.records, pieces.passed());
                let seen = Seen { records, state: State::Read, passed };
                self.seen.push((Arc::clone(name), seen));
                self.current = None;
            }
            self.start = buffer.len();
            let name = || Arc::clone(&self.name);
            match self.archive.next() {
                Some(Ok(member)) => match member.kind(&self.way.options) {
                    Kind::Documents(format) => self.begin(&member, format),
                    kind @ (Kind::Archive | Kind::Unread(_)) => {
                        let name = Archive::full_name(&self.name, &member);
                        let error = match kind {
                            Kind::Unread(error) => error,
                            _ => {
                                "an archive inside an archive: not read, kept as in the input; unpack it first"
                            }
                        };
                        return Some(Piece::Note { name, reason: Reason::Archive { error } });
                    }
                    Kind::Other if member.is_file => {
                        self.others.get_or_insert((0, member.name)).0 += 1;
                    }
                    Kind::Other => {}
                },
                Some(Err(reason)) => return Some(Piece::Note { name: name(), reason }),
                None => {
                    let (members, example) = self.others.take()?;
                    let reason = Reason::OtherMembers { members, example };
                    return Some(Piece::Note { name: name(), reason });
                }
            }
        }
    }

    fn start(&self) -> usize {
        self.current.as_ref().map_or(self.start, |(_, pieces)| pieces.start())
    }

    fn rebase(&mut self, by: usize) {
        match &mut self.current {
            Some((_, pieces)) => pieces.rebase(by),
            None => self.start -= by,
        }
    }

    fn consumed(&self) -> u64 {
        self.archive.consumed()
    }

    fn passed(&self) -> Passed {
        let (bytes, digest) = self.archive.digest();
        Passed { bytes, digest, members: self.seen.clone(), ..Passed::default() }
    }
}
