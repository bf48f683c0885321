//! The innermost loops of a query: reading directories, scanning packed entries, prefetching.
//!
//! A table's *directory* says where the entries of a bucket lie; an *entry* holds what its bucket does
//! not say about a fingerprint. Every kernel gives the same answers.

#![expect(unsafe_code, reason = "functions compiled for instructions found at run time")]

#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::bits::{self, distance_in, ones};
use super::code::{self, SYNDROME_BITS, position};
#[cfg(target_arch = "x86_64")]
use crate::cpu;
use crate::prefetch::prefetch;

/// Bytes of a cache line, and of a line of a directory of counts.
pub(super) const LINE: usize = 64;
/// Buckets whose counts share a line; the other 8 bytes say where the first one's entries start.
pub(super) const LINE_BUCKETS: u32 = 56;
/// The count that stands for a bucket which is listed elsewhere, its entries too.
pub(super) const LONG: u8 = u8::MAX;
/// Bytes of a run that are fetched ahead.
const AHEAD: u64 = 512;
/// Runs of a table whose entries are under way at a time: more would be gone from the near cache before
/// they are scanned.
pub(super) const FETCHED: usize = 32;
/// Words of half a vector of four, and their bytes.
const HALF_WORDS: usize = 2;
const HALF: usize = 8 * HALF_WORDS;
/// Where a byte comes from that is 0.
const NOWHERE: u8 = 0x80;
/// Bytes after the last entry that may be read.
pub(super) const PADDING: usize = 64;

/// A bucket to look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Probe {
    /// The bucket.
    pub(super) key: u32,
    /// In which bits of the table's block the bucket's centre differs from the query.
    pub(super) near: u64,
}

/// Where in a word the bits of a key by code are, if they are two runs, and where they go.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyRuns {
    /// The lowest bit of the window.
    pub(super) window_at: u32,
    /// That of the plain bits, and how many these are.
    pub(super) plain_at: u32,
    pub(super) plain_bits: u32,
    /// Data bits of the codeword that are not in the key.
    pub(super) dropped: u32,
}

/// Entries to compare with the query: those of one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// The first entry.
    pub(super) start: u64,
    /// The number of entries.
    pub(super) len: u32,
    /// Their bucket.
    pub(super) key: u32,
    /// In which bits of the table's block the bucket's centre differs from the query.
    pub(super) near: u64,
}

impl Run {
    /// Whether all entries of the run are among the first `stored`.
    #[inline(always)]
    fn is_in(&self, stored: u64) -> bool {
        u64::from(self.len) <= stored && self.start <= stored - u64::from(self.len)
    }
}

/// An entry within the distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Near {
    /// The run, by its place in the list that was scanned.
    pub(super) run: u32,
    /// The entry, counted from the run's start.
    pub(super) entry: u32,
    /// Its distance from the query in bits.
    pub(super) distance: u32,
}

/// How the entries of a table are packed.
///
/// An entry is a number of `bits` bits, stored in whole bytes, little endian: the position of the wrong bit
/// (5 bits, for tables by code), then the lowest data bits, then the bits outside the table's block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packing {
    /// Bits of an entry.
    pub(super) bits: u32,
    /// Whether the first 5 bits are the position of a wrong bit.
    pub(super) syndrome: bool,
    /// Lowest data bits of the codeword that are in the entry, from 0 to 3.
    pub(super) low_bits: u32,
    /// The codewords of the low bits.
    pub(super) low: [u64; 8],
    /// For eight words of entries, stored one after the other, where each byte comes from, and which of
    /// the bytes come from anywhere.
    unpack: [u8; 64],
    unpacked: u64,
    /// The same for four words by halves of two, where a byte comes from its own half or, [`NOWHERE`], from
    /// nowhere. The second half starts `second_half` bytes after the first one.
    halves: [u8; 32],
    second_half: usize,
    /// [`Packing::offset`] by an entry's first byte: at most 5 bits of position and 3 of data.
    offsets: [u32; 256],
}

impl Packing {
    /// Entries of that many bits, for fingerprints of `W` words.
    pub(super) fn new<const W: usize>(
        bits: u32,
        syndrome: bool,
        low_bits: u32,
        low: [u64; 8],
    ) -> Packing {
        let size = bits.div_ceil(8) as usize;
        let mut unpack = [0; 64];
        let mut unpacked = 0;
        for (i, from) in unpack.iter_mut().enumerate() {
            let (entry, byte) = (i / (8 * W), i % (8 * W));
            if byte < size {
                *from = (entry * size + byte) as u8;
                unpacked |= 1 << i;
            }
        }
        let second_half = if W > HALF_WORDS { HALF } else { HALF_WORDS / W * size };
        let mut halves = [NOWHERE; 32];
        for (i, from) in halves.iter_mut().enumerate().filter(|(i, _)| unpacked >> i & 1 == 1) {
            *from = unpack[i] - (i / HALF * second_half) as u8;
        }
        let offsets = std::array::from_fn(|byte| {
            let missing = byte as u64 >> SYNDROME_BITS & ones(low_bits);
            let offset = position(byte as u32 & 31) ^ low[(missing & 7) as usize] as u32;
            if syndrome { offset } else { 0 }
        });
        Packing { bits, syndrome, low_bits, low, unpack, unpacked, halves, second_half, offsets }
    }

    /// Bytes of an entry.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bits.div_ceil(8) as usize
    }

    /// The bit of an entry where the bits outside the block start.
    #[inline]
    pub(super) fn rest_at(&self) -> u32 {
        self.low_bits + if self.syndrome { SYNDROME_BITS } else { 0 }
    }

    /// The entry's part of the difference inside the block, against the bucket's centre.
    #[inline]
    pub(super) fn offset(&self, entry: u64) -> u64 {
        u64::from(self.offsets[usize::from(entry as u8)])
    }
}

/// Entries of one word in two planes: the lowest 32 bits of all, then the further bytes of all.
///
/// A bucket's low words alone rule out nearly all of its entries: less memory is read, and twice as many are
/// compared at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planes<'a> {
    /// 4 bytes of each entry, and [`PADDING`].
    pub(super) low: &'a [u8],
    /// The other bytes of each, and [`PADDING`].
    pub(super) high: &'a [u8],
    /// How many these are, from 1 to 4.
    pub(super) high_size: usize,
}

/// Bytes of an entry in the low plane.
pub(super) const LOW_SIZE: usize = 4;

impl Planes<'_> {
    /// An entry, with bytes of the next one above its own.
    #[inline(always)]
    pub(super) fn entry(&self, place: u64) -> Option<u64> {
        let place = usize::try_from(place).ok()?;
        let (low_at, high_at) = (place.checked_mul(LOW_SIZE)?, place.checked_mul(self.high_size)?);
        let low = self.low.get(low_at..)?.first_chunk()?;
        let high = self.high.get(high_at..)?.first_chunk()?;
        Some(u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << 32)
    }

    /// Whether all entries of a run are there.
    #[inline(always)]
    fn hold(&self, run: &Run) -> bool {
        let inside = |plane: &[u8], size: usize| {
            let end = run.start.checked_add(u64::from(run.len))?.checked_mul(size as u64)?;
            Some(end.checked_add(PADDING as u64)? <= plane.len() as u64)
        };
        inside(self.low, LOW_SIZE) == Some(true) && inside(self.high, self.high_size) == Some(true)
    }
}

/// A query in the terms of a table's entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<const W: usize> {
    /// The query's bits outside the block, where an entry has them.
    pub(super) rest: [u64; W],
    /// Which bits of an entry are those.
    pub(super) mask: [u64; W],
    /// The distance, inclusive.
    pub(super) max_distance: u32,
}

impl<const W: usize> Target<W> {
    /// The first word of it: all of it, where entries are in planes.
    #[inline(always)]
    pub(super) fn first(&self) -> Target<1> {
        Target { rest: [self.rest[0]], mask: [self.mask[0]], max_distance: self.max_distance }
    }
}

/// Instructions that the processor is known to have: values of the types that implement this exist only
/// where they were found.
pub(super) trait Lanes: Copy {
    fn kernel(self) -> Kernel;

    /// See [`bits::gather`].
    #[inline(always)]
    fn gather<const W: usize>(self, value: &[u64; W], mask: &[u64; W]) -> [u64; W] {
        bits::gather(value, mask)
    }

    /// See [`bits::scatter`].
    #[inline(always)]
    fn scatter<const W: usize>(self, packed: &[u64; W], mask: &[u64; W]) -> [u64; W] {
        bits::scatter(packed, mask)
    }

    /// See [`code::data`].
    #[inline(always)]
    fn data(self, word: u32) -> u32 {
        code::data(word)
    }

    /// The keys by code of the first words, as many as can be told together. Returns how many these are.
    #[inline(always)]
    fn first_keys_by_code(self, _: &KeyRuns, _: &[u64], _: &mut [u32]) -> usize {
        0
    }

    /// See [`Kernel::look_up_counts`].
    #[inline(always)]
    fn look_up_counts(self, directory: &[u8], probes: &[Probe], runs: &mut Vec<Run>) {
        look_up_counts(directory, probes, runs);
    }

    /// See [`Kernel::scan`]. The first [`FETCHED`] runs were asked for; on the way, the entries of the
    /// others are.
    #[inline(always)]
    fn scan<const W: usize>(
        self,
        entries: &[u8],
        packing: &Packing,
        runs: &[Run],
        target: &Target<W>,
        near: &mut Vec<Near>,
    ) {
        scan(entries, packing, runs, target, near);
    }

    /// The same as [`Lanes::scan`] of entries in planes.
    #[inline(always)]
    fn scan_planes(
        self,
        planes: &Planes<'_>,
        runs: &[Run],
        target: &Target<1>,
        near: &mut Vec<Near>,
    ) {
        scan_planes(planes, runs, target, near);
    }
}

/// No instructions but those of every processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain;

impl Lanes for Plain {
    fn kernel(self) -> Kernel {
        Kernel::PORTABLE
    }
}

/// Work that is compiled for each set of instructions as a whole. What it calls has to be inlined into
/// it: other functions are compiled for every processor.
pub(super) trait Job {
    type Output;

    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// The instructions that queries run on. Only those that this processor has can be obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kernel(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Popcnt,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// The portable twin, which runs everywhere.
    pub(super) const PORTABLE: Kernel = Kernel(Set::Portable);

    /// Every kernel that this processor can run, slowest first.
    pub(super) fn available() -> Vec<Kernel> {
        let mut kernels = vec![Kernel::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            kernels.extend(cpu::has_popcnt().then_some(Kernel(Set::Popcnt)));
            kernels.extend(cpu::has_avx2().then_some(Kernel(Set::Avx2)));
            kernels.extend(cpu::has_avx512_bytes().then_some(Kernel(Set::Avx512)));
        }
        kernels
    }

    /// The fastest kernel that this processor can run.
    pub(super) fn best() -> Kernel {
        Kernel::available().pop().unwrap_or(Kernel::PORTABLE)
    }

    /// About how long one packed 64-bit entry takes in nanoseconds, for cost estimates.
    pub(super) fn entry_ns(self) -> f64 {
        match self.0 {
            Set::Portable => 3.0,
            #[cfg(target_arch = "x86_64")]
            Set::Popcnt => 1.6,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => 0.6,
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => 0.55,
        }
    }

    /// Does the work with these instructions.
    #[inline]
    pub(super) fn run<J: Job>(self, job: J) -> J::Output {
        match self.0 {
            Set::Portable => job.run(Plain),
            // SAFETY: a kernel is only made after its instructions were found on this processor.
            #[cfg(target_arch = "x86_64")]
            Set::Popcnt => unsafe { x86::popcnt::run(job) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::avx2::run(job) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::avx512::run(job) },
        }
    }

    /// Appends a run for every probe whose bucket has entries, by a directory of counts. A bucket with
    /// a count of [`LONG`] is appended with the length `u32::MAX`. A probe past the directory's end
    /// finds nothing.
    pub(super) fn look_up_counts(self, directory: &[u8], probes: &[Probe], runs: &mut Vec<Run>) {
        struct LookUp<'a>(&'a [u8], &'a [Probe], &'a mut Vec<Run>);
        impl Job for LookUp<'_> {
            type Output = ();

            #[inline(always)]
            fn run<L: Lanes>(self, lanes: L) {
                lanes.look_up_counts(self.0, self.1, self.2);
            }
        }
        self.run(LookUp(directory, probes, runs));
    }

    /// Appends every entry of the runs within the distance, run by run and in order. Runs that reach
    /// past the entries find nothing.
    #[cfg(test)]
    pub(super) fn scan<const W: usize>(
        self,
        entries: &[u8],
        packing: &Packing,
        runs: &[Run],
        target: &Target<W>,
        near: &mut Vec<Near>,
    ) {
        struct Scan<'a, const W: usize>(
            &'a [u8],
            &'a Packing,
            &'a [Run],
            &'a Target<W>,
            &'a mut Vec<Near>,
        );
        impl<const W: usize> Job for Scan<'_, W> {
            type Output = ();

            #[inline(always)]
            fn run<L: Lanes>(self, lanes: L) {
                lanes.scan(self.0, self.1, self.2, self.3, self.4);
            }
        }
        self.run(Scan(entries, packing, runs, target, near));
    }

    /// As [`Kernel::scan`], of entries in planes.
    #[cfg(test)]
    pub(super) fn scan_planes(
        self,
        planes: &Planes<'_>,
        runs: &[Run],
        target: &Target<1>,
        near: &mut Vec<Near>,
    ) {
        struct Scan<'a>(&'a Planes<'a>, &'a [Run], &'a Target<1>, &'a mut Vec<Near>);
        impl Job for Scan<'_> {
            type Output = ();

            #[inline(always)]
            fn run<L: Lanes>(self, lanes: L) {
                lanes.scan_planes(self.0, self.1, self.2, self.3);
            }
        }
        self.run(Scan(planes, runs, target, near));
    }
}

/// Prefetches the line of a directory of counts that a probe needs.
#[inline(always)]
pub(super) fn prefetch_counts(directory: &[u8], probe: &Probe) {
    prefetch(directory, line_of(probe.key).0 as u64);
}

/// Prefetches the first entries of a run, each of `size` bytes.
#[inline(always)]
pub(super) fn prefetch_run(entries: &[u8], size: usize, run: &Run) {
    let from = run.start.wrapping_mul(size as u64);
    let len = (u64::from(run.len) * size as u64).clamp(1, AHEAD);
    prefetch(entries, from);
    // Mostly the last line is the first one: to ask for it again costs less than a branch.
    let last = from.wrapping_add(len - 1);
    prefetch(entries, last);
    if len > LINE as u64 {
        let mut at = from.wrapping_add(LINE as u64);
        while at < last {
            prefetch(entries, at);
            at += LINE as u64;
        }
    }
}

/// Where the counts of a bucket lie: its line, and its place in it.
#[inline(always)]
pub(super) fn line_of(key: u32) -> (usize, usize) {
    ((key / LINE_BUCKETS) as usize * LINE, (key % LINE_BUCKETS) as usize)
}

/// The first entry of a line's first bucket.
#[inline(always)]
fn first_of(line: &[u8; LINE]) -> u64 {
    u64::from_le_bytes(line[..8].try_into().expect("8 bytes"))
}

#[inline(always)]
fn look_up_counts(directory: &[u8], probes: &[Probe], runs: &mut Vec<Run>) {
    let (lines, _) = directory.as_chunks::<LINE>();
    for probe in probes {
        let (line, place) = line_of(probe.key);
        let Some(line) = lines.get(line / LINE) else { continue };
        let count = line[8 + place];
        if count == 0 {
            continue;
        }
        let (start, len) = if count == LONG {
            (0, u32::MAX)
        } else {
            (first_of(line).wrapping_add(sum_before(line, place)), u32::from(count))
        };
        runs.push(Run { start, len, key: probe.key, near: probe.near });
    }
}

/// The sum of the counts before `place`, those of [`LONG`] left out.
#[inline(always)]
fn sum_before(line: &[u8; LINE], place: usize) -> u64 {
    const LOW: u64 = 0x00ff_00ff_00ff_00ff;
    let mut sum = 0;
    for word in 0..7 {
        let kept = place.saturating_sub(word * 8).min(8) as u32;
        let at = 8 + word * 8;
        let counts = u64::from_le_bytes(line[at..at + 8].try_into().expect("8 bytes"));
        let mut counts = counts & ones(kept * 8);
        // A byte of all ones: its complement is 0.
        let zeros = !counts;
        if zeros.wrapping_sub(0x0101_0101_0101_0101) & counts & 0x8080_8080_8080_8080 != 0 {
            for byte in 0..8 {
                if (counts >> (8 * byte)) as u8 == LONG {
                    counts &= !(0xff << (8 * byte));
                }
            }
        }
        let pairs = (counts & LOW) + (counts >> 8 & LOW);
        sum += pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48;
    }
    sum
}

/// Numbers without padding, for which all bytes are valid.
pub(super) trait Words: Copy {}
impl Words for u16 {}
impl Words for u32 {}
impl<const W: usize> Words for [u64; W] {}
impl Words for u64 {}

/// The bytes as little-endian numbers, in place; `None` when the machine or the bytes' place forbid it.
pub(super) fn words_of<T: Words>(bytes: &[u8]) -> Option<&[T]> {
    // SAFETY: every pattern of bytes is a `T`.
    let (before, words, after) = unsafe { bytes.align_to::<T>() };
    (cfg!(target_endian = "little") && before.is_empty() && after.is_empty()).then_some(words)
}

/// The entry at byte `at` of `bytes`, which must hold `8 * W` bytes from there on.
#[inline(always)]
pub(super) fn read_entry<const W: usize>(bytes: &[u8], at: usize) -> [u64; W] {
    let mut entry = [0; W];
    let (words, _) = bytes[at..at + 8 * W].as_chunks::<8>();
    for w in 0..W {
        entry[w] = u64::from_le_bytes(words[w]);
    }
    entry
}

/// The number of entries of `size` bytes, without the [`PADDING`].
#[inline(always)]
fn stored(entries: &[u8], size: usize) -> u64 {
    (entries.len().saturating_sub(PADDING) / size.max(1)) as u64
}

#[inline(always)]
fn scan<const W: usize>(
    entries: &[u8],
    packing: &Packing,
    runs: &[Run],
    target: &Target<W>,
    near: &mut Vec<Near>,
) {
    let size = packing.bytes();
    let stored = stored(entries, size);
    for (r, run) in runs.iter().enumerate() {
        if let Some(run) = runs.get(r + FETCHED) {
            prefetch_run(entries, size, run);
        }
        if !run.is_in(stored) {
            continue;
        }
        for i in 0..run.len {
            let entry = read_entry::<W>(entries, (run.start as usize + i as usize) * size);
            let mut distance = (packing.offset(entry[0]) ^ run.near).count_ones();
            distance += distance_in(&entry, &target.rest, &target.mask);
            if distance <= target.max_distance {
                near.push(Near { run: r as u32, entry: i, distance });
            }
        }
    }
}

#[inline(always)]
fn scan_planes(planes: &Planes<'_>, runs: &[Run], target: &Target<1>, near: &mut Vec<Near>) {
    let ([rest], [mask]) = (target.rest, target.mask);
    for (r, run) in runs.iter().enumerate() {
        if let Some(run) = runs.get(r + FETCHED) {
            prefetch_run(planes.low, LOW_SIZE, run);
        }
        if !planes.hold(run) {
            continue;
        }
        let outside = run.near.count_ones();
        let lows = &planes.low[run.start as usize * LOW_SIZE..][..run.len as usize * LOW_SIZE];
        for (i, low) in (0..).zip(lows.as_chunks().0) {
            let low = (u32::from_le_bytes(*low) ^ rest as u32) & mask as u32;
            if low.count_ones() + outside > target.max_distance {
                continue;
            }
            let Some(entry) = planes.entry(run.start + u64::from(i)) else { continue };
            let distance = ((entry ^ rest) & mask).count_ones() + outside;
            if distance <= target.max_distance {
                near.push(Near { run: r as u32, entry: i, distance });
            }
        }
    }
}
