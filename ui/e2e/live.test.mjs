// The page follows a live run without a reload and without moving what the user reads.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { AGENT, launchBrowser, GUARD, open, Repository, RUN, Server, cleanUp } from "./lib.mjs";

let browser;

before(async () => {
  browser = await launchBrowser();
});

after(cleanUp);

/** In each iteration, the agent prints a line and waits for a file. */
const WAITS = `echo "started $RUNNER_ITER"; while ! [ -e $BASE_DIR/go-$RUNNER_ITER ]; do sleep 0.05; done\n${AGENT}`;

it("the page follows a run from start to end and keeps the user's view", async () => {
  const repository = new Repository({ agent: WAITS, guard: GUARD });
  const server = await Server.start(repository);
  const page = await open(browser, server);
  await page.getByText("not run yet").first().waitFor();
  const ended = repository.loop();
  await page.getByRole("region", { name: "Current iteration" }).getByText("Agent working").waitFor();
  await page.getByText("started 0001").waitFor();
  assert.match(await page.title(), /^▸ 0\/1 running/);
  repository.touch("go-0001");
  await page.getByRole("treeitem", { name: /Numerals to numbers/ }).waitFor();
  await page.getByText("started 0002").waitFor();
  // The address and the view stay at the first iteration while the run continues.
  await page.getByRole("button", { name: "All iterations" }).click();
  await page.getByRole("listitem").filter({ hasText: "#1" }).getByRole("link").first().click();
  await page.getByText("Outcome: split").waitFor();
  for (const iter of ["0002", "0003", "0004"]) repository.touch(`go-${iter}`);
  assert.equal(await ended, 0);
  await page.getByRole("banner").getByText("complete").waitFor();
  assert.match(page.url(), new RegExp(`#/run/${RUN}/i/1$`));
  await page.getByText("Outcome: split").waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("all 2 tasks passed").first().waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
  server.stop();
});

it("a paused run shows its state and the command to resume it", async () => {
  const repository = new Repository({ agent: AGENT, guard: GUARD });
  const server = await Server.start(repository);
  const page = await open(browser, server);
  await page.getByText("not run yet").first().waitFor();
  assert.equal(repository.runner("pause"), 0);
  await page.getByRole("banner").getByText("paused").waitFor();
  await page
    .getByRole("region", { name: /paused/i })
    .getByText("runner resume", { exact: true })
    .waitFor();
  assert.match(await page.title(), /^⊘ 0\/1 paused/);
  const ended = repository.loop();
  assert.equal(repository.runner("resume"), 0);
  assert.equal(await ended, 0);
  await page.getByRole("banner").getByText("complete").waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
  server.stop();
});

it("twelve tabs stay live, and another one takes over when the leader closes", async () => {
  const repository = new Repository({ agent: AGENT, guard: GUARD });
  assert.equal(repository.runner("loop"), 0);
  const server = await Server.start(repository);
  const first = await open(browser, server);
  await first.getByText("all 2 tasks passed").first().waitFor();
  const context = first.context();
  const pages = [];
  for (let tab = 0; tab < 11; tab++) {
    const page = await context.newPage();
    await page.goto(`${server.url}#/run/${RUN}/i/4/guard`);
    await page.getByText("300 lines").waitFor();
    pages.push(page);
  }
  const log = `.runner/iterations/${RUN}/0004/guard.log`;
  repository.write(log, "one\ntwo\n");
  for (const page of pages) await page.getByText("2 lines").waitFor();
  await first.close();
  repository.write(log, "one\ntwo\nthree\n");
  for (const page of pages) await page.getByText("3 lines").waitFor();
  await context.close();
  server.stop();
});

it("a lost connection is shown, and the data stays", async () => {
  const repository = new Repository({ agent: AGENT, guard: GUARD });
  repository.runner("loop");
  const server = await Server.start(repository);
  const page = await open(browser, server);
  await page.getByText("all 2 tasks passed").first().waitFor();
  server.stop();
  await page.getByText("Disconnected").waitFor();
  await page.getByText("all 2 tasks passed").first().waitFor();
  await page.context().close();
});
