#!/usr/bin/env node
// Starts the executable of the package for this platform, which npm installed as an optional dependency.
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `${require("./package.json").name}-${process.platform}-${process.arch}`;
let program;
try {
    program = require.resolve(`${name}/bin/runner`);
} catch {
    process.stderr.write(
        `error: there is no runner for ${process.platform} on ${process.arch}: the package \`${name}\` is not installed\n` +
            "hint: install with optional dependencies, or build it: cargo install --locked --path crates/runner\n",
    );
    process.exit(1);
}

const args = process.argv.slice(2);
if (typeof process.execve === "function") {
    process.execve(program, [program, ...args], process.env);
}
// Older versions of Node cannot replace their process, so this one passes signals on and ends as the program does. What a terminal
// sends, the program gets too: a second Ctrl-C would end it at once.
const child = spawn(program, args, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    const isFromTerminal = process.stdin.isTTY && signal !== "SIGTERM";
    process.on(signal, () => isFromTerminal || child.kill(signal));
}
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
child.on("error", (error) => {
    process.stderr.write(`error: could not start ${program}: ${error.message}\n`);
    process.exit(1);
});
