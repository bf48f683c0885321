//! Every kernel against a plain loop.

use proptest::prelude::*;

use super::super::bits::lowest;
use super::*;

fn packings<const W: usize>() -> Vec<Packing> {
    let low = std::array::from_fn(|i| (i as u64).wrapping_mul(0x1234_5671) & 0x7fff_ffff);
    let full = 64 * W as u32;
    [
        (full, false, 0),
        (full - 21, false, 0),
        (full - 32, false, 0),
        (full - 26, true, 0),
        (full - 24, true, 2),
        (full - 23, true, 3),
    ]
    .map(|(bits, syndrome, low_bits)| Packing::new::<W>(bits, syndrome, low_bits, low))
    .to_vec()
}

fn check<const W: usize>(
    bytes: &[u8],
    runs: &[(u16, u8, u64)],
    rest: [u64; W],
    max_distance: u32,
) -> Result<(), TestCaseError> {
    for packing in packings::<W>() {
        let size = packing.bytes();
        let held = bytes.len().saturating_sub(PADDING) / size;
        let runs: Vec<Run> = runs
            .iter()
            .map(|&(start, len, near)| {
                let start = u64::from(start) % (held as u64 + 2);
                Run { start, len: u32::from(len) % 65, key: 0, near: near >> 30 }
            })
            // As a damaged directory may say.
            .chain([Run { start: 0, len: u32::MAX, key: 0, near: 0 }])
            .collect();
        let mut mask = lowest::<W>(packing.bits);
        mask[0] &= !ones(packing.rest_at());
        let target = Target { rest, mask, max_distance };
        let mut expect = Vec::new();
        for (r, run) in runs.iter().enumerate() {
            if run.start as usize + run.len as usize > held {
                continue;
            }
            for i in 0..run.len {
                let mut entry = [0u8; 40];
                let at = (run.start as usize + i as usize) * size;
                entry[..size].copy_from_slice(&bytes[at..at + size]);
                let entry: [u64; W] = read_entry(&entry, 0);
                let mut distance = (packing.offset(entry[0]) ^ run.near).count_ones();
                for bit in packing.rest_at()..packing.bits {
                    let (w, b) = (bit as usize / 64, bit % 64);
                    distance += ((entry[w] ^ target.rest[w]) >> b & 1) as u32;
                }
                if distance <= max_distance {
                    expect.push(Near { run: r as u32, entry: i, distance });
                }
            }
        }
        for kernel in Kernel::available() {
            let mut near = Vec::new();
            kernel.scan(bytes, &packing, &runs, &target, &mut near);
            prop_assert_eq!(&near, &expect, "{:?} {:?}", kernel, packing);
            prop_assert!(near.capacity() < 1 << 16, "no room for what is not there");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_kernel_finds_what_a_plain_loop_finds(
        bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(255u8), any::<u8>()], 0..1200),
        runs in prop::collection::vec(any::<(u16, u8, u64)>(), 0..6),
        rest: [u64; 4],
        max_distance in 0u32..160,
    ) {
        check::<1>(&bytes, &runs, [rest[0]], max_distance / 3)?;
        check::<2>(&bytes, &runs, [rest[0], rest[1]], max_distance / 2)?;
        check::<4>(&bytes, &runs, rest, max_distance)?;
    }

    #[test]
    fn every_kernel_finds_in_planes_what_a_plain_loop_finds(
        low in prop::collection::vec(prop_oneof![Just(0u8), Just(255u8), any::<u8>()], 0..900),
        high in prop::collection::vec(prop_oneof![Just(0u8), Just(255u8), any::<u8>()], 0..900),
        (runs, runs_ahead) in (0usize..6, 0usize..50).prop_flat_map(|(few, many)| (
            prop::collection::vec(any::<(u16, u8, u64)>(), few),
            prop::collection::vec(any::<(u16, u8, u64)>(), many),
        )),
        rest: u64,
        bits in 33u32..64,
        max_distance in 0u32..50,
    ) {
        let high_size = bits.div_ceil(8) as usize - LOW_SIZE;
        let held = |plane: &[u8], size| plane.len().saturating_sub(PADDING) / size;
        let held = held(&low, LOW_SIZE).min(held(&high, high_size));
        let runs: Vec<Run> = runs
            .into_iter()
            .chain(runs_ahead)
            .map(|(start, len, near)| {
                let start = u64::from(start) % (held as u64 + 2);
                Run { start, len: u32::from(len) % 40, key: 0, near: near >> 30 & near >> 11 }
            })
            .collect();
        let target = Target { rest: [rest], mask: [ones(bits)], max_distance };
        let mut expect = Vec::new();
        for (r, run) in runs.iter().enumerate() {
            if run.start as usize + run.len as usize > held {
                continue;
            }
            for i in 0..run.len {
                let place = run.start as usize + i as usize;
                let mut entry = [0u8; 8];
                entry[..LOW_SIZE].copy_from_slice(&low[place * LOW_SIZE..][..LOW_SIZE]);
                entry[LOW_SIZE..][..high_size]
                    .copy_from_slice(&high[place * high_size..][..high_size]);
                let differ = (u64::from_le_bytes(entry) ^ rest) & ones(bits);
                let distance = differ.count_ones() + run.near.count_ones();
                if distance <= max_distance {
                    expect.push(Near { run: r as u32, entry: i, distance });
                }
            }
        }
        for kernel in Kernel::available() {
            let mut near = Vec::new();
            let planes = Planes { low: &low, high: &high, high_size };
            kernel.scan_planes(&planes, &runs, &target, &mut near);
            prop_assert_eq!(&near, &expect, "{:?}, {} bits", kernel, bits);
        }
    }

    #[test]
    fn every_kernel_reads_directories_alike(
        lines in prop::collection::vec(any::<u8>(), 0..400),
        long in prop::collection::vec(0usize..400, 0..20),
        keys in prop::collection::vec(0u32..400, 0..60),
    ) {
        let mut directory = lines;
        for at in long {
            if at % 64 >= 8 && let Some(count) = directory.get_mut(at) {
                *count = LONG;
            }
        }
        let probes: Vec<Probe> =
            keys.iter().map(|&key| Probe { key, near: u64::from(key) * 3 }).collect();
        let mut expect = Vec::new();
        for probe in &probes {
            let (line, place) = line_of(probe.key);
            let Some(line) = directory.get(line..line + LINE) else { continue };
            let base = u64::from_le_bytes(line[..8].try_into().unwrap());
            let before = line[8..8 + place].iter().filter(|&&c| c != LONG);
            let (start, len) = match line[8 + place] {
                0 => continue,
                LONG => (0, u32::MAX),
                c => (before.fold(base, |sum, &c| sum.wrapping_add(u64::from(c))), u32::from(c)),
            };
            expect.push(Run { start, len, key: probe.key, near: probe.near });
        }
        for kernel in Kernel::available() {
            let mut runs = Vec::new();
            kernel.look_up_counts(&directory, &probes, &mut runs);
            prop_assert_eq!(&runs, &expect, "{:?}", kernel);
        }
    }
}
