//! Installs the plan that a case brings: tasks that `runner plan import` reads, and the checks of tasks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::case::toml_text;
use crate::files;
use crate::plan::arm::LeafChecks;

/// The names that the file of tasks may have in the plan's folder.
const TASK_FILES: [&str; 3] = ["plan.md", "plan.json", "plan.jsonl"];
const CHECKS_FILE: &str = "checks.toml";

/// The file of tasks in a plan's folder, if it has one.
pub(crate) fn task_file(plan: &Path) -> Option<PathBuf> {
    TASK_FILES.iter().map(|name| plan.join(name)).find(|path| path.is_file())
}

/// Copies the files of the plan's tasks to the folder of tasks in a repository.
pub(crate) fn write_task_files(plan: &Path, target: &Path, mode: Option<LeafChecks>) -> io::Result<()> {
    let source = plan.join("nodes");
    if !source.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(target)?;
    files::copy_files_into(&source, target)?;
    let Some(mode) = mode else { return Ok(()) };
    for entry in fs::read_dir(target)? {
        let file = entry?.path().join(CHECKS_FILE);
        if !file.is_file() {
            continue;
        }
        if mode == LeafChecks::Off {
            fs::remove_file(&file)?;
        } else {
            let text = with_red(&fs::read_to_string(&file)?, mode.red()).map_err(io::Error::other)?;
            fs::write(&file, text)?;
        }
    }
    Ok(())
}

/// A file of checks in which every check has this value of `red`.
fn with_red(text: &str, red: &str) -> Result<String, toml::de::Error> {
    let mut table: Table = text.parse()?;
    let checks = table.get_mut("check").and_then(Value::as_array_mut);
    for check in checks.into_iter().flatten().filter_map(Value::as_table_mut) {
        check.insert("red".to_owned(), Value::String(red.to_owned()));
    }
    Ok(toml_text(&table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arm_decides_about_the_checks() {
        let folder = tempfile::tempdir().unwrap();
        let node = folder.path().join("plan/nodes/a");
        fs::create_dir_all(&node).unwrap();
        fs::write(node.join("checks.toml"), "[[check]]\nname = \"t\"\ncommand = [\"sh\", \"t.sh\"]\n")
            .unwrap();
        fs::write(node.join("t.sh"), "true\n").unwrap();
        let target = folder.path().join("nodes");
        let checks = target.join("a/checks.toml");
        let write = |mode| write_task_files(&folder.path().join("plan"), &target, mode).unwrap();
        write(None);
        assert!(!fs::read_to_string(&checks).unwrap().contains("red"));
        write(Some(LeafChecks::Any));
        let table: Table = fs::read_to_string(&checks).unwrap().parse().unwrap();
        assert_eq!(table["check"][0]["red"].as_str(), Some("any"));
        write(Some(LeafChecks::Off));
        assert!(!checks.exists() && target.join("a/t.sh").exists());
    }
}
