//! What `python` runs by name, and the modules of its own that files of the repository could take the place of.

use super::checks::is_check_script;
use super::{Named, Search, folder, is_python_script, join};

/// Modules of Python that `unittest` and other test programs load, and that scripts of guards import. A file of this name
/// beside the script, or in the folder of `python -m`, is loaded instead.
const OWN_MODULES: [&str; 52] = [
    "argparse",
    "ast",
    "asyncio",
    "base64",
    "collections",
    "configparser",
    "contextlib",
    "copy",
    "csv",
    "ctypes",
    "dataclasses",
    "datetime",
    "difflib",
    "enum",
    "filecmp",
    "fnmatch",
    "functools",
    "glob",
    "hashlib",
    "html",
    "http",
    "importlib",
    "inspect",
    "itertools",
    "json",
    "locale",
    "logging",
    "multiprocessing",
    "operator",
    "pathlib",
    "pickle",
    "platform",
    "pprint",
    "random",
    "re",
    "runpy",
    "shlex",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "string",
    "subprocess",
    "tempfile",
    "textwrap",
    "threading",
    "tokenize",
    "traceback",
    "typing",
    "urllib",
    "warnings",
    "xml",
];

/// Modules that `python -m` runs and that are not the project's.
const RUN_MODULES: [&str; 15] = [
    "black",
    "build",
    "coverage",
    "doctest",
    "flake8",
    "isort",
    "mypy",
    "nox",
    "pip",
    "py_compile",
    "pylint",
    "pytest",
    "ruff",
    "tox",
    "unittest",
];

impl Search<'_> {
    /// `python script.py`, `python -m unittest module`, `python -m pytest`.
    pub(super) fn python(&mut self, args: &[String], dir: &str) {
        let Some(at) = args.iter().position(|arg| arg == "-m") else {
            if args.first().is_none_or(|arg| arg != "-c") {
                self.first_script(args, dir, Named::ByFile);
            }
            return;
        };
        let (module, rest) = args.get(at + 1..).and_then(<[String]>::split_first).unzip();
        let (module, rest) = (module.map_or("", String::as_str), rest.unwrap_or_default());
        self.tool(module, rest, dir);
        if RUN_MODULES.contains(&module) {
            self.refuse_module(module, dir);
        }
        let modules: &[String] =
            if module == "unittest" { rest } else { args.get(at + 1..at + 2).unwrap_or_default() };
        for module in modules {
            // A test can be named down to its class and method.
            let parts: Vec<&str> = module.split('.').collect();
            for end in 1..=parts.len() {
                let path = format!("{}.py", parts.iter().take(end).copied().collect::<Vec<_>>().join("/"));
                if let Some(path) = join(dir, &path).filter(|path| self.exists(path)) {
                    self.protect_tests(&path, args, parts.get(end..).unwrap_or_default());
                }
            }
        }
        self.named_files(if module == "unittest" { rest } else { &[] }, dir);
    }

    /// The modules that a script imports from its own folder: those that belong to the guard are followed, and none of Python's own may
    /// be replaced.
    pub(super) fn imports(&mut self, script: &str, text: &str) {
        if !is_python_script(script, text) || !self.is_new(format!("imports {script}")) {
            return;
        }
        let dir = folder(script).to_owned();
        for name in imported(text) {
            let paths = [format!("{name}.py"), format!("{name}/__init__.py")];
            let local = paths.iter().filter_map(|path| join(&dir, path)).find(|path| self.exists(path));
            match local {
                Some(path) if is_check_script(&path) => self.script(&path, "", Named::ByFile),
                Some(_) => {}
                None if OWN_MODULES.contains(&name) => self.refuse_module(name, &dir),
                None => {}
            }
        }
    }

    /// No agent may create this module.
    fn refuse_module(&mut self, name: &str, dir: &str) {
        let Some(package) = join(dir, name) else { return };
        self.refuse(&format!("{package}.py"));
        if self.repo.is_folder(&package) {
            self.refuse(&format!("{package}/__init__.py"));
            self.refuse(&format!("{package}/__main__.py"));
        } else {
            self.refuse(&package);
        }
    }
}

/// The modules at the top of the names that a script imports.
fn imported(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for line in text.lines().map(str::trim) {
        let modules = match line.split_once(' ') {
            Some(("import", modules)) => modules,
            Some(("from", rest)) => rest.split(" import").next().unwrap_or_default(),
            _ => continue,
        };
        for module in modules.split(',') {
            let name = module.trim().split([' ', '.', ';', '#']).next().unwrap_or_default();
            if !name.is_empty() {
                names.push(name);
            }
        }
    }
    names
}
