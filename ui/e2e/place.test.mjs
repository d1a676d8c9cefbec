// What one looks at is in the address, fields behave alike, and two attempts are compared line by line.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { AGENT, GUARD, Repository, RUN, Server, cleanUp, launchBrowser, open } from "./lib.mjs";

let browser, repository, server;

before(async () => {
  browser = await launchBrowser();
  repository = new Repository({ agent: AGENT, guard: GUARD });
  assert.equal(repository.runner("loop"), 0);
  server = await Server.start(repository);
});

after(cleanUp);

const close = async (page) => {
  assert.deepEqual(page.problems, []);
  await page.context().close();
};

describe("the address keeps", () => {
  it("the pane of a narrow screen", async () => {
    const page = await open(browser, server, "", { viewport: { width: 390, height: 844 } });
    const sections = page.getByRole("navigation", { name: "Sections" });
    await sections.getByRole("link", { name: "Iterations" }).click();
    await page.waitForURL(/pane=iterations/);
    await page.getByRole("region", { name: "Iterations", exact: true }).getByText("#4").waitFor();
    await page.reload();
    await sections.locator("[aria-current=page]", { hasText: "Iterations" }).waitFor();
    await page.getByRole("region", { name: "Iterations", exact: true }).getByText("#4").waitFor();
    await sections.getByRole("link", { name: "Tree" }).click();
    await page.getByRole("treeitem", { name: /Numerals to numbers/ }).click();
    await page.getByRole("region", { name: "Task from" }).waitFor();
    await page.goBack();
    await page.getByRole("treeitem", { name: /Numerals to numbers/ }).waitFor();
    await close(page);
  });

  it("the zoom of the timeline", async () => {
    const page = await open(browser, server);
    const timeline = page.getByRole("slider", { name: "Timeline" });
    await timeline.waitFor();
    const box = await timeline.boundingBox();
    await page.mouse.move(box.x + box.width - 2, box.y + 10);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - box.width / 8 - 20, box.y + 10, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/zoom=3-4/);
    await page.reload();
    await page.getByText("#3 to #4 of 4 iterations").waitFor();
    await page.getByRole("button", { name: "show all" }).click();
    assert.doesNotMatch(page.url(), /zoom/);
    await close(page);
  });

  it("the iteration of a file's history", async () => {
    const page = await open(browser, server, `#/run/${RUN}/file/to`);
    const list = page.getByRole("navigation", { name: "Iterations that changed the file" });
    await list.getByRole("link", { name: /#2/ }).click();
    await page.waitForURL(/file\/to\?i=2$/);
    await page.reload();
    await list.locator("a[aria-current=true]", { hasText: "#2" }).waitFor();
    await page.getByRole("link", { name: "Iteration #2" }).waitFor();
    await close(page);
  });
});

describe("Escape", () => {
  it("empties a search field and what it filters", async () => {
    const page = await open(browser, server);
    const tree = page.getByRole("searchbox", { name: /Filter the tree/ });
    await page.getByRole("treeitem").nth(2).waitFor();
    await tree.fill("numerals to");
    await page.getByRole("treeitem").nth(2).waitFor({ state: "detached" });
    await tree.press("Escape");
    await page.getByRole("treeitem").nth(2).waitFor();
    assert.equal(await tree.inputValue(), "");
    assert.doesNotMatch(page.url(), /q=/);
    await page.goto(`${server.url}#/run/${RUN}/i/2`);
    const transcript = page.getByRole("searchbox", { name: "Search the transcript" });
    await transcript.fill("nothing like this");
    await page.getByText(/^0 of \d+/).waitFor();
    await transcript.press("Escape");
    await page.getByText(/^\d+ entries/).waitFor();
    await page.goto(`${server.url}#/run/${RUN}/i/2/guard`);
    const log = page.getByRole("searchbox", { name: "Search the log" });
    await log.fill("four");
    await log.press("Enter");
    await page.getByText(/^1 of \d/).waitFor();
    await log.press("Escape");
    await page.getByRole("button", { name: "Next match" }).waitFor({ state: "detached" });
    await close(page);
  });

  it("closes the palette, also with a text in it", async () => {
    const page = await open(browser, server);
    await page.getByRole("treeitem").first().waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill("numerals");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await close(page);
  });
});

describe("two attempts side by side", () => {
  it("show both patches of a file, and mark the facts that differ", async () => {
    const page = await open(browser, server, `#/run/${RUN}/i/3/versus/2`);
    const file = page.locator("details", { hasText: /^to/ });
    await file.locator(".side").nth(0).getByText("bad").waitFor();
    await file.locator(".side").nth(1).getByText("good").waitFor();
    const facts = page.getByRole("table");
    assert.deepEqual(await facts.getByRole("columnheader").allTextContents(), ["", "#2", "#3"]);
    const attempt = facts.getByRole("row", { name: /^attempt/ });
    await attempt.getByText("used 1 attempt").waitFor();
    await attempt.getByText("differs").waitFor({ state: "attached" });
    const own = await page
      .getByRole("link")
      .evaluateAll((links) => links.filter((one) => one.href === location.href));
    assert.equal(own.length, 0);
    await close(page);
  });
});

describe("on a phone", () => {
  it("runs are cards, and every link and button can be hit", async () => {
    const page = await open(browser, server, "#/runs", { viewport: { width: 390, height: 844 } });
    const region = page.getByRole("region", { name: "Runs" }).last();
    await region.getByText("Complete").waitFor();
    assert.ok(await region.evaluate((element) => element.scrollWidth <= element.clientWidth));
    for (const route of [
      "#/runs",
      "",
      `#/run/${RUN}/i/2`,
      `#/run/${RUN}/stats`,
      `#/run/${RUN}/i/3/versus/2`,
    ]) {
      await page.goto(server.url + route);
      await page.getByRole("banner").getByText("Complete").waitFor();
      await page.waitForTimeout(500);
      const small = await page.locator("a, button, summary, select").evaluateAll((all) =>
        all
          .map((one) => [one.textContent.trim() || one.ariaLabel, one.getBoundingClientRect()])
          .filter(([, box]) => box.width > 0 && box.right > 0 && box.height < 24)
          .map(([text, box]) => `${text}: ${box.height}`),
      );
      assert.deepEqual(small, [], route);
    }
    await close(page);
  });
});
