//! The prices of the models that agents use by default, for agents that do not report their cost.

use super::{Config, Executor, ExecutorKind, TokenPrice, Usd};

/// When the prices below were last compared with the provider's list.
pub const DEFAULT_PRICES_DATE: &str = "2026-10-13";

/// A price per million tokens, in millionths of a dollar.
struct ModelPrice {
    model: &'static str,
    input: u64,
    cached_input: u64,
    cache_write: u64,
    output: u64,
}

/// The model that Codex uses if none is configured.
const CODEX_MODEL: &str = "gpt-6.1-sol";

/// Standard prices. A request with more than 272,000 input tokens costs up to twice as much, which the totals of a session do
/// not show.
const DEFAULT_PRICES: [ModelPrice; 3] = [
    ModelPrice {
        model: CODEX_MODEL,
        input: 2_000_000,
        cached_input: 100_000,
        cache_write: 2_500_000,
        output: 10_000_000,
    },
    ModelPrice {
        model: "gpt-6-sol",
        input: 2_000_000,
        cached_input: 200_000,
        cache_write: 2_500_000,
        output: 10_000_000,
    },
    ModelPrice {
        model: "gpt-6-luna",
        input: 100_000,
        cached_input: 10_000,
        cache_write: 125_000,
        output: 500_000,
    },
];

impl Config {
    /// The price of an agent's tokens: from the configuration, or else the default of its model. A provider of the user's own
    /// has prices of its own.
    pub fn price_of(&self, agent: &Executor) -> Option<TokenPrice> {
        let configured = self.prices.get(agent.priced_as()).copied();
        configured.or_else(|| default_price(agent).filter(|_| agent.base_url.is_none()))
    }
}

fn default_price(agent: &Executor) -> Option<TokenPrice> {
    if agent.kind != ExecutorKind::Codex {
        return None;
    }
    let model = agent.model.as_deref().unwrap_or(CODEX_MODEL);
    let price = DEFAULT_PRICES.iter().find(|price| price.model == model)?;
    Some(TokenPrice {
        input: Usd::of_microdollars(price.input),
        cached_input: Some(Usd::of_microdollars(price.cached_input)),
        cache_write: Some(Usd::of_microdollars(price.cache_write)),
        output: Usd::of_microdollars(price.output),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input_price(text: &str) -> Option<u64> {
        let config = Config::decode(text.as_bytes()).unwrap();
        config.price_of(&config.executor).map(|price| price.input.microdollars())
    }

    #[test]
    fn a_configured_price_replaces_the_default_of_the_model() {
        assert_eq!(input_price(""), Some(2_000_000));
        assert_eq!(input_price("[executor]\nmodel = \"gpt-6-luna\"\n"), Some(100_000));
        assert_eq!(input_price("[prices.codex]\ninput = 3\noutput = 4\n"), Some(3_000_000));
        assert_eq!(input_price("[executor]\nmodel = \"unknown\"\n"), None);
        assert_eq!(input_price("[executor]\nkind = \"claude\"\nmodel = \"gpt-6-luna\"\n"), None);
        assert_eq!(
            input_price("[executor]\nbase_url = \"http://127.0.0.1:1/v1\"\n"),
            None,
            "another provider"
        );
    }
}
