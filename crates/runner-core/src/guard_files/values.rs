//! Values in JSON and TOML files: comparing one between two versions of a file, and restoring it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::protection::{FileEntry, Protection};
use crate::model::repo_path::RepoPath;
use crate::text::offset_in;

/// The value of an entry in a file, as text; `None` if it has none. A file that cannot be parsed is its own value, so that any
/// change of it counts.
pub fn entry_value(entry: &FileEntry, file: Option<&[u8]>) -> Option<String> {
    let file = file?;
    let Some(document) = parse(entry, file) else { return Some(String::from_utf8_lossy(file).into_owned()) };
    value_at(&document, &entry.keys).map(ToString::to_string)
}

/// A protected entry that a commit changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedEntry {
    /// The path under which it is reported.
    pub path: Vec<u8>,
    /// Whether it has a value afterwards.
    pub exists: bool,
}

/// The protected entries of a file whose values differ between two versions of it.
pub fn changed_entries_of(
    protection: &Protection,
    file: &RepoPath,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
) -> Vec<ChangedEntry> {
    let mut changed = Vec::new();
    for entry in protection.entries.iter().filter(|entry| entry.file == *file) {
        let value = entry_value(entry, after);
        if entry_value(entry, before) != value {
            changed.push(ChangedEntry { path: entry.path().to_bytes(), exists: value.is_some() });
        }
    }
    changed
}

/// A file as a session left it, with these entries as they were before; `None` if the file must be restored as a whole.
pub fn restored_entries(entries: &[&FileEntry], before: Option<&[u8]>, after: &[u8]) -> Option<Vec<u8>> {
    let first = entries.first()?;
    if is_toml(first) {
        return None;
    }
    let old = parse(first, before?)?;
    let mut new = parse(first, after)?;
    for entry in entries {
        let (last, parents) = entry.keys.split_last()?;
        let mut folder = &mut new;
        for key in parents {
            let map = folder.as_object_mut()?;
            folder = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
        }
        let folder = folder.as_object_mut()?;
        match value_at(&old, &entry.keys) {
            Some(value) => drop(folder.insert(last.clone(), value.clone())),
            None => drop(folder.shift_remove(last)),
        }
    }
    if let Some(text) = spliced_entries(entries, before?, after)
        && serde_json::from_str::<Value>(&text).is_ok_and(|document| document == new)
    {
        return Some(text.into_bytes());
    }
    let mut bytes = Vec::new();
    let indent = indent_of(after);
    let mut serializer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(&indent));
    new.serialize(&mut serializer).ok()?;
    bytes.push(b'\n');
    Some(bytes)
}

/// A JSON file with these entries as they were before, and every other byte as it is; `None` if it has no place for one.
fn spliced_entries(entries: &[&FileEntry], before: &[u8], after: &[u8]) -> Option<String> {
    let before = std::str::from_utf8(before).ok()?;
    let after = std::str::from_utf8(after).ok()?.to_owned();
    entries.iter().try_fold(after, |text, entry| spliced(before, &text, &entry.keys))
}

fn spliced(before: &str, after: &str, keys: &[String]) -> Option<String> {
    let (last, parents) = keys.split_last()?;
    let parent = raw_at(after, parents)?;
    let members = members_of(parent)?;
    let start = |part: &RawValue| offset_in(after, part.get());
    let end = |part: &RawValue| start(part) + part.get().len();
    let opened = start(parent) + 1;
    let (from, to, new) = match (members.get(last).copied(), raw_at(before, keys)) {
        (None, None) => return Some(after.to_owned()),
        (Some(value), Some(old)) => (start(value), end(value), old.get().to_owned()),
        (None, Some(old)) => {
            let at = members.values().copied().map(end).max()?;
            let rest = after.get(opened..)?;
            let space = rest.get(..rest.len() - rest.trim_start().len())?;
            (at, at, format!(",{space}{}: {}", Value::from(last.as_str()), old.get()))
        }
        (Some(value), None) => {
            let ends = members.values().copied().map(end);
            match ends.filter(|end| *end <= start(value)).max() {
                // With the comma before it.
                Some(previous) => (previous, end(value), String::new()),
                None => {
                    let rest = after.get(end(value)..)?.trim_start();
                    (opened, offset_in(after, rest.strip_prefix(',').unwrap_or(rest)), String::new())
                }
            }
        }
    };
    Some(format!("{}{new}{}", after.get(..from)?, after.get(to..)?))
}

/// The text of a value in a JSON text.
fn raw_at<'t>(text: &'t str, keys: &[String]) -> Option<&'t RawValue> {
    let document: &RawValue = serde_json::from_str(text).ok()?;
    keys.iter().try_fold(document, |object, key| members_of(object)?.remove(key))
}

fn members_of(object: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(object.get()).ok()
}

fn is_toml(entry: &FileEntry) -> bool {
    entry.file.as_str().ends_with(".toml")
}

fn parse(entry: &FileEntry, file: &[u8]) -> Option<Value> {
    if is_toml(entry) {
        toml::from_str(std::str::from_utf8(file).ok()?).ok()
    } else {
        serde_json::from_slice(file).ok()
    }
}

fn value_at<'v>(document: &'v Value, keys: &[String]) -> Option<&'v Value> {
    keys.iter().try_fold(document, |value, key| value.get(key))
}

/// The indent of a JSON document: the white space before its first key.
fn indent_of(file: &[u8]) -> Vec<u8> {
    let after_line: Vec<u8> = file.iter().copied().skip_while(|byte| *byte != b'\n').skip(1).collect();
    let indent: Vec<u8> = after_line.into_iter().take_while(|byte| matches!(byte, b' ' | b'\t')).collect();
    if indent.is_empty() { b"  ".to_vec() } else { indent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::repo_path::RepoPath;

    fn entry(file: &str, keys: &[&str]) -> FileEntry {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        FileEntry { file: RepoPath::of_bytes(file.as_bytes()), keys, pinned: true }
    }

    #[test]
    fn a_value_is_compared_without_its_form() {
        let test = entry("package.json", &["scripts", "test"]);
        let value = |text: &str| entry_value(&test, Some(text.as_bytes()));
        assert_eq!(
            value(r#"{"scripts": {"test": "jest"}}"#),
            value("{\"scripts\":\n{\"test\":\"jest\", \"x\": 1}}")
        );
        assert_ne!(value(r#"{"scripts": {"test": "jest"}}"#), value(r#"{"scripts": {"test": "true"}}"#));
        assert_eq!(value("{}"), None);
        assert_eq!(value("{not json").as_deref(), Some("{not json"), "a broken file is its own value");
        assert_eq!(entry_value(&test, None), None);
        let pytest = entry("pyproject.toml", &["tool", "pytest"]);
        let toml = b"[tool.pytest.ini_options]\naddopts = \"-q\"\n";
        assert_eq!(entry_value(&pytest, Some(toml)).as_deref(), Some(r#"{"ini_options":{"addopts":"-q"}}"#));
    }

    #[test]
    fn only_the_entries_are_restored() {
        let before = b"{\n    \"name\": \"a\",\n    \"scripts\": {\n        \"test\": \"jest\"\n    }\n}\n";
        let after = b"{\n    \"name\": \"a\",\n    \"scripts\": {\n        \"pretest\": \"rm -rf test\",\n        \"test\": \"true\",\n        \"dev\": \"vite\"\n    },\n    \"dependencies\": {\n        \"b\": \"1\"\n    }\n}\n";
        let test = entry("package.json", &["scripts", "test"]);
        let pretest = entry("package.json", &["scripts", "pretest"]);
        let restored = restored_entries(&[&test, &pretest], Some(before), after).unwrap();
        let expected = "{\n    \"name\": \"a\",\n    \"scripts\": {\n        \"test\": \"jest\",\n        \"dev\": \"vite\"\n    },\n    \"dependencies\": {\n        \"b\": \"1\"\n    }\n}\n";
        assert_eq!(String::from_utf8(restored).unwrap(), expected);
        assert_eq!(restored_entries(&[&test], Some(before), b"{"), None);
        assert_eq!(restored_entries(&[&test], Some(before), b"[]"), None);
        assert_eq!(restored_entries(&[&entry("a.toml", &["x"])], Some(b"x = 1"), b"x = 2"), None);
        let without = restored_entries(&[&test], Some(before), b"{}").unwrap();
        assert_eq!(entry_value(&test, Some(&without)).as_deref(), Some("\"jest\""), "{without:?}");
    }

    #[test]
    fn restored_file_keeps_the_form_that_it_has() {
        let test = entry("package.json", &["scripts", "test"]);
        let before = r#"{"scripts": {"test": "jest"}}"#;
        for (after, expected) in [
            (
                r#"{"name":"ä",  "scripts":{"test":"true","dev":"vite"}}"#,
                r#"{"name":"ä",  "scripts":{"test":"jest","dev":"vite"}}"#,
            ),
            (
                "{\n\t\"scripts\": {\n\t\t\"dev\": \"a\\\"}\"\n\t}\n}",
                "{\n\t\"scripts\": {\n\t\t\"dev\": \"a\\\"}\",\n\t\t\"test\": \"jest\"\n\t}\n}",
            ),
        ] {
            let restored = restored_entries(&[&test], Some(before.as_bytes()), after.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(restored).unwrap(), expected);
        }
        let before = Some(&b"{}"[..]);
        for (after, expected) in [
            (r#"{"scripts": { "test": 1, "a": 2 }}"#, r#"{"scripts": { "a": 2 }}"#),
            (r#"{"scripts": { "a": 2, "test": 1 }}"#, r#"{"scripts": { "a": 2 }}"#),
            (r#"{"scripts": { "a": 2, "test": 1 , "b": 3}}"#, r#"{"scripts": { "a": 2 , "b": 3}}"#),
            (r#"{"scripts": { "test": 1 }}"#, r#"{"scripts": {}}"#),
        ] {
            let restored = restored_entries(&[&test], before, after.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(restored).unwrap(), expected);
        }
        let twice =
            restored_entries(&[&test], before, br#"{"scripts": {"test": 1, "a": 2, "test": 3}}"#).unwrap();
        assert_eq!(entry_value(&test, Some(&twice)), None, "a key that is there twice");
    }
}
