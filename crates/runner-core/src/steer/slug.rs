//! Ids for nodes that were given none.

use crate::id::NodeId;

/// How long an id that is made from a title may be, without a number behind it.
const SLUG_BYTES_MAX: usize = 40;

/// An id made from a title, which no node has: `log-in`, `log-in-2`.
pub fn fresh_id(title: &str, is_taken: impl Fn(&NodeId) -> bool) -> NodeId {
    let slug = slug(title);
    let numbered = (2_u32..).map(|nth| format!("{slug}-{nth}"));
    let ids = std::iter::once(slug.clone()).chain(numbered).filter_map(|id| NodeId::new(id).ok());
    ids.into_iter().find(|id| !is_taken(id)).unwrap_or_else(NodeId::root)
}

/// The letters and digits of a title, the words joined by a dash.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for letter in title.chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(SLUG_BYTES_MAX);
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "node".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_of_the_titles_letters_and_is_new() {
        let id =
            |title: &str| fresh_id(title, |id| ["log-in", "log-in-2"].contains(&id.as_str())).to_string();
        assert_eq!(id("Read  the File!"), "read-the-file");
        assert_eq!(id("Log in"), "log-in-3");
        assert_eq!(id("日本語"), "node");
        assert_eq!(id("..").as_str(), "node");
        assert_eq!(id(&"long words ".repeat(20)).len(), 40);
    }
}
