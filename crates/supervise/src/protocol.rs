//! What the runner and its supervisor say to each other, over one socket.
//!
//! The runner sends an order: a mark that carries the streams, the length, the words; then single bytes. The supervisor
//! answers once, at the program's end, with one line, and the next order may come. A socket that closes means that the
//! other side is dead.

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

use crate::{SignalTarget, StopSignal};

/// What the supervisor is to run.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SpawnRequest {
    pub(super) argv: Vec<OsString>,
    pub(super) folder: OsString,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) input: OsString,
    pub(super) wall_ms: u64,
    pub(super) grace_ms: u64,
    pub(super) polite: StopSignal,
    pub(super) reach: SignalTarget,
    pub(super) is_wrapped: bool,
}

/// Asks for a polite end, as the user wishes.
pub(super) const STOP: u8 = b's';
/// Asks for a polite end, as nothing happens any more.
pub(super) const STOP_IDLE: u8 = b'i';
/// Asks for an end at once.
pub(super) const KILL: u8 = b'k';

/// Lets the program stand still, and its time with it.
pub(super) const PAUSE: u8 = b'p';
/// Lets it go on.
pub(super) const CONTINUE: u8 = b'c';

/// Why a program was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StopCause {
    Deadline,
    Idle,
    Asked,
}

/// How a program itself ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ProgramStatus {
    Exited(i32),
    Signalled(i32),
    /// It did not: it was killed with everything else.
    Killed,
}

/// What was left of the session when the program had ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftoverProcesses {
    /// Processes that were killed.
    pub killed: usize,
    /// Processes that could not be killed, such as those of another user.
    pub alive: usize,
}

/// The supervisor's only answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ExitReport {
    /// The program could not be started; the system's number for why.
    CouldNotStart(i32),
    /// Nothing of it is left.
    Ended { status: ProgramStatus, cause: Option<StopCause>, leftovers: LeftoverProcesses },
}

/// Standard output and standard error of the program.
pub(super) type Streams<F> = [F; 2];

/// Begins an order. What came before it and was not heard, a late word to the last program, is passed over.
const ORDER: u8 = b'o';

/// Sends an order.
pub(super) fn send(
    order: &SpawnRequest,
    streams: Streams<BorrowedFd<'_>>,
    mut to: &UnixStream,
) -> io::Result<()> {
    let text = serde_json::to_vec(order)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(&streams));
    rustix::net::sendmsg(to, &[IoSlice::new(&[ORDER])], &mut rights, SendFlags::empty())?;
    to.write_all(&(text.len() as u64).to_le_bytes())?;
    to.write_all(&text)
}

/// Receives an order; none when the runner is gone.
pub(super) fn receive(mut from: &UnixStream) -> io::Result<Option<(SpawnRequest, Streams<OwnedFd>)>> {
    let Some(streams) = receive_streams(from)? else { return Ok(None) };
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let mut text = Vec::new();
    from.take(u64::from_le_bytes(length)).read_to_end(&mut text)?;
    Ok(Some((serde_json::from_slice(&text)?, streams)))
}

fn receive_streams(from: &UnixStream) -> io::Result<Option<Streams<OwnedFd>>> {
    loop {
        let mut word = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let words = &mut [IoSliceMut::new(&mut word)];
        let got = match rustix::net::recvmsg(from, words, &mut rights, RecvFlags::empty()) {
            Ok(got) => got,
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        if got.bytes == 0 {
            return Ok(None);
        }
        let mut streams: Vec<OwnedFd> = Vec::new();
        for message in rights.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                streams.extend(received);
            }
        }
        for stream in &streams {
            rustix::io::fcntl_setfd(stream, FdFlags::CLOEXEC)?;
        }
        if word == [ORDER] {
            return streams.try_into().map(Some).map_err(|_| io::ErrorKind::InvalidData.into());
        }
    }
}

/// Sends the answer.
pub(super) fn answer(report: &ExitReport, mut to: impl Write) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// The answer, if this is all of it.
pub(super) fn understood(bytes: &[u8]) -> Option<ExitReport> {
    serde_json::from_slice(bytes.strip_suffix(b"\n")?).ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn an_order_arrives_as_it_was_sent_whatever_its_bytes() {
        let odd = OsString::from_vec(b"\xff\n\"".to_vec());
        let order = SpawnRequest {
            argv: vec!["/bin/sh".into(), odd.clone()],
            folder: "/".into(),
            environment: vec![("A".into(), odd)],
            input: "/dev/null".into(),
            wall_ms: u64::MAX,
            grace_ms: 5_000,
            polite: StopSignal::Interrupt,
            reach: SignalTarget::Program,
            is_wrapped: true,
        };
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        (&ours).write_all(&[STOP_IDLE, PAUSE]).unwrap();
        send(&order, [writer.as_fd(), writer.as_fd()], &ours).unwrap();
        (&ours).write_all(&[KILL]).unwrap();
        drop((ours, writer));
        let (received, streams) = receive(&theirs).unwrap().unwrap();
        assert_eq!(received, order);
        for stream in streams {
            io::PipeWriter::from(stream).write_all(b"x").unwrap();
        }
        let mut written = String::new();
        reader.read_to_string(&mut written).unwrap();
        assert_eq!(written, "xx");
        assert!(receive(&theirs).unwrap().is_none(), "what follows is no order, and then the runner is gone");
    }

    #[test]
    fn half_an_answer_is_none() {
        let report = ExitReport::Ended {
            status: ProgramStatus::Exited(3),
            cause: Some(StopCause::Idle),
            leftovers: LeftoverProcesses { killed: 7, alive: 0 },
        };
        let mut wire = Vec::new();
        answer(&report, &mut wire).unwrap();
        for cut in 0..wire.len() {
            assert_eq!(understood(&wire[..cut]), None);
        }
        assert_eq!(understood(&wire), Some(report));
    }
}
