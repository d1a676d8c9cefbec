//! Single values and keys, read without giving up on what follows them.

use std::fmt;
use std::ops::RangeInclusive;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::document::whole_number;
use crate::tree::problem::{Kind, TreeFault};

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
    fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Whole,
            Self::Float(_) => Kind::Number,
            Self::String(_) => Kind::String,
            Self::Array => Kind::Array,
            Self::Object => Kind::Object,
        }
    }

    /// The fault of a field that holds this value and should hold one of another kind.
    pub(super) fn not(&self, wanted: Kind, field: impl Into<String>) -> TreeFault {
        TreeFault::WrongKind { field: field.into(), wanted, found: self.kind() }
    }

    pub(super) fn string(self, field: &'static str) -> Result<String, TreeFault> {
        if let Self::String(text) = self { Ok(text) } else { Err(self.not(Kind::String, field)) }
    }

    pub(super) fn bool(&self, field: &'static str) -> Result<bool, TreeFault> {
        if let Self::Bool(value) = self { Ok(*value) } else { Err(self.not(Kind::Bool, field)) }
    }

    /// A whole number within bounds, however it is written.
    pub(super) fn whole(&self, field: &'static str, bounds: RangeInclusive<i64>) -> Result<i64, TreeFault> {
        let (number, shown): (_, &dyn fmt::Display) = match self {
            Self::Int(number) => (Some(*number), number),
            Self::Float(number) if number.fract() == 0.0 => (whole_number(*number), number),
            Self::Null | Self::Bool(_) | Self::Float(_) | Self::String(_) | Self::Array | Self::Object => {
                return Err(self.not(Kind::Whole, field));
            }
        };
        match number.filter(|number| bounds.contains(number)) {
            Some(number) => Ok(number),
            None => Err(TreeFault::OutOfRange { field, bounds, found: shown.to_string() }),
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
pub(super) enum Key<K> {
    Known(usize, &'static str, K),
    Unknown(String),
}

impl<'de, K: Copy> DeserializeSeed<'de> for KeySeed<K> {
    type Value = Key<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key<K>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<K: Copy> Visitor<'_> for KeySeed<K> {
    type Value = Key<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Key<K>, E> {
        let in_turn =
            self.known.get(self.next).filter(|(name, _)| *name == text).map(|known| (self.next, known));
        let known = in_turn.or_else(|| self.known.iter().enumerate().find(|(_, (name, _))| *name == text));
        Ok(known.map_or_else(
            || Key::Unknown(text.to_owned()),
            |(place, (name, key))| Key::Known(place, name, *key),
        ))
    }
}
