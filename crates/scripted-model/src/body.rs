//! The body of a scripted response: its chunks, and how it ends.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    Complete,
    /// The server closes the connection before the end.
    Cut,
    /// The body never ends.
    Open,
}

pub(crate) struct ScriptedBody {
    chunks: VecDeque<Bytes>,
    end: BodyEnd,
    /// Whether the server had a turn to send the chunks before a cut.
    is_flushed: bool,
}

/// Makes hyper close the connection.
#[derive(Debug, thiserror::Error)]
#[error("the script closes the connection")]
pub(crate) struct ConnectionClosed;

impl ScriptedBody {
    pub(crate) fn new(chunks: impl IntoIterator<Item = String>, end: BodyEnd) -> Self {
        Self { chunks: chunks.into_iter().map(Bytes::from).collect(), end, is_flushed: false }
    }
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = ConnectionClosed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionClosed>>> {
        if let Some(chunk) = self.chunks.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        match self.end {
            BodyEnd::Complete => Poll::Ready(None),
            BodyEnd::Open => Poll::Pending,
            BodyEnd::Cut if self.is_flushed => Poll::Ready(Some(Err(ConnectionClosed))),
            BodyEnd::Cut => {
                // An error makes hyper drop what it has not sent yet, so give it one turn to send it first.
                self.is_flushed = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}
