//! The addresses of the API for its OpenAPI document: what each returns, and which parameters it takes.

#[derive(Clone, Copy, Debug)]
pub struct ApiAddress {
    pub path: &'static str,
    pub summary: &'static str,
    pub response: ApiResponse,
    pub query: QueryParameters,
}

/// Names of query parameters, and what they mean.
pub type QueryParameters = &'static [(&'static str, &'static str)];

/// What an address returns.
#[derive(Clone, Copy, Debug)]
pub enum ApiResponse {
    /// A JSON document of this type.
    Json(&'static str),
    /// Anything else, by its media type.
    Other(&'static str),
}

const SINCE: (&str, &str) = ("since", "`run`: everything since the start of the run");
const RUN: (&str, &str) = ("run", "the run; without it, the one that is checked out");
const LINES: QueryParameters = &[("line", "the first line, from 0"), ("count", "how many lines")];
const FIND: QueryParameters = &[("q", "the text to find"), ("case", "any value: letter case matters")];

const fn json(
    path: &'static str,
    summary: &'static str,
    response: &'static str,
    query: QueryParameters,
) -> ApiAddress {
    ApiAddress { path, summary, response: ApiResponse::Json(response), query }
}

/// The addresses of a repository. Below `/trial/{case}/{id}`, the run of a trial has the same ones.
pub const REPOSITORY: [ApiAddress; 20] = [
    json("/api/snapshot", "The first screen: status, progress, evidence, questions", "PageSnapshot", &[RUN]),
    ApiAddress {
        path: "/api/overview",
        summary: "The first screen with iterations, tree and one task: one `OverviewPart` on each line, as soon as it is read",
        response: ApiResponse::Other("application/x-ndjson"),
        query: &[RUN, ("node", "the task; without it, the one in progress or the next one")],
    },
    json(
        "/api/tree",
        "The plan: tree.json, or in columns",
        "TreeColumns",
        &[RUN, ("slim", "any value: in columns, which this document describes")],
    ),
    json("/api/tree/{node}", "One task with its history", "NodeDetail", &[RUN]),
    ApiAddress {
        path: "/api/run-state",
        summary: "run_state.json as it is",
        response: ApiResponse::Other("application/json"),
        query: &[RUN],
    },
    json("/api/runs", "Every run that has a branch", "RunList", &[]),
    json(
        "/api/search",
        "Tasks, iterations, files and lines of logs that contain a text",
        "SearchResults",
        &[RUN, ("q", "the text to find"), ("logs", "any value: also in logs")],
    ),
    json("/api/files", "The files that the iterations changed", "RunFiles", &[RUN]),
    ApiAddress {
        path: "/api/export",
        summary: "The run as one page that opens from disk",
        response: ApiResponse::Other("text/html"),
        query: &[RUN],
    },
    json("/api/verify", "The result of `runner verify`", "VerifyResult", &[RUN]),
    json(
        "/api/iterations",
        "The iterations of a run",
        "IterationList",
        &[RUN, ("after", "only later ones than this number"), ("limit", "how many")],
    ),
    json("/api/iterations/{run}/{iter}", "One iteration", "IterationDetail", &[]),
    json("/api/iterations/{run}/{iter}/log/{log}", "Lines of a log", "LogPage", LINES),
    json("/api/iterations/{run}/{iter}/log/{log}/search", "Lines that contain a text", "LogHits", FIND),
    json("/api/iterations/{run}/{iter}/log/{log}/errors", "Lines that report an error", "LogHits", &[]),
    json("/api/iterations/{run}/{iter}/log/{log}/groups", "Parts of a log to fold", "LogGroups", &[]),
    json(
        "/api/iterations/{run}/{iter}/diff",
        "What an iteration changed; in the work tree while it is not committed",
        "DiffView",
        &[SINCE],
    ),
    json(
        "/api/iterations/{run}/{iter}/diff/file",
        "The patch of one file",
        "DiffPatch",
        &[("path", "the file"), ("context", "unchanged lines around each change"), SINCE],
    ),
    ApiAddress {
        path: "/api/iterations/{run}/{iter}/diff/image",
        summary: "A changed image: PNG, JPEG, GIF or WebP",
        response: ApiResponse::Other("image/*"),
        query: &[("path", "the file"), ("side", "`before` or `after`"), SINCE],
    },
    ApiAddress {
        path: "/api/iterations/{run}/{iter}/{file}",
        summary: "A file of the iteration's log folder",
        response: ApiResponse::Other("text/plain"),
        query: &[],
    },
];

/// The addresses that exist besides those of a repository.
pub const OTHERS: [ApiAddress; 5] = [
    json("/api/eval", "The runs of an evaluation, and the grid of one", "EvalView", &[("run", "the run")]),
    json(
        "/api/eval/compare",
        "Two sets of results, paired by case",
        "EvalComparison",
        &[("base", "`RUN` or `RUN@AGENT`"), ("new", "the same")],
    ),
    ApiAddress {
        path: "/api/openapi.json",
        summary: "This document",
        response: ApiResponse::Other("application/json"),
        query: &[],
    },
    ApiAddress {
        path: "/events",
        summary: "Changes as Server-Sent Events; each is a `ChangeEvent`",
        response: ApiResponse::Other("text/event-stream"),
        query: &[(
            "since",
            "the `event_id` of a snapshot, or the id of an event: what came after it is sent first",
        )],
    },
    ApiAddress { path: "/healthz", summary: "`ok`", response: ApiResponse::Other("text/plain"), query: &[] },
];
