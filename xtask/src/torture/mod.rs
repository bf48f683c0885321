//! Reliability tests with larger counts than those of every day.
//!
//! Those of the store and the service are the same tests, told by variables how long to go on.

pub mod api;
mod resume;

use clap::Subcommand;

use crate::clients;
use crate::tools::{cargo, loud};

/// Which tests, and how many of what.
#[derive(Debug, Subcommand)]
pub enum Run {
    /// `nearsift dedup` is killed at random moments, resumed, and all results compared
    Resume(resume::Resume),
    /// Generated requests on the service's own OpenAPI, by schemathesis: no 5xx, every answer as described
    Api(api::Api),
    /// Answers that come before a body was taken, over HTTP/2 and TLS, by curl and httpx
    Http2 {
        /// Tries of each, some of 20 MB
        #[arg(default_value_t = 200)]
        tries: u32,
    },
    /// A service under load is killed; what it acknowledged must be there
    ServeKill {
        /// Kills
        #[arg(default_value_t = 500)]
        cycles: u64,
        /// What the moments are drawn from
        #[arg(long, default_value_t = 1, value_name = "SEED")]
        seed: u64,
    },
    /// Clients that send a byte now and then, beside good ones: p99 of those below 50 ms
    Slow {
        /// Clients, each of which holds a connection: the limit of open files must be twice as high
        #[arg(default_value_t = 2_000)]
        clients: u64,
    },
    /// Random loads on a simulated disk with faults and a crash
    Sim {
        /// Loads
        #[arg(default_value_t = 100_000)]
        seeds: u64,
        /// The first seed
        #[arg(long, default_value_t = 0, value_name = "SEED")]
        first: u64,
    },
    /// A process that writes, merges, copies, recovers, repairs or restores is killed; what it acknowledged
    /// must be there
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
    /// The power fails under ext4 and xfs, in images that are mounted: needs root and xfs_io
    Power {
        /// Losses of power for each file system
        #[arg(default_value_t = 2_000)]
        cycles: u64,
        /// What the moments are drawn from
        #[arg(long, default_value_t = 1, value_name = "SEED")]
        seed: u64,
    },
    /// System calls that fail, are cut short or kill, at the first time, the second, ...: needs strace
    Syscalls {
        /// Calls and what becomes of them
        #[arg(default_value_t = 16_000)]
        points: u64,
        /// The first load
        #[arg(long, default_value_t = 1, value_name = "SEED")]
        first: u64,
    },
    /// File systems without space or inodes: needs root
    Full {
        /// Sizes, from 1 to 60 pages
        #[arg(default_value_t = 200)]
        sizes: u64,
        /// Counts of inodes, from 2 to one below this
        #[arg(long, default_value_t = 60, value_name = "N")]
        inodes: u64,
    },
    /// Disks of a simulation that are full or broken, at every operation
    Faults,
    /// Durability bugs that are planted, and which tests find each
    Planted,
    /// Stores that an earlier build wrote, taken over by this one, with a crash at every operation
    Upgrade {
        /// Steps of the load on each of them
        #[arg(default_value_t = 40)]
        steps: u64,
    },
    /// Threads of one store, in every order that a random scheduler finds
    Schedules {
        /// Schedules for each test
        #[arg(default_value_t = 100_000)]
        schedules: u64,
    },
}

/// Tests of a package and the variables that tell them how much to do.
struct Tests {
    package: &'static str,
    binary: &'static str,
    names: &'static [&'static str],
    variables: Vec<(&'static str, u64)>,
}

fn store(names: &'static [&'static str], variables: &[(&'static str, u64)]) -> Tests {
    let variables = variables.to_vec();
    Tests { package: "nearsift-store", binary: "store", names, variables }
}

/// Runs the tests.
pub fn run(run: &Run) -> Result<(), String> {
    let tests = match *run {
        Run::Resume(ref resume) => return resume::run(resume),
        Run::Api(ref api) => return api::run(api),
        Run::Http2 { tries } => return clients::http2_tries(tries),
        Run::ServeKill { cycles, seed } => Tests {
            package: "nearsift-cli",
            binary: "cli",
            names: &["serve::kill::"],
            variables: vec![
                ("NEARSIFT_SERVE_KILL_CYCLES", cycles),
                ("NEARSIFT_SERVE_KILL_SEED", seed),
            ],
        },
        Run::Slow { clients } => Tests {
            package: "nearsift-server",
            binary: "service",
            names: &["limits::slow_heads"],
            variables: vec![("NEARSIFT_SLOW_CLIENTS", clients)],
        },
        Run::Sim { seeds, first } => {
            store(&["crash::"], &[("NEARSIFT_SIM_SEEDS", seeds), ("NEARSIFT_SIM_FIRST", first)])
        }
        Run::Kill { cycles, seed } => {
            store(&["kill::"], &[("NEARSIFT_KILL_CYCLES", cycles), ("NEARSIFT_KILL_SEED", seed)])
        }
        Run::Flip { flips, seed } => store(
            &["damage::random_damage", "damage::every_changed_byte"],
            &[("NEARSIFT_FLIPS", flips), ("NEARSIFT_FLIP_SEED", seed)],
        ),
        Run::Model { operations, seed } => store(
            &["model::"],
            &[("NEARSIFT_MODEL_OPERATIONS", operations), ("NEARSIFT_MODEL_SEED", seed)],
        ),
        Run::Power { cycles, seed } => {
            store(&["power::"], &[("NEARSIFT_POWER_CYCLES", cycles), ("NEARSIFT_POWER_SEED", seed)])
        }
        Run::Syscalls { points, first } => store(
            &["syscalls::"],
            &[("NEARSIFT_SYSCALL_POINTS", points), ("NEARSIFT_SYSCALL_FIRST", first)],
        ),
        Run::Full { sizes, inodes } => {
            store(&["full::"], &[("NEARSIFT_FULL_SIZES", sizes), ("NEARSIFT_FULL_INODES", inodes)])
        }
        Run::Faults => store(&["faults::"], &[]),
        Run::Planted => store(&["planted::"], &[("NEARSIFT_PLANTED_ALL", 1)]),
        Run::Upgrade { steps } => store(&["kept::"], &[("NEARSIFT_UPGRADE_STEPS", steps)]),
        Run::Schedules { schedules } => Tests {
            package: "nearsift-store-schedules",
            binary: "schedules",
            names: &[],
            variables: vec![("NEARSIFT_SCHEDULES", schedules)],
        },
    };
    let mut command =
        cargo(&["test", "--release", "--locked", "--package", tests.package, "--test"]);
    command
        .args([tests.binary, "--"])
        .args(tests.names)
        .arg("--nocapture")
        .envs(tests.variables.iter().map(|(name, value)| (name, value.to_string())));
    loud(command)
}
