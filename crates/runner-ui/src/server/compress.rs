//! Compresses responses for clients that accept it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::ACCEPT_ENCODING;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A smaller response fits one packet anyway.
const BYTES_MIN: usize = 1_400;

/// Whether a client accepts gzip.
pub(crate) fn accepts_gzip(request: &HeaderMap) -> bool {
    request.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|coding| {
            let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
            let is_refused =
                quality.trim().strip_prefix("q=").is_some_and(|number| number.trim().parse() == Ok(0.0));
            matches!(name.trim(), "gzip" | "*") && !is_refused
        })
    })
}

/// The bytes compressed fast; `None` if that is not worth it.
pub(crate) fn gzip_fast(bytes: &[u8]) -> Option<Bytes> {
    if bytes.len() < BYTES_MIN { None } else { gzip(bytes, Compression::fast()) }
}

/// The bytes of a file of the page, compressed well, once.
pub(crate) fn gzip_once(name: &'static str, bytes: &'static [u8]) -> Option<Bytes> {
    static FILES: Mutex<BTreeMap<&'static str, Option<Bytes>>> = Mutex::new(BTreeMap::new());
    if bytes.len() < BYTES_MIN {
        return None;
    }
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    files.entry(name).or_insert_with(|| gzip(bytes, Compression::best())).clone()
}

/// `None` if compression does not make them smaller.
pub(crate) fn gzip(bytes: &[u8], level: Compression) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), level);
    encoder.write_all(bytes).ok()?;
    let compressed = encoder.finish().ok()?;
    (compressed.len() < bytes.len()).then(|| Bytes::from(compressed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn only_clients_that_accept_it_get_gzip() {
        let accepts = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_str(value).unwrap());
            accepts_gzip(&headers)
        };
        for yes in ["gzip", "gzip, deflate, br", "br;q=1.0, gzip;q=0.5", "*"] {
            assert!(accepts(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "identity"] {
            assert!(!accepts(no), "{no}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
