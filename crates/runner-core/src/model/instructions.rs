//! The repository's own instructions for agents (AGENTS.md, CLAUDE.md), as `runner start` pinned them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::guard_files::RepoFiles;
use crate::model::digest::Sha256;
use crate::redact::Redactor;
use crate::text::head;

/// The instructions that every prompt of a run contains. The file itself belongs to the project, and an agent may change it:
/// that takes effect with the next `runner start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PinnedInstructions {
    /// The file, relative to the repository.
    pub file: String,
    /// The digest of the whole file.
    pub sha256: Sha256,
    /// Its text; a long one is cut.
    pub text: String,
}

/// The most bytes of a file that are pinned. A prompt has less room by default.
const TEXT_BYTES_MAX: usize = 64 << 10;

impl PinnedInstructions {
    /// The first of these files that exists and is not empty.
    pub fn of(files: &[String], repo: &dyn RepoFiles) -> Option<Self> {
        files.iter().find_map(|file| {
            let bytes = repo.read(file)?;
            // Only the forms of keys: what is pinned must follow from the file, on every machine.
            let forms = Redactor::with_keys([("", ""); 0]);
            let text = forms.redact_text(&String::from_utf8_lossy(&bytes));
            let text = head(text.trim(), TEXT_BYTES_MAX).to_owned();
            let pinned = Self { file: file.clone(), sha256: Sha256::of(&bytes), text };
            (!pinned.text.is_empty()).then_some(pinned)
        })
    }

    #[cfg(test)]
    pub(crate) fn sample() -> Self {
        Self { file: "AGENTS.md".to_owned(), sha256: Sha256::of(b"x"), text: "x".to_owned() }
    }

    /// The file and the beginning of its digest, for people.
    pub fn label(&self) -> String {
        let digest: String = self.sha256.to_string().chars().take(12).collect();
        format!("{} (sha256 {digest})", self.file)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_first_file_with_text_counts() {
        let names = ["AGENTS.md", "CLAUDE.md"].map(str::to_owned);
        let pinned = |files: &[(&str, &str)]| {
            let files: BTreeMap<String, Vec<u8>> =
                files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
            PinnedInstructions::of(&names, &files).map(|found| (found.file, found.text))
        };
        let of = |file: &str, text: &str| Some((file.to_owned(), text.to_owned()));
        assert_eq!(pinned(&[("CLAUDE.md", "b"), ("AGENTS.md", " a\n")]), of("AGENTS.md", "a"));
        assert_eq!(pinned(&[("CLAUDE.md", "b"), ("AGENTS.md", "\n")]), of("CLAUDE.md", "b"));
        assert_eq!(pinned(&[("README.md", "b")]), None);
    }

    #[test]
    fn a_key_in_the_file_is_not_pinned() {
        let key = format!("gh{}", "p_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let files = BTreeMap::from([("A".to_owned(), format!("Use {key}.\n").into_bytes())]);
        let pinned = PinnedInstructions::of(&["A".to_owned()], &files).unwrap();
        assert_eq!(pinned.text, "Use [redacted].");
    }

    #[test]
    fn a_long_file_is_cut_and_its_digest_is_of_all_of_it() {
        let long = vec![b'x'; TEXT_BYTES_MAX + 1];
        let files = BTreeMap::from([("A".to_owned(), long.clone())]);
        let pinned = PinnedInstructions::of(&["A".to_owned()], &files).unwrap();
        assert_eq!((pinned.text.len(), pinned.sha256), (TEXT_BYTES_MAX, Sha256::of(&long)));
    }
}
