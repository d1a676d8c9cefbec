//! The tutorial is typed as it is written, and the pictures of terminals are made from it.

use std::fs;
use std::path::Path;

use testkit::generated::assert_generated;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::fixtures::visible_text;

const TUTORIAL: &str = include_str!("../../../../docs/guide/tutorial.md");

const COLUMNS: u32 = 90;

/// A fenced block of a document.
struct Block {
    language: String,
    text: String,
}

fn blocks(document: &str) -> Vec<Block> {
    let fenced = document.split("\n```").skip(1).step_by(2);
    fenced
        .map(|block| {
            let (language, text) = block.split_once('\n').unwrap();
            Block { language: language.to_owned(), text: format!("{text}\n") }
        })
        .collect()
}

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
    let is_time = word.contains(':') && word.bytes().any(|byte| byte.is_ascii_digit());
    if is_id {
        return "3f2a9c1e7b5d4086".chars().cycle().take(word.len()).collect();
    }
    if is_time {
        return word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    }
    word.to_owned()
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
        let svg = anstyle_svg::Term::new().render_svg(&steady(text.trim_end()));
        assert_generated(&format!("docs/images/terminal/{name}.svg"), svg.as_bytes());
    }
}
