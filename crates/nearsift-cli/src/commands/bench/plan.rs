//! `nearsift bench plan`: what planners choose for a number of fingerprints, and what they expect of it.

use nearsift::fingerprint::Bits;
use nearsift::hamming::planner::{Plan, Question};
use nearsift::join;

use crate::Status;
use crate::args::BenchPlan;
use crate::calibration;
use crate::failure::Failure;
use crate::output::Out;

pub fn run(args: &BenchPlan) -> Result<Status, Failure> {
    let BenchPlan { n, bits, max_distance, memory } = *args;
    let bits = Bits::from_count(bits).filter(|bits| *bits != Bits::B32).ok_or_else(|| {
        Failure::new(format!("--bits {bits}: fingerprints of 64, 128 or 256 bits are indexed"))
    })?;
    let mut out = Out::new();
    let question = Question { memory_bytes: memory, ..Question::new(n, bits, max_distance) };
    let plan = Plan::choose(&question).map_err(Failure::new)?;
    let forecast = plan.forecast(&question).map_err(Failure::new)?;
    out.line(&format!("{forecast}\n"))?;
    let speed = calibration::join_speed(bits).unwrap_or_else(|| join::Speed::nominal(bits));
    let question = join::Question { values: n, bits, max_distance };
    let explanation = join::Plan::explain_best(&question, &speed).map_err(Failure::new)?;
    out.line(&explanation.to_string())?;
    out.finish()?;
    Ok(Status::Done)
}
