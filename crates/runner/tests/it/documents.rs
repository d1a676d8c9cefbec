//! Every command of the book is run, the tutorial prints what it shows, and the pictures of terminals are made from real output.

mod book;
mod markdown;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use testkit::generated::assert_generated;
use testkit::test_repo::{TestRepo, run};

use self::markdown::blocks;
use crate::RUNNER;
use crate::fixtures::visible_text;

const TUTORIAL: &str = include_str!("../../../../docs/guide/tutorial.md");

const COLUMNS: u32 = 90;

/// A line that separates the outputs of blocks.
fn mark(number: usize) -> String {
    format!("@@ block {number}")
}

/// Types these lines on a terminal, in an empty folder.
fn typed(repo: &TestRepo, lines: &str, colours: &[(&str, &str)]) -> String {
    let file = repo.outside().join("typed.sh");
    let author = "git config --global user.name Dana\ngit config --global user.email dana@example.com";
    fs::write(&file, format!("set -e\nstty cols {COLUMNS} rows 24\n{author}\n{lines}")).unwrap();
    let programs = Path::new(RUNNER).parent().unwrap();
    let mut command = repo.command("script");
    command
        .args(["-qec", &format!("bash {}", file.display()), "/dev/null"])
        .current_dir(repo.outside())
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()))
        .env("TERM", "xterm-256color")
        .env("RUNNER_PAGER", "cat")
        .env("TZ", "UTC")
        .envs(colours.iter().copied());
    visible_text(&run(&mut command).ok().stdout)
}

/// The tutorial's commands up to and without this one.
fn commands_before(end: &str) -> String {
    let all: String =
        blocks(TUTORIAL).into_iter().filter(|block| block.language == "sh").map(|block| block.text).collect();
    let before: Vec<&str> = all.lines().take_while(|line| *line != end).collect();
    assert!(before.len() < all.lines().count(), "the tutorial has no line `{end}`");
    before.join("\n")
}

#[test]
fn the_tutorial_prints_what_it_shows() {
    let repo = TestRepo::with_commit(RUNNER);
    let blocks = blocks(TUTORIAL);
    let mut script = String::new();
    for (number, block) in blocks.iter().enumerate().filter(|(_, block)| block.language == "sh") {
        script.push_str(&format!("echo '{}'\n{}", mark(number), block.text));
    }
    let output = typed(&repo, &script, &[("NO_COLOR", "1")]);
    let mut shown = 0;
    for (number, block) in blocks.iter().enumerate().filter(|(_, block)| block.language == "text") {
        let before = output.split("@@ block ").find(|part| part.starts_with(&format!("{}\n", number - 1)));
        let printed = before.unwrap_or_else(|| panic!("block {number} follows no commands:\n{output}"));
        for line in block.text.lines().filter(|line| !line.trim().is_empty()) {
            assert!(printed.contains(line.trim_end()), "`{line}` is not in:\n{printed}");
            shown += 1;
        }
    }
    assert!(shown > 10, "{shown}");
}

/// The text with everything replaced that differs from run to run, without a change of its width or its colours.
fn steady(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == ':';
    let mut result = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_colour = first == '\u{1b}';
        let end = if is_colour { rest.find('m').map(|at| at + 1) } else { rest.find(|c| !is_part(c)) };
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()).max(first.len_utf8()));
        result.push_str(&if is_colour { piece.to_owned() } else { steady_word(piece) });
        rest = after;
    }
    result
}

fn steady_word(word: &str) -> String {
    let is_id = word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = word.contains(':') && word.split(':').all(is_number);
    if is_id {
        return "3f2a9c1e7b5d4086".chars().cycle().take(word.len()).collect();
    }
    if is_time {
        return word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    }
    word.to_owned()
}

/// What `runner doctor` prints, without the rows that differ between machines, and with the same version everywhere.
fn without_this_machine(text: &str) -> String {
    let differs =
        |line: &str| ["disk  ", "sleep  ", "temporary  ", "sockets"].iter().any(|row| line.contains(row));
    let mut is_left_out = false;
    let mut rows: Vec<&str> = Vec::new();
    for line in text.lines() {
        // A fix is below its row.
        is_left_out = differs(line) || (is_left_out && line.starts_with("    "));
        rows.extend((!is_left_out).then_some(line));
    }
    without_versions(&rows.join("\n")).replace("/usr/local/bin/", "/usr/bin/")
}

/// The text with the same version in the place of every version.
fn without_versions(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, after) = rest.split_at(at);
        let end = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
        let (number, after) = after.split_at(end);
        let is_version = number.trim_end_matches('.').contains('.');
        result.push_str(before);
        result.push_str(if is_version { "1.2.3" } else { number });
        rest = after;
    }
    result + rest
}

/// A picture of what a command prints in a stage of the book.
struct TerminalPicture {
    name: &'static str,
    stage: &'static str,
    command: &'static str,
    input: &'static str,
}

const PICTURES: &[TerminalPicture] = &[
    TerminalPicture { name: "doctor", stage: "initialised", command: "runner doctor", input: "" },
    TerminalPicture {
        name: "run",
        stage: "project",
        command: "runner run \"Add OAuth login\"",
        input: "n\n",
    },
    TerminalPicture { name: "loop", stage: "started", command: "runner loop", input: "" },
    TerminalPicture { name: "report", stage: "complete", command: "runner report", input: "" },
    TerminalPicture { name: "land", stage: "complete", command: "runner land", input: "" },
];

fn assert_picture(name: &str, text: &str) {
    let svg = anstyle_svg::Term::new().render_svg(&steady(text.trim_end()));
    assert_generated(&format!("docs/images/terminal/{name}.svg"), svg.as_bytes());
}

#[test]
fn every_picture_of_a_stage_is_generated() {
    for TerminalPicture { name, stage, command, input } in PICTURES {
        let typed = command.replacen("runner ", "runner --color always ", 1);
        let printed = book::recorded(stage, &typed, input);
        // The answer to the question, which the terminal echoes first, and what follows it are not part of the picture.
        let printed = match printed.split_once("Start? [Y/n]") {
            Some((before, _)) => format!("{}Start? [Y/n]", before.trim_start_matches(input)),
            None => printed,
        };
        let text = format!("$ {command}\n{printed}");
        assert_picture(name, &if *name == "doctor" { without_this_machine(&text) } else { text });
    }
}

#[test]
fn every_picture_of_a_terminal_is_generated() {
    let repo = TestRepo::with_commit(RUNNER);
    let setup = commands_before("runner status");
    let script = format!(
        "{setup}\nfor part in status 'verify --rerun'; do echo '@@'; echo \"$ runner $part\"; runner --color always $part; done\n"
    );
    let output = typed(&repo, &script, &[]);
    let pictures: Vec<&str> = output.split("@@\n").skip(1).collect();
    for (name, text) in [("status", pictures[0]), ("verify", pictures[1])] {
        assert_picture(name, text);
    }
}

#[test]
fn every_picture_of_a_terminal_is_in_the_book() {
    let documents: String = book::texts();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/terminal");
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(documents.contains(&format!("images/terminal/{name}")), "{name} is in no document");
    }
}

/// One test for each document with commands, so that they run beside each other.
macro_rules! documents {
    ($($name:ident = $path:literal,)*) => {
        const WITH_TESTS: &[&str] = &[$($path),*];
        $(#[test]
        fn $name() {
            book::run_document($path);
        })*
    };
}

documents! {
    commands_of_agents_run = "docs/guide/agents.md",
    commands_of_checks_run = "docs/guide/checks.md",
    commands_of_ci_run = "docs/guide/ci.md",
    commands_of_comparing_results_run = "docs/guide/comparing-results.md",
    commands_of_editing_a_run_run = "docs/guide/editing-a-run.md",
    commands_of_evaluation_run = "docs/guide/evaluation.md",
    commands_of_getting_started_run = "docs/guide/getting-started.md",
    commands_of_goals_run = "docs/guide/goals.md",
    commands_of_history_run = "docs/guide/history.md",
    commands_of_install_run = "docs/guide/install.md",
    commands_of_iterations_run = "docs/guide/iterations.md",
    commands_of_landing_run = "docs/guide/landing.md",
    commands_of_mcp_run = "docs/guide/mcp.md",
    commands_of_night_run = "docs/guide/night.md",
    commands_of_planning_run = "docs/guide/planning.md",
    commands_of_plans_run = "docs/guide/plans.md",
    commands_of_prompts_run = "docs/guide/prompts.md",
    commands_of_proof_run = "docs/guide/proof.md",
    commands_of_setup_run = "docs/guide/setup.md",
    commands_of_troubleshooting_run = "docs/guide/troubleshooting.md",
    commands_of_ui_run = "docs/guide/ui.md",
    commands_of_verify_run = "docs/guide/verify.md",
    commands_of_the_readme_run = "README.md",
}

/// The tutorial has a test of its own, which also compares what it prints.
const TUTORIAL_PATH: &str = "docs/guide/tutorial.md";

#[test]
fn every_document_with_commands_has_a_test() {
    let mut tested: BTreeSet<String> = WITH_TESTS.iter().map(|path| (*path).to_owned()).collect();
    assert_eq!(tested, book::documents_in_book());
    tested.insert(TUTORIAL_PATH.to_owned());
    assert_eq!(tested, book::documents_with_commands());
}

#[test]
fn every_command_in_the_text_runs() {
    let problems = book::run_commands_in_text();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn recipes_fail_before_the_work_and_succeed_after_it() {
    const RECIPES: &str = "docs/guide/recipes.md";
    assert_eq!(book::recipes_in(RECIPES), book::recipes_in_book());
    let problems = book::run_recipes(RECIPES);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
