//! The stream of changes: numbered, kept for a while, sent to everyone who listens.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use http_body_util::channel::{Channel, Sender};
use tokio::sync::broadcast::{self, Receiver, error::RecvError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::ChangeEvent;
use crate::error::RequestError;
use crate::read::snapshot::now_ms;
use crate::server::assets;
use crate::server::response::{Reply, plain};

/// How many changes are kept for those who come back.
const KEPT: usize = 1_024;
/// How many changes a listener may lag behind.
const LAG_MAX: usize = 256;
/// How many may listen at once.
const LISTENERS_MAX: usize = 64;
/// How often a listener hears that the server lives.
const HEARTBEAT: Duration = Duration::from_secs(10);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

type Numbered = (u64, Bytes);

/// The stream.
#[derive(Debug)]
pub(crate) struct EventStream {
    /// Tells the numbers of this server from those of one before it.
    boot: String,
    kept: Mutex<EventBacklog>,
    sender: broadcast::Sender<Numbered>,
    room: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct EventBacklog {
    last: u64,
    changes: VecDeque<Numbered>,
}

impl EventStream {
    pub(crate) fn new() -> Self {
        Self {
            boot: format!("{:x}-{:x}", now_ms(), std::process::id()),
            kept: Mutex::default(),
            sender: broadcast::channel(LAG_MAX).0,
            room: Arc::new(Semaphore::new(LISTENERS_MAX)),
        }
    }

    /// Tells everyone.
    pub(crate) fn publish(&self, change: &ChangeEvent) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let text = format!("id: {}.{}\n{}", self.boot, kept.last, written(change));
        let numbered = (kept.last, Bytes::from(text));
        kept.changes.push_back(numbered.clone());
        if kept.changes.len() > KEPT {
            kept.changes.pop_front();
        }
        // Nobody may be listening.
        let _ = self.sender.send(numbered);
    }

    /// What someone who heard of everything up to `heard` must hear first, and the rest as it comes.
    fn subscribe(&self, heard: Option<&str>) -> (Vec<Bytes>, Receiver<Numbered>) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = self.sender.subscribe();
        let Some(heard) = heard else { return (Vec::new(), receiver) };
        let number = heard
            .strip_prefix(self.boot.as_str())
            .and_then(|rest| rest.strip_prefix('.')?.parse::<u64>().ok());
        let oldest = kept.last + 1 - u64::try_from(kept.changes.len()).unwrap_or_default();
        let missed = match number {
            Some(number) if number <= kept.last && number + 1 >= oldest => {
                kept.changes.iter().filter(|(of, _)| *of > number).map(|(_, text)| text.clone()).collect()
            }
            Some(_) | None => vec![Bytes::from(written(&ChangeEvent::Resync {}))],
        };
        (missed, receiver)
    }

    /// Lets someone listen.
    pub(crate) fn listen(&self, asked: &HeaderMap) -> Result<Reply, RequestError> {
        let room = Arc::clone(&self.room).try_acquire_owned();
        let room = room.map_err(|_| RequestError::busy("too many listen already"))?;
        let heard = asked.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
        let (missed, receiver) = self.subscribe(heard);
        let (sender, body) = Channel::<Bytes, std::io::Error>::new(4);
        tokio::spawn(send(sender, missed, receiver, room));
        Ok(plain(StatusCode::OK, "text/event-stream", Body::new(body)))
    }
}

/// A change as a stream has it.
fn written(change: &ChangeEvent) -> String {
    let value = serde_json::to_value(change).unwrap_or_default();
    let name = value.get("event").and_then(serde_json::Value::as_str).unwrap_or("change");
    format!("event: {name}\ndata: {value}\n\n")
}

/// Sends until the listener is gone. One that lags is told to read everything again.
async fn send(
    mut sender: Sender<Bytes, std::io::Error>,
    missed: Vec<Bytes>,
    mut receiver: Receiver<Numbered>,
    _room: OwnedSemaphorePermit,
) {
    let hello = ChangeEvent::Hello { build: assets::build().to_owned() };
    let greeting = Bytes::from(format!("retry: 1000\n{}", written(&hello)));
    for text in std::iter::once(greeting).chain(missed) {
        if sender.send_data(text).await.is_err() {
            return;
        }
    }
    loop {
        let text = match tokio::time::timeout(HEARTBEAT, receiver.recv()).await {
            Ok(Ok((_, text))) => text,
            Ok(Err(RecvError::Lagged(_))) => Bytes::from(written(&ChangeEvent::Resync {})),
            Ok(Err(RecvError::Closed)) => return,
            Err(_) => Bytes::from(format!("event: heartbeat\ndata: {{\"now_ms\":{}}}\n\n", now_ms())),
        };
        if sender.send_data(text).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(iter: u32) -> ChangeEvent {
        ChangeEvent::IterationAdded { run: "x".to_owned(), iter }
    }

    fn missed(feed: &EventStream, heard: &str) -> String {
        feed.subscribe(Some(heard)).0.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    }

    #[test]
    fn who_comes_back_hears_what_was_missed() {
        let feed = EventStream::new();
        (1..=3).for_each(|iter| feed.publish(&added(iter)));
        let of = |number: u64| format!("{}.{number}", feed.boot);
        let text = missed(&feed, &of(1));
        assert!(
            !text.contains("\"iter\":1") && text.contains("\"iter\":2") && text.contains("\"iter\":3"),
            "{text}"
        );
        assert!(text.starts_with(&format!("id: {}\nevent: iteration_added\ndata: {{", of(2))), "{text}");
        assert_eq!(missed(&feed, &of(3)), "");
        assert!(feed.subscribe(None).0.is_empty());
    }

    #[test]
    fn who_missed_too_much_or_comes_from_another_server_reads_everything_again() {
        let feed = EventStream::new();
        (0..2_000).for_each(|iter| feed.publish(&added(iter)));
        let of = |number: u64| format!("{}.{number}", feed.boot);
        for heard in [of(1), of(900), of(5_000), "other.3".to_owned(), String::new(), "x".to_owned()] {
            assert_eq!(missed(&feed, &heard), "event: resync\ndata: {\"event\":\"resync\"}\n\n", "{heard}");
        }
        assert!(missed(&feed, &of(976)).contains("\"iter\":976"));
    }
}
