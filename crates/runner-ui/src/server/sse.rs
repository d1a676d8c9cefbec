//! The stream of change events: numbered, kept for a while for clients that reconnect, and sent to every client.

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

/// How many events are kept for clients that reconnect.
const BACKLOG_MAX: usize = 1_024;
/// How many events a client may lag behind.
const LAG_MAX: usize = 256;
/// How many clients are served at once.
const CLIENTS_MAX: usize = 64;
/// How often a client gets a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(10);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

type NumberedEvent = (u64, Bytes);

#[derive(Debug)]
pub(crate) struct EventStream {
    /// Distinguishes the numbers of this server process from those of an earlier one.
    boot: String,
    backlog: Mutex<EventBacklog>,
    sender: broadcast::Sender<NumberedEvent>,
    clients: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct EventBacklog {
    last: u64,
    events: VecDeque<NumberedEvent>,
}

impl EventStream {
    pub(crate) fn new() -> Self {
        Self {
            boot: format!("{:x}-{:x}", now_ms(), std::process::id()),
            backlog: Mutex::default(),
            sender: broadcast::channel(LAG_MAX).0,
            clients: Arc::new(Semaphore::new(CLIENTS_MAX)),
        }
    }

    pub(crate) fn publish(&self, change: &ChangeEvent) {
        let mut backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        backlog.last += 1;
        let text = format!("id: {}.{}\n{}", self.boot, backlog.last, event_text(change));
        let numbered = (backlog.last, Bytes::from(text));
        backlog.events.push_back(numbered.clone());
        if backlog.events.len() > BACKLOG_MAX {
            backlog.events.pop_front();
        }
        // Without clients, sending fails.
        let _ = self.sender.send(numbered);
    }

    /// The id of the newest event. A client that reads anything after this, and then listens since this id, misses nothing.
    pub(crate) fn last_id(&self) -> String {
        let backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{}.{}", self.boot, backlog.last)
    }

    /// The events that a client missed since the one with the id `last_id`, and a receiver for those to come.
    fn subscribe(&self, last_id: Option<&str>) -> (Vec<Bytes>, Receiver<NumberedEvent>) {
        let backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = self.sender.subscribe();
        let Some(last_id) = last_id else { return (Vec::new(), receiver) };
        let number = last_id
            .strip_prefix(self.boot.as_str())
            .and_then(|rest| rest.strip_prefix('.')?.parse::<u64>().ok());
        let oldest = backlog.last + 1 - u64::try_from(backlog.events.len()).unwrap_or_default();
        let missed = match number {
            Some(number) if number <= backlog.last && number + 1 >= oldest => backlog
                .events
                .iter()
                .filter(|(event, _)| *event > number)
                .map(|(_, text)| text.clone())
                .collect(),
            Some(_) | None => vec![Bytes::from(event_text(&ChangeEvent::Resync {}))],
        };
        (missed, receiver)
    }

    /// Responds with the stream of events since the one with the id `since`. A browser that reconnects by itself repeats the
    /// address, and names the last event that it got in a header.
    pub(crate) fn listen(&self, headers: &HeaderMap, since: Option<&str>) -> Result<Reply, RequestError> {
        let permit = Arc::clone(&self.clients).try_acquire_owned();
        let permit = permit.map_err(|_| RequestError::busy("too many clients are connected"))?;
        let last_id = headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
        let (missed, receiver) = self.subscribe(last_id.or(since));
        let (sender, body) = Channel::<Bytes, std::io::Error>::new(4);
        tokio::spawn(send(sender, missed, receiver, permit));
        Ok(plain(StatusCode::OK, "text/event-stream", Body::new(body)))
    }
}

/// An event in the format of the stream.
fn event_text(change: &ChangeEvent) -> String {
    let value = serde_json::to_value(change).unwrap_or_default();
    let name = value.get("event").and_then(serde_json::Value::as_str).unwrap_or("change");
    format!("event: {name}\ndata: {value}\n\n")
}

/// Sends events until the client disconnects. One that lags behind gets `resync`, and reloads everything.
async fn send(
    mut sender: Sender<Bytes, std::io::Error>,
    missed: Vec<Bytes>,
    mut receiver: Receiver<NumberedEvent>,
    _permit: OwnedSemaphorePermit,
) {
    let hello = ChangeEvent::Hello { build: assets::build().to_owned() };
    let greeting = Bytes::from(format!("retry: 1000\n{}", event_text(&hello)));
    for text in std::iter::once(greeting).chain(missed) {
        if sender.send_data(text).await.is_err() {
            return;
        }
    }
    loop {
        let text = match tokio::time::timeout(HEARTBEAT, receiver.recv()).await {
            Ok(Ok((_, text))) => text,
            Ok(Err(RecvError::Lagged(_))) => Bytes::from(event_text(&ChangeEvent::Resync {})),
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

    fn missed(stream: &EventStream, last_id: &str) -> String {
        stream
            .subscribe(Some(last_id))
            .0
            .iter()
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect()
    }

    #[test]
    fn reconnecting_client_gets_what_it_missed() {
        let stream = EventStream::new();
        (1..=3).for_each(|iter| stream.publish(&added(iter)));
        let id = |number: u64| format!("{}.{number}", stream.boot);
        let text = missed(&stream, &id(1));
        assert!(
            !text.contains("\"iter\":1") && text.contains("\"iter\":2") && text.contains("\"iter\":3"),
            "{text}"
        );
        assert!(text.starts_with(&format!("id: {}\nevent: iteration_added\ndata: {{", id(2))), "{text}");
        assert_eq!(missed(&stream, &id(3)), "");
        assert!(stream.subscribe(None).0.is_empty());
    }

    #[test]
    fn client_that_missed_too_much_or_comes_from_another_server_gets_resync() {
        let stream = EventStream::new();
        (0..2_000).for_each(|iter| stream.publish(&added(iter)));
        let id = |number: u64| format!("{}.{number}", stream.boot);
        for last_id in [id(1), id(900), id(5_000), "other.3".to_owned(), String::new(), "x".to_owned()] {
            assert_eq!(
                missed(&stream, &last_id),
                "event: resync\ndata: {\"event\":\"resync\"}\n\n",
                "{last_id}"
            );
        }
        assert!(missed(&stream, &id(976)).contains("\"iter\":976"));
    }
}
