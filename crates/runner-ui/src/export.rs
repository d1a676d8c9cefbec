//! Exports a run as one file: the page with everything that it would have requested from a server, or the same as JSON.
//!
//! Large logs lose their middle, long runs lose their oldest transcripts first; the file lists what was omitted.

use std::collections::BTreeMap;
use std::io;

use audit_bundle::WASM_MODULE;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_host::redaction::redactor;

use crate::api::{
    DiffPatch, DiffView, IterationExport, IterationList, IterationRow, LogExport, LogGroup, LogHit, LogHits,
    PageSnapshot, RunExport, RunList, RunRow, TreeColumns, VerifyExport, WatchMethod,
};
use crate::error::RequestError;
use crate::read::diff;
use crate::read::files;
use crate::read::iterations;
use crate::read::log_groups::log_groups;
use crate::read::log_index::LogIndex;
use crate::read::logs;
use crate::read::repo_reader::{RepoReader, RunSource};
use crate::read::row_cache::IterationRows;
use crate::read::snapshot;
use crate::read::tree_view::{self, NodeFacts};
use crate::read::verify;
use crate::server::{assets, compress};

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
/// The most nodes that are exported in full.
const NODES_MAX: usize = 5_000;
/// The most patches per iteration.
const PATCHES_MAX: usize = 200;

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    #[error("{0}")]
    Request(RequestError),
    #[error("{0}")]
    Write(#[from] io::Error),
    #[error("this `runner-ui` was built without its page")]
    NoPage,
}

impl From<RequestError> for ExportError {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

/// A run that is being exported.
#[derive(Debug)]
pub(crate) struct RunExporter<'p> {
    project: &'p RepoReader,
    run: RunSource,
    rows: IterationRows,
    omitted: OmittedParts,
}

impl<'p> RunExporter<'p> {
    /// Exports the run with this id, or the current one.
    pub(crate) fn new(project: &'p RepoReader, wanted: Option<&RunId>) -> Result<Self, RequestError> {
        let run = match wanted {
            Some(id) => project.run(Some(id))?.ok_or_else(|| RequestError::no_run(id))?,
            None => project.run(None)?.ok_or_else(RequestError::no_current_run)?,
        };
        let rows = iterations::rows(project, &run)?;
        Ok(Self { project, run, rows, omitted: OmittedParts::default() })
    }

    pub(crate) fn iterations(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn run_id(&self) -> &RunId {
        &self.run.id
    }

    /// What was omitted so far, as sentences.
    pub(crate) fn omitted(&self) -> Vec<String> {
        self.omitted.sentences()
    }

    /// The git objects that prove the run, compressed and in base 64; none if there are none.
    fn objects(&mut self) -> Option<String> {
        let branch = self.run.branch.as_ref()?;
        let bundle = self.project.repo.bundle(&self.run.id, &branch.commit).ok().flatten()?;
        self.omitted.objects = bundle.omitted;
        Some(packed(&bundle.bytes))
    }

    /// Everything but the iterations, which `details` has, and the objects.
    fn document(&mut self, details: BTreeMap<u32, IterationExport>) -> Result<RunExport, RequestError> {
        let (project, run) = (self.project, &self.run);
        // Verified first, so that the snapshot includes the result.
        let verify = project.verify_result(run, || verify::verify(project, run));
        let snapshot: PageSnapshot = snapshot::snapshot(project, Some(&run.id), WatchMethod::Events)?;
        let (tree, nodes) = export_tree(project, run, &self.rows, &mut self.omitted)?;
        let all: Vec<RunRow> = snapshot::runs(project)?.runs;
        let iterations = self.rows.iter().map(|row| row.as_ref().clone()).collect();
        Ok(RunExport {
            schema: "runner.export/1".to_owned(),
            omitted: self.omitted.sentences(),
            runs: RunList { runs: all.into_iter().filter(|row| row.head.id == run.id.as_str()).collect() },
            iterations: IterationList { run: Some(run.id.to_string()), iterations },
            tree,
            nodes,
            files: files::run_files(project, run)?,
            verify: VerifyExport { result: verify, objects: None },
            details,
            snapshot,
        })
    }

    /// The run as one JSON document.
    pub(crate) fn json(&mut self, mut progress: impl FnMut(usize)) -> Result<RunExport, RequestError> {
        let mut details = BTreeMap::new();
        // Newest first: if there is not enough room, the oldest are omitted.
        for (done, row) in self.rows.clone().iter().rev().enumerate() {
            details.insert(row.iter, export_iteration(self.project, &self.run, row, &mut self.omitted)?);
            progress(done + 1);
        }
        let objects = self.objects();
        let mut document = self.document(details)?;
        document.verify.objects = objects;
        Ok(document)
    }

    /// Writes the page with the run in it. Each iteration is a compressed script element of one line, which the page opens
    /// when it is shown, so neither the server nor the browser holds all of them at once.
    pub(crate) fn html(
        &mut self,
        out: &mut impl io::Write,
        mut progress: impl FnMut(usize),
    ) -> Result<(), ExportError> {
        let text = |path: &str| std::str::from_utf8(assets::file(path)?.bytes).ok();
        let (index, style, script) = page_parts(text).ok_or(ExportError::NoPage)?;
        for line in index.lines() {
            if line.contains("<script type=\"module\"") {
                writeln!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"{EXPORT_POLICY}\" />")?;
                for (done, row) in self.rows.clone().iter().rev().enumerate() {
                    let iteration = export_iteration(self.project, &self.run, row, &mut self.omitted)?;
                    let data = packed(&without_keys(&iteration));
                    write_data(out, &format!("iteration-{}", row.iter), &data)?;
                    progress(done + 1);
                }
                if let Some(objects) = self.objects() {
                    write_data(out, "objects", &objects)?;
                    write_data(out, "audit", &base64(WASM_MODULE))?;
                }
                write_data(out, "run", &packed(&without_keys(&self.document(BTreeMap::new())?)))?;
                writeln!(
                    out,
                    "<script type=\"module\">{}</script>",
                    script.replace("</script", "<\\/script")
                )?;
            } else if line.contains("/assets/app.css") {
                writeln!(out, "<style>{style}</style>")?;
            } else if !line.contains("manifest.webmanifest") {
                writeln!(out, "{line}")?;
            }
        }
        Ok(out.flush()?)
    }
}

/// The page's index, style and the script that needs no other file.
fn page_parts<'t>(text: impl Fn(&str) -> Option<&'t str>) -> Option<(&'t str, &'t str, &'t str)> {
    Some((text("/index.html")?, text("/assets/app.css")?, text("/export/app.js")?))
}

/// Writes data that the page reads by its id.
fn write_data(out: &mut impl io::Write, id: &str, data: &str) -> io::Result<()> {
    writeln!(out, "<script type=\"text/plain\" id=\"{id}\">{data}</script>")
}

/// A document as JSON, without keys.
pub(crate) fn without_keys(document: &impl serde::Serialize) -> Vec<u8> {
    redactor().redact(&serde_json::to_vec(document).unwrap_or_default()).into_owned()
}

/// Bytes as text that can be in a script element: compressed, in base 64.
fn packed(bytes: &[u8]) -> String {
    let compressed = compress::gzip(bytes, flate2::Compression::default());
    base64(compressed.as_deref().unwrap_or(bytes))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4_usize {
            let letter = LETTERS.get((bits >> (18 - 6 * at) & 63) as usize).copied().unwrap_or(b'=');
            text.push(char::from(if at <= group.len() { letter } else { b'=' }));
        }
    }
    text
}

type Nodes = BTreeMap<String, crate::api::NodeDetail>;

fn export_tree(
    project: &RepoReader,
    run: &RunSource,
    rows: &IterationRows,
    omitted: &mut OmittedParts,
) -> Result<(Option<TreeColumns>, Nodes), RequestError> {
    let read = project.tree(run)?;
    let Ok(tree) = read.as_ref() else { return Ok((None, Nodes::new())) };
    let on_stuck = tree_view::on_stuck(project.config(run).as_deref());
    let columns = tree_view::tree_columns(tree, on_stuck, Some(run.id.to_string()));
    let state = project.state(run);
    let checks = project.checks(run, tree);
    let facts = NodeFacts { run: &run.id, rows, state: state.as_deref(), checks: &checks, on_stuck };
    omitted.nodes = columns.id.len().saturating_sub(NODES_MAX);
    let mut nodes = Nodes::new();
    for id in columns.id.iter().take(NODES_MAX) {
        let Ok(node) = NodeId::new(id.clone()) else { continue };
        let detail = tree_view::node_detail(tree, &node, &facts);
        nodes.extend(detail.map(|detail| (id.clone(), detail)));
    }
    Ok((Some(columns), nodes))
}

fn export_iteration(
    project: &RepoReader,
    run: &RunSource,
    row: &IterationRow,
    omitted: &mut OmittedParts,
) -> Result<IterationExport, RequestError> {
    let iter = IterationNumber::new(row.iter).ok_or_else(RequestError::not_found)?;
    let detail = iterations::detail(project, run, iter)?;
    let (diff, patches) = export_diff(project, run, row, omitted);
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

/// What an iteration changed, and its patches, as far as there is room.
fn export_diff(
    project: &RepoReader,
    run: &RunSource,
    row: &IterationRow,
    omitted: &mut OmittedParts,
) -> (Option<DiffView>, BTreeMap<String, DiffPatch>) {
    let Some(iter) = IterationNumber::new(row.iter) else { return (None, BTreeMap::new()) };
    let (view, mut whole) = match diff::whole_diff(project, run, row) {
        Some(diff) => (diff.view, Some(diff.patches)),
        None => match diff::diff_view(project, run, iter) {
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
            None => diff::file_patch(project, run, iter, &file.path, diff::CONTEXT_LINES).ok(),
        };
        if let Some(patch) = patch {
            omitted.used += patch.lines.iter().map(|line| line.text.len()).sum::<usize>();
            patches.insert(file.path.clone(), patch);
        }
    }
    (Some(view), patches)
}

/// A log, without its middle if it is large.
fn export_log(
    file: &crate::read::confined_fs::RegularFile,
    omitted: &mut OmittedParts,
) -> Result<LogExport, RequestError> {
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
struct OmittedParts {
    used: usize,
    nodes: usize,
    patches: usize,
    logs: usize,
    lines: usize,
    objects: usize,
}

impl OmittedParts {
    fn has_room(&self) -> bool {
        self.used < BYTES_MAX
    }

    fn sentences(&self) -> Vec<String> {
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

/// The exported page may only show what is in it: it loads nothing and connects to nothing. `wasm-unsafe-eval` allows the audit.
const EXPORT_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; \
     style-src 'unsafe-inline'; img-src data:";

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
    fn base_64_has_its_padding() {
        let texts = [&b""[..], b"f", b"fo", b"foo", b"foob", b"\xff\xfe\xfd"].map(base64);
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "//79"]);
    }

    #[test]
    fn only_omitted_parts_are_listed() {
        assert!(OmittedParts::default().sentences().is_empty());
        let omitted = OmittedParts { logs: 2, ..OmittedParts::default() };
        assert_eq!(omitted.sentences(), ["2 logs of the oldest iterations are omitted"]);
    }
}
