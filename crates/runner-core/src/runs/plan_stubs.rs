//! Stubs for `plan lint --mutants`: files that stand for work which is not done. A check that succeeds on them decides nothing.
//!
//! Their paths follow from what a check names: words of its command and of its files that look like paths, targets of Cargo, and
//! modules that its files import. A Python import may mean an installed package, so only those count that Python misses.

use std::collections::BTreeSet;

/// A file of a check: where it goes in the repository, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckText {
    pub destination: String,
    pub text: String,
}

/// What the stubs of one run contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StubForm {
    Empty,
    /// A shell script that succeeds.
    Success,
    /// Code of the file's language that does nothing: functions without a result, tests without an assertion.
    Code,
}

impl StubForm {
    pub const ALL: [Self; 3] = [Self::Empty, Self::Success, Self::Code];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty files",
            Self::Success => "`exit 0`",
            Self::Code => "code that does nothing",
        }
    }

    /// The content of a stub at a path.
    pub fn content(self, path: &str, texts: &[CheckText]) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Success => "#!/bin/sh\nexit 0\n".to_owned(),
            Self::Code => code_of(path, texts),
        }
    }
}

/// Endings of files that programs read or run. In a test's own text, a dot alone means little: `list.len` is no path.
const FILE_ENDINGS: [&str; 26] = [
    "c", "cjs", "cpp", "css", "csv", "go", "h", "html", "java", "js", "json", "jsx", "kt", "md", "mjs",
    "mts", "php", "py", "rb", "rs", "sh", "toml", "ts", "tsx", "txt", "yaml",
];

/// The most stubs for one check.
const STUBS_MAX: usize = 32;

/// Paths that a stub could fill: what a check's command names, and what the texts of its files name or import. They are relative and
/// inside the repository, and none is a folder of another.
pub fn stub_paths(command: &[String], texts: &[CheckText]) -> Vec<String> {
    let named = command.iter().flat_map(|word| command_paths(word)).map(str::to_owned);
    let tested = texts.iter().flat_map(|file| path_words(&file.text)).filter(|path| has_file_ending(path));
    let all = named
        .chain(tested.map(str::to_owned))
        .chain(cargo_targets(command))
        .chain(texts.iter().flat_map(script_imports))
        .chain(texts.iter().flat_map(rust_modules));
    let mut paths: Vec<String> = Vec::new();
    for path in all {
        if !paths.contains(&path) && paths.len() < STUBS_MAX {
            paths.push(path);
        }
    }
    without_folders(paths)
}

/// The paths in a word of a command. In a script, as `sh -c` and `python -c` have it, `app.main` is no path.
fn command_paths(word: &str) -> impl Iterator<Item = &str> {
    let is_script = word.contains(char::is_whitespace);
    path_words(word).filter(move |path| !is_script || path.contains('/') || has_file_ending(path))
}

/// Leaves out what must be a folder for another path.
fn without_folders(mut paths: Vec<String>) -> Vec<String> {
    let all = paths.clone();
    paths.retain(|path| !all.iter().any(|other| other.starts_with(&format!("{path}/"))));
    paths
}

fn has_file_ending(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| FILE_ENDINGS.contains(&ending))
}

/// The words of a text that look like paths: with a slash or an ending. Scripts of `sh -c` are split into words too.
fn path_words(text: &str) -> impl Iterator<Item = &str> {
    let is_separator = |c: char| c.is_whitespace() || "\"'`$(){}[];|&<>=,:*?!#\\".contains(c);
    text.split(is_separator).map(|word| word.strip_prefix("./").unwrap_or(word)).filter(|word| {
        let name = word.rsplit('/').next().unwrap_or_default();
        let has_ending =
            name.rsplit_once('.').is_some_and(|(stem, ending)| !stem.is_empty() && !ending.is_empty());
        let is_path = (word.contains('/') || has_ending) && !name.is_empty();
        let is_inside = !word.starts_with(['/', '-', '~', '.'])
            && word.split('/').all(|part| !part.is_empty() && part != ".." && part != ".");
        is_path && is_inside
    })
}

/// Files of the targets that a command of Cargo names in the package of the repository's root.
fn cargo_targets(command: &[String]) -> Vec<String> {
    let words: Vec<&str> = command.iter().flat_map(|word| word.split_whitespace()).collect();
    let is_elsewhere = |word: &&str| {
        ["-p", "--package", "--manifest-path"].contains(word)
            || word.starts_with("--package=")
            || word.starts_with("--manifest-path=")
    };
    if !words.contains(&"cargo") || words.iter().any(is_elsewhere) {
        return Vec::new();
    }
    let mut paths = Vec::new();
    for (nth, word) in words.iter().enumerate() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (*word, words.get(nth + 1).copied()),
        };
        let folder = match option {
            "--test" => "tests",
            "--bin" => "src/bin",
            "--example" => "examples",
            _ => continue,
        };
        let name = value.map(|value| value.trim_matches(['\'', '"'])).filter(|value| is_identifier(value));
        paths.extend(name.map(|name| format!("{folder}/{name}.rs")));
    }
    paths
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Whether Cargo did not find a target although its stub was there: the package is another one.
pub fn has_unknown_target(output: &str) -> bool {
    ["no test target named", "no bin target named", "no example target named"]
        .iter()
        .any(|text| output.contains(text))
}

/// The modules of a Rust test: `mod x;` beside it, and the library of the package.
fn rust_modules(file: &CheckText) -> Vec<String> {
    if !file.destination.ends_with(".rs") {
        return Vec::new();
    }
    let mut paths = Vec::new();
    for line in file.text.lines().map(str::trim) {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            paths.extend(joined(&file.destination, &format!("{}.rs", name.trim())));
        }
        let used = line.strip_prefix("use ").and_then(|path| path.split(':').next());
        let is_library = |name: &str| {
            is_identifier(name) && !["std", "core", "alloc", "crate", "super", "self"].contains(&name)
        };
        if file.destination.starts_with("tests/") && used.is_some_and(is_library) {
            paths.push("src/lib.rs".to_owned());
        }
    }
    paths
}

const SCRIPT_ENDINGS: [&str; 7] = ["js", "mjs", "cjs", "jsx", "ts", "mts", "tsx"];

fn is_script(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| SCRIPT_ENDINGS.contains(&ending))
}

/// The files that a JavaScript or TypeScript file imports by a relative path.
fn script_imports(file: &CheckText) -> Vec<String> {
    if !is_script(&file.destination) {
        return Vec::new();
    }
    let is_typed = file.destination.ends_with(".ts") || file.destination.ends_with(".tsx");
    let path_of = |import: ScriptImport<'_>| {
        let path = joined(&file.destination, import.specifier)?;
        let ending = if is_typed { "ts" } else { "js" };
        Some(if has_file_ending(&path) { path } else { format!("{path}.{ending}") })
    };
    relative_imports(&file.text).into_iter().filter_map(path_of).collect()
}

/// An import of a script by a relative path.
struct ScriptImport<'t> {
    /// The statement before the path: `import { a, b } from`, `const c = require(`.
    statement: &'t str,
    specifier: &'t str,
}

fn relative_imports(text: &str) -> Vec<ScriptImport<'_>> {
    let mut imports = Vec::new();
    for line in text.split(['\n', ';']) {
        for quote in ['"', '\'', '`'] {
            let mut parts = line.split(quote);
            let (Some(before), Some(specifier)) = (parts.next(), parts.next()) else { continue };
            let statement = before.trim();
            let is_import = ["from", "require(", "import(", "import"]
                .iter()
                .any(|word| statement.strip_suffix(word).is_some());
            if is_import && (specifier.starts_with("./") || specifier.starts_with("../")) {
                imports.push(ScriptImport { statement, specifier });
            }
        }
    }
    imports
}

/// A path relative to the folder of a file; none if it leads out of the repository.
fn joined(file: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// The modules that a check imports with Python: by its files, by a script of `python -c`, and by `python -m`.
pub fn python_modules(command: &[String], texts: &[CheckText]) -> BTreeSet<String> {
    let of_files =
        texts.iter().filter(|file| file.destination.ends_with(".py")).map(|file| file.text.as_str());
    let of_command = command.iter().map(String::as_str);
    let mut modules: BTreeSet<String> = of_files.chain(of_command).flat_map(imported_modules).collect();
    let words: Vec<&str> = command.iter().flat_map(|word| word.split_whitespace()).collect();
    let is_python = |word: &&str| word.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    if words.iter().any(is_python) {
        let run = words.windows(2).filter_map(|pair| match pair {
            ["-m", module] => Some(*module),
            _ => None,
        });
        modules.extend(run.filter(|module| is_module(module)).map(str::to_owned));
    }
    modules
}

fn is_module(name: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    name.split('.').all(is_word)
}

/// The modules of the statements `import a.b as c, d` and `from a.b import c`.
fn imported_modules(text: &str) -> Vec<String> {
    let mut modules = Vec::new();
    for statement in text.split(['\n', ';', '\'', '"']).map(str::trim) {
        let names: Vec<&str> = if let Some(rest) = statement.strip_prefix("import ") {
            rest.split(',').collect()
        } else if let Some((module, _)) =
            statement.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
        {
            vec![module]
        } else {
            continue;
        };
        let first = |name: &&str| name.split_whitespace().next().map(str::to_owned);
        modules.extend(names.iter().filter_map(first).filter(|name| is_module(name)));
    }
    modules
}

/// The files of the modules that Python did not find: at the root, in `src`, and beside the check's own files.
pub fn missing_python_files(output: &str, modules: &BTreeSet<String>, texts: &[CheckText]) -> Vec<String> {
    let top = |module: &str| module.split('.').next().unwrap_or_default().to_owned();
    let missing: BTreeSet<String> = output
        .split("No module named ")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| c.is_whitespace() || c == ';').next())
        .map(|name| top(name.trim_matches(['\'', '"'])))
        .collect();
    let mut folders = vec![String::new(), "src/".to_owned()];
    for file in texts.iter().filter(|file| file.destination.ends_with(".py")) {
        let folder = file.destination.rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
        folders.extend(folder.filter(|folder| !folders.contains(folder)));
    }
    let mut paths = Vec::new();
    for module in modules.iter().filter(|module| missing.contains(&top(module))) {
        let file = module.replace('.', "/");
        let has_parts = modules.iter().any(|other| other.starts_with(&format!("{module}.")));
        let file = if has_parts { format!("{file}/__init__.py") } else { format!("{file}.py") };
        paths.extend(folders.iter().map(|folder| format!("{folder}{file}")));
    }
    paths.truncate(STUBS_MAX);
    paths
}

/// A module in which every name is a function without a result.
const PYTHON_MODULE: &str = "def __getattr__(name):\n    if name.startswith(\"__\"):\n        raise AttributeError(name)\n    \
                             return lambda *args, **kwargs: None\n";
const PYTHON_TEST: &str =
    "import unittest\n\n\nclass Stub(unittest.TestCase):\n    def test_stub(self):\n        pass\n";
const SCRIPT_TEST: &str = "if (typeof test === \"function\") test(\"stub\", () => {});\n\
                           else import(\"node:test\").then((tests) => tests.test(\"stub\", () => {}));\n";
/// A module in which every name is a function without a result.
const SCRIPT_REQUIRED: &str =
    "module.exports = new Proxy(() => undefined, { get: () => () => undefined });\n";

/// Code of a file's language that does nothing; empty for languages without a rule.
fn code_of(path: &str, texts: &[CheckText]) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    if path.ends_with(".py") {
        let is_test = stem.starts_with("test_") || stem.ends_with("_test");
        return if is_test { PYTHON_TEST } else { PYTHON_MODULE }.to_owned();
    }
    if path.ends_with(".rs") {
        let is_program =
            path == "src/main.rs" || ["src/bin/", "examples/"].iter().any(|at| path.starts_with(at));
        return match path {
            _ if is_program => "fn main() {}\n".to_owned(),
            _ if path.starts_with("tests/") => "#[test]\nfn stub() {}\n".to_owned(),
            _ => String::new(),
        };
    }
    match is_script(path) {
        true if name.contains(".test.") || name.contains(".spec.") => SCRIPT_TEST.to_owned(),
        true => script_module(path, texts),
        false => String::new(),
    }
}

/// A module with the names that the check's files import from it.
fn script_module(path: &str, texts: &[CheckText]) -> String {
    let mut names = BTreeSet::new();
    let mut is_required = false;
    for file in texts.iter().filter(|file| is_script(&file.destination)) {
        for ScriptImport { statement, specifier } in relative_imports(&file.text) {
            let is_this =
                joined(&file.destination, specifier).is_some_and(|target| path.starts_with(&target));
            if !is_this {
                continue;
            }
            is_required |= statement.ends_with("require(");
            let list = statement.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
            let imported = list.map_or("", |(list, _)| list).split(',');
            let first = imported.filter_map(|name| name.split_whitespace().next().map(str::to_owned));
            names.extend(first.filter(|name| is_identifier(name) && name != "default"));
        }
    }
    if is_required {
        return SCRIPT_REQUIRED.to_owned();
    }
    let exports = names.iter().map(|name| format!("export const {name} = () => undefined;\n"));
    exports.chain(["export default () => undefined;\n".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &[&str]) -> Vec<String> {
        command.iter().map(|&word| word.to_owned()).collect()
    }

    fn file(destination: &str, text: &str) -> CheckText {
        CheckText { destination: destination.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn stub_paths_are_files_inside_the_repository() {
        let paths = |command: &[&str]| stub_paths(&words(command), &[]);
        assert_eq!(
            paths(&["sh", "-c", "test -f out/a.txt && ./run.sh --x=b.py"]),
            ["out/a.txt", "run.sh", "b.py"]
        );
        assert_eq!(paths(&["cat", "/etc/passwd", "../x.txt", ".hidden", "a/../b.c"]), Vec::<String>::new());
        assert_eq!(paths(&["python3", "-c", "import app; app.main()"]), Vec::<String>::new());
        assert_eq!(paths(&["cat", "a.d", "a.d/b.txt"]), ["a.d/b.txt"], "a folder is no file");
        let text = "import app\nassert app.main() == open('data/out.json').read()  # see std::fs, x.len\n";
        assert_eq!(stub_paths(&words(&["pytest"]), &[file("test_app.py", text)]), ["data/out.json"]);
    }

    #[test]
    fn targets_of_cargo_are_files() {
        let paths = |command: &[&str]| stub_paths(&words(command), &[]);
        assert_eq!(paths(&["cargo", "test", "--test", "nested"]), ["tests/nested.rs"]);
        assert_eq!(
            paths(&["sh", "-c", "cargo run --bin=tool && cargo run --example 'demo'"]),
            ["src/bin/tool.rs", "examples/demo.rs"]
        );
        assert_eq!(paths(&["cargo", "test", "-p", "other", "--test", "x"]), Vec::<String>::new());
        assert_eq!(paths(&["cargo", "test", "--test", "*"]), Vec::<String>::new());
        assert_eq!(paths(&["mytool", "--test", "x"]), Vec::<String>::new());
        let test = "use std::fs;\nuse app::parse;\nmod helper;\n";
        assert_eq!(
            stub_paths(&words(&["cargo", "test"]), &[file("tests/nested.rs", test)]),
            ["src/lib.rs", "tests/helper.rs"]
        );
        assert!(has_unknown_target("error: no test target named `nested` in default-run packages"));
        assert!(!has_unknown_target("test result: FAILED. 0 passed; 1 failed"));
    }

    #[test]
    fn relative_imports_of_scripts_are_files_beside_them() {
        let text = "import { a, b as c } from '../src/app.js';\nconst d = require(\"./helper\");\n\
                    import react from 'react'; await import(`../../../outside.js`)\n";
        let files = [file("test/unit/app.test.js", text)];
        let paths = stub_paths(&words(&["node", "--test"]), &files);
        assert_eq!(paths, ["test/src/app.js", "test/unit/helper.js"]);
        let typed = [file("app.test.ts", "import { x } from './app'\n")];
        assert_eq!(stub_paths(&[], &typed), ["app.ts"]);
        let code = StubForm::Code.content("test/src/app.js", &files);
        assert_eq!(
            code,
            "export const a = () => undefined;\nexport const b = () => undefined;\nexport default () => undefined;\n"
        );
        assert_eq!(StubForm::Code.content("test/unit/helper.js", &files), SCRIPT_REQUIRED);
    }

    /// An import may mean an installed package; a stub of that would make a sound check of a vacuous one.
    #[test]
    fn only_modules_that_python_misses_are_files() {
        let text =
            "import json, app.core as core\nfrom app import main\nfrom tool import x\nfrom . import y\n";
        let files = [file("tests/test_app.py", text)];
        let modules = python_modules(&words(&["python3", "-m", "cli"]), &files);
        assert_eq!(
            modules.iter().map(String::as_str).collect::<Vec<_>>(),
            ["app", "app.core", "cli", "json", "tool"]
        );
        let output =
            "E   ModuleNotFoundError: No module named 'app'\n/usr/bin/python3: No module named cli\n";
        assert_eq!(
            missing_python_files(output, &modules, &files),
            [
                "app/__init__.py",
                "src/app/__init__.py",
                "tests/app/__init__.py",
                "app/core.py",
                "src/app/core.py",
                "tests/app/core.py",
                "cli.py",
                "src/cli.py",
                "tests/cli.py",
            ]
        );
        let inline = python_modules(&words(&["sh", "-c", "python3 -c 'import app; assert app.x()'"]), &[]);
        assert_eq!(inline.iter().map(String::as_str).collect::<Vec<_>>(), ["app"]);
    }

    #[test]
    fn code_of_a_test_has_a_test_and_code_of_a_program_runs() {
        let code = |path: &str| StubForm::Code.content(path, &[]);
        assert!(code("tests/test_x.py").contains("def test_stub"));
        assert!(code("tests/x.rs").contains("#[test]"));
        assert!(code("x.test.js").contains("test("));
        assert_eq!(code("src/bin/x.rs"), "fn main() {}\n");
        assert_eq!(code("src/lib.rs"), "");
        assert_eq!(code("notes.txt"), "");
    }
}
