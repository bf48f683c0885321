//! Reliability tests with larger counts than those of every day.
//!
//! Those of the store are the same tests, told by variables how long to go on.

pub mod api;
mod resume;
mod service;

use clap::Subcommand;

use crate::tools::{cargo, loud};

/// Which tests, and how many of what.
#[derive(Debug, Subcommand)]
pub enum Run {
    /// `nearsift dedup` is killed at random moments, resumed, and all results compared
    Resume(resume::Resume),
    /// Generated requests on the service's own OpenAPI, by schemathesis: no 5xx, every answer as described
    Api(api::Api),
    /// A service under load is killed; what it acknowledged must be there
    ServeKill(service::Kill),
    /// Clients that send a byte now and then, beside good ones: p99 of those below 50 ms
    Slow(service::Slow),
    /// Random loads on a simulated disk with faults and a crash
    Sim {
        /// Loads
        #[arg(default_value_t = 100_000)]
        seeds: u64,
        /// The first seed
        #[arg(long, default_value_t = 0, value_name = "SEED")]
        first: u64,
    },
    /// A process that writes is killed; what it acknowledged must be there
    Kill {
        /// Kills
        #[arg(default_value_t = 2_000)]
        cycles: u64,
        /// What the moments are drawn from
        #[arg(long, default_value_t = 1, value_name = "SEED")]
        seed: u64,
    },
    /// Changed, cut off, extended and exchanged bytes; then every byte of small stores
    Flip {
        /// Random damages
        #[arg(default_value_t = 100_000)]
        flips: u64,
        /// What they are drawn from
        #[arg(long, default_value_t = 4, value_name = "SEED")]
        seed: u64,
    },
    /// Operations with restarts, merges and snapshots, compared with a linear scan
    Model {
        /// Operations
        #[arg(default_value_t = 1_000_000)]
        operations: u64,
        /// What they are drawn from
        #[arg(long, default_value_t = 1, value_name = "SEED")]
        seed: u64,
    },
}

/// Runs the tests.
pub fn run(run: &Run) -> Result<(), String> {
    let (tests, variables): (&[&str], Vec<(&str, u64)>) = match *run {
        Run::Resume(ref resume) => return resume::run(resume),
        Run::Api(ref api) => return api::run(api),
        Run::ServeKill(ref kill) => return service::kill(kill),
        Run::Slow(ref slow) => return service::slow(slow),
        Run::Sim { seeds, first } => {
            (&["crash::"], vec![("NEARSIFT_SIM_SEEDS", seeds), ("NEARSIFT_SIM_FIRST", first)])
        }
        Run::Kill { cycles, seed } => {
            (&["kill::"], vec![("NEARSIFT_KILL_CYCLES", cycles), ("NEARSIFT_KILL_SEED", seed)])
        }
        Run::Flip { flips, seed } => (
            &["damage::random_damage", "damage::every_changed_byte"],
            vec![("NEARSIFT_FLIPS", flips), ("NEARSIFT_FLIP_SEED", seed)],
        ),
        Run::Model { operations, seed } => (
            &["model::"],
            vec![("NEARSIFT_MODEL_OPERATIONS", operations), ("NEARSIFT_MODEL_SEED", seed)],
        ),
    };
    let mut command =
        cargo(&["test", "--release", "--package", "nearsift-store", "--test", "store", "--"]);
    command
        .args(tests)
        .arg("--nocapture")
        .envs(variables.iter().map(|(name, value)| (name, value.to_string())));
    loud(command)
}
