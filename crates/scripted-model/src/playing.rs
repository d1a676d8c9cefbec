//! A response's body: what is sent, and how it ends.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As it should.
    Whole,
    /// The connection is closed before the end.
    Cut,
    /// Never.
    Open,
}

/// A body that is sent piece by piece.
pub(crate) struct Playing {
    pieces: VecDeque<Bytes>,
    ending: Ending,
    /// Whether everything before a cut had time to be sent.
    is_sent: bool,
}

/// The connection is to be closed.
#[derive(Debug, thiserror::Error)]
#[error("the script closes the connection here")]
pub(crate) struct Closed;

impl Playing {
    pub(crate) fn new(pieces: impl IntoIterator<Item = String>, ending: Ending) -> Self {
        Self { pieces: pieces.into_iter().map(Bytes::from).collect(), ending, is_sent: false }
    }
}

impl Body for Playing {
    type Data = Bytes;
    type Error = Closed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Closed>>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match self.ending {
            Ending::Whole => Poll::Ready(None),
            Ending::Open => Poll::Pending,
            Ending::Cut if self.is_sent => Poll::Ready(Some(Err(Closed))),
            Ending::Cut => {
                // An error makes the server forget what it has not sent yet, so it gets a turn to send it.
                self.is_sent = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}
