//! Which bits of a fingerprint a plan's tables take.

use super::super::table::{Table, mask_of};
use crate::hamming::planner::{Plan, PlanError, binomial, block};

/// The tables of a plan.
pub(super) fn tables_of<const W: usize>(
    plan: Plan,
    order: &[u32],
) -> Result<Vec<Table<W>>, PlanError> {
    let bits = 64 * W as u32;
    let unfit = |remedy: String| PlanError::DoesNotFit { plan, remedy };
    let whole = |table: Option<Table<W>>| {
        table.ok_or_else(|| unfit("its keys do not fit: let the planner choose".to_owned()))
    };
    match plan {
        Plan::Linear => Ok(vec![whole(Table::new([0; W], [0; W], 0))?]),
        Plan::MultiIndex { blocks, key_bits } => (0..blocks)
            .map(|i| {
                let block = &order[block(bits, blocks, key_bits, i)];
                let key = &block[..block.len().min(key_bits as usize)];
                whole(Table::new([0; W], mask_of(key), 0))
            })
            .collect(),
        Plan::PerfectCode { tables, key_bits } => {
            let further = key_bits.saturating_sub(26);
            (0..tables)
                .map(|i| {
                    let window = &order[(31 * i) as usize..(31 * (i + 1)) as usize];
                    let from = 31 * tables + further * i;
                    let plain = &order[from as usize..(from + further) as usize];
                    let dropped = 26u32.saturating_sub(key_bits);
                    whole(Table::new(mask_of(window), mask_of(plain), dropped))
                })
                .collect()
        }
    }
}

/// The tables of a plan by prefix, over the bits in their own order.
pub(in super::super) fn prefix_tables<const W: usize>(
    plan: Plan,
) -> Result<Vec<Table<W>>, PlanError> {
    let order: Vec<u32> = (0..64 * W as u32).collect();
    tables_of(plan, &order)
}

/// The bits in the order in which the plan's blocks take them: as they are when every bit splits the
/// values well, else dealt so that every block gets its share of good ones, best first. Where some split
/// nothing, fewer blocks may take all the others, which is better than that all blocks are poor.
pub(super) fn bit_order<const W: usize>(
    values: &[[u64; W]],
    plan: Plan,
    max_distance: u32,
) -> Vec<u32> {
    let bits = 64 * W as u32;
    let sizes = block_sizes(plan, bits);
    let sample = values.len().min(4096);
    let mut ones = vec![0usize; bits as usize];
    for i in 0..sample {
        let value = &values[(i as u128 * values.len() as u128 / sample as u128) as usize];
        for (bit, ones) in ones.iter_mut().enumerate() {
            *ones += (value[bit / 64] >> (bit % 64) & 1) as usize;
        }
    }
    // In 16ths of the sample: smaller differences are chance.
    let good = |bit: u32| ones[bit as usize].min(sample - ones[bit as usize]) * 16 / sample.max(1);
    let mut order: Vec<u32> = (0..bits).collect();
    if sample < 64 || order.iter().all(|&bit| good(bit) >= 5) {
        return order;
    }
    let splits = |bit: u32| ones[bit as usize].min(sample - ones[bit as usize]) > sample / 64;
    let useful = order.iter().filter(|&&bit| splits(bit)).count();
    let chosen = useful_blocks(plan, &sizes, useful as u32, values.len(), max_distance);
    order.sort_by_key(|&bit| (!splits(bit), std::cmp::Reverse(good(bit))));
    let mut blocks: Vec<Vec<u32>> = vec![Vec::new(); sizes.len()];
    let mut spare = Vec::new();
    let mut next = 0;
    for (nth, bit) in order.into_iter().enumerate() {
        let open = |block: &usize| blocks[*block].len() < sizes[*block];
        let among = if nth < useful { chosen } else { sizes.len() };
        let turn = (0..among).map(|i| (next + i) % among).find(open);
        match turn.or_else(|| (0..sizes.len()).find(open)) {
            Some(block) => {
                blocks[block].push(bit);
                next = block + 1;
            }
            None => spare.push(bit),
        }
    }
    blocks.push(spare);
    blocks.concat()
}

/// How many blocks take the bits that split the values at all: as many as make queries cheapest.
fn useful_blocks(
    plan: Plan,
    sizes: &[usize],
    useful: u32,
    values: usize,
    max_distance: u32,
) -> usize {
    /// What a bucket takes, in the time of an entry.
    const BUCKET: f64 = 20.0;
    let all = sizes.len();
    let most = match plan {
        Plan::MultiIndex { key_bits, .. } => key_bits,
        _ => return all,
    };
    if useful as usize >= sizes.iter().sum::<usize>() {
        return all;
    }
    let cost = |blocks: usize| {
        let key_bits = (useful / blocks as u32).min(sizes[blocks - 1] as u32).min(most);
        let bucket = BUCKET + values as f64 / f64::from(1u32 << key_bits);
        (0..=max_distance)
            .map(|level| match level / blocks as u32 {
                radius if radius > key_bits => f64::INFINITY,
                radius => binomial(key_bits, radius) * bucket,
            })
            .sum::<f64>()
    };
    // Of equally cheap ones the most.
    (1..=all).rev().min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(all)
}

/// The sizes of the blocks that a plan's tables take from the order of bits, one after the other.
fn block_sizes(plan: Plan, bits: u32) -> Vec<usize> {
    match plan {
        Plan::Linear => vec![bits as usize],
        Plan::MultiIndex { blocks, key_bits } => {
            (0..blocks).map(|i| block(bits, blocks, key_bits, i).len()).collect()
        }
        Plan::PerfectCode { tables, .. } => vec![31; tables as usize],
    }
}
