//! A run as one file: the page with everything in it that it would have asked a server for, or the same as JSON.
//!
//! Large logs are cut in their middle, long runs lose their oldest transcripts first; what is left out is said in the
//! file, and so in the page.

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

/// The logs that are kept, by their names in addresses, with their files.
const LOGS: [(&str, &str); 6] = [
    ("prompt", "prompt.md"),
    ("guard", "guard.log"),
    ("stream", "stream.jsonl"),
    ("events", "events.jsonl"),
    ("agent", "executor.log"),
    ("error", "error.log"),
];
/// The most bytes of one log: three quarters from its beginning, the rest from its end.
const LOG_BYTES_MAX: usize = 512 << 10;
/// The most bytes of all logs and patches together.
const BYTES_MAX: usize = 48 << 20;
/// The most nodes that are told in full.
const NODES_MAX: usize = 5_000;
/// The most files of an iteration whose patches are kept.
const PATCHES_MAX: usize = 200;

/// Everything that is to be known of a run: the one that is named, or the one here.
pub(crate) fn whole_run(project: &RepoReader, wanted: Option<&RunId>) -> Result<RunExport, RequestError> {
    let found = match wanted {
        Some(id) => project.run(Some(id))?.ok_or_else(|| RequestError::no_run(id))?,
        None => project.run(None)?.ok_or_else(|| RequestError::no_doc(runner_core::layout::Doc::Tree))?,
    };
    let run = &found;
    let shown: PageSnapshot = snapshot::snapshot(project, Some(&run.id), WatchMethod::Events)?;
    let rows = iterations::rows(project, run)?;
    let mut left = OmittedParts::default();
    let (tree, nodes) = tree_of(project, run, &rows, &mut left)?;
    let mut details = BTreeMap::new();
    // The newest first: they are what is looked at.
    for row in rows.iter().rev() {
        let Some(iter) = IterationNumber::new(row.iter) else { continue };
        details.insert(row.iter, iteration(project, run, iter, &mut left)?);
    }
    let all: Vec<RunRow> = snapshot::runs(project)?.runs;
    Ok(RunExport {
        schema: "runner.export/1".to_owned(),
        left_out: left.told(),
        runs: RunList { runs: all.into_iter().filter(|row| row.head.id == run.id.as_str()).collect() },
        iterations: IterationList { run: Some(run.id.to_string()), iterations: rows },
        tree,
        nodes,
        verdict: verify::verdict(project, run),
        details,
        snapshot: shown,
    })
}

type Nodes = BTreeMap<String, crate::api::NodeDetail>;

fn tree_of(
    project: &RepoReader,
    run: &RunSource,
    rows: &[crate::api::IterationRow],
    left: &mut OmittedParts,
) -> Result<(Option<TreeColumns>, Nodes), RequestError> {
    let read = project.tree(run)?;
    let Ok(tree) = read.as_ref() else { return Ok((None, Nodes::new())) };
    let name = || Some(run.id.to_string());
    let slim = tree_view::slim(tree, name());
    let state = project.state(run);
    left.nodes = slim.id.len().saturating_sub(NODES_MAX);
    let detail = |id: &String| {
        let node = NodeId::new(id.clone()).ok()?;
        Some((id.clone(), tree_view::node(tree, &node, name(), (rows, state.as_ref()))?))
    };
    let nodes = slim.id.iter().take(NODES_MAX).filter_map(detail).collect();
    Ok((Some(slim), nodes))
}

fn iteration(
    project: &RepoReader,
    run: &RunSource,
    iter: IterationNumber,
    left: &mut OmittedParts,
) -> Result<IterationExport, RequestError> {
    let detail = iterations::detail(project, run, iter)?;
    let diff = diff::view(project, run, iter).ok();
    let mut patches = BTreeMap::new();
    let files = diff.iter().flat_map(|view| &view.files);
    for (nth, file) in files.enumerate() {
        match diff::patch(project, run, iter, &file.path) {
            Ok(patch) if nth < PATCHES_MAX && left.has_room() => {
                left.used += patch.lines.iter().map(|line| line.text.len()).sum::<usize>();
                patches.insert(file.path.clone(), patch);
            }
            Ok(_) => left.patches += 1,
            Err(_) => {}
        }
    }
    let mut logs = BTreeMap::new();
    if let Ok(folder) = iterations::folder(project, run, iter) {
        for (name, file) in LOGS {
            let Ok(file) = folder.file(file) else { continue };
            if left.has_room() {
                let kept = whole_log(&file, left)?;
                left.used += kept.lines.iter().map(String::len).sum::<usize>();
                logs.insert(name.to_owned(), kept);
            } else {
                left.logs += 1;
            }
        }
    }
    Ok(IterationExport { detail, diff, patches, logs })
}

/// A log, its middle left out if it is large.
fn whole_log(
    file: &crate::read::confined_fs::RegularFile,
    left: &mut OmittedParts,
) -> Result<LogExport, RequestError> {
    let mut index = LogIndex::default();
    index.extend(file)?;
    let (mut lines, mut size): (Vec<String>, usize) = (Vec::new(), 0);
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
    let errors = logs::failures(file, &index)?;
    let dropped = middle(&lines, size);
    let total = lines.len();
    if !dropped.is_empty() {
        left.lines += dropped.len();
        let note = format!("… {} lines are left out here …", dropped.len());
        lines.splice(dropped.clone(), [note]);
    }
    Ok(LogExport { bytes: index.seen(), lines, errors: moved(errors, &dropped, total) })
}

/// The lines that have to go.
fn middle(lines: &[String], size: usize) -> std::ops::Range<usize> {
    if size <= LOG_BYTES_MAX {
        return 0..0;
    }
    let fitting = |lines: &mut dyn Iterator<Item = &String>, most: usize| {
        let sizes = lines.scan(0, |sum, line| {
            *sum += line.len();
            Some(*sum)
        });
        sizes.take_while(|sum| *sum <= most).count()
    };
    let head = fitting(&mut lines.iter(), LOG_BYTES_MAX / 4 * 3);
    let tail = fitting(&mut lines.iter().rev(), LOG_BYTES_MAX / 4);
    head..lines.len().saturating_sub(tail).max(head)
}

/// The same lines where they are now.
fn moved(errors: LogHits, dropped: &std::ops::Range<usize>, total: usize) -> LogHits {
    let place = |line: u64| {
        let line = usize::try_from(line).ok().filter(|line| *line < total)?;
        match line {
            line if dropped.is_empty() || line < dropped.start => Some(line),
            line if line < dropped.end => None,
            line => Some(line - dropped.len() + 1),
        }
    };
    let kept = |hit: LogHit| Some(LogHit { line: u64::try_from(place(hit.line)?).ok()?, text: hit.text });
    LogHits { hits: errors.hits.into_iter().filter_map(kept).collect(), ..errors }
}

/// What there was no room for.
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

    fn told(&self) -> Vec<String> {
        let facts = [
            (self.nodes, "nodes have no page of their own"),
            (self.patches, "patches of changed files are left out"),
            (self.logs, "logs of the oldest iterations are left out"),
            (self.lines, "lines in the middle of large logs are left out"),
        ];
        facts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
    }
}

/// What the page in a file may do: nothing but show what is in it.
const ALLOWED: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

/// The page with a run in it. None if this binary was built without its page.
pub(crate) fn html(run: &RunExport) -> Option<String> {
    let text = |path: &str| std::str::from_utf8(assets::file(path)?.0).ok();
    let (index, style, script) = (text("/index.html")?, text("/assets/app.css")?, text("/assets/app.js")?);
    let data = serde_json::to_string(run).ok()?;
    let mut html = String::new();
    for line in index.lines() {
        if line.contains("/assets/app.js") {
            // What agents wrote stands in strings alone, and there it can be written without any markup.
            let data = data.replace('<', "\\u003c");
            html += &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{ALLOWED}\" />\n");
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
    fn a_large_log_loses_its_middle_and_says_so() {
        let lines: Vec<String> = (0..2_000).map(|nth| format!("{nth:0>1000}")).collect();
        assert_eq!(middle(&lines, LOG_BYTES_MAX), 0..0);
        let dropped = middle(&lines, 2_000_000);
        assert_eq!(dropped, 393..1869);
        let hit = |line: u64| LogHit { line, text: String::new() };
        let errors =
            LogHits { total: 4, searched: 2_000, hits: [0, 392, 393, 1868, 1869, 1999].map(hit).into() };
        let moved: Vec<u64> = moved(errors, &dropped, 2_000).hits.iter().map(|hit| hit.line).collect();
        assert_eq!(moved, [0, 392, 394, 524]);
    }

    #[test]
    fn only_what_is_missing_is_told() {
        assert!(OmittedParts::default().told().is_empty());
        let left = OmittedParts { logs: 2, ..OmittedParts::default() };
        assert_eq!(left.told(), ["2 logs of the oldest iterations are left out"]);
    }
}
