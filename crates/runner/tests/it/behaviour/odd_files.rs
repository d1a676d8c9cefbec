//! Files that git blocks on, refuses or cannot store: the run continues, and every byte is committed or set aside.

use std::os::unix::fs::MetadataExt;

use serde_json::Value;
use testkit::oracle::assert_sound;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::{RUNNER, as_nobody, owned_by_nobody};

/// An agent that runs a script in its first session, and works normally afterwards.
fn agent(script: &str) -> RunBuilder {
    let script =
        format!("if test $RUNNER_ITER = 0001; then {script}; echo w > w; answer retry; else answer done; fi");
    RunBuilder::new(RUNNER).agent(&script).file("src/lib.txt", "one\n").file("data.bin", "abc")
}

/// Runs to the end, and asserts that nothing of the session's regular work is missing.
fn finish(repo: &TestRepo) -> String {
    let stdout = repo.runner(&["loop"]).ok().stdout;
    assert_eq!(repo.outcomes(), ["retry", "passed"]);
    assert_eq!(committed(repo, "w"), b"w\n");
    assert_sound(repo);
    stdout
}

fn committed(repo: &TestRepo, path: &str) -> Vec<u8> {
    let output =
        repo.command("git").args(["cat-file", "blob", &format!("{BRANCH}:{path}")]).output().unwrap();
    assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Path and action of every notice of the first iteration.
fn notices(repo: &TestRepo) -> Vec<(String, String)> {
    let meta = repo.meta(1);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let notices = meta.get("file_notices").and_then(Value::as_array).unwrap().iter();
    notices.map(|notice| (text(&notice["path"]), text(&notice["action"]))).collect()
}

fn pair(path: &str, action: &str) -> (String, String) {
    (path.to_owned(), action.to_owned())
}

#[test]
fn named_pipe_that_git_opens_does_not_block_it() {
    for path in ["s/.gitignore", "s/.gitattributes", ".gitmodules", "src/.gitattributes"] {
        let script =
            format!("mkdir s; echo x > s/x; echo two > src/lib.txt; mkfifo {path}; chmod 000 {path}");
        let repo = agent(&script).start();
        finish(&repo);
        assert_eq!(committed(&repo, "s/x"), b"x\n", "{path}");
        assert_eq!(committed(&repo, "src/lib.txt"), b"two\n", "{path}");
        assert_eq!(notices(&repo), [pair(path, "removed")]);
        assert!(repo.path(path).symlink_metadata().is_err(), "{path}");
    }
}

#[test]
fn content_that_git_refuses_is_committed_byte_for_byte() {
    let text = "abc\\r\\ndef\\n";
    for (attributes, config) in [
        ("*.txt working-tree-encoding=UTF-16", ""),
        ("*.txt working-tree-encoding", ""),
        (
            "*.txt filter=missing",
            "[filter \"missing\"]\n\tclean = no-such-program\n\tsmudge = no-such-program\n\trequired\n",
        ),
        ("*.txt filter=failing", "[filter \"failing\"]\n\tprocess = false\n\trequired = true\n"),
    ] {
        let script = format!(
            "echo '{attributes}' > .gitattributes; printf '{text}' > src/new.txt; \
                              printf '{text}' > src/lib.txt; touch -d '2001-01-01' data.bin"
        );
        let repo = agent(&script).unrepeatable("git cannot check such files out").start();
        std::fs::write(repo.outside().join("home/.gitconfig"), config).unwrap();
        let stdout = finish(&repo);
        for path in ["src/new.txt", "src/lib.txt"] {
            assert_eq!(committed(&repo, path), b"abc\r\ndef\n", "{attributes}: {path}");
            assert!(notices(&repo).contains(&pair(path, "stored_raw")), "{attributes}: {:?}", notices(&repo));
        }
        assert!(stdout.contains("`src/new.txt` committed without conversion"), "{stdout}");
        let shown = repo.runner(&["show", "1"]).ok().stdout;
        assert!(shown.contains("`src/new.txt` committed without conversion"), "{shown}");
    }
}

#[test]
fn content_that_git_refuses_blocks_no_later_command() {
    let script = "echo '*.bin filter=lfs' > .gitattributes; echo one > src/new.bin; echo two > zz.txt";
    for room in ["room = \"in-place\"", "room = \"require\""] {
        let repo = agent(script)
            .guard_keys(&format!("final_check = true\n{room}"))
            .unrepeatable("a clone needs the filter that this machine does not have")
            .start();
        let config = "[filter \"lfs\"]\n\tclean = no-such-program\n\tsmudge = cat\n\trequired = true\n";
        std::fs::write(repo.outside().join("home/.gitconfig"), config).unwrap();
        finish(&repo);
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{room}");
        repo.runner(&["note", "after the final check"]).ok();
        // Copied, restored from a backup, or touched: git must read the files again, and cannot.
        for file in ["src/new.bin", "zz.txt"] {
            let times = std::fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
            std::fs::File::options().write(true).open(repo.path(file)).unwrap().set_times(times).unwrap();
        }
        repo.runner(&["note", "after a restore"]).ok();
        repo.runner(&["loop"]).ok();
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{room}");
    }
}

/// Git refuses such a file with the user's own setting.
#[test]
fn line_endings_that_git_converts_do_not_stop_the_run() {
    let repo = agent("echo 'src/* text' > .gitattributes; printf 'a\\r\\nb\\n' > src/new.txt").start();
    let config = "[core]\n\tsafecrlf = true\n\tautocrlf = input\n";
    std::fs::write(repo.outside().join("home/.gitconfig"), config).unwrap();
    finish(&repo);
    assert_eq!(committed(&repo, "src/new.txt"), b"a\nb\n");
}

#[test]
fn attributes_in_the_runners_folder_do_not_stop_the_run() {
    let script = "echo '* working-tree-encoding=UTF-16' > .runner/state/.gitattributes; echo q >> .runner/state/questions.md";
    let repo = agent(script).start();
    finish(&repo);
    let questions = committed(&repo, ".runner/state/questions.md");
    assert!(questions.ends_with(b"q\n"), "{}", String::from_utf8_lossy(&questions));
}

#[test]
fn tracked_file_that_became_a_named_pipe_is_restored() {
    let repo = agent("rm data.bin; mkfifo data.bin").start();
    finish(&repo);
    assert_eq!(repo.read("data.bin"), "abc");
    assert_eq!(committed(&repo, "data.bin"), b"abc");
    assert_eq!(notices(&repo), [pair("data.bin", "removed")]);
}

/// Names that would collide, a path longer than a file name may be, and a tracked file that grew.
#[test]
fn large_files_are_set_aside_under_unique_names_and_can_be_restored() {
    let deep = format!("{0}/{0}/{0}/{1}", "d".repeat(90), "n".repeat(250));
    let script = format!(
        "mkdir -p a $(dirname {deep}); truncate -s 60M {deep}; truncate -s 60M data.bin; \
         for f in a/b.bin a-b.bin \"it's\"; do truncate -s 60M \"$f\"; printf \"$f\" >> \"$f\"; done"
    );
    let repo = agent(&script).start();
    let stdout = finish(&repo);
    assert_eq!(repo.read("data.bin"), "abc");
    let mut large = vec![deep.as_str(), "a/b.bin", "a-b.bin", "it's", "data.bin"];
    large.sort_unstable();
    let manifest: Value = serde_json::from_str(&repo.read(".git/runner/aside/0001/manifest.json")).unwrap();
    let paths: Vec<&str> =
        manifest.as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect();
    assert_eq!(paths, large);
    for entry in manifest.as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        assert!(name.len() < 210 && entry["mode"] == "100644" && entry["at_ms"].is_u64(), "{entry}");
        assert_eq!(
            repo.path(&format!(".git/runner/aside/0001/{name}")).metadata().unwrap().len(),
            entry["bytes"]
        );
    }
    for path in ["a/b.bin", "a-b.bin", "it's"] {
        let meta = repo.meta(1);
        let notice =
            meta["file_notices"].as_array().unwrap().iter().find(|notice| notice["path"] == path).unwrap();
        let command = notice["restore"].as_str().unwrap();
        let is_quoted = command.contains('\'');
        assert!(is_quoted || stdout.contains(command), "{command}: {stdout}");
        run(repo.command("sh").args(["-ec", command])).ok();
        assert!(repo.read_bytes(path).ends_with(path.as_bytes()), "{path}");
    }
}

/// Also with a git directory on another file system.
#[test]
fn large_file_is_copied_to_another_file_system() {
    let elsewhere = tempfile::tempdir_in("/var/tmp").unwrap();
    let repo = TestRepo::empty(RUNNER);
    let git_dir = elsewhere.path().join("git");
    repo.git(&["init", "-q", "-b", "main", "--separate-git-dir", git_dir.to_str().unwrap()]);
    let device = |path: &std::path::Path| path.metadata().unwrap().dev();
    assert_ne!(
        device(&git_dir),
        device(repo.root()),
        "this test needs two file systems: set TMPDIR to another one than /var/tmp"
    );
    let script =
        "truncate -s 60M big; echo end >> big; git init -q nested; echo n > nested/n; chmod 555 nested";
    let repo = agent(script).start_in(repo);
    finish(&repo);
    assert_eq!(committed(&repo, "nested/n"), b"n\n");
    let aside = git_dir.join("runner/aside/0001");
    assert!(std::fs::read(aside.join("2-big")).unwrap().ends_with(b"end\n"));
    assert!(aside.join("1-.git/HEAD").exists());
    assert!(!repo.path("big").exists() && !repo.path("nested/.git").exists());
}

#[test]
fn files_of_nested_repositories_are_committed_and_their_histories_set_aside() {
    let script = "git() { command git -c user.name=a -c user.email=b -c protocol.file.allow=always \"$@\"; }; \
        for d in out out/in out/in/most; do mkdir -p $d; git init -q $d; echo $d > $d/f; git -C $d add f; git -C $d commit -qm x; done; \
        git init -q empty; echo e > empty/e; \
        git init -q $AROUND/lib; echo l > $AROUND/lib/l; git -C $AROUND/lib add l; git -C $AROUND/lib commit -qm l; \
        git init -q $AROUND/top; git -C $AROUND/top submodule --quiet add $AROUND/lib lib; git -C $AROUND/top commit -qm t; \
        git clone -q --recurse-submodules $AROUND/top cloned; \
        git -C $AROUND/lib worktree add -q $PWD/linked";
    let repo = agent(script).start();
    finish(&repo);
    for (path, text) in [
        ("out/f", "out\n"),
        ("out/in/f", "out/in\n"),
        ("out/in/most/f", "out/in/most\n"),
        ("empty/e", "e\n"),
        ("cloned/lib/l", "l\n"),
        ("linked/l", "l\n"),
    ] {
        assert_eq!(committed(&repo, path), text.as_bytes(), "{path}");
        assert_eq!(repo.read(path), text);
    }
    let found = run(repo.command("find").args([".", "-mindepth", "2", "-name", ".git"])).stdout;
    assert_eq!(found, "", "no git directory is left below the root");
    assert_eq!(repo.git(&["ls-files", "-s"]).lines().filter(|line| line.starts_with("160000")).count(), 0);
    let aside = run(repo.command("ls").arg(".git/runner/aside/0001")).stdout;
    assert_eq!(aside.lines().filter(|line| line.ends_with("-.git")).count(), 7, "{aside}");
}

#[test]
fn submodule_of_the_base_commit_stays_one() {
    let library = TestRepo::with_commit(RUNNER);
    let repo = TestRepo::empty(RUNNER);
    repo.git(&["init", "-q", "-b", "main"]);
    let from = library.root().to_str().unwrap();
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "lib"]);
    let script = "echo new > lib/new; git -C lib add new; git -C lib -c user.name=a -c user.email=b commit -qm new; git init -q other; echo o > other/o";
    let repo = agent(script).start_in(repo);
    finish(&repo);
    let head = repo.git(&["-C", "lib", "rev-parse", "HEAD"]);
    assert_eq!(repo.git(&["ls-tree", BRANCH, "lib"]), format!("160000 commit {head}\tlib"));
    assert_eq!(committed(&repo, "other/o"), b"o\n");
}

/// Permissions restrict only users other than root.
#[test]
fn folders_and_files_without_permissions_do_not_stop_an_ordinary_user() {
    for script in [
        "mkdir ro; truncate -s 60M ro/big; echo s > ro/small; chmod 555 ro",
        "git init -q ro; echo s > ro/small; chmod 555 ro ro/.git",
        "mkdir -p ro/deep; echo s > ro/small; echo d > ro/deep/d; chmod 000 ro/small ro/deep ro",
        "mkdir ro; echo s > ro/small; truncate -s 60M data.bin; chmod 444 data.bin; chmod 555 . ro",
        "mkdir ro; echo s > ro/small; mkdir -p .runner/context/x/y; touch .runner/context/x/y/z; chmod 555 .runner/context/x/y .runner/context/x",
        "mkdir ro; echo s > ro/small; echo '*.log' > .gitignore; touch a.log; chmod 000 .gitignore",
        "mkdir ro; echo s > ro/small; chmod 000 .runner/state",
    ] {
        let repo = agent(&format!("echo w > w; {script}; chmod u+w .; true")).start();
        owned_by_nobody(&repo, |_| {
            for _ in 0..2 {
                let ran = as_nobody(&repo, &["loop"]);
                assert_eq!(ran.code, Some(0), "{script}: {}{}", ran.stdout, ran.stderr);
            }
        });
        assert_eq!(committed(&repo, "ro/small"), b"s\n", "{script}");
        assert_eq!(repo.read("data.bin"), "abc", "{script}");
        if script.contains("ro/big") {
            assert_eq!(repo.path(".git/runner/aside/0001/1-big").metadata().unwrap().len(), 60 << 20);
            assert_eq!(
                repo.path("ro").metadata().unwrap().mode() & 0o777,
                0o555,
                "the folder is read-only again"
            );
        }
        assert!(!repo.git(&["ls-files"]).contains("a.log"), "ignored files stay ignored");
        assert_sound(&repo);
    }
}

#[test]
fn what_a_guard_leaves_is_treated_like_what_an_agent_leaves() {
    for guard in [
        "git init -q left; echo l > left/l",
        "mkdir left; echo l > left/l; chmod 555 left",
        "mkdir left; truncate -s 60M left/big; chmod 555 left",
        "mkdir left; echo l > left/l; mkfifo left/.gitignore left/.gitattributes",
        "mkdir left; echo l > left/l; chmod 000 left/l left",
        "echo '*.txt working-tree-encoding=UTF-16' > .gitattributes; echo abc > left.txt; echo x > src/lib.txt",
        "rm data.bin; mkfifo data.bin",
    ] {
        let repo = RunBuilder::new(RUNNER)
            .agent("echo $RUNNER_ITER > w; if test $RUNNER_ITER = 0001; then split; else answer done; fi")
            .guard(&format!("{guard}; true"))
            .file("src/lib.txt", "one\n")
            .file("data.bin", "abc")
            .start();
        owned_by_nobody(&repo, |_| {
            let ran = as_nobody(&repo, &["loop"]);
            assert_eq!(ran.code, Some(0), "{guard}: {}{}", ran.stdout, ran.stderr);
        });
        assert_eq!(repo.outcomes(), ["decomposed", "passed", "passed"], "{guard}");
        assert_eq!((repo.read("src/lib.txt"), repo.read("data.bin")), ("one\n".to_owned(), "abc".to_owned()));
        assert_sound(&repo);
    }
}
