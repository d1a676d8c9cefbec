//! What the runner and its supervisor say to each other, over one socket.
//!
//! The runner sends the order, its length first, and then single bytes. The supervisor answers once, at the end,
//! with one line. A socket that closes means that the other side is dead.

use std::ffi::OsString;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::{Polite, Reach};

/// What the supervisor is to run. The streams it inherits are the program's.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) argv: Vec<OsString>,
    pub(super) folder: OsString,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) input: OsString,
    pub(super) wall_ms: u64,
    pub(super) grace_ms: u64,
    pub(super) polite: Polite,
    pub(super) reach: Reach,
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
pub(super) enum Cause {
    Deadline,
    Idle,
    Asked,
}

/// How a program itself ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Status {
    Exited(i32),
    Signalled(i32),
    /// It did not: it was killed with everything else.
    Killed,
}

/// What was left of the session when the program had ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// Processes that were killed.
    pub killed: usize,
    /// Processes that could not be killed, such as those of another user.
    pub alive: usize,
}

/// The supervisor's only answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// The program could not be started; the system's number for why.
    CouldNotStart(i32),
    /// Nothing of it is left.
    Ended { status: Status, cause: Option<Cause>, leftovers: Leftovers },
}

/// Sends an order.
pub(super) fn send(order: &Order, mut to: impl Write) -> io::Result<()> {
    let text = serde_json::to_vec(order)?;
    to.write_all(&(text.len() as u64).to_le_bytes())?;
    to.write_all(&text)
}

/// Receives an order.
pub(super) fn receive(mut from: impl Read) -> io::Result<Order> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let mut text = Vec::new();
    from.take(u64::from_le_bytes(length)).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Sends the answer.
pub(super) fn answer(report: &Report, mut to: impl Write) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// The answer, if this is all of it.
pub(super) fn understood(bytes: &[u8]) -> Option<Report> {
    serde_json::from_slice(bytes.strip_suffix(b"\n")?).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn an_order_arrives_as_it_was_sent_whatever_its_bytes() {
        let odd = OsString::from_vec(b"\xff\n\"".to_vec());
        let order = Order {
            argv: vec!["/bin/sh".into(), odd.clone()],
            folder: "/".into(),
            environment: vec![("A".into(), odd)],
            input: "/dev/null".into(),
            wall_ms: u64::MAX,
            grace_ms: 5_000,
            polite: Polite::Interrupt,
            reach: Reach::Program,
            is_wrapped: true,
        };
        let mut wire = Vec::new();
        send(&order, &mut wire).unwrap();
        wire.push(KILL);
        let mut wire = wire.as_slice();
        assert_eq!(receive(&mut wire).unwrap(), order);
        assert_eq!(wire, [KILL]);
    }

    #[test]
    fn half_an_answer_is_none() {
        let report = Report::Ended {
            status: Status::Exited(3),
            cause: Some(Cause::Idle),
            leftovers: Leftovers { killed: 7, alive: 0 },
        };
        let mut wire = Vec::new();
        answer(&report, &mut wire).unwrap();
        for cut in 0..wire.len() {
            assert_eq!(understood(&wire[..cut]), None);
        }
        assert_eq!(understood(&wire), Some(report));
    }
}
