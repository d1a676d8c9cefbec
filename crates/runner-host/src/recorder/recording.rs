//! Recorded answers in the place of a provider: the real agent runs offline.
//!
//! An agent writes ids and times into its requests, so the same session never sends the same bytes twice. A request gets the
//! answer of the recorded one with the same hash, or else of the first unused one with the same method, path and length of
//! conversation.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use runner_core::step::ReplayedRequests;

use super::http_message::{AnswerHead, Header};
use super::request_log::{AnswerRecord, LoggedRequest, ReceivedAnswer, RequestLine, RequestRecord};

/// A larger recording is not read.
const BYTES_MAX: u64 = 1 << 30;

/// The requests and answers of a recorded session.
pub(super) struct Recording {
    state: Mutex<RecordingState>,
}

#[derive(Default)]
struct RecordingState {
    exchanges: Vec<Exchange>,
    counts: ReplayedRequests,
}

struct Exchange {
    request: RequestRecord,
    answer: Option<AnswerRecord>,
    is_used: bool,
}

/// What a recording has for a request.
pub(super) enum RecordedAnswer {
    Found(ReceivedAnswer),
    /// The provider did not answer, or not with all of it.
    Cut(ReceivedAnswer),
    Missing,
}

impl Recording {
    /// Reads `requests.jsonl`; `Err` has why it cannot be used.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let problem = |why: String| format!("`{}` is no recording: {why}", path.display());
        let bytes = std::fs::metadata(path).map_err(|error| problem(error.to_string()))?.len();
        if bytes > BYTES_MAX {
            return Err(problem("it is too large".to_owned()));
        }
        let text = std::fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
        let mut exchanges: Vec<Exchange> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line: RequestLine = serde_json::from_str(line)
                .map_err(|error| problem(format!("line {}: {error}", index + 1)))?;
            match line {
                RequestLine::Request(request) => {
                    exchanges.push(Exchange { request, answer: None, is_used: false });
                }
                RequestLine::Answer(answer) => {
                    let of = exchanges.iter_mut().find(|exchange| exchange.request.number == answer.number);
                    of.ok_or_else(|| problem(format!("line {}: an answer to no request", index + 1)))?
                        .answer = Some(answer);
                }
            }
        }
        let state = RecordingState { exchanges, counts: ReplayedRequests::default() };
        Ok(Self { state: Mutex::new(state) })
    }

    /// The answer to a request.
    pub(super) fn answer(&self, method: &str, request: &LoggedRequest) -> RecordedAnswer {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same_place =
            |record: &RequestRecord| record.method == method && record.target == request.target;
        let is_same = |record: &RequestRecord| is_same_place(record) && record.sha256 == request.sha256;
        let is_like = |record: &RequestRecord| is_same_place(record) && record.items == request.items;
        let position = |matches: &dyn Fn(&Exchange) -> bool| state.exchanges.iter().position(matches);
        let same = position(&|exchange| !exchange.is_used && is_same(&exchange.request));
        // A request that is sent again gets its answer again.
        let found = same
            .or_else(|| position(&|exchange| !exchange.is_used && is_like(&exchange.request)))
            .or_else(|| position(&|exchange| is_like(&exchange.request)));
        match (found, same) {
            (None, _) => state.counts.missing += 1,
            (Some(_), Some(_)) => state.counts.same += 1,
            (Some(_), None) => state.counts.similar += 1,
        }
        let Some(exchange) = found.and_then(|found| state.exchanges.get_mut(found)) else {
            return RecordedAnswer::Missing;
        };
        exchange.is_used = true;
        exchange
            .answer
            .as_ref()
            .map_or(RecordedAnswer::Cut(ReceivedAnswer::default()), AnswerRecord::received)
    }

    pub(super) fn counts(&self) -> ReplayedRequests {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).counts
    }
}

impl AnswerRecord {
    fn received(&self) -> RecordedAnswer {
        let header = |(name, value): (&String, &serde_json::Value)| Header {
            name: name.clone(),
            value: value.as_str().unwrap_or_default().to_owned(),
        };
        let headers: Vec<Header> = self.headers.iter().map(header).collect();
        let answer = ReceivedAnswer {
            head: self.status.map(|status| AnswerHead { status, headers }),
            body: self.body.clone().unwrap_or_default().into_bytes(),
            error: self.error.clone(),
        };
        let is_whole = self.error.is_none() && self.body.is_some() && self.status.is_some();
        if is_whole { RecordedAnswer::Found(answer) } else { RecordedAnswer::Cut(answer) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::http_message::Request;
    use super::super::request_log::RequestLog;
    use super::*;

    fn request(body: &str) -> Request {
        Request { method: "POST".to_owned(), body: body.as_bytes().to_vec(), ..Request::default() }
    }

    /// A recording of two requests, each answered with its number.
    fn recorded(folder: &Path) -> Recording {
        let path = folder.join("requests.jsonl");
        let log = RequestLog::create(Some(&path), 1 << 20).unwrap();
        for (number, body) in [(1, r#"{"input": [1], "id": "a"}"#), (2, r#"{"input": [1, 2], "id": "b"}"#)] {
            log.add_request(&request(body), "/v1/a");
            let head = Some(AnswerHead::new(200, "text/plain"));
            log.add_answer(
                number,
                &ReceivedAnswer { head, body: number.to_string().into_bytes(), error: None },
            );
        }
        Recording::read(&path).unwrap()
    }

    fn answer(recording: &Recording, body: &str) -> Option<String> {
        let log = RequestLog::create(None, 0).unwrap();
        let logged = log.add_request(&request(body), "/v1/a");
        match recording.answer("POST", &logged) {
            RecordedAnswer::Found(answer) => Some(String::from_utf8(answer.body).unwrap()),
            RecordedAnswer::Cut(_) | RecordedAnswer::Missing => None,
        }
    }

    #[test]
    fn a_request_gets_the_answer_of_the_same_or_of_a_similar_one() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path());
        assert_eq!(answer(&recording, r#"{"id": "b", "input": [1, 2]}"#).as_deref(), Some("2"));
        assert_eq!(answer(&recording, r#"{"input": [9], "id": "other"}"#).as_deref(), Some("1"));
        assert_eq!(answer(&recording, r#"{"input": [9], "id": "again"}"#).as_deref(), Some("1"));
        assert_eq!(answer(&recording, r#"{"input": [1, 2, 3]}"#), None);
        assert_eq!(recording.counts(), ReplayedRequests { same: 1, similar: 2, missing: 1 });
    }

    #[test]
    fn a_file_that_is_no_recording_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        assert!(Recording::read(&path).is_err());
        std::fs::write(&path, "{}\n").unwrap();
        assert!(Recording::read(&path).err().unwrap().contains("line 1"));
    }
}
