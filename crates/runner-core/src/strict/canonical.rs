//! The canonical form of a document: indented by two spaces, text not escaped more than necessary, one newline at the end.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;

/// The canonical form of a document.
pub fn canonical_json<T: Serialize>(document: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, CanonicalFormatter::default());
    #[expect(clippy::expect_used, reason = "our documents contain nothing that JSON lacks")]
    document.serialize(&mut serializer).expect("documents are valid JSON");
    bytes.push(b'\n');
    bytes
}

/// Writes the same as serde_json's `PrettyFormatter`, but the indentation at once: that one writes two spaces at a time, and
/// most of a tree is indentation.
#[derive(Default)]
struct CanonicalFormatter {
    depth: usize,
    /// Whether the current list or object has any content.
    has_content: bool,
}

/// The start of a line, with the indentation of the deepest level.
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
        self.has_content = false;
        writer.write_all(&[bracket])
    }

    fn close<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: u8) -> io::Result<()> {
        self.depth -= 1;
        if self.has_content {
            self.line(writer)?;
        }
        self.has_content = true;
        writer.write_all(&[bracket])
    }

    fn item<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.has_content = true;
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
    fn the_canonical_form_is_that_of_serde_json_with_a_newline() {
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
