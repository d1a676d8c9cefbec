// Runs the audit in WebAssembly on bundles, as an exported page does, and prints each report as a line of JSON:
//   node crates/audit-bundle/wasm/run-audit.mjs FILE…
// A FILE is a bundle, or an exported page.

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const module = gunzipSync(readFileSync(new URL("audit.wasm.gz", import.meta.url)));
const { exports: audit } = new WebAssembly.Instance(new WebAssembly.Module(module));

/** The bundle in a file. */
function bundleIn(file) {
  const bytes = readFileSync(file);
  const embedded = /id="objects">([^<]*)</.exec(bytes.subarray(0, 1) == "<" ? bytes.toString("latin1") : "");
  return embedded ? gunzipSync(Buffer.from(embedded[1], "base64")) : bytes;
}

for (const file of process.argv.slice(2)) {
  const bundle = bundleIn(file);
  const address = audit.input(bundle.length);
  new Uint8Array(audit.memory.buffer, address, bundle.length).set(bundle);
  if (audit.open() === 0) throw new Error(`${file} is not a bundle`);
  while (audit.step() !== 0);
  const report = Buffer.from(audit.memory.buffer, audit.output(), audit.output_bytes());
  console.log(report.toString("utf8"));
}
