//! Exports a run as one file: the page with everything that it would have requested from a server, or the same as JSON.
//!
//! Large logs lose their middle, long runs lose their oldest transcripts first; the file lists what was omitted.

mod iterations;

use std::collections::BTreeMap;
use std::io;

use audit_bundle::WASM_MODULE;
use runner_core::model::id::{NodeId, RunId};

use crate::api::{
    IterationExport, IterationList, PageSnapshot, RunExport, RunList, RunRow, TreeColumns, VerifyExport,
    WatchMethod,
};
use crate::error::RequestError;
use crate::export::iterations::{IterationExporter, OmittedParts};
use crate::read::files;
use crate::read::repo_reader::{RepoReader, RunSource};
use crate::read::row_cache::IterationRows;
use crate::read::snapshot::{self, ServerFacts};
use crate::read::tree_view::{self, NodeFacts};
use crate::read::verify;
use crate::server::response::json_bytes;
use crate::server::{assets, compress};

/// The most nodes that are exported in full.
const NODES_MAX: usize = 5_000;
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
        let rows = crate::read::iterations::rows(project, &run)?;
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
        let snapshot: PageSnapshot =
            snapshot::snapshot(project, Some(&run.id), ServerFacts::without_events(WatchMethod::Events))?;
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

    /// Calls `write` with each iteration and how many are done, newest first: if there is not enough room, the oldest are
    /// omitted.
    fn each_iteration<E: From<RequestError>>(
        &mut self,
        mut write: impl FnMut(u32, IterationExport, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut exporter = IterationExporter::new(self.project, &self.run);
        let mut rows = self.rows.iter().rev().peekable();
        let mut done = 0;
        while let Some(row) = rows.next() {
            let next = rows.peek().map(AsRef::as_ref);
            let iteration = exporter.export(row, next, &mut self.omitted)?;
            done += 1;
            write(row.iter, iteration, done)?;
        }
        Ok(())
    }

    /// The run as one JSON document.
    pub(crate) fn json(&mut self, mut progress: impl FnMut(usize)) -> Result<RunExport, RequestError> {
        let mut details = BTreeMap::new();
        self.each_iteration(|iter, iteration, done| {
            details.insert(iter, iteration);
            progress(done);
            Ok::<_, RequestError>(())
        })?;
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
                self.each_iteration(|iter, iteration, done| {
                    let data = packed(&without_keys(&iteration));
                    write_data(out, &format!("iteration-{iter}"), &data)?;
                    progress(done);
                    Ok::<_, ExportError>(())
                })?;
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
            } else if !line.contains("href=\"/") {
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
    json_bytes(document).unwrap_or_default()
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
        let Ok(node) = NodeId::new(id) else { continue };
        let detail = tree_view::node_detail(tree, &node, &facts);
        nodes.extend(detail.map(|detail| (id.to_owned(), detail)));
    }
    Ok((Some(columns), nodes))
}

/// The exported page may only show what is in it: it loads nothing and connects to nothing. `wasm-unsafe-eval` allows the audit.
const EXPORT_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; \
     style-src 'unsafe-inline'; img-src data:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_has_its_padding() {
        let texts = [&b""[..], b"f", b"fo", b"foo", b"foob", b"\xff\xfe\xfd"].map(base64);
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "//79"]);
    }
}
