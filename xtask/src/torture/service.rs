//! The service: killed under load, and with thousands of slow clients.

use clap::Args;

use crate::tools::{cargo, loud};

/// How often it is killed.
#[derive(Debug, Args)]
pub struct Kill {
    /// Kills
    #[arg(default_value_t = 500)]
    cycles: u64,
    /// What the moments are drawn from
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
}

/// How many slow clients there are.
#[derive(Debug, Args)]
pub struct Slow {
    /// Clients, each of which holds a connection: the limit of open files must be twice as high
    #[arg(default_value_t = 2_000)]
    clients: u64,
}

/// Runs the program's own test.
pub fn kill(kill: &Kill) -> Result<(), String> {
    let mut command = cargo(&[
        "test",
        "--release",
        "--locked",
        "--package",
        "nearsift-cli",
        "--test",
        "cli",
        "--",
    ]);
    command
        .args(["serve::kill::", "--nocapture"])
        .env("NEARSIFT_SERVE_KILL_CYCLES", kill.cycles.to_string())
        .env("NEARSIFT_SERVE_KILL_SEED", kill.seed.to_string());
    loud(command)
}

/// Runs the service's own test, which holds good requests to their time.
pub fn slow(slow: &Slow) -> Result<(), String> {
    let mut command = cargo(&["test", "--release", "--locked", "--package", "nearsift-server"]);
    command
        .args(["--test", "service", "--", "limits::slow_heads", "--nocapture"])
        .env("NEARSIFT_SLOW_CLIENTS", slow.clients.to_string());
    loud(command)
}
