//! The parts of git's configuration that matter here, read once: the commit identity, and the programs that the
//! repository's own configuration would make git run.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::child_io;
use super::command::{PINNED, configure, hardened};
use super::lossy;
use crate::error::Error;
use crate::fs::atomic::{self, FileStamp};

/// The commit identity if none is configured.
const DEFAULT_IDENTITY: (&str, &str) = ("runner", "runner@localhost");

/// Repository extensions that do not change how git stores an object.
const KNOWN_EXTENSIONS: [&str; 7] = [
    "noop",
    "objectformat",
    "partialclone",
    "preciousobjects",
    "refstorage",
    "relativeworktrees",
    "worktreeconfig",
];

#[derive(Debug, Default)]
pub(super) struct GitSettings {
    name: Option<String>,
    email: Option<String>,
    /// Filters that the repository's own configuration defines, and whether they may run.
    filters: BTreeMap<String, AllowedFilter>,
    /// Hooks that the configuration defines: turned off by name, because newer versions of git run them without a file.
    hooks: Vec<String>,
    has_unknown_extension: bool,
    /// The names in the last call of [`Self::allow_filters`].
    allowed: Vec<String>,
    /// The repository's configuration files when they were read.
    stamps: ConfigStamps,
    /// Whether a remote may have objects that this clone lacks.
    has_promisor: bool,
    /// Whether only a part of the files is checked out.
    is_sparse: bool,
}

/// The stamps of the repository's configuration and of this work tree's own.
pub(super) type ConfigStamps = [Option<FileStamp>; 2];

pub(super) fn file_stamps(git_dir: &Path, common_dir: &Path) -> ConfigStamps {
    [atomic::stamp(&common_dir.join("config")), atomic::stamp(&git_dir.join("config.worktree"))]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AllowedFilter {
    Yes,
    No,
}

impl GitSettings {
    pub(super) fn read(
        program: &Path,
        root: &Path,
        git_dir: &Path,
        common_dir: &Path,
    ) -> Result<Self, Error> {
        // Taken before git reads the files: a change in between is noticed by the next comparison.
        let stamps = file_stamps(git_dir, common_dir);
        let args = ["config", "--list", "-z", "--show-scope", "--includes"];
        let mut command = hardened(program, root);
        configure(&mut command, PINNED.into_iter());
        command.args(args);
        let output = child_io::run(&mut command, None, usize::MAX).map_err(Error::io("run", program))?;
        if !output.status.success() {
            return Err(Error::Git { command: args.join(" "), stderr: lossy(&output.stderr) });
        }
        Ok(Self { stamps, ..Self::parse(&output.stdout) })
    }

    /// Parses pairs of a scope and `key\nvalue`, each terminated by NUL.
    fn parse(listing: &[u8]) -> Self {
        let mut settings = Self::default();
        let mut parts = listing.split(|byte| *byte == 0);
        while let (Some(scope), Some(entry)) = (parts.next(), parts.next()) {
            let entry = String::from_utf8_lossy(entry);
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, ""));
            let is_local = matches!(scope, b"local" | b"worktree");
            match key {
                "user.name" => settings.name = Some(value.to_owned()),
                "user.email" => settings.email = Some(value.to_owned()),
                "core.sparsecheckout" => settings.is_sparse = is_true(value),
                _ if key.starts_with("remote.") && key.ends_with(".promisor") => {
                    settings.has_promisor |= is_true(value);
                }
                _ if let Some(name) = key.strip_prefix("extensions.") => {
                    settings.has_promisor |= name == "partialclone";
                    settings.has_unknown_extension |= is_local && !KNOWN_EXTENSIONS.contains(&name);
                }
                _ => settings.note_program(key, is_local),
            }
        }
        settings
    }

    fn note_program(&mut self, key: &str, is_local: bool) {
        let Some((section, rest)) = key.split_once('.') else { return };
        let Some((name, _)) = rest.rsplit_once('.') else { return };
        match section {
            "filter" if is_local => {
                self.filters.insert(name.to_owned(), AllowedFilter::No);
            }
            "hook" => self.hooks.push(name.to_owned()),
            _ => {}
        }
    }

    /// The configured author as `Name <email>`, if both are set.
    pub(super) fn author(&self) -> Option<String> {
        let name = self.name.as_ref().filter(|name| !name.is_empty())?;
        let email = self.email.as_ref().filter(|email| !email.is_empty())?;
        Some(format!("{name} <{email}>"))
    }

    /// Whether the repository may store objects in a format that only its git knows.
    pub(super) fn has_unknown_extension(&self) -> bool {
        self.has_unknown_extension
    }

    /// Whether this is a partial clone, which lacks objects by design.
    pub(super) fn has_promisor(&self) -> bool {
        self.has_promisor
    }

    /// Whether this is a sparse checkout.
    pub(super) fn is_sparse(&self) -> bool {
        self.is_sparse
    }

    pub(super) fn defines_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    pub(super) fn stamps(&self) -> ConfigStamps {
        self.stamps
    }

    /// Allows the filters that another reading of the configuration allowed.
    pub(super) fn with_allowed_of(mut self, other: &Self) -> Self {
        self.allow_filters(&other.allowed);
        self
    }

    pub(super) fn allow_filters(&mut self, names: &[String]) {
        self.allowed = names.to_vec();
        for (name, allowed) in &mut self.filters {
            if names.contains(name) {
                *allowed = AllowedFilter::Yes;
            }
        }
    }

    pub(super) fn forbidden_filters(&self) -> impl Iterator<Item = &str> {
        let forbidden = self.filters.iter().filter(|(_, allowed)| **allowed == AllowedFilter::No);
        forbidden.map(|(name, _)| name.as_str())
    }

    /// Applies the pinned settings and the commit identity, and turns configured programs off.
    pub(super) fn apply(&self, command: &mut Command) {
        let mut disabled: Vec<(String, &str)> = Vec::new();
        for name in self.forbidden_filters() {
            disabled.extend(["clean", "smudge", "process"].map(|key| (format!("filter.{name}.{key}"), "")));
            disabled.push((format!("filter.{name}.required"), "false"));
        }
        for name in &self.hooks {
            disabled.push((format!("hook.{name}.enabled"), "false"));
        }
        let disabled = disabled.iter().map(|(key, value)| (key.as_str(), *value));
        configure(command, PINNED.into_iter().chain(disabled));
        self.apply_identity(command);
    }

    fn apply_identity(&self, command: &mut Command) {
        for role in ROLES {
            for (what, value) in [("NAME", self.name(role)), ("EMAIL", self.email(role))] {
                command.env(format!("GIT_{role}_{what}"), value);
            }
        }
    }

    /// The author and the committer as a commit object has them.
    pub(super) fn author_and_committer(&self) -> [String; 2] {
        ROLES.map(|role| format!("{} <{}>", tidy(&self.name(role)), tidy(&self.email(role))))
    }

    fn name(&self, role: &str) -> String {
        identity_value(&format!("GIT_{role}_NAME"), self.name.as_ref(), DEFAULT_IDENTITY.0)
    }

    fn email(&self, role: &str) -> String {
        identity_value(&format!("GIT_{role}_EMAIL"), self.email.as_ref(), DEFAULT_IDENTITY.1)
    }
}

/// A boolean as git reads it; a key without a value is true.
fn is_true(value: &str) -> bool {
    !["false", "no", "off", "0"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

const ROLES: [&str; 2] = ["AUTHOR", "COMMITTER"];

/// From the environment, else from the configuration, else the default. A value that git would strip to nothing is
/// skipped.
fn identity_value(variable: &str, configured: Option<&String>, default: &str) -> String {
    let mut values = std::env::var(variable).ok().into_iter().chain(configured.cloned());
    values.find(|value| !tidy(value).is_empty()).unwrap_or_else(|| default.to_owned())
}

/// A name or an address as git writes it into a commit: without characters that would end it early, and without
/// surrounding punctuation.
fn tidy(text: &str) -> String {
    let is_crud = |letter: char| letter <= ' ' || ".,:;<>\"\\'".contains(letter);
    text.trim_matches(is_crud).chars().filter(|letter| !"\n<>".contains(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tidied_as_git_does() {
        let cases =
            [("Ann B", "Ann B"), (" \"A. N.\" ", "A. N"), ("a<b>\nc", "abc"), ("<>.", ""), ("É'", "É")];
        for (raw, tidied) in cases {
            assert_eq!(tidy(raw), tidied, "{raw}");
        }
    }

    #[test]
    fn a_partial_clone_is_recognised_by_its_remote_or_its_extension() {
        for (listing, expected) in [
            (b"local\0remote.o.promisor\ntrue\0".as_slice(), true),
            (b"local\0remote.o.promisor\0", true),
            (b"local\0extensions.partialclone\no\0", true),
            (b"local\0remote.o.promisor\nfalse\0local\0remote.o.url\nx\0", false),
        ] {
            assert_eq!(GitSettings::parse(listing).has_promisor(), expected, "{}", lossy(listing));
        }
    }

    #[test]
    fn the_last_identity_wins_and_local_filters_are_recorded() {
        let listing = b"global\0user.name\nA\0local\0user.name\nB\0global\0filter.lfs.clean\nx\0local\0filter.a.b.clean\ny\0\
            local\0core.bare\0worktree\0filter.w.process\nz\0global\0hook.h.command\nq\0";
        let mut settings = GitSettings::parse(listing);
        assert_eq!(settings.name.as_deref(), Some("B"));
        assert_eq!(settings.author(), None);
        assert!(settings.forbidden_filters().eq(["a.b", "w"]));
        assert_eq!(settings.hooks, ["h"]);
        assert!(!settings.has_promisor());
        settings.allow_filters(&["w".to_owned(), "other".to_owned()]);
        assert!(settings.forbidden_filters().eq(["a.b"]));
    }
}
