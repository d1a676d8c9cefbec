//! Generated ids, for nodes that come without one.

use crate::model::id::NodeId;

/// The most bytes of a generated id, without a number at its end.
const BYTES_MAX: usize = 48;

/// A new id from a title: `log-in`, `log-in-2`.
pub fn fresh_id(title: &str, is_taken: impl Fn(&NodeId) -> bool) -> NodeId {
    first_free(&words(title, LetterCase::Lower), is_taken)
}

/// The same from the id that an item has elsewhere, if that has any valid characters, or else from its title.
pub(crate) fn fresh_id_of(name: Option<&str>, title: &str, is_taken: impl Fn(&NodeId) -> bool) -> NodeId {
    let named = name.map(|name| words(name, LetterCase::Kept)).filter(|name| !name.is_empty());
    first_free(&named.unwrap_or_else(|| words(title, LetterCase::Lower)), is_taken)
}

/// The words of a title in lower case, joined by dashes; empty if none of them can be used.
pub(crate) fn slug(title: &str) -> String {
    words(title, LetterCase::Lower)
}

fn first_free(base: &str, is_taken: impl Fn(&NodeId) -> bool) -> NodeId {
    let base = if base.is_empty() { "node" } else { base };
    let ids = (1_u32..).map(|nth| if nth == 1 { base.to_owned() } else { format!("{base}-{nth}") });
    let mut ids = ids.filter_map(|id| NodeId::new(id).ok());
    ids.find(|id| !is_taken(id)).unwrap_or_else(NodeId::root)
}

/// What happens to the letters of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LetterCase {
    /// For titles: all are lower case.
    Lower,
    /// For ids: they are kept, and so are dots and underscores.
    Kept,
}

/// The valid characters of a text, its words joined by dashes.
fn words(text: &str, letters: LetterCase) -> String {
    let mut id = String::new();
    for letter in text.chars() {
        let is_kept = letters == LetterCase::Kept && matches!(letter, '.' | '_');
        if letter.is_ascii_alphanumeric() || is_kept {
            id.push(if letters == LetterCase::Lower { letter.to_ascii_lowercase() } else { letter });
        } else if !id.is_empty() && !id.ends_with('-') && letter != '\'' {
            id.push('-');
        }
    }
    if let Some(head) = id.get(..=BYTES_MAX) {
        let cut = head.rfind('-').filter(|at| *at > BYTES_MAX / 2);
        id.truncate(cut.unwrap_or(BYTES_MAX));
    }
    id.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_from_titles_are_new() {
        let id =
            |title: &str| fresh_id(title, |id| ["log-in", "log-in-2"].contains(&id.as_str())).to_string();
        assert_eq!(id("Read  the File!"), "read-the-file");
        assert_eq!(id("Log in"), "log-in-3");
        assert_eq!(id("Don't stop: **now**"), "dont-stop-now");
        assert_eq!(id("日本語"), "node");
        assert_eq!(id(".."), "node");
        assert_eq!(id(&"word ".repeat(30)).len(), 44, "cut between two words");
        assert_eq!(id(&"w".repeat(60)).len(), 48);
        assert_eq!(id(&format!("{} {}", "w".repeat(24), "v".repeat(60))).len(), 48, "too early for a cut");
        assert_eq!(id(&format!("{} {}", "w".repeat(25), "v".repeat(60))).len(), 25);
        assert_eq!(id(&format!("{} v", "w".repeat(48))).len(), 48);
    }

    #[test]
    fn ids_from_names_keep_what_is_valid() {
        let id = |name: &str| fresh_id_of(Some(name), "The title", |id| id.as_str() == "1.2").to_string();
        assert_eq!(id("US-001/a_b"), "US-001-a_b");
        assert_eq!(id("1.2"), "1.2-2");
        assert_eq!(id("/"), "the-title");
        assert_eq!(fresh_id_of(None, "The title", |_| false).as_str(), "the-title");
    }
}
