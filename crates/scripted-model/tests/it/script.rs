//! The script's format: strict, with an error message for every mistake.

use scripted_model::ModelScript;

fn parse_error(text: &str) -> String {
    ModelScript::parse(text).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn invalid_script_is_refused_with_the_reason() {
    for (text, error) in [
        ("", "missing field `part`"),
        ("part = []", "the script has no part: add a `[[part]]` table"),
        ("[[part]]\nstep = []", "part 1 of the script has no step: add a `[[part.step]]` table"),
        ("[[part]]\n[[part.step]]", "step 0 of part 1 has no action: add `do`, or a fault without `times`"),
        ("[[part]]\n[[part.step]]\nfault = [{ times = 1, what = 'drop' }]", "step 0 of part 1 has no action"),
        ("[[part]]\n[[part.step]]\ndo.shel = 'x'", "unknown variant `shel`"),
        (
            "[[part]]\n[[part.step]]\ndo.tool = { name = 'x', arguments = {}, more = 1 }",
            "unexpected keys in table: more",
        ),
        ("[[part]]\n[[part.step]]\ndoes.shell = 'x'", "unknown field `does`"),
        ("counts = 'x'\n[[part]]\n[[part.step]]\ndo.final = 'x'", "unknown field `counts`"),
        ("count = 'x'\n[[part]]\n[[part.step]]\ndo.final = 'x'", "unknown variant `x`"),
        ("usage = { in = 1 }\n[[part]]\n[[part.step]]\ndo.final = 'x'", "unknown field `in`"),
        (
            "[[part]]\n[[part.step]]\nfault = [{ what.http.status = 99 }]",
            "HTTP status 99: use a status from 200 to 599",
        ),
        ("[[part]]\n[[part.step]]\nfault = [{ what = 'explode' }]", "unknown variant `explode`"),
    ] {
        assert!(parse_error(text).contains(error), "{text}\n{}", parse_error(text));
    }
    assert_eq!(parse_error("[[part]]\n[[part.step]]\nfault = [{ what = 'hang' }]"), "");
}

#[test]
fn bundled_scripts_are_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts");
    let scripts: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!scripts.is_empty());
    for path in scripts {
        assert_eq!(parse_error(&std::fs::read_to_string(&path).unwrap()), "", "{}", path.display());
    }
}

#[test]
fn documented_example_is_valid() {
    let source = include_str!("../../src/script.rs");
    let block = source.split("```").nth(1).unwrap().strip_prefix("toml\n").unwrap();
    let lines: Vec<&str> = block.lines().map(|line| line.trim_start_matches("//!").trim_start()).collect();
    assert_eq!(parse_error(&lines.join("\n")), "");
}
