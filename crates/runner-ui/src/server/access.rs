//! Who may ask. Every request passes here before any route is looked at.
//!
//! A page of any other origin may send requests to this machine, and a name that its owner points at 127.0.0.1 makes
//! them look local. So the `Host` must be one that nobody else can own, whoever names an `Origin` must name this very
//! one, and what a browser marks as coming from elsewhere is refused. No answer allows another origin to read it.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::error::RequestError;

/// The rules of one server.
#[derive(Clone, Debug)]
pub(crate) struct AccessPolicy {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Names that the user vouches for.
    pub(crate) hosts: Vec<String>,
    /// What whoever asks must know; none on loopback alone.
    pub(crate) token: Option<String>,
}

/// A request that may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GrantedAccess {
    Enter,
    /// The token came in the address: the browser keeps it as a cookie and asks again without it.
    TakeCookie,
}

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

fn refused(code: &'static str, message: &str) -> RequestError {
    RequestError::new(StatusCode::FORBIDDEN, code, message)
}

impl AccessPolicy {
    /// Lets a request pass, or says why not.
    pub(crate) fn check(&self, request: &Parts) -> Result<GrantedAccess, RequestError> {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(RequestError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "read_only",
                "this server only reads: GET and HEAD",
            ));
        }
        let host = self.host(request)?;
        check_origin(&request.headers, host)?;
        check_site(&request.headers)?;
        self.check_token(request)
    }

    /// The host that was asked for, if it is one of ours.
    fn host<'r>(&self, request: &'r Parts) -> Result<&'r str, RequestError> {
        let mut hosts = request.headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok(),
            _ => None,
        };
        let host = host.ok_or_else(|| refused("host", "the request names no host, or several"))?;
        // A request in absolute form names its host twice.
        let agrees = request.uri.authority().is_none_or(|authority| authority.as_str() == host);
        if agrees && self.is_ours(name_of(host)) {
            return Ok(host);
        }
        Err(refused("host", "the request is for another host; `--allow-host NAME` allows one by name"))
    }

    fn is_ours(&self, name: &str) -> bool {
        if name == "localhost" || self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name)) {
            return true;
        }
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        // An address cannot be pointed elsewhere; but without a token, only this machine's own is served.
        bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback() || self.token.is_some())
    }

    fn cookie(&self) -> String {
        // Cookies do not know ports, so the name does.
        format!("runner_ui_{}", self.address.port())
    }

    /// The header that makes a browser keep the token.
    pub(crate) fn set_cookie(&self) -> String {
        let token = self.token.as_deref().unwrap_or_default();
        format!("{}={token}; Path=/; HttpOnly; SameSite=Strict", self.cookie())
    }

    fn check_token(&self, request: &Parts) -> Result<GrantedAccess, RequestError> {
        let Some(token) = &self.token else { return Ok(GrantedAccess::Enter) };
        let query = request.uri.query().unwrap_or_default();
        let in_query = query.split('&').filter_map(|pair| pair.strip_prefix("token="));
        if in_query.clone().any(|given| is_same(given, token)) {
            return Ok(GrantedAccess::TakeCookie);
        }
        let text = |name| request.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        let name = self.cookie();
        let in_cookie = text(COOKIE)
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().strip_prefix(name.as_str())?.strip_prefix('='));
        let in_header = text(AUTHORIZATION).filter_map(|value| value.strip_prefix("Bearer "));
        if in_cookie.chain(in_header).any(|given| is_same(given, token)) {
            return Ok(GrantedAccess::Enter);
        }
        let message = "a token is needed: open the address that runner-ui printed";
        Err(RequestError::new(StatusCode::UNAUTHORIZED, "token", message))
    }
}

/// The host without its port.
fn name_of(host: &str) -> &str {
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
    Err(refused("origin", "pages of other origins may not ask"))
}

/// Browsers say where a request comes from. Following a link to the page is the one thing allowed from elsewhere.
fn check_site(headers: &HeaderMap) -> Result<(), RequestError> {
    let says = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let is_from_here = matches!(says(FETCH_SITE), None | Some("same-origin" | "none"));
    let is_link = says(FETCH_MODE) == Some("navigate") && says(FETCH_DEST) == Some("document");
    if is_from_here || is_link {
        return Ok(());
    }
    Err(refused("origin", "pages of other sites may not ask"))
}

/// Compares without telling by the time it takes how much of it is right.
fn is_same(given: &str, token: &str) -> bool {
    let differs = given.bytes().zip(token.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    given.len() == token.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn gate(token: Option<&str>) -> AccessPolicy {
        let address = "127.0.0.1:7878".parse().unwrap();
        AccessPolicy { address, hosts: vec!["box.lan".to_owned()], token: token.map(str::to_owned) }
    }

    fn ask(gate: &AccessPolicy, uri: &str, headers: &[(&str, &str)]) -> Result<GrantedAccess, u16> {
        let request =
            headers.iter().fold(Request::get(uri), |request, (name, value)| request.header(*name, *value));
        gate.check(&request.body(()).unwrap().into_parts().0).map_err(|fault| fault.status.as_u16())
    }

    #[test]
    fn only_hosts_that_nobody_else_can_own_are_served() {
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
            assert_eq!(ask(&gate(None), "/", &[("host", host)]), Ok(GrantedAccess::Enter), "{host}");
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
            assert_eq!(ask(&gate(None), "/", &[("host", host)]), Err(403), "{host}");
        }
        assert_eq!(ask(&gate(None), "/", &[]), Err(403));
        assert_eq!(ask(&gate(None), "/", &[("host", "localhost"), ("host", "localhost")]), Err(403));
        assert_eq!(ask(&gate(None), "http://evil.example/", &[("host", "localhost")]), Err(403));
    }

    #[test]
    fn no_other_origin_may_ask() {
        let from =
            |origin: &str| ask(&gate(None), "/api/tree", &[("host", "localhost:7878"), ("origin", origin)]);
        assert_eq!(from("http://localhost:7878"), Ok(GrantedAccess::Enter));
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
    fn what_a_browser_marks_as_foreign_is_refused_unless_it_is_a_link() {
        let ask = |site: &str, mode: &str, dest: &str| {
            let headers = [
                ("host", "localhost"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            ask(&gate(None), "/", &headers)
        };
        assert_eq!(ask("same-origin", "cors", "empty"), Ok(GrantedAccess::Enter));
        assert_eq!(ask("none", "navigate", "document"), Ok(GrantedAccess::Enter));
        assert_eq!(ask("cross-site", "navigate", "document"), Ok(GrantedAccess::Enter));
        for (mode, dest) in
            [("no-cors", "script"), ("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe")]
        {
            assert_eq!(ask("cross-site", mode, dest), Err(403), "{mode} {dest}");
            assert_eq!(ask("same-site", mode, dest), Err(403), "{mode} {dest}");
        }
    }

    #[test]
    fn a_token_comes_by_address_cookie_or_header() {
        let gate = gate(Some("secret"));
        let host = ("host", "192.168.1.5:7878");
        assert_eq!(ask(&gate, "/", &[host]), Err(401));
        assert_eq!(ask(&gate, "/?token=secret", &[host]), Ok(GrantedAccess::TakeCookie));
        assert_eq!(ask(&gate, "/?token=secre", &[host]), Err(401));
        assert_eq!(
            ask(&gate, "/", &[host, ("cookie", "a=b; runner_ui_7878=secret")]),
            Ok(GrantedAccess::Enter)
        );
        assert_eq!(ask(&gate, "/", &[host, ("cookie", "runner_ui_1=secret")]), Err(401));
        assert_eq!(ask(&gate, "/", &[host, ("authorization", "Bearer secret")]), Ok(GrantedAccess::Enter));
        assert_eq!(
            ask(&gate, "/", &[("host", "evil.example"), ("authorization", "Bearer secret")]),
            Err(403)
        );
    }
}
