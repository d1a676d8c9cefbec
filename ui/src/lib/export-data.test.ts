import { expect, test } from "vitest";
import { answerFromExport } from "./export-data";
import type { LogHits, LogPage, RunExport, SearchResults } from "./types";

const run = {
  snapshot: { state: "complete" },
  runs: { runs: [] },
  verify: { verdict: "verified" },
  iterations: { run: "r", iterations: [{ iter: 7, has_logs: true }] },
  tree: { id: ["root"] },
  nodes: { root: { id: "root", title: "Ledger", goal: "Two books", acceptance: [], passes: true } },
  details: {
    7: {
      detail: { run: "r" },
      diff: { files: [] },
      patches: { "a b/ü.rs": { path: "a b/ü.rs" } },
      logs: {
        stream: { bytes: 9, lines: ['{"t":1,"raw":{"text":"Not two but three"}}'] },
        agent: { bytes: 9, lines: ["two, as the stream has it"] },
        guard: {
          bytes: 30,
          lines: ["one", "\u001b[31mTwo\u001b[0m", "three", "two"],
          errors: { total: 1, searched: 4, hits: [] },
        },
      },
    },
  },
} as unknown as RunExport;

test("an exported page answers requests as the server would", async () => {
  expect(await answerFromExport(run, "/api/snapshot?run=r")).toBe(run.snapshot);
  expect(await answerFromExport(run, "/api/tree?slim=1")).toBe(run.tree);
  expect(await answerFromExport(run, "/api/tree/root?run=r")).toBe(run.nodes.root);
  expect(await answerFromExport(run, "/api/iterations?run=r")).toBe(run.iterations);
  expect(await answerFromExport(run, "/api/iterations/r/0007")).toBe(run.details[7]?.detail);
  expect(await answerFromExport(run, "/api/iterations/r/0007/diff")).toBe(run.details[7]?.diff);
  const path = encodeURIComponent("a b/ü.rs");
  expect(await answerFromExport(run, `/api/iterations/r/0007/diff/file?path=${path}`)).toEqual({
    path: "a b/ü.rs",
  });
});

test("logs are paged, and searched without their colours", async () => {
  const log = "/api/iterations/r/0007/log/guard";
  const page = (await answerFromExport(run, `${log}?line=1&count=2`)) as LogPage;
  expect([page.total, page.from, page.lines.length]).toEqual([4, 1, 2]);
  const hits = (await answerFromExport(run, `${log}/search?q=TWO`)) as LogHits;
  expect(hits.hits.map((hit) => [hit.line, hit.text])).toEqual([
    [1, "Two"],
    [3, "two"],
  ]);
  expect(((await answerFromExport(run, `${log}/search?q=two&case=1`)) as LogHits).total).toBe(1);
  expect(((await answerFromExport(run, `${log}/errors`)) as LogHits).total).toBe(1);
});

test("tasks, transcripts and logs are searched", async () => {
  const found = (await answerFromExport(run, "/api/search?logs=1&q=TWO&run=r")) as SearchResults;
  expect(found.nodes).toEqual([{ id: "root", title: "Ledger", passes: true }]);
  expect(found.logs.map((hit) => [hit.iter, hit.log, hit.line, hit.text])).toEqual([
    [7, "transcript", 0, "Not two but three"],
    [7, "guard", 1, "Two"],
    [7, "guard", 3, "two"],
  ]);
  expect(found.logs_searched).toBe(1);
});

test("requests for data outside the export have no answer", async () => {
  for (const path of [
    "/api/iterations/r/0008",
    "/api/iterations/r/0007/log/prompt",
    "/api/tree/gone",
    "/api/x",
  ])
    expect(await answerFromExport(run, path)).toBeUndefined();
});
