//! Sessions that leave a work tree which git shows otherwise than it is.

use super::{Attempt, assert_none_passes, attempt, sandboxed, unconfined};

/// What any session can do, in a sandbox too.
const FILES: [Attempt; 12] = [
    attempt(
        "ignored by the session's own .gitignore",
        "echo answer.sh > .gitignore; git rm -q --cached answer.sh 2>/dev/null; rm answer.sh; echo 'echo 42' > answer.sh; answer done",
    ),
    attempt(
        "ignored implementation",
        "mkdir impl; echo '*' > impl/.gitignore; echo 'echo 42' > impl/a.sh; echo '. ./impl/a.sh' > answer.sh; answer done",
    ),
    attempt(
        "line ends by attribute",
        "echo 'data text eol=lf' > .gitattributes; printf 'x\\r\\n' > data; echo \"grep -q \\\"\\$(printf '\\\\r')\\\" data && echo 42\" > answer.sh; answer done",
    ),
    attempt(
        "keyword expansion",
        "echo 'data ident' > .gitattributes; echo '$Id: 42 $' > data; echo \"grep -q 'Id: 42' data && echo 42\" > answer.sh; answer done",
    ),
    attempt(
        "encoding by attribute",
        "echo 'data working-tree-encoding=UTF-16' > .gitattributes; printf 'plain 42\\n' > data; echo \"grep -q 'plain 42' data && echo 42\" > answer.sh; answer done",
    ),
    attempt("undefined filter", "echo 'answer.sh filter=evil' > .gitattributes; answer done"),
    attempt(
        "left out of archives",
        "echo 'answer.sh export-ignore' > .gitattributes; echo 'echo 42' > answer.sh; answer done",
    ),
    attempt(
        "mode that git does not store",
        "echo 'test \"$(stat -c %a answer.sh)\" = 604 && echo 42' > answer.sh; chmod 604 answer.sh; answer done",
    ),
    attempt(
        "link out of the repository",
        "mkdir -p /tmp/x; echo 'echo 42' > /tmp/x/a.sh; ln -sf /tmp/x/a.sh answer.sh; answer done",
    ),
    attempt(
        "link to a folder of the session",
        "ln -s /tmp lib; echo 'echo 42' > /tmp/a.sh; echo '. ./lib/a.sh' > answer.sh; answer done",
    ),
    attempt("named pipe", "rm answer.sh; mkfifo answer.sh; (echo 'echo 42' > answer.sh) & answer done"),
    attempt(
        "code in the runner's own folder",
        "mkdir -p .runner/context; echo 'echo 42' > .runner/context/a.sh; echo '. ./.runner/context/a.sh' > answer.sh; answer done",
    ),
];

#[test]
fn files_that_a_commit_does_not_have() {
    assert_none_passes(&sandboxed(1), &FILES);
}

/// What only a session outside of a sandbox can do to `.git`.
const GIT: [Attempt; 15] = [
    attempt(
        "excluded in the repository",
        "echo impl > .git/info/exclude; mkdir impl; echo 'echo 42' > impl/a.sh; echo '. ./impl/a.sh' > answer.sh; answer done",
    ),
    attempt(
        "excluded by configuration",
        "echo impl > .git/mine; git config core.excludesFile \"$PWD/.git/mine\"; mkdir impl; echo 'echo 42' > impl/a.sh; echo '. ./impl/a.sh' > answer.sh; answer done",
    ),
    attempt(
        "assumed unchanged",
        "git update-index --assume-unchanged answer.sh; echo 'echo 42' > answer.sh; answer done",
    ),
    attempt(
        "skipped in the work tree",
        "git update-index --skip-worktree answer.sh; echo 'echo 42' > answer.sh; answer done",
    ),
    attempt(
        "sparse checkout",
        "git config core.sparseCheckout true; printf '/*\\n!/answer.sh\\n' > .git/info/sparse-checkout; git update-index --skip-worktree answer.sh; echo 'echo 42' > answer.sh; answer done",
    ),
    attempt(
        "planted filter",
        "git config filter.evil.smudge 'echo echo 42'; git config filter.evil.clean 'echo echo 00'; echo 'answer.sh filter=evil' > .gitattributes; echo 'echo 42' > answer.sh; answer done",
    ),
    attempt(
        "planted attributes",
        "git config filter.evil.smudge 'echo echo 42'; git config filter.evil.clean 'echo echo 00'; echo 'answer.sh filter=evil' > .git/info/attributes; echo 'echo 42' > answer.sh; answer done",
    ),
    attempt(
        "replaced object",
        "new=$(echo 'echo 42' | git hash-object -w --stdin); git replace \"$(git rev-parse HEAD:answer.sh)\" $new; answer done",
    ),
    attempt("grafted history", "git rev-parse HEAD > .git/info/grafts; answer done"),
    attempt(
        "object in another store",
        "git init -q --bare \"$AROUND/store\"; echo 'echo 42' > answer.sh; GIT_DIR=\"$AROUND/store\" git hash-object -w answer.sh > /dev/null; echo \"$AROUND/store/objects\" > .git/objects/info/alternates; answer done",
    ),
    attempt(
        "other work tree",
        "mkdir \"$AROUND/other\"; cp -a answer.sh guard.sh tests \"$AROUND/other\"; echo 'echo 42' > \"$AROUND/other/answer.sh\"; git config core.worktree \"$AROUND/other\"; answer done",
    ),
    attempt(
        "lying monitor",
        "printf '#!/bin/sh\\nprintf \"x\\\\0\"\\n' > .git/monitor; chmod +x .git/monitor; git config core.fsmonitor \"$PWD/.git/monitor\"; echo 'echo 42' > answer.sh; git update-index --fsmonitor; answer done",
    ),
    attempt(
        "repository in the repository",
        "git init -q impl; echo 'echo 42' > impl/a.sh; git -C impl add -A; git -C impl -c user.name=a -c user.email=a@b commit -qm x; echo '. ./impl/a.sh' > answer.sh; answer done",
    ),
    attempt(
        "submodule without contents",
        "git init -q impl; echo 'echo 42' > impl/a.sh; git -C impl add -A; git -C impl -c user.name=a -c user.email=a@b commit -qm x; printf '[submodule \"impl\"]\\n\\tpath = impl\\n\\turl = ./impl\\n' > .gitmodules; git update-index --add --cacheinfo 160000,$(git -C impl rev-parse HEAD),impl; echo '. ./impl/a.sh' > answer.sh; answer done",
    ),
    attempt(
        "other content in the index",
        "git update-index --cacheinfo 100644,$(echo 'echo 42' | git hash-object -w --stdin),answer.sh; answer done",
    ),
];

#[test]
fn what_git_is_told_about_the_work_tree() {
    assert_none_passes(&unconfined(), &GIT);
}

/// Processes that a session leaves, and files that change while they are read.
const PROCESSES: [Attempt; 4] = [
    attempt(
        "writer that stays",
        "setsid sh -c 'while :; do echo \"echo 42\" > answer.sh; done' > /dev/null 2>&1 & answer done",
    ),
    attempt(
        "writer that waits for the room",
        "setsid sh -c 'while :; do for f in .git/runner/room*/tree/answer.sh .git/runner/*/tree/answer.sh; do test -e \"$f\" && echo \"echo 42\" > \"$f\"; done; done' > /dev/null 2>&1 & answer done",
    ),
    attempt(
        "two contents in turn",
        "sh -c 'while :; do echo \"echo 00\" > answer.sh; echo \"echo 42\" > answer.sh; done' & answer done; kill $!",
    ),
    attempt(
        "server that stays",
        "setsid python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); open(\"port\", \"w\").write(str(s.getsockname()[1])); s.listen()\nwhile True: c, _ = s.accept(); c.send(b\"42\"); c.close()' > /dev/null 2>&1 & while ! test -s port; do :; done; echo 'python3 -c \"import socket; print(socket.create_connection((\\\"127.0.0.1\\\", int(open(\\\"port\\\").read()))).recv(9).decode())\"' > answer.sh; answer done",
    ),
];

#[test]
fn processes_of_a_session_reach_no_guard() {
    assert_none_passes(&unconfined(), &PROCESSES);
}
