//! The text of an agent's message arrives in pieces. A key may begin in one and end in the next.

use runner_core::agents::AcpLine;
use runner_core::redact::RedactedStream;
use serde_json::{Value, json};

use crate::redaction::redactor;

/// The message that is arriving.
#[derive(Debug, Default)]
pub(super) struct TextPieces(Option<OpenText>);

#[derive(Debug)]
struct OpenText {
    /// Whether it is a message or a thought, as the protocol names it.
    kind: String,
    stream: RedactedStream,
}

impl TextPieces {
    /// What is certain once this line has arrived: the text before it, and the line itself without keys.
    pub(super) fn lines(&mut self, line: &AcpLine) -> Vec<AcpLine> {
        let Some(piece) = text_piece(line) else {
            return self.end().into_iter().chain([line.clone()]).collect();
        };
        let before =
            if self.0.as_ref().is_some_and(|open| open.kind != piece.kind) { self.end() } else { None };
        let open = self
            .0
            .get_or_insert_with(|| OpenText { kind: piece.kind.to_owned(), stream: redactor().stream() });
        let mut out = Vec::new();
        open.stream.push(piece.text.as_bytes(), &mut out);
        let certain = update(piece.kind, &out);
        before.into_iter().chain(certain).collect()
    }

    /// The rest of the message: no piece follows.
    fn end(&mut self) -> Option<AcpLine> {
        let mut open = self.0.take()?;
        let mut out = Vec::new();
        open.stream.finish(&mut out);
        update(&open.kind, &out)
    }
}

/// A piece of a message.
struct TextPiece<'l> {
    kind: &'l str,
    text: &'l str,
}

fn text_piece(line: &AcpLine) -> Option<TextPiece<'_>> {
    let AcpLine::Update { update } = line else { return None };
    let kind = update.get("sessionUpdate")?.as_str()?;
    let is_text = matches!(kind, "agent_message_chunk" | "agent_thought_chunk");
    let text = update.pointer("/content/text").and_then(Value::as_str).filter(|_| is_text)?;
    Some(TextPiece { kind, text })
}

fn update(kind: &str, text: &[u8]) -> Option<AcpLine> {
    let content = json!({ "type": "text", "text": String::from_utf8_lossy(text) });
    let update = json!({ "sessionUpdate": kind, "content": content });
    (!text.is_empty()).then_some(AcpLine::Update { update })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &str, text: &str) -> AcpLine {
        update(kind, text.as_bytes()).unwrap()
    }

    fn text_of(lines: &[AcpLine]) -> String {
        lines.iter().filter_map(text_piece).map(|piece| piece.text).collect()
    }

    #[test]
    fn a_key_in_two_pieces_is_replaced_wherever_it_is_cut() {
        let key = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let text = format!("it is {key}, é");
        let plan = AcpLine::Update { update: json!({ "sessionUpdate": "plan", "entries": [] }) };
        for at in (1..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (one, two) = text.split_at(at);
            let mut pieces = TextPieces::default();
            let mut lines = Vec::new();
            for line in [chunk("agent_message_chunk", one), chunk("agent_message_chunk", two), plan.clone()] {
                lines.extend(pieces.lines(&line));
            }
            assert_eq!(text_of(&lines), "it is [redacted], é", "{at}");
            assert_eq!(lines.last(), Some(&plan));
        }
    }

    #[test]
    fn messages_and_thoughts_are_not_joined() {
        let mut pieces = TextPieces::default();
        let mut lines = pieces.lines(&chunk("agent_thought_chunk", "thought gh"));
        lines.extend(pieces.lines(&chunk("agent_message_chunk", "p_message")));
        lines.extend(pieces.end());
        let mut kinds: Vec<&str> = lines.iter().filter_map(text_piece).map(|piece| piece.kind).collect();
        kinds.dedup();
        assert_eq!(kinds, ["agent_thought_chunk", "agent_message_chunk"]);
        assert_eq!(text_of(&lines), "thought ghp_message");
    }
}
