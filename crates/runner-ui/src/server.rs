//! Listens and serves connections: how many at once, and how long each may take.

pub(crate) mod access;
pub(crate) mod app;
pub(crate) mod assets;
pub(crate) mod compress;
pub(crate) mod diff_routes;
pub(crate) mod download;
pub(crate) mod overview;
pub(crate) mod response;
pub(crate) mod routes;
pub(crate) mod served_repo;
pub(crate) mod sse;
pub(crate) mod write_timeout;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::server::app::{AppState, router};
use crate::server::write_timeout::TimedConnection;

/// How many connections are open at once.
const CONNECTIONS_MAX: usize = 192;
/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// The largest head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long sending the refusal of a connection may take.
const REFUSE_TIMEOUT: Duration = Duration::from_secs(1);

const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 46\r\nretry-after: 1\r\nconnection: close\r\n\r\ntoo many connections; close some and try again";

/// What to do if the port is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortInUse {
    Fail,
    UseAnother,
}

pub(crate) async fn listen(address: SocketAddr, in_use: PortInUse) -> io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error) if in_use == PortInUse::UseAnother && error.kind() == io::ErrorKind::AddrInUse => {
            TcpListener::bind(SocketAddr::new(address.ip(), 0)).await
        }
        other => other,
    }
}

/// Serves connections; never returns.
pub(crate) async fn serve(listener: TcpListener, app: Arc<AppState>) {
    let service = TowerToHyperService::new(router(app));
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, or another condition that passes.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else {
            tokio::spawn(tokio::time::timeout(REFUSE_TIMEOUT, refuse(stream)));
            continue;
        };
        let service = service.clone();
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES_MAX);
            // A client that disconnects is not an error.
            let _ = http.serve_connection(TokioIo::new(TimedConnection::new(stream)), service).await;
            drop(permit);
        });
    }
}

async fn refuse(mut stream: TcpStream) {
    let _ = stream.write_all(TOO_MANY_CONNECTIONS).await;
    let _ = stream.shutdown().await;
}
