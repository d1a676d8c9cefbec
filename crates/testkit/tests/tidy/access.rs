//! Single points of access: calls and literals that are allowed only in certain files, or nowhere.

use crate::repository::{TrackedFile, assert_none, files};
use crate::rust_source::is_name_char;

/// Which part of which files a rule searches.
enum SearchScope {
    /// The code of the product, without unit tests.
    ProductCode,
    /// The literals of the product, without unit tests.
    ProductLiterals,
    /// The code of all Rust files, with tests.
    AnyCode,
    /// Every file but Markdown.
    AnySource,
    Anywhere,
}
use SearchScope::{AnyCode, AnySource, Anywhere, ProductCode, ProductLiterals};

struct AccessRule {
    words: &'static [&'static str],
    scope: SearchScope,
    /// Files, and folders with a trailing `/`.
    allowed_in: &'static [&'static str],
    why: &'static str,
}

/// Words that this file must not contain itself are concatenated.
const RULES: &[AccessRule] = &[
    AccessRule {
        words: &["Command::new"],
        scope: ProductCode,
        allowed_in: &[
            "crates/runner-host/src/git.rs",
            "crates/runner-host/src/git/",
            "crates/supervise/src/",
            // The user's own pager, on their own terminal.
            "crates/runner-term/src/pager.rs",
            // The user's own editor, on their own terminal.
            "crates/runner-term/src/editor.rs",
            // The evaluation's own worker processes, which run other programs through `supervise`.
            "crates/runner-eval/src/execution/worker.rs",
            // The scripted agent, which is an untrusted child process itself.
            "crates/runner-host/src/agent/scripted_agent.rs",
            // The client of an ACP agent, which is an untrusted child process itself, in the sandbox of the agent.
            "crates/runner-host/src/agent/acp_client.rs",
            // The user's own signing program, with the user's own agent and key.
            "crates/runner-host/src/ops/signing.rs",
            "crates/runner-host/src/ops/signed_tip.rs",
            // The user's own program for pull requests, with the user's own login.
            "crates/runner-host/src/ops/pull_request.rs",
            // The loop itself, in a session of its own; it outlives the command that starts it.
            "crates/runner-host/src/ops/detach.rs",
            // A program of the system that runs beside all others, and ends with its input.
            "crates/runner-host/src/sleep_inhibitor.rs",
        ],
        why: "start programs with `supervise::run`, which bounds their output and time and kills what they leave",
    },
    AccessRule {
        words: &[".runner"],
        scope: ProductLiterals,
        allowed_in: &[
            "crates/runner-core/src/layout.rs",
            "crates/runner-host/src/paths.rs",
            // Text for people and agents, not paths that are opened.
            "crates/runner-core/src/model/goal.rs",
            "crates/runner-core/src/runs/identity.rs",
            "crates/runner-core/src/runs/start.rs",
            "crates/runner-core/src/run_status.rs",
            "crates/runner-core/src/verify/rule.rs",
            "crates/runner/src/args.rs",
            "crates/runner/src/args/",
            "crates/runner/src/commands/demo.rs",
            "crates/runner-term/src/error.rs",
            "crates/runner-term/src/error/plan_advice.rs",
            "crates/runner/src/render/summary.rs",
            "crates/runner-core/src/prompt/template.rs",
        ],
        why: "one module knows the paths: use `layout` or `paths`",
    },
    AccessRule {
        words: &["Runner-", "chore(loop)", "chore\\(loop"],
        scope: ProductLiterals,
        allowed_in: &["crates/runner-core/src/commit_message.rs", "crates/runner-core/src/commit_message/"],
        why: "one module knows the commit messages: use `runner_core::commit_message`",
    },
    AccessRule {
        words: &["print!", "println!", "eprint!", "eprintln!"],
        scope: ProductCode,
        allowed_in: &["crates/runner-term/src/ui.rs"],
        why: "print through `Ui`, so that --json, -q and NO_COLOR work everywhere",
    },
    AccessRule {
        words: &["todo!", "unimplemented!"],
        scope: AnyCode,
        allowed_in: &[],
        why: "implement it before you commit",
    },
    AccessRule {
        words: &["#[ignore", ", ignore)]"],
        scope: AnyCode,
        allowed_in: &[],
        why: "a test that does not run checks nothing: fix it or delete it",
    },
    AccessRule {
        words: &["[allow("],
        scope: AnyCode,
        allowed_in: &[],
        why: "use `#[expect(…, reason = \"…\")]`, which gives a reason and warns when it is no longer needed",
    },
    AccessRule {
        words: &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")],
        scope: AnySource,
        allowed_in: &[],
        why: "do it now, or document in docs/design why not",
    },
    AccessRule {
        words: &[
            concat!("crates", ".io"),
            concat!("npmjs", ".com"),
            concat!("npmjs", ".org"),
            concat!("yarnpkg", ".com"),
            concat!("deb.debian", ".org"),
        ],
        scope: Anywhere,
        allowed_in: &["Cargo.lock"],
        why: "the machine's own settings choose the package registry",
    },
];

impl AccessRule {
    fn applies_to(&self, file: &TrackedFile) -> bool {
        let is_allowed = self
            .allowed_in
            .iter()
            .any(|path| file.path == *path || path.ends_with('/') && file.path.starts_with(path));
        let is_in_scope = match self.scope {
            ProductCode | ProductLiterals => file.is_product(),
            AnyCode => file.is_rust(),
            AnySource => !file.path.ends_with(".md") && file.name() != "Cargo.lock",
            Anywhere => true,
        };
        is_in_scope && file.name() != "package-lock.json" && !is_allowed
    }

    /// One message per violation.
    fn violations_in(&self, file: &TrackedFile) -> Vec<String> {
        let text = match self.scope {
            ProductCode => &file.views_without_tests().code,
            ProductLiterals => &file.views_without_tests().literals,
            AnyCode => &file.views().code,
            AnySource | Anywhere => &file.text,
        };
        let mut violations = Vec::new();
        for word in self.words {
            for offset in whole_word_offsets(text, word) {
                let line = file.line_at(offset);
                violations.push(format!("{}:{line}: `{word}`: {}", file.path, self.why));
            }
        }
        violations
    }
}

/// The offsets of a word, except inside of a longer name.
pub(crate) fn whole_word_offsets(text: &str, word: &str) -> Vec<usize> {
    let is_whole = |(start, _): &(usize, &str)| {
        let (before, from) = text.split_at(*start);
        let (_, after) = from.split_at(word.len());
        let joined = |inside: Option<char>, outside: Option<char>| {
            inside.is_some_and(is_name_char) && outside.is_some_and(is_name_char)
        };
        !joined(word.chars().next(), before.chars().next_back())
            && !joined(word.chars().next_back(), after.chars().next())
    };
    text.match_indices(word).filter(is_whole).map(|(start, _)| start).collect()
}

#[test]
fn restricted_words_are_used_only_where_allowed() {
    let files = files();
    let mut violations = Vec::new();
    for rule in RULES {
        for file in files.iter().filter(|file| rule.applies_to(file)) {
            violations.extend(rule.violations_in(file));
        }
    }
    assert_none(&violations);
}

#[test]
fn a_word_inside_a_longer_name_does_not_count() {
    assert_eq!(whole_word_offsets("eprintln! println!(println)", "println!"), [10]);
    assert_eq!(whole_word_offsets("abcd xabc abc", "abc"), [10]);
}

#[test]
fn every_rule_detects_its_words() {
    for rule in RULES {
        for word in rule.words {
            let text = match rule.scope {
                ProductLiterals => format!("fn f() {{\n\"{word}\" }}"),
                ProductCode | AnyCode | AnySource | Anywhere => format!("fn f() {{\n{word} }}"),
            };
            let file = TrackedFile::new("crates/runner-ui/src/page.rs", text);
            assert!(rule.applies_to(&file));
            let violations = rule.violations_in(&file);
            assert_eq!(violations, [format!("{}:2: `{word}`: {}", file.path, rule.why)]);
        }
    }
}
