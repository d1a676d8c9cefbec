# The checks and chores of this repository. Without `just` or the other tools on PATH: `scripts/ci RECIPE`.

set shell := ["bash", "-euo", "pipefail", "-c"]

[private]
default:
    @{{ quote(just_executable()) }} --list --unsorted

# The whole check: what CI runs, the quick parts first
ci: fmt-check spell deny ui-check lint test ui-browse (eval-slurm "16") untouched

# The formatting is rustfmt's
fmt-check:
    cargo fmt --all --check

# The prose, the names and the comments are spelt right
spell:
    typos

# The dependencies have licences, versions and sources that deny.toml allows
deny:
    cargo deny --locked check licenses bans sources
    @{{ quote(just_executable()) }} advisories

# The advisory database is a git repository on a host that is no package registry, so it is never fetched here: it is
# used where a machine has it, and where it is missing the output says so.
[private]
advisories:
    #!/usr/bin/env bash
    set -euo pipefail
    databases=${CARGO_HOME:-$HOME/.cargo}/advisory-dbs
    if compgen -G "$databases/*/" >/dev/null; then
        cargo deny --locked --offline check advisories
    else
        echo "advisories SKIPPED: no advisory database in $databases (\`cargo deny fetch db\` gets it, with network)"
    fi

# Clippy has nothing to say, tests and benches included
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings
    cargo clippy -p runner-ui --no-default-features --locked -- -D warnings

# nextest runs no documentation tests; cargo builds every crate once more to find that there are none, so it is asked
# only where a documentation comment holds a block of Rust, which says so: ```rust.

# All tests
test:
    @if git grep -qE '^ *//[/!] *```rust' -- 'crates/*/src/*.rs'; then cargo test --workspace --locked --doc; fi
    cargo nextest run --workspace --locked -E 'not test(/^agents::presets::/)'

# Generated files (schemas, reference pages) are held by ordinary tests named *is_generated: each compares the file
# with what the code gives now, here and in CI alike, so a stale file fails `test` and no check has to rewrite
# anything. With UPDATE_GENERATED=1 the same tests write the files instead.

# Rewrite every generated file from the code
generate:
    UPDATE_GENERATED=1 cargo nextest run --workspace --locked --no-tests=warn -E 'test(is_generated)'

# A test that writes the file it should check would pass for ever, so in CI the clone must end as it began. Elsewhere
# uncommitted work is no fault, and nothing is asked.
[private]
untouched:
    #!/usr/bin/env bash
    set -euo pipefail
    if [[ -n ${CI:-} ]]; then
        git diff --exit-code
        new=$(git status --short -- crates docs schemas)
        [[ -z $new ]] || { printf 'error: the check left new files behind:\n%s\n' "$new" >&2; exit 1; }
    fi

# Make the recorded runs anew, after a change of behaviour that is meant
record:
    UPDATE_RECORDED=1 cargo nextest run --locked -p runner -E 'test(every_outcome_can_be_recorded)'

# The page's packages, as its lock file has them
[private]
ui-packages:
    #!/usr/bin/env bash
    set -euo pipefail
    cd ui
    # A copy of the lock file tells which state is installed.
    cmp -s package-lock.json node_modules/.lock-installed && exit
    npm ci --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/.lock-installed

# Build the page into crates/runner-ui/dist, where it is committed
ui-build: ui-packages
    cd ui && npm run --silent build -- --logLevel warn

# The page's types, tests and style are right, and the committed build is what its sources give
ui-check: ui-packages
    #!/usr/bin/env bash
    set -euo pipefail
    cd ui
    npm run --silent check
    npm run --silent lint
    npm test --silent
    npm run --silent build -- --logLevel warn --outDir "$PWD/node_modules/.built"
    diff -r node_modules/.built ../crates/runner-ui/dist ||
        { echo 'error: crates/runner-ui/dist is not what ui/ gives now; build it: just ui-build' >&2; exit 1; }
    size=$(gzip -9 -c ../crates/runner-ui/dist/assets/app.js | wc -c)
    echo "the page: $size bytes of script, compressed"
    ((size <= 61440)) || { echo 'error: more than 60 kB of script' >&2; exit 1; }

# The programs as the tests have them. `cargo build` would turn on fewer features of the dependencies than the tests do,
# and build nearly everything a second time.
[private]
programs:
    cargo test --quiet --locked --workspace --no-run

# The page in a real browser, on runs of the real runner
ui-browse: ui-packages programs
    cd ui && npm run --silent e2e

# Make the pictures in the documents anew, from runs that the browser's tests make
ui-pictures: ui-packages
    cargo build --locked --workspace --bins
    cd ui && PICTURES=docs/images node --test --test-concurrency=1 e2e/story.test.mjs e2e/eval.test.mjs

# Serve the page for the repository in DIR; with --eval behind it, for the results of its evaluation
ui-server DIR="." *ARGS:
    cargo run --locked -p runner-ui -- --project-dir {{ quote(DIR) }} {{ ARGS }}

# Work on the page: its sources served by Vite, the data by a server on DIR
ui-dev DIR=".": ui-packages
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --locked -p runner-ui
    exec 3< <(exec target/debug/runner-ui --port 0 --project-dir {{ quote(DIR) }})
    server=$!
    trap 'kill "$server"' EXIT
    read -r line <&3
    RUNNER_UI=$(sed 's/^url=\([^ ]*\)\/ .*/\1/' <<<"$line") npm --prefix ui run dev

# List the cases of the evaluation
eval-list *ARGS:
    cargo run --quiet --locked -p runner-eval -- list {{ ARGS }}

# Evaluate: `just eval-run --tag scripted`, `just eval-run --agent codex --trials 5`
eval-run *ARGS:
    cargo run --quiet --locked -p runner-eval -- run {{ ARGS }}

# Evaluate one case and follow its newest trial in the browser; Ctrl-C ends both
eval-with-ui CASE *ARGS:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --locked -p runner -p runner-eval -p runner-ui
    latest=eval/workspaces/{{ CASE }}_latest
    rm -f "$latest"
    target/debug/runner-eval run {{ quote(CASE) }} --runner target/debug/runner --new {{ ARGS }} > >(cat) &
    evaluation=$!
    trap 'kill "$evaluation" 2>/dev/null || true; wait "$evaluation" || true' EXIT
    until [[ -e $latest ]]; do
        kill -0 "$evaluation" 2>/dev/null || exit 1
        sleep 0.1
    done
    target/debug/runner-ui --eval eval --case {{ quote(CASE) }}

# 30 cases of 5 trials, killed at a random moment and continued: 150 results, each once
eval-kill:
    EVAL_KILL_CASES=30 EVAL_KILL_TRIALS=5 cargo nextest run --locked -p runner-eval --profile long -E 'test(a_run_killed_at_any_moment)'

# Test `submit slurm` with a real Slurm on this machine: 8 partitions, cancelled half-way and submitted again
eval-slurm TRIALS="80": programs
    scripts/eval-slurm {{ quote(TRIALS) }}

# Format everything
fmt:
    cargo fmt --all

# Run one benchmark: `just bench tree`, `just bench step`, `just bench verify`, `just bench process`, `just bench ui`
bench NAME *ARGS:
    {{ if NAME == "ui" { quote(just_executable()) + " bench-ui" } else { "cargo bench --locked --workspace --bench " + quote(NAME) + " -- " + ARGS } }}

# 100,000 nodes, a log of 100 MB and 1,000 iterations in a real browser: time on its main thread per frame
[private]
bench-ui: ui-packages
    cargo build --locked --release -p runner-ui
    RUNNER_BIN=target/release node ui/e2e/bench.mjs

# Every mutant is a build and a test run of the core, more than a thousand in all, so both are made cheap: one target
# folder keeps the dependencies between runs, and the tests with many cases try few of them. What then survives is tried
# again with all cases: RUNNER_SIMULATION_RUNS=20000 RUNNER_PROPERTY_CASES=512 just mutants -F 'part of its name'.
# `just mutants --shard 0/20` does a twentieth.

# Change the core in small ways and see that its tests notice
mutants *ARGS:
    #!/usr/bin/env bash
    set -euo pipefail
    PATH=$(scripts/tool cargo-mutants) && export PATH
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/mutants}
    export RUNNER_SIMULATION_RUNS=${RUNNER_SIMULATION_RUNS:-200} RUNNER_PROPERTY_CASES=${RUNNER_PROPERTY_CASES:-32}
    nice -n 10 cargo mutants -p runner-core {{ ARGS }}

# Install the agents that are not part of the check: 1 GB, some minutes
agents:
    for agent in opencode gemini qwen copilot pi; do scripts/tool "$agent" >/dev/null; done

# A session of each of them against a scripted model on this machine
agents-test: agents
    cargo nextest run --locked -p runner -E 'test(/^agents::presets::/)'

# Install `runner`, its page and its evaluation from this repository
install:
    cargo install --locked --path crates/runner
    cargo install --locked --path crates/runner-ui
    cargo install --locked --path crates/runner-eval
