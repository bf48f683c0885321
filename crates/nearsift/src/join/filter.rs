//! Picking the values whose digit is in a range, with the instructions that the processor has.
//!
//! What is chosen at run time changes the speed and never the result.

#![expect(unsafe_code, reason = "a function compiled for instructions found at run time")]

use std::ops::Range;

use super::bits::Digit;
use super::entries::Entries;

/// Compiles [`Entries::pack`] for some instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! pack_compiled_for {
    ($features:literal) => {
        #[target_feature(enable = $features)]
        pub(super) fn pack<const W: usize>(
            how: &Entries<W>,
            values: &[[u64; W]],
            ids: &[u32],
            digits: &mut [u32],
            entries: &mut [u64],
        ) {
            how.pack(values, ids, digits, entries);
        }
    };
}

/// Values that are judged at a time. While the values picked of them are moved to places anywhere, the next ones are on
/// their way: more of them would not fit beside what is written.
pub(super) const CHUNK: usize = 256;

/// How values are picked. Only what this processor can run can be obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filter(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The values picked from a chunk, and their places in it.
pub(super) struct Picked<const W: usize> {
    // A vector may be written behind the last value.
    values: [[u64; W]; CHUNK + 8],
    places: [u32; CHUNK + 8],
    len: usize,
}

impl<const W: usize> Picked<W> {
    pub(super) const NONE: Picked<W> =
        Picked { values: [[0; W]; CHUNK + 8], places: [0; CHUNK + 8], len: 0 };

    pub(super) fn values(&self) -> &[[u64; W]] {
        &self.values[..self.len]
    }

    /// Ascending.
    pub(super) fn places(&self) -> &[u32] {
        &self.places[..self.len]
    }

    /// Picks by plain code from the values of the chunk from `start` on.
    fn extend(
        &mut self,
        chunk: &[[u64; W]],
        start: usize,
        digit: &Digit<W>,
        wanted: &Range<usize>,
    ) {
        // Without a branch on what cannot be foreseen.
        for (place, value) in chunk.iter().enumerate().skip(start) {
            self.values[self.len] = *value;
            self.places[self.len] = place as u32;
            self.len += usize::from(wanted.contains(&digit.of(value)));
        }
    }
}

impl Filter {
    /// Every filter that this processor can run, slowest first.
    #[cfg(test)]
    pub(super) fn available() -> Vec<Filter> {
        let mut filters = vec![Filter(Set::Portable)];
        filters.extend(Filter::avx2());
        filters.push(Filter::best());
        filters.dedup();
        filters
    }

    /// The fastest filter that this processor can run.
    #[inline]
    pub(super) fn best() -> Filter {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::has_avx512() {
            return Filter(Set::Avx512);
        }
        Filter::avx2().unwrap_or(Filter(Set::Portable))
    }

    /// The filter for AVX2, where there is that.
    #[inline]
    fn avx2() -> Option<Filter> {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::has_avx2() {
            return Some(Filter(Set::Avx2));
        }
        None
    }

    /// Tells the digit of each value.
    ///
    /// # Panics
    /// When there are not as many places for digits as values.
    #[inline]
    pub(super) fn digits<const W: usize>(
        self,
        values: &[[u64; W]],
        digit: &Digit<W>,
        digits: &mut [u32],
    ) {
        assert_eq!(values.len(), digits.len(), "a digit a value");
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a filter is only made after its instructions were found on this processor.
            Set::Avx512 if W == 1 => unsafe { avx512::digits(values, digit, digits) },
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 if let Some(narrow) = digit.narrow() => {
                // SAFETY: as above.
                unsafe { avx2::digits(values, digit, &narrow, digits) };
            }
            _ => digit.tell(values, digits),
        }
    }

    /// Makes the entry of each value ([`Entries::pack`]).
    #[inline]
    pub(super) fn pack<const W: usize>(
        self,
        how: &Entries<W>,
        values: &[[u64; W]],
        ids: &[u32],
        digits: &mut [u32],
        entries: &mut [u64],
    ) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a filter is only made after its instructions were found on this processor.
            Set::Avx512 => unsafe { avx512::pack(how, values, ids, digits, entries) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Set::Avx2 => unsafe { avx2::pack(how, values, ids, digits, entries) },
            Set::Portable => how.pack(values, ids, digits, entries),
        }
    }

    /// Picks, chunk after chunk, the values whose digit is `wanted`, and calls `f` with where each chunk starts and what was
    /// picked from it.
    #[inline(always)]
    pub(super) fn each_picked<const W: usize>(
        values: &[[u64; W]],
        digit: &Digit<W>,
        wanted: &Range<usize>,
        mut f: impl FnMut(usize, &Picked<W>),
    ) {
        let filter = Filter::best();
        let mut picked = Picked::NONE;
        for (c, chunk) in values.chunks(CHUNK).enumerate() {
            filter.pick(chunk, digit, wanted, &mut picked);
            f(c * CHUNK, &picked);
        }
    }

    /// Picks the values of the chunk whose digit is `wanted`; what was picked before is gone.
    ///
    /// # Panics
    /// When the chunk has more than [`CHUNK`] values, or no digit is wanted.
    pub(super) fn pick<const W: usize>(
        self,
        chunk: &[[u64; W]],
        digit: &Digit<W>,
        wanted: &Range<usize>,
        picked: &mut Picked<W>,
    ) {
        assert!(chunk.len() <= CHUNK, "at most {CHUNK} values at a time");
        assert!(!wanted.is_empty(), "a digit");
        picked.len = 0;
        match self.0 {
            // Wider values have no vector form: their words would have to be brought together.
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a filter is only made after its instructions were found on this processor.
            Set::Avx512 if W == 1 => unsafe { avx512::pick(chunk, digit, wanted, picked) },
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 if let Some(narrow) = digit.narrow() => {
                // SAFETY: as above.
                unsafe { avx2::pick(chunk, digit, &narrow, wanted, picked) };
            }
            _ => picked.extend(chunk, 0, digit, wanted),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;
    use std::ops::Range;

    use super::super::bits::{Digit, Narrow};
    use super::{Entries, Picked};

    pack_compiled_for!("avx2,popcnt");

    /// What eight values of one word are told apart by, in registers.
    struct Teller {
        right: __m128i,
        left: __m128i,
        bits: __m256i,
        first: __m128i,
        second: Option<__m128i>,
        top: __m128i,
        multiplier: __m256i,
        skip: __m128i,
        shift: __m128i,
    }

    impl Teller {
        #[inline]
        #[target_feature(enable = "avx2")]
        fn new(narrow: &Narrow) -> Teller {
            let count = |bits: u32| _mm_set_epi64x(0, i64::from(bits));
            Teller {
                right: count(narrow.rotation),
                left: count(64 - narrow.rotation),
                bits: _mm256_set1_epi64x(narrow.bits.cast_signed()),
                first: count(narrow.first),
                second: narrow.second.map(count),
                top: count(64 - narrow.count),
                multiplier: _mm256_set1_epi32(narrow.multiplier.cast_signed()),
                skip: count(32 - narrow.count + narrow.skip),
                shift: count(32 - narrow.width),
            }
        }

        /// The bits of four values, gathered at the bottom of each word.
        #[inline]
        #[target_feature(enable = "avx2")]
        fn gathered(&self, values: __m256i) -> __m256i {
            let (low, high) =
                (_mm256_srl_epi64(values, self.right), _mm256_sll_epi64(values, self.left));
            let turned = _mm256_and_si256(_mm256_or_si256(low, high), self.bits);
            let mut sum = _mm256_sll_epi64(turned, self.first);
            // The same for all values.
            if let Some(second) = self.second {
                sum = _mm256_add_epi64(sum, _mm256_sll_epi64(turned, second));
            }
            _mm256_srl_epi64(sum, self.top)
        }

        /// The digits of eight values.
        #[inline]
        #[target_feature(enable = "avx2")]
        fn tell(&self, first: __m256i, second: __m256i) -> __m256i {
            let (first, second) = (self.gathered(first), self.gathered(second));
            let halves = _mm256_or_si256(first, _mm256_slli_epi64::<32>(second));
            // Of the first values in even places, of the second ones in odd places.
            let order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
            let all = _mm256_permutevar8x32_epi32(halves, order);
            let mixed = _mm256_mullo_epi32(all, self.multiplier);
            _mm256_srl_epi32(_mm256_sll_epi32(mixed, self.skip), self.shift)
        }
    }

    /// Eight values of one word.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn words<const W: usize>(values: &[[u64; W]; 8]) -> (__m256i, __m256i) {
        assert!(W == 1);
        let from: *const __m256i = values.as_ptr().cast();
        // SAFETY: eight values of one word are two times 32 bytes.
        unsafe { (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))) }
    }

    /// As [`super::Filter::digits`], eight values of one word at a time.
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn digits<const W: usize>(
        values: &[[u64; W]],
        digit: &Digit<W>,
        narrow: &Narrow,
        digits: &mut [u32],
    ) {
        let teller = Teller::new(narrow);
        let (vectors, rest) = values.as_chunks::<8>();
        let (places, last) = digits.as_chunks_mut::<8>();
        for (vector, to) in vectors.iter().zip(places) {
            let (first, second) = words(vector);
            let told = teller.tell(first, second);
            // SAFETY: eight digits of four bytes are 32 bytes.
            unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), told) };
        }
        for (to, value) in last.iter_mut().zip(rest) {
            *to = digit.of(value) as u32;
        }
    }

    /// For each set of four words, as bits, where its words are, in halves of words, and then anything.
    static WORDS: [[u32; 8]; 16] = {
        let mut all = [[0; 8]; 16];
        let mut set = 0;
        while set < 16 {
            let (mut word, mut to) = (0, 0);
            while word < 4 {
                if set >> word & 1 == 1 {
                    all[set][to] = 2 * word;
                    all[set][to + 1] = 2 * word + 1;
                    to += 2;
                }
                word += 1;
            }
            set += 1;
        }
        all
    };

    /// As [`super::Filter::pick`], eight values of one word at a time.
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn pick<const W: usize>(
        chunk: &[[u64; W]],
        digit: &Digit<W>,
        narrow: &Narrow,
        wanted: &Range<usize>,
        picked: &mut Picked<W>,
    ) {
        let teller = Teller::new(narrow);
        let least = _mm256_set1_epi32(wanted.start as i32);
        let most = _mm256_set1_epi32(wanted.len() as i32 - 1);
        let (vectors, rest) = chunk.as_chunks::<8>();
        for (vector, start) in vectors.iter().zip((0i64..).step_by(8)) {
            let (first, second) = words(vector);
            let above = _mm256_sub_epi32(teller.tell(first, second), least);
            let within = _mm256_cmpeq_epi32(_mm256_min_epu32(above, most), above);
            let chosen = _mm256_movemask_ps(_mm256_castsi256_ps(within)) as u32;
            for (half, values) in (0u32..).zip([first, second]) {
                let set = (chosen >> (4 * half) & 0xf) as usize;
                let start = start + 4 * i64::from(half);
                let places = _mm256_setr_epi64x(start, start + 1, start + 2, start + 3);
                // SAFETY: 32 bytes of a table.
                let order = unsafe { _mm256_loadu_si256(WORDS[set].as_ptr().cast()) };
                let values = _mm256_permutevar8x32_epi32(values, order);
                let places = _mm256_permutevar8x32_epi32(places, order);
                let even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
                let places = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(places, even));
                let to_values = &mut picked.values[picked.len..picked.len + 4];
                // SAFETY: the slice has room for four values of one word.
                unsafe { _mm256_storeu_si256(to_values.as_mut_ptr().cast(), values) };
                let to_places = &mut picked.places[picked.len..picked.len + 4];
                // SAFETY: the slice has room for four places of four bytes.
                unsafe { _mm_storeu_si128(to_places.as_mut_ptr().cast(), places) };
                picked.len += set.count_ones() as usize;
            }
        }
        picked.extend(chunk, chunk.len() - rest.len(), digit, wanted);
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;
    use std::ops::Range;

    use super::super::bits::Digit;
    use super::{Entries, Picked};

    pack_compiled_for!("avx512f,avx512dq,avx512vl,popcnt");

    /// As [`super::Filter::digits`], eight values of one word at a time.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,popcnt")]
    pub(super) fn digits<const W: usize>(
        values: &[[u64; W]],
        digit: &Digit<W>,
        digits: &mut [u32],
    ) {
        assert!(W == 1);
        let all = |word: u64| _mm512_set1_epi64(word.cast_signed());
        let count = |bits: u32| _mm_set_epi64x(0, i64::from(bits));
        let rotation = all(u64::from(digit.rotation));
        let (bits, gather) = (all(digit.bits[0]), all(digit.gather[0]));
        let (gathered, multiplier) = (all(digit.gathered), all(digit.multiplier));
        let (skip, shift) = (count(digit.skip), count(digit.shift));
        let (vectors, rest) = values.as_chunks::<8>();
        let (places, last) = digits.as_chunks_mut::<8>();
        for (vector, to) in vectors.iter().zip(places) {
            // SAFETY: eight values of one word are 64 bytes.
            let values = unsafe { _mm512_loadu_si512(vector.as_ptr().cast()) };
            let turned = _mm512_and_si512(_mm512_rorv_epi64(values, rotation), bits);
            let sum = _mm512_and_si512(_mm512_mullo_epi64(turned, gather), gathered);
            // The same for all values, and mostly so.
            let mixed =
                if digit.multiplier == 1 { sum } else { _mm512_mullo_epi64(sum, multiplier) };
            let run = _mm512_srl_epi64(_mm512_sll_epi64(mixed, skip), shift);
            // SAFETY: eight digits of four bytes are 32 bytes.
            unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm512_cvtepi64_epi32(run)) };
        }
        for (to, value) in last.iter_mut().zip(rest) {
            *to = digit.of(value) as u32;
        }
    }

    /// Eight values at a time, of one word each.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,popcnt")]
    pub(super) fn pick<const W: usize>(
        chunk: &[[u64; W]],
        digit: &Digit<W>,
        wanted: &Range<usize>,
        picked: &mut Picked<W>,
    ) {
        assert!(W == 1);
        let all = |word: u64| _mm512_set1_epi64(word.cast_signed());
        let rotation = all(u64::from(digit.rotation));
        let (bits, gather) = (all(digit.bits[0]), all(digit.gather[0]));
        let (gathered, multiplier) = (all(digit.gathered), all(digit.multiplier));
        // The digit is a run of bits: they are compared where they lie.
        let place = |number: u64| all(number << digit.shift >> digit.skip);
        let (run, least) = (place(u64::MAX), place(wanted.start as u64));
        let most = place(wanted.len() as u64 - 1);
        let (vectors, rest) = chunk.as_chunks::<8>();
        let mut places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let mut len = picked.len;
        for vector in vectors {
            // The processor reads ahead by itself to the end of a page of 4 KiB only, and not while others are written.
            crate::prefetch::will_read(vector, super::CHUNK..super::CHUNK + 1);
            // SAFETY: eight values of one word are 64 bytes.
            let values = unsafe { _mm512_loadu_si512(vector.as_ptr().cast()) };
            let turned = _mm512_and_si512(_mm512_rorv_epi64(values, rotation), bits);
            let sum = _mm512_and_si512(_mm512_mullo_epi64(turned, gather), gathered);
            let mixed = _mm512_and_si512(_mm512_mullo_epi64(sum, multiplier), run);
            let chosen = _mm512_cmple_epu64_mask(_mm512_sub_epi64(mixed, least), most);
            let to_values = &mut picked.values[len..len + 8];
            // SAFETY: the slice has room for eight values of one word.
            unsafe {
                let packed = _mm512_maskz_compress_epi64(chosen, values);
                _mm512_storeu_si512(to_values.as_mut_ptr().cast(), packed);
            }
            let to_places = &mut picked.places[len..len + 8];
            // SAFETY: the slice has room for eight places of four bytes.
            unsafe {
                let packed = _mm256_maskz_compress_epi32(chosen, places);
                _mm256_storeu_si256(to_places.as_mut_ptr().cast(), packed);
            }
            places = _mm256_add_epi32(places, _mm256_set1_epi32(8));
            len += chosen.count_ones() as usize;
        }
        picked.len = len;
        picked.extend(chunk, chunk.len() - rest.len(), digit, wanted);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::bits::{BitSet, Source};
    use super::*;
    use crate::hamming::kernels::Fold;

    fn check<const W: usize>(values: &[[u64; W]], bits: BitSet<W>, widths: (u32, u32)) {
        let mut source = Source::new(bits, 2);
        for width in [widths.0, widths.1] {
            let Some(digit) = source.digit(width) else { return };
            let before = source;
            source = before.after(&digit);
            let all = digit.count();
            let single = (0..all).map(|digit| digit..digit + 1);
            for wanted in single.chain([0..all, 1..all, 0..all - 1, all / 3..all / 3 * 2 + 1]) {
                if wanted.is_empty() {
                    continue;
                }
                let places: Vec<u32> = (0..values.len() as u32)
                    .filter(|&i| wanted.contains(&digit.of(&values[i as usize])))
                    .collect();
                let expect: Vec<[u64; W]> = places.iter().map(|&i| values[i as usize]).collect();
                let fold = Fold::of_agreeing(&bits.0);
                let entries = Entries::new(&before, &digit, 2, fold, CHUNK);
                for filter in Filter::available() {
                    let mut digits = vec![0; values.len()];
                    filter.digits(values, &digit, &mut digits);
                    let same = |(value, &found)| digit.of(value) == found as usize;
                    assert!(values.iter().zip(&digits).all(same), "{filter:?}");
                    if let Some(entries) = &entries {
                        let ids: Vec<u32> = (0..values.len() as u32).rev().collect();
                        let mut packed = vec![0; values.len()];
                        let (mut plain_digits, mut plain) = (digits.clone(), packed.clone());
                        entries.pack(values, &ids, &mut plain_digits, &mut plain);
                        filter.pack(entries, values, &ids, &mut digits, &mut packed);
                        assert_eq!((digits, packed), (plain_digits, plain), "{filter:?}");
                    }
                    let mut picked = Picked::NONE;
                    filter.pick(values, &digit, &wanted, &mut picked);
                    assert_eq!(picked.places(), places, "{filter:?}");
                    assert_eq!(picked.values(), expect, "{filter:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_filter_picks_what_a_plain_loop_picks(
            words in prop::collection::vec(any::<u64>(), 0..=CHUNK),
            masks in (any::<u64>(), prop::sample::select(vec![u64::MAX, 0x3ff0_0000, 0xff])),
            widths in (1u32..5, 1u32..5),
        ) {
            let narrow: Vec<[u64; 1]> = words.iter().map(|&word| [word]).collect();
            check(&narrow, BitSet([masks.0]), widths);
            check(&narrow, BitSet([masks.1]), widths);
            let wide: Vec<[u64; 2]> = words.iter().map(|&word| [word, !word]).collect();
            check(&wide, BitSet([masks.0, masks.1]), widths);
        }
    }

    #[test]
    fn all_and_none_are_picked() {
        let digit = Source::new(BitSet([0xff]), 0).digit(3).expect("bits left");
        let digit_of = digit.of(&[7]);
        let (kept, other) = (digit_of..digit_of + 1, digit_of ^ 1..(digit_of ^ 1) + 1);
        for filter in Filter::available() {
            let mut picked = Picked::NONE;
            filter.pick(&[[7]; CHUNK], &digit, &kept, &mut picked);
            assert_eq!(picked.values(), [[7]; CHUNK]);
            filter.pick(&[[7]; CHUNK], &digit, &other, &mut picked);
            assert!(picked.values().is_empty());
        }
    }
}
