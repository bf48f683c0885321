//! Running the program and measuring it from outside.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The released program, which `cargo xtask bench` builds first; `NEARSIFT` names another.
pub fn program() -> Result<PathBuf, String> {
    let program = match std::env::var_os("NEARSIFT") {
        Some(program) => PathBuf::from(program),
        None => std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nearsift"),
    };
    if program.is_file() {
        return Ok(program);
    }
    Err(format!("{}: no such program; run cargo xtask bench", program.display()))
}

/// What a process took.
#[derive(Debug)]
pub struct Usage {
    /// How it ended.
    pub status: ExitStatus,
    /// From start to end.
    pub wall: Duration,
    /// Processor time, user and system, over all threads.
    pub cpu: Duration,
    /// The most memory that was resident at any time, in bytes.
    pub peak_bytes: u64,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
}

/// Runs a command to its end. Its standard output is dropped.
///
/// Memory is `VmHWM` of `/proc/PID/status`, the kernel's own high-water mark, read every few
/// milliseconds while the process lives: only what it gains in the last of them can be missed. The
/// figure of wait4(2) is never below what the parent held when it forked, and this parent is large.
/// Processor time is read in the same way, to 10 ms. Both are 0 where there is no `/proc`.
pub fn measure(command: &mut Command) -> Result<Usage, String> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let begun = Instant::now();
    let mut child =
        command.spawn().map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    let pid = child.id();
    let (stop, stopped) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let sampler = scope.spawn(move || sample(pid, &stopped));
        let outcome = collect(&mut child);
        let wall = begun.elapsed();
        drop(stop);
        let (cpu, peak_bytes) = sampler.join().expect("the sampler only reads");
        let (status, stderr) = outcome.map_err(|e| e.to_string())?;
        Ok(Usage { status, wall, cpu, peak_bytes, stderr })
    })
}

fn collect(child: &mut Child) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let mut stderr = Vec::new();
    child.stderr.take().expect("standard error is piped").read_to_end(&mut stderr)?;
    Ok((child.wait()?, stderr))
}

fn sample(pid: u32, stopped: &mpsc::Receiver<()>) -> (Duration, u64) {
    let (mut cpu, mut peak) = (Duration::ZERO, 0);
    loop {
        peak = peak.max(peak_resident(pid).unwrap_or(0));
        cpu = cpu.max(processor_time(pid).unwrap_or_default());
        match stopped.recv_timeout(Duration::from_millis(3)) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            _ => return (cpu, peak),
        }
    }
}

fn peak_resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Processor time of a process so far, user and system, to 10 ms.
pub fn processor_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold spaces: count from its end.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    // Linux reports these in hundredths of a second on every architecture (USER_HZ).
    Some(Duration::from_millis((user + system) * 10))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn memory_and_time_of_a_process_are_seen() {
        // A shell that holds a string of 30 MB and then sleeps.
        let script =
            "x=$(head -c 30000000 /dev/zero | tr '\\0' a); sleep 0.2; echo ${#x} >&2; exit 3";
        let usage = measure(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!(usage.status.code(), Some(3));
        assert_eq!(usage.stderr, b"30000000\n");
        assert!(usage.peak_bytes > 30_000_000, "{usage:?}");
        assert!(usage.wall >= Duration::from_millis(200), "{usage:?}");
        assert!(usage.cpu > Duration::ZERO, "{usage:?}");
    }
}
