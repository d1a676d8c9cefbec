// What people want to know about a run, each in at most two actions from the open page. An action is a click, a press of a
// key, or a text that is typed and confirmed with Enter.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { RUN, Server, cleanUp, launchBrowser, open } from "./lib.mjs";
import { storyRepository } from "./story.mjs";

const ACTIONS_MAX = 2;

let browser, live, stuck, liveServer, server;

before(async () => {
  browser = await launchBrowser();
  live = storyRepository();
  void live.loop();
  liveServer = await Server.start(live);
  stuck = storyRepository();
  stuck.touch("go");
  assert.equal(stuck.runner("loop"), 3);
  server = await Server.start(stuck);
});

after(cleanUp);

/** Opens the page, counts the actions of a task, and checks that they lead to the answer. */
function task(name, steps, { on = () => server } = {}) {
  it(name, async () => {
    const page = await open(browser, on());
    let actions = 0;
    const act = async (action) => {
      actions++;
      await action;
    };
    await page.getByRole("treeitem").first().waitFor();
    await steps(page, act);
    assert.ok(actions <= ACTIONS_MAX, `${actions} actions`);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}

const failed = () => stuck.json("log").iterations.find((row) => row.node === "rate-limit").iter;
/** Opens the palette, and types what leads to the first result: two actions. */
async function search(page, act, text) {
  await act(page.keyboard.press("Control+k"));
  const field = page.getByRole("combobox", { name: /Search tasks/ });
  const typed = async () => {
    await field.fill(text);
    await page.getByRole("dialog").getByRole("option").first().waitFor();
    await field.press("Enter");
  };
  await act(typed());
}

describe("a question is answered in at most two actions", () => {
  task("why did it stop?", (page) =>
    page.getByRole("region", { name: /stuck/i }).getByText("failed 3 of 3 attempts").first().waitFor(),
  );
  task("which test failed, and where?", (page) =>
    page.getByRole("region", { name: /stuck/i }).getByText("src/oauth.rs:4:5").first().waitFor(),
  );
  task("what did the agent do in an iteration?", async (page, act) => {
    await search(page, act, `#${Number(failed()) + 1}`);
    await page.getByText("Explored 3 files").waitFor();
  });
  task("what changed in a file over the run?", async (page, act) => {
    await search(page, act, "f:limit.rs");
    await page.getByText("changed in 2 iterations").waitFor();
    await page.getByText("Retry-After").first().waitFor();
  });
  task("which iterations touched a file?", async (page, act) => {
    await search(page, act, "f:oauth.rs");
    const list = page.getByRole("navigation", { name: "Iterations that changed the file" });
    await list.getByText("changed in 3 iterations").waitFor();
    assert.equal(await list.getByRole("listitem").count(), 3);
  });
  task("how much did a task cost?", async (page, act) => {
    await act(page.getByRole("treeitem", { name: /Limit login attempts/ }).click());
    await page
      .getByRole("region", { name: "Task rate-limit" })
      .getByText(/2 iterations, .*\$0\.76/)
      .waitFor();
  });
  task(
    "what is it doing now?",
    (page) => page.getByRole("region", { name: "Current iteration" }).getByText("Agent working").waitFor(),
    { on: () => liveServer },
  );
  task(
    "what has it changed so far?",
    async (page, act) => {
      await page.getByText("cargo test account").first().waitFor();
      const current = page.getByRole("region", { name: "Current iteration" });
      await act(current.getByRole("link", { name: /file changed/ }).click());
      await page.getByText("FAILURES_MAX").first().waitFor();
    },
    { on: () => liveServer },
  );
  task("is it trustworthy?", (page) =>
    page
      .getByRole("banner")
      .getByText(/verified, \d+ commits/)
      .waitFor(),
  );
  task("how do two attempts differ?", async (page, act) => {
    await act(page.getByRole("link", { name: /^Compare #\d+ with #\d+$/ }).click());
    const file = page.locator("details", { hasText: /^src\/oauth\.rs/ });
    for (const side of [0, 1]) await file.locator(".side").nth(side).locator(".added").nth(1).waitFor();
  });
  task("what was the agent told?", async (page, act) => {
    const list = page.getByRole("region", { name: "Iterations", exact: true });
    await act(list.getByRole("listitem").first().getByRole("link").first().click());
    await act(page.getByRole("navigation", { name: "Iteration tabs" }).getByText("prompt").click());
    await page.getByText(/^\d+ lines/).waitFor();
  });
  task("what was the first failure?", async (page, act) => {
    await act(page.getByRole("link", { name: /first failure/ }).click());
    await page.waitForURL(new RegExp(`i/${Number(failed())}/guard`));
    await page.locator(".code-line.failure", { hasText: "limit::retry_after" }).first().waitFor();
  });
  task("how do I show it to a colleague?", async (page, act) => {
    await act(page.getByRole("button", { name: "Share" }).click());
    const download = page.waitForEvent("download");
    await act(page.getByRole("button", { name: "Download" }).click());
    assert.equal((await download).suggestedFilename(), `${RUN}.html`);
    await page.getByText(/^Saved/).waitFor();
  });
});
