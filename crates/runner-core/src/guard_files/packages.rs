//! Scripts of package.json that npm, pnpm, yarn and bun run.

use serde_json::Value;

use super::{Options, Origin, Search, join};

/// Scripts that an installation runs.
const INSTALL_SCRIPTS: [&str; 4] = ["preinstall", "install", "postinstall", "prepare"];
/// Files that decide how a package manager runs scripts, the shell included.
const SETTINGS: [&str; 5] = [".npmrc", ".yarnrc", ".yarnrc.yml", "bunfig.toml", "pnpm-workspace.yaml"];
/// Commands of yarn, pnpm and bun that are no scripts.
const BUILT_IN: [&str; 14] = [
    "add", "audit", "build", "cache", "create", "exec", "help", "info", "init", "link", "list", "publish",
    "remove", "why",
];

/// Programs that run one of a package.
const RUNNERS: [&str; 5] = ["npx", "bunx", "npm", "pnpm", "yarn"];
/// Commands that a shell has itself.
const BUILT_IN_SHELL: [&str; 22] = [
    "[", ":", ".", "cd", "command", "echo", "eval", "exec", "exit", "export", "false", "printf", "pwd",
    "read", "return", "set", "shift", "source", "test", "trap", "true", "unset",
];

impl Search<'_> {
    pub(super) fn packages(&mut self, manager: &str, args: &[String], dir: &str) {
        let options = Options::parse(
            args,
            &["--prefix", "-C", "--dir", "--cwd", "-w", "--workspace", "-F", "--filter"],
        );
        let named = options.value(&["--prefix", "-C", "--dir", "--cwd"]);
        let dir = named.and_then(|to| join(dir, to)).unwrap_or_else(|| dir.to_owned());
        self.protect_names(&dir, &SETTINGS, &["package.json"]);
        let words: Vec<&str> = options.words.iter().map(String::as_str).collect();
        let mut folders = vec![dir.clone()];
        if args.iter().any(|arg| matches!(arg.as_str(), "-ws" | "--workspaces" | "-r" | "--recursive")) {
            folders.extend(self.workspaces(&dir));
        }
        let named = options.value(&["-w", "--workspace", "-F", "--filter"]).and_then(|name| join(&dir, name));
        folders.extend(named);
        for folder in folders {
            self.package_command(manager, &words, &folder);
        }
    }

    fn package_command(&mut self, manager: &str, words: &[&str], dir: &str) {
        match words {
            ["run" | "run-script" | "rum" | "urn", script, ..] => self.package_script(script, dir),
            ["test" | "t" | "tst", ..] if manager != "bun" => self.package_script("test", dir),
            ["start" | "stop" | "restart", ..] if manager == "npm" => {
                words.first().iter().for_each(|script| self.package_script(script, dir));
            }
            ["ci" | "install" | "i" | "install-ci-test" | "cit", ..] => {
                INSTALL_SCRIPTS.iter().for_each(|script| self.package_script(script, dir));
                if matches!(words.first(), Some(&"install-ci-test" | &"cit")) {
                    self.package_script("test", dir);
                }
            }
            ["exec" | "x" | "dlx", ..] => {}
            [script, ..] if manager != "npm" && !BUILT_IN.contains(script) => {
                self.package_script(script, dir);
            }
            _ => {}
        }
    }

    /// A script with those that run before and after it, and what each of them runs.
    fn package_script(&mut self, script: &str, dir: &str) {
        let Some(file) = join(dir, "package.json") else { return };
        let package: Value =
            self.text(&file).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let has_script = package.get("scripts").is_some_and(|scripts| scripts.get(script).is_some());
        for name in [format!("pre{script}"), script.to_owned(), format!("post{script}")] {
            if !self.is_new(format!("package {file} {name}")) {
                continue;
            }
            let is_there = self.exists(&file) && (self.origin == Origin::Guard || has_script);
            self.protect_entry(&file, &["scripts", &name], is_there);
            let text = package.get("scripts").and_then(|scripts| scripts.get(&name)).and_then(Value::as_str);
            if let Some(text) = text {
                let outer = self.package.replace(dir.to_owned());
                self.shell(text, dir);
                self.package = outer;
            }
        }
    }

    /// A program that a package manager may find in `node_modules/.bin`: in a script, or after `npx` and the like.
    pub(super) fn package_program(&mut self, wrapper: Option<&String>, program: &str, dir: &str) {
        let is_wrapped = wrapper.is_some_and(|wrapper| RUNNERS.contains(&wrapper.as_str()));
        let folder = match &self.package {
            Some(folder) => folder.clone(),
            None if is_wrapped => dir.to_owned(),
            None => return,
        };
        if BUILT_IN_SHELL.contains(&program) || program.contains(['$', '=', '(']) {
            return;
        }
        if let Some(path) = join(&folder, &format!("node_modules/.bin/{program}")) {
            if self.exists(&path) {
                self.protect(&path);
            }
            self.refuse(&path);
        }
    }

    /// The folders of the workspaces that package.json names one by one.
    fn workspaces(&self, dir: &str) -> Vec<String> {
        let text = join(dir, "package.json").and_then(|file| self.text(&file));
        let package: Value = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let listed = package.get("workspaces");
        let listed = listed.and_then(|value| value.get("packages")).or(listed).and_then(Value::as_array);
        let names = listed.into_iter().flatten().filter_map(Value::as_str);
        names.filter(|name| !name.contains('*')).filter_map(|name| join(dir, name)).collect()
    }
}
