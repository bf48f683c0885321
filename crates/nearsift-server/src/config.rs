//! Settings: one table of names for the file, the environment and the flags.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ServeError;
use crate::queue::Bounds;

/// How the service runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The folder of the collections.
    pub dir: PathBuf,
    /// Where it listens. Beyond loopback it needs keys.
    pub listen: SocketAddr,
    /// A file of key lines.
    pub keys_file: Option<PathBuf>,
    /// Key lines, parted by `;` or line feeds.
    pub keys: String,
    /// Host names that requests may be for, beside IP addresses and `localhost`.
    pub allowed_hosts: Vec<String>,
    /// The certificate chain, PEM.
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM.
    pub tls_key: Option<PathBuf>,
    /// How long a client may take for the head of a request, TLS handshake included.
    pub header_timeout: Duration,
    /// How long a client may take for the body of a request.
    pub body_timeout: Duration,
    /// How long a connection may be without a request.
    pub idle_timeout: Duration,
    /// How long work may wait for its turn.
    pub queue_timeout: Duration,
    /// How long work on a request may take once it has its turn.
    pub work_timeout: Duration,
    /// How long a client may take for an answer, beside a second for each 64 KiB of it.
    pub write_timeout: Duration,
    /// How long requests that are under way are waited for when the service stops.
    pub stop_timeout: Duration,
    /// Connections at a time.
    pub max_connections: usize,
    /// Connections of one address at a time; of IPv6, of the first 64 bits of one.
    pub max_connections_per_address: usize,
    /// Requests with a body that are worked on at a time.
    pub max_requests: usize,
    /// Bytes of a body.
    pub max_body: usize,
    /// Bytes of all bodies, and of all answers that were not taken yet, at a time.
    pub max_body_memory: usize,
    /// Bytes that work on documents may take at a time, by estimate.
    pub max_work_memory: usize,
    /// Documents of a batch.
    pub max_batch: usize,
    /// Collections.
    pub max_collections: usize,
    /// Threads that extract and fingerprint documents.
    pub threads: usize,
    /// Threads that read single documents, and take snapshots.
    pub store_threads: usize,
    /// Jobs that wait for each kind of thread.
    pub queue: usize,
    /// How logs are written.
    pub log: Log,
    origins: Vec<Origin>,
}

/// How logs are written, to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// A line of text for each event.
    Text,
    /// A JSON object for each event.
    Json,
    /// None.
    Off,
}

/// Who said what a setting is. Later ones win.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Default,
    File,
    Environment,
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Default => "default",
            Origin::File => "file",
            Origin::Environment => "environment",
            Origin::Flag => "flag",
        })
    }
}

/// A setting: `name` in the file, `NEARSIFT_NAME` in the environment, `--name` as a flag.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name in the file and as a flag.
    pub name: &'static str,
    /// What its value looks like.
    pub value: &'static str,
    /// What it is for.
    pub help: &'static str,
    set: fn(&mut Config, &str) -> Result<(), String>,
    show: fn(&Config) -> String,
}

impl Config {
    /// How many jobs wait for each kind of thread, and for how long they may.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { capacity: self.queue, patience: self.queue_timeout }
    }
}

impl Setting {
    /// Its name in the environment.
    pub fn variable(&self) -> String {
        format!("NEARSIFT_{}", self.name.replace('-', "_").to_ascii_uppercase())
    }
}

/// All settings.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "listen",
        value: "IP:PORT",
        help: "where to listen; another address than loopback needs keys",
        set: |c, v| {
            put(&mut c.listen, v.parse().ok(), "an address and a port such as 127.0.0.1:7717")
        },
        show: |c| text(&c.listen.to_string()),
    },
    Setting {
        name: "keys-file",
        value: "FILE",
        help: "API keys: a line `SCOPE sha256:HEX [NAME]` each, as --new-key prints it",
        set: |c, v| path(&mut c.keys_file, v),
        show: |c| shown_path(c.keys_file.as_deref()),
    },
    Setting {
        name: "keys",
        value: "LINES",
        help: "the same lines, parted by semicolons",
        set: |c, v| put(&mut c.keys, Some(v.to_owned()), ""),
        show: |c| text(if c.keys.is_empty() { "" } else { "(not shown)" }),
    },
    Setting {
        name: "allowed-hosts",
        value: "NAMES",
        help: "host names that requests may be for, parted by commas; IP addresses and localhost always are",
        set: |c, v| {
            let names = v.split(',').map(|name| name.trim().to_ascii_lowercase());
            c.allowed_hosts = names.filter(|name| !name.is_empty()).collect();
            match c.allowed_hosts.iter().find(|name| name.contains(['/', ':', '*', ' '])) {
                Some(name) => Err(format!(
                    "'{}': expected a name without port, scheme or *",
                    name.escape_debug()
                )),
                None => Ok(()),
            }
        },
        show: |c| text(&c.allowed_hosts.join(",")),
    },
    Setting {
        name: "tls-cert",
        value: "FILE",
        help: "the certificate chain in PEM: with it HTTPS is spoken, and nothing else",
        set: |c, v| path(&mut c.tls_cert, v),
        show: |c| shown_path(c.tls_cert.as_deref()),
    },
    Setting {
        name: "tls-key",
        value: "FILE",
        help: "the certificate's private key in PEM",
        set: |c, v| path(&mut c.tls_key, v),
        show: |c| shown_path(c.tls_key.as_deref()),
    },
    Setting {
        name: "header-timeout",
        value: "TIME",
        help: "how long a client may take for the head of a request",
        set: |c, v| put(&mut c.header_timeout, time(v), TIME),
        show: |c| shown_time(c.header_timeout),
    },
    Setting {
        name: "body-timeout",
        value: "TIME",
        help: "how long a client may take for the body of a request",
        set: |c, v| put(&mut c.body_timeout, time(v), TIME),
        show: |c| shown_time(c.body_timeout),
    },
    Setting {
        name: "idle-timeout",
        value: "TIME",
        help: "how long a connection may be without a request",
        set: |c, v| put(&mut c.idle_timeout, time(v), TIME),
        show: |c| shown_time(c.idle_timeout),
    },
    Setting {
        name: "queue-timeout",
        value: "TIME",
        help: "how long work may wait for its turn before it is answered 503",
        set: |c, v| put(&mut c.queue_timeout, time(v), TIME),
        show: |c| shown_time(c.queue_timeout),
    },
    Setting {
        name: "work-timeout",
        value: "TIME",
        help: "how long work on a request may take once it has its turn, before it is answered 503",
        set: |c, v| put(&mut c.work_timeout, time(v), TIME),
        show: |c| shown_time(c.work_timeout),
    },
    Setting {
        name: "write-timeout",
        value: "TIME",
        help: "how long a client may take for an answer, beside a second for each 64 KiB of it",
        set: |c, v| put(&mut c.write_timeout, time(v), TIME),
        show: |c| shown_time(c.write_timeout),
    },
    Setting {
        name: "stop-timeout",
        value: "TIME",
        help: "how long requests under way are waited for at the end",
        set: |c, v| put(&mut c.stop_timeout, time(v), TIME),
        show: |c| shown_time(c.stop_timeout),
    },
    Setting {
        name: "max-connections",
        value: "N",
        help: "connections at a time; beyond it the longest idle one ends, or if none is idle the new one",
        set: |c, v| put(&mut c.max_connections, count(v, 1_000_000), COUNT),
        show: |c| c.max_connections.to_string(),
    },
    Setting {
        name: "max-connections-per-address",
        value: "N",
        help: "connections of one address at a time (of IPv6: of its first 64 bits), by the same rule",
        set: |c, v| put(&mut c.max_connections_per_address, count(v, 1_000_000), COUNT),
        show: |c| c.max_connections_per_address.to_string(),
    },
    Setting {
        name: "max-requests",
        value: "N",
        help: "requests with a body that are worked on at a time; more are answered 503",
        set: |c, v| put(&mut c.max_requests, count(v, 1_000_000), COUNT),
        show: |c| c.max_requests.to_string(),
    },
    Setting {
        name: "max-body",
        value: "SIZE",
        help: "the largest body of a request",
        set: |c, v| put(&mut c.max_body, size(v), SIZE),
        show: |c| text(&shown_size(c.max_body)),
    },
    Setting {
        name: "max-body-memory",
        value: "SIZE",
        help: "the most memory for all bodies, and all answers that were not taken yet; beyond it requests are answered 503",
        set: |c, v| put(&mut c.max_body_memory, size(v), SIZE),
        show: |c| text(&shown_size(c.max_body_memory)),
    },
    Setting {
        name: "max-work-memory",
        value: "SIZE",
        help: "the most memory for work on documents at a time, by estimate; a document that needs more is refused",
        set: |c, v| put(&mut c.max_work_memory, size(v), SIZE),
        show: |c| text(&shown_size(c.max_work_memory)),
    },
    Setting {
        name: "max-batch",
        value: "N",
        help: "the most documents of one request",
        set: |c, v| put(&mut c.max_batch, count(v, 1_000_000), COUNT),
        show: |c| c.max_batch.to_string(),
    },
    Setting {
        name: "max-collections",
        value: "N",
        help: "the most collections",
        set: |c, v| put(&mut c.max_collections, count(v, 100_000), COUNT),
        show: |c| c.max_collections.to_string(),
    },
    Setting {
        name: "workers",
        value: "N",
        help: "threads that extract and fingerprint documents; one a core unless given",
        set: |c, v| put(&mut c.threads, count(v, 4096), COUNT),
        show: |c| c.threads.to_string(),
    },
    Setting {
        name: "store-workers",
        value: "N",
        help: "threads that read single documents, and take snapshots",
        set: |c, v| put(&mut c.store_threads, count(v, 4096), COUNT),
        show: |c| c.store_threads.to_string(),
    },
    Setting {
        name: "queue",
        value: "N",
        help: "jobs that may wait for each kind of thread; more are answered 503",
        set: |c, v| put(&mut c.queue, count(v, 1_000_000), COUNT),
        show: |c| c.queue.to_string(),
    },
    Setting {
        name: "log",
        value: "text|json|off",
        help: "how logs are written, to standard error",
        set: |c, v| {
            let log = match v {
                "text" => Some(Log::Text),
                "json" => Some(Log::Json),
                "off" => Some(Log::Off),
                _ => None,
            };
            put(&mut c.log, log, "text, json or off")
        },
        show: |c| {
            text(match c.log {
                Log::Text => "text",
                Log::Json => "json",
                Log::Off => "off",
            })
        },
    },
];

const TIME: &str = "a time such as 500ms, 10s or 2m, from 1ms to 1h";
const SIZE: &str = "a size such as 64KiB or 16MiB, from 1KiB to 1TiB";
const COUNT: &str = "a whole number from 1 on";

fn put<T>(to: &mut T, value: Option<T>, expected: &str) -> Result<(), String> {
    *to = value.ok_or_else(|| format!("expected {expected}"))?;
    Ok(())
}

fn path(to: &mut Option<PathBuf>, value: &str) -> Result<(), String> {
    *to = (!value.is_empty()).then(|| PathBuf::from(value));
    Ok(())
}

fn count(value: &str, most: usize) -> Option<usize> {
    value.parse().ok().filter(|n| (1..=most).contains(n))
}

/// A number and its unit.
fn parted(value: &str) -> Option<(u64, &str)> {
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    Some((value[..digits].parse().ok()?, value[digits..].trim()))
}

fn time(value: &str) -> Option<Duration> {
    let (number, unit) = parted(value)?;
    let milliseconds = match unit {
        "ms" => number,
        "s" => number.checked_mul(1_000)?,
        "m" => number.checked_mul(60_000)?,
        "h" => number.checked_mul(3_600_000)?,
        _ => return None,
    };
    (1..=3_600_000).contains(&milliseconds).then(|| Duration::from_millis(milliseconds))
}

fn size(value: &str) -> Option<usize> {
    let (number, unit) = parted(value)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    let bytes = number.checked_mul(factor)?;
    (1 << 10..=1 << 40).contains(&bytes).then(|| usize::try_from(bytes).ok())?
}

fn text(value: &str) -> String {
    toml::Value::String(value.to_owned()).to_string()
}

fn shown_path(path: Option<&Path>) -> String {
    text(&path.map(|path| path.display().to_string()).unwrap_or_default())
}

fn shown_time(time: Duration) -> String {
    match time.as_millis() {
        whole if whole % 1000 == 0 => text(&format!("{}s", whole / 1000)),
        rest => text(&format!("{rest}ms")),
    }
}

fn shown_size(bytes: usize) -> String {
    match bytes {
        whole if whole % (1 << 20) == 0 => format!("{}MiB", whole >> 20),
        whole if whole % (1 << 10) == 0 => format!("{}KiB", whole >> 10),
        rest => format!("{rest}B"),
    }
}

/// A larger file is no settings file.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl Config {
    /// The defaults, for a folder.
    pub fn new(dir: &Path) -> Config {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Config {
            dir: dir.to_owned(),
            listen: SocketAddr::from(([127, 0, 0, 1], 7717)),
            keys_file: None,
            keys: String::new(),
            allowed_hosts: Vec::new(),
            tls_cert: None,
            tls_key: None,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            queue_timeout: Duration::from_secs(1),
            work_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            stop_timeout: Duration::from_secs(30),
            max_connections: 4096,
            max_connections_per_address: 1024,
            max_requests: 256,
            max_body: 16 << 20,
            max_body_memory: 256 << 20,
            max_work_memory: 2 << 30,
            max_batch: 10_000,
            max_collections: 100,
            threads: cores,
            store_threads: 8,
            queue: 512,
            log: Log::Text,
            origins: vec![Origin::Default; SETTINGS.len()],
        }
    }

    /// The settings of a file, of the environment and of flags; of two that say the same setting the later one
    /// counts.
    ///
    /// # Errors
    /// [`ServeError::Setting`]: what is wrong where, and what was expected.
    pub fn load(
        dir: &Path,
        file: Option<&Path>,
        environment: impl Fn(&str) -> Option<String>,
        flags: &[(String, String)],
    ) -> Result<Config, ServeError> {
        let mut config = Config::new(dir);
        if let Some(file) = file {
            for (name, value) in read(file)? {
                let place = format!("{}: {name}", file.display());
                config.set(&name, &value, Origin::File, &place)?;
            }
        }
        for setting in SETTINGS {
            let variable = setting.variable();
            if let Some(value) = environment(&variable) {
                config.set(setting.name, &value, Origin::Environment, &variable)?;
            }
        }
        for (name, value) in flags {
            config.set(name, value, Origin::Flag, &format!("--{name}"))?;
        }
        if config.tls_cert.is_some() != config.tls_key.is_some() {
            return Err(ServeError::Setting {
                place: "tls-cert, tls-key".to_owned(),
                problem: "one of the two is missing: give both for HTTPS, none for HTTP".to_owned(),
            });
        }
        Ok(config)
    }

    fn set(
        &mut self,
        name: &str,
        value: &str,
        origin: Origin,
        place: &str,
    ) -> Result<(), ServeError> {
        let wrong = |problem| ServeError::Setting { place: place.to_owned(), problem };
        let Some(at) = SETTINGS.iter().position(|setting| setting.name == name) else {
            let names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
            return Err(wrong(format!("no such setting: expected one of {}", names.join(", "))));
        };
        (SETTINGS[at].set)(self, value).map_err(|expected| {
            let found: String = value.chars().take(60).collect();
            wrong(format!("{expected}, found '{}'", found.escape_debug()))
        })?;
        self.origins[at] = origin;
        Ok(())
    }

    /// The settings as a file, with where each is from.
    pub fn print(&self) -> String {
        let lines = SETTINGS.iter().zip(&self.origins).map(|(setting, origin)| {
            let (name, value) = (setting.name, (setting.show)(self));
            format!("# {} ({origin})\n{name} = {value}\n", setting.help)
        });
        lines.collect()
    }
}

/// The names and values of a settings file.
fn read(file: &Path) -> Result<Vec<(String, String)>, ServeError> {
    use std::io::Read;
    let wrong =
        |problem: String| ServeError::Setting { place: file.display().to_string(), problem };
    let mut written = String::new();
    std::fs::File::open(file)
        .and_then(|opened| opened.take(MAX_FILE_BYTES + 1).read_to_string(&mut written))
        .map_err(|error| wrong(format!("cannot read: {error}")))?;
    if written.len() as u64 > MAX_FILE_BYTES {
        return Err(wrong("more than 1 MiB: expected a settings file".to_owned()));
    }
    let table: toml::Table =
        written.parse().map_err(|error| wrong(format!("not TOML: {error}")))?;
    let settings = table.into_iter().map(|(name, value)| {
        let value = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Array(items) => {
                let items = items.iter().map(|item| {
                    item.as_str()
                        .ok_or_else(|| wrong(format!("{name}: expected texts in the list")))
                });
                items.collect::<Result<Vec<_>, _>>()?.join(",")
            }
            other => {
                return Err(wrong(format!(
                    "{name}: expected a text or a whole number, found {}",
                    other.type_str()
                )));
            }
        };
        Ok((name, value))
    });
    settings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(
        file: &str,
        environment: &[(&str, &str)],
        flags: &[(&str, &str)],
    ) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.toml");
        std::fs::write(&path, file).unwrap();
        let of = |name: &str| {
            environment.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned())
        };
        let flags: Vec<_> = flags.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Config::load(Path::new("data"), Some(&path), of, &flags).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_file() {
        let file = "max-body = \"1MiB\"\nmax-requests = 7\nqueue = 9\nallowed-hosts = [\"a.example\", \"B.example\"]";
        let config = load(
            file,
            &[("NEARSIFT_MAX_REQUESTS", "8"), ("NEARSIFT_QUEUE", "10")],
            &[("queue", "11")],
        )
        .unwrap();
        assert_eq!((config.max_body, config.max_requests, config.queue), (1 << 20, 8, 11));
        assert_eq!(config.allowed_hosts, ["a.example", "b.example"]);
    }

    #[test]
    fn mistakes_are_told_where_they_are() {
        let check =
            |file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)], expect: &str| {
                let error = load(file, environment, flags).unwrap_err();
                assert!(error.contains(expect), "{error}");
            };
        check("", &[], &[("listen", "nowhere")], "--listen: expected an address and a port");
        check(
            "",
            &[("NEARSIFT_IDLE_TIMEOUT", "soon")],
            &[],
            "NEARSIFT_IDLE_TIMEOUT: expected a time",
        );
        check("max-bodi = 3", &[], &[], "max-bodi: no such setting: expected one of listen");
        check("max-body = 3.5", &[], &[], "expected a text or a whole number, found float");
        check("max-body = ", &[], &[], "not TOML");
        check("allowed-hosts = \"*\"", &[], &[], "expected a name without port");
        check("tls-cert = \"a.pem\"", &[], &[], "one of the two is missing");
    }

    #[test]
    fn printed_settings_are_a_settings_file() {
        let config = load("max-body = \"1MiB\"", &[], &[("header-timeout", "1500ms")]).unwrap();
        let printed = config.print();
        assert!(printed.contains("(file)\nmax-body = \"1MiB\""), "{printed}");
        let again = load(&printed, &[], &[]).unwrap();
        let plain = |c: &Config| Config { origins: Vec::new(), ..c.clone() };
        assert_eq!(plain(&again), plain(&config));
    }
}
