// One test for each defect that was once found in the page.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { AGENT, GUARD, Repository, RUN, Server, cleanUp, launchBrowser, open } from "./lib.mjs";

const used = (cost) =>
  `printf '{"usage": {"input_tokens": 182000, "cached_input_tokens": 91000, "output_tokens": 9400${cost}}}' > "$RUNNER_REPORT"\n`;
/** Four sessions cost $7.678: that is $7.67 rounded down, and $7.68 to the nearest cent. */
const COST = used(`, "cost_microdollars": 1919500`);
const BUDGET = "[budget]\nrun_usd = 20\n";
const STUCK = AGENT.replace(/0003\).*;;/, "0003|0004) echo bad > to; answer done 'Fixed for good.' ;;");

let browser, complete, server;

before(async () => {
  browser = await launchBrowser();
  const agent = AGENT.replace("0002) ", "0002) echo '# no tests' >> guard.sh; ");
  const goal = "# Roman numerals\n\nNumbers to numerals **and back**.\n";
  complete = new Repository({ agent: COST + agent, guard: GUARD, config: BUDGET, goal });
  assert.equal(complete.runner("loop"), 0);
  server = await Server.start(complete);
});

after(cleanUp);

/** What `runner status` prints. */
function statusText(repository) {
  const folder = process.env.RUNNER_BIN ?? join(import.meta.dirname, "../../target/debug");
  const options = { cwd: repository.root, env: repository.env };
  return String(execFileSync(join(folder, "runner"), ["status", "--color", "never"], options));
}

const trimmed = (texts) => texts.map((text) => text.trim());
const close = (page) => page.context().close();
const header = (page) => page.getByRole("banner");

describe("what the page claims is true", () => {
  it("D1: a sound run is verified without being asked, with the real number of commits", async () => {
    const page = await open(browser, server);
    const { commits } = complete.json("verify");
    assert.ok(commits.length > 4);
    await header(page).getByText(`verified, ${commits.length} commits`).waitFor();
    await page
      .getByRole("region", { name: /complete/i })
      .getByText("runner land")
      .waitFor();
    await close(page);
  });

  it("D1: a forged run is untrusted, each violation is listed, and nothing advises to merge it", async () => {
    const forged = new Repository({ agent: AGENT, guard: GUARD });
    assert.equal(forged.runner("loop"), 0);
    execFileSync("sed", [
      "-i",
      "s/Numbers to numerals/Sneaky/",
      join(forged.root, ".runner/state/tree.json"),
    ]);
    forged.git("commit", "-qam", "sneaky");
    const own = await Server.start(forged);
    const page = await open(browser, own);
    const card = page.getByRole("region", { name: /untrusted/i });
    await card.getByText("verification failed").waitFor();
    assert.match(await page.title(), /^✗ 2\/2 untrusted/);
    await header(page).getByText("untrusted").waitFor();
    assert.ok((await card.getByRole("list", { name: "Violations" }).getByRole("listitem").count()) > 0);
    // One sentence for each rule, with the title of the task; the rest on request.
    const violations = card.getByRole("list", { name: "Violations" });
    await violations.getByText(/^changed .*"Sneaky" after (it|they) had passed$/).waitFor();
    await violations.getByText('is not a commit of the runner: "sneaky"').waitFor();
    assert.equal(await violations.getByText("passed_changed").first().isVisible(), false);
    await violations.getByText("Details").first().click();
    await violations.getByText("passed_changed").first().waitFor();
    assert.doesNotMatch(await card.textContent(), /\bnode\b/);
    // Nothing that the run claims is drawn as a success.
    assert.equal(await header(page).locator(".strip.untrusted").count(), 1);
    const colours = await page.evaluate(() => {
      const passes = document.querySelectorAll("main [role=tree] .tone-pass, main [data-bar] .tone-pass");
      const probe = document.querySelector("main").appendChild(document.createElement("i"));
      probe.style.color = "var(--open)";
      return [probe, ...passes].map((one) => getComputedStyle(one).color);
    });
    assert.ok(colours.length > 3, "passed tasks and bars are drawn");
    assert.deepEqual(new Set(colours).size, 1, "none of them is green");
    assert.equal(await card.getByRole("img", { name: /tasks passed for/ }).count(), 0);
    await card.getByText("runner verify demo").first().waitFor();
    assert.equal(await page.getByText("runner land").count(), 0);
    assert.equal(await card.getByText('{"').count(), 0);
    // The list of runs says the same, and does not paint the run green.
    await page.goto(`${own.url}#/runs`);
    const row = page.getByRole("row", { name: new RegExp(RUN) });
    await row.getByText("Untrusted").waitFor();
    await row.getByText("verification failed").waitFor();
    assert.equal(await row.getByText("Complete").count(), 0);
    assert.equal(await row.locator(".tone-pass").count(), 0);
    await close(page);
    own.stop();
  });

  it("D2: money is that of the command line, estimated or not, and unknown is a dash", async () => {
    const page = await open(browser, server);
    await header(page).getByText("$7.67 of $20.00").waitFor();
    assert.match(statusText(complete), /\$7\.67 of \$20\.00/);
    await page
      .getByRole("region", { name: /complete/i })
      .getByText("$7.67")
      .first()
      .waitFor();
    await page.goto(`${server.url}#/run/${RUN}/stats`);
    await page.locator("dl .panel", { hasText: "Cost" }).getByText("$7.67", { exact: true }).waitFor();
    await close(page);
    const priced = new Repository({
      agent: used("") + AGENT,
      guard: GUARD,
      config: `${BUDGET}[prices.command]\ninput = 3.0\noutput = 15.0\n`,
    });
    const unknown = new Repository({ agent: AGENT, guard: GUARD, config: BUDGET });
    priced.runner("loop");
    const [estimate] = /\$\d+\.\d\d of \$20\.00 \(estimated\)/.exec(statusText(priced));
    const amount = estimate.replace(" of $20.00", "");
    const first = await Server.start(priced);
    const estimated = await open(browser, first);
    await header(estimated).getByText(estimate).waitFor();
    await estimated
      .getByRole("region", { name: /complete/i })
      .getByText(amount)
      .first()
      .waitFor();
    await estimated.goto(`${first.url}#/run/${RUN}/stats`);
    await estimated.locator("dl .panel", { hasText: "Cost" }).getByText(amount, { exact: true }).waitFor();
    await estimated.goto(`${first.url}#/runs`);
    await estimated.getByRole("cell", { name: amount }).waitFor();
    await close(estimated);
    first.stop();
    unknown.runner("loop");
    const second = await Server.start(unknown);
    const other = await open(browser, second);
    await header(other).getByText("– of $20.00").waitFor();
    assert.equal(await header(other).getByText("$0.00").count(), 0);
    await other.goto(`${second.url}#/run/${RUN}/stats`);
    await other.locator("dl .panel", { hasText: "Cost" }).getByText("–", { exact: true }).waitFor();
    await close(other);
    second.stop();
  });

  it("D2: a fork shows what the runs before it cost, like the command line", async () => {
    const repository = new Repository({ agent: COST + AGENT, guard: GUARD, config: BUDGET });
    repository.runner("loop");
    assert.equal(repository.runner("fork", "3", "--id", "again"), 0);
    assert.equal(repository.runner("loop"), 0);
    const [spent] = /\$\d+\.\d\d of \$20\.00/.exec(statusText(repository));
    const amount = spent.replace(" of $20.00", "");
    const own = await Server.start(repository);
    const page = await open(browser, own);
    await header(page).getByText(spent).waitFor();
    await page.goto(`${own.url}#/run/again/stats`);
    await page.locator("dl .panel", { hasText: "Cost" }).getByText(amount, { exact: true }).waitFor();
    await page.getByRole("img", { name: `2 of 2 tasks passed for ${amount}` }).waitFor();
    await close(page);
    own.stop();
  });

  it("D2: the lines of a complete run are its net change", async () => {
    const page = await open(browser, server);
    // `to` is written twice with one line each: the run adds two lines, and removes none.
    const files = page
      .getByRole("region", { name: /complete/i })
      .getByRole("heading", { name: /2 files changed/ });
    await files.waitFor();
    assert.match(await files.innerText(), /\+2\s+−0/);
    await close(page);
  });

  it("the changes of a complete run are reviewed as a whole", async () => {
    const page = await open(browser, server);
    await page.getByRole("link", { name: "Review the changes" }).click();
    await page.waitForURL(/\/i\/4\/diff\?since=run$/);
    const files = page.getByRole("navigation", { name: "Changed files" });
    for (const name of ["to", "from"]) await files.getByText(name, { exact: true }).waitFor();
    await files.getByText("to", { exact: true }).click();
    await page.waitForURL(/\/diff\/to\?since=run$/);
    await page.getByText("good", { exact: true }).waitFor();
    // Only what the iteration itself changed.
    await page.getByRole("button", { name: "since the run's start" }).click();
    await files.getByText("to", { exact: true }).waitFor({ state: "detached" });
    await files.getByText("from", { exact: true }).waitFor();
    await close(page);
  });

  it("D2: a clone shows the cost, and no time that it does not know", async () => {
    const clone = { root: join(complete.base, "clone"), env: complete.env };
    complete.git("switch", "-q", "main");
    execFileSync("git", ["clone", "-q", complete.root, clone.root], { env: complete.env });
    complete.git("switch", "-q", "runner/demo");
    const own = await Server.start(clone);
    const page = await open(browser, own);
    await header(page).getByText("$7.67").waitFor();
    await page.getByRole("region", { name: "Iterations" }).getByRole("listitem").first().waitFor();
    assert.equal(await page.getByText("0.0 s").count(), 0);
    // What an iteration is annotated with is a sentence, not the machine's `edited added=2 removed=0`.
    assert.equal(await page.getByText(/\w+=\d/).count(), 0);
    await page.goto(`${own.url}#/run/${RUN}/i/2`);
    await page.getByText("they stay on the machine that made the run").waitFor();
    await close(page);
    own.stop();
  });

  it("D13: the empty page does not advise to start with the template's goal", async () => {
    const repository = new Repository({ agent: AGENT, guard: GUARD });
    repository.git("switch", "-q", "main");
    repository.git("branch", "-qD", "runner/demo");
    execFileSync("rm", ["-rf", join(repository.root, ".runner")]);
    repository.runner("init");
    const own = await Server.start(repository);
    const page = await open(browser, own);
    await page.getByText("GOAL.md").first().waitFor();
    assert.equal(await page.getByText("runner init").count(), 0);
    await close(page);
    own.stop();
  });

  it("D16: cached tokens are shown with the facts of an iteration", async () => {
    const page = await open(browser, server, `#/run/${RUN}/i/2`);
    await page
      .getByRole("region", { name: "Facts of the iteration" })
      .getByText("182k (50 % cached)")
      .waitFor();
    await close(page);
  });

  it("D20, D21, D29: last failure, merge advice and the guard's exit are right", async () => {
    const page = await open(browser, server, `#/run/${RUN}/i/1`);
    const facts = page.getByRole("region", { name: "Facts of the iteration" });
    await facts.getByText("not run").waitFor();
    assert.equal(await facts.getByText("none").count(), 0);
    await page.goto(server.url);
    await page.getByText("runner land").first().waitFor();
    assert.equal(await page.getByText("git switch main").count(), 0);
    await close(page);
    const crashes = STUCK.replace("0003|0004)", "0003) kill -9 $$ ;; 0004)");
    const repository = new Repository({ agent: crashes, guard: GUARD });
    repository.runner("loop", "--max-iterations", "3");
    const own = await Server.start(repository);
    const other = await open(browser, own, `#/run/${RUN}/node/to`);
    const task = other.getByRole("region", { name: "Task to" });
    await task.getByText("Last failure").waitFor();
    await task.locator("h3:has-text('Last failure') + p", { hasText: "#3" }).waitFor();
    await close(other);
    own.stop();
  });

  it("the goal of a task is shown as Markdown", async () => {
    const page = await open(browser, server, `#/run/${RUN}/node/root`);
    const task = page.getByRole("region", { name: "Task root" });
    await task.locator("strong", { hasText: "and back" }).waitFor();
    assert.equal(await task.getByText("**").count(), 0);
    await close(page);
  });

  it("D30: questions of agents are shown with their answers", async () => {
    const page = await open(browser, server);
    await header(page).getByText("complete").waitFor();
    complete.write(
      ".runner/state/questions.md",
      "# Questions\n\nWhich port?\n> Answer from the user: 8080\n\nTabs or spaces?\n",
    );
    const questions = page.getByRole("region", { name: "Questions of agents" });
    await questions.getByText("8080").waitFor();
    await questions.getByText('runner answer 2 "…"').waitFor();
    complete.git("checkout", "-q", ".runner/state/questions.md");
    await close(page);
  });
});

/** Each iteration prints more than a screenful, starts a long command and waits for a file. */
const CHATTY = `i=1; while [ $i -le 400 ]; do echo "line $i of $RUNNER_ITER"; [ $((i % 40)) = 0 ] && sleep 1.1; i=$((i + 1)); [ $i -gt 120 ] && break; done
while ! [ -e $BASE_DIR/go-$RUNNER_ITER ]; do echo "tick $RUNNER_ITER"; sleep 1.2; done\n${AGENT}`;

describe("a live run", () => {
  it("D3, D4: follow survives loading, and a new iteration is announced, not forced", async () => {
    const repository = new Repository({ agent: CHATTY, guard: GUARD });
    const own = await Server.start(repository);
    const ended = repository.loop();
    for (const height of [420, 800]) {
      const page = await open(browser, own, "", { viewport: { width: 1280, height } });
      const follow = page.getByRole("button", { name: "follow" });
      await page.getByText("tick 0001").first().waitFor();
      await page.waitForTimeout(2500);
      assert.equal(await follow.getAttribute("aria-pressed"), "true", `follow at ${height}`);
      await close(page);
    }
    const page = await open(browser, own, "", { viewport: { width: 1280, height: 500 } });
    await page.getByText("tick 0001").first().waitFor();
    const list = page.getByRole("list", { name: "Transcript entries" });
    await list.hover();
    await page.mouse.wheel(0, -4000);
    const follow = page.getByRole("button", { name: "follow" });
    await page.waitForFunction(() => document.querySelector("[aria-pressed=false]") !== null);
    assert.equal(await follow.getAttribute("aria-pressed"), "false");
    repository.touch("go-0001");
    await page.getByRole("button", { name: /#2 has started/ }).waitFor();
    await page.getByRole("button", { name: "Live #1" }).waitFor();
    assert.equal(await list.getByText("of 0002").count(), 0);
    await page.getByRole("button", { name: /#2 has started/ }).click();
    await page.getByText("line 1 of 0002").first().waitFor();
    for (const iter of ["0002", "0003", "0004"]) repository.touch(`go-${iter}`);
    assert.equal(await ended, 0);
    await close(page);
    own.stop();
  });

  it("D7, D8: a failed view and the stream recover when the server is back", async () => {
    const repository = new Repository({ agent: AGENT, guard: GUARD });
    repository.runner("loop");
    const first = await Server.start(repository);
    const port = new URL(first.url).port;
    const page = await open(browser, first);
    await page.getByText("all 2 tasks passed").first().waitFor();
    first.stop();
    await page.getByText("Disconnected").waitFor();
    await page.evaluate((run) => (location.hash = `#/run/${run}/i/2/guard`), RUN);
    await page.getByText("Cannot reach the server").first().waitFor();
    const second = await Server.start(repository, "--port", port);
    await page.locator("footer .live").waitFor();
    await page.getByText("numerals::four").first().waitFor();
    await page.getByText("Cannot reach the server").first().waitFor({ state: "detached" });
    await close(page);
    second.stop();
  });

  it("D7: a transcript and a log recover after one error response of the server", async () => {
    const page = await open(browser, server);
    for (const [tab, log, text] of [
      ["", "events", "Guard failed: exit 1"],
      ["/guard", "guard", "numerals::four"],
    ]) {
      let refused = 0;
      const error = { code: "busy", message: "The server is busy." };
      const path = new RegExp(`/log/${log}\\?`);
      await page.route(path, (route) =>
        refused++ === 0 ? route.fulfill({ status: 503, json: { error } }) : route.continue(),
      );
      await page.goto(`${server.url}#/run/${RUN}/i/2${tab}`);
      await page.getByText(error.message).first().waitFor();
      assert.equal(await page.getByText("they stay on the machine").count(), 0);
      await page.getByText(text).first().waitFor();
      await page.getByText(error.message).first().waitFor({ state: "detached" });
      await page.unroute(path);
    }
    await close(page);
  });

  it("D7: a view whose script could not be loaded appears later", async () => {
    const page = await open(browser, server);
    await page.route("**/views.js", (route) => route.abort());
    await page.reload();
    await page.getByText("all 2 tasks passed").first().waitFor();
    await page.evaluate((run) => (location.hash = `#/run/${run}/i/2/guard`), RUN);
    await page.getByText("Cannot reach the server").first().waitFor();
    await page.unroute("**/views.js");
    await page.getByText("numerals::four").first().waitFor();
    await close(page);
  });

  it("D8: the stream is tried again after an error response", async () => {
    const page = await open(browser, server);
    await page.locator("footer .live").waitFor();
    let refused = 0;
    await page.route("**/events?*", (route) =>
      refused++ < 2 ? route.fulfill({ status: 503 }) : route.continue(),
    );
    await page.reload();
    await page.getByText("Disconnected").waitFor();
    await page.locator("footer .live").waitFor();
    assert.equal(refused >= 2, true);
    await close(page);
  });

  it("D27: a repository that is gone is said to be, once, and read again when it is back", async () => {
    const repository = new Repository({ agent: AGENT, guard: GUARD });
    repository.runner("loop");
    const own = await Server.start(repository);
    const opened = await open(browser, own);
    await opened.getByText("all 2 tasks passed").first().waitFor();
    await opened.locator("footer .live").waitFor();
    const away = `${repository.root}.away`;
    const message = `The repository is no longer at ${repository.root}`;
    renameSync(repository.root, away);
    const page = await open(browser, own);
    for (const tab of [page, opened]) {
      await tab.getByText(message).waitFor();
      assert.equal(await tab.getByText(message).count(), 1);
      assert.equal(await tab.getByText(/could not run|\/git\b/).count(), 0);
      assert.equal(await tab.locator("footer .live").count(), 0);
    }
    // What was read before stays.
    assert.ok((await opened.getByText("all 2 tasks passed").count()) > 0);
    await page.goto(`${own.url}#/run/${RUN}/i/2`);
    await page.waitForTimeout(500);
    assert.equal(await page.getByText(message).count(), 1);
    renameSync(away, repository.root);
    await page
      .getByRole("region", { name: "Facts of the iteration" })
      .getByText("All numbers from 1 to 3999.")
      .waitFor();
    for (const tab of [page, opened]) {
      await tab.getByText(message).waitFor({ state: "detached" });
      await tab.locator("footer .live").waitFor();
      await close(tab);
    }
    own.stop();
  });
});

describe("loading", () => {
  it("reads nothing twice: a loaded overview takes five requests", async () => {
    const page = await open(browser, server);
    await header(page).getByText("verified, ").waitFor();
    await page.getByText("1 file changed").or(page.getByText("files changed")).first().waitFor();
    const urls = [];
    page.on("request", (request) => urls.push(request.url()));
    await page.reload();
    await page.getByRole("treeitem").first().waitFor();
    await page.getByRole("region", { name: "Task root" }).getByText("Goal").waitFor();
    await page.locator("footer .live").waitFor();
    await page.waitForTimeout(2500);
    const paths = urls.filter((url) => !url.startsWith("data:")).map((url) => new URL(url).pathname);
    const needed = paths.filter((path) => !/(lazy-)?views\.js$/.test(path));
    const expected = ["/", "/api/overview", "/assets/app.css", "/assets/page.js", "/events"];
    assert.deepEqual(needed.filter((path) => path !== "/assets/app.js").sort(), expected, paths.join(" "));
    await close(page);
  });

  it("a change that happens while the page loads is shown", async () => {
    const repository = new Repository({ agent: AGENT, guard: GUARD });
    const own = await Server.start(repository);
    const page = await open(browser, own);
    await page.getByText("not run yet").first().waitFor();
    // The stream opens late: it continues from the event that the snapshot names.
    await page.route("**/events?*", async (route) => {
      await new Promise((done) => setTimeout(done, 1500));
      await route.continue();
    });
    await page.reload();
    await page.getByText("not run yet").first().waitFor();
    repository.runner("step");
    await page.getByText("#1").first().waitFor();
    await close(page);
    own.stop();
  });
});

describe("layout and place", () => {
  it("D5: the header with cost and budget fits every screen, and the state is never cut", async () => {
    for (const width of [1440, 1100, 1024, 844, 820, 720, 701, 700, 390, 360, 320]) {
      const page = await open(browser, server, "", { viewport: { width, height: 800 } });
      await header(page).getByText("$7.67").waitFor();
      await header(page).getByText("verified, ").waitFor();
      const badge = header(page).locator(".badge.strong");
      const cut = await badge.evaluate((element) => element.scrollWidth - element.clientWidth);
      assert.ok(cut <= 0, `the state is cut by ${cut} px at ${width}`);
      const goal = await header(page)
        .locator("h1")
        .evaluate((element) => element.clientWidth);
      assert.ok(goal >= 100, `the goal has ${goal} px at ${width}`);
      const tops = await header(page)
        .locator(".tools > *")
        .evaluateAll((tools) => tools.map((tool) => tool.getBoundingClientRect().top));
      const top = (await badge.boundingBox()).y;
      assert.ok(Math.max(...tops) < top + 24, `the tools are in a row of their own at ${width}`);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} px at ${width}`);
      for (const name of ["Share", "Keys and help"]) {
        const box = await header(page).getByRole("button", { name }).boundingBox();
        assert.ok(box && box.x >= 0 && box.x + box.width <= width, `${name} at ${width}`);
      }
      await close(page);
    }
  });

  it("D11, D19: the timeline shows the whole run and is one tab stop", async () => {
    const page = await open(browser, server);
    const timeline = page.getByRole("slider", { name: "Timeline" });
    await timeline.focus();
    assert.equal(await timeline.getAttribute("aria-valuemin"), "1");
    assert.equal(await timeline.getAttribute("aria-valuemax"), "4");
    await page.keyboard.press("ArrowLeft");
    assert.match(await timeline.getAttribute("aria-valuetext"), /^#3 /);
    await page.keyboard.press("Enter");
    await page.waitForURL(/i\/3$/);
    await close(page);
  });

  it("D12: filters are in the address and stay after Back and a reload", async () => {
    const page = await open(browser, server, `#/run/${RUN}`);
    await page.getByRole("searchbox", { name: /Filter the tree/ }).fill("numerals to");
    await page.getByRole("combobox", { name: /Filter iterations/ }).selectOption("failed");
    await page.waitForURL(/q=numerals\+to&outcome=failed/);
    await page.getByRole("region", { name: "Iterations" }).getByRole("link").first().click();
    await page.waitForURL(/i\/2\/guard/);
    await page.goBack();
    await page.reload();
    await page.getByRole("treeitem").first().waitFor();
    await page.getByRole("region", { name: "Iterations" }).getByRole("listitem").first().waitFor();
    assert.equal(await page.getByRole("searchbox", { name: /Filter the tree/ }).inputValue(), "numerals to");
    assert.equal(await page.getByRole("treeitem").count(), 2);
    assert.equal(await page.getByRole("region", { name: "Iterations" }).getByRole("listitem").count(), 1);
    await close(page);
  });

  it("D14: the statistics list every task by its title, sorted as wanted", async () => {
    const page = await open(browser, server, `#/run/${RUN}/stats`);
    const list = page.getByRole("list", { name: "Time and cost by task" });
    await list.getByText("Numbers to numerals").waitFor();
    await page.getByRole("button", { name: "Sort by task" }).click();
    assert.match(await list.getByRole("listitem").first().textContent(), /Numbers to numerals/);
    await page.getByRole("searchbox", { name: "Find a task" }).fill("numerals to");
    await page.getByText("1 of 3 tasks").waitFor();
    await close(page);
  });

  it("D15: titles cannot reorder the text around them, and joined emoji stay whole", async () => {
    const title = "evil\u202eexe.live \u{1f468}\u200d\u{1f469}\u200d\u{1f467}";
    const family = "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}";
    const persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645";
    const agent = AGENT.replace("Numerals to numbers", title);
    const goal = `# Roman \u202e${family} ${persian}\n\nNumbers to numerals and back.\n`;
    const repository = new Repository({ agent, guard: GUARD, goal });
    repository.runner("loop");
    const own = await Server.start(repository);
    const page = await open(browser, own, `#/run/${RUN}/node/from`);
    await page.getByRole("region", { name: "Task from" }).getByText(family).first().waitFor();
    await header(page).getByText(`Roman ${family} ${persian}`).waitFor();
    const texts = await page.evaluate(() => document.body.innerText);
    assert.ok(!texts.includes("\u202e"));
    await page.goto(`${own.url}#/run/${RUN}/i/1/diff`);
    await page.getByRole("link", { name: `evilexe.live ${family}` }).waitFor();
    await close(page);
    own.stop();
  });

  it("D19, D24: keys move in the tree, and copying is confirmed", async () => {
    const page = await open(browser, server);
    await page.getByRole("treeitem").first().waitFor();
    await page.keyboard.press("j");
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "tree");
    await page.keyboard.press("Y");
    await page
      .getByText(/runner status|runner show/)
      .last()
      .waitFor();
    await close(page);
  });

  it("D18: a deep link to a task works when the list of iterations is late", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const problems = [];
    page.on("pageerror", (error) => problems.push(error.message));
    await page.route("**/api/iterations*", async (route) => {
      await new Promise((done) => setTimeout(done, 1500));
      await route.continue();
    });
    await page.goto(`${server.url}#/run/${RUN}/node/to`);
    await page.getByRole("region", { name: "Task to" }).getByText("#3").first().waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  });

  it("D22: the diff of a split names the new tasks in groups", async () => {
    const page = await open(browser, server, `#/run/${RUN}/i/1/diff`);
    const added = page.getByRole("list", { name: "2 tasks added" });
    await added.waitFor();
    // In the order of the tree, which is neither that of the titles nor that of the ids.
    assert.deepEqual(await added.getByRole("listitem").allTextContents().then(trimmed), [
      "Numbers to numerals",
      "Numerals to numbers",
    ]);
    await page.getByText("Only files of the runner changed.").waitFor();
    assert.equal(await page.locator(".code-line").count(), 0);
    await page.goto(`${server.url}#/run/${RUN}/i/2/diff`);
    await page.getByRole("link", { name: "history of this file" }).waitFor();
    assert.match(
      await page.getByRole("link", { name: "history of this file" }).getAttribute("href"),
      /file\/to$/,
    );
    await close(page);
  });

  it("D25: the help can be closed without scrolling", async () => {
    const page = await open(browser, server, "", { viewport: { width: 1440, height: 900 } });
    await page.getByRole("button", { name: "Keys and help" }).click();
    const button = page.getByRole("dialog").getByRole("button", { name: "Close" });
    await button.waitFor();
    const box = await button.boundingBox();
    assert.ok(box.y + box.height < 900);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Close");
    await close(page);
  });

  it("D26: bars and the selection are visible in forced colours", async () => {
    const page = await open(browser, server, "", { forcedColors: "active" });
    const selected = page.locator(".row.selected");
    await selected.first().waitFor();
    assert.equal(await selected.first().evaluate((row) => getComputedStyle(row).outlineStyle), "solid");
    const cell = page.locator("[data-cell=passed]").first();
    assert.equal(await cell.evaluate((one) => getComputedStyle(one).forcedColorAdjust), "none");
    await close(page);
  });

  it("D23: an export has no links to a server", async () => {
    const page = await browser.newPage();
    await page.goto(`file://${complete.export()}#/run/${RUN}/i/2/guard`);
    await page.getByText("numerals::four").first().waitFor();
    for (const tab of ["Guard", "Transcript", "Diff", "Prompt", "Output", "Meta"]) {
      const link = page.getByRole("navigation", { name: "Iteration tabs" }).getByRole("link", { name: tab });
      await link.click();
      await page.locator(`[aria-current=page]`, { hasText: new RegExp(tab, "i") }).waitFor();
      assert.equal(await page.locator('a[href*="/api/"]').count(), 0, tab);
    }
    await page.getByText("events.jsonl").waitFor();
    assert.equal(await page.locator('a[href*="/api/"]').count(), 0);
    await header(page)
      .getByText(/^verified, \d+ commits$/)
      .waitFor();
    await page.close();
  });
});

describe("finding and sharing take at most two actions", () => {
  it("the palette leads to iterations, files and lines of logs", async () => {
    const page = await open(browser, server);
    await page.getByRole("treeitem").first().waitFor();
    await page.keyboard.press("Control+k");
    const field = page.getByRole("combobox", { name: /Search tasks/ });
    await field.fill("#2");
    await page.keyboard.press("Enter");
    await page.waitForURL(/i\/2\/guard$/);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /Search tasks/ }).fill("f:to");
    await page.getByRole("option", { name: /file/ }).first().click();
    await page.waitForURL(/file\/to$/);
    await page.getByText("changed in 2 iterations").waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /Search tasks/ }).fill("left IIII");
    await page
      .getByRole("option", { name: /assertion failed/ })
      .first()
      .click();
    await page.waitForURL(/guard\?l=303$/);
    await close(page);
  });

  it("Share downloads a file that opens without a server", async () => {
    const page = await open(browser, server);
    await page.getByRole("button", { name: "Share", exact: true }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download" }).click(),
    ]);
    assert.equal(download.suggestedFilename(), "demo.html");
    await page.getByText(/^Saved/).waitFor();
    const file = await browser.newPage();
    await file.goto(`file://${await download.path()}`).catch(() => undefined);
    await download.saveAs(join(complete.base, "shared.html"));
    await file.goto(`file://${join(complete.base, "shared.html")}`);
    await file.getByText("all 2 tasks passed").first().waitFor();
    await file.close();
    await close(page);
  });

  it("two iterations of a task are compared", async () => {
    const page = await open(browser, server, `#/run/${RUN}/node/to`);
    await page.getByRole("link", { name: /compare #3 with #2/ }).click();
    await page.getByRole("article", { name: "Iteration 2" }).getByText("FAILED").first().waitFor();
    await page.getByRole("article", { name: "Iteration 3" }).getByText("passed").first().waitFor();
    await close(page);
  });
});

describe("a phone", () => {
  const viewport = { width: 390, height: 844 };

  it("reaches every section, search and sharing from the bottom bar", async () => {
    const page = await open(browser, server, "", { viewport });
    const bar = page.getByRole("navigation", { name: "Sections" });
    await page.getByText("all 2 tasks passed").first().waitFor();
    for (const width of [390, 320]) {
      await page.setViewportSize({ width, height: 844 });
      const box = await bar.boundingBox();
      assert.ok(box.y + box.height <= 844 && box.height >= 48, `${JSON.stringify(box)} at ${width}`);
      for (const target of await bar.locator("a, button").all()) {
        const { x, width: wide, height } = await target.boundingBox();
        assert.ok(
          wide >= 40 && height >= 44 && x + wide <= width + 1,
          `${await target.innerText()} at ${width}`,
        );
      }
    }
    await bar.getByRole("link", { name: "Tree" }).click();
    await page.getByRole("treeitem").first().waitFor();
    await bar.getByRole("link", { name: "Stats" }).click();
    await page.getByRole("heading", { name: "Time and cost" }).waitFor();
    await bar.getByRole("button", { name: "Search" }).click();
    await page.getByRole("combobox", { name: /Search tasks/ }).fill("share");
    await page.getByRole("option", { name: "Share this run" }).click();
    await page.getByRole("button", { name: "Download" }).waitFor();
    await close(page);
  });

  it("installs the page of a server with a token, and stays logged in", async () => {
    const own = await Server.start(complete, "--token");
    const page = await open(browser, own, "", { viewport });
    await page.getByText("all 2 tasks passed").first().waitFor();
    const link = page.locator("link[rel=manifest]");
    assert.equal(await link.getAttribute("crossorigin"), "use-credentials");
    const manifest = await page.evaluate(async () => {
      const { href } = document.querySelector("link[rel=manifest]");
      return (await fetch(href, { credentials: "include" })).json();
    });
    assert.deepEqual([manifest.display, manifest.start_url], ["standalone", "/"]);
    const [cookie] = await page.context().cookies();
    assert.ok(cookie.expires > Date.now() / 1000 + 24 * 3600, `expires ${cookie.expires}`);
    await close(page);
    own.stop();
  });
});
