//! The HTTP face of nearsift: 'have I seen this page?', over HTTP/1.1 and HTTP/2.
//!
//! [`serve`] runs until the process is told to stop; [`Server`] is a service inside another program. The pages of
//! `docs/operate` have every route, setting and problem.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//! use nearsift_server::{Config, Log, Server};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let mut config = Config::new(&folder.path().join("collections"));
//! config.listen = "127.0.0.1:0".parse()?;
//! config.log = Log::Off;
//! let server = Server::start(config)?;
//! let mut client = TcpStream::connect(server.address())?;
//! client.write_all(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
//! server.stop()?;
//! # Ok(()) }
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `config` | settings: file, environment, flags |
//! | `keys` | API keys, hashed |
//! | `collections` | the folder: a store for each collection, snapshots |
//! | `document` | what is sent of a document, and its fingerprint or sketch |
//! | `api` | the routes, one table for all uses |
//! | `guard`, `body` | who may ask, for what; how much, in which time |
//! | `queue`, `pool` | work that waits, bounded; threads for it |
//! | `scratch` | memory of work on documents, bounded and shared |
//! | `writer` | one thread a collection, for all that writes |
//! | `connection`, `presence`, `tls` | connections, who gives way, and their ends |
//! | `answer` | answers until they are taken |
//! | `problem` | errors, RFC 9457 |
//! | [`page`] | the web page: its files, embedded |
//! | `local` | a server for one person on this machine: the same connections, checks and headers, without keys |
//! | `reload` | what is read again while it runs: keys, the certificate |
//! | `probe` | asks a service whether it is ready |
//! | `metrics`, `process`, `slow`, `log` | what is counted, what the system says of the process, the slowest requests, a line for each |
//!
//! # What never happens
//!
//! - Work on documents on a thread that serves connections; a queue without bound.
//! - A path made of what a client sent, but for names of collections, which have neither dot nor slash.
//! - A key or a text of a document in a log.
//! - A connection to anywhere: the service fetches nothing.

mod answer;
mod api;
mod body;
mod collections;
mod config;
mod connection;
mod document;
mod error;
mod guard;
mod keys;
mod local;
mod log;
mod metrics;
pub mod page;
mod pool;
mod presence;
mod probe;
mod problem;
mod process;
mod queue;
mod reload;
mod scratch;
mod slow;
mod tls;
mod writer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use api::{App, State};
use collections::Collections;
use keys::Keys;
use reload::Reloaded;
use scratch::Scratch;
use tls::Certificate;

pub use config::{Config, Log, SETTINGS, Setting};
pub use error::ServeError;
pub use keys::{NewKey, Scope};
#[cfg(unix)]
pub use local::StopSignals;
pub use local::{LocalServer, json};
pub use probe::ready;
pub use problem::{Kind as ProblemKind, Problem};

/// All methods and paths of the service, and the scope that each needs, if any.
pub fn routes() -> Vec<(String, String, Option<Scope>)> {
    api::routes()
}

/// A service that runs. When it is dropped without [`stop`](Server::stop), it stops as at a crash, which loses
/// nothing that was acknowledged.
pub struct Server {
    address: SocketAddr,
    app: App,
    certificate: Option<Arc<Certificate>>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    runtime: Runtime,
}

impl Server {
    /// Opens the collections, and listens.
    ///
    /// # Errors
    /// Settings that do not fit together, no keys for an address that others reach, a folder or file that cannot be
    /// used, or an address that is taken.
    pub fn start(config: Config) -> Result<Server, ServeError> {
        Server::start_on(runtime()?, config)
    }

    fn start_on(runtime: Runtime, config: Config) -> Result<Server, ServeError> {
        log::start(config.log)?;
        let keys = Keys::of(&config)?;
        if keys.is_empty() && !config.listen.ip().is_loopback() {
            return Err(ServeError::Open { address: config.listen });
        }
        let certificate = match (&config.tls_cert, &config.tls_key) {
            (Some(certificate), Some(key)) => Some(Arc::new(Certificate::open(certificate, key)?)),
            _ => None,
        };
        let tls = certificate.clone().map(tls::acceptor).transpose()?;
        raise_open_files();
        let address = config.listen;
        let listener = {
            let _inside = runtime.enter();
            connection::listen(address, config.max_connections)
                .map_err(|source| ServeError::Listen { address, source })?
        };
        let address =
            listener.local_addr().map_err(|source| ServeError::Listen { address, source })?;
        let scratch = Scratch::new(config.max_work_memory, config.threads, config.queue_timeout);
        let (most, writes) = (config.max_collections, config.bounds());
        let collections = Collections::open(&config.dir, most, writes, scratch)?;
        let key_count = keys.len();
        let app = State::start(config, keys, collections)?;
        let router = api::router(App::clone(&app));
        let (stop, told) = watch::channel(false);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let serving =
            runtime.spawn(connection::serve(listener, App::clone(&app), router, tls, told));
        let count = app.collections.all().len();
        tracing::info!(url = %format!("{scheme}://{address}"), collections = count, keys = key_count, "listening");
        Ok(Server { address, app, certificate, stop, serving, runtime })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads the files of `keys-file`, `tls-cert` and `tls-key` again, as at SIGHUP. A key that is not there any more is refused from the next
    /// request on; new connections are shown the new certificate, and those that are open go on. A file that cannot be used changes
    /// nothing: what was read before counts, and the log and the metrics say so.
    pub fn reload(&self) {
        let done = |what: Reloaded, read: Result<(), ServeError>| {
            match &read {
                Ok(()) => tracing::info!(what = what.name(), "read again"),
                Err(error) => {
                    tracing::error!(what = what.name(), %error, "could not be read again: what was read before still counts");
                }
            }
            self.app.metrics.reloaded(what, read.is_ok());
        };
        if self.app.config.keys_file.is_some() {
            let read = Keys::of(&self.app.config).map(|keys| self.app.keys.set(keys));
            done(Reloaded::Keys, read);
        }
        if let Some(certificate) = &self.certificate {
            done(Reloaded::Certificate, certificate.reload());
        }
        if self.app.config.keys_file.is_none() && self.certificate.is_none() {
            tracing::info!("nothing to read again: neither keys-file nor tls-cert is set");
        }
    }

    /// Serves one connection in memory rather than over a socket: a client sends bytes as they are, and no more after them.
    /// Gives what it is answered until the service ends the connection, as after `Connection: close`, after a broken
    /// request, or when the times of the settings are over.
    pub fn converse(&self, sent: &[u8]) -> Vec<u8> {
        let router = api::router(App::clone(&self.app));
        let answered = connection::converse(&self.app, router, self.stop.subscribe(), sent);
        self.runtime.block_on(answered)
    }

    /// Takes no more requests, finishes those under way, and closes the collections; all within `stop-timeout`, and
    /// two seconds more for the collections. What is not done then is left as by a crash, which loses nothing that was
    /// acknowledged.
    ///
    /// # Errors
    /// A store that could not be closed well; what was acknowledged is safe all the same.
    pub fn stop(self) -> Result<(), ServeError> {
        let Server { app, stop, serving, runtime, .. } = self;
        tracing::info!("stopping: requests under way are finished");
        let until = Instant::now() + app.config.stop_timeout;
        app.is_stopping.store(true, Ordering::Relaxed);
        let _nobody_listens = stop.send(true);
        let _panics_were_caught = runtime.block_on(serving);
        app.documents.stop(until);
        app.stores.stop(until);
        // Connections that did not end in time are cut.
        runtime.shutdown_timeout(Duration::from_millis(200));
        let until = until.max(Instant::now() + CLOSING);
        let closed = app.collections.close(until);
        tracing::info!("stopped");
        log::flush(Duration::from_millis(500));
        closed
    }
}

/// How long closing the collections may take, when the time to stop is over.
const CLOSING: Duration = Duration::from_secs(2);

/// The threads for connections.
pub(crate) fn runtime() -> Result<Runtime, ServeError> {
    Builder::new_multi_thread()
        .thread_name("nearsift-connections")
        .enable_all()
        .build()
        .map_err(|source| ServeError::System { doing: "start the threads for connections", source })
}

/// Runs a service until the process gets SIGTERM or SIGINT; a second one ends it at once. At SIGHUP its files are read again, as by
/// [`Server::reload`].
///
/// # Errors
/// As [`Server::start`] and [`Server::stop`].
pub fn serve(config: Config) -> Result<(), ServeError> {
    let runtime = runtime()?;
    let no_signals = |source| ServeError::System { doing: "listen to signals", source };
    let (mut terminate, mut interrupt, mut hang_up) = {
        // Before anybody can know that the service is there.
        let _inside = runtime.enter();
        (
            signal(SignalKind::terminate()).map_err(no_signals)?,
            signal(SignalKind::interrupt()).map_err(no_signals)?,
            signal(SignalKind::hangup()).map_err(no_signals)?,
        )
    };
    let server = Server::start_on(runtime, config).inspect_err(|_| {
        log::flush(Duration::from_millis(500));
    })?;
    log::panics();
    server.runtime.block_on(async {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hang_up.recv() => server.reload(),
            }
        }
    });
    server.runtime.spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::warn!("told to stop twice: stopped at once, as by a crash");
        log::flush(Duration::from_millis(200));
        std::process::exit(130);
    });
    server.stop()
}

/// Every connection takes a file handle: as many as the system allows.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, ..limit };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files stays");
        }
    }
}
