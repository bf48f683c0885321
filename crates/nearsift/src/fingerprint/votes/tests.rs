use super::*;
use proptest::prelude::*;

/// The definition: +-weight for each bit of each feature, then the signs.
fn naive_sums(bits: Bits, hashes: &[u64], weights: &[u8]) -> Vec<i64> {
    let mut sums = vec![0; bits.count() as usize];
    for (&hash, &weight) in hashes.iter().zip(weights) {
        for (i, sum) in sums.iter_mut().enumerate() {
            let one = lane_hash(hash, i / 64) >> (i % 64) & 1 == 1;
            *sum += if one { i64::from(weight) } else { -i64::from(weight) };
        }
    }
    sums
}

fn naive_bits(bits: Bits, sums: &[i64]) -> Fingerprint {
    let mut words = [0; 4];
    for (i, &sum) in sums.iter().enumerate() {
        words[i / 64] |= u64::from(sum > 0) << (i % 64);
    }
    Fingerprint::from_words(bits, &words)
}

/// Checks every kernel at every width, with the features in blocks of the given size.
fn check(hashes: &[u64], weights: &[u8], block: usize) {
    let all_one = vec![1; hashes.len()];
    for bits in Bits::ALL {
        let expect = naive_sums(bits, hashes, weights);
        let expect_unweighted = naive_sums(bits, hashes, &all_one);
        for kernel in Kernel::available() {
            let mut votes = Votes::with_kernel(bits, kernel);
            for (hashes, weights) in hashes.chunks(block).zip(weights.chunks(block)) {
                votes.add(hashes, weights);
            }
            assert_eq!(votes.sums(), expect, "{kernel}, {bits:?}, {} weighted", hashes.len());
            let voted = weights.iter().any(|&w| w > 0);
            assert_eq!(votes.finish(), voted.then(|| naive_bits(bits, &expect)), "{kernel}");

            votes.clear();
            for (hashes, weights) in hashes.chunks(block).zip(weights.chunks(block)) {
                // Runs of one weight, and what has two in a row as it comes.
                for (run, same) in weights.chunk_by(|a, b| a == b).zip(runs(hashes, weights)) {
                    match run.len() {
                        2 => votes.add(same, run),
                        _ => votes.add_uniform(same, run[0]),
                    }
                }
            }
            assert_eq!(votes.sums(), expect, "{kernel}, {bits:?}, {} by weight", hashes.len());

            votes.clear();
            hashes.chunks(block).for_each(|hashes| votes.add_unweighted(hashes));
            assert_eq!(votes.sums(), expect_unweighted, "{kernel}, {bits:?}, {}", hashes.len());
            assert_eq!(votes.total(), hashes.len() as u64);
        }
    }
}

/// The hashes of each run of equal weights.
fn runs<'h>(hashes: &'h [u64], weights: &[u8]) -> Vec<&'h [u64]> {
    let mut rest = hashes;
    let mut next = |run: &[u8]| rest.split_off(..run.len()).expect("as many hashes");
    weights.chunk_by(|a, b| a == b).map(&mut next).collect()
}

/// Hashes without structure.
fn hashes(n: usize) -> Vec<u64> {
    (0..n as u64).map(|i| lane_hash(i, 1)).collect()
}

#[test]
fn kernels_agree_around_every_flush() {
    for flush in [2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 257, 512, 514, 1024, 2048] {
        for n in flush - 2..=flush + 2 {
            let hashes = hashes(n);
            let mixed: Vec<u8> = hashes.iter().map(|h| (h >> 32) as u8).collect();
            check(&hashes, &mixed, usize::MAX);
        }
    }
}

#[test]
fn lanes_do_not_overflow() {
    for n in [256, 257, 258, 513, (1 << 16) - 1, 1 << 16, (1 << 16) + 1] {
        check(&vec![u64::MAX; n], &vec![255; n], usize::MAX);
        check(&vec![0x8080_8080_8080_8080; n], &vec![255; n], usize::MAX);
        check(&hashes(n), &vec![1; n], usize::MAX);
        check(&hashes(n), &vec![0; n], usize::MAX);
        check(&hashes(n), &vec![173; n], 1000);
    }
}

proptest! {
    #[test]
    fn kernels_agree_with_the_definition(
        features in proptest::collection::vec(
            (any::<u64>(), prop_oneof![Just(1), Just(255), any::<u8>()]), 0..700),
        block in 1..300usize,
    ) {
        let (hashes, weights): (Vec<u64>, Vec<u8>) = features.into_iter().unzip();
        check(&hashes, &weights, block);
    }

    #[test]
    fn the_low_bits_of_a_wider_fingerprint_are_the_narrower_one(
        hashes in proptest::collection::vec(any::<u64>(), 1..50),
    ) {
        let weights = vec![1; hashes.len()];
        let wide = simhash(Bits::B256, &hashes, &weights).unwrap();
        for bits in Bits::ALL {
            let narrow = simhash(bits, &hashes, &weights).unwrap();
            prop_assert_eq!(narrow, Fingerprint::from_words(bits, wide.words()));
        }
    }
}

#[test]
fn nothing_has_no_fingerprint() {
    for bits in Bits::ALL {
        assert_eq!(simhash(bits, &[], &[]), None);
        assert_eq!(simhash(bits, &[7], &[0]), None);
    }
}

#[test]
fn a_tie_is_0() {
    assert_eq!(simhash(Bits::B64, &[0b01, 0b11], &[3, 3]).unwrap().words(), [0b01]);
}

#[test]
fn portable_and_best_are_available() {
    let available: Vec<Kernel> = Kernel::available().collect();
    assert_eq!(available.first(), Some(&Kernel::Portable));
    assert_eq!(available.last(), Some(&Kernel::best()));
}

// Worked examples of the literature on SimHash, printed with the most significant bit first.

fn from_binary(digits: &str) -> Fingerprint {
    Fingerprint::from_u64(u64::from_str_radix(digits, 2).unwrap())
}

/// The lowest `n` sums, most significant first.
fn printed_sums(votes: &Votes, n: usize) -> Vec<i64> {
    votes.sums()[..n].iter().rev().copied().collect()
}

#[test]
fn votes_of_one_feature() {
    let check = |hash: &str, weight: u8, expect: [i64; 6]| {
        let mut votes = Votes::new(Bits::B64);
        votes.add(from_binary(hash).words(), &[weight]);
        assert_eq!(printed_sums(&votes, 6), expect, "{hash}");
    };
    // A weight of 0.57 is 57 hundredths.
    check("100110", 57, [57, -57, -57, 57, 57, -57]);
    check("010111", 5, [-5, 5, -5, 5, 5, 5]);
    check("100101", 4, [4, -4, -4, 4, -4, 4]);
    check("101011", 5, [5, -5, 5, -5, 5, 5]);
}

#[test]
fn sums_and_signs_of_two_features() {
    let mut votes = Votes::new(Bits::B64);
    votes.add(&[0b100101, 0b101011], &[4, 5]);
    assert_eq!(printed_sums(&votes, 6), [9, -9, 1, -1, 1, 9]);
    assert_eq!(votes.finish(), Some(from_binary("101011")));
}

#[test]
fn signs_of_sums() {
    let check = |sums: [i64; 6], expect: &str| {
        let mut votes = Votes::new(Bits::B64);
        for (i, &sum) in sums.iter().rev().enumerate() {
            // Two features that agree on bit i alone: together they vote there and nowhere else.
            let pair = if sum > 0 { [u64::MAX, 1 << i] } else { [!(1 << i), 0] };
            votes.add(&pair, &[sum.unsigned_abs() as u8; 2]);
        }
        assert_eq!(printed_sums(&votes, 6), sums.map(|sum| 2 * sum));
        assert_eq!(votes.finish(), Some(from_binary(expect)));
    };
    check([13, 108, -22, -5, -32, 55], "110001");
    check([-7, 1, -9, 9, 3, 9], "010111");
}

#[test]
fn hamming_distances() {
    let check = |a: &str, b: &str, expect: u32| {
        assert_eq!(from_binary(a).distance(&from_binary(b)), expect, "{a} {b}");
    };
    check("10101", "00110", 3);
    check("100110", "100011", 2);
    check("1100", "0", 2);
    check("10101011100010001010000101111100", "10101011100010011110000101111110", 3);
    check(
        "1000010010101101111111100000101011010001001111100001001011001011",
        "1000010010101101011111100000101011010001001111100001101010001011",
        3,
    );
}
