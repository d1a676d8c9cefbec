//! Exports a run as one file: the page with everything that it would have requested from a server, or the same as JSON.
//!
//! Large logs lose their middle, long runs lose their oldest transcripts first; the file lists what was omitted.

use std::collections::BTreeMap;

use runner_core::model::id::{IterationNumber, NodeId, RunId};

use crate::api::{
    IterationExport, IterationList, LogExport, LogHit, LogHits, PageSnapshot, RunExport, RunList, RunRow,
    TreeColumns, WatchMethod,
};
use crate::error::RequestError;
use crate::read::diff;
use crate::read::iterations;
use crate::read::log_index::LogIndex;
use crate::read::logs;
use crate::read::repo_reader::{RepoReader, RunSource};
use crate::read::snapshot;
use crate::read::tree_view;
use crate::read::verify;
use crate::server::assets;

/// The exported logs: their names in addresses, and their files.
const LOGS: [(&str, &str); 6] = [
    ("prompt", "prompt.md"),
    ("guard", "guard.log"),
    ("stream", "stream.jsonl"),
    ("events", "events.jsonl"),
    ("agent", "executor.log"),
    ("error", "error.log"),
];
/// The most bytes of one log: three quarters from its start, the rest from its end.
const LOG_BYTES_MAX: usize = 512 << 10;
/// The most bytes of all logs and patches together.
const BYTES_MAX: usize = 48 << 20;
/// The most nodes that are exported in full.
const NODES_MAX: usize = 5_000;
/// The most patches per iteration.
const PATCHES_MAX: usize = 200;

/// The export of a run: of the one with this id, or of the current one.
pub(crate) fn export_run(project: &RepoReader, wanted: Option<&RunId>) -> Result<RunExport, RequestError> {
    let run = &match wanted {
        Some(id) => project.run(Some(id))?.ok_or_else(|| RequestError::no_run(id))?,
        None => project.run(None)?.ok_or_else(|| RequestError::no_doc(runner_core::layout::Doc::Tree))?,
    };
    let snapshot: PageSnapshot = snapshot::snapshot(project, Some(&run.id), WatchMethod::Events)?;
    let rows = iterations::rows(project, run)?;
    let mut omitted = OmittedParts::default();
    let (tree, nodes) = export_tree(project, run, &rows, &mut omitted)?;
    let mut details = BTreeMap::new();
    // Newest first: if there is not enough room, the oldest are omitted.
    for row in rows.iter().rev() {
        let Some(iter) = IterationNumber::new(row.iter) else { continue };
        details.insert(row.iter, export_iteration(project, run, iter, &mut omitted)?);
    }
    let all: Vec<RunRow> = snapshot::runs(project)?.runs;
    Ok(RunExport {
        schema: "runner.export/1".to_owned(),
        omitted: omitted.sentences(),
        runs: RunList { runs: all.into_iter().filter(|row| row.head.id == run.id.as_str()).collect() },
        iterations: IterationList { run: Some(run.id.to_string()), iterations: rows },
        tree,
        nodes,
        verify: verify::verify(project, run),
        details,
        snapshot,
    })
}

type Nodes = BTreeMap<String, crate::api::NodeDetail>;

fn export_tree(
    project: &RepoReader,
    run: &RunSource,
    rows: &[crate::api::IterationRow],
    omitted: &mut OmittedParts,
) -> Result<(Option<TreeColumns>, Nodes), RequestError> {
    let read = project.tree(run)?;
    let Ok(tree) = read.as_ref() else { return Ok((None, Nodes::new())) };
    let name = || Some(run.id.to_string());
    let columns = tree_view::tree_columns(tree, name());
    let state = project.state(run);
    omitted.nodes = columns.id.len().saturating_sub(NODES_MAX);
    let detail = |id: &String| {
        let node = NodeId::new(id.clone()).ok()?;
        Some((id.clone(), tree_view::node_detail(tree, &node, name(), rows, state.as_ref())?))
    };
    let nodes = columns.id.iter().take(NODES_MAX).filter_map(detail).collect();
    Ok((Some(columns), nodes))
}

fn export_iteration(
    project: &RepoReader,
    run: &RunSource,
    iter: IterationNumber,
    omitted: &mut OmittedParts,
) -> Result<IterationExport, RequestError> {
    let detail = iterations::detail(project, run, iter)?;
    let diff = diff::diff_view(project, run, iter).ok();
    let mut patches = BTreeMap::new();
    let files = diff.iter().flat_map(|view| &view.files);
    for (index, file) in files.enumerate() {
        match diff::file_patch(project, run, iter, &file.path) {
            Ok(patch) if index < PATCHES_MAX && omitted.has_room() => {
                omitted.used += patch.lines.iter().map(|line| line.text.len()).sum::<usize>();
                patches.insert(file.path.clone(), patch);
            }
            Ok(_) => omitted.patches += 1,
            Err(_) => {}
        }
    }
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
    let dropped = omitted_lines(&lines, size);
    let total = lines.len();
    if !dropped.is_empty() {
        omitted.lines += dropped.len();
        let note = format!("… {} lines omitted …", dropped.len());
        lines.splice(dropped.clone(), [note]);
    }
    Ok(LogExport { bytes: index.seen(), lines, errors: renumbered(errors, &dropped, total) })
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

/// The hits with the numbers that their lines have in the export; hits on omitted lines are dropped.
fn renumbered(errors: LogHits, dropped: &std::ops::Range<usize>, total: usize) -> LogHits {
    let exported_line = |line: u64| {
        let line = usize::try_from(line).ok().filter(|line| *line < total)?;
        match line {
            line if dropped.is_empty() || line < dropped.start => Some(line),
            line if line < dropped.end => None,
            line => Some(line - dropped.len() + 1),
        }
    };
    let mut hits = Vec::new();
    for hit in errors.hits {
        let line = exported_line(hit.line).and_then(|line| u64::try_from(line).ok());
        hits.extend(line.map(|line| LogHit { line, text: hit.text }));
    }
    LogHits { hits, ..errors }
}

/// What was omitted, and the bytes used so far.
#[derive(Debug, Default)]
struct OmittedParts {
    used: usize,
    nodes: usize,
    patches: usize,
    logs: usize,
    lines: usize,
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
        ];
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
    }
}

/// The exported page may only show what is in it: it loads nothing and connects to nothing.
const EXPORT_POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

/// The page with a run in it; `None` if this binary was built without the page.
pub(crate) fn html(run: &RunExport) -> Option<String> {
    let text = |path: &str| std::str::from_utf8(assets::file(path)?.0).ok();
    let (index, style, script) = (text("/index.html")?, text("/assets/app.css")?, text("/assets/app.js")?);
    let data = serde_json::to_string(run).ok()?;
    let mut html = String::new();
    for line in index.lines() {
        if line.contains("/assets/app.js") {
            // Text by agents only occurs in JSON strings, where `<` can be escaped, so it cannot close the script element.
            let data = data.replace('<', "\\u003c");
            html += &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{EXPORT_POLICY}\" />\n");
            html += &format!("<script type=\"application/json\" id=\"run\">{data}</script>\n");
            html +=
                &format!("<script type=\"module\">{}</script>\n", script.replace("</script", "<\\/script"));
        } else if line.contains("/assets/app.css") {
            html += &format!("<style>{style}</style>\n");
        } else {
            html += line;
            html.push('\n');
        }
    }
    Some(html)
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
        let lines: Vec<u64> = renumbered(errors, &dropped, 2_000).hits.iter().map(|hit| hit.line).collect();
        assert_eq!(lines, [0, 392, 394, 524]);
    }

    #[test]
    fn only_omitted_parts_are_listed() {
        assert!(OmittedParts::default().sentences().is_empty());
        let omitted = OmittedParts { logs: 2, ..OmittedParts::default() };
        assert_eq!(omitted.sentences(), ["2 logs of the oldest iterations are omitted"]);
    }
}
