// A run that is longer than a test could wait for.

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AGENT, GUARD, Repository, RUN } from "./lib.mjs";

/**
 * A real run whose third iteration is repeated: `iterations` folders and commits with different numbers, times and files.
 * With `taskPerIteration`, each is about a task of its own.
 */
export function createLongRun(iterations, { taskPerIteration = false } = {}) {
  const repository = new Repository({ agent: AGENT, guard: GUARD });
  repository.runner("loop");
  const { root } = repository;
  const base = join(root, `.runner/iterations/${RUN}`);
  const names = readdirSync(join(base, "0003"));
  const files = names.map((name) => [name, readFileSync(join(base, "0003", name), "utf8")]);
  const third = ["log", "-1", "--format=%B", "--grep=iter 0003", `runner/${RUN}`];
  const message = execFileSync("git", third, { cwd: root });
  const number = (iter) => String(iter).padStart(4, "0");
  const parts = [];
  for (let iter = 5; iter <= iterations; iter++) {
    const text = String(message).replace(/iter 0003/, `iter ${number(iter)}`);
    const content = `pub const N: u32 = ${iter};\n`.repeat(8);
    parts.push(
      `commit refs/heads/runner/${RUN}\nmark :${iter}\n`,
      `committer Test <test@localhost> ${1_700_000_000 + iter * 200} +0000\n`,
      `data ${Buffer.byteLength(text)}\n${text}\n`,
      iter === 5 ? `from refs/heads/runner/${RUN}^0\n` : "",
      `M 100644 inline src/n${iter % 200}.rs\ndata ${content.length}\n${content}\n`,
    );
  }
  const marks = join(repository.base, "marks");
  const input = parts.join("");
  execFileSync("git", ["fast-import", "--quiet", "--force", `--export-marks=${marks}`], { cwd: root, input });
  const commits = new Map(
    readFileSync(marks, "utf8")
      .trim()
      .split("\n")
      .map((line) => [Number(line.slice(1).split(" ")[0]), line.split(" ")[1]]),
  );
  for (let iter = 5; iter <= iterations; iter++) {
    const folder = join(base, number(iter));
    mkdirSync(folder);
    const started = 1_700_000_000_000 + iter * 200_000;
    for (const [name, text] of files) {
      let changed = text;
      if (name === "meta.json") {
        const meta = { ...JSON.parse(text), iter, started_ms: started, ended_ms: started + 90_000 };
        meta.commit_after = commits.get(iter);
        meta.commit_before = commits.get(iter - 1) ?? meta.commit_before;
        if (taskPerIteration) meta.node = `task-${iter}`;
        changed = JSON.stringify(meta);
      }
      writeFileSync(join(folder, name), changed);
    }
  }
  return repository;
}
