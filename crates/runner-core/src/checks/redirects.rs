//! What can change which tests run in the place of a check's files: settings in Cargo.toml, and files that Python loads first.

use toml::{Table, Value};

use crate::model::checks::Check;

/// Files that Python or pytest loads before a test file in the same folder or below it.
const PYTHON_FILES: [&str; 3] = ["__init__.py", "conftest.py", "pytest.ini"];

/// Everything of this kind for the files of a check, each as people read it. `read` returns a file of the repository.
pub fn redirects(check: &Check, read: impl Fn(&str) -> Option<Vec<u8>>) -> Vec<String> {
    let mut found = Vec::new();
    for destination in check.files.keys() {
        let path = destination.as_str();
        if path.ends_with(".py") {
            found.extend(python(path, &read));
        }
        if path.ends_with(".rs") {
            found.extend(cargo(path, &read));
        }
    }
    found.retain(|redirect| check.files.keys().all(|file| file.as_str() != redirect));
    found.sort();
    found.dedup();
    found
}

/// The files that are loaded before a test file, in its folder and in those above it. An empty one does nothing.
fn python(path: &str, read: &impl Fn(&str) -> Option<Vec<u8>>) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = path;
    while let Some((folder, _)) = rest.rsplit_once('/') {
        found.extend(PYTHON_FILES.iter().map(|name| format!("{folder}/{name}")));
        rest = folder;
    }
    // A module in the root has no package.
    found.extend(PYTHON_FILES.iter().skip(1).map(|name| (*name).to_owned()));
    let has_effect = |bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'))
    };
    found.retain(|path| read(path).is_some_and(has_effect));
    found
}

/// The settings with which Cargo does not run a file in `tests` as a test program, or runs another one under its name.
fn cargo(path: &str, read: &impl Fn(&str) -> Option<Vec<u8>>) -> Vec<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let (package, name) = match parts.as_slice() {
        [package @ .., "tests", file] => (package, file.strip_suffix(".rs")),
        [package @ .., "tests", name, "main.rs"] => (package, Some(*name)),
        _ => return Vec::new(),
    };
    let manifest = [package, &["Cargo.toml"]].concat().join("/");
    let file = parts.get(package.len()..).unwrap_or_default().join("/");
    let (Some(bytes), Some(name)) = (read(&manifest), name) else { return Vec::new() };
    let parsed = String::from_utf8(bytes).ok().and_then(|text| text.parse::<Table>().ok());
    let Some(document) = parsed else { return vec![format!("{manifest} (unreadable)")] };
    let is_off = |table: Option<&Table>, key: &str| {
        table.and_then(|table| table.get(key)).and_then(Value::as_bool) == Some(false)
    };
    let table = |key: &str| document.get(key).and_then(Value::as_table);
    let entries = document.get("test").and_then(Value::as_array).into_iter().flatten();
    let entries: Vec<&Table> = entries.filter_map(Value::as_table).collect();
    let text = |entry: &Table, key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let of_file = |entry: &&Table| match text(entry, "path") {
        Some(path) => path.trim_start_matches("./") == file,
        None => text(entry, "name").as_deref() == Some(name),
    };
    let mut found = Vec::new();
    if is_off(table("package"), "autotests") && !entries.iter().any(of_file) {
        found.push(format!("{manifest}#package.autotests"));
    }
    if is_off(table("lib"), "test") {
        found.push(format!("{manifest}#lib.test"));
    }
    for entry in entries {
        let is_named = text(entry, "name").as_deref() == Some(name);
        if is_named && !of_file(&entry) {
            found.push(format!("{manifest}#test.{name}.path"));
        }
        for key in ["harness", "test"] {
            if of_file(&entry) && is_off(Some(entry), key) {
                found.push(format!("{manifest}#test.{name}.{key}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn found(file: &str, repository: &[(&str, &str)]) -> Vec<String> {
        let toml = format!("[[check]]\nname = \"c\"\ncommand = [\"x\"]\nfiles = {{ \"{file}\" = \"n\" }}\n");
        let check = crate::model::checks::decode(toml.as_bytes()).unwrap().remove(0);
        let files: BTreeMap<&str, &str> = repository.iter().copied().collect();
        redirects(&check, |path| files.get(path).map(|text| text.as_bytes().to_vec()))
    }

    #[test]
    fn files_that_python_loads_first_are_found_unless_they_are_empty() {
        let files = [
            ("t/__init__.py", "import sys\n"),
            ("t/a/__init__.py", "# nothing\n\n"),
            ("conftest.py", "x = 1\n"),
            ("__init__.py", "x = 1\n"),
            ("other/conftest.py", "x = 1\n"),
        ];
        assert_eq!(found("t/a/test_p.py", &files), ["conftest.py", "t/__init__.py"]);
        assert_eq!(found("t/test_p.mjs", &files), [""; 0]);
        assert_eq!(found("conftest.py", &files), [""; 0], "a file of the check itself");
    }

    #[test]
    fn settings_of_cargo_that_keep_a_test_file_from_running_are_found() {
        for (manifest, expected) in [
            ("[package]\nname = \"a\"\n", None),
            ("[package]\nautotests = false\n", Some("p/Cargo.toml#package.autotests")),
            ("[package]\nautotests = false\n[[test]]\nname = \"x\"\npath = \"tests/nested.rs\"\n", None),
            (
                "[[test]]\nname = \"nested\"\npath = \"tests/other.rs\"\n",
                Some("p/Cargo.toml#test.nested.path"),
            ),
            ("[[test]]\nname = \"nested\"\nharness = false\n", Some("p/Cargo.toml#test.nested.harness")),
            ("[[test]]\nname = \"nested\"\ntest = false\n", Some("p/Cargo.toml#test.nested.test")),
            ("[[test]]\nname = \"other\"\nharness = false\n", None),
            ("[lib]\ntest = false\n", Some("p/Cargo.toml#lib.test")),
            ("[", Some("p/Cargo.toml (unreadable)")),
        ] {
            let files = [("p/Cargo.toml", manifest)];
            let expected: Vec<&str> = expected.into_iter().collect();
            assert_eq!(found("p/tests/nested.rs", &files), expected, "{manifest}");
            assert_eq!(found("p/tests/it/nested.rs", &files), [""; 0], "a module of another program");
        }
        assert_eq!(found("tests/nested.rs", &[]), [""; 0]);
    }
}
