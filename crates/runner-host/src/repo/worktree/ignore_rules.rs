//! Files that were ignored before a session stay ignored, although the session changed an ignore file.
//!
//! Otherwise a removed line of `.gitignore` would put a user's `.env` into the commit, and the next checkout of another branch
//! would delete it. Only if an ignore file changed, the new untracked files are matched with the rules of the base commit.
//! The rules that ignored a file which existed before the session are appended again; everything else of the agent's edit
//! counts.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use runner_core::step::FileAction;

use super::aside::{AsideFolder, AsideItem};
use super::permissions::FolderAccess;
use super::scan::changed_files;
use super::user_files;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::{ChangedPaths, Git, IgnoredPath, PathChange, PathSet, path_of};

const IGNORE_FILE: &[u8] = b".gitignore";
const IGNORE_FILE_BYTES_MAX: u64 = 16 << 20;

/// Which rule keeps a file ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleForm {
    /// The rule of the base commit, in the file that had it.
    Base,
    /// The file's own name, in its own folder: no other rule overrules that one.
    Literal,
}

/// The rules to append to one ignore file, each with the files that it is for.
type AppendedRules = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<Vec<u8>>>>;

/// Restores the ignore rules for files that existed before the session, and returns the paths that differ from the index then.
pub(super) fn keep_ignored(
    git: &Git,
    index: &Path,
    aside: &mut AsideFolder<'_>,
    mut paths: ChangedPaths,
) -> Result<ChangedPaths, Error> {
    if !paths.keys().any(|path| name_of(path) == IGNORE_FILE) {
        return Ok(paths);
    }
    let known = user_files::kept_paths(git)?;
    let began = session_began(git);
    for form in [RuleForm::Base, RuleForm::Literal] {
        let ignored = exposed_files(git, index, &paths, &known, began)?;
        if ignored.is_empty() {
            return Ok(paths);
        }
        append_rules(git, aside, rules(&ignored, form), form)?;
        paths = changed_files(git, index, aside)?;
    }
    // Where no rule could be written, the files are at least not committed.
    let exposed = exposed_files(git, index, &paths, &known, began)?;
    paths.retain(|path, _| !exposed.iter().any(|file| file.path == *path));
    Ok(paths)
}

/// New untracked files that existed before the session and that the rules of the base commit ignore.
fn exposed_files(
    git: &Git,
    index: &Path,
    paths: &ChangedPaths,
    known: &PathSet,
    began: Option<SystemTime>,
) -> Result<Vec<IgnoredPath>, Error> {
    let existed =
        |path: &Vec<u8>| known.contains(path) || existed_before(&git.root().join(path_of(path)), began);
    let untracked =
        paths.iter().filter(|(_, change)| **change == PathChange::Untracked).map(|(path, _)| path);
    let candidates: Vec<Vec<u8>> = untracked.filter(|path| existed(path)).cloned().collect();
    git.ignored_by_index(index, &candidates)
}

/// When the session began: its context is written just before. An agent can only make that look later, and then more files
/// count as the user's.
fn session_began(git: &Git) -> Option<SystemTime> {
    changed_at(&fs::symlink_metadata(git.paths().context().join("goal.md")).ok()?)
}

/// Whether a file was created, or last changed, before the session. If its beginning is unknown, every file was.
fn existed_before(file: &Path, began: Option<SystemTime>) -> bool {
    let Some(began) = began else { return true };
    let Ok(metadata) = file.symlink_metadata() else { return false };
    let is_before = |time: Option<SystemTime>| time.is_some_and(|time| time <= began);
    is_before(metadata.created().ok()) || is_before(changed_at(&metadata))
}

/// The inode's change time, which no program can set.
fn changed_at(metadata: &fs::Metadata) -> Option<SystemTime> {
    let secs = Duration::from_secs(u64::try_from(metadata.ctime()).ok()?);
    let nanos = Duration::from_nanos(u64::try_from(metadata.ctime_nsec()).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(secs + nanos)
}

fn rules(ignored: &[IgnoredPath], form: RuleForm) -> AppendedRules {
    let mut rules = AppendedRules::new();
    for IgnoredPath { path, source, pattern } in ignored {
        let (file, line) = match form {
            // Rules of `info/exclude` and of the user's own configuration are relative to the root, too.
            RuleForm::Base if name_of(source) == IGNORE_FILE => (source.clone(), pattern.clone()),
            RuleForm::Base => (IGNORE_FILE.to_vec(), pattern.clone()),
            RuleForm::Literal => (sibling(path, IGNORE_FILE), literal_rule(name_of(path))),
        };
        rules.entry(file).or_default().entry(line).or_default().push(path.clone());
    }
    rules
}

fn append_rules(
    git: &Git,
    aside: &mut AsideFolder<'_>,
    rules: AppendedRules,
    form: RuleForm,
) -> Result<(), Error> {
    for (file, lines) in rules {
        let path = git.root().join(path_of(&file));
        if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
            aside.put(&[AsideItem { path: file.clone(), reason: "git reads no ignore rules from it" }])?;
        }
        let mut text = atomic::read(&path, IGNORE_FILE_BYTES_MAX)?.unwrap_or_default();
        if !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        for (line, files) in lines {
            text.extend(line.iter().chain(b"\n"));
            if form == RuleForm::Base {
                note(aside, &file, &line, &files);
            }
        }
        let folder = path.parent().unwrap_or(git.root());
        atomic::create_folders(git.root(), folder)?;
        let _access = FolderAccess::open(Some(folder));
        atomic::write_no_sync(&path, &text)?;
    }
    Ok(())
}

/// One notice for each rule, since a rule may be about thousands of files.
fn note(aside: &mut AsideFolder<'_>, file: &[u8], line: &[u8], files: &[Vec<u8>]) {
    let Some(first) = files.first() else { return };
    let others = match files.len() {
        1 => String::new(),
        count => format!(", with {} more files", count - 1),
    };
    let (file, line) = (String::from_utf8_lossy(file), String::from_utf8_lossy(line));
    let reason =
        format!("it was ignored before the session{others}; the runner appended `{line}` to `{file}` again");
    aside.note(first, FileAction::KeptIgnored, reason);
}

fn name_of(path: &[u8]) -> &[u8] {
    path_of(path).file_name().map_or(&b""[..], OsStrExt::as_bytes)
}

fn sibling(path: &[u8], name: &[u8]) -> Vec<u8> {
    let folder = path.strip_suffix(name_of(path)).unwrap_or_default();
    [folder, name].concat()
}

/// A rule for exactly one name in the folder of the ignore file.
fn literal_rule(name: &[u8]) -> Vec<u8> {
    let escaped = name.iter().flat_map(|byte| match byte {
        b'*' | b'?' | b'[' | b'\\' | b' ' => vec![b'\\', *byte],
        _ => vec![*byte],
    });
    [b'/'].into_iter().chain(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_rule_is_in_the_folder_of_its_file() {
        assert_eq!(sibling(b"a/b/.env", IGNORE_FILE), b"a/b/.gitignore");
        assert_eq!(sibling(b".env", IGNORE_FILE), b".gitignore");
        assert_eq!(literal_rule(b"a *b[1]"), b"/a\\ \\*b\\[1]");
    }

    #[test]
    fn rules_go_to_the_file_that_had_them() {
        let ignored = |path: &str, source: &str| IgnoredPath {
            path: path.into(),
            source: source.into(),
            pattern: b"*.db".to_vec(),
        };
        let all = [
            ignored("s/a.db", "s/.gitignore"),
            ignored("b.db", "/home/x/ignore"),
            ignored("c.db", ".gitignore"),
        ];
        let by_base = rules(&all, RuleForm::Base);
        assert_eq!(by_base.keys().collect::<Vec<_>>(), [b".gitignore".as_slice(), b"s/.gitignore"]);
        assert_eq!(by_base.values().flat_map(BTreeMap::values).map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        let literal = rules(&all, RuleForm::Literal);
        assert_eq!(literal.values().map(BTreeMap::len).collect::<Vec<_>>(), [2, 1]);
    }
}
