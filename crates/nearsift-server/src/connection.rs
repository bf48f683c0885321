//! Connections: how they are served, how long, and how they end.
//!
//! hyper cuts a request's head that is not there in time. What it has no limit for is decided here: the TLS handshake, the
//! bytes before it knows which HTTP is spoken, connections of HTTP/2 without requests, and answers that are not taken. How
//! many there may be is decided in [`crate::presence`].

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex, split};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use crate::api::App;
use crate::config::Config;
use crate::presence::{Entered, Expiry, Presence};

/// How long a connection may take to end after it was asked to.
const FAREWELL: Duration = Duration::from_secs(2);

/// The bytes of a request's head.
const HEAD_BYTES: usize = 32 << 10;

/// Listens, with room for as many connections that were not taken yet as may be open. Of a burst of them the system drops
/// those that find no room, and their clients try again after a second and more.
///
/// # Errors
/// The system's, such as an address that is in use.
///
/// # Panics
/// Outside a runtime.
pub(crate) fn listen(address: SocketAddr, connections: usize) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Connections of a service that ended may linger.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    // Of a larger number than the system allows it takes what it allows.
    socket.listen(u32::try_from(connections).unwrap_or(u32::MAX))
}

/// Takes connections until it is told to stop, then waits for those that are open.
pub(crate) async fn serve(
    listener: TcpListener,
    app: App,
    router: Router,
    tls: Option<TlsAcceptor>,
    mut stop: watch::Receiver<bool>,
) {
    // Every connection has a sender: when all have ended, nobody sends.
    let (open, mut all_ended) = mpsc::channel::<()>(1);
    loop {
        let accepted = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error = %error, "cannot accept");
                // Out of file handles, most likely: connections that end give some back.
                sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        let Some(Entered { presence, gave_way }) = app.connections.enter(peer.ip()) else {
            app.metrics.refused();
            drop(stream);
            continue;
        };
        if gave_way {
            app.metrics.gave_way();
        }
        let (app, router, tls, stop) = (app.clone(), router.clone(), tls.clone(), stop.clone());
        let open = open.clone();
        tokio::spawn(async move {
            app.metrics.connected();
            tokio::select! {
                () = presence.is_cut() => {}
                () = connection(stream, peer, &app.config, router, tls, stop, &presence) => {}
            }
            app.metrics.disconnected();
            app.connections.leave(&presence);
            drop(open);
        });
    }
    drop((listener, open));
    if timeout(app.config.stop_timeout, all_ended.recv()).await.is_err() {
        tracing::warn!("requests were still under way when the time to stop was over");
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    config: &Config,
    router: Router,
    tls: Option<TlsAcceptor>,
    stop: watch::Receiver<bool>,
    presence: &Arc<Presence>,
) {
    let _without_it_answers_are_late = stream.set_nodelay(true);
    match tls {
        None => exchange(stream, config, router, stop, presence).await,
        Some(tls) => match timeout(config.header_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => exchange(stream, config, router, stop, presence).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS"),
            Err(_) => tracing::debug!(%peer, "TLS took too long"),
        },
    }
}

/// Serves a connection that is in memory: what a client has sent, which sends no more, and what it was answered until the
/// service has ended the connection.
pub(crate) async fn converse(
    app: &App,
    router: Router,
    stop: watch::Receiver<bool>,
    sent: &[u8],
) -> Vec<u8> {
    let Some(Entered { presence, .. }) = app.connections.enter(Ipv4Addr::LOCALHOST.into()) else {
        return Vec::new();
    };
    let (mut client, service) = duplex(HEAD_BYTES);
    let served = exchange(service, &app.config, router, stop, &presence);
    let asked = async {
        let (mut answers, mut requests) = split(&mut client);
        let mut answered = Vec::new();
        // The service may end before it has taken all.
        let (_sent, _read) =
            tokio::join!(requests.write_all(sent), answers.read_to_end(&mut answered));
        answered
    };
    let (answered, ()) = tokio::join!(asked, served);
    app.connections.leave(&presence);
    answered
}

/// Serves a connection, whose first request is waited for from when it was taken.
pub(crate) async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    config: &Config,
    router: Router,
    mut stop: watch::Receiver<bool>,
    presence: &Arc<Presence>,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        presence.asked();
        request.extensions_mut().insert(Arc::clone(presence));
        router.call(request)
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout.max(config.idle_timeout))
        .max_buf_size(HEAD_BYTES)
        .half_close(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(Duration::from_secs(20)))
        .keep_alive_timeout(Duration::from_secs(10))
        .max_concurrent_streams(128)
        .max_header_list_size(HEAD_BYTES as u32);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut is_stopping = false;
    let mut farewell: Option<Instant> = None;
    loop {
        // An answer that waits to be taken may bring the end nearer.
        let look_again = Instant::now() + config.write_timeout / 4;
        let deadline = farewell.unwrap_or_else(|| presence.expires(config).at().min(look_again));
        tokio::select! {
            biased;
            _ended = served.as_mut() => return,
            _ = stop.wait_for(|stop| *stop), if !is_stopping => {
                is_stopping = true;
                served.as_mut().graceful_shutdown();
            }
            () = sleep_until(deadline) => {
                if farewell.is_some() {
                    return;
                }
                match presence.expires(config) {
                    Expiry::Unsent(at) if at <= Instant::now() => return,
                    Expiry::Idle(at) if at <= Instant::now() => {
                        served.as_mut().graceful_shutdown();
                        farewell = Some(Instant::now() + FAREWELL);
                    }
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_connections_finds_room() {
        const BURST: usize = 500;
        // Elsewhere such a file is missing, and nothing is known of the limit.
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok();
        let most = most.and_then(|most| most.trim().parse::<usize>().ok()).unwrap_or(0);
        if most < BURST {
            #[allow(clippy::print_stderr, reason = "tests say on standard error why they skip")]
            {
                eprintln!("SKIPPED: the system has room for {most} connections");
            }
            return;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let listener = listen("127.0.0.1:0".parse().unwrap(), BURST).unwrap();
        let address = listener.local_addr().unwrap();
        // Nobody takes any of them. One without room would not be there after minutes.
        let connect = |_| std::net::TcpStream::connect_timeout(&address, Duration::from_secs(20));
        let open: Vec<_> = (0..BURST).map(|number| connect(number).unwrap()).collect();
        assert_eq!(open.len(), BURST);
    }
}
