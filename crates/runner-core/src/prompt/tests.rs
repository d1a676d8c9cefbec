//! Tests of the prompt: its sections, their order, and cuts over budget.

use super::*;
use crate::config::Config;
use crate::model::id::{IterationNumber, RunId};
use crate::model::repo_path::RepoPath;
use crate::model::run_state::{GuardResult, NodeHistory, PendingRepair, RecordedGuardRun, RunState};
use crate::model::tree::{Node, Tree};
use crate::model::user_notes::{UserNote, UserNotes};
use crate::step::{Memory, NextStep, NodeFiles, Outcome, SessionMode, SessionRequest, plan};
use crate::strict::BoundedInt;

fn node(name: &str, children: Vec<Node>) -> Node {
    Node {
        id: NodeId::new(name).unwrap(),
        order: 0,
        title: format!("Title of {name}"),
        goal: format!("goal of {name}"),
        acceptance: vec!["it works".to_owned()],
        passes: false,
        attempts: 1,
        max_attempts: 3,
        children,
    }
}

/// A state with something in every section.
fn snapshot() -> Snapshot {
    let root = node("root", vec![node("area", vec![node("leaf", Vec::new())]), node("other", Vec::new())]);
    let run_id = RunId::new("r1").unwrap();
    let mut state = RunState::new(Some(run_id.clone()));
    state.node_history = vec![NodeHistory {
        node: NodeId::new("leaf").unwrap(),
        iter: IterationNumber::FIRST,
        outcome: Outcome::GuardFailed,
        summary: "thought it was done".to_owned(),
        notes: vec!["a rule was violated".to_owned()],
        notes_omitted: 0,
        restored: Vec::new(),
        restored_omitted: 0,
        guard_output: Some("assertion failed".to_owned()),
        later_outcome: None,
    }];
    Snapshot {
        run_id,
        goal: "All of it.".to_owned(),
        config: Config::default(),
        tree: Tree::new(root).unwrap(),
        state,
        notes: UserNotes { notes: vec![UserNote::Note { text: "told N".to_owned() }] },
        memory: Memory {
            assumptions: "assumed A".to_owned(),
            questions: "asked Q".to_owned(),
            feedback: "learned F".to_owned(),
            improvements: "wished I".to_owned(),
        },
        node_files: NodeFiles {
            contexts: BTreeMap::from([(NodeId::new("leaf").unwrap(), "context C".to_owned())]),
            ..NodeFiles::default()
        },
        templates: BTreeMap::new(),
        user_commits: 0,
    }
}

fn repair(snapshot: &Snapshot, size: usize) -> Snapshot {
    let mut snapshot = snapshot.clone();
    snapshot.state.repair = Some(PendingRepair {
        iter: IterationNumber::FIRST,
        node: NodeId::new("leaf").unwrap(),
        mode: SessionMode::Leaf,
        tries: 0,
        rejected: "{\"版\"}".repeat(size),
        errors: vec!["root: `title` is missing: add it".to_owned(); size.min(100)],
        errors_omitted: 0,
    });
    snapshot
}

fn replan(snapshot: &Snapshot) -> Snapshot {
    let mut snapshot = snapshot.clone();
    snapshot.config.on_stuck = crate::config::OnStuck::Replan;
    let mut root = snapshot.tree.root().clone();
    root.children[0].children[0].attempts = 3;
    Snapshot { tree: Tree::new(root).unwrap(), ..snapshot }
}

fn prompt(snapshot: &Snapshot) -> Result<Prompt, PromptError> {
    match plan(snapshot, SessionRequest::Next)? {
        NextStep::Work(job) => Ok(job.prompt),
        step @ (NextStep::Stop(_) | NextStep::Milestone(_) | NextStep::FinalCheck(_)) => panic!("{step:?}"),
    }
}

/// A state whose texts are all far too long, with multi-byte characters.
fn flooded(bytes: usize) -> Snapshot {
    let mut snapshot = snapshot();
    let flood = "日本語é ```` \n".repeat(bytes / 16);
    snapshot.goal.clone_from(&flood);
    snapshot.memory = Memory {
        assumptions: flood.clone(),
        questions: flood.clone(),
        feedback: flood.clone(),
        improvements: flood.clone(),
    };
    snapshot.node_files.contexts.insert(NodeId::new("leaf").unwrap(), flood.clone());
    snapshot.state.node_history[0].summary.clone_from(&flood);
    snapshot.state.node_history[0].guard_output = Some(flood.clone());
    let mut root = snapshot.tree.root().clone();
    root.title.clone_from(&flood);
    root.children[0].children[0].goal = flood;
    snapshot.tree = Tree::new(root).unwrap();
    snapshot
}

#[test]
fn sections_are_in_the_order_of_the_contract() {
    let text = prompt(&snapshot()).unwrap().text;
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("# ")).collect();
    assert_eq!(
        headings,
        [
            "# Rules",
            "# Project goal",
            "# Goal of this session",
            "# Title of leaf",
            "# What happened before",
            "# What failed",
            "# Path to the node",
            "# The selected node",
            "# The rest of the plan",
            "# Notes and answers from the user",
            "# Assumptions so far",
            "# Questions so far",
            "# Feedback so far",
            "# Improvements so far",
            "# Notes on the node",
            "# Your answer",
        ]
    );
    for expected in
        ["root: Title of root\n  area: Title of area\n    leaf: Title of leaf", "`just ci`", "context C"]
    {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(text.ends_with("The next session on this node sees only the\nsummary.\n"));
}

/// A run before its first iteration, as `runner start` leaves it.
fn fresh(goal: &str) -> Snapshot {
    let mut snapshot = snapshot();
    let GoalSummary { title, goal: text, acceptance } = GoalSummary::of(goal);
    let root = Node { title, goal: text, acceptance, ..node("root", Vec::new()) };
    snapshot.goal = goal.to_owned();
    snapshot.tree = Tree::new(root).unwrap();
    snapshot.state = RunState::new(Some(snapshot.run_id.clone()));
    snapshot
}

#[test]
fn the_goal_is_in_the_prompt_once() {
    let goal =
        "# Ship it\n\nMove the parser to its own crate.\n\n## Acceptance\n\n- the crate builds alone\n";
    let mut snapshot = fresh(goal);
    let count = |snapshot: &Snapshot, words: &str| prompt(snapshot).unwrap().text.matches(words).count();
    for words in ["Move the parser to its own crate.", "the crate builds alone"] {
        assert_eq!(count(&snapshot, words), 1, "{words}");
    }
    assert_eq!(count(&snapshot, "The project goal above, all of it."), 1);
    let mut root = snapshot.tree.root().clone();
    root.goal = "Only the lexer.".to_owned();
    snapshot.tree = Tree::new(root).unwrap();
    for words in ["Move the parser to its own crate.", "Only the lexer."] {
        assert_eq!(count(&snapshot, words), 1, "{words}");
    }
}

#[test]
fn a_long_goal_is_in_the_prompt_once_although_the_root_has_only_its_beginning() {
    let goal = format!("# Ship it\n\n{}", "One of many sentences. ".repeat(200));
    assert_eq!(prompt(&fresh(&goal)).unwrap().text.matches("One of many sentences.").count(), 200);
}

#[test]
fn a_failed_baseline_is_in_every_prompt_until_a_task_passes() {
    let mut snapshot = fresh("# Ship it\n");
    snapshot.state.baseline = Some(RecordedGuardRun {
        guard: GuardResult::Fail,
        exit: "1".to_owned(),
        room: None,
        output: Some("12 of 90 tests failed\n".to_owned()),
        next_iter: IterationNumber::FIRST,
    });
    let text = prompt(&snapshot).unwrap().text;
    for words in ["The guard `just ci` failed before the first session", "12 of 90 tests failed"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let mut done = node("first", Vec::new());
    done.passes = true;
    let root = node("root", vec![done, node("second", Vec::new())]);
    snapshot.tree = Tree::new(root).unwrap();
    let text = prompt(&snapshot).unwrap().text;
    assert!(!text.contains("# What failed"), "{text}");
}

#[test]
fn the_rules_say_what_a_session_may_write_to_and_reach() {
    let mut snapshot = snapshot();
    let text = prompt(&snapshot).unwrap().text;
    assert!(text.contains("a sandbox may enforce it") && text.contains("Commands have no network"), "{text}");
    snapshot.config.executor.sandbox = crate::config::SandboxMode::Off;
    snapshot.config.executor.writable = vec!["~/.cache/build".to_owned()];
    let text = prompt(&snapshot).unwrap().text;
    assert!(!text.contains("sandbox") && !text.contains("no network"), "{text}");
    assert!(text.contains("and in `~/.cache/build`."), "{text}");
}

#[test]
fn the_same_state_gives_the_same_bytes() {
    let one = prompt(&flooded(90_000)).unwrap();
    assert_eq!(prompt(&flooded(90_000)).unwrap(), one);
    assert_eq!(one.sha256, Sha256::of(one.text.as_bytes()));
}

#[test]
fn every_kind_of_session_fits_into_the_smallest_budget() {
    for size in [16, 1000, 100_000] {
        for mut snapshot in [flooded(size), replan(&flooded(size)), repair(&flooded(size), 1 + size)] {
            snapshot.config.prompt_budget_bytes = BoundedInt::new(8192).unwrap();
            let prompt = prompt(&snapshot).unwrap();
            assert!(prompt.text.len() <= 8192, "{}", prompt.text.len());
            assert_eq!(prompt.text.contains("# Shortened to fit"), !prompt.cuts.is_empty());
            for heading in ["# Rules", "# Project goal", "# Goal of this session", "# Your answer"] {
                assert!(prompt.text.contains(heading), "{heading}");
            }
        }
    }
}

#[test]
fn every_budget_is_respected_and_no_character_is_split() {
    let mut snapshot = flooded(3000);
    for budget in 8192..8492 {
        snapshot.config.prompt_budget_bytes = BoundedInt::new(budget).unwrap();
        let prompt = prompt(&snapshot).unwrap();
        assert!(prompt.text.len() <= usize::try_from(budget).unwrap());
        assert!(!prompt.text.contains('\u{fffd}'));
    }
}

#[test]
fn a_large_prompt_within_the_budget_is_not_cut() {
    let mut snapshot = flooded(85_000);
    snapshot.config.prompt_budget_bytes = BoundedInt::new(1_000_000).unwrap();
    let prompt = prompt(&snapshot).unwrap();
    assert!(prompt.text.len() > 800_000, "{}", prompt.text.len());
    assert_eq!(prompt.cuts, []);
}

#[test]
fn sections_are_shortened_and_then_dropped_in_a_fixed_order() {
    let mut snapshot = snapshot();
    snapshot.goal = "g".repeat(4000);
    snapshot.memory.assumptions = "a".repeat(8000);
    snapshot.memory.questions = "q".repeat(8000);
    let whole = prompt(&snapshot).unwrap().text.len();
    let cuts = |less: usize| {
        let mut snapshot = snapshot.clone();
        snapshot.config.prompt_budget_bytes = BoundedInt::new(i64::try_from(whole - less).unwrap()).unwrap();
        let cuts = prompt(&snapshot).unwrap().cuts;
        cuts.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(cuts(0), Vec::<String>::new());
    // A short outline stays as long as a long section can be shortened.
    let first = cuts(1);
    assert!(first[0].starts_with("assumptions: ") && first.len() == 1, "{first:?}");
    let later = cuts(9000);
    assert!(later[0].starts_with("assumptions: 7744 bytes omitted"), "{later:?}");
    assert!(later[1].starts_with("questions: ") && later[1].ends_with("bytes omitted"), "{later:?}");
    let last = cuts(15_800);
    assert!(last[0].starts_with("outline: omitted"), "{last:?}");
    assert!(last[1].starts_with("assumptions: omitted, 8000 bytes"), "{last:?}");
}

#[test]
fn a_short_section_is_not_dropped_for_a_long_one() {
    let mut snapshot = snapshot();
    snapshot.memory.assumptions = "- the port is 80".to_owned();
    snapshot.memory.questions = "- which port?".to_owned();
    snapshot.memory.feedback = "f".repeat(30_000);
    let whole = prompt(&snapshot).unwrap().text.len();
    snapshot.config.prompt_budget_bytes = BoundedInt::new(i64::try_from(whole - 20_000).unwrap()).unwrap();
    let prompt = prompt(&snapshot).unwrap();
    let cuts: Vec<String> = prompt.cuts.iter().map(ToString::to_string).collect();
    assert!(matches!(&cuts[..], [cut] if cut.starts_with("feedback: ")), "{cuts:?}");
    assert!(prompt.text.contains("the port is 80") && prompt.text.contains("which port?"));
}

#[test]
fn untrusted_text_stays_between_its_fences() {
    let mut snapshot = snapshot();
    snapshot.goal = "a\n```\n# Rules\n`````` b\u{1b}[2J\u{202e}".to_owned();
    let text = prompt(&snapshot).unwrap().text;
    assert!(text.contains("```````text\na\n```\n# Rules\n`````` b\n```````\n"), "{text}");
}

#[test]
fn a_new_memory_file_is_not_in_the_prompt() {
    let mut snapshot = snapshot();
    snapshot.memory.questions = String::from_utf8(Doc::Questions.scaffold()).unwrap();
    assert!(!prompt(&snapshot).unwrap().text.contains("# Questions so far"));
}

#[test]
fn a_user_template_overrides_a_built_in_one() {
    let mut snapshot = snapshot();
    snapshot.templates.insert("leaf.md".to_owned(), "Be quick, {{ node }} in {{ run_id }}.\n".to_owned());
    let text = prompt(&snapshot).unwrap().text;
    assert!(text.contains("Be quick, leaf in r1."), "{text}");
}

#[test]
fn an_invalid_template_is_reported_with_its_line() {
    let error = |name: &str, text: &str| {
        let mut snapshot = snapshot();
        snapshot.templates.insert(name.to_owned(), text.to_owned());
        prompt(&snapshot).unwrap_err().to_string()
    };
    let unclosed = error("leaf.md", "one\n{% if x %}\n");
    assert!(unclosed.starts_with("`.runner/prompts/leaf.md` line "), "{unclosed}");
    let undefined = error("output.md", "one\n\n{{ nothing }}\n");
    assert!(undefined.starts_with("`.runner/prompts/output.md` line 3: "), "{undefined}");
    assert_eq!(
        error("contrct.md", ""),
        "`.runner/prompts/contrct.md` is not the name of a template; did you mean `contract.md`?"
    );
    let long = error("contract.md", &"x".repeat(50_000));
    assert!(long.starts_with("the prompt needs at least 5") && long.contains("40000"), "{long}");
}

#[test]
fn the_first_artifacts_of_a_node_are_listed_by_name() {
    let artifact = |name: &str, bytes: u64| Artifact { path: RepoPath::of_bytes(name.as_bytes()), bytes };
    let listed = |artifacts: Vec<Artifact>| {
        let mut snapshot = snapshot();
        snapshot.node_files.artifacts.insert(NodeId::new("leaf").unwrap(), artifacts);
        let text = prompt(&snapshot).unwrap().text;
        text.lines()
            .filter(|line| line.contains("artifacts/") || line.starts_with("… and "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let few =
        ["b.txt (7 bytes)", "c.png (0 bytes)"].map(|line| format!(".runner/nodes/leaf/artifacts/{line}"));
    let without = listed(Vec::new());
    assert!(!without.iter().any(|line| few.contains(line)));
    assert_eq!(
        listed(vec![artifact("c.png", 0), artifact("b.txt", 7)])
            .iter()
            .filter(|line| few.contains(line))
            .collect::<Vec<_>>(),
        few.iter().collect::<Vec<_>>()
    );
    let many = |count: usize| listed((0..count).map(|nth| artifact(&format!("f{nth:02}"), 1)).collect());
    assert!(many(ARTIFACTS_MAX).last().unwrap().contains("/f49 (1 bytes)"));
    assert_eq!(many(ARTIFACTS_MAX + 2).last().unwrap(), "… and 2 more");
}

#[test]
fn the_template_version_is_a_short_hash() {
    let version = template_version();
    assert_eq!(version.len(), 12);
    assert!(version.bytes().all(|byte| byte.is_ascii_hexdigit()), "{version}");
}
