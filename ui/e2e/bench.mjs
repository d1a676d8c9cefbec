// Benchmark of the page on runs far larger than any real one. It prints main-thread time per frame, which is stable on a
// busy machine, next to its limit. Run it with `just bench ui`.

import { mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync, closeSync } from "node:fs";
import { execFileSync, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const NODES = 100_000;
const LOG_BYTES = 100 << 20;
const ITERATIONS = 1_000;
const FRAMES = 120;

const root = mkdtempSync(join(tmpdir(), "runner-bench-"));
const git = (...args) => execFileSync("git", args, { cwd: root, stdio: "ignore" });

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

function createRun() {
  git("init", "-q", "-b", "main");
  const state = join(root, ".runner/state");
  mkdirSync(state, { recursive: true });
  writeFileSync(join(state, "tree.json"), `${JSON.stringify(tree(), null, 2)}\n`);
  writeFileSync(join(state, "run_state.json"), JSON.stringify({ run_id: "bench" }));
  for (let iter = 1; iter <= ITERATIONS; iter++) {
    const folder = join(root, ".runner/iterations/bench", String(iter).padStart(4, "0"));
    mkdirSync(folder, { recursive: true });
    const outcome = iter % 5 === 0 ? "guard_failed" : "passed";
    const [agent_ms, guard_ms, started_ms] = [
      1000 * (iter % 90),
      1000 * (iter % 40),
      1_700_000_000_000 + iter * 200_000,
    ];
    const meta = {
      run_id: "bench",
      iter,
      node: `n${iter % 300}`,
      outcome,
      agent_ms,
      guard_ms,
      started_ms,
      ended_ms: started_ms + agent_ms + guard_ms,
    };
    writeFileSync(join(folder, "meta.json"), JSON.stringify(meta));
    writeFileSync(join(folder, "events.jsonl"), "{}\n");
  }
  const log = openSync(join(root, ".runner/iterations/bench/1000/guard.log"), "w");
  const lines = Array.from(
    { length: 10_000 },
    (_, at) =>
      `\u001b[32mtest\u001b[0m some::module::n${at} ... \u001b[1;31mnot quite what it should be\u001b[0m, and so on for a while\n`,
  );
  const piece = Buffer.from(lines.join(""));
  for (let written = 0; written < LOG_BYTES; written += piece.length) writeSync(log, piece);
  closeSync(log);
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

async function measure(url) {
  const args = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
  ];
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args,
  });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  // Requests before the first screen can be drawn.
  let [requests, hasSnapshot] = [0, false];
  page.on("request", (request) => (requests += !hasSnapshot && !request.url().startsWith("data:")));
  page.on("requestfinished", (request) => (hasSnapshot ||= request.url().includes("/api/snapshot")));
  await page.goto(url);
  await page.getByRole("banner").getByText("stopped").waitFor();
  report(`requests until the first screen of ${ITERATIONS} iterations`, requests, 5, "");
  await page.getByRole("treeitem").first().waitFor();
  await page.getByRole("tree").focus();
  // A filter that matches every node expands the whole tree.
  await page.getByRole("searchbox").first().fill("node");
  await page.waitForFunction(() => document.querySelector("[role=tree]").scrollHeight > 2_000_000);
  const steps = [
    ["wheel", 120, 8],
    ["fling", 2400, 8],
    ["jump", "jump", 16],
  ];
  for (const [name, step, max] of steps)
    report(`tree of ${NODES} nodes, ${name}`, await scroll(page, "[role=tree]", step), max, "ms/frame");
  report("elements on the page", await page.evaluate(() => document.querySelectorAll("*").length), 3000, "");
  await page.goto(`${url}#/run/bench/i/1000/guard?l=1`);
  await page.locator(".code-line").first().waitFor();
  for (const [name, step, max] of steps)
    report(`log of 100 MB, ${name}`, await scroll(page, ".log .virtual-list", step), max, "ms/frame");
  const heap = await page.evaluate(() => performance.memory.usedJSHeapSize / (1 << 20));
  report("heap", heap, 120, "MB");
  await browser.close();
}

async function timeRequest(name, path, url, max) {
  const start = performance.now();
  await (await fetch(url + path)).arrayBuffer();
  report(name, performance.now() - start, max, "ms");
}

createRun();
const child = spawn(
  join(process.env.RUNNER_BIN ?? "target/release", "runner-ui"),
  ["--port", "0", "--project-dir", root],
  { stdio: ["ignore", "pipe", "inherit"] },
);
try {
  const line = await new Promise((resolve) => child.stdout.once("data", (data) => resolve(String(data))));
  const url = /url=(\S+)/.exec(line)[1];
  const log = "api/iterations/bench/1000/log/guard";
  await timeRequest("server: first page of the log", `${log}?count=200`, url, 3000);
  await timeRequest("server: another page of it", `${log}?line=400000&count=200`, url, 50);
  await timeRequest("server: search in the whole log", `${log}/search?q=n9999`, url, 3000);
  await timeRequest("server: tree", "api/tree?slim=1", url, 3000);
  await measure(url);
} finally {
  child.kill();
  rmSync(root, { recursive: true, force: true });
}
