//! AVX-512: eight words at once.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::super::super::bits::{get, put};
use super::super::super::code::{DATA_BITS, SYNDROME_BITS, WINDOW_BITS};
use super::super::{
    FETCHED, Job, Kernel, KeyRuns, LINE, LOW_SIZE, Lanes, Near, Packing, Planes, Probe, Run, Set,
    Target, first_of, prefetch_run, stored,
};

/// AVX-512 with population counts and permutations of bytes, and BMI2.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Avx512(());

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,popcnt,bmi1,bmi2")]
pub(in super::super) fn run<J: Job>(job: J) -> J::Output {
    job.run(Avx512(()))
}

impl Lanes for Avx512 {
    fn kernel(self) -> Kernel {
        Kernel(Set::Avx512)
    }

    #[inline(always)]
    fn gather<const W: usize>(self, value: &[u64; W], mask: &[u64; W]) -> [u64; W] {
        // SAFETY: the instructions were found before this value was made.
        unsafe { gather(value, mask) }
    }

    #[inline(always)]
    fn scatter<const W: usize>(self, packed: &[u64; W], mask: &[u64; W]) -> [u64; W] {
        // SAFETY: as above.
        unsafe { scatter(packed, mask) }
    }

    by_own_functions!();

    #[inline(always)]
    fn first_keys_by_code(self, runs: &KeyRuns, words: &[u64], keys: &mut [u32]) -> usize {
        // SAFETY: as above.
        unsafe { first_keys_by_code(runs, words, keys) }
    }
}

#[inline]
#[target_feature(enable = "bmi2,popcnt")]
fn gather<const W: usize>(value: &[u64; W], mask: &[u64; W]) -> [u64; W] {
    let mut out = [0; W];
    if W == 1 {
        out[0] = _pext_u64(value[0], mask[0]);
        return out;
    }
    let mut at = 0;
    for w in 0..W {
        let count = mask[w].count_ones();
        put(&mut out, at, _pext_u64(value[w], mask[w]), count);
        at += count;
    }
    out
}

#[inline]
#[target_feature(enable = "bmi2,popcnt")]
fn scatter<const W: usize>(packed: &[u64; W], mask: &[u64; W]) -> [u64; W] {
    let mut out = [0; W];
    if W == 1 {
        out[0] = _pdep_u64(packed[0], mask[0]);
        return out;
    }
    let mut at = 0;
    for w in 0..W {
        let count = mask[w].count_ones();
        out[w] = _pdep_u64(get(packed, at, count), mask[w]);
        at += count;
    }
    out
}

/// As that of the trait.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,popcnt,bmi1,bmi2")]
fn start_in_line(line: &[u8; LINE], place: usize) -> u64 {
    // SAFETY: 64 bytes of the line are read.
    let counts = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
    let before = ((1u64 << place) - 1) << 8;
    let short = _mm512_mask_cmpneq_epu8_mask(before, counts, _mm512_set1_epi8(-1));
    let sums = _mm512_sad_epu8(_mm512_maskz_mov_epi8(short, counts), _mm512_setzero_si512());
    first_of(line).wrapping_add(_mm512_reduce_add_epi64(sums) as u64)
}

/// As that of the trait, without a branch for each bucket.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,popcnt,bmi1,bmi2")]
fn look_up_counts(directory: &[u8], probes: &[Probe], runs: &mut Vec<Run>) {
    super::look_up_counts(directory, probes, runs, |line, place| start_in_line(line, place));
}

/// The words over and over.
#[inline]
#[target_feature(enable = "avx512f")]
fn spread<const W: usize>(words: &[u64; W]) -> __m512i {
    if W == 1 {
        return _mm512_set1_epi64(words[0] as i64);
    }
    let mut all = [0u64; 8];
    for (i, word) in all.iter_mut().enumerate() {
        *word = words[i % W];
    }
    // SAFETY: 64 bytes of the array are read.
    unsafe { _mm512_loadu_si512(all.as_ptr().cast()) }
}

/// Hits for which there is room at least before the next runs are scanned.
const ROOM: usize = 64;

/// What entries by code say of the bits inside their table's block.
#[derive(Clone, Copy)]
struct Inside {
    low: __m512i,
    low_mask: __m512i,
}

impl Inside {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(packing: &Packing) -> Inside {
        // SAFETY: 64 bytes of the array are read.
        let low = unsafe { _mm512_loadu_si512(packing.low.as_ptr().cast()) };
        Inside { low, low_mask: _mm512_set1_epi64((1 << packing.low_bits) - 1) }
    }

    /// In which of these bits entries differ from the query, if the bucket's centre does in those of `centre`. Where entries lack data
    /// bits of a codeword, `LOW` is true.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn differ<const LOW: bool>(self, entries: __m512i, centre: __m512i) -> __m512i {
        let wrong = _mm512_and_si512(entries, _mm512_set1_epi64(31));
        let wrong = _mm512_srli_epi64::<1>(_mm512_sllv_epi64(_mm512_set1_epi64(1), wrong));
        if !LOW {
            return _mm512_xor_si512(wrong, centre);
        }
        let lows = _mm512_and_si512(_mm512_srli_epi64::<SYNDROME_BITS>(entries), self.low_mask);
        let lows = _mm512_permutexvar_epi64(lows, self.low);
        _mm512_ternarylogic_epi64::<0x96>(wrong, lows, centre)
    }
}

/// Writes what was found of entries of so many words, the first of which is entry `first` of a run. Returns how many that is.
#[inline]
#[target_feature(enable = "avx512f,bmi1")]
fn write_found(
    mut found: u8,
    distance: __m512i,
    words: u32,
    (run, first): (u32, u32),
    room: &mut [MaybeUninit<Near>],
) -> usize {
    let mut distances = [0u64; 8];
    // SAFETY: 64 bytes of the array are written.
    unsafe { _mm512_storeu_si512(distances.as_mut_ptr().cast(), distance) };
    let mut hits = 0;
    while found != 0 {
        let lane = found.trailing_zeros();
        let (entry, distance) = (first + lane / words, distances[lane as usize] as u32);
        room[hits].write(Near { run, entry, distance });
        hits += 1;
        found &= found - 1;
    }
    hits
}

/// Eight words at once: 8 / W entries, unpacked by one permutation of bytes.
///
/// Where entries lack data bits of a codeword, `LOW` is true.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,popcnt,bmi1,bmi2")]
fn scan<const W: usize, const BY_CODE: bool, const LOW: bool>(
    entries: &[u8],
    packing: &Packing,
    runs: &[Run],
    target: &Target<W>,
    near: &mut Vec<Near>,
) {
    let size = packing.bytes();
    let lanes = 8 / W;
    // SAFETY: 64 bytes of the array are read.
    let from = unsafe { _mm512_loadu_si512(packing.unpack.as_ptr().cast()) };
    let inside = Inside::new(packing);
    let (rest, mask) = (spread(&target.rest), spread(&target.mask));
    let max = _mm512_set1_epi64(i64::from(target.max_distance));
    let first_words: u8 = match W {
        1 => 0xff,
        2 => 0x55,
        _ => 0x11,
    };
    let stored = stored(entries, size);
    let mut next = 0;
    // Nothing is called inside: a call would have all constants read from memory again.
    while next < runs.len() {
        // What a damaged directory says takes no memory.
        let most = if runs[next].is_in(stored) { runs[next].len as usize } else { 0 };
        near.reserve(ROOM.max(most));
        let room = near.spare_capacity_mut();
        let mut hits = 0;
        while let Some(run) = runs.get(next) {
            let is_in = run.is_in(stored);
            if is_in && run.len as usize > room.len() - hits {
                break;
            }
            if let Some(run) = runs.get(next + FETCHED) {
                prefetch_run(entries, size, run);
            }
            let r = next as u32;
            next += 1;
            if !is_in {
                continue;
            }
            let centre = _mm512_set1_epi64(run.near as i64);
            let outside = i64::from(run.near.count_ones());
            let begin = run.start as usize * size;
            let mut first = 0;
            while first < run.len {
                let left = run.len - first;
                let at = begin + first as usize * size;
                // Entries that share one line are read with it alone: the next one was not fetched.
                let within = at % LINE;
                let needed = lanes.min(left as usize) * size;
                let skipped = if within + needed <= LINE { within } else { 0 };
                // SAFETY: the run's bytes are followed by 64 more, and preceded by as many as are skipped.
                let packed =
                    unsafe { _mm512_loadu_si512(entries.as_ptr().add(at - skipped).cast()) };
                let from = _mm512_add_epi8(from, _mm512_set1_epi8(skipped as i8));
                let lane = _mm512_maskz_permutexvar_epi8(packing.unpacked, from, packed);
                let differ = _mm512_ternarylogic_epi64::<0x28>(lane, rest, mask);
                let mut distance = _mm512_popcnt_epi64(differ);
                if BY_CODE {
                    let inside = inside.differ::<LOW>(lane, centre);
                    let inside = _mm512_maskz_popcnt_epi64(first_words, inside);
                    distance = _mm512_add_epi64(distance, inside);
                } else {
                    let inside = _mm512_maskz_set1_epi64(first_words, outside);
                    distance = _mm512_add_epi64(distance, inside);
                }
                if W >= 2 {
                    distance = _mm512_add_epi64(distance, _mm512_permutex_epi64::<0xb1>(distance));
                }
                if W >= 4 {
                    distance = _mm512_add_epi64(distance, _mm512_permutex_epi64::<0x4e>(distance));
                }
                let present =
                    if left as usize >= lanes { 0xff } else { (1u16 << (left as usize * W)) - 1 };
                let found =
                    _mm512_mask_cmple_epu64_mask(first_words & present as u8, distance, max);
                if found != 0 {
                    hits += write_found(found, distance, W as u32, (r, first), &mut room[hits..]);
                }
                first += lanes as u32;
            }
        }
        // SAFETY: so many were written one after the other, into room that was reserved.
        unsafe { near.set_len(near.len() + hits) };
    }
}

/// The bits of a window that bit `i` of the syndrome is the sum of, in GF(2).
const CHECKS: [u64; SYNDROME_BITS as usize] = {
    let mut checks = [0; SYNDROME_BITS as usize];
    let mut position = 1;
    while position <= WINDOW_BITS {
        let mut i = 0;
        while i < checks.len() {
            checks[i] |= (position as u64 >> i & 1) << (position - 1);
            i += 1;
        }
        position += 1;
    }
    checks
};

/// As that of the trait, eight words at once.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq,popcnt,bmi1,bmi2")]
fn first_keys_by_code(runs: &KeyRuns, words: &[u64], keys: &mut [u32]) -> usize {
    const EIGHT: usize = 8;
    let all = |number: u64| _mm512_set1_epi64(number.cast_signed());
    let by = |bits: u32| _mm_set_epi64x(0, i64::from(bits));
    let (window_at, plain_at) = (by(runs.window_at), by(runs.plain_at));
    let (dropped, plain_place) = (by(runs.dropped), by(DATA_BITS - runs.dropped));
    let window_mask = all((1 << WINDOW_BITS) - 1);
    let plain_mask = all((1 << runs.plain_bits) - 1);
    let (eights, _) = words.as_chunks::<EIGHT>();
    let (to, _) = keys.as_chunks_mut::<EIGHT>();
    for (words, keys) in eights.iter().zip(to) {
        // SAFETY: 64 bytes of the array are read.
        let words = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
        let window = _mm512_and_si512(_mm512_srl_epi64(words, window_at), window_mask);
        let plain = _mm512_and_si512(_mm512_srl_epi64(words, plain_at), plain_mask);
        let mut syndrome = _mm512_setzero_si512();
        for (i, &check) in CHECKS.iter().enumerate() {
            let ones = _mm512_popcnt_epi64(_mm512_and_si512(window, all(check)));
            let bit = _mm512_sll_epi64(ones, by(i as u32));
            // Or what is in the mask.
            syndrome = _mm512_ternarylogic_epi64::<0xf8>(syndrome, bit, all(1 << i));
        }
        let wrong = _mm512_srli_epi64::<1>(_mm512_sllv_epi64(all(1), syndrome));
        let codeword = _mm512_xor_si512(window, wrong);
        // See `code::data`: between the parity bits there are runs of data bits.
        let data = _mm512_and_si512(_mm512_srli_epi64::<2>(codeword), all(0x1));
        let data = _mm512_ternarylogic_epi64::<0xf8>(
            data,
            _mm512_srli_epi64::<3>(codeword),
            all(0x7 << 1),
        );
        let data = _mm512_ternarylogic_epi64::<0xf8>(
            data,
            _mm512_srli_epi64::<4>(codeword),
            all(0x7f << 4),
        );
        let data = _mm512_ternarylogic_epi64::<0xf8>(
            data,
            _mm512_srli_epi64::<5>(codeword),
            all(0x7fff << 11),
        );
        let data = _mm512_srl_epi64(data, dropped);
        let key = _mm512_or_si512(data, _mm512_sll_epi64(plain, plain_place));
        // SAFETY: eight keys of four bytes are 32 bytes.
        unsafe {
            _mm256_storeu_si256(keys.as_mut_ptr().cast(), _mm512_cvtepi64_epi32(key));
        }
    }
    eights.len() * EIGHT
}

/// For each size of a high part where the bytes of sixteen words come from; those above a part's own are
/// masked out.
static HIGH_BYTES: [[u8; LINE]; LOW_SIZE + 1] = {
    let mut from = [[0; LINE]; LOW_SIZE + 1];
    let mut size = 0;
    while size <= LOW_SIZE {
        let mut i = 0;
        while i < LINE {
            from[size][i] = (i / LOW_SIZE * size + i % LOW_SIZE) as u8;
            i += 1;
        }
        size += 1;
    }
    from
};

/// Low words, sixteen at once; the further bytes only of sixteen of which one may be near.
///
/// Apart from its callers, where its constants would take registers from the scan of whole entries.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,popcnt,bmi1,bmi2")]
fn scan_planes(planes: &Planes<'_>, runs: &[Run], target: &Target<1>, near: &mut Vec<Near>) {
    const LANES: usize = LINE / LOW_SIZE;
    let &Planes { low, high, high_size } = planes;
    let ([rest], [mask]) = (target.rest, target.mask);
    let (rest_low, rest_high) =
        (_mm512_set1_epi32(rest as i32), _mm512_set1_epi32((rest >> 32) as i32));
    let (mask_low, mask_high) =
        (_mm512_set1_epi32(mask as i32), _mm512_set1_epi32((mask >> 32) as i32));
    let from = &HIGH_BYTES[high_size.min(LOW_SIZE)];
    // SAFETY: 64 bytes of the array are read.
    let from = unsafe { _mm512_loadu_si512(from.as_ptr().cast()) };
    for (r, run) in runs.iter().enumerate() {
        if let Some(run) = runs.get(r + FETCHED) {
            prefetch_run(low, LOW_SIZE, run);
        }
        let Some(max) = target.max_distance.checked_sub(run.near.count_ones()) else { continue };
        if !planes.hold(run) {
            continue;
        }
        let limit = _mm512_set1_epi32(max as i32);
        let len = run.len as usize;
        let start = run.start as usize;
        for first in (0..len).step_by(LANES) {
            let present = if len - first >= LANES { 0xffff } else { (1u16 << (len - first)) - 1 };
            // SAFETY: the run's low words are followed by 64 bytes more.
            let words =
                unsafe { _mm512_loadu_si512(low.as_ptr().add((start + first) * LOW_SIZE).cast()) };
            let differ = _mm512_ternarylogic_epi32::<0x28>(words, rest_low, mask_low);
            let distance = _mm512_popcnt_epi32(differ);
            let maybe = _mm512_mask_cmple_epu32_mask(present, distance, limit);
            if maybe == 0 {
                continue;
            }
            // SAFETY: the run's high parts are followed by 64 bytes more.
            let parts = unsafe {
                _mm512_loadu_si512(high.as_ptr().add((start + first) * high_size).cast())
            };
            let parts = _mm512_permutexvar_epi8(from, parts);
            let differ = _mm512_ternarylogic_epi32::<0x28>(parts, rest_high, mask_high);
            let distance = _mm512_add_epi32(distance, _mm512_popcnt_epi32(differ));
            let mut found = _mm512_mask_cmple_epu32_mask(maybe, distance, limit);
            if found == 0 {
                continue;
            }
            let mut distances = [0u32; LANES];
            // SAFETY: 64 bytes of the array are written.
            unsafe { _mm512_storeu_si512(distances.as_mut_ptr().cast(), distance) };
            while found != 0 {
                let lane = found.trailing_zeros();
                near.push(Near {
                    run: r as u32,
                    entry: first as u32 + lane,
                    distance: distances[lane as usize] + run.near.count_ones(),
                });
                found &= found - 1;
            }
        }
    }
}
