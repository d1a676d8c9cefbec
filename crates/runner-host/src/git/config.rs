//! The parts of git's configuration that matter here, read once: the commit identity, and the programs that the
//! repository's own configuration would make git run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use super::child_io;
use super::command::{PINNED, configure, hardened};
use super::{lossy, path_of};
use crate::error::Error;
use crate::fs::atomic::FileStamp;

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
    /// The configuration files when they were read.
    stamps: ConfigStamps,
    included: IncludedFiles,
    /// Whether a remote may have objects that this clone lacks.
    has_promisor: bool,
    /// Whether only a part of the files is checked out.
    is_sparse: bool,
}

/// The files that the configuration includes.
#[derive(Debug, Default)]
struct IncludedFiles {
    /// Whether or not they exist.
    paths: BTreeSet<PathBuf>,
    /// Whether one is included on a condition that can change while the files stay the same.
    is_conditional: bool,
}

/// The stamps of the repository's configuration, of this work tree's own, and of the files that they include.
pub(super) type ConfigStamps = Vec<Option<FileStamp>>;

/// Where a repository is.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConfigPlaces<'a> {
    pub(super) root: &'a Path,
    pub(super) git_dir: &'a Path,
    pub(super) common_dir: &'a Path,
}

impl ConfigPlaces<'_> {
    fn stamps(self, included: &BTreeSet<PathBuf>) -> ConfigStamps {
        let own = [self.common_dir.join("config"), self.git_dir.join("config.worktree")];
        // Git follows links.
        let stamp = |path: &PathBuf| fs::metadata(path).ok().map(|found| FileStamp::of(&found));
        own.iter().chain(included).map(stamp).collect()
    }

    /// The name of a file inside the work tree, where agents write; none for any other file.
    fn in_work_tree(self, path: &Path) -> Option<String> {
        let path = normalized(&self.root.join(path));
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
        let resolved = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
        let inside = [Some(path), resolved].into_iter().flatten().find_map(|path| {
            let name = path.strip_prefix(self.root).ok()?;
            Some(name.to_str()?.to_owned())
        });
        inside.filter(|name| {
            !name.is_empty()
                && Path::new(name).components().next() != Some(Component::Normal(".git".as_ref()))
        })
    }
}

/// A path without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(component),
        }
    }
    normal
}

/// The path in `include.path`: relative to the file that has it, or to the home folder.
fn included_path(origin: &Path, value: &str) -> PathBuf {
    match value.strip_prefix("~/").zip(std::env::var_os("HOME")) {
        Some((rest, home)) => Path::new(&home).join(rest),
        None => origin.parent().unwrap_or(Path::new("")).join(value),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AllowedFilter {
    Yes,
    No,
}

impl GitSettings {
    pub(super) fn read(program: &Path, places: ConfigPlaces<'_>) -> Result<Self, Error> {
        // Taken before git reads the files: a change in between is noticed by the next comparison.
        let mut stamps = places.stamps(&BTreeSet::new());
        let args = ["config", "--list", "-z", "--show-scope", "--show-origin", "--includes"];
        let mut command = hardened(program, places.root);
        configure(&mut command, PINNED.into_iter());
        command.args(args);
        let output = child_io::run(&mut command, None, usize::MAX).map_err(Error::io("run", program))?;
        if !output.status.success() {
            return Err(Error::Git { command: args.join(" "), stderr: lossy(&output.stderr) });
        }
        let settings = Self::parse(&output.stdout, places);
        let own = stamps.len();
        stamps.extend(places.stamps(&settings.included.paths).into_iter().skip(own));
        Ok(Self { stamps, ..settings })
    }

    /// Parses triples of a scope, an origin and `key\nvalue`, each terminated by NUL.
    fn parse(listing: &[u8], places: ConfigPlaces<'_>) -> Self {
        let mut settings = Self::default();
        let mut parts = listing.split(|byte| *byte == 0);
        while let (Some(scope), Some(origin), Some(entry)) = (parts.next(), parts.next(), parts.next()) {
            let entry = String::from_utf8_lossy(entry);
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, ""));
            let origin = origin.strip_prefix(b"file:").map(|path| places.root.join(path_of(path)));
            let is_own = matches!(scope, b"local" | b"worktree");
            // An agent can write to a file of the work tree, whichever configuration includes it.
            let is_local = is_own || origin.as_ref().is_some_and(|path| places.in_work_tree(path).is_some());
            match key {
                "user.name" => settings.name = Some(value.to_owned()),
                "user.email" => settings.email = Some(value.to_owned()),
                "core.sparsecheckout" => settings.is_sparse = is_true(value),
                "include.path" => settings.note_include(origin.as_deref(), value),
                _ if key.starts_with("includeif.") => {
                    settings.included.is_conditional |=
                        key.starts_with("includeif.onbranch:") || key.starts_with("includeif.hasconfig:");
                    settings.note_include(origin.as_deref(), value);
                }
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

    fn note_include(&mut self, origin: Option<&Path>, value: &str) {
        self.included.paths.extend(origin.map(|origin| included_path(origin, value)));
    }

    /// Whether the configuration files are as they were when they were read.
    pub(super) fn is_current(&self, places: ConfigPlaces<'_>) -> bool {
        !self.included.is_conditional && places.stamps(&self.included.paths) == self.stamps
    }

    /// The names of included files inside the work tree.
    pub(super) fn included_in_work_tree(&self, places: ConfigPlaces<'_>) -> Vec<String> {
        self.included.paths.iter().filter_map(|path| places.in_work_tree(path)).collect()
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
            (b"local\0file:.git/config\0remote.o.promisor\ntrue\0".as_slice(), true),
            (b"local\0file:.git/config\0remote.o.promisor\0", true),
            (b"local\0file:.git/config\0extensions.partialclone\no\0", true),
            (b"local\0f\0remote.o.promisor\nfalse\0local\0f\0remote.o.url\nx\0", false),
        ] {
            assert_eq!(parsed(listing).has_promisor(), expected, "{}", lossy(listing));
        }
    }

    fn places() -> ConfigPlaces<'static> {
        let [root, git_dir] = ["/no/such/root", "/no/such/root/.git"].map(Path::new);
        ConfigPlaces { root, git_dir, common_dir: git_dir }
    }

    fn parsed(listing: &[u8]) -> GitSettings {
        GitSettings::parse(listing, places())
    }

    #[test]
    fn filters_of_included_files_in_the_work_tree_are_recorded_whatever_their_scope() {
        let listing = b"global\0file:/home/u/.gitconfig\0include.path\n/no/such/root/shared\0\
            global\0file:/no/such/root/shared\0filter.a.clean\nx\0global\0file:/elsewhere\0filter.b.clean\nx\0\
            local\0file:.git/config\0include.path\n../.gitconfig\0local\0file:.git/config\0core.sparsecheckout\0";
        let settings = parsed(listing);
        assert!(settings.forbidden_filters().eq(["a"]));
        assert_eq!(settings.included_in_work_tree(places()), [".gitconfig", "shared"]);
        assert!(settings.is_sparse() && !settings.included.is_conditional);
    }

    #[test]
    fn the_last_identity_wins_and_local_filters_are_recorded() {
        let listing = b"global\0g\0user.name\nA\0local\0f\0user.name\nB\0global\0g\0filter.lfs.clean\nx\0\
            local\0f\0filter.a.b.clean\ny\0local\0f\0core.bare\0worktree\0f\0filter.w.process\nz\0\
            global\0g\0hook.h.command\nq\0";
        let mut settings = parsed(listing);
        assert_eq!(settings.name.as_deref(), Some("B"));
        assert_eq!(settings.author(), None);
        assert!(settings.forbidden_filters().eq(["a.b", "w"]));
        assert_eq!(settings.hooks, ["h"]);
        assert!(!settings.has_promisor());
        settings.allow_filters(&["w".to_owned(), "other".to_owned()]);
        assert!(settings.forbidden_filters().eq(["a.b"]));
    }
}
