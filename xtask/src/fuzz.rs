//! Coverage-guided fuzzing by cargo-fuzz, which needs a nightly compiler.

use std::process::Command;

use clap::Args;

use crate::tools::{cargo, loud, quiet, repository, works};

/// What `cargo xtask fuzz` is told.
#[derive(Args)]
pub struct Arguments {
    /// The target; all of them, one after the other, when absent
    target: Option<String>,
    /// How long to fuzz each target, in seconds
    #[arg(long, default_value_t = 60, value_name = "N")]
    seconds: u32,
    /// List the targets and stop
    #[arg(long)]
    list: bool,
}

/// Fuzzes, starting from the targets' own seeds and from what earlier runs found.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    if arguments.list {
        return loud(oracles(&["list"]));
    }
    let known = quiet(oracles(&["list", "--names"]))?;
    let known: Vec<&str> = known.lines().collect();
    let targets = match &arguments.target {
        Some(target) if !known.contains(&target.as_str()) => {
            return Err(format!("no fuzz target '{target}': expected one of {}", known.join(", ")));
        }
        Some(target) => vec![target.as_str()],
        None => known,
    };
    tools_are_there()?;
    // The seeds go into the corpus that fuzzing grows.
    loud(oracles(&["seeds", "fuzz/corpus"]))?;
    let mut failed = Vec::new();
    for target in targets {
        println!("{target}: {} s", arguments.seconds);
        let mut command = nightly(&["fuzz", "run", target]);
        command.args(["--", &format!("-max_total_time={}", arguments.seconds), "-timeout=20"]);
        if let Err(error) = loud(command) {
            println!("{target}: FAILED: {error}");
            println!("the input is in fuzz/artifacts/{target}; replay it on any toolchain:");
            println!("  cargo run -p fuzz-oracles -- replay {target} fuzz/artifacts/{target}/FILE");
            failed.push(target);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

fn oracles(arguments: &[&str]) -> Command {
    let mut command = cargo(&["run", "--quiet", "--package", "fuzz-oracles", "--"]);
    command.args(arguments);
    command
}

/// Nightly cargo, through rustup: the variables that pin this run's toolchain must not reach it.
fn nightly(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments).current_dir(repository());
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC");
    command
}

fn tools_are_there() -> Result<(), String> {
    if !works(nightly(&["--version"])) {
        return Err("fuzzing needs a nightly compiler: rustup toolchain install nightly\n\
                    (without it, the same oracles run on stable: cargo xtask test oracles)"
            .to_owned());
    }
    if !works(nightly(&["fuzz", "--version"])) {
        return Err("fuzzing needs cargo-fuzz: cargo install --locked cargo-fuzz".to_owned());
    }
    Ok(())
}
