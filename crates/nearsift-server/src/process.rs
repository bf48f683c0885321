//! What the system says of this process, under the names that Prometheus has for it.
//!
//! On Linux it is read from `/proc`. Elsewhere, and where `/proc` is not mounted, only the start and the limit of files are known.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use rustix::process::{Resource, getrlimit};

/// Ticks a second of the times in `/proc`: the kernel gives them in this unit to all processes, whatever its own timer is (`USER_HZ`).
const TICKS: f64 = 100.0;

/// Read anew each time that metrics are.
#[derive(Debug)]
pub(crate) struct Process {
    /// Seconds since 1970.
    start: f64,
}

impl Process {
    /// The process that this is.
    pub(crate) fn own() -> Process {
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        Process { start: started().unwrap_or(now) }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauge = |name: &str, help: &str, unit: Option<&Unit>, value: f64| {
            let metric = ConstGauge::new(value);
            metric.encode(encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?)
        };
        let start = "When the process began, in seconds since 1970";
        gauge("process_start_time", start, Some(&Unit::Seconds), self.start)?;
        if let Some(most) = getrlimit(Resource::Nofile).current {
            gauge("process_max_fds", "The most files that it may have open", None, most as f64)?;
        }
        if let Some(open) = open_files() {
            gauge("process_open_fds", "Files and connections that are open", None, open as f64)?;
        }
        let Some(used) = Used::read() else { return Ok(()) };
        let resident = "Memory of the process that is in RAM";
        gauge("process_resident_memory", resident, Some(&Unit::Bytes), used.resident_bytes)?;
        let reserved = "Addresses of the process that are in use";
        gauge("process_virtual_memory", reserved, Some(&Unit::Bytes), used.virtual_bytes)?;
        let help = "Time that processors have spent on it";
        let metric = ConstCounter::new(used.cpu_seconds);
        let seconds = Some(&Unit::Seconds);
        metric.encode(encoder.encode_descriptor(
            "process_cpu",
            help,
            seconds,
            MetricType::Counter,
        )?)
    }
}

/// What the process has used.
struct Used {
    cpu_seconds: f64,
    resident_bytes: f64,
    virtual_bytes: f64,
}

impl Used {
    fn read() -> Option<Used> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let bytes = |name: &str| -> Option<f64> {
            let kibibytes = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(1024.0 * kibibytes.trim().strip_suffix(" kB")?.parse::<f64>().ok()?)
        };
        Some(Used {
            cpu_seconds: (field(14)? + field(15)?) / TICKS,
            resident_bytes: bytes("VmRSS:")?,
            virtual_bytes: bytes("VmSize:")?,
        })
    }
}

/// When the process began, by the clock of the system.
fn started() -> Option<f64> {
    let system = std::fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()?;
    Some(boot + field(22)? / TICKS)
}

/// A number of `/proc/self/stat`, counted from 1 as in proc(5).
fn field(number: usize) -> Option<f64> {
    let line = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second is a name in parentheses, which may have blanks.
    let (_, rest) = line.rsplit_once(')')?;
    rest.split_whitespace().nth(number - 3)?.parse().ok()
}

fn open_files() -> Option<usize> {
    // One of them reads the folder.
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_knows_itself() {
        let before = Used::read().unwrap();
        let mut sum = 0u64;
        while Used::read().unwrap().cpu_seconds < before.cpu_seconds + 0.05 {
            sum = (0..1_000_000).fold(sum, |sum, n| sum.wrapping_mul(31).wrapping_add(n));
        }
        std::hint::black_box(sum);
        assert!(before.resident_bytes > 1e6 && before.virtual_bytes > before.resident_bytes);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let started = started().unwrap();
        assert!(started <= now + 1.0 && started > now - 86_400.0, "{started} of {now}");
        let open = open_files().unwrap();
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        // Other tests open files at the same time.
        assert!(open >= 3 && open_files().unwrap() >= 3);
        drop(file);
    }
}
