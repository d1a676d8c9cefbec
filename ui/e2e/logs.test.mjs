// Reading logs: lines wrap, groups fold, and times are shown where the log has them.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { AGENT, Repository, RUN, Server, accessibility, cleanUp, launchBrowser, open } from "./lib.mjs";

const GUARD = `echo '::group::Set up'
i=1; while [ $i -le 40 ]; do echo "2026-01-31T12:00:0$((i / 10)).000Z fetch package $i"; i=$((i + 1)); done
echo '::endgroup::'
echo '   Compiling one v1.0.0'
echo '   Compiling two v1.0.0'
echo '   Compiling three v1.0.0'
echo '    Finished \`test\` profile [unoptimized] target(s) in 2.50s'
echo '     Running unittests src/lib.rs (target/debug/deps/a)'
echo
if grep -q bad to 2>/dev/null; then
  echo 'test numerals::four ... FAILED'
  echo 'assertion failed: left IIII, right IV'
  echo "a long line $(printf 'word %.0s' $(seq 80))"
  echo 'test result: FAILED. 0 passed; 1 failed; finished in 0.25s'
  exit 1
fi
echo 'test numerals::four ... ok'
echo 'test result: ok. 1 passed; 0 failed; finished in 0.25s'
`;

let browser, repository, server;

before(async () => {
  browser = await launchBrowser();
  repository = new Repository({ agent: AGENT, guard: GUARD });
  assert.equal(repository.runner("loop"), 0);
  server = await Server.start(repository);
});

after(cleanUp);

const log = (page) => page.getByRole("region", { name: "Log lines" });

describe("a log", () => {
  it("folds the groups without a failure, and shows how long each took", async () => {
    const page = await open(browser, server, `#/run/${RUN}/i/2/guard`);
    await log(page).getByText("assertion failed: left IIII").waitFor();
    const setUp = log(page).getByRole("button", { name: "Set up, 41 lines" });
    const building = log(page).getByRole("button", { name: "Building crates, 3 lines · 2.5 s" });
    const tests = log(page).getByRole("button", { name: /^Running unittests.* · 250 ms$/ });
    assert.equal(await setUp.getAttribute("aria-expanded"), "false");
    assert.equal(await building.getAttribute("aria-expanded"), "false");
    assert.equal(await tests.getAttribute("aria-expanded"), "true");
    assert.equal(await log(page).getByText("fetch package 7").count(), 0);
    await setUp.click();
    await log(page).getByText("fetch package 7").waitFor();
    assert.deepEqual(await accessibility(page), []);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });

  it("unfolds the group of a line that is searched for or linked to", async () => {
    const page = await open(browser, server, `#/run/${RUN}/i/2/guard`);
    await log(page).getByText("assertion failed: left IIII").waitFor();
    await page.getByRole("searchbox", { name: "Search the log" }).fill("fetch package 33");
    await page.keyboard.press("Enter");
    await log(page).getByText("fetch package 33").waitFor();
    await page.goto(`${server.url}#/run/${RUN}/i/2/guard?l=44`);
    await page.reload();
    await log(page).getByText("Compiling two v1.0.0").waitFor();
    await page.context().close();
  });

  it("folds and unfolds all groups, shows times and wraps", async () => {
    const page = await open(browser, server, `#/run/${RUN}/i/2/guard`);
    await page.getByRole("button", { name: "fold 3 groups" }).click();
    await page.getByRole("button", { name: "unfold 3 groups" }).click();
    await log(page).getByText("fetch package 15").waitFor();
    await page.getByRole("button", { name: "times" }).click();
    await log(page).getByText("+0:01").first().waitFor();
    await log(page).press("End");
    const long = log(page).getByText("a long line");
    await long.waitFor();
    const height = async () => (await long.boundingBox()).height;
    const wrapped = await height();
    await page.getByRole("button", { name: "wrap" }).click();
    await long.waitFor();
    assert.ok((await height()) < wrapped, "one line without wrapping");
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });

  it("has its groups in an exported file", async () => {
    const page = await browser.newPage();
    await page.goto(`file://${repository.export()}#/run/${RUN}/i/2/guard`);
    await log(page).getByRole("button", { name: "Set up, 41 lines" }).click();
    await log(page).getByText("fetch package 7").waitFor();
    await page.close();
  });
});
