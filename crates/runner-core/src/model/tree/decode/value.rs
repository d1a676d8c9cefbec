//! Single values and keys, read without giving up on what follows them.

use std::fmt;
use std::ops::RangeInclusive;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::model::tree::problem::{JsonKind, TreeError};
use crate::strict::whole_number;

/// A value of a field that holds no nodes; what lies inside lists and objects is passed over.
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
            Self::Int(_) => JsonKind::Whole,
            Self::Float(_) => JsonKind::Number,
            Self::String(_) => JsonKind::String,
            Self::Array => JsonKind::Array,
            Self::Object => JsonKind::Object,
        }
    }

    /// The fault of a field that holds this value and should hold one of another kind.
    pub(super) fn not(&self, wanted: JsonKind, field: impl Into<String>) -> TreeError {
        TreeError::WrongKind { field: field.into(), wanted, found: self.kind() }
    }

    pub(super) fn string(self, field: &'static str) -> Result<String, TreeError> {
        if let Self::String(text) = self { Ok(text) } else { Err(self.not(JsonKind::String, field)) }
    }

    pub(super) fn bool(&self, field: &'static str) -> Result<bool, TreeError> {
        if let Self::Bool(value) = self { Ok(*value) } else { Err(self.not(JsonKind::Bool, field)) }
    }

    /// A whole number within bounds, however it is written.
    pub(super) fn whole(&self, field: &'static str, bounds: RangeInclusive<i64>) -> Result<i64, TreeError> {
        let (number, shown): (_, &dyn fmt::Display) = match self {
            Self::Int(number) => (Some(*number), number),
            Self::Float(number) if number.fract() == 0.0 => (whole_number(*number), number),
            Self::Null | Self::Bool(_) | Self::Float(_) | Self::String(_) | Self::Array | Self::Object => {
                return Err(self.not(JsonKind::Whole, field));
            }
        };
        match number.filter(|number| bounds.contains(number)) {
            Some(number) => Ok(number),
            None => Err(TreeError::OutOfRange { field, bounds, found: shown.to_string() }),
        }
    }
}

/// Reads a value of any kind.
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

/// Which of the known keys comes next. Most documents have them in their order, so that is tried first.
pub(super) struct KeySeed<K: 'static> {
    pub(super) known: &'static [(&'static str, K)],
    /// The place of the key that follows in that order.
    pub(super) next: usize,
}

/// A key, by its place among the known ones; an unknown one as it stands.
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
        let in_turn =
            self.known.get(self.next).filter(|(name, _)| *name == text).map(|known| (self.next, known));
        let known = in_turn.or_else(|| self.known.iter().enumerate().find(|(_, (name, _))| *name == text));
        Ok(known.map_or_else(
            || FieldKey::Unknown(text.to_owned()),
            |(place, (name, key))| FieldKey::Known(place, name, *key),
        ))
    }
}
