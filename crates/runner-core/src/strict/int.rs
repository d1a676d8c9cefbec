//! Integers with bounds in their type.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// An integer from `MIN` to `MAX`. `1.0` is an integer, as in JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct BoundedInt<const MIN: i64, const MAX: i64>(i64);

impl<const MIN: i64, const MAX: i64> BoundedInt<MIN, MAX> {
    /// A constant. One out of bounds does not compile.
    pub const fn fixed<const N: i64>() -> Self {
        const { assert!(MIN <= N && N <= MAX, "the number is out of bounds") };
        Self(N)
    }

    /// The number, if it is within the bounds.
    pub fn new(number: i64) -> Option<Self> {
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }

    pub fn get(self) -> i64 {
        self.0
    }

    /// The number as `u32`. Does not compile if the bounds exceed that type.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the bounds are checked")]
    pub fn as_u32(self) -> u32 {
        const { assert!(0 <= MIN && MAX <= u32::MAX as i64, "the bounds exceed u32") };
        self.0 as u32
    }

    /// The number as `u64`. Does not compile if it may be negative.
    #[expect(clippy::cast_sign_loss, reason = "the bounds are checked")]
    pub fn as_u64(self) -> u64 {
        const { assert!(0 <= MIN, "the number may be negative") };
        self.0 as u64
    }
}

/// The largest integer that every JSON reader keeps exactly (2^53 - 1).
pub const SAFE_INTEGER_MAX: i64 = 9_007_199_254_740_991;

/// A JSON number as an integer, if it is one within the exact range.
pub fn whole_number(number: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "an integer within the exact range of both types")]
    (number.fract() == 0.0 && number.abs() <= SAFE_INTEGER_MAX as f64).then_some(number as i64)
}

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for BoundedInt<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IntVisitor<const MIN: i64, const MAX: i64>;
        impl<const MIN: i64, const MAX: i64> Visitor<'_> for IntVisitor<MIN, MAX> {
            type Value = BoundedInt<MIN, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an integer from {MIN} to {MAX}")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
                let actual = Unexpected::Signed(number);
                BoundedInt::new(number).ok_or_else(|| E::invalid_value(actual, &self))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
                let actual = Unexpected::Unsigned(number);
                i64::try_from(number)
                    .ok()
                    .and_then(BoundedInt::new)
                    .ok_or_else(|| E::invalid_value(actual, &self))
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
                let actual = Unexpected::Float(number);
                whole_number(number).and_then(BoundedInt::new).ok_or_else(|| E::invalid_value(actual, &self))
            }
        }
        deserializer.deserialize_any(IntVisitor)
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
    fn an_integer_may_be_written_as_a_float() {
        let read = |text: &str| serde_json::from_str::<BoundedInt<0, 10>>(text).ok().map(BoundedInt::get);
        assert_eq!(read("10"), Some(10));
        assert_eq!(read("1e1"), Some(10));
        assert_eq!(read("-0.0"), Some(0));
        for bad in ["11", "-1", "0.5", "1e300", "18446744073709551615", "true", "\"1\""] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn bounds_decide_the_smallest_type() {
        assert_eq!(BoundedInt::<0, 10>::fixed::<10>().as_u32(), 10);
        assert_eq!(BoundedInt::<0, SAFE_INTEGER_MAX>::fixed::<SAFE_INTEGER_MAX>().as_u64(), (1 << 53) - 1);
    }
}
