// A run that looks like a real one: a plan of four parts, an agent that reads, edits and tests, one retry, and a task that
// fails three times, or passes at the second attempt.

import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Repository } from "./lib.mjs";

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

const GUARD = `i=1; while [ $i -le 120 ]; do printf 'test auth::case_%s ... \\033[32mok\\033[0m\\n' $i; i=$((i + 1)); sleep 0.002; done
fail() { printf 'test %s ... \\033[31;1mFAILED\\033[0m\\n\\n---- %s stdout ----\\n' "$1" "$1"; echo "thread '$1' panicked at $2:"; echo "$3"; echo; echo 'test result: FAILED. 120 passed; 1 failed'; exit 101; }
if [ -e src/limit.rs ] && ! grep -q Retry-After src/limit.rs; then fail limit::retry_after src/limit.rs:22:13 'assertion failed: the header Retry-After is missing'; fi
if [ -e src/oauth.rs ] && ! grep -q take_state src/oauth.rs; then fail oauth::callback_state src/oauth.rs:4:5 'assertion \`left == right\` failed: the state was used twice
  left: Err(403)
 right: Ok(User)'; fi
echo 'test result: ok. 121 passed; 0 failed'
`;

/** Creates the repository. Its agent waits in the task `lock-out` for the file `go`; the file `fix` lets the callback pass. */
export function storyRepository() {
  const goal = "# Rewrite authentication\n\nSessions, login and OAuth from the ground up.\n";
  const repository = new Repository({
    agent: "",
    guard: GUARD,
    goal,
    config: "[budget]\nrun_usd = 20\n",
    files: {
      "README.md": "# Ledger\n",
      "src/main.rs": "fn main() {}\n",
      "src/session.rs": "pub struct Session;\n",
      "src/login.rs": "pub fn login() {}\n",
      "src/account.rs": "pub struct Account;\n",
    },
    executor: (base) => `kind = "claude"\nprogram = "${join(base, "claude")}"\nsandbox = "off"\n`,
  });
  const program = join(repository.base, "claude");
  const script = join(import.meta.dirname, "story-agent.mjs");
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${script}" "${repository.base}"\n`);
  chmodSync(program, 0o755);
  const tree = JSON.parse(readFileSync(join(repository.root, ".runner/state/tree.json"), "utf8"));
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
  return repository;
}
