//! Every command of the book is run: each block of commands in a repository that `book.toml` prepares for it.
//!
//! `book.toml` has an entry for each block of each document, in their order. A block without an entry fails, and so does an entry
//! without a block. What cannot run here has a reason there.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a table that lacks an entry fails the test with the name of the entry"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::test_repo::{RunOutput, TestRepo, run};
use toml::{Table, Value};

use super::markdown::{Block, blocks, code_spans, logical_lines};
use crate::RUNNER;
use crate::fixtures::visible_text;

/// What a placeholder of the book stands for.
const PLACEHOLDERS: &[(&str, &str)] =
    &[("<run>", "add-oauth-login"), ("<id>", "add-oauth-login"), ("cd your-repository", "cd .")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn book() -> Table {
    let path = root().join("crates/runner/tests/it/documents/book.toml");
    toml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The documents whose commands a user types, relative to the root.
pub(super) fn documents() -> Vec<String> {
    let in_folder = |folder: &str| {
        let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
        let names = entries.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(".md"));
        names.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    let mut documents = [in_folder("docs/guide"), in_folder("docs"), vec!["README.md".to_owned()]].concat();
    documents.sort();
    documents
}

fn text_of(document: &str) -> String {
    fs::read_to_string(root().join(document)).unwrap()
}

/// The text of all documents.
pub(super) fn texts() -> String {
    documents().iter().map(|document| text_of(document)).collect()
}

/// The blocks of a document that are commands, or commands with their output.
fn command_blocks(document: &str) -> Vec<Block> {
    blocks(&text_of(document))
        .into_iter()
        .filter(|block| block.is_commands() || block.is_transcript())
        .collect()
}

fn string<'a>(entry: &'a Table, key: &str) -> Option<&'a str> {
    entry.get(key).map(|value| value.as_str().unwrap())
}

fn pairs(entry: &Table, key: &str) -> BTreeMap<String, Value> {
    let table = entry.get(key).and_then(Value::as_table);
    table.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The value of the first key that a line begins with.
fn for_line<'a>(pairs: &'a BTreeMap<String, Value>, line: &str) -> Option<&'a Value> {
    pairs.iter().find(|(key, _)| line.starts_with(key.as_str())).map(|(_, value)| value)
}

/// A prepared folder: `app` is the repository, and everything that a command may need is beside it.
struct Stage {
    repo: TestRepo,
    is_used: bool,
}

impl Stage {
    fn build(name: &str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let repo = TestRepo::empty_in(RUNNER, folder);
        let bin = repo.outside().join("bin");
        fs::create_dir(&bin).unwrap();
        // Outside of `target`, or `runner eval` would build the runner first.
        fs::hard_link(RUNNER, bin.join("runner")).unwrap();
        let stage = Self { repo, is_used: false };
        let script = format!("set -euo pipefail\n{}", stage_script(&book(), name));
        let built = run(stage.shell(&script).env("BIN", &bin));
        assert_eq!(built.code, Some(0), "stage {name}:\n{}\n{}", built.stdout, built.stderr);
        run(stage.repo.command("cp").args(["-a", "work", "home", "saved"]).current_dir(stage.around())).ok();
        stage
    }

    /// The folder around everything, with a place for the copy.
    fn around(&self) -> &Path {
        let outside = self.repo.outside();
        fs::create_dir_all(outside.join("saved")).unwrap();
        outside
    }

    /// The state that the stage's script left.
    fn restore(&mut self) {
        if self.is_used {
            let script = "chmod -R u+w work home; rm -rf work home; cp -a saved/work saved/home .";
            run(self.repo.command("sh").args(["-c", script]).current_dir(self.repo.outside())).ok();
        }
        self.is_used = true;
    }

    fn shell(&self, script: &str) -> Command {
        let mut command = self.repo.command("bash");
        command.args(["-c", script]);
        self.environment(&mut command);
        command
    }

    fn environment(&self, command: &mut Command) {
        let bin = self.repo.outside().join("bin");
        command
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()))
            .env("TERM", "xterm-256color")
            .env("NO_COLOR", "1")
            .env("RUNNER_PAGER", "cat")
            .env("GIT_PAGER", "cat")
            .env("EDITOR", "true")
            .env("TZ", "UTC")
            .env("REPOSITORY", root())
            .env("CODEX_API_KEY", "sk-no-key")
            .env("ANTHROPIC_API_KEY", "sk-no-key");
    }

    /// Types these lines on a terminal, in the repository.
    fn typed(&self, script: &str, input: &str) -> RunOutput {
        let file = self.repo.outside().join("typed.sh");
        let keys = self.repo.outside().join("keys");
        fs::write(&file, format!("stty cols 100 rows 30\ncd app\n{script}\n")).unwrap();
        fs::write(&keys, input).unwrap();
        let mut command = self.repo.command("script");
        command.args(["-qec", &format!("bash {}", file.display()), "/dev/null"]);
        command.stdin(fs::File::open(keys).unwrap());
        self.environment(&mut command);
        let output = run(&mut command);
        RunOutput { stdout: visible_text(&output.stdout), ..output }
    }
}

/// What a command prints on a terminal, with colours. The folder around the repository is shown as the user's home.
pub(super) fn recorded(stage: &str, command: &str, input: &str) -> String {
    let mut stage = Stage::build(stage);
    stage.restore();
    let output = stage.typed(&format!("unset NO_COLOR\n{command}"), input).stdout;
    let folder = |name: &str| stage.repo.outside().join(name).display().to_string();
    output.replace(&folder("work"), "/home/dana").replace(&folder("home"), "/home/dana")
}

/// The script of a stage after those of the stages that it continues.
fn stage_script(book: &Table, name: &str) -> String {
    let stage = book["stage"][name].as_table().unwrap_or_else(|| panic!("no stage `{name}`"));
    let before = string(stage, "after").map(|name| stage_script(book, name)).unwrap_or_default();
    format!("{before}{}\n", string(stage, "script").unwrap())
}

/// A line with everything in the place of its placeholders.
fn filled(line: &str, replace: &BTreeMap<String, Value>) -> String {
    let mut line = line.to_owned();
    for (from, to) in replace {
        line = line.replace(from, to.as_str().unwrap());
    }
    for (from, to) in PLACEHOLDERS {
        line = line.replace(from, to);
    }
    line
}

/// A script that runs one line and fails if it ends with another exit code than this.
fn checked(line: &str, code: i64) -> String {
    format!(
        "{line}\n__code=$?; [ $__code = {code} ] || {{ echo \"@@ exit $__code, not {code}: \"{}; exit 99; }}\n",
        quoted(line)
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A script that starts a server, and ends it when it has printed this.
fn until(line: &str, text: &str) -> String {
    format!(
        "coproc server {{\nexec 2>&1\nexec {line}\n}}\n__found=\nwhile read -r __line <&\"${{server[0]}}\"; do\n\
         echo \"$__line\"\n[[ $__line == *{}* ]] && {{ __found=1; break; }}\ndone\n\
         kill \"$server_PID\" 2>/dev/null; [ -n \"$__found\" ] || {{ echo '@@ it ended'; exit 99; }}\n",
        quoted(text)
    )
}

/// One block with its entry.
struct BlockPlan<'a> {
    block: &'a Block,
    entry: &'a Table,
}

impl BlockPlan<'_> {
    fn commands(&self) -> Vec<String> {
        let text = if self.block.is_transcript() {
            let lines = self.block.text.lines().filter_map(|line| line.strip_prefix("$ "));
            lines.map(|line| format!("{line}\n")).collect()
        } else {
            self.block.text.clone()
        };
        let replace = pairs(self.entry, "replace");
        let not_run = pairs(self.entry, "not_run");
        let lines = logical_lines(&text).into_iter().filter(|line| for_line(&not_run, line).is_none());
        lines.map(|line| filled(&line, &replace)).collect()
    }

    /// Each command as a script that fails if the command does.
    fn scripts(&self) -> Vec<String> {
        let exits = pairs(self.entry, "exits");
        let servers = pairs(self.entry, "until");
        let script = |line: &String| match for_line(&servers, line) {
            Some(text) => until(line, text.as_str().unwrap()),
            None => checked(line, for_line(&exits, line).map_or(0, |code| code.as_integer().unwrap())),
        };
        self.commands().iter().map(script).collect()
    }

    /// Runs the block and returns what it printed.
    fn run(&self, document: &str) -> String {
        let Some(name) = string(self.entry, "stage") else {
            let reasons = pairs(self.entry, "not_run");
            assert!(
                self.commands().is_empty() && !reasons.is_empty(),
                "{document}: no stage for\n{}",
                self.block.text
            );
            return String::new();
        };
        let mut stage = Stage::build(name);
        let prepare = string(self.entry, "prepare").unwrap_or_default();
        let input = string(self.entry, "input").unwrap_or_default();
        let units = match (string(self.entry, "file"), self.entry.get("each")) {
            (Some(file), _) => {
                let text = filled(&self.block.text, &pairs(self.entry, "replace"));
                let then = string(self.entry, "then").unwrap();
                vec![format!("cat > {file} <<'@@'\n{text}@@\n{}", checked(then, 0))]
            }
            (None, Some(_)) => self.scripts(),
            (None, None) => vec![self.scripts().concat()],
        };
        let mut printed = String::new();
        for unit in units {
            stage.restore();
            let prepare =
                format!("(set -e\n{prepare}\n) </dev/null >/dev/null || {{ echo '@@ prepare'; exit 99; }}");
            let output = stage.typed(&format!("{prepare}\n{unit}"), input);
            assert_eq!(output.code, Some(0), "{document}, stage {name}:\n{unit}\n{}", output.stdout);
            printed.push_str(&output.stdout);
        }
        printed
    }
}

/// Text without what differs from run to run, object ids, and from terminal to terminal, the width of columns.
fn steady(text: &str) -> String {
    let is_id = |word: &str| word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let steady = words.map(|word| {
        let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        let (word, rest) = word.split_at(end);
        format!("{}{rest}", if is_id(word) { "ID" } else { word })
    });
    let text: String = steady.collect();
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Asserts that every line of output in a transcript was printed.
fn assert_shown(document: &str, block: &Block, printed: &str) {
    let printed = steady(printed);
    let shown = block.text.lines().filter(|line| !line.starts_with("$ ") && !line.trim().is_empty());
    for line in shown {
        let line = steady(line.trim_end());
        assert!(printed.contains(&line), "{document}: `{line}` is not in:\n{printed}");
    }
}

fn entries<'a>(book: &'a Table, document: &str) -> Vec<&'a Table> {
    let entries = book.get(document).and_then(Value::as_array);
    entries.into_iter().flatten().map(|entry| entry.as_table().unwrap()).collect()
}

/// Runs every block of a document.
pub(super) fn run_document(document: &str) {
    let book = book();
    let blocks = command_blocks(document);
    let entries = entries(&book, document);
    let begins = |block: &Block| block.text.lines().next().unwrap_or_default().to_owned();
    let expected: Vec<String> =
        entries.iter().map(|entry| string(entry, "begins").unwrap().to_owned()).collect();
    let found: Vec<String> = blocks.iter().map(begins).collect();
    let matches = found.iter().zip(&expected).all(|(found, expected)| found.starts_with(expected.as_str()));
    assert!(
        matches && found.len() == expected.len(),
        "{document}: book.toml needs one entry for each block\nblocks  {found:#?}\nentries {expected:#?}"
    );
    for (block, entry) in blocks.iter().zip(entries) {
        let printed = BlockPlan { block, entry }.run(document);
        if block.is_transcript() {
            assert_shown(document, block, &printed);
        }
    }
}

/// The documents that have commands.
pub(super) fn documents_with_commands() -> BTreeSet<String> {
    documents().into_iter().filter(|document| !command_blocks(document).is_empty()).collect()
}

/// The documents with entries.
pub(super) fn documents_in_book() -> BTreeSet<String> {
    book().keys().filter(|key| key.ends_with(".md")).cloned().collect()
}

/// All commands that the blocks run, without their comments.
fn commands_of_blocks() -> BTreeSet<String> {
    let book = book();
    let mut commands = BTreeSet::new();
    for document in documents_with_commands() {
        for (block, entry) in command_blocks(&document).iter().zip(entries(&book, &document)) {
            commands.extend(BlockPlan { block, entry }.commands().iter().map(|line| without_comment(line)));
        }
    }
    commands
}

fn without_comment(line: &str) -> String {
    line.split(" # ").next().unwrap_or_default().trim_end().to_owned()
}

/// The commands of this program between backticks, in text and tables, each with its document.
pub(super) fn commands_in_text() -> BTreeMap<String, String> {
    let mut commands = BTreeMap::new();
    for document in documents() {
        for span in code_spans(&text_of(&document)) {
            if span.starts_with("runner ") && !span.contains('@') || span.starts_with("runner log @") {
                commands.insert(span, document.clone());
            }
        }
    }
    commands
}

/// Runs the commands of the text that no block has, stage by stage, and returns the rest.
pub(super) fn run_commands_in_text() -> Vec<String> {
    let book = book();
    let in_blocks = commands_of_blocks();
    let groups: Vec<&Table> =
        book["text"].as_array().unwrap().iter().map(|group| group.as_table().unwrap()).collect();
    let mut run_here = BTreeSet::new();
    for group in &groups {
        let lines = group.get("commands").and_then(Value::as_table).cloned().unwrap_or_default();
        run_here.extend(lines.keys().cloned());
        run_here.extend(pairs(group, "not_run").into_keys());
        let Some(name) = string(group, "stage") else { continue };
        let exits = pairs(group, "exits");
        let script = |typed: &Value| {
            let typed = typed.as_str().unwrap();
            checked(typed, for_line(&exits, typed).map_or(0, |code| code.as_integer().unwrap()))
        };
        let mut stage = Stage::build(name);
        stage.restore();
        let script: String = lines.values().map(script).collect();
        let prepare = string(group, "prepare").unwrap_or_default();
        let output = stage.typed(&format!("{prepare}\n{script}"), "");
        assert_eq!(output.code, Some(0), "stage {name}:\n{}", output.stdout);
    }
    let is_run =
        |command: &str| run_here.contains(command) || in_blocks.iter().any(|typed| is_in(command, typed));
    let spans = commands_in_text();
    let unused = run_here.iter().filter(|command| !spans.contains_key(*command));
    let missing = spans.iter().filter(|(command, _)| !is_run(command));
    let missing = missing
        .map(|(command, document)| format!("{document}: `{command}` is in no block and not in book.toml"));
    missing.chain(unused.map(|command| format!("book.toml: no document has `{command}`"))).collect()
}

/// Whether a command is part of what a block types: the same words, and maybe more.
fn is_in(command: &str, typed: &str) -> bool {
    typed.match_indices(command).any(|(at, _)| {
        let after = typed.get(at + command.len()..).unwrap_or_default();
        after.is_empty() || after.starts_with([' ', '\n', ';'])
    })
}

/// Runs each recipe for a check where it must fail, and where it must succeed.
pub(super) fn run_recipes(document: &str) -> Vec<String> {
    let book = book();
    let recipes = book["recipe"].as_array().unwrap();
    let text = text_of(document).replace("\\|", "|");
    let mut problems = Vec::new();
    for recipe in recipes {
        let recipe = recipe.as_table().unwrap();
        let command = string(recipe, "command").unwrap();
        if !text.contains(&format!("`{command}`")) {
            problems.push(format!("{document} has no recipe `{command}`"));
        }
        for (key, expected) in [("before", string(recipe, "red").unwrap_or("fails")), ("after", "succeeds")] {
            let repo = TestRepo::with_commit(RUNNER);
            run(repo.command("sh").args(["-ec", string(recipe, key).unwrap()])).ok();
            // As a check runs it: the words of a shell, without one around them.
            let code = run(repo.command("sh").args(["-c", &format!("exec {command}")])).code;
            let found = if code == Some(0) { "succeeds" } else { "fails" };
            if found != expected {
                problems.push(format!("`{command}` {found} {key} the work"));
            }
        }
    }
    problems
}

/// The recipes for checks in a document: the code in the second column of its table.
pub(super) fn recipes_in(document: &str) -> BTreeSet<String> {
    let text = text_of(document);
    let rows = text.lines().skip_while(|line| !line.starts_with("| to prove that")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split(" | ").nth(1));
    let is_command = |code: &String| !code.starts_with("--");
    cells.flat_map(code_spans).map(|code| code.replace("\\|", "|")).filter(is_command).collect()
}

/// The recipes that are run.
pub(super) fn recipes_in_book() -> BTreeSet<String> {
    let book = book();
    let recipes = book["recipe"].as_array().unwrap().iter();
    recipes.map(|recipe| recipe["command"].as_str().unwrap().to_owned()).collect()
}
