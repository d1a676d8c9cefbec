//! A response's body: what is sent, and how it ends.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// As it should.
    Whole,
    /// The connection is closed before the end.
    Cut,
    /// Never.
    Open,
}

/// A body that is sent piece by piece.
pub(crate) struct ScriptedBody {
    pieces: VecDeque<Bytes>,
    ending: BodyEnd,
    /// Whether everything before a cut had time to be sent.
    is_sent: bool,
}

/// The connection is to be closed.
#[derive(Debug, thiserror::Error)]
#[error("the script closes the connection here")]
pub(crate) struct ConnectionClosed;

impl ScriptedBody {
    pub(crate) fn new(pieces: impl IntoIterator<Item = String>, ending: BodyEnd) -> Self {
        Self { pieces: pieces.into_iter().map(Bytes::from).collect(), ending, is_sent: false }
    }
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = ConnectionClosed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionClosed>>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match self.ending {
            BodyEnd::Whole => Poll::Ready(None),
            BodyEnd::Open => Poll::Pending,
            BodyEnd::Cut if self.is_sent => Poll::Ready(Some(Err(ConnectionClosed))),
            BodyEnd::Cut => {
                // An error makes the server forget what it has not sent yet, so it gets a turn to send it.
                self.is_sent = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}
