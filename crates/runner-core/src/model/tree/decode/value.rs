//! Scalars and keys that decode without failing, so that the rest of the document is still checked.

use std::fmt;
use std::ops::RangeInclusive;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::model::tree::problem::{JsonKind, TreeError};
use crate::strict::whole_number;

/// The value of a scalar field. The content of lists and objects is skipped.
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(String),
    Array,
    Object,
}

impl Scalar {
    fn kind(&self) -> JsonKind {
        match self {
            Self::Null => JsonKind::Null,
            Self::Bool(_) => JsonKind::Bool,
            Self::Int(_) => JsonKind::Integer,
            Self::Float(_) => JsonKind::Number,
            Self::String(_) => JsonKind::String,
            Self::Array => JsonKind::Array,
            Self::Object => JsonKind::Object,
        }
    }

    /// The error of a field that has this value instead of one of another type.
    pub(super) fn is_not(&self, expected: JsonKind, field: impl Into<String>) -> TreeError {
        TreeError::WrongKind { field: field.into(), expected, found: self.kind() }
    }

    pub(super) fn string(self, field: &'static str) -> Result<String, TreeError> {
        if let Self::String(text) = self { Ok(text) } else { Err(self.is_not(JsonKind::String, field)) }
    }

    pub(super) fn bool(&self, field: &'static str) -> Result<bool, TreeError> {
        if let Self::Bool(value) = self { Ok(*value) } else { Err(self.is_not(JsonKind::Bool, field)) }
    }

    /// An integer within bounds, in any notation.
    pub(super) fn integer(&self, field: &'static str, bounds: RangeInclusive<i64>) -> Result<i64, TreeError> {
        let (number, shown): (_, &dyn fmt::Display) = match self {
            Self::Int(number) => (Some(*number), number),
            Self::Float(number) if number.fract() == 0.0 => (whole_number(*number), number),
            Self::Null | Self::Bool(_) | Self::Float(_) | Self::String(_) | Self::Array | Self::Object => {
                return Err(self.is_not(JsonKind::Integer, field));
            }
        };
        match number.filter(|number| bounds.contains(number)) {
            Some(number) => Ok(number),
            None => Err(TreeError::OutOfRange { field, bounds, found: shown.to_string() }),
        }
    }
}

/// Decodes a value of any type.
pub(super) struct ScalarSeed;

impl<'de> DeserializeSeed<'de> for ScalarSeed {
    type Value = Scalar;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Scalar, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ScalarSeed {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Int(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        Ok(i64::try_from(number).map_or(Scalar::Float(number as f64), Scalar::Int))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Array)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Object)
    }
}

/// Decodes a key. Most documents have the known keys in order, so the next one is tried first.
pub(super) struct KeySeed<K: 'static> {
    pub(super) known: &'static [(&'static str, K)],
    /// The index of the key that is next in that order.
    pub(super) next: usize,
}

/// A known key with its index, or the text of an unknown one.
pub(super) enum FieldKey<K> {
    Known(usize, &'static str, K),
    Unknown(String),
}

impl<'de, K: Copy> DeserializeSeed<'de> for KeySeed<K> {
    type Value = FieldKey<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<FieldKey<K>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<K: Copy> Visitor<'_> for KeySeed<K> {
    type Value = FieldKey<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<FieldKey<K>, E> {
        let expected =
            self.known.get(self.next).filter(|(name, _)| *name == text).map(|known| (self.next, known));
        let known = expected.or_else(|| self.known.iter().enumerate().find(|(_, (name, _))| *name == text));
        Ok(known.map_or_else(
            || FieldKey::Unknown(text.to_owned()),
            |(index, (name, key))| FieldKey::Known(index, name, *key),
        ))
    }
}
