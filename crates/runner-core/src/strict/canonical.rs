//! The one written form of a document: two spaces of indent, text unescaped, one newline at the end.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;

/// The bytes of a document in that form.
pub fn canonical_json<T: Serialize>(document: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, CanonicalFormatter::default());
    #[expect(clippy::expect_used, reason = "our documents hold no maps and no values that JSON lacks")]
    document.serialize(&mut serializer).expect("a document of ours is JSON");
    bytes.push(b'\n');
    bytes
}

/// Writes what serde_json's pretty form writes. That one puts two spaces at a time, and a tree is indentation for
/// the most part.
#[derive(Default)]
struct CanonicalFormatter {
    depth: usize,
    /// Whether the list or object that is being written holds anything yet.
    is_filled: bool,
}

/// The start of a line as deep as documents get.
const LINE: &[u8; 257] = &{
    let mut line = [b' '; 257];
    let [first, ..] = &mut line;
    *first = b'\n';
    line
};

impl CanonicalFormatter {
    fn line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        match LINE.get(..=2 * self.depth) {
            Some(line) => writer.write_all(line),
            None => write!(writer, "\n{:1$}", "", 2 * self.depth),
        }
    }

    fn open<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: u8) -> io::Result<()> {
        self.depth += 1;
        self.is_filled = false;
        writer.write_all(&[bracket])
    }

    fn close<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: u8) -> io::Result<()> {
        self.depth -= 1;
        if self.is_filled {
            self.line(writer)?;
        }
        self.is_filled = true;
        writer.write_all(&[bracket])
    }

    fn item<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.is_filled = true;
        self.line(writer)
    }
}

impl Formatter for CanonicalFormatter {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b'[')
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b']')
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.item(writer, first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b'{')
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b'}')
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.item(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn it_is_the_pretty_form_of_serde_json_and_a_newline() {
        let deep = (0..200).fold(json!("in"), |inner, _| json!([inner]));
        let text = "\"\\/\u{8}\t\n\u{c}\r\u{1b}\u{7f}é\u{2028}日😀";
        for value in [
            json!(null),
            json!([]),
            json!({}),
            json!([[], {}, [1, -2.5]]),
            json!({"a": [], "b": {"c": {}, "d": [{}]}, "é": text}),
            deep,
        ] {
            let mut pretty = serde_json::to_vec_pretty::<Value>(&value).unwrap();
            pretty.push(b'\n');
            assert_eq!(canonical_json(&value), pretty);
        }
    }
}
