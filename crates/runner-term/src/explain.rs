//! What each error code and stop reason means and what to do about it, for `runner explain` and the reference pages.

const ERRORS: &str = include_str!("explain/errors.md");
const STOP_REASONS: &str = include_str!("explain/stop_reasons.md");

/// The page of one code, as Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePage {
    pub code: &'static str,
    pub text: &'static str,
}

/// The error codes, in alphabetical order.
pub fn error_pages() -> Vec<CodePage> {
    pages(ERRORS)
}

/// The reasons why a loop stops.
pub fn stop_reason_pages() -> Vec<CodePage> {
    pages(STOP_REASONS)
}

/// Splits a document at its headings of the second level.
fn pages(document: &'static str) -> Vec<CodePage> {
    let sections = document.strip_prefix("## ").into_iter().flat_map(|rest| rest.split("\n## "));
    sections
        .filter_map(|section| section.split_once('\n'))
        .map(|(code, text)| CodePage { code, text: text.trim() })
        .collect()
}

/// The reference page of all error codes and stop reasons, as Markdown.
pub fn reference() -> String {
    format!(
        "# Error codes and stop reasons\n\n`runner explain CODE` prints the same. With `--json`, an error has its code in `code`.\n\nGenerated \
         from the code: `just generate` writes it.\n\n# Errors\n\n{ERRORS}\n# Stop reasons\n\nWhy a loop stopped: `reason` in `runner status \
         --json`.\n\n{STOP_REASONS}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_page_with_text() {
        for pages in [error_pages(), stop_reason_pages()] {
            for page in &pages {
                assert!(!page.text.is_empty(), "{}", page.code);
                assert_eq!(pages.iter().filter(|other| other.code == page.code).count(), 1, "{}", page.code);
            }
        }
    }

    #[test]
    fn errors_are_in_alphabetical_order() {
        assert!(error_pages().is_sorted_by_key(|page| page.code));
    }
}
