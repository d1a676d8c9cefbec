// One run from its plan to its end. The screenshots in the documentation come from here.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { launchBrowser, open, saveScreenshot, Repository, RUN, Server, cleanUp } from "./lib.mjs";

const PLAN = [
  [
    "sessions",
    "Sessions",
    ["sess-store", "Store sessions in the database"],
    ["sess-expire", "Expire old sessions"],
  ],
  [
    "login",
    "Login",
    ["password", "Password form"],
    ["rate-limit", "Limit login attempts per address"],
    ["lock-out", "Lock an account after too many attempts"],
  ],
  ["oauth", "OAuth", ["callback", "Callback"], ["refresh", "Refresh tokens before they end"]],
  ["docs", "Docs", ["guide", "How to log in, for users"]],
];

// The task decides what a session does: most pass, one fails once, the callback never passes.
const AGENT = `
used() { printf '{"usage": {"input_tokens": %s, "output_tokens": %s, "cost_microdollars": %s}}' "$1" "$2" "$3" > "$RUNNER_REPORT"; }
case $RUNNER_NODE_ID in
root) cp "$BASE_DIR/tree.json" "$RUNNER_TREE"; used 21400 1900 61000; answer decomposed 'Four parts, eight steps.' ;;
rate-limit) echo 'reading src/login.rs, src/limit.rs'; used 182000 9400 380000
  if [ -e limit.rs ]; then echo good > limit.rs; answer done 'Retry-After is sent, and the window slides.'
  else echo bad > limit.rs; answer done 'Five tries a minute, then 429.'; fi ;;
lock-out) echo 'reading src/account.rs'; echo '$ cargo test lock_out'; printf 'test lock_out::after_ten ... \\033[32mok\\033[0m\\n'; echo 'test lock_out::by_admin ... running'
  while ! [ -e "$BASE_DIR/go" ]; do sleep 0.05; done
  echo locked > lock-out.rs; used 96000 5100 210000; answer done 'Ten failures lock it; an administrator opens it.' ;;
callback) echo 'the state is compared, but with the wrong one'; echo bad > oauth.rs; used 140000 8200 330000; answer done 'The state is checked.' ;;
*) echo "$RUNNER_NODE_ID" > "$RUNNER_NODE_ID.rs"; used 64000 4300 140000; answer done 'Done, with tests.' ;;
esac`;

const GUARD = `i=1; while [ $i -le 120 ]; do printf 'test auth::case_%s ... \\033[32mok\\033[0m\\n' $i; i=$((i + 1)); sleep 0.002; done
fail() { printf 'test %s ... \\033[31;1mFAILED\\033[0m\\n\\n---- %s stdout ----\\n' "$1" "$1"; echo "thread '$1' panicked at $2:"; echo "$3"; exit 101; }
if grep -q bad limit.rs 2>/dev/null; then fail limit::retry_after src/limit.rs:88:9 'assertion failed: the header Retry-After is missing'; fi
if grep -q bad oauth.rs 2>/dev/null; then fail oauth::callback_state src/oauth.rs:118:5 'assertion \`left == right\` failed: state mismatch'; fi
`;

let browser, repository, server, ended;

before(async () => {
  browser = await launchBrowser();
  const goal = "# Rewrite authentication\n\nSessions, login and OAuth from the ground up.\n";
  repository = new Repository({ agent: AGENT, guard: GUARD, goal });
  const file = join(repository.root, ".runner/state/tree.json");
  const tree = JSON.parse(readFileSync(file, "utf8"));
  const node = ([id, title, ...children], at) => ({
    id,
    order: at + 1,
    title,
    goal: title,
    acceptance: [],
    passes: false,
    attempts: 0,
    max_attempts: 3,
    children: children.map(node),
  });
  tree.root.children = PLAN.map(node);
  writeFileSync(join(repository.base, "tree.json"), `${JSON.stringify(tree, null, 2)}\n`);
  server = await Server.start(repository);
  ended = repository.loop();
});

after(cleanUp);

it("a live run shows passed tasks, retries and the current iteration", async () => {
  const page = await open(browser, server, "", {
    colorScheme: "dark",
    viewport: { width: 1280, height: 860 },
  });
  await page.getByText("lock_out::by_admin ... running").waitFor();
  await page
    .getByRole("treeitem", { name: /Limit login attempts/ })
    .getByText("passed")
    .waitFor({ state: "attached" });
  await page.getByRole("banner").getByText("3/8").or(page.getByRole("banner").getByText("4/8")).waitFor();
  await saveScreenshot(page, "ui-running");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

it("a stuck run shows why and the next steps, on a wide screen and on a phone", async () => {
  repository.touch("go");
  assert.equal(await ended, 3);
  for (const [name, width, height, colorScheme] of [
    ["ui-stuck", 1280, 860, "light"],
    ["ui-phone", 390, 844, "dark"],
  ]) {
    const page = await open(browser, server, "", { colorScheme, viewport: { width, height } });
    const banner = page.getByRole("region", { name: /stuck/i });
    await banner.getByText("runner node allow callback").waitFor();
    await banner.getByText("oauth::callback_state").first().waitFor();
    await saveScreenshot(page, name);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

it("the guard's log opens at the first failure", async () => {
  const viewport = { width: 1280, height: 620 };
  const page = await open(browser, server, `#/run/${RUN}/i/5/guard`, { colorScheme: "dark", viewport });
  await page.locator(".code-line.failure", { hasText: "limit::retry_after ... FAILED" }).waitFor();
  await saveScreenshot(page, "ui-guard");
  await page.context().close();
});
