// Runs made by the real runner, the real server, a real browser. Nothing here reaches beyond this machine.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
const BIN = process.env.RUNNER_BIN ?? join(ROOT, "target/debug");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const RUN = "demo";

const made = [];

/** Ends and removes everything that the tests of a file made, however they ended. */
export async function tidyUp() {
  for (const thing of made.splice(0).reverse()) await thing();
}

for (const [path, get] of [
  [join(BIN, "runner"), "cargo build --workspace"],
  [join(BIN, "runner-ui"), "cargo build --workspace"],
  [join(BIN, "runner-eval"), "cargo build --workspace"],
  [CHROMIUM, "apt-get install --no-install-recommends chromium"],
]) {
  if (!existsSync(path)) throw new Error(`${path} is not here; to get it: ${get}`);
}

/** The words that an agent's script can use. */
const PRELUDE = `
answer() { printf '{"status": "%s", "summary": "%s"}' "$1" "\${2:-$1}" > "$RUNNER_OUTPUT"; }
child() { printf '{"id": "%s", "order": %s, "title": "%s", "goal": "%s", "acceptance": [], "passes": false, "attempts": 0, "max_attempts": 3, "children": []}' "$1" "$2" "$3" "$3"; }
`;

/** A folder for a test, with nothing of the machine's in its environment. */
class Place {
  constructor(name) {
    this.around = mkdtempSync(join(tmpdir(), "runner-e2e-"));
    made.push(() => rmSync(this.around, { recursive: true, force: true }));
    this.root = join(this.around, name);
    mkdirSync(this.root);
    this.env = {
      PATH: process.env.PATH,
      HOME: this.around,
      AROUND: this.around,
      LANG: "C.UTF-8",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_AUTHOR_NAME: "Test",
      GIT_AUTHOR_EMAIL: "test@localhost",
      GIT_COMMITTER_NAME: "Test",
      GIT_COMMITTER_EMAIL: "test@localhost",
    };
  }

  write(name, text) {
    mkdirSync(dirname(join(this.root, name)), { recursive: true });
    writeFileSync(join(this.root, name), text);
  }

  /** Lets an agent go on that waits for this file. */
  touch(name) {
    writeFileSync(join(this.around, name), "");
  }

  /** Starts a program of ours; gives its exit code when it ends. */
  start(program, ...args) {
    const child = spawn(join(BIN, program), args, { cwd: this.root, env: this.env, stdio: "ignore" });
    made.push(() => child.kill("SIGKILL"));
    return new Promise((done) => child.once("exit", done));
  }

  remove() {
    rmSync(this.around, { recursive: true, force: true });
  }
}

/** A repository with a run that has not begun. */
export class Repository extends Place {
  constructor({ agent, guard, goal = "# Roman numerals\n\nNumbers to numerals and back.\n" }) {
    super("roman");
    writeFileSync(join(this.around, "agent.sh"), `AROUND=${this.around}\n${PRELUDE}\n${agent}\n`);
    this.git("init", "-q", "-b", "main");
    this.write("guard.sh", guard);
    this.git("add", "-A");
    this.git("commit", "-q", "-m", "root");
    this.runner("init");
    this.write(".runner/GOAL.md", `---\nid: ${RUN}\n---\n\n${goal}`);
    const command = JSON.stringify(["sh", join(this.around, "agent.sh")]);
    this.write(
      ".runner/state/config.toml",
      `[executor]\nkind = "command"\ncommand = ${command}\n[guard]\ncommand = ["sh", "guard.sh"]\nprotected = ["guard.sh"]\n`,
    );
    this.runner("start");
  }

  git(...args) {
    execFileSync("git", args, { cwd: this.root, env: this.env });
  }

  /** Runs the runner to its end; gives its exit code. */
  runner(...args) {
    try {
      execFileSync(join(BIN, "runner"), args, { cwd: this.root, env: this.env, stdio: "pipe" });
      return 0;
    } catch (error) {
      return error.status;
    }
  }

  /** Exports the run as a page; gives its path. */
  export() {
    const file = join(this.around, "run.html");
    assert.equal(this.runner("export", "html", "--out", file), 0);
    return file;
  }

  /** Starts the loop and leaves it running. */
  loop() {
    return this.start("runner", "loop");
  }
}

/** A folder with cases, to be evaluated. */
export class Evaluation extends Place {
  constructor() {
    super("suite");
    mkdirSync(join(this.root, "eval"));
  }

  add(name, { goal, guard, solution }) {
    const folder = `eval/cases/${name}`;
    this.write(`${folder}/fixture/guard.sh`, guard);
    this.write(`${folder}/solution.toml`, solution);
    this.write(
      `${folder}/case.toml`,
      `[case]\nid = "${name}"\ngoal = "${goal}"\nfixture = "fixture"\nsolution = "solution.toml"\n
[config.executor]\nkind = "script"\nscenario = "solution.toml"\nsandbox = "off"\n
[config.guard]\ncommand = ["sh", "guard.sh"]\nprotected = ["guard.sh"]\n
[[checks]]\ntype = "command_succeeds"\ncommand = ["sh", "guard.sh"]\n
[[checks]]\nname = "nothing is left over"\ntype = "git_clean"\n`,
    );
  }

  /** Runs an evaluation; gives its exit code when it ends. */
  run(name, ...args) {
    return this.start("runner-eval", "run", "--run", name, "--runner", join(BIN, "runner"), ...args);
  }
}

/** The agent of a run that splits its goal, fails once, and then passes. */
export const AGENT = `
tree() { sed -i "s/\\"children\\": \\[\\]/\\"children\\": [$(child to 1 'Numbers to numerals'), $(child from 2 'Numerals to numbers')]/" "$RUNNER_TREE"; }
case $RUNNER_ITER in
0001) tree; answer decomposed 'Two steps: one for each direction.' ;;
0002) echo 'reading the tests'; echo bad > to; answer done 'All numbers from 1 to 3999.' ;;
0003) echo good > to; answer done 'IV and IX are taken first now.' ;;
*) echo from > from; answer done 'And back again.' ;;
esac`;

export const GUARD = `i=1
while [ $i -le 300 ]; do printf 'test numerals::n%s ... \\033[32mok\\033[0m\\n' $i; i=$((i + 1)); done
if grep -q bad to 2>/dev/null; then
  printf 'test numerals::four ... \\033[31;1mFAILED\\033[0m\\n'
  echo "thread 'numerals::four' panicked at src/to.rs:12:5:"
  echo "assertion failed: left IIII, right IV"
  exit 1
fi`;

export class Server {
  static async on(repository, ...args) {
    const server = new Server();
    server.child = spawn(join(BIN, "runner-ui"), ["--port", "0", "--project-dir", repository.root, ...args], {
      env: repository.env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    made.push(() => server.end());
    server.url = await new Promise((found, failed) => {
      server.child.once("exit", (code) => failed(new Error(`runner-ui ended with ${code}`)));
      server.child.stdout.once("data", (data) => found(/url=(\S+)/.exec(String(data))[1]));
    });
    return server;
  }

  end() {
    this.child.kill();
  }
}

export async function browse() {
  const args = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
  ];
  const browser = await chromium.launch({ executablePath: CHROMIUM, args });
  made.push(() => browser.close());
  return browser;
}

/** A page that notes what must not happen: words on the console, requests to elsewhere. */
export async function open(browser, server, route = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()))
      page.faults.push(`${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("dialog", (dialog) => {
    page.faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(server.url) && !url.startsWith("data:")) page.faults.push(`request to ${url}`);
  });
  await page.goto(server.url + route);
  return page;
}

/** What axe finds against WCAG A and AA. It is put in through the debugger, which the page's policy does not bind. */
export async function accessibility(page) {
  await page.evaluate(AXE);
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const found = await page.evaluate((values) => window.axe.run({ runOnly: { type: "tag", values } }), tags);
  return found.violations.map(
    (one) => `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`,
  );
}

/** A picture of a page for the documents; made only where they are asked for, by `just ui-pictures`. */
export async function picture(page, name) {
  if (!process.env.PICTURES) return;
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 78 });
  writeFileSync(join(ROOT, process.env.PICTURES, `${name}.webp`), Buffer.from(data, "base64"));
}

/** Shows every view, and asserts that each is whole, quiet, accessible and not wider than the screen. */
export async function lookAtAll(browser, server, views, { colorScheme, width }) {
  const page = await open(browser, server, "", { colorScheme, viewport: { width, height: 844 } });
  for (const [name, [route, text]] of Object.entries(views)) {
    await page.goto(server.url + route);
    await page.getByText(text).filter({ visible: true }).first().waitFor();
    assert.deepEqual(await accessibility(page), [], name);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `${name} is ${overflow} px wider than the screen`);
    if (process.env.SHOTS) {
      mkdirSync(process.env.SHOTS, { recursive: true });
      await page.screenshot({ path: `${process.env.SHOTS}/${name}-${width}-${colorScheme}.png` });
    }
  }
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

export const SCREENS = ["light", "dark"].flatMap((colorScheme) =>
  [1280, 390].map((width) => ({ colorScheme, width })),
);
