//! Checkouts after guards that changed their files.

use std::fs;
use std::time::Duration;

use super::*;

#[test]
fn a_settled_file_with_other_content_but_its_old_size_and_time_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let git = Git::create(folder.path()).unwrap();
    fs::write(folder.path().join("guard.sh"), "exit 1\n").unwrap();
    git.call(&["add", "guard.sh"]).run().unwrap();
    let tree = git.write_tree(&git.paths().index()).unwrap();
    let room = tempfile::tempdir().unwrap();
    let mut checkout = Checkout::new(room.path());
    checkout.remove_all().unwrap();
    checkout.update(&git, &tree).unwrap();
    let paths = [PathBuf::from("guard.sh")];
    thread::sleep(Duration::from_millis(2_100));
    checkout.stamp(&paths);
    assert_eq!(checkout.settled.len(), 1);
    assert_eq!(checkout.changed(&git, &paths).unwrap(), Vec::<Vec<u8>>::new());

    let guard = checkout.tree.join("guard.sh");
    let time = guard.metadata().unwrap().modified().unwrap();
    fs::write(&guard, "exit 0\n").unwrap();
    let file = fs::File::options().write(true).open(&guard).unwrap();
    file.set_times(fs::FileTimes::new().set_modified(time)).unwrap();
    assert_eq!(checkout.changed(&git, &paths).unwrap(), [b"guard.sh".to_vec()]);
}

/// A repository with these files, a room in another folder, and the tree of the files.
struct Prepared {
    folder: tempfile::TempDir,
    git: Git,
    _room: tempfile::TempDir,
    checkout: Checkout,
}

impl Prepared {
    fn with(files: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        let room = tempfile::tempdir().unwrap();
        let mut checkout = Checkout::new(room.path());
        checkout.remove_all().unwrap();
        let mut prepared = Self { folder, git, _room: room, checkout };
        for name in files {
            prepared.write(name, "first\n");
        }
        let tree = prepared.tree();
        prepared.checkout.update(&prepared.git, &tree).unwrap();
        prepared
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The tree of all files of the repository, ignored or not.
    fn tree(&self) -> TreeId {
        self.git.call(&["add", "-f", "--all"]).run().unwrap();
        self.git.write_tree(&self.git.paths().index()).unwrap()
    }

    /// What is in the room after an update to this tree.
    fn updated(&mut self, tree: &TreeId) -> Vec<String> {
        self.checkout.update(&self.git, tree).unwrap();
        let mut found = Vec::new();
        let mut folders = vec![self.checkout.tree.clone()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap().flatten() {
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    folders.push(entry.path());
                } else {
                    let name = entry.path().strip_prefix(&self.checkout.tree).unwrap().display().to_string();
                    found.push(name);
                }
            }
        }
        found.sort();
        found
    }
}

#[test]
fn only_files_that_differ_are_written_after_a_guard_that_left_nothing() {
    let mut prepared = Prepared::with(&["a.txt", "b.txt"]);
    prepared.checkout.begin_clean(&prepared.git);
    prepared.write("b.txt", "second\n");
    let tree = prepared.tree();
    let before = fs::metadata(prepared.checkout.tree.join("a.txt")).unwrap();
    assert_eq!(prepared.updated(&tree), ["a.txt", "b.txt"]);
    let after = fs::metadata(prepared.checkout.tree.join("a.txt")).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    assert_eq!(fs::read_to_string(prepared.checkout.tree.join("b.txt")).unwrap(), "second\n");
}

#[test]
fn a_file_that_the_guard_changed_removed_or_added_is_as_in_the_next_tree() {
    let mut prepared = Prepared::with(&["a.txt", "b.txt", "c.txt"]);
    let room = prepared.checkout.tree.clone();
    fs::write(room.join("a.txt"), "other\n").unwrap();
    fs::remove_file(room.join("b.txt")).unwrap();
    fs::write(room.join("new.txt"), "").unwrap();
    prepared.checkout.begin_clean(&prepared.git);
    prepared.write("c.txt", "second\n");
    let tree = prepared.tree();
    assert_eq!(prepared.updated(&tree), ["a.txt", "b.txt", "c.txt"]);
    assert_eq!(fs::read_to_string(room.join("a.txt")).unwrap(), "first\n");
}

#[test]
fn what_every_guard_changed_is_undone_although_the_files_were_stamped_before() {
    let mut prepared = Prepared::with(&["a.txt", "b.txt", "dir/c.txt"]);
    let room = prepared.checkout.tree.clone();
    for round in 0..3 {
        fs::write(room.join("dir/c.txt"), format!("other {round}\n")).unwrap();
        fs::write(room.join("new.txt"), "").unwrap();
        prepared.checkout.begin_clean(&prepared.git);
        prepared.write("b.txt", &format!("round {round}\n"));
        let tree = prepared.tree();
        assert_eq!(prepared.updated(&tree), ["a.txt", "b.txt", "dir/c.txt"]);
        assert!(prepared.checkout.stamps.is_some());
        assert_eq!(fs::read_to_string(room.join("dir/c.txt")).unwrap(), "first\n");
        assert_eq!(fs::read_to_string(room.join("b.txt")).unwrap(), format!("round {round}\n"));
    }
}

/// Git does not miss tracked files that it finds through a link. If one of them changes, it replaces the link, and the others
/// are gone.
fn folder_behind_a_link(is_new_process: bool) {
    let mut prepared = Prepared::with(&[".gitignore", "tests/a.txt", "tests/b.txt"]);
    prepared.write(".gitignore", "target\ntests\n");
    let tree = prepared.tree();
    prepared.checkout.update(&prepared.git, &tree).unwrap();
    let room = prepared.checkout.tree.clone();
    fs::create_dir(room.join("target")).unwrap();
    fs::rename(room.join("tests"), room.join("target/tests")).unwrap();
    std::os::unix::fs::symlink("target/tests", room.join("tests")).unwrap();
    if is_new_process {
        prepared.checkout.is_clean = false;
        prepared.checkout.current = None;
    } else {
        prepared.checkout.begin_clean(&prepared.git);
    }
    prepared.write("tests/a.txt", "second\n");
    let tree = prepared.tree();
    let found = prepared.updated(&tree);
    for name in ["tests/a.txt", "tests/b.txt"] {
        assert!(found.iter().any(|path| path == name), "{name} is missing: {found:?}");
    }
    assert!(!room.join("tests").is_symlink());
}

#[test]
fn tracked_files_that_the_guard_put_behind_a_link_are_restored() {
    folder_behind_a_link(false);
}

#[test]
fn tracked_files_that_a_guard_of_another_process_put_behind_a_link_are_restored() {
    folder_behind_a_link(true);
}

#[test]
fn files_are_checked_out_again_when_attributes_change() {
    for is_new_process in [false, true] {
        let mut prepared = Prepared::with(&["a.txt", "b.txt"]);
        let room = prepared.checkout.tree.clone();
        prepared.checkout.begin_clean(&prepared.git);
        prepared.write(".gitattributes", "*.txt text eol=crlf\n");
        let tree = prepared.tree();
        if is_new_process {
            prepared.checkout.mark_used();
            prepared.checkout.current = None;
        } else {
            prepared.checkout.begin_update(&prepared.git, &tree);
        }
        assert_eq!(prepared.updated(&tree), [".gitattributes", "a.txt", "b.txt"]);
        for name in ["a.txt", "b.txt"] {
            assert_eq!(fs::read_to_string(room.join(name)).unwrap(), "first\r\n", "{name} {is_new_process}");
        }
    }
}

/// Everything in a folder: kind, mode and content of each file.
fn listing(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            let metadata = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_symlink() {
                found.push(format!("{name} -> {}", fs::read_link(&path).unwrap().display()));
            } else {
                let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111;
                found.push(format!("{name} {mode:o} {}", fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_switch_gives_the_files_of_a_fresh_checkout() {
    let names = ["a.txt", "gone.txt", "dir/only.txt", "file", "*.txt", ":(top)odd", "mode.sh", "link"];
    for many in [0, 2 * 100] {
        let mut prepared = Prepared::with(&names);
        prepared.checkout.begin_clean(&prepared.git);
        let work = prepared.folder.path().to_owned();
        for name in ["gone.txt", "dir/only.txt", "file", "link"] {
            fs::remove_file(work.join(name)).unwrap();
        }
        fs::remove_dir(work.join("dir")).unwrap();
        prepared.write("dir", "now a file\n");
        prepared.write("file/inside", "now a folder\n");
        prepared.write("*.txt", "second\n");
        prepared.write(":(top)odd", "second\n");
        std::os::unix::fs::symlink("a.txt", work.join("link")).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(work.join("mode.sh"), executable).unwrap();
        for nth in 0..many {
            prepared.write(&format!("many/{nth}"), "new\n");
        }
        let tree = prepared.tree();
        prepared.checkout.begin_update(&prepared.git, &tree);
        assert!(prepared.checkout.background.is_some());
        prepared.checkout.end_background();
        assert!(prepared.checkout.is_intact, "the switch succeeded");
        prepared.updated(&tree);
        let other = tempfile::tempdir().unwrap();
        let mut fresh = Checkout::new(other.path());
        fresh.remove_all().unwrap();
        fresh.update(&prepared.git, &tree).unwrap();
        assert_eq!(listing(&prepared.checkout.tree), listing(&fresh.tree));
        let staged =
            |checkout: &Checkout| checkout.call(&prepared.git, &["ls-files", "-s", "-z"]).run().unwrap();
        assert_eq!(staged(&prepared.checkout), staged(&fresh));
    }
}
