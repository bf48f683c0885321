//! [`nearsift::hamming::index`]: exact search in bytes that may have been damaged.

use std::ops::ControlFlow;

use arbitrary::{Result, Unstructured};
use nearsift::fingerprint::{Bits, Fingerprints};
use nearsift::hamming::index::{Ask, Ids, Index, Match, Search, Settings};
use nearsift::hamming::planner::Plan;
use nearsift::hamming::{Budget, distance};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::join::column;

/// Whole bytes find what comparing all finds. Of damaged ones either opening or verifying says so, and
/// searching them ends, without a panic, whatever they say.
pub fn index_bytes(data: &[u8]) {
    // Bytes of any kind, as they are.
    search_anyhow(data);
    let mut input = Unstructured::new(data);
    let _ = build_and_damage(&mut input);
}

fn build_and_damage(input: &mut Unstructured<'_>) -> Result<()> {
    let bits = *input.choose(&[Bits::B64, Bits::B64, Bits::B128, Bits::B256])?;
    let max_distance = input.int_in_range(0..=8)?;
    let plan = plan(input)?;
    let damages: Vec<(u16, u8)> = input.arbitrary()?;
    let column = column(bits, input);
    let settings = Settings { plan, ..Settings::new(max_distance) };
    let words = column.as_words();
    let Ok(index) = Index::build(bits, words, Ids::Positions, &settings) else {
        // A plan that does not fit is refused; without one there is always an answer.
        assert!(plan.is_some(), "{bits:?} within {max_distance}");
        return Ok(());
    };
    index.verify().expect("what was just built");
    let opened = Index::from_bytes(index.as_bytes()).expect("what was just built");
    for query in column.as_words().chunks_exact(bits.words()).step_by(7) {
        let ask = Ask::within(max_distance);
        let found = opened.range(query, &ask, &mut opened.scratch()).expect("a query that fits");
        assert_eq!(found.matches, naive(&column, query, max_distance), "{}", opened.plan());
    }

    let whole = index.as_bytes().to_vec();
    let mut bytes = whole.clone();
    for (at, xor) in damages.into_iter().take(8) {
        // Most of the damage is done to the header, which says where everything is.
        let reach = if at % 4 == 0 { bytes.len() } else { bytes.len().min(512) };
        bytes[usize::from(at / 4) * 7 % reach] ^= xor;
    }
    if bytes != whole {
        let opened = Index::from_bytes(&bytes).and_then(|index| index.verify());
        assert!(opened.is_err(), "damage that nothing tells");
    }
    search_anyhow(&bytes);
    seal(&mut bytes);
    search_anyhow(&bytes);
    Ok(())
}

fn plan(input: &mut Unstructured<'_>) -> Result<Option<Plan>> {
    let key_bits = input.int_in_range(1..=14)?;
    Ok(match input.int_in_range(0..=4u8)? {
        0 => None,
        1 => Some(Plan::Linear),
        2 => Some(Plan::BLOCKS_4X16),
        3 => Some(Plan::MultiIndex { blocks: input.int_in_range(1..=9)?, key_bits }),
        _ => Some(Plan::PerfectCode { tables: input.int_in_range(1..=4)?, key_bits }),
    })
}

/// Opens the bytes, if that can be done, and asks what an index can be asked.
fn search_anyhow(bytes: &[u8]) {
    let Ok(index) = Index::from_bytes(bytes) else { return };
    let _ = index.verify();
    let query = vec![0x5555_0f0f_0000_ffff; index.bits().words()];
    let ask =
        Ask { max_distance: index.max_distance().min(4), budget: Budget::Fingerprints(10_000) };
    let mut scratch = index.scratch();
    let mut ids = 0u64;
    let outcome = index.visit(&query, &ask, &mut scratch, &mut |hit| {
        assert!(hit.distance() <= ask.max_distance);
        hit.each_id(|_| ids += 1);
        if ids < 10_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    outcome.expect("a query that fits");
}

/// Writes the checksum of the header, as the layout says, so that what it says is believed.
fn seal(bytes: &mut [u8]) {
    let tables = u32::from_le_bytes(bytes[76..80].try_into().expect("4 bytes")) as usize;
    let header = (128 + 136 * tables.min(64)).next_multiple_of(64).min(bytes.len());
    let checksum = xxh3_64_with_seed(&bytes[32..header], xxh3_64(&bytes[..24]));
    bytes[24..32].copy_from_slice(&checksum.to_le_bytes());
}

fn naive(column: &Fingerprints, query: &[u64], max_distance: u32) -> Vec<Match> {
    let mut matches: Vec<Match> = column
        .as_words()
        .chunks_exact(query.len())
        .zip(0..)
        .map(|(value, id)| Match { distance: distance(value, query), id })
        .filter(|found| found.distance <= max_distance)
        .collect();
    matches.sort_unstable();
    matches
}

/// Every plan, with clusters of near values, whole and damaged.
pub fn index_bytes_seeds() -> Vec<Vec<u8>> {
    (0..20u8)
        .map(|plan| {
            let step = |i: u8| i.wrapping_mul(29).wrapping_add(plan);
            [&[plan / 5, 3, 7 + plan % 5, plan % 5][..], &(0..230).map(step).collect::<Vec<u8>>()]
                .concat()
        })
        .collect()
}
