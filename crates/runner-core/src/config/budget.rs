//! The `[budget]` and `[prices]` tables: limits on tokens and dollars, and the price of tokens.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{read_keys, read_optional_keys};
use crate::strict::{BoundedInt, SAFE_INTEGER_MAX, TomlTable, inline_schema};

/// A limit in tokens.
pub type TokenLimit = BoundedInt<1, SAFE_INTEGER_MAX>;

/// Limits on what a run may use. They are checked before each session, so the session that reaches one is the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct Budget {
    /// Most tokens (input and output) of one run, over all invocations.
    #[schemars(extend("examples" = [20_000_000]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_tokens: Option<TokenLimit>,
    /// Most US dollars of one run, over all invocations.
    #[schemars(extend("examples" = [25.0]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_usd: Option<Usd>,
    /// Most tokens of one task, over all its sessions.
    #[schemars(extend("examples" = [2_000_000]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_tokens: Option<TokenLimit>,
    /// Most US dollars of one task, over all its sessions.
    #[schemars(extend("examples" = [2.5]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_usd: Option<Usd>,
}

/// The price of a model's tokens, for agents that do not report their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct TokenPrice {
    /// US dollars per million input tokens.
    #[schemars(extend("examples" = [1.25]))]
    pub input: Usd,
    /// US dollars per million cached input tokens [default: the price of `input`].
    #[schemars(extend("examples" = [0.125]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<Usd>,
    /// US dollars per million input tokens that are written to a cache [default: the price of `input`].
    #[schemars(extend("examples" = [1.5625]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Usd>,
    /// US dollars per million output tokens.
    #[schemars(extend("examples" = [10.0]))]
    pub output: Usd,
}

/// US dollars, stored as integer millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(u64);

/// The largest amount in dollars.
const USD_MAX: u32 = 1_000_000;

impl Usd {
    /// The amount in millionths of a dollar.
    pub fn microdollars(self) -> u64 {
        self.0
    }

    /// An amount in millionths of a dollar, capped at the largest one.
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

inline_schema!(Usd, { "type": "number", "minimum": 0, "maximum": USD_MAX });

impl Budget {
    pub(super) fn take(table: &mut TomlTable<'_>) -> Self {
        let mut budget = Self::default();
        read_optional_keys!(table, budget: run_tokens, run_usd, leaf_tokens, leaf_usd);
        budget
    }

    /// Whether any limit is set.
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }
}

impl TokenPrice {
    pub(super) fn take(table: &mut TomlTable<'_>) -> Self {
        let mut price = Self::default();
        read_keys!(table, price: input, output);
        read_optional_keys!(table, price: cached_input, cache_write);
        price
    }
}

/// Prices by model, or by kind for an agent without a configured model.
pub type Prices = BTreeMap<String, TokenPrice>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn any_limit_sets_the_budget() {
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
