//! `nearsift bench --calibrate`: the speeds of joins, measured on one thread.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use nearsift::fingerprint::votes::lane_hash;
use nearsift::fingerprint::{Bits, Fingerprints};
use nearsift::hamming::kernels::Kernel;
use nearsift::join::{self, SelfJoin};

use crate::Status;
use crate::args::Global;
use crate::calibration::Calibration;
use crate::failure::Failure;
use crate::output::Out;

/// Rounds of each measurement.
const ROUNDS: u32 = 5;
pub fn run(global: &Global) -> Result<Status, Failure> {
    let calibration = Calibration {
        kernel: Kernel::best().to_string(),
        join: [Bits::B64, Bits::B128, Bits::B256]
            .into_iter()
            .map(|bits| Ok((bits.count(), join_speed(bits)?)))
            .collect::<Result<BTreeMap<_, _>, Failure>>()?,
    };
    let file = calibration.save()?;
    let mut out = Out::new();
    if global.json {
        out.json(&calibration)?;
    } else {
        out.line(&format!("one thread, {}, nanoseconds", calibration.kernel))?;
        for (bits, speed) in &calibration.join {
            let join::Speed { comparison_ns, move_ns } = speed;
            out.line(&format!(
                "{:<40} {comparison_ns:>8.3}",
                format!("join of {bits} bits: a comparison")
            ))?;
            out.line(&format!("{:<40} {move_ns:>8.2}", format!("join of {bits} bits: a move")))?;
        }
        out.line(&format!("written to {}", file.display()))?;
    }
    out.finish()?;
    Ok(Status::Done)
}

fn join_speed(bits: Bits) -> Result<join::Speed, Failure> {
    let column = |n: usize| {
        let words = (0..(n * bits.words()) as u64).map(|i| lane_hash(i, 3)).collect();
        Fingerprints::from_words(bits, words)
    };
    let time = |column: &Fingerprints, plan| {
        let settings = join::Settings { plan: Some(plan), ..join::Settings::new(3) };
        let join = SelfJoin::new(column, settings).map_err(Failure::new)?;
        let mut best = (f64::INFINITY, join::Work::default());
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let (pairs, work) = black_box(join.count_pairs());
            let _ = pairs;
            let ns = begun.elapsed().as_secs_f64() * 1e9;
            if ns < best.0 {
                best = (ns, work);
            }
        }
        Ok::<_, Failure>(best)
    };
    let (ns, work) = time(&column(1 << 13), join::Plan::AllPairs)?;
    let comparison_ns = ns / work.comparisons as f64;
    let (ns, work) = time(&column(1 << 20), join::Plan::Nested)?;
    let move_ns = (ns - work.comparisons as f64 * comparison_ns) / work.moves as f64;
    Ok(join::Speed { comparison_ns, move_ns: move_ns.max(0.1) })
}
