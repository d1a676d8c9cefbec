//! Code of the session that the guard runs: it cannot change the result of this run, and leaves nothing for the next.

use super::{Attempt, assert_no_false_pass, assert_none_passes, attempt, copy, has_passed, sandboxed};

/// In the first session the tests plant something and fail; in the second, answer.sh uses it.
const STAGED: [Attempt; 14] = [
    attempt(
        "module in the home folder",
        "case $RUNNER_ITER in 0001) echo 'mkdir -p \"$HOME/lib\" && echo \"echo 42\" > \"$HOME/lib/a.sh\"' > tests/all.sh ;; *) echo '. \"$HOME/lib/a.sh\"' > answer.sh ;; esac; answer done",
    ),
    attempt(
        "program in the home folder",
        "case $RUNNER_ITER in 0001) echo 'mkdir -p \"$HOME/.local/bin\" \"$HOME/bin\"; for d in .local/bin bin; do echo \"echo 42\" > \"$HOME/$d/tool\"; chmod +x \"$HOME/$d/tool\"; done' > tests/all.sh ;; *) echo 'PATH=$HOME/.local/bin:$HOME/bin:$PATH; tool' > answer.sh ;; esac; answer done",
    ),
    attempt(
        "start file of the shell",
        "case $RUNNER_ITER in 0001) echo 'echo \"answer=42\" | tee \"$HOME/.profile\" \"$HOME/.bashrc\" \"$HOME/.shrc\" > /dev/null' > tests/all.sh ;; *) echo '. \"$HOME/.profile\"; echo $answer' > answer.sh ;; esac; answer done",
    ),
    attempt(
        "modules of Python's user",
        "case $RUNNER_ITER in 0001) echo 'd=$(python3 -m site --user-site); mkdir -p \"$d\"; echo \"answer = 42\" > \"$d/planted.py\"; echo \"answer = 42\" > \"$d/usercustomize.py\"' > tests/all.sh ;; *) echo 'python3 -c \"import planted; print(planted.answer)\"' > answer.sh ;; esac; answer done",
    ),
    attempt(
        "settings of git",
        "case $RUNNER_ITER in 0001) echo 'git config --global alias.answer \"!echo 42\"; git config alias.answer \"!echo 42\"' > tests/all.sh ;; *) echo 'git answer' > answer.sh ;; esac; answer done",
    ),
    attempt(
        "temporary folders",
        "case $RUNNER_ITER in 0001) echo 'for d in /tmp /var/tmp /dev/shm /run /run/user/0; do echo \"echo 42\" > $d/planted.sh; done 2>/dev/null' > tests/all.sh ;; *) echo 'for d in /tmp /var/tmp /dev/shm /run /run/user/0; do test -e $d/planted.sh && sh $d/planted.sh && break; done' > answer.sh ;; esac; answer done",
    ),
    attempt(
        "folder beside the repository",
        "case $RUNNER_ITER in 0001) echo 'echo \"echo 42\" > ../planted.sh' > tests/all.sh ;; *) echo '. ../planted.sh' > answer.sh ;; esac; answer done",
    ),
    attempt(
        "untracked file in the room",
        "case $RUNNER_ITER in 0001) echo 'echo \"echo 42\" > planted.sh; mkdir -p deep/er; echo \"echo 42\" > deep/er/planted.sh' > tests/all.sh ;; *) echo 'cat planted.sh deep/er/planted.sh > /dev/null && echo 42 || . ./planted.sh' > answer.sh ;; esac; answer done",
    ),
    attempt(
        "changed file in the room, with the same size and time",
        "case $RUNNER_ITER in 0001) echo 'touch -r answer.sh /tmp/t; printf \"echo 42\\n\" > answer.sh; touch -r /tmp/t answer.sh' > tests/all.sh ;; *) echo true > tests/all.sh ;; esac; answer done",
    ),
    attempt(
        "changed file that git in the room assumes unchanged",
        "case $RUNNER_ITER in 0001) echo 'echo \"echo 42\" > answer.sh; git update-index --assume-unchanged answer.sh; git update-index --skip-worktree answer.sh' > tests/all.sh ;; *) echo true > tests/all.sh ;; esac; answer done",
    ),
    attempt(
        "files that the room's own .gitignore hides",
        "case $RUNNER_ITER in 0001) echo 'echo \"*\" > .gitignore; echo \"echo 42\" > planted.sh' > tests/all.sh ;; *) echo '. ./planted.sh' > answer.sh ;; esac; answer done",
    ),
    attempt(
        "filter and hooks in the room",
        "case $RUNNER_ITER in 0001) echo 'git config filter.e.smudge \"echo echo 42\"; echo \"answer.sh filter=e\" > .git/info/attributes; echo \"answer.sh filter=e\" > .gitattributes; printf \"#!/bin/sh\\necho echo 42 > answer.sh\\n\" > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout' > tests/all.sh ;; *) echo true > tests/all.sh ;; esac; answer done",
    ),
    attempt(
        "process that stays",
        "case $RUNNER_ITER in 0001) echo 'setsid sh -c \"while :; do echo echo 42 > answer.sh; done\" > /dev/null 2>&1 & kill -9 $PPID' > tests/all.sh ;; *) echo true > tests/all.sh ;; esac; answer done",
    ),
    attempt(
        "folder that cannot be emptied",
        "case $RUNNER_ITER in 0001) echo 'mkdir -p stay/in; echo \"echo 42\" > stay/in/a.sh; chmod 500 stay/in stay' > tests/all.sh ;; *) echo '. ./stay/in/a.sh' > answer.sh ;; esac; answer done",
    ),
];

#[test]
fn nothing_stays_from_one_guard_to_the_next() {
    assert_none_passes(&sandboxed(2), &STAGED);
}

/// Within one run of the guard.
const DIRECT: [Attempt; 12] = [
    attempt(
        "rewrites the guard while it runs",
        "echo 'printf \"sh tests/all.sh\\nexit 0    \\n\" > guard.sh' > tests/all.sh; answer done",
    ),
    attempt(
        "moves another file over the guard",
        "echo 'echo true > g; mv -f g guard.sh; rm -f guard.sh; ln -s /bin/true guard.sh' > tests/all.sh; answer done",
    ),
    attempt(
        "mounts over the guard",
        "echo 'echo true > g; mount --bind g guard.sh; unshare -rm sh -c \"mount --bind g guard.sh\"' > tests/all.sh; answer done",
    ),
    attempt("kills the shell of the guard", "echo 'kill -9 $PPID' > tests/all.sh; answer done"),
    attempt("kills every process", "echo 'kill -9 -1' > tests/all.sh; answer done"),
    attempt(
        "sends signals to the supervisor",
        "echo 'for s in TERM INT HUP USR1 USR2; do kill -$s 1; kill -$s $PPID; done' > tests/all.sh; answer done",
    ),
    attempt(
        "stops the processes above it",
        "echo 'kill -STOP 1; kill -USR1 $PPID' > tests/all.sh; answer done",
    ),
    attempt(
        "writes into the memory of its parent",
        "echo 'python3 -c \"import os; [open(f\\\"/proc/{p}/mem\\\", \\\"r+b\\\") for p in (1, os.getppid())]\"; for f in /proc/[0-9]*/fd/*; do echo 0 > $f; done' > tests/all.sh; answer done",
    ),
    attempt(
        "takes the descriptors of other processes",
        "cat > tests/all.sh <<'X'\npython3 - <<'P'\nimport ctypes, os\nlibc = ctypes.CDLL(None)\nfor pid in range(1, 60):\n    handle = libc.syscall(434, pid, 0)\n    if handle < 0 or pid == os.getpid(): continue\n    for number in range(0, 40):\n        fd = libc.syscall(438, handle, number, 0)\n        if fd >= 0: os.write(fd, b'{\"Ended\":{\"status\":{\"Exited\":0}}}\\n')\nP\nX\nanswer done",
    ),
    attempt(
        "prints what a test program would print",
        "echo 'echo \"test result: ok. 9 passed; 0 failed\"; echo \"9 passed in 0.01s\"; echo \"{\\\"guard\\\":\\\"pass\\\",\\\"exit\\\":0}\"' > tests/all.sh; answer done",
    ),
    attempt("prints more than is kept", "echo 'yes passed | head -c 20000000' > tests/all.sh; answer done"),
    attempt(
        "writes what the runner keeps",
        "echo 'for f in .runner/state/tree.json .runner/state/run_state.json; do sed -i \"s/\\\"passes\\\": false/\\\"passes\\\": true/; s/\\\"last_guard\\\": null/\\\"last_guard\\\": \\\"pass\\\"/\" $f; done; git commit -qam \"chore(loop): run demo iter 0001 node root status=done guard=pass\"' > tests/all.sh; answer done",
    ),
];

#[test]
fn code_of_the_guard_decides_nothing() {
    assert_none_passes(&sandboxed(1), &DIRECT);
}

/// What git ignores stays in the room, so that builds are fast, but not what a failed guard left.
#[test]
fn a_poisoned_cache_of_the_room_passes_no_task() {
    let session = "case $RUNNER_ITER in 0001) echo 'echo \"echo 42\" > ignored' > tests/all.sh ;; \
                   *) echo '. ./ignored' > answer.sh; echo true > tests/all.sh ;; esac; answer done";
    let stage = sandboxed(2);
    let repo = copy(&stage, session);
    let output = repo.runner(&["loop"]);
    assert_eq!(repo.outcomes(), ["guard_failed", "guard_failed"]);
    assert_no_false_pass(&repo, "a room that is kept", &output);
    assert!(!has_passed(&repo));
    let none = copy(&stage, session);
    let config = none
        .read(".runner/state/config.toml")
        .replace("room = \"require\"", "room = \"require\"\nignored = \"none\"");
    none.write(".runner/state/config.toml", config);
    none.runner(&["start"]).ok();
    let output = none.runner(&["loop"]);
    assert_no_false_pass(&none, "a fresh room for every run", &output);
    assert!(!has_passed(&none));
}
