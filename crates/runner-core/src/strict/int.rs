//! Whole numbers within bounds.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A whole number between two bounds, both allowed. `1.0` is a whole number, as JSON Schema has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct BoundedInt<const MIN: i64, const MAX: i64>(i64);

impl<const MIN: i64, const MAX: i64> BoundedInt<MIN, MAX> {
    /// Takes a number that is known when the program is built; one out of bounds does not compile.
    pub const fn fixed<const N: i64>() -> Self {
        const { assert!(MIN <= N && N <= MAX, "the number is out of its bounds") };
        Self(N)
    }

    /// Takes a number, if it is within the bounds.
    pub fn new(number: i64) -> Option<Self> {
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> i64 {
        self.0
    }
}

/// The largest whole number that every JSON reader keeps exactly (2^53 - 1).
pub const SAFE_INTEGER_MAX: i64 = 9_007_199_254_740_991;

/// The whole number that a JSON number stands for, if it stands for one that is kept exactly.
pub fn whole_number(number: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within the exact range of both types")]
    (number.fract() == 0.0 && number.abs() <= SAFE_INTEGER_MAX as f64).then_some(number as i64)
}

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for BoundedInt<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number<const MIN: i64, const MAX: i64>;
        impl<const MIN: i64, const MAX: i64> Visitor<'_> for Number<MIN, MAX> {
            type Value = BoundedInt<MIN, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {MIN} to {MAX}")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
                let found = Unexpected::Signed(number);
                BoundedInt::new(number).ok_or_else(|| E::invalid_value(found, &self))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
                let found = Unexpected::Unsigned(number);
                i64::try_from(number)
                    .ok()
                    .and_then(BoundedInt::new)
                    .ok_or_else(|| E::invalid_value(found, &self))
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
                let found = Unexpected::Float(number);
                whole_number(number).and_then(BoundedInt::new).ok_or_else(|| E::invalid_value(found, &self))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

impl<const MIN: i64, const MAX: i64> JsonSchema for BoundedInt<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Int{MIN}to{MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_may_be_written_as_a_float() {
        let read = |text: &str| serde_json::from_str::<BoundedInt<0, 10>>(text).ok().map(BoundedInt::get);
        assert_eq!(read("10"), Some(10));
        assert_eq!(read("1e1"), Some(10));
        assert_eq!(read("-0.0"), Some(0));
        for bad in ["11", "-1", "0.5", "1e300", "18446744073709551615", "true", "\"1\""] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
