# The checks and chores of this repository. Without `just` or the other tools on PATH: `scripts/ci RECIPE`.

set shell := ["bash", "-euo", "pipefail", "-c"]

[private]
default:
    @{{ quote(just_executable()) }} --list --unsorted

# The whole check: what CI runs, the quick parts first
ci: fmt-check spell deny lint test untouched

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

# nextest runs no documentation tests; cargo builds every crate once more to find that there are none, so it is asked
# only where a documentation comment holds a block of Rust, which says so: ```rust.

# All tests
test:
    @if git grep -qE '^ *//[/!] *```rust' -- 'crates/*/src/*.rs'; then cargo test --workspace --locked --doc; fi
    cargo nextest run --workspace --locked

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
    UPDATE_RECORDED=1 cargo nextest run --locked -p runner -E 'test(every_ending_can_be_recorded)'

# Format everything
fmt:
    cargo fmt --all

# Run one benchmark: `just bench tree`, `just bench step`, `just bench process`
bench NAME:
    cargo bench --locked --workspace --bench {{ quote(NAME) }}

# Change the core in small ways and see that its tests notice
mutants *ARGS:
    PATH=$(scripts/tool cargo-mutants) && export PATH && cargo mutants -p runner-core {{ ARGS }}

# Install the agents that are not part of the check: 1 GB, some minutes
agents:
    for agent in opencode gemini qwen copilot pi; do scripts/tool "$agent" >/dev/null; done

# Install `runner` from this repository
install:
    cargo install --locked --path crates/runner
