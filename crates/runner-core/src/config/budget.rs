//! What a run may cost, and what tokens cost.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Table;
use crate::strict::{BoundedInt, SAFE_INTEGER_MAX};

/// Tokens, as many as are counted exactly.
pub type TokenLimit = BoundedInt<1, SAFE_INTEGER_MAX>;

/// What a run may cost. A limit is checked before each session, so the session that reaches it is the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct Budget {
    /// The most tokens of one run, read and written, over all invocations.
    #[schemars(extend("examples" = [20_000_000]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_tokens: Option<TokenLimit>,
    /// The most US dollars of one run, over all invocations.
    #[schemars(extend("examples" = [25.0]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_usd: Option<Usd>,
    /// The most tokens of one leaf, over all its sessions.
    #[schemars(extend("examples" = [2_000_000]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_tokens: Option<TokenLimit>,
    /// The most US dollars of one leaf, over all its sessions.
    #[schemars(extend("examples" = [2.5]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_usd: Option<Usd>,
}

/// What tokens of a model cost, for agents that report no cost themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct TokenPrice {
    /// US dollars for a million tokens read.
    #[schemars(extend("examples" = [1.25]))]
    pub input: Usd,
    /// US dollars for a million tokens read from the provider's cache; without it, as much as for others.
    #[schemars(extend("examples" = [0.125]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<Usd>,
    /// US dollars for a million tokens written.
    #[schemars(extend("examples" = [10.0]))]
    pub output: Usd,
}

/// US dollars, kept as whole millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(u64);

/// The most dollars that can be said.
const USD_MAX: u32 = 1_000_000;

impl Usd {
    /// In millionths of a dollar.
    pub fn microdollars(self) -> u64 {
        self.0
    }

    /// From millionths of a dollar, up to the most that can be said.
    pub fn of_microdollars(microdollars: u64) -> Self {
        Self(microdollars.min(u64::from(USD_MAX) * 1_000_000))
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "at most a million dollars in millionths, which is exact"
        )]
        serializer.serialize_f64(self.0 as f64 / 1e6)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        if !(0.0..=f64::from(USD_MAX)).contains(&dollars) {
            let expected = format!("expected an amount of dollars from 0 to {USD_MAX}, found {dollars}");
            return Err(serde::de::Error::custom(expected));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and a million dollars in millionths"
        )]
        Ok(Self((dollars * 1e6).round() as u64))
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> Cow<'static, str> {
        "Usd".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": USD_MAX })
    }
}

impl Budget {
    pub(super) fn take(table: &mut Table<'_>) -> Self {
        Self {
            run_tokens: table.optional("run_tokens"),
            run_usd: table.optional("run_usd"),
            leaf_tokens: table.optional("leaf_tokens"),
            leaf_usd: table.optional("leaf_usd"),
        }
    }

    /// Whether there is any limit.
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }
}

impl TokenPrice {
    pub(super) fn take(table: &mut Table<'_>) -> Self {
        Self {
            input: table.optional("input").unwrap_or_default(),
            cached_input: table.optional("cached_input"),
            output: table.optional("output").unwrap_or_default(),
        }
    }
}

/// Prices by model, or by kind of agent for one that is asked for no model.
pub type Prices = BTreeMap<String, TokenPrice>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn any_limit_makes_a_budget() {
        assert!(!Budget::default().is_set());
        for key in ["run_tokens", "run_usd", "leaf_tokens", "leaf_usd"] {
            let text = format!("[budget]\n{key} = 1\n");
            assert!(Config::decode(text.as_bytes()).unwrap().budget.is_set(), "{key}");
        }
    }

    #[test]
    fn dollars_are_kept_to_the_millionth() {
        let read = |text: &str| serde_json::from_str::<Usd>(text).ok().map(Usd::microdollars);
        assert_eq!(read("1.25"), Some(1_250_000));
        assert_eq!(read("0.000001"), Some(1));
        assert_eq!(read("3"), Some(3_000_000));
        assert_eq!(read("1000000"), Some(1_000_000_000_000));
        for bad in ["-0.1", "1000001", "\"1\"", "null"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(serde_json::to_string(&Usd(1_250_000)).unwrap(), "1.25");
        assert_eq!(Usd::of_microdollars(u64::MAX).microdollars(), 1_000_000_000_000);
    }
}
