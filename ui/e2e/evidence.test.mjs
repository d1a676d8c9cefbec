// More of the defects that were once found in the page: what it shows of crashes, clones, forks, colours and exports.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  AGENT,
  GUARD,
  Repository,
  RUN,
  Server,
  accessibility,
  cleanUp,
  launchBrowser,
  open,
} from "./lib.mjs";
import { storyRepository } from "./story.mjs";

let browser, complete, server;

before(async () => {
  browser = await launchBrowser();
  complete = new Repository({ agent: AGENT, guard: GUARD });
  assert.equal(complete.runner("loop"), 0);
  server = await Server.start(complete);
});

after(cleanUp);

const close = (page) => page.context().close();
const header = (page) => page.getByRole("banner");
const folder = (repository, iter) => join(repository.root, `.runner/iterations/${RUN}`, iter);

describe("evidence", () => {
  it("D6: a crash of an agent without a protocol shows its error, with a link to its log", async () => {
    const crash = `echo '{"type":"system","subtype":"init"}'; echo "thread 'main' panicked at boom.rs:1:1: boom" >&2; echo '{"type":"end","text":"npm ERR!"}'; exit 7`;
    const repository = new Repository({ agent: crash, guard: GUARD });
    repository.runner("loop");
    const own = await Server.start(repository);
    const page = await open(browser, own);
    const card = page.getByRole("region", { name: /stopped/i });
    await card.getByText("boom").first().waitFor();
    assert.equal(await card.getByText('"subtype"').count(), 0);
    assert.equal(await card.getByText("npm ERR!").count(), 0);
    await card.getByRole("link", { name: /agent log, line 2/ }).click();
    await page.waitForURL(/\/output/);
    await page.getByText("panicked at boom.rs:1:1").first().waitFor();
    // Everything that it printed is in one log, so there is no second one, and the page says where to look.
    assert.equal((await fetch(`${own.url}api/iterations/${RUN}/1/executor.err.log`)).status, 404);
    assert.equal(
      await page
        .getByRole("navigation", { name: "Iteration tabs" })
        .getByRole("link", { name: /errors/ })
        .count(),
      0,
    );
    await page.goto(`${own.url}#/run/${RUN}/i/1/errors`);
    await page.getByText("This agent prints its errors with its output").waitFor();
    await close(page);
    own.stop();
  });

  it("D6: a crash of an agent with a protocol shows its error output, which is served and listed", async () => {
    const repository = storyRepository();
    writeFileSync(
      join(repository.base, "claude"),
      `#!/bin/sh\necho '{"type":"system","subtype":"init"}'\necho "error: no space left on device" >&2\nexit 7\n`,
    );
    repository.runner("loop");
    const own = await Server.start(repository);
    const page = await open(browser, own);
    const card = page.getByRole("region", { name: /stopped/i });
    await card.getByText("no space left on device").first().waitFor();
    assert.equal(await card.getByText('"subtype"').count(), 0);
    await card.getByRole("link", { name: /stderr log, line 1/ }).click();
    await page.waitForURL(/\/errors/);
    await page.getByText("no space left on device").first().waitFor();
    const served = await fetch(`${own.url}api/iterations/${RUN}/1/executor.err.log`);
    assert.equal(served.status, 200);
    assert.match(await served.text(), /no space left on device/);
    await page.goto(`${own.url}#/run/${RUN}/i/1/meta`);
    await page.getByText("executor.err.log").first().waitFor();
    await close(page);
    own.stop();
  });

  it("D2: a run whose runner was killed has no time that is not known, and shows no protocol", async () => {
    const repository = new Repository({
      agent: `echo '{"type":"system","subtype":"init"}'; while :; do sleep 0.1; done`,
      guard: GUARD,
    });
    const ended = repository.loop();
    const own = await Server.start(repository);
    const page = await open(browser, own);
    await page.getByRole("region", { name: "Current iteration" }).getByText("Agent working").waitFor();
    await page.waitForTimeout(1500);
    repository.child.kill("SIGKILL");
    await ended;
    const card = page.getByRole("region", { name: /crashed|died/i });
    await card.waitFor();
    const time = await header(page)
      .locator("dt", { hasText: /^elapsed$/ })
      .locator("+ dd")
      .textContent();
    assert.doesNotMatch(time, /^0\.0 s$|^0:00$/);
    assert.equal(await card.getByText('"subtype"').count(), 0);
    await close(page);
    own.stop();
  });

  it("D2: a fork shows the cost that the command line shows", async () => {
    const repository = storyRepository();
    repository.touch("go");
    repository.touch("fix");
    assert.equal(repository.runner("loop"), 0);
    assert.equal(repository.runner("fork", "3", "--run", RUN, "--id", "second"), 0);
    const spent = Number(repository.json("status").run_state.spent.microdollars);
    const own = await Server.start(repository);
    const snapshot = await (await fetch(`${own.url}api/snapshot`)).json();
    assert.equal(snapshot.run.id, "second");
    assert.equal(snapshot.progress.cost_microdollars, spent);
    const page = await open(browser, own);
    const dollars = `$${(Math.floor(snapshot.progress.cost_microdollars / 10_000) / 100).toFixed(2)}`;
    await header(page).getByText(`${dollars} of $20.00`).waitFor();
    await close(page);
    own.stop();
  });

  it("D9: an export has each iteration once, compressed, in a line of its own", async () => {
    const reply = await fetch(`${server.url}api/export`);
    assert.equal(reply.headers.get("x-iterations"), "4");
    const text = await reply.text();
    const lines = text
      .split("\n")
      .filter((line) => line.startsWith('<script type="text/plain" id="iteration-'));
    assert.equal(lines.length, 4);
    // Base 64 of gzip's first bytes.
    for (const line of lines) assert.match(line, />H4sI/);
  });

  it("D10: after an event, the page reads only the iterations that can have changed", async () => {
    const page = await open(browser, server);
    await page.getByText("all 2 tasks passed").first().waitFor();
    await page.locator("footer .live").waitFor();
    // When the stream opens, the page reads once more.
    await page.waitForTimeout(1500);
    const requests = [];
    page.on("request", (request) =>
      requests.push(new URL(request.url()).pathname + new URL(request.url()).search),
    );
    const file = join(folder(complete, "0004"), "events.jsonl");
    writeFileSync(
      file,
      `${readFileSync(file, "utf8")}{"t_ms": 1, "event": "agent", "kind": "message", "text": "x"}\n`,
    );
    while (!requests.some((path) => path.startsWith("/api/iterations"))) await page.waitForTimeout(50);
    assert.ok(
      requests.some((path) => /^\/api\/iterations\?after=2$/.test(path)),
      requests.join(),
    );
    assert.ok(!requests.includes("/api/iterations"), requests.join());
    assert.ok(!requests.some((path) => path.startsWith("/api/tree")), requests.join());
    await close(page);
  });

  it("D26: the colours of a terminal can be read in both themes", async () => {
    const codes = [];
    for (const style of ["1", "2", "3", "4", "7", "9"]) codes.push(`\u001b[${style}mstyle ${style}\u001b[0m`);
    for (let color = 30; color < 38; color++)
      codes.push(`\u001b[${color}mcolour ${color}\u001b[0m \u001b[${color + 60}mbright\u001b[0m`);
    for (let color = 16; color < 256; color += 15)
      codes.push(`\u001b[38;5;${color}mindexed ${color}\u001b[0m`);
    codes.push("\u001b[38;2;255;255;0myellow\u001b[0m \u001b[38;2;0;0;80mnavy\u001b[0m");
    complete.write(`.runner/iterations/${RUN}/0003/guard.log`, `${codes.join("\n")}\n`);
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(browser, server, `#/run/${RUN}/i/3/guard`, {
        colorScheme,
        viewport: { width: 1280, height: 1400 },
      });
      await page.getByText("navy").waitFor();
      assert.deepEqual(await accessibility(page), [], colorScheme);
      const struck = page.getByText("style 9");
      assert.match(await struck.evaluate((one) => getComputedStyle(one).textDecorationLine), /line-through/);
      const colour = (text) =>
        page
          .getByText(text, { exact: true })
          .first()
          .evaluate((one) => getComputedStyle(one).color);
      assert.notEqual(
        await colour("colour 31"),
        await page
          .getByText("bright")
          .nth(1)
          .evaluate((one) => getComputedStyle(one).color),
      );
      await close(page);
    }
  });

  it("D28: an invalid tree is explained where it says so", async () => {
    const repository = new Repository({ agent: AGENT, guard: GUARD });
    repository.runner("loop", "--max-iterations", "1");
    repository.write(".runner/state/tree.json", '{"version": 1, "root": {}}\n');
    const own = await Server.start(repository);
    const page = await open(browser, own);
    await page
      .getByText(/tree\.json/)
      .first()
      .waitFor();
    assert.equal(await page.getByText(/listed above/).count(), 0);
    await close(page);
    own.stop();
  });
});

describe("place", () => {
  it("D12: the tree shows the selected task, and the list is where it was after Back", async () => {
    const children = Array.from(
      { length: 60 },
      (_, at) => `$(child t${at} ${at + 1} 'Task number ${at}')`,
    ).join(", ");
    const agent = `case $RUNNER_ITER in
0001) sed -i "s/\\"children\\": \\[\\]/\\"children\\": [${children}]/" "$RUNNER_TREE"; answer decomposed 'Sixty.' ;;
*) echo $RUNNER_ITER > f$RUNNER_ITER; answer done 'One more.' ;;
esac`;
    const repository = new Repository({ agent, guard: "true" });
    repository.runner("loop", "--max-iterations", "40");
    const own = await Server.start(repository);
    const page = await open(browser, own, `#/run/${RUN}/node/t55`);
    const row = page.locator("#node-t55");
    await row.waitFor();
    await page.waitForFunction(() => {
      const [row, tree] = [document.querySelector("#node-t55"), document.querySelector("[role=tree]")];
      const [inner, outer] = [row?.getBoundingClientRect(), tree?.getBoundingClientRect()];
      return inner && outer && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
    });
    await page.goto(own.url);
    const list = page.getByRole("region", { name: "Iterations", exact: true });
    await list.getByText("#40").first().waitFor();
    const scrolled = () =>
      page.evaluate(() =>
        Math.max(
          0,
          ...[...document.querySelectorAll("[aria-label=Iterations] *")].map((one) => one.scrollTop),
        ),
      );
    await list.hover();
    await page.mouse.wheel(0, 700);
    await page.waitForFunction(() =>
      [...document.querySelectorAll("[aria-label=Iterations] *")].some((one) => one.scrollTop > 300),
    );
    const before = await scrolled();
    await list.getByRole("link").nth(3).click();
    await page.waitForURL(/i\/\d+/);
    await page.goBack();
    await list.getByRole("listitem").first().waitFor();
    await page.waitForFunction(
      (wanted) =>
        [...document.querySelectorAll("[aria-label=Iterations] *")].some(
          (one) => Math.abs(one.scrollTop - wanted) < 60,
        ),
      before,
    );
    await close(page);
    own.stop();
  });
});

describe("a changed image", () => {
  it("is shown before and after", async () => {
    const dot =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const agent = `case $RUNNER_ITER in
0001) echo ${dot} | base64 -d > dot.png; echo 1 > n; answer retry 'A dot.' ;;
*) { echo ${dot} | base64 -d; echo more; } > dot.png; answer done 'Another dot.' ;;
esac`;
    const repository = new Repository({ agent, guard: "true" });
    repository.runner("loop");
    const own = await Server.start(repository);
    const page = await open(browser, own, `#/run/${RUN}/i/2/diff/dot.png`);
    await page.getByText("1 × 1").nth(1).waitFor();
    assert.equal(await page.getByRole("img", { name: /dot\.png/ }).count(), 2);
    assert.deepEqual(await accessibility(page), []);
    const reply = await fetch(`${own.url}api/iterations/${RUN}/2/diff/image?path=guard.sh`);
    assert.equal(reply.status, 404);
    await close(page);
    own.stop();
  });
});
