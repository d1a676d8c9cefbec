// Fixtures for the browser tests: real runs, the real server and a real browser, all on this machine.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
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

const cleanups = [];

/** Stops and removes everything that the tests of a file started, even after a failure. */
export async function cleanUp() {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

for (const [path, command] of [
  [join(BIN, "runner"), "cargo build --workspace"],
  [join(BIN, "runner-ui"), "cargo build --workspace"],
  [join(BIN, "runner-eval"), "cargo build --workspace"],
  [CHROMIUM, "apt-get install --no-install-recommends chromium"],
]) {
  if (!existsSync(path)) throw new Error(`${path} is missing; to get it: ${command}`);
}

/** Shell functions for agent scripts. */
const PRELUDE = `
answer() { printf '{"status": "%s", "summary": "%s"}' "$1" "\${2:-$1}" > "$RUNNER_OUTPUT"; }
child() { printf '{"id": "%s", "order": %s, "title": "%s", "goal": "%s", "acceptance": [], "passes": false, "attempts": 0, "max_attempts": 3, "children": []}' "$1" "$2" "$3" "$3"; }
`;

/** A temporary folder with an isolated environment. */
class Workspace {
  constructor(name) {
    this.base = mkdtempSync(join(tmpdir(), "runner-e2e-"));
    cleanups.push(() => rmSync(this.base, { recursive: true, force: true }));
    this.root = join(this.base, name);
    mkdirSync(this.root);
    this.env = {
      PATH: process.env.PATH,
      HOME: this.base,
      BASE_DIR: this.base,
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

  /** Creates a file that an agent script waits for. */
  touch(name) {
    writeFileSync(join(this.base, name), "");
  }

  /** Starts one of our programs; resolves to its exit code. */
  start(program, ...args) {
    const child = spawn(join(BIN, program), args, { cwd: this.root, env: this.env, stdio: "ignore" });
    cleanups.push(() => child.kill("SIGKILL"));
    /** The process that was started last. */
    this.child = child;
    return new Promise((done) => child.once("exit", done));
  }

  remove() {
    rmSync(this.base, { recursive: true, force: true });
  }
}

/** A repository with a run that has no iterations yet. */
export class Repository extends Workspace {
  /** `config` is appended to config.toml; `executor` replaces the agent script; `files` are committed first. */
  constructor({
    agent,
    guard,
    goal = "# Roman numerals\n\nNumbers to numerals and back.\n",
    config = "",
    files = {},
    executor,
  }) {
    super("roman");
    writeFileSync(join(this.base, "agent.sh"), `BASE_DIR=${this.base}\n${PRELUDE}\n${agent}\n`);
    this.git("init", "-q", "-b", "main");
    this.write("guard.sh", guard);
    for (const [name, text] of Object.entries(files)) this.write(name, text);
    this.git("add", "-A");
    this.git("commit", "-q", "-m", "root");
    this.runner("init");
    this.write(".runner/GOAL.md", `---\nid: ${RUN}\n---\n\n${goal}`);
    const command = JSON.stringify(["sh", join(this.base, "agent.sh")]);
    const table = executor?.(this.base) ?? `kind = "command"\ncommand = ${command}\n`;
    this.write(
      ".runner/state/config.toml",
      `[accept]\nunchanged = "pass"\n[executor]\n${table}[guard]\ncommand = ["sh", "guard.sh"]\nprotected = ["guard.sh"]\n${config}`,
    );
    this.runner("start");
  }

  git(...args) {
    execFileSync("git", args, { cwd: this.root, env: this.env });
  }

  /** Runs the runner and returns its exit code. */
  runner(...args) {
    try {
      execFileSync(join(BIN, "runner"), args, { cwd: this.root, env: this.env, stdio: "pipe" });
      return 0;
    } catch (error) {
      return error.status;
    }
  }

  /** Exports the run as a page and returns its path. */
  export() {
    const file = join(this.base, "run.html");
    assert.equal(this.runner("export", "html", "--out", file), 0);
    return file;
  }

  /** What a command of the runner prints as JSON, whatever its exit code. */
  json(...args) {
    const options = { cwd: this.root, env: this.env };
    return JSON.parse(spawnSync(join(BIN, "runner"), [...args, "--json"], options).stdout);
  }

  /** Starts the loop; resolves to its exit code. */
  loop() {
    return this.start("runner", "loop");
  }
}

/** A folder with evaluation cases. */
export class Evaluation extends Workspace {
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

  /** Starts an evaluation; resolves to its exit code. */
  run(name, ...args) {
    return this.start("runner-eval", "run", "--run", name, "--runner", join(BIN, "runner"), ...args);
  }
}

/** An agent that splits the goal, fails once, and then passes. */
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
  static async start(repository, ...args) {
    const server = new Server();
    const port = args.includes("--port") ? [] : ["--port", "0"];
    server.child = spawn(join(BIN, "runner-ui"), [...port, "--project-dir", repository.root, ...args], {
      env: repository.env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    cleanups.push(() => server.stop());
    server.url = await new Promise((resolve, reject) => {
      server.child.once("exit", (code) => reject(new Error(`runner-ui exited with ${code}`)));
      server.child.stdout.once("data", (data) => resolve(/url=(\S+)/.exec(String(data))[1]));
    });
    return server;
  }

  stop() {
    this.child.kill();
  }
}

export async function launchBrowser() {
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
  cleanups.push(() => browser.close());
  return browser;
}

/** Opens a page and records what must not happen: console errors, dialogs, requests to other hosts. */
export async function open(browser, server, route = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()))
      page.problems.push(`${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => page.problems.push(error.message));
  page.on("dialog", (dialog) => {
    page.problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(new URL("/", server.url).href) && !url.startsWith("data:"))
      page.problems.push(`request to ${url}`);
  });
  await page.goto(server.url + route);
  return page;
}

/** WCAG A and AA violations found by axe, injected through the debugger to bypass the page's content policy. */
export async function accessibility(page) {
  await page.evaluate(AXE);
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const result = await page.evaluate((values) => window.axe.run({ runOnly: { type: "tag", values } }), tags);
  return result.violations.map(
    (one) => `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`,
  );
}

const WIDTHS = {
  wide: { width: 1280, height: 800 },
  tablet: { width: 820, height: 1180 },
  narrow: { width: 390, height: 844 },
};

/** Opens a view wide and narrow, light and dark, and saves it for the documentation if `just ui-pictures` runs the tests. */
export async function takePictures(browser, server, name, route, isReady) {
  for (const [size, viewport] of Object.entries(WIDTHS))
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(browser, server, route, { viewport, colorScheme });
      await isReady(page);
      if (process.env.PICTURES) {
        await page.waitForTimeout(300);
        const session = await page.context().newCDPSession(page);
        const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 70 });
        const file = join(ROOT, process.env.PICTURES, `${name}-${size}-${colorScheme}.webp`);
        writeFileSync(file, Buffer.from(data, "base64"));
      }
      assert.deepEqual(page.problems, []);
      await page.context().close();
    }
}

/** Asserts that every view shows its text, logs no errors, is accessible and fits the screen. */
export async function checkViews(browser, server, views, { colorScheme, width }) {
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
  assert.deepEqual(page.problems, []);
  await page.context().close();
}

export const SCREENS = ["light", "dark"].flatMap((colorScheme) =>
  [1440, 820, 720, 390, 320].map((width) => ({ colorScheme, width })),
);
