//! Counters, in the text format of Prometheus.

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::process::Process;
use crate::reload::Reloaded;

type Labels = Vec<(&'static str, String)>;

/// How long something took, by labels.
pub(crate) type Durations = Family<Labels, Histogram, fn() -> Histogram>;

/// All counters of a service.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Durations,
    problems: Family<Labels, Counter>,
    outcomes: Family<Labels, Counter>,
    documents: Family<Labels, Gauge>,
    disk_bytes: Family<Labels, Gauge>,
    memory_bytes: Family<Labels, Gauge>,
    writable: Family<Labels, Gauge>,
    waiting: Family<Labels, Gauge>,
    connections: Gauge<i64, AtomicI64>,
    refused: Counter,
    gave_way: Counter,
    log_lost: Counter,
    reloads: Family<Labels, Counter>,
    reloaded: Family<Labels, Gauge>,
}

/// What is counted of a collection when somebody asks.
pub(crate) struct Held {
    pub(crate) collection: String,
    pub(crate) documents: u64,
    pub(crate) disk_bytes: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) is_writable: bool,
}

/// Nothing has taken any time yet.
pub(crate) fn durations() -> Durations {
    Durations::new_with_constructor(histogram)
}

/// The label of a collection.
pub(crate) fn of_collection(name: &impl ToString) -> Labels {
    vec![("collection", name.to_string())]
}

fn of_reload(what: Reloaded, result: &str) -> Labels {
    vec![("what", what.name().to_owned()), ("result", result.to_owned())]
}

fn histogram() -> Histogram {
    Histogram::new([
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
    ])
}

impl Metrics {
    /// `writes` are those of collections.
    pub(crate) fn new(writes: Durations) -> Metrics {
        let mut all = Registry::default();
        all.register_collector(Box::new(Process::own()));
        let registry = all.sub_registry_with_prefix("nearsift");
        let build = vec![
            ("version", env!("CARGO_PKG_VERSION")),
            ("os", std::env::consts::OS),
            ("arch", std::env::consts::ARCH),
        ];
        registry.register("build", "The program that runs", Info::new(build));
        let requests = Family::<Labels, Counter>::default();
        registry.register("requests", "Requests that were answered", requests.clone());
        let seconds = durations();
        registry.register_with_unit(
            "request_duration",
            "How long they took",
            Unit::Seconds,
            seconds.clone(),
        );
        registry.register_with_unit(
            "write_duration",
            "How long writes took that share a sync, from their turn until they were durable",
            Unit::Seconds,
            writes,
        );
        let problems = Family::<Labels, Counter>::default();
        registry.register(
            "problems",
            "Requests that were answered with a problem, by its kind",
            problems.clone(),
        );
        let outcomes = Family::<Labels, Counter>::default();
        registry.register(
            "document_outcomes",
            "What became of documents that were sent",
            outcomes.clone(),
        );
        let documents = Family::<Labels, Gauge>::default();
        registry.register("documents", "Documents of a collection", documents.clone());
        let disk_bytes = Family::<Labels, Gauge>::default();
        registry.register_with_unit(
            "disk",
            "Segments and log of a collection",
            Unit::Bytes,
            disk_bytes.clone(),
        );
        let memory_bytes = Family::<Labels, Gauge>::default();
        registry.register_with_unit(
            "memory",
            "What a collection holds in memory",
            Unit::Bytes,
            memory_bytes.clone(),
        );
        let writable = Family::<Labels, Gauge>::default();
        registry.register("writable", "1 while a collection takes writes", writable.clone());
        let waiting = Family::<Labels, Gauge>::default();
        registry.register("queue_jobs", "Jobs that wait for their turn", waiting.clone());
        let connections = Gauge::default();
        registry.register("connections", "Connections that are open", connections.clone());
        let refused = Counter::default();
        registry.register("refused_connections", "Connections that found no room", refused.clone());
        let gave_way = Counter::default();
        registry.register(
            "yielded_connections",
            "Idle connections that ended to make room for others",
            gave_way.clone(),
        );
        let log_lost = Counter::default();
        registry.register(
            "log_lines_lost",
            "Lines of the log that could not be written",
            log_lost.clone(),
        );
        let reloads = Family::<Labels, Counter>::default();
        registry.register("reloads", "Files that were read again on SIGHUP", reloads.clone());
        let reloaded = Family::<Labels, Gauge>::default();
        registry.register(
            "last_reload_successful",
            "0 after a file could not be read again, so that what was read before still counts",
            reloaded.clone(),
        );
        // A rate needs a first value.
        for what in Reloaded::ALL {
            for result in ["success", "failure"] {
                reloads.get_or_create(&of_reload(what, result)).inc_by(0);
            }
            reloaded.get_or_create(&vec![("what", what.name().to_owned())]).set(1);
        }
        Metrics {
            registry: all,
            requests,
            seconds,
            problems,
            outcomes,
            documents,
            disk_bytes,
            memory_bytes,
            writable,
            waiting,
            connections,
            refused,
            gave_way,
            log_lost,
            reloads,
            reloaded,
        }
    }

    /// A file was read again, or could not be.
    pub(crate) fn reloaded(&self, what: Reloaded, is_read: bool) {
        let result = if is_read { "success" } else { "failure" };
        self.reloads.get_or_create(&of_reload(what, result)).inc();
        let last = self.reloaded.get_or_create(&vec![("what", what.name().to_owned())]);
        last.set(i64::from(is_read));
    }

    pub(crate) fn request(&self, method: &str, route: &str, status: u16, took: Duration) {
        let route = ("route", route.to_owned());
        let labels =
            vec![("method", method.to_owned()), route.clone(), ("status", status.to_string())];
        self.requests.get_or_create(&labels).inc();
        self.seconds.get_or_create(&vec![route]).observe(took.as_secs_f64());
    }

    pub(crate) fn problem(&self, kind: &'static str) {
        self.problems.get_or_create(&vec![("kind", kind.to_owned())]).inc();
    }

    pub(crate) fn outcome(&self, outcome: &'static str) {
        self.outcomes.get_or_create(&vec![("outcome", outcome.to_owned())]).inc();
    }

    pub(crate) fn connected(&self) {
        self.connections.inc();
    }

    pub(crate) fn disconnected(&self) {
        self.connections.dec();
    }

    pub(crate) fn gave_way(&self) {
        self.gave_way.inc();
    }

    pub(crate) fn refused(&self) {
        self.refused.inc();
    }

    /// Everything, with what collections hold and pools have waiting at this moment.
    pub(crate) fn text(&self, held: &[Held], waiting: &[(&str, usize)]) -> String {
        // What was deleted is not told any more.
        for family in [&self.documents, &self.disk_bytes, &self.memory_bytes, &self.writable] {
            family.clear();
        }
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        for one in held {
            let labels = of_collection(&one.collection);
            self.documents.get_or_create(&labels).set(number(one.documents));
            self.disk_bytes.get_or_create(&labels).set(number(one.disk_bytes));
            self.memory_bytes.get_or_create(&labels).set(number(one.memory_bytes));
            self.writable.get_or_create(&labels).set(i64::from(one.is_writable));
        }
        for (pool, jobs) in waiting {
            self.waiting
                .get_or_create(&vec![("pool", (*pool).to_owned())])
                .set(number(*jobs as u64));
        }
        self.log_lost.inc_by(crate::log::lost().saturating_sub(self.log_lost.get()));
        let mut text = String::new();
        // Writing to a text does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
