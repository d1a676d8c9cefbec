// The checks of tasks, and what they prove.

import assert from "node:assert/strict";
import { after, it } from "node:test";
import { Repository, RUN, Server, accessibility, cleanUp, launchBrowser, open } from "./lib.mjs";

after(cleanUp);

it("the coverage, each criterion and each check are shown with red and green", async () => {
  const browser = await launchBrowser();
  const repository = new Repository({
    agent: 'echo IV > numerals; answer done "Four is IV."',
    guard: "true",
  });
  const criteria = ["--acceptance", "four is IV", "--acceptance", "the code is short"];
  assert.equal(repository.runner("node", "edit", "root", ...criteria), 0);
  const check = ["--name", "four", "--command", "grep -q IV numerals", "--covers", "1"];
  assert.equal(repository.runner("node", "check", "add", "root", ...check), 0);
  const own = await Server.start(repository);
  const page = await open(browser, own, `#/run/${RUN}/node/root`);
  const task = page.getByRole("region", { name: "Task root" });
  await task.getByText("held back").waitFor();
  await task.getByText("pending").waitFor();
  assert.equal(repository.runner("loop"), 0);
  await task.getByText("green").waitFor();
  await task.getByText("✓ proven").waitFor();
  await task.getByText("in prose").waitFor();
  await page.goto(own.url);
  await page.getByText("acceptance: 1 of 2 points proven, 1 in prose").waitFor();
  await page.goto(`${own.url}#/run/${RUN}/i/1`);
  await page.getByText("failed before, exit 0 after").filter({ visible: true }).waitFor();
  await page.getByText("in a room").filter({ visible: true }).waitFor();
  assert.deepEqual(await accessibility(page), []);
  await page.context().close();
  own.stop();
});
