//! The socket: who may connect, how many at once, and how long they may take.

pub(crate) mod access;
pub(crate) mod app;
pub(crate) mod assets;
pub(crate) mod response;
pub(crate) mod routes;
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

/// How many connections are held at once.
const CONNECTIONS_MAX: usize = 192;
/// How long a request's head may take.
const HEAD_WAIT: Duration = Duration::from_secs(15);
/// The largest head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long the one who comes too late may take to hear it.
const TURN_AWAY: Duration = Duration::from_secs(1);

const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 46\r\nretry-after: 1\r\nconnection: close\r\n\r\ntoo many connections; close some and try again";

/// Listens, at this port or, if it is taken and need not be this one, at any.
pub(crate) async fn listen(address: SocketAddr, may_move: bool) -> io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error) if may_move && error.kind() == io::ErrorKind::AddrInUse => {
            TcpListener::bind(SocketAddr::new(address.ip(), 0)).await
        }
        other => other,
    }
}

/// Serves for ever.
pub(crate) async fn serve(listener: TcpListener, site: Arc<AppState>) {
    let service = TowerToHyperService::new(router(site));
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No more files can be opened, or the like: it passes.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            tokio::spawn(tokio::time::timeout(TURN_AWAY, turn_away(stream)));
            continue;
        };
        let service = service.clone();
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT).max_buf_size(HEAD_BYTES_MAX);
            // Whoever breaks off has broken off.
            let _ = http.serve_connection(TokioIo::new(TimedConnection::new(stream)), service).await;
            drop(place);
        });
    }
}

async fn turn_away(mut stream: TcpStream) {
    let _ = stream.write_all(FULL).await;
    let _ = stream.shutdown().await;
}
