//! Words that stand only where they may: the doors that there is one of, and what no source holds.

use crate::repository::{File, assert_none, files};
use crate::rust_source::{Views, is_of_name};

/// Where in a file a word is looked for.
enum Seen {
    /// Rust, without comments, literals and unit tests.
    ProductCode,
    /// The literals of Rust, without those of unit tests.
    ProductLiterals,
    /// Rust, unit tests and all, without comments and literals.
    AnyCode,
    /// Every line of every file but prose.
    AnySource,
    /// Every line of every file.
    Anywhere,
}
use Seen::{AnyCode, AnySource, Anywhere, ProductCode, ProductLiterals};

struct Rule {
    words: &'static [&'static str],
    seen: Seen,
    /// Files, or folders with their `/`.
    allowed_in: &'static [&'static str],
    why: &'static str,
}

/// Words that this file must not hold itself are put together from two halves.
const RULES: &[Rule] = &[
    Rule {
        words: &["Command::new"],
        seen: ProductCode,
        allowed_in: &[
            "crates/runner-host/src/git.rs",
            "crates/runner-host/src/git/",
            "crates/supervise/src/",
            // The user's own pager, at their own terminal.
            "crates/runner-term/src/pager.rs",
            // The evaluation's own workers; what those start goes through the host.
            "crates/runner-eval/src/execution/worker.rs",
            // The scripted agent, a child like any other.
            "crates/runner-host/src/agent/scripted_agent.rs",
        ],
        why: "processes start behind one door, where their output, time and end are looked after",
    },
    Rule {
        words: &[".runner"],
        seen: ProductLiterals,
        allowed_in: &[
            "crates/runner-core/src/layout.rs",
            "crates/runner-host/src/repo/paths.rs",
            // Text for people and agents, not a path that anything opens.
            "crates/runner-core/src/model/goal.rs",
            "crates/runner-core/src/runs/identity.rs",
            "crates/runner-core/src/runs/start.rs",
            "crates/runner/src/args.rs",
            "crates/runner/src/commands/demo.rs",
            "crates/runner-term/src/error.rs",
            "crates/runner/src/render/summary.rs",
            "crates/runner-core/src/prompt/template.rs",
        ],
        why: "one module knows the paths: take them from `layout` or `paths`",
    },
    Rule {
        words: &["print!", "println!", "eprint!", "eprintln!"],
        seen: ProductCode,
        allowed_in: &["crates/runner-term/src/ui.rs"],
        why: "one module prints, so that --json, -q and NO_COLOR hold everywhere",
    },
    Rule {
        words: &["todo!", "unimplemented!"],
        seen: AnyCode,
        allowed_in: &[],
        why: "what is not there yet is not committed",
    },
    Rule {
        words: &["#[ignore", ", ignore)]"],
        seen: AnyCode,
        allowed_in: &[],
        why: "a test that does not run holds nothing: mend it or delete it",
    },
    Rule {
        words: &["[allow("],
        seen: AnyCode,
        allowed_in: &[],
        why: "`#[expect(…, reason = \"…\")]` says why, and says when it is needed no more",
    },
    Rule {
        words: &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")],
        seen: AnySource,
        allowed_in: &[],
        why: "do it now, or write down in docs/design why not",
    },
    Rule {
        words: &[
            concat!("crates", ".io"),
            concat!("npmjs", ".com"),
            concat!("npmjs", ".org"),
            concat!("yarnpkg", ".com"),
            concat!("deb.debian", ".org"),
        ],
        seen: Anywhere,
        allowed_in: &["Cargo.lock"],
        why: "which registry serves the packages is the machine's own setting",
    },
];

impl Rule {
    fn concerns(&self, file: &File) -> bool {
        let allowed = |door: &str| file.path == door || door.ends_with('/') && file.path.starts_with(door);
        let kind = match self.seen {
            ProductCode | ProductLiterals => file.is_product(),
            AnyCode => file.is_rust(),
            AnySource => !file.path.ends_with(".md") && file.name() != "Cargo.lock",
            Anywhere => true,
        };
        kind && file.name() != "package-lock.json" && !self.allowed_in.iter().any(|door| allowed(door))
    }

    /// Where the rule is broken, one line each.
    fn broken_in(&self, file: &File) -> Vec<String> {
        let text = match self.seen {
            ProductCode => Views::of(&file.text).code,
            ProductLiterals => Views::of(&file.text).literals,
            AnyCode => Views::with_tests(&file.text).code,
            AnySource | Anywhere => file.text.clone(),
        };
        let at =
            |word: &str, offset| format!("{}:{}: `{word}`: {}", file.path, file.line_at(offset), self.why);
        let each = |word: &'static str| places(&text, word).into_iter().map(move |offset| (word, offset));
        self.words.iter().flat_map(|word| each(word)).map(|(word, offset)| at(word, offset)).collect()
    }
}

/// Where the word stands on its own: not as the middle of a longer name.
fn places(text: &str, word: &str) -> Vec<usize> {
    let alone = |(start, _): &(usize, &str)| {
        let (before, from) = text.split_at(*start);
        let (_, after) = from.split_at(word.len());
        let joined = |inside: Option<char>, outside: Option<char>| {
            inside.is_some_and(is_of_name) && outside.is_some_and(is_of_name)
        };
        !joined(word.chars().next(), before.chars().next_back())
            && !joined(word.chars().next_back(), after.chars().next())
    };
    text.match_indices(word).filter(alone).map(|(start, _)| start).collect()
}

#[test]
fn every_word_stands_only_where_its_rule_allows() {
    let files = files();
    let mut broken = Vec::new();
    for rule in RULES {
        broken.extend(files.iter().filter(|file| rule.concerns(file)).flat_map(|file| rule.broken_in(file)));
    }
    assert_none(&broken);
}

#[test]
fn a_word_inside_a_longer_name_does_not_count() {
    assert_eq!(places("eprintln! println!(println)", "println!"), [10]);
    assert_eq!(places("abcd xabc abc", "abc"), [10]);
}

/// The rules would be worth nothing if they did not see what they forbid.
#[test]
fn every_rule_sees_its_words_in_a_file_it_does_not_allow() {
    for rule in RULES {
        for word in rule.words {
            let text = match rule.seen {
                ProductLiterals => format!("fn f() {{\n\"{word}\" }}"),
                ProductCode | AnyCode | AnySource | Anywhere => format!("fn f() {{\n{word} }}"),
            };
            let file = File { path: "crates/runner-ui/src/page.rs".to_owned(), text };
            assert!(rule.concerns(&file));
            let broken = rule.broken_in(&file);
            assert_eq!(broken, [format!("{}:2: `{word}`: {}", file.path, rule.why)]);
        }
    }
}
