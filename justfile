# Checks and tasks of this repository. Without `just` or the other tools on PATH, run `scripts/ci RECIPE`.

set shell := ["bash", "-euo", "pipefail", "-c"]

[private]
default:
    @{{ quote(just_executable()) }} --list --unsorted

# Everything CI runs, fast checks first
ci: fmt-check spell workflows ui-check lint test crash-sample ui-browse (eval-slurm "16") untouched

# Check formatting
fmt-check:
    cargo fmt --all --check

# Check spelling in code and prose
spell:
    typos

# Check the GitHub workflows and actions against their schemas
workflows:
    for file in .github/workflows/*.yml .github/actions/*/action.yml; do \
        npm exec --yes --loglevel=error --package=@action-validator/core@0.6.0 --package=@action-validator/cli@0.6.0 -- action-validator "$file"; \
    done

# Tests named dependency_policy apply deny.toml to every change. cargo-deny itself takes minutes to build, so only this recipe
# and the nightly workflow use it. The advisory database is a git repository outside of the package registries, so this recipe never
# fetches it: it uses the database if the machine has it, and otherwise prints that the check was skipped.

# Check dependencies with cargo-deny: licences, versions, sources and security advisories
deny:
    #!/usr/bin/env bash
    set -euo pipefail
    PATH=$(scripts/tool cargo-deny) && export PATH
    cargo deny --locked check licenses bans sources
    databases=${CARGO_HOME:-$HOME/.cargo}/advisory-dbs
    if compgen -G "$databases/*/" >/dev/null; then
        cargo deny --locked --offline check advisories
    else
        echo "advisories SKIPPED: no advisory database in $databases (\`cargo deny fetch db\` gets it, with network)"
    fi

# The second run is about the programs without the parts that are optional. With the whole workspace and one test, the dependencies
# have the same features as in the first, so none of them is checked again.

# Run Clippy on everything, including tests and benchmarks
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings
    cargo clippy --workspace --lib --bins --test tidy --no-default-features --locked -- -D warnings

# nextest runs no doc tests, and `cargo test --doc` rebuilds every crate even if there are none. So it runs only if a doc
# comment contains a code block marked as ```rust. The tests of deny.toml also read dependencies of other platforms, which a build
# does not fetch.

# Run all tests
test:
    cargo fetch --quiet --locked
    @if git grep -qE '^ *//[/!] *```rust' -- 'crates/*/src/*.rs'; then cargo test --workspace --locked --doc; fi
    cargo nextest run --workspace --locked -E 'not test(/^agents::presets::/)'

# The oracle of the tests repeats the passes of runs that require a room in every `just test`. A guard in the work tree may depend on
# anything; tests in which it does say so.

# Repeat every pass of every test run in a fresh clone: `verify --rerun all`
test-rerun:
    RUNNER_ORACLE_RERUN=1 cargo nextest run --workspace --locked --profile long -E 'package(runner) and not test(/^agents::/)'

# Simulate many whole runs with misbehaving agents, crashes and full disks; `just test` simulates 7,000
simulate RUNS="100000":
    RUNNER_SIMULATION_RUNS={{ RUNS }} cargo nextest run --locked --profile long -p runner-core -E 'test(every_rule_holds_in_every_run)'

# Ordinary tests named *is_generated check the generated files (schemas, reference pages): each compares a file with the
# output of the code, so a stale file fails `test`, and no check writes files. With UPDATE_GENERATED=1 the same tests write
# the files.

# Write all generated files
generate:
    UPDATE_GENERATED=1 cargo nextest run --workspace --locked --no-tests=warn -E 'test(is_generated)'

# A test that writes the file it should check would always pass, so in CI the clone must be unchanged at the end. Outside of
# CI, uncommitted changes are normal and this does nothing.
[private]
untouched:
    #!/usr/bin/env bash
    set -euo pipefail
    if [[ -n ${CI:-} ]]; then
        git diff --exit-code
        new=$(git status --short -- crates docs schemas)
        [[ -z $new ]] || { printf 'error: the checks created new files:\n%s\n' "$new" >&2; exit 1; }
    fi

# Record the recorded runs again, after an intended change of behaviour
record:
    UPDATE_RECORDED=1 cargo nextest run --workspace --locked -E 'test(every_outcome_can_be_recorded)'

# Keep a run of this version, which later versions must verify and finish
record-release:
    mkdir -p crates/runner/tests/releases
    RECORD_RELEASE=1 cargo nextest run --workspace --locked -E 'test(this_release_can_be_recorded)'

# Install the page's packages from its lock file
[private]
ui-packages:
    #!/usr/bin/env bash
    set -euo pipefail
    cd ui
    # A copy of the lock file records which version is installed.
    cmp -s package-lock.json node_modules/.lock-installed && exit
    npm ci --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/.lock-installed

# Build the page into crates/runner-ui/dist, which is committed
ui-build: ui-packages
    cd ui && npm run --silent build

# Check the page: types, style, tests, and that the committed build is current
ui-check: ui-packages
    #!/usr/bin/env bash
    set -euo pipefail
    cd ui
    npm run --silent check
    npm run --silent lint
    npm test --silent
    OUT_DIR="$PWD/node_modules/.built" npm run --silent build
    diff -r node_modules/.built ../crates/runner-ui/dist ||
        { echo 'error: crates/runner-ui/dist is not the build of ui/; run: just ui-build' >&2; exit 1; }
    size=$(gzip -9 -c ../crates/runner-ui/dist/assets/page.js | wc -c)
    echo "script of the first screen: $size bytes compressed"
    ((size <= 61440)) || { echo 'error: the script of the first screen is larger than 60 kB compressed' >&2; exit 1; }

# Build the audit that exported pages contain into crates/audit-bundle/wasm, which is committed. Needs `rustup target add
# wasm32-unknown-unknown`; no check does: tests of the runner compare the committed module with `runner verify`.
wasm-build:
    cargo rustc --locked -p audit-bundle --lib --crate-type cdylib --target wasm32-unknown-unknown --profile wasm
    gzip -9 -n -c "${CARGO_TARGET_DIR:-target}/wasm32-unknown-unknown/wasm/audit_bundle.wasm" >crates/audit-bundle/wasm/audit.wasm.gz
    @ls -l crates/audit-bundle/wasm/audit.wasm.gz

# Build the programs with the same features of the dependencies as the tests. `cargo build` enables fewer of them and would
# build nearly everything a second time.
[private]
programs:
    cargo test --quiet --locked --workspace --no-run

# Test the page in a real browser, on runs of the real runner
ui-browse: ui-packages programs
    cd ui && npm run --silent e2e

# Take the screenshots in the documents again, from the browser tests' runs
ui-pictures: ui-packages
    cargo build --locked --workspace --bins
    mkdir -p docs/images/ui
    cd ui && PICTURES=docs/images/ui node --test --test-concurrency=1 e2e/gallery.test.mjs e2e/eval.test.mjs

# Serve the page for the repository in DIR; add --eval for its evaluation results
ui-server DIR="." *ARGS:
    cargo run --locked -p runner-ui -- --project-dir {{ quote(DIR) }} {{ ARGS }}

# Develop the page: Vite serves its sources, a server on DIR the data
ui-dev DIR=".": ui-packages
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --locked -p runner-ui
    exec 3< <(exec target/debug/runner-ui --port 0 --project-dir {{ quote(DIR) }})
    server=$!
    trap 'kill "$server"' EXIT
    read -r line <&3
    RUNNER_UI=$(sed 's/^url=\([^ ]*\)\/ .*/\1/' <<<"$line") npm --prefix ui run dev

# List the evaluation cases
eval-list *ARGS:
    cargo run --quiet --locked -p runner-eval -- list {{ ARGS }}

# Run an evaluation: `just eval-run --tag scripted`, `just eval-run --agent codex --trials 5`
eval-run *ARGS:
    cargo run --quiet --locked -p runner-eval -- run {{ ARGS }}

# Evaluate one case and follow its latest trial in the browser; Ctrl-C stops both
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

# Kill an evaluation of 30 cases and 5 trials at random moments and resume it: 150 results, each once
eval-kill:
    EVAL_KILL_CASES=30 EVAL_KILL_TRIALS=5 cargo nextest run --locked -p runner-eval --profile long -E 'test(a_run_killed_at_any_moment)'

# Test every case of the suite with its solution, its cheats, and agents that do nothing or only exit with 0
eval-lint *ARGS: programs
    target/debug/runner-eval lint --runner target/debug/runner --jobs 2 {{ ARGS }}

# Let an agent that tries everything to be excused, to read or to forge run 200 trials
eval-attack TRIALS="200":
    EVAL_ATTACK_TRIALS={{ quote(TRIALS) }} cargo nextest run --workspace --locked --profile long -E 'test(agent_that_tries_everything)'

# Simulate 2,000 comparisons per shape: coverage of intervals, false alarms, errors at the margin
eval-calibrate ROUNDS="2000":
    EVAL_CALIBRATION_ROUNDS={{ quote(ROUNDS) }} EVAL_CALIBRATION_FILE=$PWD/target/calibration.txt \
        cargo nextest run --locked -p runner-eval --lib --cargo-profile release --profile long -E 'test(coverage_and_error_rates)'
    cat target/calibration.txt

# Compare the statistics with scipy and statsmodels on random results
eval-recompute SUITES="200": programs
    #!/usr/bin/env bash
    set -euo pipefail
    environment=target/recompute
    [[ -x $environment/bin/python ]] || python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
    "$environment/bin/python" -I scripts/eval-recompute target/debug/runner-eval {{ quote(SUITES) }}

# Run simulated agents of known honesty with each rule of acceptance, and print what each rule catches and costs
eval-study TRIALS="2" *CASES: programs
    scripts/eval-study target/debug/runner-eval target/debug/runner {{ TRIALS }} {{ CASES }}

# Open exported results in Harbor and Inspect (pinned, from PyPI), run their adapters, and validate the Kubernetes jobs
eval-formats: programs
    scripts/eval-formats target/debug

# Run a plan of TRIALS trials in 8 partitions on a local Slurm, cancel it half-way and resume it
eval-slurm TRIALS="80": programs
    scripts/eval-slurm {{ quote(TRIALS) }}

# Format all code
fmt:
    cargo fmt --all

# Run one benchmark: `just bench tree`, `step`, `verify`, `process`, `start` or `ui`
bench NAME *ARGS:
    {{ if NAME == "ui" { quote(just_executable()) + " bench-ui " + ARGS } else { "cargo bench --locked --workspace --bench " + quote(NAME) + " -- " + ARGS } }}

# Measure the page in a real browser: 1,441 and 5,000 iterations, 100,000 nodes, a log of 100 MB; or only the parts `run`,
# `export`, `events` (of 5,000 iterations) or `tree`
[private]
bench-ui *ARGS: ui-packages
    # The executable that `just bench step` needs too: optimizing it takes a quarter of an hour on two cores.
    cargo bench --quiet --locked --workspace --no-run --bench step
    mkdir -p target/bench-ui
    for name in runner runner-ui runner-eval; do ln -sf ../release/runner "target/bench-ui/$name"; done
    RUNNER_BIN=$PWD/target/bench-ui node ui/e2e/bench.mjs {{ ARGS }}

# Each of more than a thousand mutants costs a build and a test run of the core, so both are kept cheap: one target folder
# keeps the dependencies between runs, and tests with many cases run only a few. Retry the mutants that survive with all cases:
# RUNNER_SIMULATION_RUNS=20000 RUNNER_PROPERTY_CASES=512 just mutants -F 'part of its name'.
# `just mutants --shard 0/20` runs a twentieth.

# Run mutation tests on the core
mutants *ARGS:
    #!/usr/bin/env bash
    set -euo pipefail
    PATH=$(scripts/tool cargo-mutants) && export PATH
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/mutants}
    export RUNNER_SIMULATION_RUNS=${RUNNER_SIMULATION_RUNS:-200} RUNNER_PROPERTY_CASES=${RUNNER_PROPERTY_CASES:-32}
    nice -n 10 cargo mutants -p runner-core {{ ARGS }}

# Optimized programs for the crash campaign, which runs them tens of thousands of times
[private]
crash-programs:
    cargo build --quiet --locked --profile crash -p runner -p crash-campaign --no-default-features

# The crash campaign. Families and scenarios: `just crash-list`. Everything takes hours; `just crash step --family kill-all` a
# minute. A report prints the command that repeats a bad point: `just crash --point kill-all/step/37`.

# Crash, starve and cut the power of a run at every system call: `just crash [SCENARIO…] [--family NAME] [--every K] [--minutes N] [--resume FILE]`
crash *ARGS: crash-programs
    target/crash/crash-campaign run {{ ARGS }}

# List the families of faults and the scenarios of the crash campaign
crash-list: crash-programs
    target/crash/crash-campaign list

# A sample of all families that differs for every commit, within about a minute
[private]
crash-sample: programs
    target/debug/crash-campaign run --sample "$(git rev-parse HEAD)" --minutes 1

# Remove one safety measure at a time from the runner, and check that the campaign notices
crash-mutants *NAMES: crash-programs
    scripts/crash-mutants {{ NAMES }}

# Run N iterations with an agent that behaves differently every time; print times, memory and sizes: `just soak 2000 [--steps]`
soak N="2000" *ARGS: crash-programs
    target/crash/crash-campaign soak {{ N }} {{ ARGS }}

# Run guards of pnpm, pytest, Go and Maven projects in the room; installs these tools
guard-projects: programs
    scripts/guard-projects

# Install the agents that CI does not need: 1 GB, a few minutes
agents:
    for agent in $(scripts/tool --presets); do scripts/tool "$agent" >/dev/null; done

# Run a session of each of these agents against a scripted model
agents-test: agents
    cargo nextest run --locked -p runner -E 'test(/^agents::presets::/)'

# Run the tests of the real agents with their newest versions, and report differences from the pinned ones
agents-newest *AGENTS:
    scripts/agents-newest {{ AGENTS }}

# Run the misbehaving agents with other loop runners (pinned, from npm) and with this one, and write docs/reference/conformance.md
conformance-others: programs
    #!/usr/bin/env bash
    set -euo pipefail
    PATH=$(scripts/tool claude) && PATH=$(scripts/tool ralphy) && PATH=$(scripts/tool ralph-starter)
    export PATH=$PWD/target/debug:$PATH
    results=adapters/conformance/results
    for tool in runner ralphy ralph-starter; do
        # Failed rows are results.
        conformance-bench run "adapters/conformance/$tool.toml" --jobs 2 --json "$results/$tool.json" || (($? == 1))
    done
    conformance-bench page "$results"/{runner,ralphy,ralph-starter}.json >docs/reference/conformance.md

# Install runner from this repository
install:
    cargo install --locked --path crates/runner

# Build the book from the documents into target/book, and check its links
book:
    scripts/book

# Build all packages of this version into target/packages: archive, .deb, npm, SBOM, provenance, checksums
release:
    scripts/release

# Install, try and remove the packages in clean places, and build them again in another folder: the same bytes
release-check: release
    scripts/release-check
