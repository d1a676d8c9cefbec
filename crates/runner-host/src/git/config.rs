//! What the configuration says that concerns the runner, read once: who commits, and which programs the
//! repository's own configuration would have git run.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::{PINNED, configure, hardened, lossy};
use crate::error::Error;

/// Whose name is on a commit where none is configured.
const NO_NAME: (&str, &str) = ("runner", "runner@localhost");

/// Extensions of a repository that leave it open how git stores an object.
const EXTENSIONS: [&str; 7] = [
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
    /// Hooks that a configuration defines: switched off by name, since newer gits run them without a file.
    hooks: Vec<String>,
    has_unknown_extension: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AllowedFilter {
    Yes,
    No,
}

impl GitSettings {
    pub(super) fn read(program: &Path, root: &Path) -> Result<Self, Error> {
        let args = ["config", "--list", "-z", "--show-scope", "--includes"];
        let mut command = hardened(program, root);
        configure(&mut command, PINNED.into_iter());
        let output = command.args(args).output().map_err(Error::io("run", program))?;
        if !output.status.success() {
            return Err(Error::Git { command: args.join(" "), stderr: lossy(&output.stderr) });
        }
        Ok(Self::parse(&output.stdout))
    }

    /// Pairs of a scope and a `key\nvalue`, each ended by NUL.
    fn parse(listing: &[u8]) -> Self {
        let mut settings = Self::default();
        let mut parts = listing.split(|byte| *byte == 0);
        while let (Some(scope), Some(entry)) = (parts.next(), parts.next()) {
            let entry = String::from_utf8_lossy(entry);
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, ""));
            let is_own = matches!(scope, b"local" | b"worktree");
            match key {
                "user.name" => settings.name = Some(value.to_owned()),
                "user.email" => settings.email = Some(value.to_owned()),
                _ if let Some(name) = key.strip_prefix("extensions.") => {
                    settings.has_unknown_extension |= is_own && !EXTENSIONS.contains(&name);
                }
                _ => settings.note_program(key, is_own),
            }
        }
        settings
    }

    fn note_program(&mut self, key: &str, is_own: bool) {
        let Some((section, rest)) = key.split_once('.') else { return };
        let Some((name, _)) = rest.rsplit_once('.') else { return };
        match section {
            "filter" if is_own => {
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

    /// Whether the repository may keep its objects in a way that only its git knows.
    pub(super) fn has_unknown_extension(&self) -> bool {
        self.has_unknown_extension
    }

    pub(super) fn allow_filters(&mut self, names: &[String]) {
        for (name, allowed) in &mut self.filters {
            if names.contains(name) {
                *allowed = AllowedFilter::Yes;
            }
        }
    }

    pub(super) fn forbidden_filters(&self) -> Vec<&str> {
        let forbidden = self.filters.iter().filter(|(_, allowed)| **allowed == AllowedFilter::No);
        forbidden.map(|(name, _)| name.as_str()).collect()
    }

    /// Gives a command the pinned settings, an identity, and nothing to run.
    pub(super) fn apply(&self, command: &mut Command) {
        let mut switched_off: Vec<(String, &str)> = Vec::new();
        for name in self.forbidden_filters() {
            let no_program = ["clean", "smudge", "process"].map(|key| (format!("filter.{name}.{key}"), ""));
            switched_off.extend(no_program);
            switched_off.push((format!("filter.{name}.required"), "false"));
        }
        for name in &self.hooks {
            switched_off.push((format!("hook.{name}.enabled"), "false"));
        }
        let switched_off = switched_off.iter().map(|(key, value)| (key.as_str(), *value));
        configure(command, PINNED.into_iter().chain(switched_off));
        self.apply_identity(command);
    }

    /// Names the author and the committer.
    fn apply_identity(&self, command: &mut Command) {
        for role in ROLES {
            for (what, value) in [("NAME", self.name(role)), ("EMAIL", self.email(role))] {
                command.env(format!("GIT_{role}_{what}"), value);
            }
        }
    }

    /// The author and the committer as they stand in a commit.
    pub(super) fn people(&self) -> [String; 2] {
        ROLES.map(|role| format!("{} <{}>", tidy(&self.name(role)), tidy(&self.email(role))))
    }

    fn name(&self, role: &str) -> String {
        given(&format!("GIT_{role}_NAME"), self.name.as_ref(), NO_NAME.0)
    }

    fn email(&self, role: &str) -> String {
        given(&format!("GIT_{role}_EMAIL"), self.email.as_ref(), NO_NAME.1)
    }
}

/// Whose names a commit has.
const ROLES: [&str; 2] = ["AUTHOR", "COMMITTER"];

/// From the environment, else from the configuration, else by default. What is nothing once it is tidy counts as
/// nothing.
fn given(variable: &str, configured: Option<&String>, otherwise: &str) -> String {
    let found = std::env::var(variable).ok().into_iter().chain(configured.cloned());
    found.into_iter().find(|value| !tidy(value).is_empty()).unwrap_or_else(|| otherwise.to_owned())
}

/// A name or an address as git writes it into a commit: without what would end it early, and without punctuation around
/// it.
fn tidy(text: &str) -> String {
    let is_crud = |letter: char| letter <= ' ' || ".,:;<>\"\\'".contains(letter);
    text.trim_matches(is_crud).chars().filter(|letter| !"\n<>".contains(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_tidied_as_git_does() {
        let cases =
            [("Ann B", "Ann B"), (" \"A. N.\" ", "A. N"), ("a<b>\nc", "abc"), ("<>.", ""), ("É'", "É")];
        for (given, tidied) in cases {
            assert_eq!(tidy(given), tidied, "{given}");
        }
    }

    #[test]
    fn the_last_identity_counts_and_own_filters_are_noted() {
        let listing = b"global\0user.name\nA\0local\0user.name\nB\0global\0filter.lfs.clean\nx\0local\0filter.a.b.clean\ny\0\
            local\0core.bare\0worktree\0filter.w.process\nz\0global\0hook.h.command\nq\0";
        let mut settings = GitSettings::parse(listing);
        assert_eq!(settings.name.as_deref(), Some("B"));
        assert_eq!(settings.author(), None);
        assert_eq!(settings.forbidden_filters(), ["a.b", "w"]);
        assert_eq!(settings.hooks, ["h"]);
        settings.allow_filters(&["w".to_owned(), "other".to_owned()]);
        assert_eq!(settings.forbidden_filters(), ["a.b"]);
    }
}
