//! Exports the iterations of a run, one by one: rows, patches and logs, as far as there is room.

use std::collections::{BTreeMap, VecDeque};

use runner_core::model::id::IterationNumber;
use runner_host::git::{PatchBatch, TruncatedBytes};

use crate::api::{DiffPatch, DiffView, IterationExport, IterationRow, LogExport, LogGroup, LogHit, LogHits};
use crate::error::RequestError;
use crate::read::confined_fs::RegularFile;
use crate::read::diff;
use crate::read::iterations;
use crate::read::log_groups::log_groups;
use crate::read::log_index::LogIndex;
use crate::read::logs;
use crate::read::repo_reader::{RepoReader, RunSource};

/// The exported logs: their names in addresses, and their files.
const LOGS: [(&str, &str); 7] = [
    ("prompt", "prompt.md"),
    ("guard", "guard.log"),
    ("stream", "stream.jsonl"),
    ("events", "events.jsonl"),
    ("agent", "executor.log"),
    ("stderr", "executor.err.log"),
    ("error", "error.log"),
];
/// The most bytes of one log: three quarters from its start, the rest from its end.
const LOG_BYTES_MAX: usize = 512 << 10;
/// The most bytes of all logs and patches together.
const BYTES_MAX: usize = 256 << 20;
/// The most patches per iteration.
const PATCHES_MAX: usize = 200;

/// Exports iterations in the order of their rows. Git makes the next patch meanwhile.
pub(super) struct IterationExporter<'e> {
    project: &'e RepoReader,
    run: &'e RunSource,
    patches: PatchQueue<'e>,
}

impl<'e> IterationExporter<'e> {
    pub(super) fn new(project: &'e RepoReader, run: &'e RunSource) -> Self {
        let patches = PatchQueue { project, batch: None, requested: VecDeque::new() };
        Self { project, run, patches }
    }

    /// An iteration; `next` is the one that follows.
    pub(super) fn export(
        &mut self,
        row: &IterationRow,
        next: Option<&IterationRow>,
        omitted: &mut OmittedParts,
    ) -> Result<IterationExport, RequestError> {
        let (project, run) = (self.project, self.run);
        let iter = IterationNumber::new(row.iter).ok_or_else(RequestError::not_found)?;
        let detail = iterations::detail(project, run, iter)?;
        let patch = self.patches.patch_of(row, next);
        let (diff, patches) = export_diff(project, run, row, patch, omitted);
        let mut logs = BTreeMap::new();
        if let Ok(folder) = iterations::folder(project, run, iter) {
            for (name, file) in LOGS {
                let Ok(file) = folder.file(file) else { continue };
                if omitted.has_room() {
                    let log = export_log(&file, omitted)?;
                    omitted.used += log.lines.iter().map(String::len).sum::<usize>();
                    logs.insert(name.to_owned(), log);
                } else {
                    omitted.logs += 1;
                }
            }
        }
        Ok(IterationExport { detail, diff, patches, logs })
    }
}

/// The patches of iterations, from one git process that works ahead.
struct PatchQueue<'e> {
    project: &'e RepoReader,
    batch: Option<PatchBatch>,
    /// The iterations whose patches were requested and not read yet.
    requested: VecDeque<u32>,
}

impl PatchQueue<'_> {
    /// The patch of an iteration, up to a limit; none if git does not have it. Requests the next one first.
    fn patch_of(&mut self, row: &IterationRow, next: Option<&IterationRow>) -> Option<TruncatedBytes> {
        if self.requested.front() != Some(&row.iter) {
            self.requested.clear();
            self.batch = None;
            self.request(row)?;
        }
        next.and_then(|next| self.request(next));
        let patch = self.batch.as_mut()?.response(diff::PATCH_BYTES_MAX).ok();
        self.requested.pop_front();
        if patch.is_none() {
            // Git may be dead: the next iteration starts another one.
            self.requested.clear();
        }
        patch
    }

    fn request(&mut self, row: &IterationRow) -> Option<()> {
        let commits = diff::commits_of(row)?;
        if self.batch.is_none() {
            self.batch = self.project.repo.patch_batch(diff::CONTEXT_LINES).ok().flatten();
        }
        self.batch.as_mut()?.request(&commits.from, &commits.to).ok()?;
        self.requested.push_back(row.iter);
        Some(())
    }
}

/// What an iteration changed, and its patches, as far as there is room.
fn export_diff(
    project: &RepoReader,
    run: &RunSource,
    row: &IterationRow,
    patch: Option<TruncatedBytes>,
    omitted: &mut OmittedParts,
) -> (Option<DiffView>, BTreeMap<String, DiffPatch>) {
    let Some(iter) = IterationNumber::new(row.iter) else { return (None, BTreeMap::new()) };
    let (view, mut whole) = match patch.and_then(|patch| diff::whole_diff(project, run, row, &patch)) {
        Some(diff) => (diff.view, Some(diff.patches)),
        None => match diff::diff_view(project, run, iter.into()) {
            Ok(view) => (view, None),
            Err(_) => return (None, BTreeMap::new()),
        },
    };
    let mut patches = BTreeMap::new();
    for (index, file) in view.files.iter().enumerate() {
        if index >= PATCHES_MAX || !omitted.has_room() {
            omitted.patches += 1;
            continue;
        }
        let patch = match &mut whole {
            Some(patches) => patches.remove(&file.path),
            None => diff::file_patch(project, run, iter.into(), &file.path, diff::CONTEXT_LINES).ok(),
        };
        if let Some(patch) = patch {
            omitted.used += patch.lines.iter().map(|line| line.text.len()).sum::<usize>();
            patches.insert(file.path.clone(), patch);
        }
    }
    (Some(view), patches)
}

/// A log, without its middle if it is large.
fn export_log(file: &RegularFile, omitted: &mut OmittedParts) -> Result<LogExport, RequestError> {
    let mut index = LogIndex::default();
    index.extend(file)?;
    let mut lines: Vec<String> = Vec::new();
    let mut size = 0;
    while let Ok(from) = u64::try_from(lines.len()) {
        let page = logs::page(file, &index, from, logs::LINES_MAX)?;
        if page.lines.is_empty() {
            break;
        }
        size += page.lines.iter().map(String::len).sum::<usize>();
        lines.extend(page.lines);
        if size > 64 * LOG_BYTES_MAX {
            break;
        }
    }
    let errors = logs::error_lines(file, &index)?;
    let mut groups = log_groups(file, &index)?;
    let omission = LineOmission { dropped: omitted_lines(&lines, size), total: lines.len() };
    if !omission.dropped.is_empty() {
        omitted.lines += omission.dropped.len();
        let note = format!("… {} lines omitted …", omission.dropped.len());
        lines.splice(omission.dropped.clone(), [note]);
    }
    groups.groups = groups.groups.into_iter().filter_map(|group| omission.group(group)).collect();
    Ok(LogExport { bytes: index.seen(), lines, errors: omission.hits(errors), groups })
}

/// The lines in the middle that do not fit.
fn omitted_lines(lines: &[String], size: usize) -> std::ops::Range<usize> {
    if size <= LOG_BYTES_MAX {
        return 0..0;
    }
    let head = fitting_lines(lines.iter(), LOG_BYTES_MAX / 4 * 3);
    let tail = fitting_lines(lines.iter().rev(), LOG_BYTES_MAX / 4);
    head..lines.len().saturating_sub(tail).max(head)
}

/// How many of the first lines have at most `bytes_max` bytes together.
fn fitting_lines<'l>(lines: impl Iterator<Item = &'l String>, bytes_max: usize) -> usize {
    let mut bytes = 0;
    let mut count = 0;
    for line in lines {
        bytes += line.len();
        if bytes > bytes_max {
            break;
        }
        count += 1;
    }
    count
}

/// The lines that an exported log lacks. The others have new numbers.
struct LineOmission {
    dropped: std::ops::Range<usize>,
    /// How many lines were read.
    total: usize,
}

impl LineOmission {
    /// The number of a line in the export; none for an omitted one.
    fn line(&self, line: u64) -> Option<u64> {
        let line = usize::try_from(line).ok().filter(|line| *line < self.total)?;
        let exported = match line {
            line if self.dropped.is_empty() || line < self.dropped.start => line,
            line if line < self.dropped.end => return None,
            line => line - self.dropped.len() + 1,
        };
        u64::try_from(exported).ok()
    }

    fn hits(&self, errors: LogHits) -> LogHits {
        let hits = errors.hits.into_iter();
        let exported = hits.filter_map(|hit| Some(LogHit { line: self.line(hit.line)?, text: hit.text }));
        LogHits { hits: exported.collect(), ..errors }
    }

    /// A group whose first or last line is omitted is no group any more.
    fn group(&self, group: LogGroup) -> Option<LogGroup> {
        Some(LogGroup { first: self.line(group.first)?, last: self.line(group.last)?, ..group })
    }
}

/// What was omitted, and the bytes used so far.
#[derive(Debug, Default)]
pub(super) struct OmittedParts {
    used: usize,
    pub(super) nodes: usize,
    patches: usize,
    logs: usize,
    lines: usize,
    pub(super) objects: usize,
}

impl OmittedParts {
    fn has_room(&self) -> bool {
        self.used < BYTES_MAX
    }

    pub(super) fn sentences(&self) -> Vec<String> {
        let parts = [
            (self.nodes, "nodes have no details"),
            (self.patches, "patches of changed files are omitted"),
            (self.logs, "logs of the oldest iterations are omitted"),
            (self.lines, "lines in the middle of large logs are omitted"),
            (self.objects, "git objects with keys are omitted, so this file cannot prove everything"),
        ];
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_log_loses_its_middle() {
        let lines: Vec<String> = (0..2_000).map(|nth| format!("{nth:0>1000}")).collect();
        assert_eq!(omitted_lines(&lines, LOG_BYTES_MAX), 0..0);
        let dropped = omitted_lines(&lines, 2_000_000);
        assert_eq!(dropped, 393..1869);
        let hit = |line: u64| LogHit { line, text: String::new() };
        let errors =
            LogHits { total: 4, searched: 2_000, hits: [0, 392, 393, 1868, 1869, 1999].map(hit).into() };
        let omission = LineOmission { dropped, total: 2_000 };
        let lines: Vec<u64> = omission.hits(errors).hits.iter().map(|hit| hit.line).collect();
        assert_eq!(lines, [0, 392, 394, 524]);
        let group = |first, last| LogGroup { first, last, title: String::new(), seconds: None };
        let lines = |group: LogGroup| omission.group(group).map(|group| (group.first, group.last));
        assert_eq!(lines(group(10, 1_990)), Some((10, 515)));
        assert_eq!(lines(group(10, 500)), None);
    }

    #[test]
    fn only_omitted_parts_are_listed() {
        assert!(OmittedParts::default().sentences().is_empty());
        let omitted = OmittedParts { logs: 2, ..OmittedParts::default() };
        assert_eq!(omitted.sentences(), ["2 logs of the oldest iterations are omitted"]);
    }
}
