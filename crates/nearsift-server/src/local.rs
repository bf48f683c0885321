//! A server for the people on this machine: the connections, checks and headers of the service, without keys.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::config::Config;
use crate::connection::{exchange, listen};
use crate::error::ServeError;
use crate::guard::{check_origin, fix_headers, is_json};
use crate::presence::{Connections, Entered};
use crate::problem::{Kind, Problem};

/// Connections that are open at once: those of a few browsers.
const CONNECTIONS: usize = 64;

/// How long requests under way may take after the server was asked to stop.
const STOP: Duration = Duration::from_secs(2);

/// SIGINT and SIGTERM, as they come.
#[cfg(unix)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

/// A server that answers this machine alone.
pub struct LocalServer {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    runtime: Runtime,
}

impl LocalServer {
    /// Listens, and answers by the router.
    ///
    /// # Errors
    /// An address that others reach, or that is taken.
    pub fn start(address: SocketAddr, router: Router) -> Result<LocalServer, ServeError> {
        if !address.ip().is_loopback() {
            return Err(ServeError::NotLocal { address });
        }
        let runtime = crate::runtime()?;
        let listener = {
            let _inside = runtime.enter();
            listen(address, CONNECTIONS).map_err(|source| ServeError::Listen { address, source })?
        };
        let address =
            listener.local_addr().map_err(|source| ServeError::Listen { address, source })?;
        let router = router
            .fallback(async || Problem::new(Kind::NoRoute, "There is nothing at this path."))
            .method_not_allowed_fallback(async || {
                Problem::new(Kind::WrongMethod, "The header Allow says which methods it takes.")
            })
            .layer(from_fn(guard));
        let (stop, told) = watch::channel(false);
        let serving = runtime.spawn(serve(listener, router, told));
        Ok(LocalServer { address, stop, serving, runtime })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens to the signals that end it: from here on SIGINT and SIGTERM no longer end the process by themselves.
    ///
    /// # Errors
    /// When the system sends no signals.
    #[cfg(unix)]
    pub fn stop_signals(&self) -> Result<StopSignals, ServeError> {
        let _inside = self.runtime.enter();
        let listen = |kind| {
            signal(kind).map_err(|source| ServeError::System { doing: "listen to signals", source })
        };
        let [terminate, interrupt] =
            [listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?];
        Ok(StopSignals { terminate, interrupt })
    }

    /// Runs until one of the signals comes.
    #[cfg(unix)]
    pub fn run(self, signals: StopSignals) {
        let StopSignals { mut terminate, mut interrupt } = signals;
        self.runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        self.stop();
    }

    /// Takes no more requests, and waits a moment for those under way.
    pub fn stop(self) {
        let LocalServer { stop, serving, runtime, .. } = self;
        let _nobody_listens = stop.send(true);
        let _panics_were_caught = runtime.block_on(serving);
        runtime.shutdown_timeout(STOP);
    }
}

async fn serve(listener: TcpListener, router: Router, mut stop: watch::Receiver<bool>) {
    // Of the settings of a service only the times of connections are used.
    let config = Arc::new(Config::new(Path::new("")));
    let connections = Arc::new(Connections::new(CONNECTIONS, CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of file handles, most likely: connections that end give some back.
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        let Some(Entered { presence, .. }) = connections.enter(peer.ip()) else { continue };
        let (config, connections) = (Arc::clone(&config), Arc::clone(&connections));
        let (router, stop) = (router.clone(), stop.clone());
        tokio::spawn(async move {
            let _without_it_answers_are_late = stream.set_nodelay(true);
            tokio::select! {
                () = presence.is_cut() => {}
                () = exchange(stream, &config, router, stop, &presence) => {}
            }
            connections.leave(&presence);
        });
    }
}

/// Lets requests of pages of this server pass, and of programs on this machine.
async fn guard(request: Request, next: Next) -> Response {
    let checked = check_origin(&request, &[]).and_then(|()| {
        match *request.method() == Method::POST && !is_json(request.headers()) {
            true => Err(Problem::new(Kind::NotAcceptedMedia, "The content type is not JSON.")
                .expecting("Content-Type: application/json")),
            false => Ok(()),
        }
    });
    let presence = request.extensions().get::<Arc<crate::presence::Presence>>().cloned();
    let under_way = presence.as_ref().map(|presence| presence.begin(true));
    let mut response = match checked {
        Ok(()) => AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
            Problem::new(Kind::Internal, "The request could not be worked on.").into_response()
        }),
        Err(problem) => problem.into_response(),
    };
    drop(under_way);
    fix_headers(response.headers_mut());
    response
}

/// An answer in JSON.
pub fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => {
            let media = HeaderValue::from_static("application/json");
            (StatusCode::OK, [(header::CONTENT_TYPE, media)], body).into_response()
        }
        Err(error) => Problem::new(Kind::Internal, error.to_string()).into_response(),
    }
}
