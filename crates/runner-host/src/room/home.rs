//! The home folder in the room: its files are readable, secrets are hidden, and package managers get caches of the room's own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use supervise::executables;

use super::setup;
use crate::agent::sandbox_argv::ArgvBuilder;
use crate::error::Error;
use crate::fs::atomic;

/// One mount of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mount {
    Writable {
        from: PathBuf,
        to: PathBuf,
    },
    ReadOnly(PathBuf),
    /// An empty folder in the place of this one.
    EmptyFolder(PathBuf),
    /// An empty file in the place of this one.
    EmptyFile(PathBuf),
    Link {
        target: PathBuf,
        path: PathBuf,
    },
}

impl Mount {
    pub(super) fn add_to(&self, argv: &mut ArgvBuilder) {
        match self {
            Self::Writable { from, to } => argv.mount("--bind", from, to),
            Self::ReadOnly(path) => argv.mount("--ro-bind", path, path),
            Self::EmptyFolder(path) => argv.empty_folder(path),
            Self::EmptyFile(path) => argv.empty_file(path),
            Self::Link { target, path } => argv.mount("--symlink", target, path),
        }
    }
}

/// Where programs keep keys, logins and passwords, relative to the home folder.
const SECRETS: [&str; 27] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".oci",
    ".password-store",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".boto",
    ".s3cfg",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".docker/config.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/op",
    ".local/share/keyrings",
];

/// A home with more entries is mounted as a whole, read-only.
const ENTRIES_MAX: usize = 400;

/// A cache of a package manager: relative to the home folder, and the files of a project that uses it.
struct Cache {
    path: &'static str,
    /// A variable with another path for it.
    variable: Option<(&'static str, &'static str)>,
    projects: &'static [&'static str],
    /// The program that creates it on its first run.
    program: &'static str,
}

const CARGO: &[&str] = &["Cargo.toml"];
const NODE: &[&str] = &["package.json"];
const PYTHON: &[&str] = &["pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "Pipfile"];
const GO: &[&str] = &["go.mod"];
const JAVA: &[&str] = &["pom.xml", "build.gradle", "build.gradle.kts"];

const CACHES: [Cache; 14] = [
    Cache {
        path: ".cargo/registry",
        variable: Some(("CARGO_HOME", "registry")),
        projects: CARGO,
        program: "cargo",
    },
    Cache { path: ".cargo/git", variable: Some(("CARGO_HOME", "git")), projects: CARGO, program: "cargo" },
    Cache { path: ".npm", variable: None, projects: NODE, program: "npm" },
    Cache { path: ".local/share/pnpm", variable: None, projects: NODE, program: "pnpm" },
    Cache { path: ".yarn", variable: None, projects: NODE, program: "yarn" },
    Cache { path: ".bun/install/cache", variable: None, projects: NODE, program: "bun" },
    Cache { path: ".cache/pnpm", variable: None, projects: NODE, program: "pnpm" },
    Cache { path: ".cache/yarn", variable: None, projects: NODE, program: "yarn" },
    Cache { path: ".cache/pip", variable: None, projects: PYTHON, program: "python3" },
    Cache { path: ".cache/uv", variable: None, projects: PYTHON, program: "uv" },
    Cache { path: "go/pkg", variable: Some(("GOPATH", "pkg")), projects: GO, program: "go" },
    Cache { path: ".cache/go-build", variable: Some(("GOCACHE", "")), projects: GO, program: "go" },
    Cache { path: ".m2", variable: None, projects: JAVA, program: "java" },
    Cache { path: ".gradle", variable: None, projects: JAVA, program: "java" },
];

/// The folder of most caches. The room's own stays; where the user has none, programs create one that is gone after the run.
const CACHE_FOLDER: &str = ".cache";

/// The user's home; none if it is the whole file system, or if the room covers it.
fn home(root: &Path) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from)?.canonicalize().ok()?;
    (home != Path::new("/") && !home.starts_with(root)).then_some(home)
}

/// The home folder of a room for the repository at `root`: a new folder with the user's files in it, read-only, without those
/// that hold secrets. What a guard writes beside them is gone after the run.
pub(super) fn mounts(root: &Path) -> Vec<Mount> {
    let Some(home) = home(root) else { return Vec::new() };
    let entries: Vec<_> = std::fs::read_dir(&home).into_iter().flatten().flatten().collect();
    let mut mounts = Vec::new();
    if entries.len() <= ENTRIES_MAX {
        mounts.push(Mount::EmptyFolder(home.clone()));
        for entry in &entries {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => {
                    let target = std::fs::read_link(&path);
                    mounts.extend(target.ok().map(|target| Mount::Link { target, path }));
                }
                Ok(kind) if kind.is_dir() || kind.is_file() => mounts.push(Mount::ReadOnly(path)),
                Ok(_) | Err(_) => {}
            }
        }
    } else {
        mounts.push(Mount::ReadOnly(home.clone()));
    }
    mounts.extend(SECRETS.iter().filter_map(|secret| hidden(&home.join(secret))));
    mounts
}

/// The mount that hides a path; none if nothing is there, or a link, whose target is elsewhere.
fn hidden(path: &Path) -> Option<Mount> {
    let kind = path.symlink_metadata().ok()?.file_type();
    match (kind.is_dir(), kind.is_file()) {
        (true, _) => Some(Mount::EmptyFolder(path.to_owned())),
        (_, true) => Some(Mount::EmptyFile(path.to_owned())),
        (false, false) => None,
    }
}

/// The caches of the package managers that a project with these files uses: the room's own, filled from the user's at first.
pub(super) fn caches(root: &Path, names: &[Vec<u8>], folder: &Path) -> Result<Vec<Mount>, Error> {
    let Some(home) = home(root) else { return Ok(Vec::new()) };
    let mut mounts = Vec::new();
    // It may be a link to another disk.
    let general = home.join(CACHE_FOLDER);
    let general = general.canonicalize().unwrap_or(general);
    if general.is_dir() {
        atomic::ensure_folder(&folder.join(CACHE_FOLDER))?;
        mounts.push(Mount::Writable { from: folder.join(CACHE_FOLDER), to: general.clone() });
        mounts.extend(other_caches(&general).into_iter().map(Mount::ReadOnly));
    }
    for cache in CACHES.iter().filter(|cache| cache.is_used(names)) {
        let Some(path) = cache.path(&home).filter(|path| path.is_dir()) else { continue };
        let copy = folder.join(cache.path);
        if !copy.exists() {
            setup::copy(&path, &copy)?;
        }
        if !path.starts_with(&general) {
            mounts.push(Mount::Writable { from: copy, to: path });
        }
    }
    Ok(mounts)
}

/// The user's caches of the package managers that the project in this folder uses. One that is missing is created if its
/// program is installed: inside a sandbox the program could not do so.
pub(crate) fn users_caches(root: &Path) -> Vec<PathBuf> {
    let Some(home) = home(root) else { return Vec::new() };
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let names: Vec<Vec<u8>> = entries.map(|entry| entry.file_name().into_encoded_bytes()).collect();
    let used = CACHES.iter().filter(|cache| cache.is_used(&names));
    let caches = used.filter_map(|cache| {
        let path = cache.place(&home, &|name| std::env::var_os(name));
        if !path.exists() && executables::find(cache.program, Some(root)).is_some() {
            // One that cannot be created is not writable, which the package manager reports.
            let _ = std::fs::create_dir_all(&path);
        }
        path.canonicalize().ok()
    });
    caches.collect()
}

/// The user's caches that are no package manager's, such as downloaded browsers.
fn other_caches(general: &Path) -> Vec<PathBuf> {
    let is_package_cache = |path: &Path| CACHES.iter().any(|cache| path.ends_with(cache.path));
    let entries = std::fs::read_dir(general).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).filter(|path| !is_package_cache(path)).take(ENTRIES_MAX).collect()
}

impl Cache {
    fn is_used(&self, names: &[Vec<u8>]) -> bool {
        self.projects.iter().any(|project| names.iter().any(|name| name == project.as_bytes()))
    }

    fn path(&self, home: &Path) -> Option<PathBuf> {
        self.place(home, &|name| std::env::var_os(name)).canonicalize().ok()
    }

    /// Where it is: the variables that agents and guards have too decide.
    fn place(&self, home: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> PathBuf {
        let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        if let Some(place) = self.variable.and_then(|(name, below)| Some(folder(name)?.join(below))) {
            return place;
        }
        match (Path::new(self.path).strip_prefix(CACHE_FOLDER), folder("XDG_CACHE_HOME")) {
            (Ok(rest), Some(general)) => general.join(rest),
            (Ok(_) | Err(_), _) => home.join(self.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The caches of a project with this file, as paths.
    fn places(file: &str, variables: &[(&str, &str)]) -> Vec<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let used = CACHES.iter().filter(|cache| cache.is_used(&[file.as_bytes().to_vec()]));
        used.map(|cache| cache.place(Path::new("/h"), &variable).display().to_string()).collect()
    }

    #[test]
    fn caches_follow_the_stack() {
        for (file, expected) in [
            ("Cargo.toml", vec!["/h/.cargo/registry", "/h/.cargo/git"]),
            ("pyproject.toml", vec!["/h/.cache/pip", "/h/.cache/uv"]),
            ("requirements.txt", vec!["/h/.cache/pip", "/h/.cache/uv"]),
            ("go.mod", vec!["/h/go/pkg", "/h/.cache/go-build"]),
            ("pom.xml", vec!["/h/.m2", "/h/.gradle"]),
            ("README.md", vec![]),
        ] {
            assert_eq!(places(file, &[]), expected, "{file}");
        }
        assert!(places("package.json", &[]).contains(&"/h/.npm".to_owned()));
    }

    #[test]
    fn caches_follow_the_variables_of_the_user() {
        let moved =
            [("XDG_CACHE_HOME", "/x"), ("CARGO_HOME", "/c"), ("GOCACHE", "/g"), ("GOPATH", "relative")];
        assert_eq!(places("Cargo.toml", &moved), ["/c/registry", "/c/git"]);
        assert_eq!(places("pyproject.toml", &moved), ["/x/pip", "/x/uv"]);
        assert_eq!(places("go.mod", &moved), ["/h/go/pkg", "/g/"]);
    }
}
