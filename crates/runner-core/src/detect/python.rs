//! Python: the tool that manages the environment, and the test runner.

use super::{PackageCheck, RepoListing, Stack};

const MANIFESTS: [&str; 6] =
    ["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "requirements-dev.txt", "Pipfile"];
const VENVS: [&str; 2] = [".venv", "venv"];

/// The check of a folder with Python code.
pub(super) fn check(listing: &RepoListing, folder: &str) -> Option<PackageCheck> {
    let manifest = MANIFESTS.into_iter().find(|name| listing.has(folder, name));
    // Without a manifest, tests further below belong to another project.
    let is_near = |path: &str| matches!(super::split_path(path).0, "" | "tests" | "test");
    let has_tests = test_files(listing, folder).any(is_near);
    if manifest.is_none() && !has_tests && !listing.has(folder, "tox.ini") {
        return None;
    }
    let arguments = test_arguments(listing, folder);
    let manifest = manifest.unwrap_or("test files");
    let project = listing.text(folder, "pyproject.toml").unwrap_or_default();
    let managed = |program: &str, install: &[&str], inputs: &[&str]| {
        let command: Vec<&str> = match arguments.as_slice() {
            [] => Vec::new(),
            ["-m", "pytest"] => vec![program, "run", "pytest"],
            arguments => [&[program, "run", "python"], arguments].concat(),
        };
        Some(
            PackageCheck::new(Stack::Python, format!("{manifest}, {program}"), &command)
                .with_setup(install, inputs),
        )
    };
    if listing.has(folder, "uv.lock") {
        return managed("uv", &["uv", "sync", "--frozen"], &["uv.lock", "pyproject.toml"]);
    }
    if project.contains("[tool.uv") {
        return managed("uv", &["uv", "sync"], &["pyproject.toml"]);
    }
    if listing.has(folder, "poetry.lock") || project.contains("[tool.poetry") {
        let inputs = ["poetry.lock", "pyproject.toml"];
        return managed("poetry", &["poetry", "install", "--no-interaction"], &inputs);
    }
    if listing.has(folder, "Pipfile") {
        return managed("pipenv", &["pipenv", "install", "--dev"], &["Pipfile", "Pipfile.lock"]);
    }
    Some(plain(listing, folder, manifest, &arguments))
}

/// A project without a tool: the virtual environment that exists, or the system's Python.
fn plain(listing: &RepoListing, folder: &str, manifest: &str, arguments: &[&str]) -> PackageCheck {
    let venv = VENVS.into_iter().find(|venv| listing.has_local(folder, venv));
    let in_venv = venv.map(|venv| format!("{venv}/bin/python"));
    let is_python = |name: &str| listing.has_program(name);
    let system = if !is_python("python3") && is_python("python") { "python" } else { "python3" };
    let python = in_venv.as_deref().unwrap_or(system);
    let command: Vec<&str> = if arguments.is_empty() { Vec::new() } else { [&[python], arguments].concat() };
    let source = match venv {
        Some(venv) => format!("{manifest}, {venv}"),
        None => manifest.to_owned(),
    };
    let mut check = PackageCheck::new(Stack::Python, source, &command);
    check.keep.extend(venv.map(str::to_owned));
    check
}

/// The arguments of `python` that run all tests; none if there are no tests.
fn test_arguments(listing: &RepoListing, folder: &str) -> Vec<&'static str> {
    if uses_pytest(listing, folder) {
        return vec!["-m", "pytest"];
    }
    let files: Vec<&str> = test_files(listing, folder).collect();
    let is_in_tests = |path: &&str| path.starts_with("tests/");
    match files.first() {
        None => Vec::new(),
        // Tests in a folder that is no package are only found from there.
        Some(_) if files.iter().all(is_in_tests) && !listing.has(folder, "tests/__init__.py") => {
            vec!["-m", "unittest", "discover", "-s", "tests"]
        }
        Some(_) => vec!["-m", "unittest"],
    }
}

fn uses_pytest(listing: &RepoListing, folder: &str) -> bool {
    let names = |name: &&str| listing.text(folder, name).is_some_and(|text| text.contains("pytest"));
    let manifests =
        ["pyproject.toml", "setup.cfg", "tox.ini", "requirements.txt", "requirements-dev.txt", "Pipfile"];
    manifests.iter().any(names)
        || listing.has(folder, "pytest.ini")
        || listing.files_below(folder).any(|path| super::split_path(path).1 == "conftest.py")
}

fn test_files<'l>(listing: &'l RepoListing, folder: &'l str) -> impl Iterator<Item = &'l str> {
    listing.files_below(folder).filter(|path| {
        let name = super::split_path(path).1;
        name.starts_with("test_") && name.strip_suffix(".py").is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::sample::listing;

    fn command(files: &[(&str, &str)]) -> String {
        check(&listing(files), "").unwrap().command.join(" ")
    }

    #[test]
    fn the_tool_runs_the_tests_and_installs_what_they_need() {
        let pytest = "[project]\ndependencies = [\"pytest\"]\n";
        for (lock, test, setup) in [
            ("uv.lock", "uv run pytest", "uv sync --frozen"),
            ("poetry.lock", "poetry run pytest", "poetry install --no-interaction"),
            ("Pipfile", "pipenv run pytest", "pipenv install --dev"),
        ] {
            let check = check(&listing(&[("pyproject.toml", pytest), (lock, "")]), "").unwrap();
            assert_eq!(
                (check.command.join(" "), check.setup.unwrap().join(" ")),
                (test.to_owned(), setup.to_owned())
            );
        }
    }

    #[test]
    fn a_virtual_environment_is_used_and_kept() {
        let mut listing = listing(&[("requirements.txt", "pytest==8\n")]);
        listing.local_folders.insert(".venv".to_owned());
        let check = check(&listing, "").unwrap();
        assert_eq!(check.command, [".venv/bin/python", "-m", "pytest"]);
        assert_eq!(check.keep, [".venv"]);
    }

    #[test]
    fn tests_without_pytest_run_with_unittest() {
        assert_eq!(command(&[("setup.py", ""), ("test_a.py", "")]), "python3 -m unittest");
        assert_eq!(
            command(&[("setup.py", ""), ("tests/test_a.py", "")]),
            "python3 -m unittest discover -s tests"
        );
        let package = [("tests/__init__.py", ""), ("tests/test_a.py", "")];
        assert_eq!(command(&package), "python3 -m unittest");
        assert_eq!(command(&[("conftest.py", ""), ("test_a.py", "")]), "python3 -m pytest");
        assert_eq!(command(&[("pyproject.toml", "[project]\n")]), "");
        assert_eq!(check(&listing(&[("main.py", "")]), ""), None);
    }
}
