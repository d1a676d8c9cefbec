//! A GitHub Actions workflow for a run: one job plans, a matrix runs the partitions on machines without a shared folder, and
//! one job merges what they upload.

use crate::args::SubmitScope;

/// The workflow. `arguments` are those of `runner eval plan` that describe the run.
pub(super) fn workflow(args: &SubmitScope, run: &str, arguments: &[String]) -> String {
    let partitions = args.partitions;
    let indices: Vec<String> = (1..=partitions).map(|number| number.to_string()).collect();
    let scope: Vec<String> = arguments.iter().map(|word| shell_word(word)).collect();
    let scope = scope.join(" ");
    let options: Vec<String> = super::passed_options(args).iter().map(|word| shell_word(word)).collect();
    let options = options.join(" ");
    let jobs = args.jobs;
    let install = "      - uses: actions/checkout@v4\n      - run: cargo install --locked --path crates/runner --path crates/runner-eval || true\n      \
                   - run: sudo apt-get install -y bubblewrap\n";
    format!(
        "# Written by `runner eval submit actions`.
name: eval-{run}
on: workflow_dispatch
jobs:
  plan:
    runs-on: ubuntu-latest
    steps:
{install}      - run: runner eval plan --run {run} {scope}
      - uses: actions/upload-artifact@v4
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
      - run: runner eval run --continue --run {run} --partition slice:${{{{ matrix.partition }}}}/{partitions} --jobs {jobs} {options} || [ $? -eq 1 ]
        env:
          OPENAI_API_KEY: ${{{{ secrets.OPENAI_API_KEY }}}}
          ANTHROPIC_API_KEY: ${{{{ secrets.ANTHROPIC_API_KEY }}}}
      - uses: actions/upload-artifact@v4
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
      - run: runner eval merge --run {run} $(printf -- '--from %s ' shares/*)
      - run: runner eval report html {run} --out report.html
      - uses: actions/upload-artifact@v4
        with: {{ name: eval-report, path: report.html }}
",
        indices = indices.join(", "),
    )
}

/// A word that a shell reads as it is.
fn shell_word(word: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '=' | '+');
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_special_characters_are_quoted() {
        assert_eq!(shell_word("max_attempts_default=1"), "max_attempts_default=1");
        assert_eq!(shell_word("a b'c"), "'a b'\\''c'");
    }
}
