// An agent that plays the sessions of the story: it speaks Claude Code's output format, reads, edits and tests real files.

import { existsSync, mkdirSync, readFileSync, writeFileSync, copyFileSync } from "node:fs";
import { dirname, join } from "node:path";

const [base] = process.argv.slice(2);
const { RUNNER_NODE_ID: node, RUNNER_TREE: tree } = process.env;
const root = process.cwd();
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const print = (event) => console.log(JSON.stringify(event));
let calls = 0;

function assistant(block) {
  print({ type: "assistant", message: { id: `m${calls}`, model: "claude-sonnet-5", content: [block] } });
}
const say = (text) => assistant({ type: "text", text });
const think = (thinking) => assistant({ type: "thinking", thinking });

async function call(name, input, content = "", isError = false, ms = 120) {
  const id = `call-${++calls}`;
  assistant({ type: "tool_use", id, name, input });
  await sleep(ms);
  const result = { type: "tool_result", tool_use_id: id, content, is_error: isError };
  print({ type: "user", message: { content: [result] } });
}
const read = (path) => call("Read", { file_path: join(root, path) }, "", false, 30);

async function write(path, text) {
  const isNew = !existsSync(path);
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(path, text);
  await call(isNew ? "Write" : "Edit", { file_path: join(root, path) });
}

const test = (filter, output, isError) =>
  call("Bash", { command: `cargo test ${filter}` }, output, isError, 300);

function finish(status, summary, [input, output, cost]) {
  print({
    type: "result",
    subtype: "success",
    is_error: false,
    total_cost_usd: cost,
    usage: { input_tokens: input / 2, cache_read_input_tokens: input / 2, output_tokens: output },
    structured_output: { status, summary },
  });
}

const LIMIT = `use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How many logins an address may try within a minute.
const TRIES_MAX: u32 = 5;

#[derive(Default)]
pub struct LoginLimit {
    tries: HashMap<IpAddr, (Instant, u32)>,
}

impl LoginLimit {
    /// Whether this address may try to log in now.
    pub fn check(&mut self, address: IpAddr) -> Result<(), Response> {
        let (since, tries) = self.tries.entry(address).or_insert((Instant::now(), 0));
        if since.elapsed() > Duration::from_secs(60) {
            (*since, *tries) = (Instant::now(), 0);
        }
        *tries += 1;
        if *tries > TRIES_MAX {
            return Err(Response::status(429));
        }
        Ok(())
    }
}
`;
const FIXED = LIMIT.replace(
  "            return Err(Response::status(429));",
  `            let wait = Duration::from_secs(60).saturating_sub(since.elapsed());
            return Err(Response::status(429).header("Retry-After", wait.as_secs()));`,
).replace("within a minute", "within a sliding minute");

const CALLBACK = (expected) => `/// Finishes a login that another site confirmed.
pub fn callback(session: &Session, request: &Request) -> Result<User, Response> {
    let state = request.query("state").ok_or(Response::status(400))?;
    if state != ${expected} {
        return Err(Response::status(403));
    }
    session.exchange(request.query("code"))
}
`;

const SESSIONS = {
  async root() {
    say("I read the goal and the code first.");
    await read("README.md");
    await read("src/main.rs");
    await read("src/session.rs");
    copyFileSync(join(base, "tree.json"), tree);
    finish(
      "decomposed",
      "Four parts with **eight tasks**: sessions, login, OAuth, docs.",
      [21400, 1900, 0.06],
    );
  },
  async "rate-limit"() {
    const isRetry = existsSync("src/limit.rs");
    say(
      isRetry
        ? "The last attempt failed on the `Retry-After` header. The window is right."
        : "Five tries per minute and address, then **429**.",
    );
    await read("src/login.rs");
    await read("src/session.rs");
    if (isRetry) await read("src/limit.rs");
    think("A counter per address with the start of its window. The header needs the rest of the window.");
    await write("src/limit.rs", isRetry ? FIXED : LIMIT);
    if (isRetry)
      await test(
        "limit",
        "running 3 tests\ntest limit::five_tries ... ok\ntest limit::retry_after ... ok\ntest limit::window ... ok",
      );
    else {
      await test("limit", "test limit::five_tries ... ok\ntest limit::window ... FAILED", true);
      await test("limit", "test limit::five_tries ... ok\ntest limit::window ... ok");
    }
    const summary = isRetry
      ? "`Retry-After` is sent with the rest of the window:\n\n- the window slides\n- three tests cover it"
      : "Five tries a minute, then 429.";
    finish("done", summary, [182000, 9400, 0.38]);
  },
  async "lock-out"() {
    say("Ten failures in a row lock the account; an administrator opens it again.");
    await read("src/account.rs");
    await read("src/login.rs");
    await write(
      "src/account.rs",
      "pub const FAILURES_MAX: u32 = 10;\n\npub fn is_locked(failures: u32) -> bool {\n    failures >= FAILURES_MAX\n}\n",
    );
    const id = `call-${++calls}`;
    assistant({ type: "tool_use", id, name: "Bash", input: { command: "cargo test account" } });
    while (!existsSync(join(base, "go"))) await sleep(50);
    print({ type: "user", message: { content: [{ type: "tool_result", tool_use_id: id, content: "ok" }] } });
    finish("done", "Ten failures lock an account. An administrator opens it.", [96000, 5100, 0.21]);
  },
  async callback() {
    const isFixed = existsSync(join(base, "fix")) && existsSync("src/oauth.rs");
    say("The state in the request must be the one that the session stored.");
    await read("src/oauth.rs");
    const before = existsSync("src/oauth.rs") ? readFileSync("src/oauth.rs", "utf8") : "";
    const guesses = ["session.id()", "session.last_state()", 'request.cookie("state")'];
    const wrong = guesses[guesses.findIndex((guess) => before.includes(guess)) + 1];
    await write("src/oauth.rs", CALLBACK(isFixed ? "session.take_state()" : wrong));
    await test(
      "oauth",
      isFixed ? "test oauth::callback_state ... ok" : "test oauth::callback_state ... FAILED",
      !isFixed,
    );
    const summary = isFixed ? "The state is taken once." : `The state is compared with \`${wrong}\` now.`;
    finish("done", summary, [140000, 8200, 0.33]);
  },
};

async function leaf() {
  say(`I add the code for \`${node}\` and its tests.`);
  await read("src/main.rs");
  const name = node.replaceAll("-", "_");
  await write(
    `src/${name}.rs`,
    `//! ${node}\n\npub fn ${name}() -> bool {\n    true\n}\n\n#[test]\nfn works() {\n    assert!(${name}());\n}\n`,
  );
  await test(name, `test ${name}::works ... ok`);
  finish("done", "Done, with tests.", [64000, 4300, 0.14]);
}

print({
  type: "system",
  subtype: "init",
  session_id: "s-1",
  model: "claude-sonnet-5",
  claude_code_version: "2.1.326",
  tools: [],
});
await (SESSIONS[node] ?? leaf)();
