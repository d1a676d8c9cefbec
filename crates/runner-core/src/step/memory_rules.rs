//! The rule for memory files: agents append. What was there before stays, whatever a session writes.

/// What a session did to a memory file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryChange {
    /// It only added text at the end.
    Appended,
    /// It changed earlier text, or added text before it. This is the earlier text with the new lines at its end.
    Merged(Vec<u8>),
    /// It removed earlier text: what it wrote cannot be told from what it changed.
    Rejected,
}

/// Compares a memory file before and after a session.
pub fn memory_change(before: &[u8], after: &[u8]) -> MemoryChange {
    if after.starts_with(before) {
        return MemoryChange::Appended;
    }
    match added_lines(before, after) {
        Some(added) => {
            let mut merged = before.to_vec();
            if !merged.is_empty() && !merged.ends_with(b"\n") {
                merged.push(b'\n');
            }
            merged.extend(added);
            MemoryChange::Merged(merged)
        }
        None => MemoryChange::Rejected,
    }
}

/// The lines that are new, if every earlier line is still there, in its order.
fn added_lines(before: &[u8], after: &[u8]) -> Option<Vec<u8>> {
    let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
        let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        text.split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec())
            .collect()
    };
    let mut old = lines(before).into_iter().peekable();
    let mut added = Vec::new();
    for line in lines(after) {
        if old.next_if_eq(&line).is_none() {
            added.extend(line);
            added.push(b'\n');
        }
    }
    old.peek().is_none().then_some(added)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_at_the_end_is_appended() {
        for (before, after) in [("", "x"), ("a\n", "a\n"), ("a\n", "a\nb\n"), ("a", "ab")] {
            assert_eq!(memory_change(before.as_bytes(), after.as_bytes()), MemoryChange::Appended, "{after}");
        }
    }

    #[test]
    fn lines_that_were_added_elsewhere_move_to_the_end() {
        for (before, after, merged) in [
            ("# T\n\nold\n", "# T\n\nnew\n\nold\n", "# T\n\nold\nnew\n\n"),
            ("a\nb\n", "a\nx\nb\ny\n", "a\nb\nx\ny\n"),
            ("a\nb\n", "a\r\nb\r\nc\r\n", "a\nb\nc\n"),
            ("a\nb\n", "a\nb", "a\nb\n"),
        ] {
            let expected = MemoryChange::Merged(merged.as_bytes().to_vec());
            assert_eq!(memory_change(before.as_bytes(), after.as_bytes()), expected, "{after}");
        }
    }

    #[test]
    fn a_file_that_lost_text_is_rejected() {
        for (before, after) in
            [("a\nb\n", ""), ("a\nb\n", "a\n"), ("a\nb\n", "b\na\n"), ("never\n", "always\n")]
        {
            assert_eq!(memory_change(before.as_bytes(), after.as_bytes()), MemoryChange::Rejected, "{after}");
        }
    }
}
