//! The script's format: strict, and every fault in words.

use scripted_model::ModelScript;

fn told(text: &str) -> String {
    ModelScript::parse(text).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_script_that_says_what_does_not_exist_is_refused() {
    for (text, fault) in [
        ("", "missing field `part`"),
        ("part = []", "the script has no part: add one, as `[[part]]`"),
        ("[[part]]\nstep = []", "part 1 of the script has no step: add one, as `[[part.step]]`"),
        (
            "[[part]]\n[[part.step]]",
            "step 0 of part 1 does nothing: give it `do`, or a fault without `times`",
        ),
        ("[[part]]\n[[part.step]]\nfault = [{ times = 1, what = 'drop' }]", "step 0 of part 1 does nothing"),
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
            "HTTP status 99, which there is not",
        ),
        ("[[part]]\n[[part.step]]\nfault = [{ what = 'explode' }]", "unknown variant `explode`"),
    ] {
        assert!(told(text).contains(fault), "{text}\n{}", told(text));
    }
    assert_eq!(told("[[part]]\n[[part.step]]\nfault = [{ what = 'hang' }]"), "");
}

#[test]
fn the_scripts_that_come_along_can_be_played() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts");
    let scripts: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!scripts.is_empty());
    for path in scripts {
        assert_eq!(told(&std::fs::read_to_string(&path).unwrap()), "", "{}", path.display());
    }
}

/// The example in the documentation of the format is one.
#[test]
fn the_documented_example_can_be_played() {
    let source = include_str!("../../src/script.rs");
    let block = source.split("```").nth(1).unwrap().strip_prefix("toml\n").unwrap();
    let lines: Vec<&str> = block.lines().map(|line| line.trim_start_matches("//!").trim_start()).collect();
    assert_eq!(told(&lines.join("\n")), "");
}
