//! A GitHub Actions workflow for a run: one job plans, a matrix runs the partitions on machines without a shared folder, and
//! one job merges what they upload.

use super::shell_word;
use crate::args::ActionsArgs;

/// The workflow. `arguments` are those of `runner eval plan` that describe the run.
pub(super) fn workflow(actions: &ActionsArgs, run: &str, arguments: &[String]) -> String {
    let args = &actions.common;
    let partitions = args.partitions;
    let indices: Vec<String> = (1..=partitions).map(|number| number.to_string()).collect();
    let scope: Vec<String> = arguments.iter().map(|word| shell_word(word)).collect();
    let scope = scope.join(" ");
    let options: Vec<String> =
        super::passed_options(args, partitions).iter().map(|word| shell_word(word)).collect();
    let options = options.join(" ");
    let jobs = args.jobs;
    let install: String = std::iter::once("      - uses: actions/checkout@v4\n".to_owned())
        .chain(setup_commands(&actions.setup).iter().map(|command| step(command)))
        .collect();
    let plan = step(&format!("runner eval plan --run {run} {scope}"));
    let trials = step(&format!(
        "runner eval run --continue --run {run} --partition slice:${{{{ matrix.partition }}}}/{partitions} --jobs {jobs} {options} || [ $? -eq 1 ]"
    ));
    let merge = step(&format!("runner eval merge --run {run} $(printf -- '--from %s ' shares/*)"));
    let report = step(&format!("runner eval report html {run} --out report.html"));
    let secrets = secret_variables(&actions.secret);
    format!(
        "# Written by `runner eval submit actions`.
name: eval-{run}
on: workflow_dispatch
jobs:
  plan:
    runs-on: ubuntu-latest
    steps:
{install}{plan}      - uses: actions/upload-artifact@v4
        with: {{ name: eval-plan, path: eval/results/_runs, include-hidden-files: true }}
  trials:
    needs: plan
    runs-on: ubuntu-latest
    strategy:
      fail-fast: false
      matrix:
        partition: [{indices}]
    steps:
{install}      - uses: actions/download-artifact@v4
        with: {{ name: eval-plan, path: eval/results/_runs }}
{trials}{secrets}      - uses: actions/upload-artifact@v4
        if: always()
        with: {{ name: \"eval-share-${{{{ matrix.partition }}}}\", path: eval/results }}
  merge:
    needs: trials
    if: always()
    runs-on: ubuntu-latest
    steps:
{install}      - uses: actions/download-artifact@v4
        with: {{ name: eval-plan, path: eval/results/_runs }}
      - uses: actions/download-artifact@v4
        with: {{ pattern: eval-share-*, path: shares }}
{merge}{report}      - uses: actions/upload-artifact@v4
        with: {{ name: eval-report, path: report.html }}
",
        indices = indices.join(", "),
    )
}

/// A step that runs a command. A JSON text is also one of YAML, whatever the command contains.
fn step(command: &str) -> String {
    format!("      - run: {}\n", serde_json::Value::from(command.trim_end()))
}

/// The secrets of the repository that become variables of the trials.
fn secret_variables(names: &[String]) -> String {
    let mut text = String::new();
    for name in names {
        text.push_str(&format!("          {name}: ${{{{ secrets.{name} }}}}\n"));
    }
    if text.is_empty() { text } else { format!("        env:\n{text}") }
}

/// What prepares a machine. Without commands of the user's, the programs come from this repository.
fn setup_commands(own: &[String]) -> Vec<String> {
    let mut commands = vec![
        "sudo apt-get update && sudo apt-get install -y bubblewrap".to_owned(),
        // Ubuntu refuses namespaces to programs without a profile, and bubblewrap needs them.
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0".to_owned(),
    ];
    if own.is_empty() {
        commands.push("cargo install --locked --path crates/runner".to_owned());
    }
    commands.extend(own.iter().cloned());
    commands
}
