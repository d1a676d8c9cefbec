//! The parts of a document that a test runs: fenced blocks, code between backticks, lines of commands.

/// A fenced block of a document.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) language: String,
    pub(super) text: String,
}

impl Block {
    pub(super) fn is_commands(&self) -> bool {
        self.language == "sh"
    }

    /// Commands after `$ `, with their output.
    pub(super) fn is_transcript(&self) -> bool {
        self.language == "text" && self.text.starts_with("$ ")
    }
}

pub(super) fn blocks(document: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for line in document.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            is_open = !is_open;
            blocks.extend(is_open.then(|| Block { language: language.to_owned(), text: String::new() }));
        } else if is_open && let Some(block) = blocks.last_mut() {
            block.text.push_str(&format!("{line}\n"));
        }
    }
    blocks
}

/// The code between backticks, outside of fenced blocks.
pub(super) fn code_spans(document: &str) -> Vec<String> {
    let mut is_fenced = false;
    let mut prose = String::new();
    for line in document.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        if !is_fenced && !is_fence {
            prose.push_str(line.trim_start());
            prose.push(' ');
        }
        if line.is_empty() {
            prose.push('\n');
        }
    }
    let paragraphs = prose.lines();
    paragraphs.flat_map(|text| text.split('`').skip(1).step_by(2).map(str::to_owned)).collect()
}

/// The commands of a block: lines, with those that continue them and the text behind `<<`.
pub(super) fn logical_lines(text: &str) -> Vec<String> {
    let mut result: Vec<String> = Vec::new();
    let mut end: Option<String> = None;
    let mut is_continued = false;
    for line in text.lines() {
        match result.last_mut() {
            Some(last) if is_continued || end.is_some() => last.push_str(&format!("\n{line}")),
            _ if line.trim().is_empty() => continue,
            _ => result.push(line.to_owned()),
        }
        if end.as_deref() == Some(line) {
            end = None;
        } else if end.is_none() {
            end = line.split_once("<<'").and_then(|(_, rest)| Some(rest.split_once('\'')?.0.to_owned()));
        }
        is_continued = end.is_none() && (line.ends_with('|') || line.ends_with('\\'));
    }
    result
}

#[test]
fn blocks_spans_and_lines_are_found() {
    let text =
        "Type `runner\nloop`.\n\n```sh\na |\n  b\ncat <<'EOF'\n\nx\nEOF\nc\n```\n\n```text\n$ d\ne\n```\n";
    let found = blocks(text);
    assert!(found[0].is_commands() && found[1].is_transcript());
    assert_eq!(logical_lines(&found[0].text), ["a |\n  b", "cat <<'EOF'\n\nx\nEOF", "c"]);
    assert_eq!(code_spans(text), ["runner loop"]);
}
