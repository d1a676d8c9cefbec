//! The shipped binary in real repositories, asked over raw sockets.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

mod attacks;
mod endpoints;
mod evaluation;
mod export;
mod live;
#[cfg(feature = "watch")]
mod pty;
#[cfg(target_os = "linux")]
mod quiet;
mod server;
mod typescript;
#[cfg(feature = "watch")]
mod watching;
