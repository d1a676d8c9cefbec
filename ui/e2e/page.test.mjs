// Every view in a real browser, in both themes, on wide and narrow screens.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  AGENT,
  launchBrowser,
  GUARD,
  checkViews,
  open,
  Repository,
  RUN,
  SCREENS,
  Server,
  cleanUp,
} from "./lib.mjs";

const STUCK = AGENT.replace(/0003\).*;;/, "0003|0004) echo bad > to; answer done 'Fixed for good.' ;;");

/** The header is at its widest with a cost and a budget. */
const BUDGET = "[budget]\nrun_usd = 20\nrun_tokens = 5000000\n";
const USED = `printf '{"usage": {"input_tokens": 182000, "cached_input_tokens": 91000, "output_tokens": 9400, "cost_microdollars": 1893333}}' > "$RUNNER_REPORT"\n`;

let browser, stuck, server;

before(async () => {
  browser = await launchBrowser();
  stuck = new Repository({ agent: USED + STUCK, guard: GUARD, config: BUDGET });
  assert.equal(stuck.runner("loop"), 3);
  server = await Server.start(stuck);
});

after(cleanUp);

const VIEWS = {
  overview: ["", "Stopped: stuck"],
  node: [`#/run/${RUN}/node/to`, "Numbers to numerals"],
  transcript: [`#/run/${RUN}/i/2`, "Guard failed: exit 1"],
  diff: [`#/run/${RUN}/i/2/diff`, "@@"],
  guard: [`#/run/${RUN}/i/2/guard`, "error line 1 of 2"],
  prompt: [`#/run/${RUN}/i/2/prompt`, "lines"],
  output: [`#/run/${RUN}/i/2/output`, "reading the tests"],
  meta: [`#/run/${RUN}/i/2/meta`, "guard_failed"],
  file: [`#/run/${RUN}/file/to`, "changed in 1 iteration"],
  versus: [`#/run/${RUN}/i/3/versus/2`, "#2 and #3"],
  stats: [`#/run/${RUN}/stats`, "Per passed task"],
  runs: ["#/runs", "last commit"],
  nowhere: ["#/nowhere", "Not found."],
};

for (const screen of SCREENS) {
  it(`every view is complete, error-free and accessible: ${screen.colorScheme}, ${screen.width} wide`, () =>
    checkViews(browser, server, VIEWS, screen));
}

it("an exported page opens from disk and contains the whole run", async () => {
  const file = stuck.export();
  const page = await browser.newPage();
  const problems = [];
  page.on("console", (line) => line.type() === "error" && problems.push(line.text()));
  page.on("request", (request) => request.url().startsWith("file:") || problems.push(request.url()));
  for (const [name, [route, text]] of Object.entries(VIEWS)) {
    if (name === "nowhere") continue;
    await page.goto(`file://${file}${route}`);
    await page.reload();
    await page.getByText(text).filter({ visible: true }).first().waitFor();
  }
  await page.getByText("exported").first().waitFor();
  assert.deepEqual(
    problems.filter((problem) => !problem.startsWith("data:")),
    [],
  );
  await page.close();
});

describe("a stuck run", () => {
  it("shows on its first screen what happened, why, and the next steps", async () => {
    const page = await open(browser, server);
    const banner = page.getByRole("region", { name: /stuck/i });
    for (const text of [
      "failed 3 of 3 attempts",
      "guard failed",
      "thread 'numerals::four' panicked at src/to.rs:12:5:",
      "assertion failed: left IIII, right IV",
      "runner node allow to",
    ]) {
      await banner.getByText(text).first().waitFor();
    }
    assert.match(await page.title(), /^✗ 0\/2 stopped: stuck/);
    await banner.getByText("assertion failed: left IIII, right IV").click();
    await page.waitForURL(/guard\?l=302$/);
    await page.locator(".code-line.selected", { hasText: "panicked at src/to.rs:12:5" }).waitFor();
    await page.goBack();
    await banner.waitFor();
    await page.context().close();
  });

  it("can be read by keyboard: two keys lead from the overview to the failing line", async () => {
    const page = await open(browser, server);
    await page.getByRole("region", { name: /stuck/i }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.locator(".code-line.selected", { hasText: "FAILED" }).waitFor();
    await page.keyboard.press("e");
    await page.waitForURL(/l=302$|l=301$/);
    await page.keyboard.press("2");
    await page.getByText("Only files of the runner changed.").waitFor();
    await page.keyboard.press("[");
    await page.waitForURL(/i\/3\/diff$/);
    await page.keyboard.press("Escape");
    await page.getByRole("region", { name: /stuck/i }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.context().close();
  });

  it("has a tree that keys move through, collapse, filter and open", async () => {
    const page = await open(browser, server);
    const tree = page.getByRole("tree");
    await tree.focus();
    const active = (id) => page.locator(`[role="tree"][aria-activedescendant="node-${id}"]`).waitFor();
    await active("to");
    await page.keyboard.press("j");
    await active("from");
    await page.keyboard.press("Enter");
    await page.waitForURL(/node\/from$/);
    await page.getByRole("region", { name: "Task from" }).waitFor();
    await page.keyboard.press("h");
    await active("root");
    await page.keyboard.press("h");
    await page.getByRole("treeitem").nth(1).waitFor({ state: "detached" });
    await page.keyboard.press("/");
    await page.keyboard.type("numerals to");
    await page.getByRole("treeitem", { name: /Numerals to numbers/ }).waitFor();
    assert.equal(await page.getByRole("treeitem").count(), 2);
    await page.context().close();
  });

  it("has links to lines and to searches", async () => {
    const page = await open(browser, server, `#/run/${RUN}/i/2/guard?l=150-152`);
    await page.locator(".code-line.selected").first().waitFor();
    assert.equal(await page.locator(".code-line.selected").count(), 3);
    await page.getByRole("searchbox", { name: "Search the log" }).fill("N29");
    await page.keyboard.press("Enter");
    await page.getByText("1 of 11").waitFor();
    const address = page.url();
    const other = await open(browser, server, address.slice(server.url.length));
    await other.getByText("of 11").waitFor();
    await other.locator(".code-line.match").first().waitFor();
    await page.context().close();
    await other.context().close();
  });

  it("ignores single-key shortcuts that are switched off", async () => {
    const page = await open(browser, server);
    await page.getByRole("region", { name: /stuck/i }).waitFor();
    await page.getByRole("button", { name: "Keys and help" }).click();
    await page.getByRole("checkbox").uncheck();
    await page.getByRole("button", { name: "Close" }).click();
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    assert.equal(new URL(page.url()).hash, "");
    await page.context().close();
  });
});

describe("text written by agents", () => {
  it("is shown as text and never executed", async () => {
    const evil = `<img src=x onerror=alert(1)><script>alert(2)</script>\u001b]0;t\u0007\u001b[31mred\u202e\u0000${"x".repeat(1 << 20)}`;
    const repository = new Repository({
      agent: AGENT,
      guard: GUARD,
      goal: "# <b onclick=alert(3)>Goal</b>\n\n<script>alert(4)</script>\n",
    });
    repository.runner("loop");
    const folder = `.runner/iterations/${RUN}/0002`;
    for (const file of ["guard.log", "executor.log", "prompt.md", "events.jsonl", "stream.jsonl"])
      repository.write(`${folder}/${file}`, `${evil}\n`);
    repository.write(`${folder}/stream.jsonl`, `${JSON.stringify({ t: 1, raw: evil })}\n${evil}\n`);
    const events = [
      { t_ms: 1, event: "planned", path: evil.slice(0, 200), attempt: { nth: evil.slice(0, 60) } },
      { t_ms: 2, event: "agent", kind: "message", text: evil.slice(0, 300) },
      { t_ms: 3, event: "agent", kind: "<script>alert(5)</script>", raw: evil.slice(0, 300) },
    ];
    repository.write(`${folder}/events.jsonl`, events.map((event) => `${JSON.stringify(event)}\n`).join(""));
    const own = await Server.start(repository);
    const page = await open(browser, own);
    for (const tab of ["", "/guard", "/prompt", "/output", "/meta", "/diff"]) {
      await page.goto(`${own.url}#/run/${RUN}/i/2${tab}`);
      await page.locator("article h2").waitFor();
      await page.waitForLoadState("networkidle").catch(() => undefined);
      assert.equal(await page.locator("article img, article script, article b").count(), 0, tab);
    }
    await page.goto(own.url);
    await page.getByText("<b onclick=alert(3)>Goal</b>").first().waitFor();
    assert.deepEqual(page.problems, []);
    await page.context().close();
    own.stop();
    repository.remove();
  });
});
