//! Where a benchmark ran, for its record.

use std::process::Command;

/// What decides the figures besides the code.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// How many threads can run at once.
    pub cores: usize,
    /// Vector instructions among those that the kernels choose by.
    pub features: Vec<&'static str>,
    /// Operating system and architecture.
    pub system: String,
    /// The compiler.
    pub rustc: String,
    /// The commit that was measured, with `+` when files differ from it.
    pub commit: String,
    /// Mean number of running processes in the minute before the start: noise, when it is near or
    /// above `cores`.
    pub load: String,
}

impl Machine {
    /// This machine, now. What cannot be found out is 'unknown'.
    pub fn here() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| {
                line.strip_prefix("model name")?.split_once(": ").map(|v| v.1.to_owned())
            })
            .unwrap_or_else(unknown);
        let load = read("/proc/loadavg").split(' ').next().map_or_else(unknown, str::to_owned);
        let changed = output("git", &["status", "--porcelain", "--untracked-files=no"]);
        let commit = output("git", &["rev-parse", "--short=10", "HEAD"]).unwrap_or_else(unknown);
        Machine {
            cpu,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            features: features(),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            rustc: output("rustc", &["--version"]).unwrap_or_else(unknown),
            commit: commit + if changed.is_some_and(|c| !c.is_empty()) { "+" } else { "" },
            load,
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    let found = [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512bw", is_x86_feature_detected!("avx512bw")),
        ("avx512vpopcntdq", is_x86_feature_detected!("avx512vpopcntdq")),
    ];
    found.into_iter().filter(|feature| feature.1).map(|feature| feature.0).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<&'static str> {
    Vec::new()
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(testkit::repository());
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn unknown() -> String {
    "unknown".to_owned()
}
