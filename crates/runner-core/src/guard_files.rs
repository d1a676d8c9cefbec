//! Which files decide what the guard does: derived from its command and from the repository's files, by their text alone.
//!
//! `runner start` records the result in the run's state, and [`verify`](crate::verify) derives it again from the commit of that
//! start. Therefore no program is asked, not even `just --dump`: the same commit must give the same list everywhere. Files are
//! found if the guard reads or runs them by name before it runs any code of the project. What that code reads is not known.

mod build_files;
mod checks;
mod packages;
mod python;
mod recipes;
mod shell;
mod shell_values;
mod tools;
mod values;

use std::collections::{BTreeMap, BTreeSet};

pub use checks::{DerivedProtection, RunChecks};
pub use values::{ChangedEntry, changed_entries_of, entry_value, restored_entries};

use crate::config::GuardConfig;
use crate::model::digest::Sha256;
use crate::model::protection::{FileEntry, Protection};
use crate::model::repo_path::RepoPath;
use shell_values::{ROOT, Variables, located};
use tools::TOOLS;

/// The files of a commit.
pub trait RepoFiles {
    /// The content of a regular file; `None` if there is none at this path.
    fn read(&self, path: &str) -> Option<Vec<u8>>;

    /// Where a link at this path points, relative to its folder.
    fn link(&self, _path: &str) -> Option<String> {
        None
    }

    /// Whether there is a folder at this path.
    fn is_folder(&self, path: &str) -> bool;
}

impl RepoFiles for BTreeMap<String, Vec<u8>> {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.get(path).cloned()
    }

    fn is_folder(&self, path: &str) -> bool {
        self.keys().any(|key| key.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    }
}

/// How many commands are followed, and how deep: a bound for files that name each other.
const COMMANDS_MAX: usize = 2_000;
const DEPTH_MAX: usize = 12;
/// The most bytes of a script that is searched for further commands.
const SCRIPT_BYTES_MAX: usize = 256 << 10;

const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];
const INTERPRETERS: [&str; 9] = ["node", "ruby", "perl", "php", "lua", "Rscript", "tsx", "ts-node", "pwsh"];

/// The protection of a run: the files that the configuration lists, or those that the guard's command depends on.
pub fn protection(guard: &GuardConfig, repo: &dyn RepoFiles) -> Protection {
    let protection = match &guard.protected {
        Some(files) => Protection { files: files.clone(), ..Protection::default() },
        None => derived(guard, repo),
    };
    let guard_sha256 = Some(guard_digest(guard, &protection, repo));
    Protection { guard_sha256, ..protection }
}

/// The digest of what decides the guard's result: the keys about how it runs, and the protected content.
fn guard_digest(guard: &GuardConfig, protection: &Protection, repo: &dyn RepoFiles) -> Sha256 {
    let GuardConfig { command, setup, keep, ignored, network, sockets, .. } = guard;
    let files = protection.files.iter().map(|pattern| {
        let path = pattern.replace('\\', "");
        let digest = repo.read(&path).map(|bytes| Sha256::of(&bytes));
        (path, digest)
    });
    let entries = protection.entries.iter().map(|entry| {
        let bytes = repo.read(&entry.file.to_string());
        (entry.to_string(), entry_value(entry, bytes.as_deref()))
    });
    let content = serde_json::json!({
        "command": command,
        "setup": setup,
        "keep": keep,
        "ignored": ignored,
        "network": network,
        "sockets": sockets,
        "files": files.collect::<Vec<_>>(),
        "entries": entries.collect::<Vec<_>>(),
    });
    Sha256::of(content.to_string().as_bytes())
}

/// What the guard's command and its setup depend on.
pub fn derived(guard: &GuardConfig, repo: &dyn RepoFiles) -> Protection {
    let mut search = Search::new(repo, Origin::Guard);
    search.start(guard.command.words());
    if let Some(setup) = &guard.setup {
        search.start(setup.words());
    }
    search.found.into_protection()
}

/// A path as a pattern that matches nothing else.
fn escaped(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// A path in a folder, with `.` and `..` resolved; `None` if it leaves the repository.
fn join(dir: &str, path: &str) -> Option<String> {
    if let Some(path) = path.strip_prefix(ROOT) {
        return join("", path.trim_start_matches('/'));
    }
    if path.starts_with('/') || path.is_empty() || path.contains(['$', '\n', '\0']) {
        return None;
    }
    let mut parts: Vec<&str> = dir.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/")).filter(|path| !path.is_empty())
}

/// The folder of a path.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Who named a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// The guard's command itself: an agent may still create the file.
    ByUser,
    /// Another file: one that does not exist names nothing.
    ByFile,
    /// A script that reads it, perhaps only if it exists: no agent may create it.
    Optional,
}

/// What the followed command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Guard,
    Check,
}

#[derive(Clone, Default)]
struct Found {
    files: BTreeSet<String>,
    /// Patterns for files whose names are not written out.
    patterns: BTreeSet<String>,
    missing: BTreeSet<String>,
    entries: BTreeSet<FileEntry>,
    /// Files that were searched already, with what was searched for.
    searched: BTreeSet<String>,
}

impl Found {
    fn into_protection(self) -> Protection {
        Protection {
            files: self.files.iter().map(|path| escaped(path)).chain(self.patterns).collect(),
            missing: self.missing.iter().map(|path| RepoPath::of_bytes(path.as_bytes())).collect(),
            entries: self.entries.into_iter().collect(),
            ..Protection::default()
        }
    }
}

/// The search for files, from command to command.
struct Search<'r> {
    repo: &'r dyn RepoFiles,
    origin: Origin,
    found: Found,
    depth: usize,
    commands: usize,
    /// The folder of the package whose script is followed: its programs are found by name.
    package: Option<String>,
}

impl<'r> Search<'r> {
    fn new(repo: &'r dyn RepoFiles, origin: Origin) -> Self {
        Self { repo, origin, found: Found::default(), depth: 0, commands: 0, package: None }
    }

    /// A command that the user or a plan named.
    fn start(&mut self, command: &[String]) {
        self.command(command, "", Named::ByUser);
    }
}

impl Search<'_> {
    fn exists(&self, path: &str) -> bool {
        self.repo.read(path).is_some()
    }

    fn text(&self, path: &str) -> Option<String> {
        let bytes = self.repo.read(path).filter(|bytes| bytes.len() <= SCRIPT_BYTES_MAX)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether this is the first search of its kind.
    fn is_new(&mut self, what: String) -> bool {
        self.found.searched.insert(what)
    }

    /// Protects a file, and if it is a link, the file that it points to.
    fn protect(&mut self, path: &str) {
        let mut path = path.to_owned();
        while self.found.files.insert(path.clone()) {
            let Some(target) = self.repo.link(&path).and_then(|target| join(folder(&path), &target)) else {
                return;
            };
            path = target;
        }
    }

    /// Protects the place of a file that does not exist: no agent may create it.
    fn refuse(&mut self, path: &str) {
        if !self.exists(path) && !self.repo.is_folder(path) {
            self.found.missing.insert(path.to_owned());
            self.protect(path);
        }
    }

    /// Protects files by name in a folder. If the project exists, those that are missing must stay missing.
    fn protect_names(&mut self, dir: &str, names: &[&str], project: &[&str]) {
        let paths: Vec<String> = names.iter().filter_map(|name| join(dir, name)).collect();
        let is_there = |name: &&str| join(dir, name).is_some_and(|path| self.exists(&path));
        let is_project = names.iter().any(&is_there) || project.iter().any(is_there);
        for path in paths {
            if is_project && !self.exists(&path) {
                self.found.missing.insert(path.clone());
            }
            self.protect(&path);
        }
    }

    /// Protects a value of a file. If the task is to write it, from its pass on.
    fn protect_entry(&mut self, file: &str, keys: &[&str], is_there: bool) {
        let entry = FileEntry {
            file: RepoPath::of_bytes(file.as_bytes()),
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            pinned: is_there,
        };
        self.found.entries.insert(entry);
    }

    /// Every command of a shell text.
    fn shell(&mut self, text: &str, dir: &str) {
        if self.depth >= DEPTH_MAX {
            return;
        }
        self.depth += 1;
        let mut dir = dir.to_owned();
        let mut variables = Variables::default();
        for words in shell::commands(text) {
            if variables.set(&words) {
                continue;
            }
            for words in variables.commands(&words) {
                match words.as_slice() {
                    [command, target] if command == "cd" => dir = join(&dir, target).unwrap_or_default(),
                    words => self.command(words, &dir, Named::ByFile),
                }
            }
        }
        self.depth -= 1;
    }

    /// One command that runs in a folder.
    fn command(&mut self, words: &[String], dir: &str, named: Named) {
        self.commands += 1;
        let unwrapped = shell::unwrapped(words);
        let Some((program, args)) = unwrapped.split_first().filter(|_| self.commands <= COMMANDS_MAX) else {
            return;
        };
        if program.contains('/') {
            self.script(program, dir, named);
        } else {
            self.package_program(words.first().filter(|_| words.len() > unwrapped.len()), program, dir);
        }
        let name = program.rsplit('/').next().unwrap_or_default();
        self.tool(name, args, dir);
        match name {
            "just" => self.just(args, dir),
            "make" | "gmake" => self.make(args, dir),
            "npm" | "pnpm" | "yarn" | "bun" => self.packages(name, args, dir),
            "." | "source" => self.first_script(args, dir, Named::Optional),
            name if SHELLS.contains(&name) => self.shell_program(args, dir, named),
            name if is_python(name) => self.python(args, dir),
            name if INTERPRETERS.contains(&name) => self.first_script(args, dir, Named::ByFile),
            _ => {}
        }
    }

    /// A program with a configuration of its own, and test files that its arguments name.
    fn tool(&mut self, name: &str, args: &[String], dir: &str) {
        for tool in TOOLS.iter().filter(|tool| tool.programs.contains(&name)) {
            self.protect_names(dir, tool.files, tool.project);
            let is_there = |name: &&str| join(dir, name).is_some_and(|path| self.exists(&path));
            let is_project = tool.project.iter().any(is_there);
            for entry in tool.entries {
                if let Some(file) = join(dir, entry.file) {
                    let is_there = is_project || self.exists(&file);
                    self.protect_entry(&file, entry.keys, is_there);
                }
            }
            self.named_files(args, dir);
        }
    }

    /// Files of the repository among the arguments of a test program.
    fn named_files(&mut self, args: &[String], dir: &str) {
        for arg in args {
            let mut parts = arg.split("::");
            let file = parts.next().unwrap_or_default();
            let value = file.split_once('=').map_or(file, |(_, value)| value);
            if let Some(path) = join(dir, value).filter(|path| self.exists(path)) {
                self.protect_tests(&path, args, &parts.collect::<Vec<_>>());
            }
        }
    }

    /// A file of tests. If a check selects tests that the file does not have yet, it is the task to write them.
    fn protect_tests(&mut self, path: &str, args: &[String], selected: &[&str]) {
        let has_tests =
            || self.text(path).is_none_or(|text| checks::has_selected_tests(args, selected, &text));
        if self.origin == Origin::Guard || has_tests() {
            self.protect(path);
        }
    }

    /// `sh -c 'text'` or `sh script`.
    fn shell_program(&mut self, args: &[String], dir: &str, named: Named) {
        let is_text = |arg: &String| arg.starts_with('-') && !arg.starts_with("--") && arg.contains('c');
        match args.iter().position(is_text) {
            Some(at) => {
                let text = args.get(at + 1).cloned().unwrap_or_default();
                self.shell(&text, dir);
            }
            None => self.first_script(args, dir, named),
        }
    }

    fn first_script(&mut self, args: &[String], dir: &str, named: Named) {
        if let Some(script) = args.iter().find(|arg| !arg.starts_with('-')) {
            self.script(script, dir, named);
        }
    }

    /// A script that runs. Its commands count as well if a shell reads them.
    fn script(&mut self, path: &str, dir: &str, named: Named) {
        let Some(path) = join(dir, path) else { return };
        if self.origin == Origin::Check && !checks::is_check_script(&path) {
            return;
        }
        if path.contains('*') {
            self.found.patterns.insert(path);
            return;
        }
        let Some(text) = self.text(&path) else {
            match named {
                Named::ByFile if !self.exists(&path) => {}
                Named::ByUser | Named::ByFile => self.protect(&path),
                Named::Optional => self.refuse(&path),
            }
            return;
        };
        self.protect(&path);
        let first = text.lines().next().unwrap_or_default();
        let is_shell = !first.starts_with("#!") || SHELLS.iter().any(|shell| first.contains(shell));
        let is_text = !text.contains('\0') && !path.ends_with(".py") && !path.ends_with("js");
        if is_shell && is_text && self.is_new(format!("script {path}")) {
            // A script runs in the folder of its caller.
            self.shell(&located(&text, folder(&path)), dir);
        }
        self.imports(&path, &text);
    }
}

fn is_python_script(path: &str, text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    path.ends_with(".py") || (first.starts_with("#!") && first.contains("python"))
}

fn is_python(name: &str) -> bool {
    name.starts_with("python") || name.starts_with("pypy")
}

/// The arguments of a program, split into options with values and the rest.
struct Options {
    values: Vec<OptionValue>,
    /// Arguments that are no options.
    words: Vec<String>,
}

struct OptionValue {
    name: String,
    value: String,
}

impl Options {
    fn parse(args: &[String], with_value: &[&str]) -> Self {
        let mut options = Self { values: Vec::new(), words: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if let Some((name, value)) = arg.split_once('=').filter(|_| arg.starts_with("--")) {
                options.values.push(OptionValue { name: name.to_owned(), value: value.to_owned() });
            } else if with_value.contains(&arg.as_str()) {
                let value = args.next().cloned().unwrap_or_default();
                options.values.push(OptionValue { name: arg.clone(), value });
            } else if !arg.starts_with('-') {
                options.words.push(arg.clone());
            }
        }
        options
    }

    fn value(&self, names: &[&str]) -> Option<&str> {
        let found = self.values.iter().find(|option| names.contains(&option.name.as_str()));
        found.map(|option| option.value.as_str())
    }
}

#[cfg(test)]
mod tests;
