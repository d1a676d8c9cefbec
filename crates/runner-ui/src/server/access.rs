//! Access control: every request is checked here before any route runs.
//!
//! A page of any other origin may send requests to this machine, and a host name that its owner points at 127.0.0.1 makes
//! them look local (DNS rebinding). So the `Host` must be one that no one else can own, an `Origin` must be this server's,
//! and requests that the browser marks as cross-site are refused. No response allows another origin to read it.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::error::RequestError;

/// How long a browser keeps the token: an installed page is opened again after days.
const COOKIE_SECS: u32 = 30 * 24 * 3600;

/// Which requests a server accepts.
#[derive(Clone, Debug)]
pub(crate) struct AccessPolicy {
    pub(crate) address: SocketAddr,
    /// Host names that the user allows.
    pub(crate) hosts: Vec<String>,
    /// The token that every request needs; none if the server only listens on loopback.
    pub(crate) token: Option<String>,
}

/// A request that is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GrantedAccess {
    Granted,
    /// The token is in the address: the browser stores it as a cookie and is redirected to the address without it.
    SetCookie,
}

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

fn refused(code: &'static str, message: &str) -> RequestError {
    RequestError::new(StatusCode::FORBIDDEN, code, message)
}

impl AccessPolicy {
    pub(crate) fn check(&self, request: &Parts) -> Result<GrantedAccess, RequestError> {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(RequestError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "read_only",
                "this server is read-only: use GET or HEAD",
            ));
        }
        let host = self.host(request)?;
        check_origin(&request.headers, host)?;
        check_site(&request.headers)?;
        self.check_token(request)
    }

    /// The host of the request, if it is one of this server's.
    fn host<'r>(&self, request: &'r Parts) -> Result<&'r str, RequestError> {
        let mut hosts = request.headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok(),
            _ => None,
        };
        let host = host.ok_or_else(|| refused("host", "the request has no `Host` header, or several"))?;
        // A request in absolute form has its host in the address, too.
        let agrees = request.uri.authority().is_none_or(|authority| authority.as_str() == host);
        if agrees && self.is_own_host(host_name(host)) {
            return Ok(host);
        }
        Err(refused("host", "the request is for another host; to allow it: --allow-host NAME"))
    }

    fn is_own_host(&self, name: &str) -> bool {
        if name == "localhost" || self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name)) {
            return true;
        }
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        // An IP address cannot be rebound; but without a token, only loopback addresses are served.
        bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback() || self.token.is_some())
    }

    fn cookie_name(&self) -> String {
        // Browsers share cookies between ports, so the port is part of the name.
        format!("runner_ui_{}", self.address.port())
    }

    /// The value of the `Set-Cookie` header that stores the token.
    pub(crate) fn set_cookie(&self) -> String {
        let token = self.token.as_deref().unwrap_or_default();
        format!("{}={token}; Path=/; Max-Age={COOKIE_SECS}; HttpOnly; SameSite=Strict", self.cookie_name())
    }

    fn check_token(&self, request: &Parts) -> Result<GrantedAccess, RequestError> {
        let Some(token) = &self.token else { return Ok(GrantedAccess::Granted) };
        let query = request.uri.query().unwrap_or_default();
        let in_query = query.split('&').filter_map(|pair| pair.strip_prefix("token="));
        if in_query.clone().any(|given| is_same(given, token)) {
            return Ok(GrantedAccess::SetCookie);
        }
        let text = |name| request.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        let name = self.cookie_name();
        let in_cookie = text(COOKIE)
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().strip_prefix(name.as_str())?.strip_prefix('='));
        let in_header = text(AUTHORIZATION).filter_map(|value| value.strip_prefix("Bearer "));
        if in_cookie.chain(in_header).any(|given| is_same(given, token)) {
            return Ok(GrantedAccess::Granted);
        }
        let message = "a token is required: open the address that runner-ui printed";
        Err(RequestError::new(StatusCode::UNAUTHORIZED, "token", message))
    }
}

/// The host without its port.
fn host_name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn check_origin(headers: &HeaderMap, host: &str) -> Result<(), RequestError> {
    let is_own = |origin: &str| origin.strip_prefix("http://") == Some(host);
    let origins = headers.get_all(ORIGIN);
    if origins.iter().all(|origin| origin.to_str().is_ok_and(is_own)) {
        return Ok(());
    }
    Err(refused("origin", "requests from other origins are refused"))
}

/// Browsers mark where a request comes from. From another site, only following a link to the page is allowed.
fn check_site(headers: &HeaderMap) -> Result<(), RequestError> {
    let header = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let is_from_here = matches!(header(FETCH_SITE), None | Some("same-origin" | "none"));
    let is_link = header(FETCH_MODE) == Some("navigate") && header(FETCH_DEST) == Some("document");
    if is_from_here || is_link {
        return Ok(());
    }
    Err(refused("origin", "requests from other sites are refused"))
}

/// Compares in constant time, so that a wrong token reveals nothing.
fn is_same(given: &str, token: &str) -> bool {
    let differs = given.bytes().zip(token.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    given.len() == token.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn policy(token: Option<&str>) -> AccessPolicy {
        let address = "127.0.0.1:7878".parse().unwrap();
        AccessPolicy { address, hosts: vec!["box.lan".to_owned()], token: token.map(str::to_owned) }
    }

    fn check(policy: &AccessPolicy, uri: &str, headers: &[(&str, &str)]) -> Result<GrantedAccess, u16> {
        let request =
            headers.iter().fold(Request::get(uri), |request, (name, value)| request.header(*name, *value));
        policy.check(&request.body(()).unwrap().into_parts().0).map_err(|error| error.status.as_u16())
    }

    #[test]
    fn only_hosts_that_no_one_else_can_own_are_served() {
        for host in [
            "localhost",
            "localhost:1",
            "127.0.0.1:7878",
            "127.0.0.2",
            "[::1]:7878",
            "[::1]",
            "box.lan:9",
            "BOX.lan",
        ] {
            assert_eq!(check(&policy(None), "/", &[("host", host)]), Ok(GrantedAccess::Granted), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "",
            "localhost:x",
            "evil.example:7878",
            "[::2]",
        ] {
            assert_eq!(check(&policy(None), "/", &[("host", host)]), Err(403), "{host}");
        }
        assert_eq!(check(&policy(None), "/", &[]), Err(403));
        assert_eq!(check(&policy(None), "/", &[("host", "localhost"), ("host", "localhost")]), Err(403));
        assert_eq!(check(&policy(None), "http://evil.example/", &[("host", "localhost")]), Err(403));
    }

    #[test]
    fn requests_from_other_origins_are_refused() {
        let from = |origin: &str| {
            check(&policy(None), "/api/tree", &[("host", "localhost:7878"), ("origin", origin)])
        };
        assert_eq!(from("http://localhost:7878"), Ok(GrantedAccess::Granted));
        for origin in [
            "http://localhost:3000",
            "http://127.0.0.1:7878",
            "https://localhost:7878",
            "null",
            "http://evil.example",
            "",
        ] {
            assert_eq!(from(origin), Err(403), "{origin}");
        }
    }

    #[test]
    fn cross_site_requests_are_refused_unless_they_follow_a_link() {
        let fetch = |site: &str, mode: &str, dest: &str| {
            let headers = [
                ("host", "localhost"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            check(&policy(None), "/", &headers)
        };
        assert_eq!(fetch("same-origin", "cors", "empty"), Ok(GrantedAccess::Granted));
        assert_eq!(fetch("none", "navigate", "document"), Ok(GrantedAccess::Granted));
        assert_eq!(fetch("cross-site", "navigate", "document"), Ok(GrantedAccess::Granted));
        for (mode, dest) in
            [("no-cors", "script"), ("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe")]
        {
            assert_eq!(fetch("cross-site", mode, dest), Err(403), "{mode} {dest}");
            assert_eq!(fetch("same-site", mode, dest), Err(403), "{mode} {dest}");
        }
    }

    #[test]
    fn token_is_accepted_from_address_cookie_or_header() {
        let policy = policy(Some("secret"));
        let host = ("host", "192.168.1.5:7878");
        assert_eq!(check(&policy, "/", &[host]), Err(401));
        assert_eq!(check(&policy, "/?token=secret", &[host]), Ok(GrantedAccess::SetCookie));
        assert_eq!(check(&policy, "/?token=secre", &[host]), Err(401));
        assert_eq!(
            check(&policy, "/", &[host, ("cookie", "a=b; runner_ui_7878=secret")]),
            Ok(GrantedAccess::Granted)
        );
        assert_eq!(check(&policy, "/", &[host, ("cookie", "runner_ui_1=secret")]), Err(401));
        assert_eq!(
            check(&policy, "/", &[host, ("authorization", "Bearer secret")]),
            Ok(GrantedAccess::Granted)
        );
        assert_eq!(
            check(&policy, "/", &[("host", "evil.example"), ("authorization", "Bearer secret")]),
            Err(403)
        );
    }
}
