//! AVX2: four words at once.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::super::{
    FETCHED, HALF, HALF_WORDS, Job, Kernel, LINE, LONG, LOW_SIZE, Lanes, Near, Packing, Planes,
    Probe, Run, Set, Target, first_of, prefetch_run, stored,
};
use crate::hamming::kernels::ones::{ones_32, ones_of_bytes};

/// AVX2, which comes with population counts and BMI2.
///
/// Bits are gathered without `pext`, which takes hundreds of cycles on some of these processors.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Avx2(());

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(in super::super) fn run<J: Job>(job: J) -> J::Output {
    job.run(Avx2(()))
}

impl Lanes for Avx2 {
    fn kernel(self) -> Kernel {
        Kernel(Set::Avx2)
    }

    by_own_functions!();
}

/// 32 bytes of an array.
#[inline]
#[target_feature(enable = "avx2")]
fn vector<const N: usize>(bytes: &[u8; N], at: usize) -> __m256i {
    assert!(at + size_of::<__m256i>() <= N);
    // SAFETY: the assertion keeps the 32 bytes inside the array.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().add(at).cast()) }
}

/// The places of the bytes of a line, after those of its first entry, which no bucket comes after.
static PLACES: [u8; LINE] = {
    let mut places = [i8::MAX as u8; LINE];
    let mut at = 8;
    while at < LINE {
        places[at] = at as u8 - 8;
        at += 1;
    }
    places
};

/// As that of the trait: the counts of the buckets before it are summed all at once.
#[inline]
#[target_feature(enable = "avx2")]
fn start_in_line(line: &[u8; LINE], place: usize) -> u64 {
    let place = _mm256_set1_epi8(place as i8);
    let sums = |at| {
        let counts = vector(line, at);
        let before = _mm256_cmpgt_epi8(place, vector(&PLACES, at));
        let long = _mm256_cmpeq_epi8(counts, _mm256_set1_epi8(LONG as i8));
        let short = _mm256_and_si256(_mm256_andnot_si256(long, counts), before);
        _mm256_sad_epu8(short, _mm256_setzero_si256())
    };
    let sums = _mm256_add_epi64(sums(0), sums(32));
    let sums = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
    let sum = _mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums)));
    first_of(line).wrapping_add(sum as u64)
}

/// As that of the trait, without a branch for each bucket.
#[inline]
#[target_feature(enable = "avx2")]
fn look_up_counts(directory: &[u8], probes: &[Probe], runs: &mut Vec<Run>) {
    super::look_up_counts(directory, probes, runs, |line, place| start_in_line(line, place));
}

/// The sums of the bytes of all words of each entry, in its first word.
#[inline]
#[target_feature(enable = "avx2")]
fn sums<const W: usize>(bytes: __m256i) -> __m256i {
    let mut sums = _mm256_sad_epu8(bytes, _mm256_setzero_si256());
    if W >= 2 {
        sums = _mm256_add_epi64(sums, _mm256_shuffle_epi32::<0x4e>(sums));
    }
    if W >= 4 {
        sums = _mm256_add_epi64(sums, _mm256_permute4x64_epi64::<0x4e>(sums));
    }
    sums
}

/// The words over and over.
#[inline]
#[target_feature(enable = "avx2")]
fn spread<const W: usize>(words: &[u64; W]) -> __m256i {
    let [a, b, c, d] = std::array::from_fn(|i| words[i % W] as i64);
    _mm256_setr_epi64x(a, b, c, d)
}

/// How entries become words.
#[derive(Clone, Copy)]
struct Unpack {
    from: __m256i,
    size: usize,
    second_half: usize,
}

impl Unpack {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(packing: &Packing) -> Unpack {
        let from = vector(&packing.halves, 0);
        Unpack { from, size: packing.bytes(), second_half: packing.second_half }
    }

    /// The entries from byte `at` on, 4 / W of them, of which `left` are asked for.
    ///
    /// # Safety
    /// The first of them is there and followed by [`PADDING`](super::super::PADDING) bytes; `at` is counted from
    /// where memory can be read.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn words<const W: usize>(self, entries: *const u8, at: usize, left: usize) -> __m256i {
        let in_half = (HALF_WORDS / W).max(1);
        // What is needed of the first half is read with its line alone: the next one was not fetched.
        let (within, needed) = (at % LINE, (in_half.min(left) * self.size).min(HALF));
        let crosses = within > LINE - HALF && within + needed <= LINE;
        let skipped = if crosses { within - (LINE - HALF) } else { 0 };
        let second = if W <= HALF_WORDS && left <= in_half { 0 } else { self.second_half };
        // SAFETY: both halves start before the padding ends by their 16 bytes at least, and `skipped` is not more
        // than `at`.
        let words = unsafe {
            let first = entries.add(at - skipped);
            _mm256_loadu2_m128i(first.add(second).cast(), first.cast())
        };
        // What is needed of a half still lies in it: it skips no more than it has to spare.
        let from = _mm256_add_epi8(self.from, _mm256_set1_epi8(skipped as i8));
        _mm256_shuffle_epi8(words, from)
    }
}

/// Which words are the first ones of up to `left` entries.
#[inline(always)]
fn first_words<const W: usize>(left: usize) -> u32 {
    let all = match W {
        1 => 0xf,
        2 => 0x5,
        _ => 0x1,
    };
    if left * W >= 4 { all } else { all & ((1 << (left * W)) - 1) }
}

/// Entries of one word by code, as [`Lanes::scan`].
///
/// Most of their runs have one or two entries: four words at once would compare little more than one does, and how many
/// there are cannot be predicted. So entries are listed first, always four of a run, of which those stay that are
/// there; then they are compared one by one, in a loop that does not ask whose they are.
#[inline]
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
fn scan_by_code(
    entries: &[u8],
    packing: &Packing,
    runs: &[Run],
    target: &Target<1>,
    near: &mut Vec<Near>,
) {
    let size = packing.bytes();
    let step = size as i64;
    let steps = _mm256_setr_epi64x(0, step, 2 * step, 3 * step);
    let stride = _mm256_set1_epi64x(STRIDE as i64 * step);
    let stored = stored(entries, size);
    let mut list = List::new();
    for (r, run) in (0u32..).zip(runs) {
        if let Some(run) = runs.get(r as usize + FETCHED) {
            prefetch_run(entries, size, run);
        }
        if !run.is_in(stored) {
            continue;
        }
        let begin = run.start.wrapping_mul(size as u64);
        let mut at = _mm256_add_epi64(_mm256_set1_epi64x(begin as i64), steps);
        let mut left = run.len as usize;
        loop {
            list.push(at, run.near, r, left);
            if list.is_full() {
                // SAFETY: what is listed are entries that are stored, and followed by the padding.
                unsafe { list.compare(entries, packing, runs, target, near) };
            }
            if left <= STRIDE {
                break;
            }
            left -= STRIDE;
            at = _mm256_add_epi64(at, stride);
        }
    }
    // SAFETY: as above.
    unsafe { list.compare(entries, packing, runs, target, near) };
}

/// Entries that are listed together.
const STRIDE: usize = 4;
/// The most entries of a list: as many as a word has bits.
const LISTED: usize = u64::BITS as usize;

/// Entries to compare, of several runs.
struct List {
    /// The first byte of each.
    at: [MaybeUninit<u64>; LISTED],
    /// [`Run::near`] of the run of each.
    near: [MaybeUninit<u64>; LISTED],
    /// The run of each, by its place among the runs.
    run: [MaybeUninit<u32>; LISTED],
    /// How many there are. All before it were written.
    len: usize,
}

impl List {
    #[inline(always)]
    fn new() -> List {
        let near = [MaybeUninit::uninit(); LISTED];
        List { at: near, near, run: [MaybeUninit::uninit(); LISTED], len: 0 }
    }

    /// Whether there is no room for as many as are listed together.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.len + STRIDE > LISTED
    }

    /// Lists the first entries of those that are left of a run. The list is not full.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn push(&mut self, at: __m256i, near: u64, run: u32, left: usize) {
        assert!(!self.is_full());
        let near = _mm256_set1_epi64x(near as i64);
        let run = _mm_set1_epi32(run as i32);
        // SAFETY: there is room for four, as was asserted.
        unsafe {
            _mm256_storeu_si256(self.at.as_mut_ptr().add(self.len).cast(), at);
            _mm256_storeu_si256(self.near.as_mut_ptr().add(self.len).cast(), near);
            _mm_storeu_si128(self.run.as_mut_ptr().add(self.len).cast(), run);
        }
        self.len += left.min(STRIDE);
    }

    /// Appends those that are within the distance, and empties the list.
    ///
    /// # Safety
    /// Eight bytes can be read from where each entry begins.
    #[inline]
    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
    unsafe fn compare(
        &mut self,
        entries: &[u8],
        packing: &Packing,
        runs: &[Run],
        target: &Target<1>,
        near: &mut Vec<Near>,
    ) {
        let len = std::mem::take(&mut self.len);
        // SAFETY: all before `len` were written.
        let read = |i: usize| unsafe { (self.at[i].assume_init(), self.near[i].assume_init()) };
        let distance = |i: usize| {
            let (at, centre) = read(i);
            // SAFETY: the caller's word.
            let entry = unsafe { entries.as_ptr().add(at as usize).cast::<u64>().read_unaligned() };
            let inside = packing.offset(entry) ^ centre;
            inside.count_ones() + ((entry ^ target.rest[0]) & target.mask[0]).count_ones()
        };
        let mut found = 0u64;
        for i in (0..len).rev() {
            found = found << 1 | u64::from(distance(i) <= target.max_distance);
        }
        while found != 0 {
            let i = found.trailing_zeros() as usize;
            found &= found - 1;
            // SAFETY: as above.
            let run = unsafe { self.run[i].assume_init() };
            let entry = read(i).0 / packing.bytes() as u64 - runs[run as usize].start;
            near.push(Near { run, entry: entry as u32, distance: distance(i) });
        }
    }
}

/// Four words at once: 4 / W entries.
///
/// Where entries lack data bits of a codeword, `LOW` is true.
#[inline]
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
fn scan<const W: usize, const BY_CODE: bool, const LOW: bool>(
    entries: &[u8],
    packing: &Packing,
    runs: &[Run],
    target: &Target<W>,
    near: &mut Vec<Near>,
) {
    if W == 1 && BY_CODE {
        return scan_by_code(entries, packing, runs, &target.first(), near);
    }
    let unpack = Unpack::new(packing);
    let lanes = 4 / W;
    let (rest, mask) = (spread(&target.rest), spread(&target.mask));
    let low = packing.low.map(|low| low as i32);
    let low = _mm256_setr_epi32(low[0], low[1], low[2], low[3], low[4], low[5], low[6], low[7]);
    let low_mask = _mm256_set1_epi64x((1 << packing.low_bits) - 1);
    let low_half = _mm256_set1_epi64x(0xffff_ffff);
    let first_word = match W {
        1 => _mm256_set1_epi64x(-1),
        2 => _mm256_setr_epi64x(-1, 0, -1, 0),
        _ => _mm256_setr_epi64x(-1, 0, 0, 0),
    };
    let (one, position) = (_mm256_set1_epi64x(1), _mm256_set1_epi64x(31));
    let stored = stored(entries, unpack.size);
    for (r, run) in runs.iter().enumerate() {
        if let Some(run) = runs.get(r + FETCHED) {
            prefetch_run(entries, unpack.size, run);
        }
        if !run.is_in(stored) {
            continue;
        }
        let outside = if BY_CODE { 0 } else { run.near.count_ones() };
        let Some(max) = target.max_distance.checked_sub(outside) else { continue };
        let beyond = _mm256_set1_epi64x(i64::from(max) + 1);
        let centre = _mm256_set1_epi64x(run.near as i64);
        let begin = run.start as usize * unpack.size;
        let len = run.len as usize;
        for first in (0..len).step_by(lanes) {
            let left = len - first;
            // SAFETY: the run's bytes are among the stored ones, which are followed by the padding.
            let lane =
                unsafe { unpack.words::<W>(entries.as_ptr(), begin + first * unpack.size, left) };
            let mut ones = ones_of_bytes(_mm256_and_si256(_mm256_xor_si256(lane, rest), mask));
            if BY_CODE {
                let wrong = _mm256_sllv_epi64(one, _mm256_and_si256(lane, position));
                let mut inside = _mm256_xor_si256(_mm256_srli_epi64::<1>(wrong), centre);
                if LOW {
                    let lows = _mm256_and_si256(_mm256_srli_epi64::<5>(lane), low_mask);
                    let lows = _mm256_permutevar8x32_epi32(low, lows);
                    inside = _mm256_xor_si256(inside, _mm256_and_si256(lows, low_half));
                }
                if W > 1 {
                    inside = _mm256_and_si256(inside, first_word);
                }
                // At most 16 of a byte of both.
                ones = _mm256_add_epi8(ones, ones_of_bytes(inside));
            }
            let distance = sums::<W>(ones);
            let within = _mm256_castsi256_pd(_mm256_cmpgt_epi64(beyond, distance));
            let mut found = _mm256_movemask_pd(within) as u32 & first_words::<W>(left);
            if found == 0 {
                continue;
            }
            let mut distances = [0u64; 4];
            // SAFETY: 32 bytes of the array are written.
            unsafe { _mm256_storeu_si256(distances.as_mut_ptr().cast(), distance) };
            while found != 0 {
                let lane = found.trailing_zeros() as usize;
                near.push(Near {
                    run: r as u32,
                    entry: (first + lane / W) as u32,
                    distance: distances[lane] as u32 + outside,
                });
                found &= found - 1;
            }
        }
    }
}

/// Low words, eight at once; the further bytes only of those that may be near.
#[inline]
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
fn scan_planes(planes: &Planes<'_>, runs: &[Run], target: &Target<1>, near: &mut Vec<Near>) {
    const LANES: usize = 32 / LOW_SIZE;
    let ([rest], [mask]) = (target.rest, target.mask);
    let (rest_low, mask_low) = (_mm256_set1_epi32(rest as i32), _mm256_set1_epi32(mask as i32));
    for (r, run) in runs.iter().enumerate() {
        if let Some(run) = runs.get(r + FETCHED) {
            prefetch_run(planes.low, LOW_SIZE, run);
        }
        let outside = run.near.count_ones();
        let Some(max) = target.max_distance.checked_sub(outside) else { continue };
        if !planes.hold(run) {
            continue;
        }
        let beyond = _mm256_set1_epi32(max as i32 + 1);
        let len = run.len as usize;
        for first in (0..len).step_by(LANES) {
            let at = (run.start as usize + first) * LOW_SIZE;
            // SAFETY: the run's low words are followed by 64 bytes more.
            let words = unsafe { _mm256_loadu_si256(planes.low.as_ptr().add(at).cast()) };
            let differ = _mm256_and_si256(_mm256_xor_si256(words, rest_low), mask_low);
            let distance = ones_32(differ);
            let within = _mm256_castsi256_ps(_mm256_cmpgt_epi32(beyond, distance));
            let present = if len - first >= LANES { 0xff } else { (1 << (len - first)) - 1 };
            let mut maybe = _mm256_movemask_ps(within) as u32 & present;
            while maybe != 0 {
                let entry = first as u32 + maybe.trailing_zeros();
                maybe &= maybe - 1;
                let Some(word) = planes.entry(run.start + u64::from(entry)) else { continue };
                let distance = ((word ^ rest) & mask).count_ones();
                if distance <= max {
                    near.push(Near { run: r as u32, entry, distance: distance + outside });
                }
            }
        }
    }
}
