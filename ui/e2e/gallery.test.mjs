// One run from its plan to its end, in every view. The screenshots in the documentation come from here.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { RUN, Server, cleanUp, launchBrowser, open, takePictures } from "./lib.mjs";
import { storyRepository } from "./story.mjs";

let browser, stuck, complete, server, other, ended;

before(async () => {
  browser = await launchBrowser();
  stuck = storyRepository();
  server = await Server.start(stuck);
  ended = stuck.loop();
});

after(cleanUp);

const current = (page) => page.getByRole("region", { name: "Current iteration" });

it("D17: a live run shows its session, the clock of a command and the diff of the work tree", async () => {
  await takePictures(browser, server, "running", "", async (page) => {
    // The run has six iterations behind it by then.
    await page.getByText("cargo test account").first().waitFor({ timeout: 120_000 });
    await page
      .getByText(/running \d+:\d\d/)
      .first()
      .waitFor();
    await page.getByRole("banner").getByText("4/8").waitFor();
  });
  const page = await open(browser, server);
  const clock = page.getByText(/running \d+:\d\d/).first();
  const shown = await clock.textContent();
  await page.waitForFunction(
    (before) =>
      [...document.querySelectorAll("*")].every(
        (one) => one.children.length > 0 || one.textContent !== before,
      ),
    shown,
  );
  assert.match(await clock.textContent(), /running \d+:\d\d/);
  await current(page)
    .getByRole("link", { name: /1 file changed/ })
    .click();
  await page.waitForURL(/i\/\d+\/diff$/);
  await page.getByText("Work tree, not committed yet").waitFor();
  await page.getByText("FAILURES_MAX: u32 = 10").first().waitFor();
  // What the session changes next appears without a reload.
  stuck.write("src/extra.rs", "pub fn extra() {}\n");
  await page.getByRole("link", { name: /src\/extra\.rs/ }).click();
  await page.getByText("pub fn extra()").waitFor();
  // What the middle of the overview shows is in the address.
  await page.goto(server.url);
  await page.getByRole("button", { name: "All iterations" }).click();
  await page.waitForURL(/middle=all/);
  await page.reload();
  await page.getByRole("region", { name: "Iterations", exact: true }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

it("a stuck run shows the assertion, the attempts and the next step", async () => {
  stuck.touch("go");
  assert.equal(await ended, 3);
  await takePictures(browser, server, "stuck", "", async (page) => {
    const card = page.getByRole("region", { name: /stuck/i });
    await card.getByText("runner node allow callback").waitFor();
    await card.getByText("the state was used twice").first().waitFor();
    await page
      .getByRole("banner")
      .getByText(/verified, \d+ commits/)
      .waitFor();
  });
});

it("a complete run shows its result, its files and that it is verified", async () => {
  complete = storyRepository();
  complete.touch("go");
  complete.touch("fix");
  assert.equal(complete.runner("loop"), 0);
  other = await Server.start(complete);
  await takePictures(browser, other, "complete", "", async (page) => {
    await page.getByText("all 8 tasks passed").first().waitFor();
    await page
      .getByRole("banner")
      .getByText(/verified, \d+ commits/)
      .waitFor();
    await page.getByText("runner land").first().waitFor();
  });
});

/** The second session on the login limit. */
const retry = () => complete.json("log").iterations.filter((row) => row.node === "rate-limit")[1].iter;

it("D16: an iteration shows what the agent did, beside the facts with the model", async () => {
  const iter = Number(retry());
  await takePictures(browser, other, "iteration", `#/run/${RUN}/i/${iter}`, async (page) => {
    await page.getByText("Explored 3 files").waitFor();
    await page.getByText("Committed").first().waitFor();
  });
  const page = await open(browser, other, `#/run/${RUN}/i/${iter}`, {
    viewport: { width: 1280, height: 800 },
  });
  const facts = page.getByRole("region", { name: "Facts of the iteration" });
  await facts.getByText("claude claude-sonnet-5").waitFor();
  // An edit shows its patch in place.
  await page.getByRole("button", { name: "patch" }).first().click();
  await page.getByText("saturating_sub").first().waitFor();
  await page.context().close();
});

it("a diff is highlighted, and shows the whole file on request", async () => {
  const route = `#/run/${RUN}/i/${Number(retry())}/diff`;
  await takePictures(browser, other, "diff", route, async (page) => {
    await page.getByText("saturating_sub").first().waitFor();
  });
  const page = await open(browser, other, route);
  await page.getByText("saturating_sub").first().waitFor();
  assert.equal(await page.getByText("LoginLimit {").filter({ hasText: "pub struct" }).count(), 0);
  await page.getByRole("button", { name: "whole file" }).click();
  await page.getByText("pub struct LoginLimit {").first().waitFor();
  await page.context().close();
});

it("the guard's log opens at the first failure", async () => {
  await takePictures(browser, other, "guard", `#/run/${RUN}/i/${Number(retry()) - 1}/guard`, (page) =>
    page.locator(".code-line.failure", { hasText: "limit::retry_after ... FAILED" }).waitFor(),
  );
});

it("the statistics show where time and money went", async () => {
  await takePictures(browser, other, "statistics", `#/run/${RUN}/stats`, (page) =>
    page.getByText("Agent and guard over time").waitFor(),
  );
});
