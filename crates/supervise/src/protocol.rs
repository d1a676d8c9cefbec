//! The protocol between the runner (client.rs) and its supervisor (supervisor.rs), over one Unix socket.
//!
//! The runner sends a spawn request: one marker byte that carries the program's output descriptors, the length, and JSON.
//! After that it sends commands of one byte. The supervisor sends one line of JSON when the program has ended, and is ready
//! for the next request. When one side dies, the other sees the socket close.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::FdFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::{Deserialize, Serialize};

use crate::spec::{SignalTarget, StopSignal};

/// The program to run, with absolute paths.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SpawnRequest {
    pub(super) argv: Vec<OsString>,
    pub(super) working_dir: OsString,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) stdin: OsString,
    pub(super) wall_ms: u64,
    pub(super) grace_ms: u64,
    pub(super) stop_signal: StopSignal,
    pub(super) stop_target: SignalTarget,
    pub(super) is_sandboxed: bool,
}

/// Stop signal, then SIGKILL after the grace period: the user stopped the run.
pub(super) const STOP: u8 = b's';
/// The same, because the idle limit was reached.
pub(super) const STOP_IDLE: u8 = b'i';
/// The same, because the caller's own limit was reached.
pub(super) const STOP_LIMIT: u8 = b'l';
pub(super) const KILL: u8 = b'k';
/// SIGSTOP to all processes; time does not count until [`RESUME`].
pub(super) const SUSPEND: u8 = b'p';
pub(super) const RESUME: u8 = b'c';

/// Why the supervisor ended a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StopCause {
    Deadline,
    Idle,
    /// A limit that the caller measures.
    Limit,
    Requested,
}

/// How the program itself ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ProgramStatus {
    Exited(i32),
    Signalled(i32),
    /// It was still running when the supervisor killed everything.
    Killed,
}

/// Processes that were still running when the program had ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftoverProcesses {
    pub killed: usize,
    /// Processes that could not be killed, such as those of another user.
    pub alive: usize,
}

/// The supervisor's only message.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ExitReport {
    /// The errno of the failed start.
    CouldNotStart(i32),
    Ended {
        status: ProgramStatus,
        cause: Option<StopCause>,
        leftovers: LeftoverProcesses,
        /// How long the program ran, without the time in which it was suspended.
        active_ms: u64,
    },
}

/// Standard output and standard error of the program.
pub(super) type Streams<F> = [F; 2];

/// Marks the start of a request. The supervisor skips other bytes before it: late commands for the previous program.
const REQUEST_MARKER: u8 = b'o';

pub(super) fn send_request(
    request: &SpawnRequest,
    streams: Streams<BorrowedFd<'_>>,
    mut to: &UnixStream,
) -> io::Result<()> {
    let json = serde_json::to_vec(request)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&streams));
    rustix::net::sendmsg(to, &[IoSlice::new(&[REQUEST_MARKER])], &mut control, SendFlags::empty())?;
    to.write_all(&(json.len() as u64).to_le_bytes())?;
    to.write_all(&json)
}

/// Waits for a request; `None` when the runner is gone.
pub(super) fn receive_request(mut from: &UnixStream) -> io::Result<Option<(SpawnRequest, Streams<OwnedFd>)>> {
    let Some(streams) = receive_streams(from)? else { return Ok(None) };
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let mut json = Vec::new();
    from.take(u64::from_le_bytes(length)).read_to_end(&mut json)?;
    Ok(Some((serde_json::from_slice(&json)?, streams)))
}

fn receive_streams(from: &UnixStream) -> io::Result<Option<Streams<OwnedFd>>> {
    loop {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let buffers = &mut [IoSliceMut::new(&mut byte)];
        let received = match rustix::net::recvmsg(from, buffers, &mut control, RecvFlags::empty()) {
            Ok(received) => received,
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        if received.bytes == 0 {
            return Ok(None);
        }
        let mut streams: Vec<OwnedFd> = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                streams.extend(descriptors);
            }
        }
        for stream in &streams {
            rustix::io::fcntl_setfd(stream, FdFlags::CLOEXEC)?;
        }
        if byte == [REQUEST_MARKER] {
            return streams.try_into().map(Some).map_err(|_| io::ErrorKind::InvalidData.into());
        }
    }
}

pub(super) fn send_report(report: &ExitReport, mut to: impl Write) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// `None` as long as the report is incomplete.
pub(super) fn parse_report(bytes: &[u8]) -> Option<ExitReport> {
    serde_json::from_slice(bytes.strip_suffix(b"\n")?).ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn a_request_with_arbitrary_bytes_arrives_unchanged() {
        let odd = OsString::from_vec(b"\xff\n\"".to_vec());
        let request = SpawnRequest {
            argv: vec!["/bin/sh".into(), odd.clone()],
            working_dir: "/".into(),
            env: vec![("A".into(), odd)],
            stdin: "/dev/null".into(),
            wall_ms: u64::MAX,
            grace_ms: 5_000,
            stop_signal: StopSignal::Interrupt,
            stop_target: SignalTarget::Program,
            is_sandboxed: true,
        };
        let (runner, supervisor) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        (&runner).write_all(&[STOP_IDLE, SUSPEND]).unwrap();
        send_request(&request, [writer.as_fd(), writer.as_fd()], &runner).unwrap();
        (&runner).write_all(&[KILL]).unwrap();
        drop((runner, writer));
        let (received, streams) = receive_request(&supervisor).unwrap().unwrap();
        assert_eq!(received, request);
        for stream in streams {
            io::PipeWriter::from(stream).write_all(b"x").unwrap();
        }
        let mut written = String::new();
        reader.read_to_string(&mut written).unwrap();
        assert_eq!(written, "xx");
        let next = receive_request(&supervisor).unwrap();
        assert!(next.is_none(), "the late command is skipped, then the socket is closed");
    }

    #[test]
    fn an_incomplete_report_is_not_parsed() {
        let report = ExitReport::Ended {
            status: ProgramStatus::Exited(3),
            cause: Some(StopCause::Idle),
            leftovers: LeftoverProcesses { killed: 7, alive: 0 },
            active_ms: 7,
        };
        let mut bytes = Vec::new();
        send_report(&report, &mut bytes).unwrap();
        for end in 0..bytes.len() {
            assert_eq!(parse_report(&bytes[..end]), None);
        }
        assert_eq!(parse_report(&bytes), Some(report));
    }
}
