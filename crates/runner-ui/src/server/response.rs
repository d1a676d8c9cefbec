//! Builds responses: JSON with an entity tag, files in pieces, errors, and the headers that every response has.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, RANGE, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::channel::Channel;
use runner_host::redaction::redactor;
use serde::Serialize;

use crate::error::RequestError;
use crate::read::confined_fs::RegularFile;
use crate::read::log_index::PIECE_BYTES;
use crate::server::{assets, compress};

pub(crate) type Reply = Response<Body>;

/// Scripts, styles and connections of this origin only; nothing inline, no frames, no forms.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The headers of every response.
const SECURITY_HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "clipboard-write=(self)"),
];

pub(crate) fn add_security_headers(reply: &mut Reply) {
    let headers = reply.headers_mut();
    for (name, value) in SECURITY_HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
}

pub(crate) fn plain(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Reply {
    let mut reply = Response::new(body.into());
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// Whether the client already has the response with this tag. A tag is weak, because it also names the compressed response.
fn is_known(request: &HeaderMap, tag: &str) -> bool {
    let values = request.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).any(|known| {
        known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag.strip_prefix("W/").unwrap_or(tag)
    })
}

/// Bytes with an entity tag, compressed if the client accepts it. A client that already has them gets `304 Not Modified`.
pub(crate) fn tagged(request: &HeaderMap, kind: &'static str, bytes: impl Into<Bytes>) -> Reply {
    let bytes: Bytes = bytes.into();
    tagged_with(request, kind, &bytes, compress::gzip_fast)
}

/// A file of the page. It is compressed once.
pub(crate) fn page_file(request: &HeaderMap, file: assets::PageFile) -> Reply {
    let bytes = Bytes::from_static(file.bytes);
    tagged_with(request, file.kind, &bytes, |_| compress::gzip_once(file.name, file.bytes))
}

fn tagged_with(
    request: &HeaderMap,
    kind: &'static str,
    bytes: &Bytes,
    compressed: impl FnOnce(&[u8]) -> Option<Bytes>,
) -> Reply {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let tag = format!("W/\"{:016x}\"", hasher.finish());
    let mut reply = if is_known(request, &tag) {
        plain(StatusCode::NOT_MODIFIED, kind, Body::empty())
    } else {
        match if compress::accepts_gzip(request) { compressed(bytes) } else { None } {
            Some(compressed) => {
                let mut reply = plain(StatusCode::OK, kind, compressed);
                reply.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                reply
            }
            None => plain(StatusCode::OK, kind, bytes.clone()),
        }
    };
    let headers = reply.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    reply
}

pub(crate) fn json(request: &HeaderMap, value: &impl Serialize) -> Reply {
    match json_bytes(value) {
        Ok(bytes) => tagged(request, "application/json", bytes),
        Err(_) => error(RequestError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "json",
            "the response could not be written as JSON",
        )),
    }
}

/// A value as JSON, without keys. Almost none has one, and a large one is not copied for that.
pub(crate) fn json_bytes(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let bytes = serde_json::to_vec(value)?;
    let redacted = match redactor().redact(&bytes) {
        Cow::Owned(redacted) => Some(redacted),
        Cow::Borrowed(_) => None,
    };
    Ok(redacted.unwrap_or(bytes))
}

pub(crate) fn error(error: RequestError) -> Reply {
    let status = error.status;
    let bytes = serde_json::to_vec(&error.body()).unwrap_or_default();
    plain(status, "application/json", bytes)
}

/// The requested range of a file: `bytes=5-9`, `bytes=5-`, `bytes=-5`. For anything else, the whole file is sent.
fn range(request: &HeaderMap, size: u64) -> Result<Option<(u64, u64)>, RequestError> {
    let Some(text) = request.get(RANGE).and_then(|value| value.to_str().ok()) else { return Ok(None) };
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

/// A file in its current state, as text, sent piece by piece as fast as the client reads.
pub(crate) fn file(request: &HeaderMap, file: RegularFile) -> Result<Reply, RequestError> {
    let size = file.stamp.bytes;
    let range = range(request, size)?;
    let (from, end) = range.unwrap_or((0, size));
    let (mut sender, body) = Channel::<Bytes, std::io::Error>::new(1);
    tokio::spawn(async move {
        let mut offset = from;
        let mut file = file;
        while offset < end {
            let piece_bytes = usize::try_from(end - offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let read = tokio::task::spawn_blocking(move || (file.piece(offset, piece_bytes), file)).await;
            let Ok((Ok(piece), same_file)) = read else { break };
            file = same_file;
            // If the file was truncated, the response ends early, and the client notices by its length.
            if piece.is_empty() || sender.send_data(Bytes::from(piece)).await.is_err() {
                break;
            }
            offset += PIECE_BYTES.min(piece_bytes) as u64;
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
    fn range_stays_within_the_file() {
        let range_of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, HeaderValue::from_str(text).unwrap());
            range(&headers, 10).map_err(|error| error.status.as_u16())
        };
        assert_eq!(range_of("bytes=2-4"), Ok(Some((2, 5))));
        assert_eq!(range_of("bytes=2-"), Ok(Some((2, 10))));
        assert_eq!(range_of("bytes=-3"), Ok(Some((7, 10))));
        assert_eq!(range_of("bytes=0-99"), Ok(Some((0, 10))));
        assert_eq!(range_of("bytes=0-18446744073709551615"), Ok(Some((0, 10))));
        for ignored in ["bytes=a-b", "lines=1-2", "bytes=1-2,4-5", "bytes=-"] {
            assert_eq!(range_of(ignored), Ok(None), "{ignored}");
        }
        assert_eq!(range_of("bytes=10-"), Err(416));
        assert_eq!(range_of("bytes=5-3"), Err(416));
    }
}
