//! What an iteration changed, or the run up to its end: the files, the patch of one file, and the nodes of the tree.

use std::collections::BTreeMap;

use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::id::IterationNumber;
use runner_core::model::object_id::CommitId;
use runner_core::model::tree::{BYTES_MAX, Node, Tree};
use runner_core::text::one_line;
use runner_host::git::TruncatedBytes;
use runner_host::redaction::redactor;

use crate::api::{DiffFile, DiffKind, DiffLine, DiffPatch, DiffView, IterationRow, TreeChange};
use crate::error::RequestError;
use crate::read::iterations;
use crate::read::repo_reader::{RepoReader, RunSource};
use crate::read::work_tree::WorkTreeDiff;

/// The most bytes of a patch in a response.
pub(crate) const PATCH_BYTES_MAX: usize = 4 << 20;
/// The largest tree that is compared.
const TREE_BYTES_MAX: u64 = BYTES_MAX as u64;
/// The most characters of a line of a patch.
const LINE_CHARS_MAX: usize = 20_000;
/// The most files that are listed.
const FILES_MAX: usize = 5_000;
/// How many unchanged lines are around a change, unless a request asks for more.
pub(crate) const CONTEXT_LINES: u32 = 3;
/// The most bytes of an image in a response.
const IMAGE_BYTES_MAX: u64 = 8 << 20;

/// What an iteration changed: between two commits, or in the work tree since a commit.
enum DiffSource<'p> {
    Commits(CommitId, CommitId),
    WorkTree(WorkTreeDiff<'p>),
}

/// Changes up to the end of an iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiffSpan {
    pub(crate) iter: IterationNumber,
    pub(crate) since: DiffStart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffStart {
    Iteration,
    Run,
}

impl From<IterationNumber> for DiffSpan {
    fn from(iter: IterationNumber) -> Self {
        Self { iter, since: DiffStart::Iteration }
    }
}

/// The commits before and after the changes. An iteration that is not committed yet has its own in the work tree.
fn source<'p>(
    project: &'p RepoReader,
    run: &RunSource,
    span: DiffSpan,
) -> Result<DiffSource<'p>, RequestError> {
    let iter = span.iter;
    let row = iterations::row(project, run, iter)?;
    let commit = |id: &Option<String>| id.as_ref().and_then(|id| project.repo.commit(id));
    let from = match span.since {
        DiffStart::Iteration => commit(&row.commit_before),
        DiffStart::Run => iterations::rows(project, run)?.iter().find_map(|row| commit(&row.commit_before)),
    };
    if let Some((from, to)) = from.zip(commit(&row.commit)) {
        return Ok(DiffSource::Commits(from, to));
    }
    let is_newest = iterations::rows(project, run)?.last().is_some_and(|last| last.iter == iter.get());
    match (&run.branch, row.started_ms) {
        (Some(branch), Some(started_ms)) if run.is_here && is_newest && row.commit.is_none() => {
            Ok(DiffSource::WorkTree(WorkTreeDiff::new(project, branch.commit.clone(), started_ms)))
        }
        _ => {
            let message = format!("iteration {} is not committed yet", iter.get());
            Err(RequestError::new(axum::http::StatusCode::NOT_FOUND, "no_commit", message))
        }
    }
}

/// The changed files and nodes; files below `.runner/` last.
pub(crate) fn diff_view(
    project: &RepoReader,
    run: &RunSource,
    span: DiffSpan,
) -> Result<DiffView, RequestError> {
    let (from, to) = match source(project, run, span)? {
        DiffSource::Commits(from, to) => (from, to),
        DiffSource::WorkTree(changed) => {
            let files = changed.files()?;
            return Ok(DiffView { from: changed.from.to_string(), to: None, files, tree: Vec::new() });
        }
    };
    let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let mut files: Vec<DiffFile> = project
        .repo
        .changes(&from, &to)?
        .into_iter()
        .take(FILES_MAX)
        .map(|file| DiffFile {
            is_runner_file: file.path.starts_with(RUNNER_DIR.as_bytes()),
            path: text(&file.path),
            old_path: file.old_path.as_deref().map(text),
            added: file.lines.map(|(added, _)| added),
            removed: file.lines.map(|(_, removed)| removed),
        })
        .collect();
    files.sort_by_key(|file| file.is_runner_file);
    let tree_at = |commit: &CommitId| -> Result<Option<Tree>, RequestError> {
        Ok(project.repo.doc(commit, Doc::Tree)?.and_then(|bytes| Tree::decode(&bytes).ok()))
    };
    let trees = tree_at(&from)?.zip(tree_at(&to)?);
    let tree = trees.map(|(before, after)| tree_changes(&before, &after)).unwrap_or_default();
    Ok(DiffView { from: from.to_string(), to: Some(to.to_string()), files, tree })
}

/// The patch of one file, with `context` unchanged lines around each change.
pub(crate) fn file_patch(
    project: &RepoReader,
    run: &RunSource,
    span: DiffSpan,
    path: &str,
    context: u32,
) -> Result<DiffPatch, RequestError> {
    require_file_path(path)?;
    let (from, to) = match source(project, run, span)? {
        DiffSource::Commits(from, to) => (from, to),
        DiffSource::WorkTree(changed) => {
            let patch = changed.patch(path, context)?;
            let text = redactor().redact(patch.as_bytes());
            let lines = patch_lines(&String::from_utf8_lossy(&text));
            return Ok(DiffPatch { path: path.to_owned(), lines, is_cut: false });
        }
    };
    let changes = project.repo.changes(&from, &to)?;
    let file = changes.iter().find(|file| String::from_utf8_lossy(&file.path) == path);
    let file = file.ok_or_else(RequestError::not_found)?;
    let old = file.old_path.as_deref().map(|old| String::from_utf8_lossy(old).into_owned());
    // Both names, so that git recognizes a renamed file.
    let paths: Vec<&str> = [path].into_iter().chain(old.as_deref()).collect();
    let patch = project.repo.patch(&from, &to, &paths, context, PATCH_BYTES_MAX)?;
    let text = redactor().redact(&patch.bytes);
    let text = String::from_utf8_lossy(&text);
    Ok(DiffPatch { path: path.to_owned(), lines: patch_lines(&text), is_cut: patch.is_truncated })
}

fn require_file_path(path: &str) -> Result<(), RequestError> {
    if path.is_empty() || path.contains('\0') {
        return Err(RequestError::bad_request("`path` is not the path of a file"));
    }
    Ok(())
}

/// Which version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffSide {
    Before,
    After,
}

/// A changed image, and its media type.
pub(crate) fn image(
    project: &RepoReader,
    run: &RunSource,
    span: DiffSpan,
    path: &str,
    side: DiffSide,
) -> Result<(&'static str, Vec<u8>), RequestError> {
    require_file_path(path)?;
    let bytes = match (source(project, run, span)?, side) {
        (DiffSource::Commits(from, _), DiffSide::Before) => project.repo.file_at(&from, path)?,
        (DiffSource::Commits(_, to), DiffSide::After) => project.repo.file_at(&to, path)?,
        (DiffSource::WorkTree(changed), DiffSide::Before) => project.repo.file_at(&changed.from, path)?,
        (DiffSource::WorkTree(_), DiffSide::After) => {
            project.root.read(path, IMAGE_BYTES_MAX).unwrap_or_default()
        }
    };
    let is_small = u64::try_from(bytes.len()).is_ok_and(|size| size <= IMAGE_BYTES_MAX);
    let kind = image_type(&bytes).filter(|_| is_small).ok_or_else(RequestError::not_found)?;
    Ok((kind, bytes))
}

/// The media type of an image by its first bytes, whatever its name says. Only formats that cannot contain scripts.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Everything that an iteration changed.
#[derive(Debug)]
pub(crate) struct WholeDiff {
    pub(crate) view: DiffView,
    /// By the path of the file.
    pub(crate) patches: BTreeMap<String, DiffPatch>,
}

/// The commits before and after an iteration.
#[derive(Clone, Debug)]
pub(crate) struct IterationCommits {
    pub(crate) from: CommitId,
    pub(crate) to: CommitId,
}

/// The commits of an iteration; `None` if it has none yet.
pub(crate) fn commits_of(row: &IterationRow) -> Option<IterationCommits> {
    let commit = |id: &Option<String>| id.as_ref().and_then(|id| CommitId::new(id.clone()).ok());
    Some(IterationCommits { from: commit(&row.commit_before)?, to: commit(&row.commit)? })
}

/// Everything that an iteration changed, from its patch; `None` if that is too large or hard to split.
pub(crate) fn whole_diff(
    project: &RepoReader,
    run: &RunSource,
    row: &IterationRow,
    patch: &TruncatedBytes,
) -> Option<WholeDiff> {
    let IterationCommits { from, to } = commits_of(row).filter(|_| !patch.is_truncated)?;
    let text = redactor().redact(&patch.bytes);
    let text = String::from_utf8_lossy(&text);
    let mut files = Vec::new();
    let mut patches = BTreeMap::new();
    for part in file_parts(&text) {
        let (file, patch) = parse_part(part)?;
        patches.insert(file.path.clone(), patch);
        files.push(file);
    }
    files.sort_by_key(|file| file.is_runner_file);
    let folder = IterationNumber::new(row.iter).and_then(|iter| iterations::folder(project, run, iter).ok());
    let recorded = |name: &str| Tree::decode(&folder.as_ref()?.read(name, TREE_BYTES_MAX).ok()?).ok();
    let committed = |commit: &CommitId| Tree::decode(&project.repo.doc(commit, Doc::Tree).ok()??).ok();
    let changes_tree = patches.contains_key(Doc::Tree.path());
    let trees = || {
        let before = recorded("tree.before.json").or_else(|| committed(&from))?;
        Some((before, recorded("tree.after.json").or_else(|| committed(&to))?))
    };
    let trees = if changes_tree { trees() } else { None };
    let tree = trees.map(|(before, after)| tree_changes(&before, &after)).unwrap_or_default();
    let view = DiffView { from: from.to_string(), to: Some(to.to_string()), files, tree };
    Some(WholeDiff { view, patches })
}

/// The parts of a patch, one for each file.
fn file_parts(patch: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = patch.match_indices("\ndiff --git ").map(|(at, _)| at + 1).collect();
    if patch.starts_with("diff --git ") {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| patch.get(*start..end)).collect()
}

/// The file and the patch of one part; `None` if git quotes its path.
fn parse_part(part: &str) -> Option<(DiffFile, DiffPatch)> {
    let lines = patch_lines(part);
    let head = || lines.iter().filter(|line| line.kind == DiffKind::Head);
    let paths = head().next()?.text.strip_prefix("diff --git ")?;
    if paths.contains('"') {
        return None;
    }
    let named = |prefix: &str| head().find_map(|line| line.text.strip_prefix(prefix));
    let renamed = named("rename to ").or_else(|| named("copy to "));
    // Without a rename, both names are the same: `a/NAME b/NAME`.
    let same = || paths.get(paths.len() / 2 + 1..).and_then(|path| path.strip_prefix("b/"));
    let path = renamed.or_else(same)?.to_owned();
    let old_path = named("rename from ").map(str::to_owned);
    let is_binary = named("Binary files ").is_some();
    let count = |kind: DiffKind| {
        let count = lines.iter().filter(|line| line.kind == kind).count();
        u64::try_from(count).ok().filter(|_| !is_binary)
    };
    let is_runner_file = path.starts_with(RUNNER_DIR);
    let (added, removed) = (count(DiffKind::Added), count(DiffKind::Removed));
    let file = DiffFile { path: path.clone(), old_path, added, removed, is_runner_file };
    Some((file, DiffPatch { path, lines, is_cut: false }))
}

/// The lines of a patch with their numbers.
fn patch_lines(patch: &str) -> Vec<DiffLine> {
    let mut lines = Vec::new();
    let mut old = 0_u32;
    let mut new = 0_u32;
    let mut in_hunk = false;
    for line in patch.lines() {
        let cut: String = line.chars().take(LINE_CHARS_MAX).collect();
        if let Some((first_old, first_new)) = hunk_start(line) {
            old = first_old;
            new = first_new;
            in_hunk = true;
            lines.push(DiffLine { kind: DiffKind::Hunk, old: None, new: None, text: cut });
            continue;
        }
        if line.starts_with("diff --git ") {
            in_hunk = false;
        }
        let mut chars = cut.chars();
        let kind = match chars.next() {
            _ if !in_hunk => DiffKind::Head,
            Some('+') => DiffKind::Added,
            Some('-') => DiffKind::Removed,
            Some('\\') => DiffKind::Note,
            Some(_) | None => DiffKind::Same,
        };
        let before = matches!(kind, DiffKind::Same | DiffKind::Removed).then_some(old);
        let after = matches!(kind, DiffKind::Same | DiffKind::Added).then_some(new);
        old += u32::from(before.is_some());
        new += u32::from(after.is_some());
        let text = if in_hunk { chars.as_str().to_owned() } else { cut };
        lines.push(DiffLine { kind, old: before, new: after, text });
    }
    lines
}

/// The first line numbers of a hunk, before and after: `@@ -3,4 +5,6 @@`.
fn hunk_start(line: &str) -> Option<(u32, u32)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let first = |text: &str| text.split(',').next().and_then(|number| number.parse().ok());
    Some((first(old)?, first(new)?))
}

fn collect_by_id<'t>(node: &'t Node, nodes: &mut BTreeMap<&'t str, &'t Node>) {
    nodes.insert(node.id.as_str(), node);
    node.children.iter().for_each(|child| collect_by_id(child, nodes));
}

/// The nodes that differ between two trees.
fn tree_changes(before: &Tree, after: &Tree) -> Vec<TreeChange> {
    let mut old = BTreeMap::new();
    let mut new = BTreeMap::new();
    collect_by_id(before.root(), &mut old);
    collect_by_id(after.root(), &mut new);
    let change = |node: &Node, what: String| TreeChange {
        id: node.id.to_string(),
        title: one_line(&node.title),
        what,
    };
    let mut changes = Vec::new();
    for (id, node) in &new {
        let Some(was) = old.get(id) else {
            changes.push(change(node, "added".to_owned()));
            continue;
        };
        let mut what = Vec::new();
        if was.passes != node.passes {
            what.push(if node.passes { "passed".to_owned() } else { "open again".to_owned() });
        }
        if was.attempts != node.attempts {
            what.push(format!("attempts {} → {}", was.attempts, node.attempts));
        }
        if was.max_attempts != node.max_attempts {
            what.push(format!("max_attempts {} → {}", was.max_attempts, node.max_attempts));
        }
        if (&was.title, &was.goal, &was.acceptance) != (&node.title, &node.goal, &node.acceptance) {
            what.push("reworded".to_owned());
        }
        if !what.is_empty() {
            changes.push(change(node, what.join(", ")));
        }
    }
    changes.extend(
        old.iter()
            .filter(|(id, _)| !new.contains_key(*id))
            .map(|(_, node)| change(node, "removed".to_owned())),
    );
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_of_several_files_is_split() {
        let patch = "diff --git a/x y b/x y\n--- a/x y\n+++ b/x y\n@@ -1 +1,2 @@\n-a\n+b\n+diff --git a/no b/no\n\
            diff --git a/old.rs b/new.rs\nsimilarity index 90%\nrename from old.rs\nrename to new.rs\n\
            diff --git a/i.png b/i.png\nBinary files a/i.png and b/i.png differ\n";
        let parts: Vec<_> = file_parts(patch).into_iter().map(|part| parse_part(part).unwrap().0).collect();
        let shown: Vec<_> = parts.iter().map(|file| (file.path.as_str(), file.added, file.removed)).collect();
        assert_eq!(shown, [("x y", Some(2), Some(1)), ("new.rs", Some(0), Some(0)), ("i.png", None, None)]);
        assert_eq!(parts.get(1).unwrap().old_path.as_deref(), Some("old.rs"));
        assert!(parse_part("diff --git \"a/\\303\" \"b/\\303\"\n").is_none());
    }

    #[test]
    fn patch_lines_have_the_numbers_of_both_files() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -3,3 +3,4 @@ fn x\n same\n-old\n+new\n++more\n last\n\\ No newline at end of file\n";
        let parsed: Vec<_> =
            patch_lines(patch).into_iter().map(|line| (line.kind, line.old, line.new, line.text)).collect();
        let text = str::to_owned;
        assert_eq!(
            parsed.get(3..).unwrap(),
            [
                (DiffKind::Hunk, None, None, text("@@ -3,3 +3,4 @@ fn x")),
                (DiffKind::Same, Some(3), Some(3), text("same")),
                (DiffKind::Removed, Some(4), None, text("old")),
                (DiffKind::Added, None, Some(4), text("new")),
                (DiffKind::Added, None, Some(5), text("+more")),
                (DiffKind::Same, Some(5), Some(6), text("last")),
                (DiffKind::Note, None, None, text(" No newline at end of file")),
            ]
        );
        assert!(patch_lines(patch).iter().take(3).all(|line| line.kind == DiffKind::Head));
    }
}
