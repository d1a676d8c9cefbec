//! The caches of package managers in a room: the room's own, filled from the user's at first.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use supervise::executables;

use super::home::{ENTRIES_MAX, Mount, home, renewed};
use super::{secrets, setup};
use crate::agent::sandbox_argv::HIDDEN_FOLDERS;
use crate::error::Error;

/// A cache of a package manager, and the files of a project that uses it.
struct Cache {
    /// Where it is, relative to the home folder; for one that only a variable names, its name in the room.
    path: &'static str,
    kind: CacheKind,
    /// Variables with another path for it, and what is below that path. The first one that is set decides.
    variables: &'static [(&'static str, &'static str)],
    projects: &'static [&'static str],
    /// The program that creates it on its first run.
    program: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CacheKind {
    /// In the home folder, unless a variable names another place.
    Usual,
    /// Only where a variable names a place.
    Moved,
    /// The same, for what builds write. It begins empty: sessions may have written to the user's.
    BuildOutput,
}

const CARGO: &[&str] = &["Cargo.toml"];
const NODE: &[&str] = &["package.json"];
const PYTHON: &[&str] = &["pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "Pipfile"];
const GO: &[&str] = &["go.mod"];
const JAVA: &[&str] = &["pom.xml", "build.gradle", "build.gradle.kts"];

const fn usual(
    path: &'static str,
    variables: &'static [(&'static str, &'static str)],
    projects: &'static [&'static str],
    program: &'static str,
) -> Cache {
    Cache { path, kind: CacheKind::Usual, variables, projects, program }
}

const CACHES: [Cache; 16] = [
    usual(".cargo/registry", &[("CARGO_HOME", "registry")], CARGO, "cargo"),
    usual(".cargo/git", &[("CARGO_HOME", "git")], CARGO, "cargo"),
    Cache {
        path: "moved/cargo-target",
        kind: CacheKind::BuildOutput,
        variables: &[("CARGO_TARGET_DIR", "")],
        projects: CARGO,
        program: "cargo",
    },
    usual(".npm", &[("npm_config_cache", ""), ("NPM_CONFIG_CACHE", "")], NODE, "npm"),
    usual(".local/share/pnpm", &[("PNPM_HOME", "")], NODE, "pnpm"),
    usual(".yarn", &[], NODE, "yarn"),
    usual(".bun/install/cache", &[("BUN_INSTALL_CACHE_DIR", "")], NODE, "bun"),
    usual(".cache/pnpm", &[], NODE, "pnpm"),
    usual(".cache/yarn", &[("YARN_CACHE_FOLDER", "")], NODE, "yarn"),
    usual(".cache/pip", &[("PIP_CACHE_DIR", "")], PYTHON, "python3"),
    usual(".cache/uv", &[("UV_CACHE_DIR", "")], PYTHON, "uv"),
    usual("go/pkg", &[("GOPATH", "pkg")], GO, "go"),
    Cache {
        path: "moved/go-modules",
        kind: CacheKind::Moved,
        variables: &[("GOMODCACHE", "")],
        projects: GO,
        program: "go",
    },
    usual(".cache/go-build", &[("GOCACHE", "")], GO, "go"),
    usual(".m2", &[], JAVA, "java"),
    usual(".gradle", &[("GRADLE_USER_HOME", "")], JAVA, "java"),
];

/// The folder of most caches. The room's own stays; where the user has none, programs create one that is gone after the run.
const CACHE_FOLDER: &str = ".cache";

/// The room's own cache of a package manager.
#[derive(Clone, Debug)]
pub(super) struct RoomCache {
    copy: PathBuf,
    /// Where programs look for it.
    place: PathBuf,
}

/// Makes the room's own caches of the package managers that a project with these files uses, in `folder`. They are filled from the
/// user's as those are now.
pub(super) fn fill(root: &Path, names: &[Vec<u8>], folder: &Path) -> Result<Vec<RoomCache>, Error> {
    let Some(home) = home(root) else { return Ok(Vec::new()) };
    create(&folder.join(CACHE_FOLDER))?;
    let mut caches = Vec::new();
    for cache in CACHES.iter().filter(|cache| cache.is_used(names)) {
        let Some(place) = cache.place(&home, &|name| std::env::var_os(name)) else { continue };
        let user = place.canonicalize().ok().filter(|user| user.is_dir());
        let is_unused = user.is_none() && executables::find(cache.program, Some(root)).is_none();
        if is_unused || resolved(&place).starts_with(root) {
            continue;
        }
        let copy = folder.join(cache.path);
        if !copy.exists() {
            match user.filter(|_| cache.kind != CacheKind::BuildOutput) {
                Some(user) => setup::copy(&user, &copy)?,
                None => create(&copy)?,
            }
        }
        secrets::remove_from_copy(cache.path, &copy)?;
        caches.push(RoomCache { copy, place });
    }
    Ok(caches)
}

/// The mounts of the room's caches. They fit the home as it is now: a program outside of the room may have created a cache since
/// the room was opened.
pub(super) fn mounts(root: &Path, caches: &[RoomCache], folder: &Path) -> Vec<Mount> {
    let Some(home) = home(root) else { return Vec::new() };
    // It may be a link to another disk.
    let general = home.join(CACHE_FOLDER);
    let general = general.canonicalize().unwrap_or(general);
    let mut mounts = CacheMounts::new(&home, &HIDDEN_FOLDERS);
    if general.is_dir() {
        mounts.writable(folder.join(CACHE_FOLDER), general.clone());
        mounts.below.extend(other_caches(&general).into_iter().map(Mount::ReadOnly));
    }
    for RoomCache { copy, place } in caches {
        let place = resolved(place);
        if !place.starts_with(root) && !place.starts_with(&general) && mounts.open_to(&place) {
            mounts.writable(copy.clone(), place);
        }
    }
    mounts.finish()
}

/// The mounts of caches, while they are collected.
struct CacheMounts<'a> {
    home: &'a Path,
    /// Folders in whose place the room has its own; the home is mounted in it.
    own: &'a [&'a str],
    /// Folders that are renewed so that caches can be mounted in them. They come first, each before those in it.
    renewed: BTreeMap<PathBuf, Vec<Mount>>,
    below: Vec<Mount>,
}

impl<'a> CacheMounts<'a> {
    fn new(home: &'a Path, own: &'a [&'a str]) -> Self {
        Self { home, own, renewed: BTreeMap::new(), below: Vec::new() }
    }

    fn writable(&mut self, from: PathBuf, to: PathBuf) {
        self.below.push(Mount::Writable { from, to });
    }

    /// Makes sure that something can be mounted at a path: a mount point must exist, and none can be created in a folder that is
    /// read-only.
    fn open_to(&mut self, path: &Path) -> bool {
        let is_own = self.own.iter().any(|folder| path.starts_with(folder));
        if path.is_dir() || is_own && !path.starts_with(self.home) {
            return true;
        }
        let Some(above) = path.ancestors().skip(1).find(|folder| folder.is_dir()) else { return false };
        let is_in = |mount: &Mount| matches!(mount, Mount::Writable { to, .. } if above.starts_with(to));
        if self.renewed.contains_key(above) || self.below.iter().any(is_in) {
            return true;
        }
        if above == self.home {
            // It is renewed in every room, unless it has too many entries.
            return std::fs::read_dir(above).is_ok_and(|entries| entries.count() <= ENTRIES_MAX);
        }
        // The whole file system and its first folders stay as they are, and so does the folder of the home.
        let is_system = above.components().count() <= 2 && !above.starts_with(self.home);
        if is_system || self.home.starts_with(above) {
            return false;
        }
        let Some(mounts) = renewed(above) else { return false };
        self.renewed.insert(above.to_owned(), mounts);
        true
    }

    fn finish(self) -> Vec<Mount> {
        self.renewed.into_values().flatten().chain(self.below).collect()
    }
}

/// A path without links on the way to it, whether it exists or not.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let above = path.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    let moved = above.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?)));
    moved.unwrap_or_else(|| path.to_owned())
}

fn create(folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))
}

/// The user's caches of the package managers that the project in this folder uses. One that is missing is created if its
/// program is installed: inside a sandbox the program could not do so.
pub(crate) fn users_caches(root: &Path) -> Vec<PathBuf> {
    let Some(home) = home(root) else { return Vec::new() };
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let names: Vec<Vec<u8>> = entries.map(|entry| entry.file_name().into_encoded_bytes()).collect();
    let used = CACHES.iter().filter(|cache| cache.is_used(&names) && cache.kind != CacheKind::BuildOutput);
    let caches = used.filter_map(|cache| {
        let path = cache.place(&home, &|name| std::env::var_os(name))?;
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

    /// Where it is: the variables that agents and guards have too decide.
    fn place(&self, home: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let named = self.variables.iter().find_map(|(name, below)| Some((folder(name)?, *below)));
        if let Some((folder, below)) = named {
            return Some(if below.is_empty() { folder } else { folder.join(below) });
        }
        if self.kind != CacheKind::Usual {
            return None;
        }
        Some(match (Path::new(self.path).strip_prefix(CACHE_FOLDER), folder("XDG_CACHE_HOME")) {
            (Ok(rest), Some(general)) => general.join(rest),
            (Ok(_) | Err(_), _) => home.join(self.path),
        })
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
        let places = used.filter_map(|cache| cache.place(Path::new("/h"), &variable));
        places.map(|place| place.display().to_string()).collect()
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
        let moved = [
            ("XDG_CACHE_HOME", "/x"),
            ("CARGO_HOME", "/c"),
            ("CARGO_TARGET_DIR", "/t"),
            ("GOCACHE", "/g"),
            ("GOPATH", "relative"),
            ("GOMODCACHE", "/m"),
            ("NPM_CONFIG_CACHE", "/n"),
            ("UV_CACHE_DIR", "/u"),
        ];
        assert_eq!(places("Cargo.toml", &moved), ["/c/registry", "/c/git", "/t"]);
        assert_eq!(places("pyproject.toml", &moved), ["/x/pip", "/u"]);
        assert_eq!(places("go.mod", &moved), ["/h/go/pkg", "/m", "/g"]);
        assert_eq!(places("package.json", &moved).first().map(String::as_str), Some("/n"));
        assert_eq!(places("pyproject.toml", &[("PIP_CACHE_DIR", "/p")]).first().unwrap(), "/p");
    }

    #[test]
    fn a_missing_cache_gets_a_folder_that_it_can_be_mounted_in() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["home/.cargo/bin", "disk/some"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        let home = at("home");
        let mut mounts = CacheMounts::new(&home, &["/no-such-tmp"]);
        for name in ["home/.cargo/registry", "home/.cargo/git", "home/go/pkg", "disk/some/cache"] {
            assert!(mounts.open_to(&at(name)), "{name}");
        }
        assert!(!mounts.open_to(&at("beside")), "the home is there");
        assert!(!mounts.open_to(Path::new("/no-such-folder/cache")));
        assert!(mounts.open_to(Path::new("/no-such-tmp/cache")));
        let [bin, cargo] = [at("home/.cargo/bin"), at("home/.cargo")];
        let renewed = [Mount::EmptyFolder(at("disk/some")), Mount::EmptyFolder(cargo), Mount::ReadOnly(bin)];
        assert_eq!(mounts.finish(), renewed);
    }
}
