//! Members of tar archives that are stored without their holes.
//!
//! # References
//! The GNU tar manual, "Storing Sparse Files": the old GNU format (type `S`), and the pax formats 0.0, 0.1 and 1.0.

use std::io::{self, Read};

use tar::{GnuExtSparseHeader, GnuSparseHeader, PaxExtensions};

use crate::source::{self, RATIO_FROM};
use crate::{Limits, Reason};

const BLOCK: u64 = 512;
/// The most runs of data of a member: a map of them is held in memory.
const RUNS: u64 = 1 << 20;

/// Where the stored bytes of a member belong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sparse {
    /// Offset and length of each run of data; `None` when they stand before the data.
    runs: Option<Vec<(u64, u64)>>,
    /// The length with the holes.
    size: u64,
    /// The name of the file, where the header's is made up.
    pub(crate) name: Option<Vec<u8>>,
}

impl Sparse {
    /// By a header of the old GNU format and the blocks that go on with its map. `None`: it cannot be read.
    pub(super) fn of_header(header: &tar::Header, more: &[u8]) -> Option<Self> {
        let gnu = header.as_gnu()?;
        let mut runs = Vec::new();
        let mut add = |run: &GnuSparseHeader| -> Option<()> {
            if !run.is_empty() {
                runs.push((run.offset().ok()?, run.length().ok()?));
            }
            Some(())
        };
        gnu.sparse.iter().try_for_each(&mut add)?;
        for block in more.chunks_exact(BLOCK as usize) {
            let mut map = GnuExtSparseHeader::new();
            map.as_mut_bytes().copy_from_slice(block);
            map.sparse().iter().try_for_each(&mut add)?;
        }
        let size = gnu.real_size().ok()?;
        Some(Self { runs: Some(runs), size, name: None })
    }

    /// By the records of pax headers. `None`: they do not say all that must be known.
    pub(super) fn of_records<'a>(headers: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let (mut size, mut name, mut map) = (None, None, None);
        let (mut offsets, mut lengths) = (Vec::new(), Vec::new());
        let mut is_before_data = false;
        for records in headers {
            for record in PaxExtensions::new(records).flatten() {
                let Some(key) = record.key_bytes().strip_prefix(b"GNU.sparse.") else { continue };
                let number = || record.value().ok()?.parse::<u64>().ok();
                match key {
                    b"size" | b"realsize" => size = Some(number()?),
                    b"name" => name = Some(record.value_bytes().to_vec()),
                    b"major" => is_before_data = number()? == 1,
                    b"map" => {
                        let numbers = record.value().ok()?.split(',').filter(|n| !n.is_empty());
                        let numbers: Option<Vec<u64>> = numbers.map(|n| n.parse().ok()).collect();
                        map = Some(numbers?.chunks_exact(2).map(|run| (run[0], run[1])).collect());
                    }
                    b"offset" => offsets.push(number()?),
                    b"numbytes" => lengths.push(number()?),
                    _ => {}
                }
            }
        }
        let runs = match (is_before_data, map) {
            (true, _) => None,
            (false, Some(runs)) => Some(runs),
            (false, None) if offsets.len() == lengths.len() => {
                Some(offsets.into_iter().zip(lengths).collect())
            }
            (false, None) => return None,
        };
        Some(Self { runs, size: size?, name })
    }

    /// The content with its holes, of what is stored.
    pub(super) fn content<R: Read>(&self, stored: R, len: u64, limits: &Limits) -> Content<R> {
        let holes = RATIO_FROM.max(len.saturating_mul(limits.ratio));
        let runs = self.runs.clone().map(Vec::into_iter);
        Content { stored, runs, run: None, at: 0, size: self.size, holes, limits: *limits }
    }
}

pub(super) struct Content<R> {
    stored: R,
    /// The runs that come; `None` before they have been read.
    runs: Option<std::vec::IntoIter<(u64, u64)>>,
    /// What is left of the run that is read, or comes next.
    run: Option<(u64, u64)>,
    at: u64,
    size: u64,
    /// How many bytes of holes may still be given.
    holes: u64,
    limits: Limits,
}

impl<R: Read> Content<R> {
    /// Reads the map that stands before the data: numbers in lines, filled up to whole blocks.
    fn map(&mut self) -> io::Result<Vec<(u64, u64)>> {
        let mut taken = 0;
        let count = self.number(&mut taken)?;
        if count > RUNS {
            return Err(damaged("a map of a sparse member that is too long"));
        }
        let mut runs = Vec::new();
        for _ in 0..count {
            runs.push((self.number(&mut taken)?, self.number(&mut taken)?));
        }
        let padding = taken.next_multiple_of(BLOCK) - taken;
        self.stored.read_exact(&mut [0; BLOCK as usize][..padding as usize])?;
        Ok(runs)
    }

    fn number(&mut self, taken: &mut u64) -> io::Result<u64> {
        let mut number = 0_u64;
        // 2^64 has 20 digits.
        for _ in 0..=20 {
            let mut byte = [0];
            self.stored.read_exact(&mut byte)?;
            *taken += 1;
            match byte[0] {
                b'\n' => return Ok(number),
                digit @ b'0'..=b'9' => {
                    let next = number.checked_mul(10);
                    let next = next.and_then(|n| n.checked_add(u64::from(digit - b'0')));
                    number = next.ok_or_else(|| damaged("a map of a sparse member"))?;
                }
                _ => break,
            }
        }
        Err(damaged("a map of a sparse member"))
    }
}

impl<R: Read> Read for Content<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.runs.is_none() {
            let runs = self.map().map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => damaged("cut short"),
                _ => e,
            })?;
            self.runs = Some(runs.into_iter());
        }
        if buffer.is_empty() {
            return Ok(0);
        }
        while self.run.is_none_or(|(_, len)| len == 0) {
            let Some(run) = self.runs.as_mut().and_then(Iterator::next) else { break };
            let end = run.0.checked_add(run.1);
            if run.0 < self.at || end.is_none_or(|end| end > self.size) {
                return Err(damaged("a map of a sparse member"));
            }
            self.run = Some(run);
        }
        let run = self.run.filter(|(_, len)| *len > 0);
        let most = |len: u64| usize::try_from(len).unwrap_or(usize::MAX).min(buffer.len());
        let hole = run.map_or(self.size, |(offset, _)| offset).saturating_sub(self.at);
        let n = if hole > 0 {
            let n = most(hole);
            self.holes = self
                .holes
                .checked_sub(n as u64)
                .ok_or_else(|| source::carry(Reason::Ratio { limit: self.limits.ratio }))?;
            buffer[..n].fill(0);
            n
        } else if let Some((offset, len)) = run {
            let n = most(len);
            let n = self.stored.read(&mut buffer[..n])?;
            if n == 0 {
                return Err(damaged("cut short"));
            }
            self.run = Some((offset + n as u64, len - n as u64));
            n
        } else {
            return Ok(0);
        };
        self.at += n as u64;
        if self.at > self.limits.file_bytes {
            return Err(source::carry(Reason::TooLarge { limit: self.limits.file_bytes }));
        }
        Ok(n)
    }
}

fn damaged(error: &str) -> io::Error {
    source::carry(Reason::Damaged { compression: "tar", error: error.to_owned() })
}
