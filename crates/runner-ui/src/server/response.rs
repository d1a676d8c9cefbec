//! Answers: JSON with a tag that says whether it changed, files in pieces, faults; and what every answer carries.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, RANGE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::channel::Channel;
use serde::Serialize;

use crate::error::RequestError;
use crate::read::confined_fs::RegularFile;
use crate::read::log_index::PIECE_BYTES;

pub(crate) type Reply = Response<Body>;

/// Scripts, styles and connections of this origin alone; nothing in line, no frames, no forms.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What every answer carries, whatever it is.
const ALWAYS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "clipboard-write=(self)"),
];

/// Adds what every answer carries.
pub(crate) fn dress(reply: &mut Reply) {
    let headers = reply.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
}

/// An answer with these bytes.
pub(crate) fn plain(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Reply {
    let mut reply = Response::new(body.into());
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// Bytes that the browser may keep as long as their tag is the same.
pub(crate) fn tagged(asked: &HeaderMap, kind: &'static str, bytes: impl Into<Bytes>) -> Reply {
    let bytes: Bytes = bytes.into();
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let is_known = asked.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut reply = if is_known {
        plain(StatusCode::NOT_MODIFIED, kind, Body::empty())
    } else {
        plain(StatusCode::OK, kind, bytes)
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        reply.headers_mut().insert(ETAG, tag);
    }
    reply
}

/// A value as JSON.
pub(crate) fn json(asked: &HeaderMap, value: &impl Serialize) -> Reply {
    match serde_json::to_vec(value) {
        Ok(bytes) => tagged(asked, "application/json", bytes),
        Err(_) => fault(RequestError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "json",
            "the answer cannot be written as JSON",
        )),
    }
}

/// What went wrong, as JSON.
pub(crate) fn fault(fault: RequestError) -> Reply {
    let status = fault.status;
    let bytes = serde_json::to_vec(&fault.body()).unwrap_or_default();
    plain(status, "application/json", bytes)
}

/// Which bytes of a file are asked for: `bytes=5-9`, `bytes=5-`, `bytes=-5`. Anything else is answered whole.
fn range(asked: &HeaderMap, size: u64) -> Result<Option<(u64, u64)>, RequestError> {
    let Some(text) = asked.get(RANGE).and_then(|value| value.to_str().ok()) else { return Ok(None) };
    let Some((from, to)) = text.strip_prefix("bytes=").and_then(|text| text.split_once('-')) else {
        return Ok(None);
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (from, end) = match (number(from), number(to)) {
        (Some(from), Some(to)) => (from, to.saturating_add(1).min(size)),
        (Some(from), None) if to.is_empty() => (from, size),
        (None, Some(last)) if from.is_empty() => (size.saturating_sub(last), size),
        _ => return Ok(None),
    };
    if from >= end {
        let message = format!("the file has {size} bytes");
        return Err(RequestError::new(StatusCode::RANGE_NOT_SATISFIABLE, "range", message));
    }
    Ok(Some((from, end)))
}

/// A file as it is now, as text, in pieces that wait for whoever reads them.
pub(crate) fn file(asked: &HeaderMap, file: RegularFile) -> Result<Reply, RequestError> {
    let size = file.stamp.bytes;
    let range = range(asked, size)?;
    let (from, end) = range.unwrap_or((0, size));
    let (mut sender, body) = Channel::<Bytes, std::io::Error>::new(1);
    tokio::spawn(async move {
        let (mut place, mut file) = (from, file);
        while place < end {
            let most = usize::try_from(end - place).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let read = tokio::task::spawn_blocking(move || (file.piece(place, most), file)).await;
            let Ok((Ok(piece), back)) = read else { break };
            file = back;
            // A file that is shorter by now ends the answer early, and the reader sees that it did.
            if piece.is_empty() || sender.send_data(Bytes::from(piece)).await.is_err() {
                break;
            }
            place += PIECE_BYTES.min(most) as u64;
        }
    });
    let status = if range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut reply = plain(status, "text/plain; charset=utf-8", Body::new(body));
    let headers = reply.headers_mut();
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(end - from));
    if range.is_some()
        && let Ok(value) = HeaderValue::from_str(&format!("bytes {from}-{}/{size}", end - 1))
    {
        headers.insert(CONTENT_RANGE, value);
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stay_within_the_file() {
        let ask = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, HeaderValue::from_str(text).unwrap());
            range(&headers, 10).map_err(|fault| fault.status.as_u16())
        };
        assert_eq!(ask("bytes=2-4"), Ok(Some((2, 5))));
        assert_eq!(ask("bytes=2-"), Ok(Some((2, 10))));
        assert_eq!(ask("bytes=-3"), Ok(Some((7, 10))));
        assert_eq!(ask("bytes=0-99"), Ok(Some((0, 10))));
        assert_eq!(ask("bytes=0-18446744073709551615"), Ok(Some((0, 10))));
        for whole in ["bytes=a-b", "lines=1-2", "bytes=1-2,4-5", "bytes=-"] {
            assert_eq!(ask(whole), Ok(None), "{whole}");
        }
        assert_eq!(ask("bytes=10-"), Err(416));
        assert_eq!(ask("bytes=5-3"), Err(416));
    }
}
