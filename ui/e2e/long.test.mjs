// A run that is longer than what the page once showed: its timeline, statistics, keys and place.

import assert from "node:assert/strict";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { AGENT, GUARD, Repository, RUN, Server, cleanUp, launchBrowser, open } from "./lib.mjs";
import { createLongRun } from "./long-run.mjs";

const ITERATIONS = 320;
let browser, repository, server;

before(async () => {
  browser = await launchBrowser();
  repository = createLongRun(ITERATIONS, { taskPerIteration: true });
  server = await Server.start(repository);
});

after(cleanUp);

const close = (page) => page.context().close();
const focusedRole = (page) => page.evaluate(() => document.activeElement?.getAttribute("role"));

/** How often Tab must be pressed until the tree has the focus. */
async function tabsToTree(page) {
  await page.getByRole("treeitem").first().waitFor();
  await page.getByRole("region", { name: "Iterations" }).getByRole("listitem").first().waitFor();
  for (let tabs = 1; tabs < 60; tabs++) {
    await page.keyboard.press("Tab");
    if ((await focusedRole(page)) === "tree") return tabs;
  }
  throw new Error("60 presses of Tab do not reach the tree");
}

describe("a run of 320 iterations", () => {
  it("D11: the timeline shows all of them, the newest at its right edge", async () => {
    const page = await open(browser, server);
    const timeline = page.getByRole("slider", { name: "Timeline" });
    await page.waitForFunction(
      (last) => document.querySelector("[role=slider]")?.getAttribute("aria-valuemax") === String(last),
      ITERATIONS,
    );
    assert.equal(await timeline.getAttribute("aria-valuemin"), "1");
    await timeline.focus();
    await page.keyboard.press("End");
    assert.match(await timeline.getAttribute("aria-valuetext"), /320/);
    await page.keyboard.press("Home");
    assert.match(await timeline.getAttribute("aria-valuetext"), /#1\b/);
    const overflow = await timeline.evaluate((one) => one.scrollWidth - one.clientWidth);
    assert.ok(overflow <= 1, `the timeline is ${overflow} px wider than what is seen of it`);
    await close(page);
  });

  it("D14: the statistics list every task, and no tile is left out silently", async () => {
    const page = await open(browser, server, `#/run/${RUN}/stats`);
    await page.getByText("319 tasks").waitFor();
    const field = page.getByRole("searchbox", { name: "Find a task" });
    const list = page.getByRole("list", { name: "Time and cost by task" });
    for (const task of ["task-5", "task-160", "task-320"]) {
      await field.fill(task);
      await list.getByText(task, { exact: true }).first().waitFor();
    }
    const map = page.getByRole("list", { name: /Tasks by/ });
    await map.getByText(/^260 more tasks: /).waitFor();
    assert.equal(await map.getByRole("listitem").count(), 60);
    await close(page);
  });

  it("D12: a new iteration does not move the list that one reads", async () => {
    const page = await open(browser, server);
    const list = page.getByRole("list", { name: "Iterations, newest first" });
    await list.getByRole("listitem").first().waitFor();
    await list.evaluate((one) => (one.scrollTop = 2900));
    const row = list.getByRole("listitem").filter({ hasText: /#268\b/ });
    await row.waitFor();
    const before = await row.boundingBox();
    const base = join(repository.root, `.runner/iterations/${RUN}`);
    cpSync(join(base, "0320"), join(base, "0321"), { recursive: true });
    await page.getByText("321 iterations").first().waitFor();
    await page.waitForFunction(
      () => document.querySelector("[aria-label='Iterations, newest first']").scrollTop > 2900,
    );
    assert.equal((await row.boundingBox()).y, before.y);
    rmSync(join(base, "0321"), { recursive: true });
    await close(page);
  });

  it("D19: the tree is as near to the keyboard as in a short run", async () => {
    const short = new Repository({ agent: AGENT, guard: GUARD });
    short.runner("loop");
    const other = await Server.start(short);
    const [few, many] = [await open(browser, other), await open(browser, server)];
    // The repeated commits violate rules: hundreds of findings, of which the first are shown.
    const more = many.getByRole("button", { name: /^Show all \d+ violations$/ });
    await more.waitFor();
    const tabs = await tabsToTree(many);
    // The card of a complete run has links of its own.
    assert.ok(tabs <= (await tabsToTree(few)) + 5, `${tabs} presses of Tab`);
    assert.ok(tabs <= 30, `${tabs} presses of Tab`);
    const violations = many.getByRole("list", { name: "Violations" }).getByRole("listitem");
    assert.equal(await violations.count(), 3);
    await more.click();
    await violations.nth(3).waitFor();
    await close(few);
    await close(many);
    other.stop();
  });
});

describe("keys", () => {
  it("D19: Page Down scrolls the log that a key opened", async () => {
    const stuck = AGENT.replace(/0003\).*;;/, "0003|0004) echo bad > to; answer done 'Again.' ;;");
    const repository = new Repository({ agent: stuck, guard: GUARD });
    repository.runner("loop");
    const own = await Server.start(repository);
    const page = await open(browser, own);
    await page.getByText("numerals::four").first().waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.waitForURL(/\/guard/);
    const log = page.getByRole("region", { name: "Log lines" });
    await log.waitFor();
    await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Log lines");
    await page.keyboard.press("Home");
    await page.waitForFunction(() => document.querySelector("[aria-label='Log lines']").scrollTop === 0);
    await page.keyboard.press("PageDown");
    await page.waitForFunction(() => document.querySelector("[aria-label='Log lines']").scrollTop > 100);
    await page.keyboard.press("1");
    await page.waitForFunction(
      () => document.activeElement?.getAttribute("aria-label") === "Transcript entries",
    );
    await close(page);
    own.stop();
  });
});
