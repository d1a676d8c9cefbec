//! What follows the registry of agents outside of the code: the versions that `scripts/tool` installs, and the guide.
#![expect(clippy::indexing_slicing, reason = "here a fault is a failed test")]

use std::path::Path;
use std::process::Command;

use runner_core::agents::AGENTS;
use testkit::agents::pinned_version;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn scripts_tool_installs_the_version_that_the_registry_was_tested_with() {
    for agent in AGENTS {
        assert_eq!(pinned_version(agent.name), agent.tested_versions[0], "{}", agent.name);
    }
    let output = Command::new(root().join("scripts/tool")).arg("--presets").output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let mut presets: Vec<&str> =
        AGENTS.into_iter().filter(|agent| agent.is_preset()).map(|agent| agent.name).collect();
    presets.sort_unstable();
    assert_eq!(listed.lines().collect::<Vec<_>>(), presets);
}

#[test]
fn the_guide_has_a_row_for_every_preset() {
    let guide = std::fs::read_to_string(root().join("docs/guide/agents.md")).unwrap();
    for agent in AGENTS.into_iter().filter(|agent| agent.is_preset()) {
        let row = format!("| `{}` | `{}` | {} |", agent.name, agent.package, agent.tested_versions[0]);
        assert!(guide.contains(&row), "docs/guide/agents.md has no row `{row} …`");
    }
}
