//! The book is complete and true: the index has every page, tables are whole, and what developers type exists.
//!
//! What users type is run by `crates/runner/tests/it/documents`.

use std::collections::BTreeSet;

use crate::repository::{TrackedFile, assert_none, files, root};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("a tracked file")
}

fn documents() -> Vec<TrackedFile> {
    let is_document = |file: &TrackedFile| {
        file.path.ends_with(".md") && (file.path.starts_with("docs/") || !file.path.contains('/'))
    };
    files().into_iter().filter(is_document).collect()
}

#[test]
fn the_index_has_every_guide_and_reference() {
    let index = read("docs/index.md");
    let pages = documents().into_iter().filter_map(|file| Some(file.path.strip_prefix("docs/")?.to_owned()));
    let pages = pages.filter(|page| page.starts_with("guide/") || page.starts_with("reference/"));
    let missing = pages.filter(|page| !index.contains(&format!("({page})")));
    assert_none(&missing.map(|page| format!("docs/index.md: no link to {page}")).collect::<Vec<_>>());
}

#[test]
fn the_glossary_defines_each_term_once() {
    let mut seen = BTreeSet::new();
    let glossary = read("docs/glossary.md");
    let rows = glossary.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let terms = rows.filter_map(|row| row.split(" | ").next()).filter(|term| *term != "| for people");
    let repeated = terms.filter(|term| !seen.insert((*term).to_owned()));
    assert_none(&repeated.map(|term| format!("docs/glossary.md: `{term}` twice")).collect::<Vec<_>>());
}

/// The lines on which a table begins without a header.
fn rows_without_a_header(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let mut is_code = false;
    let mut found = Vec::new();
    for (index, pair) in lines.windows(3).enumerate() {
        is_code ^= pair.first().is_some_and(|line| line.trim_start().starts_with("```"));
        let [before, row, after] = pair else { continue };
        if !is_code && row.starts_with("| ") && before.trim().is_empty() && !after.starts_with("| -") {
            found.push(index + 2);
        }
    }
    found
}

#[test]
fn every_table_is_whole() {
    let mut violations = Vec::new();
    for file in documents() {
        let rows = rows_without_a_header(&file.text);
        violations
            .extend(rows.iter().map(|line| format!("{}:{line}: a row apart from its table", file.path)));
    }
    assert_none(&violations);
    assert_eq!(rows_without_a_header("\n| a |\n| --- |\n| b |\n\n| c |\n"), Vec::<usize>::new());
    assert_eq!(rows_without_a_header("| a |\n| --- |\n| b |\n\n| c |\nx\n"), [5]);
}

#[test]
fn every_exit_code_is_documented() {
    let source = read("crates/runner-term/src/output.rs");
    let codes: Vec<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub const ")?.split_once("Self(")?.1.strip_suffix(");"))
        .collect();
    assert!(codes.len() > 4, "{codes:?}");
    for code in codes {
        assert!(
            read("docs/guide/getting-started.md").contains(&format!("\n| {code} |")),
            "getting started: {code}"
        );
        assert!(read("docs/reference/cli.md").contains(&format!("\n  {code}   ")), "--help: {code}");
    }
}

/// What a developer types in a text: the code between backticks and the lines of blocks that begin with one of these programs.
fn developer_commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for line in text.lines() {
        let parts = line.split('`').chain(line.split("&& "));
        let typed = parts
            .filter(|part| ["just ", "cargo ", "scripts/"].iter().any(|program| part.starts_with(program)));
        commands.extend(typed.map(|part| part.split("  #").next().unwrap_or_default().trim().to_owned()));
    }
    commands
}

fn recipes() -> BTreeSet<String> {
    let text = read("justfile");
    let is_name = |line: &&str| line.starts_with(|c: char| c.is_ascii_lowercase()) && line.contains(':');
    let names = text.lines().filter(is_name).filter_map(|line| line.split([' ', ':']).next());
    names.map(str::to_owned).collect()
}

/// What is wrong with a command: a recipe, a script, a crate or a test that does not exist.
fn fault(
    command: &str,
    recipes: &BTreeSet<String>,
    crates: &BTreeSet<String>,
    sources: &str,
) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let (program, rest) = words.split_first()?;
    if *program == "just" {
        let recipe = rest.first()?;
        let is_recipe = recipe.starts_with(|c: char| c.is_ascii_lowercase());
        // The recipes of a user's own project.
        let is_example = matches!(*recipe, "ci" | "check" | "test" | "other");
        return (is_recipe && !is_example && !recipes.contains(*recipe))
            .then(|| format!("no recipe `{recipe}`"));
    }
    if let Some(script) = program.strip_prefix("scripts/").filter(|script| !script.is_empty()) {
        let exists = root().join("scripts").join(script.trim_end_matches(['.', ','])).exists();
        return (!exists && !script.contains(['*', '<'])).then(|| format!("no script `{script}`"));
    }
    let packages = words.windows(2).filter(|pair| pair.first() == Some(&"-p")).filter_map(|pair| pair.last());
    let missing = packages.copied().find(|package| !crates.contains(*package) && *package != "CRATE");
    if let Some(package) = missing {
        return Some(format!("no crate `{package}`"));
    }
    let (_, filter) = command.split_once("test(")?;
    let name = filter.split([')', ':']).next()?;
    (!sources.contains(name)).then(|| format!("no test `{name}`"))
}

#[test]
fn what_developers_type_exists() {
    let files = files();
    let recipes = recipes();
    let crates: BTreeSet<String> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml").map(str::to_owned))
        .collect();
    let sources: String = files
        .iter()
        .filter(|file| file.is_rust())
        .flat_map(|file| file.text.lines())
        .filter(|line| line.contains("fn ") || line.contains("mod "))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut violations = Vec::new();
    let mut count = 0;
    for file in documents().iter().filter(|file| file.path != "CHANGELOG.md") {
        for command in developer_commands(&file.text) {
            count += 1;
            let found = fault(&command, &recipes, &crates, &sources);
            violations.extend(found.map(|fault| format!("{}: `{command}`: {fault}", file.path)));
        }
    }
    assert_none(&violations);
    assert!(count > 60, "{count}");
    for wrong in [
        "just no-such-recipe",
        "cargo test -p no-such-crate",
        "scripts/no-such-script",
        "cargo nextest run -E 'test(no_such_test_at_all)'",
    ] {
        assert!(fault(wrong, &recipes, &crates, &sources).is_some(), "{wrong}");
    }
}

/// The dependencies in a manifest's table that neither their line nor the one before gives a reason for.
fn without_a_reason(manifest: &str) -> Vec<String> {
    let table = manifest.lines().skip_while(|line| *line != "[workspace.dependencies]").skip(1);
    let mut found = Vec::new();
    let mut before = "";
    for line in table.take_while(|line| !line.starts_with('[')) {
        let is_entry = line.contains(" = ") && !line.starts_with('#') && !line.contains("path = ");
        if is_entry && !line.contains(" # ") && !before.starts_with("# ") {
            found.push(line.to_owned());
        }
        before = line;
    }
    found
}

#[test]
fn every_dependency_has_a_reason() {
    assert_none(&without_a_reason(&read("Cargo.toml")));
    let example = "[workspace.dependencies]\na = \"1\"\nb = \"1\" # b\n# c\nc = \"1\"\nd = \"1\"\n[x]\n";
    assert_eq!(without_a_reason(example), ["a = \"1\"", "d = \"1\""]);
}
