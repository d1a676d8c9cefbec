//! Bytes in documents: as text if they are UTF-8, else in hexadecimal.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum TextOrBytes<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes { hex: String },
}

pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let value = match std::str::from_utf8(bytes) {
        Ok(text) => TextOrBytes::Text(text.into()),
        Err(_) => TextOrBytes::Bytes { hex: bytes.iter().map(|byte| format!("{byte:02x}")).collect() },
    };
    value.serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    match TextOrBytes::deserialize(deserializer)? {
        TextOrBytes::Text(text) => Ok(text.into_owned().into_bytes()),
        TextOrBytes::Bytes { hex } => {
            let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            let byte = |pair: &[u8]| match pair {
                [high, low] => Some(digit(high)? * 16 + digit(low)?),
                _ => None,
            };
            let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(byte).collect();
            bytes.ok_or_else(|| serde::de::Error::custom("expected hexadecimal digits"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct BytesDocument(#[serde(with = "super")] Vec<u8>);

    #[test]
    fn any_bytes_round_trip() {
        for (bytes, text) in [(b"a\xc3\xa9\n".as_slice(), r#""aé\n""#), (b"\xff\x00", r#"{"hex":"ff00"}"#)] {
            let written = serde_json::to_string(&BytesDocument(bytes.to_vec())).unwrap();
            assert_eq!(written, text);
            assert_eq!(
                serde_json::from_str::<BytesDocument>(&written).unwrap(),
                BytesDocument(bytes.to_vec())
            );
        }
        assert!(serde_json::from_str::<BytesDocument>(r#"{"hex":"f"}"#).is_err());
    }
}
