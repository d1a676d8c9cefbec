//! Where the requests of an agent go: the provider of the configuration, or the agent's own.

use runner_core::agents::AgentSpec;
use runner_core::config::Executor;

use super::http_message::Request;

/// The addresses behind a recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Provider {
    /// The path of the address that the agent gets. What comes after it in a request is appended to a route.
    pub(super) path: String,
    routes: Vec<Route>,
}

/// One address. A request goes to the first whose header it has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Route {
    header: Option<&'static str>,
    url: String,
}

impl Provider {
    /// The provider of an executor. `variable` has the user's variables. None for an agent whose provider is not known.
    pub(super) fn of(executor: &Executor, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        if let Some(url) = &executor.base_url {
            return Some(Self::at(url));
        }
        let own = executor.agent().and_then(AgentSpec::native)?.provider;
        if let Some(url) = own.variable.and_then(variable).filter(|url| !url.is_empty()) {
            return Some(Self::at(&url));
        }
        let routes = own
            .routes
            .iter()
            .map(|route| Route { header: route.header, url: route.url.to_owned() })
            .collect();
        Some(Self { path: own.path.to_owned(), routes })
    }

    /// A provider at one address. The agent gets an address with the same path.
    fn at(url: &str) -> Self {
        let url = url.trim_end_matches('/');
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let path = rest.split_once('/').map(|(_, path)| format!("/{path}")).unwrap_or_default();
        Self { path, routes: vec![Route { header: None, url: url.to_owned() }] }
    }

    /// The address that a request is for; none if its path is not the agent's.
    pub(super) fn address(&self, request: &Request) -> Option<String> {
        let rest = request.target.strip_prefix(&self.path)?;
        let is_for = |route: &&Route| route.header.is_none_or(|name| request.header(name).is_some());
        let route = self.routes.iter().find(is_for)?;
        Some(format!("{}{rest}", route.url))
    }
}

#[cfg(test)]
mod tests {
    use super::super::http_message::Header;
    use super::*;
    use runner_core::config::Config;

    fn provider(keys: &str, variable: Option<&str>) -> Option<Provider> {
        let executor = Config::decode(format!("[executor]\n{keys}").as_bytes()).unwrap().executor;
        Provider::of(&executor, |_| variable.map(str::to_owned))
    }

    fn request(target: &str, header: Option<&str>) -> Request {
        let headers = header.map(|name| Header { name: name.to_owned(), value: "x".to_owned() });
        Request { target: target.to_owned(), headers: headers.into_iter().collect(), ..Request::default() }
    }

    #[test]
    fn requests_go_to_the_provider_of_the_configuration() {
        let provider = provider("kind = \"codex\"\nbase_url = \"http://127.0.0.1:8080/v1/\"", None).unwrap();
        assert_eq!(provider.path, "/v1");
        let address = provider.address(&request("/v1/responses?a=b", None)).unwrap();
        assert_eq!(address, "http://127.0.0.1:8080/v1/responses?a=b");
        assert_eq!(provider.address(&request("/other", None)), None);
    }

    #[test]
    fn codex_has_two_providers_of_its_own() {
        let codex = provider("kind = \"codex\"", None).unwrap();
        let address = |header| codex.address(&request(&format!("{}/responses", codex.path), header));
        assert_eq!(address(None).unwrap(), "https://api.openai.com/v1/responses");
        let with_login = address(Some("chatgpt-account-id")).unwrap();
        assert_eq!(with_login, "https://chatgpt.com/backend-api/codex/responses");
    }

    #[test]
    fn claude_has_one_that_a_variable_can_replace() {
        let keys = "kind = \"claude\"";
        let address = |variable| provider(keys, variable).unwrap().address(&request("/v1/messages", None));
        assert_eq!(address(None).unwrap(), "https://api.anthropic.com/v1/messages");
        assert_eq!(address(Some("http://127.0.0.1:1")).unwrap(), "http://127.0.0.1:1/v1/messages");
    }

    #[test]
    fn a_preset_without_an_address_has_no_known_provider() {
        assert_eq!(provider("kind = \"command\"\npreset = \"opencode\"", None), None);
    }
}
