// Benchmark of the page on runs far larger than any real one. It prints main-thread time per frame, which is stable on a
// busy machine, next to its limit. Run it with `just bench ui`, or only parts of it: `just bench ui export tree`.

import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanUp, launchBrowser, RUN, Server } from "./lib.mjs";
import { createLongRun } from "./long-run.mjs";

const NODES = 100_000;
const LOG_BYTES = 100 << 20;
const FRAMES = 120;
const EVENTS = 40;

const folders = [];
function newFolder() {
  folders.push(mkdtempSync(join(tmpdir(), "runner-bench-")));
  return folders.at(-1);
}
const git = (root, ...args) => execFileSync("git", args, { cwd: root, stdio: "ignore" });
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** A tree of about 1 + 316 + 316·316 nodes, as in tree.json. */
function tree() {
  const side = Math.floor(Math.sqrt(NODES));
  const node = (id, order, children) => ({
    id,
    order,
    title: `Node ${id} with a title of some length`,
    goal: "",
    acceptance: [],
    passes: false,
    attempts: 0,
    max_attempts: 3,
    children,
  });
  const inner = (at) =>
    node(
      `n${at}`,
      at,
      Array.from({ length: side - 1 }, (_, leaf) => node(`n${at}.${leaf}`, leaf, [])),
    );
  return {
    version: 1,
    root: node(
      "root",
      0,
      Array.from({ length: side }, (_, at) => inner(at)),
    ),
  };
}

/** A run with a tree of 100,000 nodes and a log of 100 MB; its iteration has no commit. */
function createLargeTree() {
  const root = newFolder();
  git(root, "init", "-q", "-b", "runner/bench");
  const state = join(root, ".runner/state");
  mkdirSync(state, { recursive: true });
  writeFileSync(join(state, "tree.json"), `${JSON.stringify(tree(), null, 2)}\n`);
  writeFileSync(join(state, "run_state.json"), JSON.stringify({ run_id: "bench" }));
  git(root, "add", "-A");
  git(root, "-c", "user.name=bench", "-c", "user.email=bench@example.org", "commit", "-q", "-m", "bench");
  const folder = join(root, ".runner/iterations/bench/0001");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "prompt.md"), "Do it.\n");
  writeFileSync(join(folder, "events.jsonl"), "{}\n");
  const log = openSync(join(folder, "guard.log"), "w");
  const lines = Array.from(
    { length: 10_000 },
    (_, at) =>
      `\u001b[32mtest\u001b[0m some::module::n${at} ... \u001b[1;31mnot quite what it should be\u001b[0m, and so on for a while\n`,
  );
  const piece = Buffer.from(lines.join(""));
  for (let written = 0; written < LOG_BYTES; written += piece.length) writeSync(log, piece);
  closeSync(log);
  return root;
}

/** Scrolls an element; returns main-thread milliseconds per frame. */
async function scroll(page, selector, step) {
  const session = await page.context().newCDPSession(page);
  // Thread time, so that other programs on the machine do not count.
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async () =>
    (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value;
  const before = await busy();
  await page.evaluate(
    ({ selector, step, frames }) =>
      new Promise((done) => {
        const box = document.querySelector(selector);
        let left = frames;
        const frame = () => {
          if (left-- === 0) return done();
          if (step === "jump") box.scrollTop = Math.random() * box.scrollHeight;
          else box.scrollTop += step;
          requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
      }),
    { selector, step, frames: FRAMES },
  );
  return ((await busy()) - before) * (1000 / FRAMES);
}

function report(name, value, max, unit) {
  const verdict = value <= max ? "within" : "BEYOND";
  console.log(`${name.padEnd(46)} ${value.toFixed(1).padStart(8)} ${unit.padEnd(9)} ${verdict} ${max}`);
  if (value > max) process.exitCode = 1;
}

const STEPS = [
  ["wheel", 120, 8],
  ["fling", 2400, 8],
  ["jump", "jump", 16],
];

/** The script of the other views, which the page reads in idle time before they are wanted. */
const PREFETCHED = /\/assets\/(lazy-)?views\.js$/;
const QUIET_MS = 3000;

/** Counts the requests from the start of `load` until none has begun for three seconds. */
async function countRequests(page, load) {
  const urls = [];
  let last = performance.now();
  const listener = (request) => {
    if (request.url().startsWith("data:")) return;
    urls.push(request.url());
    last = performance.now();
  };
  page.on("request", listener);
  await load();
  while (performance.now() - last < QUIET_MS) await sleep(100);
  page.off("request", listener);
  const prefetched = urls.filter((url) => PREFETCHED.test(url)).length;
  return { needed: urls.length - prefetched, prefetched };
}

/** Processor time of a process, in milliseconds. */
function processorMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** The memory of a process, in megabytes. */
function memoryMb(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;
}

async function timeRequest(name, path, url, max) {
  const start = performance.now();
  await (await fetch(url + path)).arrayBuffer();
  report(name, performance.now() - start, max, "ms");
}

/** The first screen of a long run, and what an event costs the server. */
async function measureLongRun(browser, iterations) {
  const { root } = createLongRun(iterations);
  const server = await Server.start({ root, env: process.env });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(server.url);
  await page
    .getByRole("banner")
    .getByText(/untrusted|verified/i)
    .first()
    .waitFor();
  // The second visit: the server has read the run, as it has while somebody works with it.
  const paints = [];
  let [requests, prefetched] = [0, 0];
  for (let load = 0; load < 5; load++) {
    const seen = await countRequests(page, async () => {
      await page.reload();
      await page.getByRole("treeitem").first().waitFor();
    });
    [requests, prefetched] = [Math.max(requests, seen.needed), Math.max(prefetched, seen.prefetched)];
    paints.push(
      await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime),
    );
  }
  paints.sort((a, b) => a - b);
  report(`first paint, ${iterations} iterations, median of 5`, paints[2], 300, "ms");
  report("requests until the network is quiet", requests, 5, "");
  console.log(`and ${prefetched} for the other views, in idle time`);
  const elements = await page.evaluate(() => document.querySelectorAll("*").length);
  report("elements on the page", elements, 1500, "");
  const events = join(root, `.runner/iterations/${RUN}`, String(iterations).padStart(4, "0"), "events.jsonl");
  await sleep(1000);
  const before = processorMs(server.child.pid);
  for (let nth = 0; nth < EVENTS; nth++) {
    const event = {
      t_ms: Date.now(),
      event: "agent",
      iter: iterations,
      seq: nth,
      kind: "message",
      text: "x",
    };
    appendFileSync(events, `${JSON.stringify(event)}\n`);
    await sleep(250);
  }
  await sleep(500);
  const cost = (processorMs(server.child.pid) - before) / EVENTS;
  report(`server: one event at ${iterations} iterations`, cost, 5, "ms CPU");
  report(`server: memory at ${iterations} iterations`, memoryMb(server.child.pid), 60, "MB");
  await page.close();
  server.stop();
}

function measureExport(root, iterations) {
  const file = join(newFolder(), "run.html");
  const start = performance.now();
  execFileSync(join(process.env.RUNNER_BIN ?? "target/release", "runner-ui"), [
    "--project-dir",
    root,
    "export",
    "html",
    "--out",
    file,
  ]);
  report(`export of ${iterations} iterations`, (performance.now() - start) / 1000, 10, "s");
  console.log(`its size: ${(statSync(file).size / (1 << 20)).toFixed(1)} MB`);
}

async function measureLargeTree(browser) {
  const root = createLargeTree();
  const server = await Server.start({ root, env: process.env });
  const { url } = server;
  const log = "api/iterations/bench/1/log/guard";
  await timeRequest("server: first page of the log", `${log}?count=200`, url, 3000);
  await timeRequest("server: another page of it", `${log}?line=400000&count=200`, url, 50);
  await timeRequest("server: search in the whole log", `${log}/search?q=n9999`, url, 3000);
  await timeRequest("server: tree", "api/tree?slim=1", url, 3000);
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(url);
  await page.getByRole("treeitem").first().waitFor();
  await page.getByRole("tree").focus();
  // A filter that matches every node expands the whole tree.
  await page.getByRole("searchbox").first().fill("node");
  await page.waitForFunction(() => document.querySelector("[role=tree]").scrollHeight > 2_000_000);
  for (const [name, step, max] of STEPS)
    report(`tree of ${NODES} nodes, ${name}`, await scroll(page, "[role=tree]", step), max, "ms/frame");
  // What the page keeps: before a collection, the number depends on when the last one was.
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const heap = await page.evaluate(() => performance.memory.usedJSHeapSize / (1 << 20));
  report(`page: heap at ${NODES} nodes`, heap, 60, "MB");
  report(`server: memory at ${NODES} nodes`, memoryMb(server.child.pid), 60, "MB");
  await page.goto(`${url}#/run/bench/i/1/guard?l=1`);
  await page.locator(".code-line").first().waitFor();
  for (const [name, step, max] of STEPS)
    report(`log of 100 MB, ${name}`, await scroll(page, ".log .virtual-list", step), max, "ms/frame");
  server.stop();
}

/** The parts of the benchmark, in their order. */
const PARTS = {
  run: async () => measureLongRun(await launchBrowser(), 1441),
  export: () => measureExport(createLongRun(1441).root, 1441),
  events: async () => measureLongRun(await launchBrowser(), 5000),
  tree: async () => measureLargeTree(await launchBrowser()),
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in PARTS));
if (unknown.length > 0)
  throw new Error(`no such part: ${unknown.join(" ")}; there are ${Object.keys(PARTS).join(" ")}`);

try {
  for (const [name, measure] of Object.entries(PARTS))
    if (wanted.length === 0 || wanted.includes(name)) await measure();
} finally {
  await cleanUp();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
