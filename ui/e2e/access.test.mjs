// Dialogs, and the states of a run besides a stuck one, on every screen: accessible, and no wider than the screen.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, it } from "node:test";
import {
  AGENT,
  GUARD,
  Repository,
  SCREENS,
  Server,
  accessibility,
  checkViews,
  cleanUp,
  launchBrowser,
  open,
} from "./lib.mjs";

/** The header is at its widest with a cost and a budget. */
const BUDGET = "[budget]\nrun_usd = 20\nrun_tokens = 5000000\n";
const USED = `printf '{"usage": {"input_tokens": 182000, "cached_input_tokens": 91000, "output_tokens": 9400, "cost_microdollars": 1893333}}' > "$RUNNER_REPORT"\n`;
const SLOW = `${USED}echo working; while :; do sleep 0.1; done`;

let browser, servers;

before(async () => {
  browser = await launchBrowser();
  const options = { guard: GUARD, config: BUDGET };
  const complete = new Repository({ ...options, agent: USED + AGENT });
  assert.equal(complete.runner("loop"), 0);
  const untrusted = new Repository({ ...options, agent: USED + AGENT });
  assert.equal(untrusted.runner("loop"), 0);
  const tree = ".runner/state/tree.json";
  const text = readFileSync(join(untrusted.root, tree), "utf8");
  untrusted.write(tree, text.replace("Numbers to numerals", "Something else"));
  untrusted.git("commit", "-qam", "sneaky");
  const live = new Repository({ ...options, agent: SLOW });
  void live.loop();
  const started = [complete, untrusted, live].map((repository) => Server.start(repository));
  const [one, two, three] = await Promise.all(started);
  servers = { complete: one, untrusted: two, live: three };
});

after(cleanUp);

const VIEWS = {
  complete: ["", "all 2 tasks passed"],
  untrusted: ["", "Do not merge it"],
  live: ["", "Agent working"],
};

const DIALOGS = {
  palette: (page) => page.keyboard.press("Control+k"),
  help: (page) => page.keyboard.press("?"),
  share: (page) => page.getByRole("button", { name: "Share", exact: true }).click(),
};

for (const screen of SCREENS)
  it(`states and dialogs are accessible and fit: ${screen.colorScheme}, ${screen.width} wide`, async () => {
    for (const [name, view] of Object.entries(VIEWS))
      await checkViews(browser, servers[name], { [name]: view }, screen);
    const { colorScheme, width } = screen;
    const page = await open(browser, servers.complete, "", { colorScheme, viewport: { width, height: 844 } });
    await page.getByText("all 2 tasks passed").first().waitFor();
    for (const [name, show] of Object.entries(DIALOGS)) {
      await show(page);
      const dialog = page.getByRole("dialog");
      await dialog.waitFor();
      assert.deepEqual(await accessibility(page), [], name);
      const box = await dialog.boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= width, `${name} is wider than the screen`);
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "hidden" });
    }
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
