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
        match words.as_slice() {
            ["run" | "run-script" | "rum" | "urn", script, ..] => self.package_script(script, &dir),
            ["test" | "t" | "tst", ..] if manager != "bun" => self.package_script("test", &dir),
            ["start" | "stop" | "restart", ..] if manager == "npm" => {
                words.first().iter().for_each(|script| self.package_script(script, &dir));
            }
            ["ci" | "install" | "i" | "install-ci-test" | "cit", ..] => {
                INSTALL_SCRIPTS.iter().for_each(|script| self.package_script(script, &dir));
                if matches!(words.first(), Some(&"install-ci-test" | &"cit")) {
                    self.package_script("test", &dir);
                }
            }
            ["exec" | "x" | "dlx", ..] => {}
            [script, ..] if manager != "npm" && !BUILT_IN.contains(script) => {
                self.package_script(script, &dir);
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
            self.protect_entry(&file, &["scripts", &name], self.origin == Origin::Guard || has_script);
            let text = package.get("scripts").and_then(|scripts| scripts.get(&name)).and_then(Value::as_str);
            if let Some(text) = text {
                self.shell(text, dir);
            }
        }
    }
}
