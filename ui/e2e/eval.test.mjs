// Evaluation results in a real browser: the grid, the comparison of two runs, the run of a trial, and live updates.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, it } from "node:test";
import {
  launchBrowser,
  Evaluation,
  checkViews,
  open,
  takePictures,
  SCREENS,
  Server,
  cleanUp,
} from "./lib.mjs";

const session = (summary, ...acts) =>
  `[[session]]\nanswer = { status = "done", summary = "${summary}" }\n${acts.map((act) => `[[session.do]]\n${act}\n`).join("")}`;
const USED = "report = { input_tokens = 18200, output_tokens = 940, cost_microdollars = 38000 }";
const write = (path, text) => `write = { path = "${path}", text = "${text}" }`;
const guard = (file) =>
  `grep -q good ${file} || { echo "test ${file} ... FAILED"; exit 1; }\necho "${file} is good"\n`;
const CASES = {
  "counts-words": {
    goal: "Count the words of a text",
    guard: guard("words"),
    solution: session("All words are counted.", write("words", "good"), USED),
  },
  "learns-from-the-guard": {
    goal: "Write a greeting",
    guard: guard("greeting"),
    solution:
      session("A greeting.", write("greeting", "bad"), USED).replace(
        "answer",
        "when = { attempts = 0 }\nanswer",
      ) + session("A better greeting.", write("greeting", "good"), USED),
  },
  "repairs-a-ledger": {
    goal: "Repair the balance of a ledger",
    guard: guard("ledger"),
    solution: session("It balances.", write("ledger", "good"), USED),
  },
};

let browser, suite, server;

before(async () => {
  browser = await launchBrowser();
  suite = new Evaluation();
  for (const [name, one] of Object.entries(CASES)) suite.add(name, one);
  assert.equal(await suite.run("monday", "--agent", "oracle", "--agent", "nop", "--trials", "2"), 0);
  assert.equal(await suite.run("tuesday", "--agent", "oracle", "--trials", "3"), 0);
  server = await Server.start(suite, "--eval");
});

after(cleanUp);

const TRIAL = "#/trial/learns-from-the-guard/monday.oracle.t01.a1";
const VIEWS = {
  results: ["", "9 of 9 trials done"],
  "results-agents": ["#/results/monday", "12 of 12 trials done"],
  compare: ["#/compare?base=monday@nop&new=tuesday", "the new results are better"],
  "compare-alike": ["#/compare?base=monday@oracle&new=tuesday", "neither a difference"],
  trial: [TRIAL, "the task passed"],
  "trial-stuck": ["#/trial/counts-words/monday.nop.t02.a1", "test words ... FAILED"],
  "trial-latest": ["#/trial/counts-words/latest", "following the newest trial"],
  "trial-none": ["#/trial/counts-words/none", "has no trial"],
};

for (const screen of SCREENS) {
  it(`every view of an evaluation is complete, error-free and accessible: ${screen.colorScheme}, ${screen.width} wide`, async () => {
    const { "trial-none": none, ...views } = VIEWS;
    await checkViews(browser, server, views, screen);
    const page = await open(browser, server, none[0]);
    await page.getByText(none[1]).first().waitFor();
    await page.context().close();
  });
}

it("links lead from the grid to a trial's failing line, and the back button leads back", async () => {
  const page = await open(browser, server, "#/results/monday");
  const rows = page.getByRole("listitem").filter({ hasText: "learns-from-the-guard" });
  await rows
    .filter({ hasText: "success" })
    .getByRole("link", { name: /success/i })
    .first()
    .click();
  await page.waitForURL(/#\/trial\/learns-from-the-guard\/monday\.oracle\.t01\.a1$/);
  const bar = page.getByRole("region", { name: "Trial" });
  for (const text of ["oracle, trial 1", "success", "2 of 2 checks passed"])
    await bar.getByText(text).waitFor();
  await page
    .getByRole("region", { name: "Iterations" })
    .getByRole("listitem")
    .filter({ hasText: "#1" })
    .getByRole("link")
    .click();
  await page.waitForURL(/monday\.oracle\.t01\.a1\/run\/[^/]+\/i\/1\/guard$/);
  await page.getByText("test greeting ... FAILED").first().waitFor();
  const raw = await page.getByRole("link", { name: "raw" }).getAttribute("href");
  assert.match(raw, /^\/trial\/learns-from-the-guard\/monday\.oracle\.t01\.a1\/api\//);
  await page.keyboard.press("2");
  await page.getByText("@@").first().waitFor();
  const address = page.url();
  await page.goBack();
  await page.goBack();
  await bar.waitFor();
  await page.goBack();
  await page.getByText("12 of 12 trials done").waitFor();
  assert.match(page.url(), /#\/results\/monday$/);
  const other = await open(browser, server, new URL(address).hash);
  await other.getByText("@@").first().waitFor();
  for (const one of [page, other]) {
    assert.deepEqual(one.problems, []);
    await one.context().close();
  }
});

it("keys move through the grid, and Escape leads back to it", async () => {
  const page = await open(browser, server, "#/results/monday");
  await page.getByText("12 of 12 trials done").waitFor();
  await page.locator("a.cell").first().focus();
  const href = () => page.evaluate(() => document.activeElement.getAttribute("href"));
  assert.match(await href(), /counts-words\/monday\.nop\.t01/);
  await page.keyboard.press("l");
  assert.match(await href(), /counts-words\/monday\.nop\.t02/);
  await page.keyboard.press("ArrowDown");
  assert.match(await href(), /learns-from-the-guard\/monday\.nop\.t02/);
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: /stuck/i }).waitFor();
  assert.equal(await page.getByText("Next steps").count(), 0);
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { name: "Results" }).waitFor();
  await page.context().close();
});

it("every case is shown with every agent, and leads to its trial", async () => {
  await takePictures(browser, server, "evaluation", "#/results/monday", async (page) => {
    await page.getByText("12 of 12 trials done").waitFor();
  });
  const page = await open(browser, server, "#/results/monday");
  const row = page.getByRole("row").filter({ hasText: "learns-from-the-guard" });
  await row.getByRole("link", { name: /0\/2/ }).click();
  await page.waitForURL(/trial\/learns-from-the-guard\/monday\.nop/);
  await page.goto(`${server.url}#/compare?base=monday@nop&new=tuesday`);
  const pair = page.getByRole("row").filter({ hasText: "counts-words" });
  await pair.getByRole("link", { name: "3/3" }).click();
  await page.waitForURL(/trial\/counts-words\/tuesday/);
  await page.context().close();
});

it("a comparison has the tone of its verdict", async () => {
  for (const [name, tone] of [
    ["compare", "pass"],
    ["compare-alike", "open"],
  ]) {
    const page = await open(browser, server, VIEWS[name][0]);
    const conclusion = page.locator(`.conclusion`, { hasText: VIEWS[name][1] });
    await conclusion.waitFor();
    assert.match(await conclusion.getAttribute("class"), new RegExp(`tone-${tone}`), name);
    await page.context().close();
  }
});

it("two selected runs are compared", async () => {
  const page = await open(browser, server, "#/compare");
  await page.getByRole("combobox", { name: "Baseline" }).selectOption("monday@nop");
  await page.getByRole("combobox", { name: "Candidate" }).selectOption("tuesday");
  await page.getByText("3 better, 0 same, 0 worse of 3 cases").waitFor();
  assert.match(page.url(), /compare\?base=monday%40nop&new=tuesday$/);
  await page.context().close();
});

it("results appear live, and `latest` follows the newest trial", async () => {
  const waits = new Evaluation();
  const script = `while ! [ -e ${waits.base}/go ]; do sleep 0.05; done; rm ${waits.base}/go`;
  const solution = session(
    "It is there.",
    `run = { argv = ["sh", "-c", "${script}"] }`,
    write("words", "good"),
  );
  waits.add("waits", { ...CASES["counts-words"], solution });
  const own = await Server.start(waits, "--eval", ".", "--case", "waits");
  assert.match(own.url, /#\/trial\/waits\/latest$/);
  const follower = await open(browser, own);
  const url = own.url.split("#")[0];
  const grid = await open(browser, { url });
  await grid.getByText("No results in").waitFor();
  // Isolated, the trial could not see the file that it waits for.
  const ended = waits.run("live", "--agent", "oracle", "--trials", "2", "--isolation", "off");
  const bar = follower.getByRole("region", { name: "Trial" });
  await bar.getByText("oracle, trial 1").waitFor();
  await follower.getByRole("banner").getByText("running").waitFor();
  await grid.getByRole("link", { name: /running/i }).waitFor();
  waits.touch("go");
  await grid.getByRole("link", { name: /success/i }).waitFor();
  await bar.getByText("oracle, trial 2").waitFor();
  await follower.getByRole("banner").getByText("running").waitFor();
  while (existsSync(join(waits.base, "go"))) await new Promise((done) => setTimeout(done, 50));
  waits.touch("go");
  assert.equal(await ended, 0);
  await grid.getByText("2 of 2 trials done").waitFor();
  await follower.getByRole("banner").getByText("complete").waitFor();
  assert.match(follower.url(), /#\/trial\/waits\/latest$/);
  for (const one of [follower, grid]) await one.context().close();
  own.stop();
});
