// An exported file verifies itself: it derives the run again from the git objects inside it, in any browser, offline.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { AGENT, GUARD, Repository, RUN, cleanUp, launchBrowser } from "./lib.mjs";

let browser, complete, file, text;

before(async () => {
  browser = await launchBrowser();
  complete = new Repository({ agent: AGENT, guard: GUARD });
  assert.equal(complete.runner("loop"), 0);
  file = complete.export();
  text = readFileSync(file, "utf8");
});

after(cleanUp);

const banner = (page) => page.getByRole("banner");

/** Opens a file without a network, and records errors. */
async function openFile(path) {
  const context = await browser.newContext({ offline: true, viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) page.problems.push(message.text());
  });
  page.on("pageerror", (error) => page.problems.push(error.message));
  await page.goto(`file://${path}`);
  return page;
}

/** The unpacked data of an element of the exported file. */
function dataOf(id) {
  const [, data] = new RegExp(`id="${id}">([^<]*)<`).exec(text);
  return { data, bytes: gunzipSync(Buffer.from(data, "base64")) };
}

/** Writes the file with other data in one element. */
function forged(name, id, change) {
  const { data, bytes } = dataOf(id);
  const path = join(complete.base, `${name}.html`);
  writeFileSync(path, text.replace(data, gzipSync(change(bytes)).toString("base64")));
  return path;
}

function changedRun(change) {
  return (bytes) => {
    const run = JSON.parse(bytes);
    change(run);
    return JSON.stringify(run);
  };
}

/** The records of a bundle: the head, and then each record as its bytes. See crates/audit-bundle/src/bundle_writer.rs. */
function recordsOf(bytes) {
  let at = bytes.indexOf(10) + 1;
  const number = () => {
    let [value, shift] = [0, 0];
    for (;;) {
      const byte = bytes[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
      shift += 7;
    }
  };
  const skip = () => (at = number() + at);
  skip();
  skip();
  const head = bytes.subarray(0, at);
  const records = [];
  while (at < bytes.length) {
    const start = at;
    const kind = bytes[at++];
    const distance = number();
    const length = number();
    records.push({ kind, distance, start, end: at + length });
    at += length;
  }
  return { head, records: records.map((one) => ({ ...one, bytes: bytes.subarray(one.start, one.end) })) };
}

describe("an exported file", () => {
  it("verifies itself, and names its newest commit", async () => {
    const page = await openFile(file);
    const verified = complete.json("verify");
    assert.equal(verified.verdict, "verified");
    await banner(page).getByText(`verified, ${verified.commits.length} commits`).waitFor();
    const derived = `this file derived ${verified.commits.length} commits again from its git objects`;
    await page.getByText(derived).waitFor();
    await page.getByText(verified.tip.slice(0, 12)).first().waitFor();
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });

  it("shows the findings of `runner verify` for a run that violates a rule", async () => {
    const repository = new Repository({ agent: AGENT, guard: GUARD });
    assert.equal(repository.runner("loop"), 0);
    const tree = ".runner/state/tree.json";
    const path = join(repository.root, tree);
    repository.write(tree, readFileSync(path, "utf8").replace("Numbers to numerals", "Something else"));
    repository.git("commit", "-qam", "sneaky");
    const { findings } = repository.json("verify");
    assert.ok(findings.length > 0);
    const page = await openFile(repository.export());
    await banner(page).getByText("untrusted").waitFor();
    const listed = page.getByRole("list", { name: "Violations" }).getByRole("listitem");
    assert.equal(await listed.count(), findings.length);
    for (const [at, finding] of findings.entries()) {
      const shown = await listed.nth(at).textContent();
      assert.ok(shown.includes(finding.rule) && shown.includes(finding.commit.slice(0, 7)), shown);
    }
    assert.equal(await page.getByText("runner land").count(), 0);
    await page.context().close();
  });

  it("is untrusted when it shows something else than its commits", async () => {
    const changes = {
      outcome: (run) => (run.iterations.iterations[1].outcome = "passed"),
      pass: (run) => (run.tree.flags[run.tree.id.indexOf("to")] = 2),
      commit: (run) => (run.snapshot.run.commit = run.iterations.iterations[0].commit),
    };
    for (const [name, change] of Object.entries(changes)) {
      const page = await openFile(forged(name, "run", changedRun(change)));
      await banner(page).getByText("untrusted").waitFor();
      await page.getByText("this file was changed after the export").first().waitFor();
      assert.equal(await page.getByText("runner land").count(), 0, name);
      await page.context().close();
    }
  });

  it("is untrusted when an object in it was changed", async () => {
    // A task's title in a document: the blob has another id, and the commit's own is missing.
    const change = (bytes) => {
      const at = bytes.indexOf("Roman numerals");
      assert.ok(at > 0);
      const changed = Buffer.from(bytes);
      changed.write("Human", at);
      return changed;
    };
    const page = await openFile(forged("object", "objects", change));
    await banner(page).getByText("untrusted").waitFor();
    await page.getByText("Details").first().click();
    await page
      .getByText(/the object [0-9a-f]{40} is missing/)
      .first()
      .waitFor();
    assert.equal(await page.getByText("runner land").count(), 0);
    await page.context().close();
  });

  it("is not verified as a whole when a commit was dropped from it", async () => {
    const drop = (bytes) => {
      const { head, records } = recordsOf(bytes);
      const commits = records.filter((one) => one.kind === 1);
      // The oldest one: without it, nothing shows how the run began. It is stored last, and nothing differs from it.
      const last = commits.at(-1);
      const replaced = records.map((one) => (one === last ? Buffer.from([5, 0, 1, 0]) : one.bytes));
      return Buffer.concat([head, ...replaced]);
    };
    const page = await openFile(forged("dropped", "objects", drop));
    await banner(page)
      .getByText(/partly verified|untrusted/)
      .waitFor();
    assert.equal(
      await banner(page)
        .getByText(/^verified, /)
        .count(),
      0,
    );
    await page.context().close();
  });

  it("says that it is not verified when its objects or its audit are gone", async () => {
    for (const id of ["objects", "audit"]) {
      const path = join(complete.base, `no-${id}.html`);
      writeFileSync(path, text.replace(dataOf(id).data, ""));
      const page = await openFile(path);
      await banner(page).getByText("not verified").waitFor();
      await page.context().close();
    }
  });

  it("contains the module that the repository has, and its commits", () => {
    const tip = String(execFileSync("git", ["rev-parse", `runner/${RUN}`], { cwd: complete.root })).trim();
    const { head } = recordsOf(dataOf("objects").bytes);
    assert.ok(head.includes(Buffer.from(tip, "hex")));
    const module = readFileSync(new URL("../../crates/audit-bundle/wasm/audit.wasm.gz", import.meta.url));
    assert.equal(dataOf("audit").data, module.toString("base64"));
  });

  it("offers no export of itself: there is no server to make one", async () => {
    const page = await openFile(file);
    await page.getByRole("treeitem").first().waitFor();
    await page.keyboard.press("s");
    assert.equal(await page.getByRole("dialog").count(), 0);
    assert.equal(await page.getByRole("button", { name: "Share" }).count(), 0);
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill("share this run");
    await page.getByText("No matches.").waitFor();
    assert.equal(await page.getByRole("dialog").getByRole("option").count(), 0);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
});
