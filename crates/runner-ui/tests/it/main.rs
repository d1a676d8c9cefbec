//! The shipped binary in real repositories, with requests over raw sockets.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot continue has failed"
)]

mod api;
mod canary;
mod evaluation;
mod event_stream;
mod export;
mod generated_types;
mod hostile_requests;
#[cfg(feature = "watch")]
mod one_status;
mod openapi;
mod overview;
#[cfg(feature = "watch")]
mod pty;
#[cfg(target_os = "linux")]
mod read_only;
mod server;
#[cfg(feature = "watch")]
mod watch_command;
