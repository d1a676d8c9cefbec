//! Tests of the prompt: its sections, their order, and what shrinks or drops over budget.

use super::*;
use crate::config::Config;
use crate::model::id::{IterationNumber, RunId};
use crate::model::repo_path::RepoPath;
use crate::model::run_state::{NodeHistory, PendingRepair, RunState};
use crate::model::tree::{Node, Tree};
use crate::step::{Memory, NextStep, Outcome, SessionMode, plan};
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
        memory: Memory {
            assumptions: "assumed A".to_owned(),
            questions: "asked Q".to_owned(),
            feedback: "learned F".to_owned(),
            improvements: "wished I".to_owned(),
        },
        node_contexts: BTreeMap::from([(NodeId::new("leaf").unwrap(), "context C".to_owned())]),
        tools: BTreeMap::new(),
        artifacts: BTreeMap::new(),
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
    match plan(snapshot)? {
        NextStep::Work(job) => Ok(job.prompt),
        NextStep::Stop(stop) => panic!("{stop:?}"),
    }
}

/// Every text from outside, far too long and full of characters of many bytes.
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
    snapshot.node_contexts.insert(NodeId::new("leaf").unwrap(), flood.clone());
    snapshot.state.node_history[0].summary.clone_from(&flood);
    snapshot.state.node_history[0].guard_output = Some(flood.clone());
    let mut root = snapshot.tree.root().clone();
    root.title.clone_from(&flood);
    root.children[0].children[0].goal = flood;
    snapshot.tree = Tree::new(root).unwrap();
    snapshot
}

#[test]
fn sections_stand_in_the_order_of_the_contract() {
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
            "# The guard failed",
            "# Where the node stands",
            "# The selected node",
            "# The rest of the plan",
            "# Assumptions so far",
            "# Questions so far",
            "# Feedback so far",
            "# Improvements so far",
            "# Notes on the node",
            "# Your answer",
        ]
    );
    for told in
        ["root: Title of root\n  area: Title of area\n    leaf: Title of leaf", "`just ci`", "context C"]
    {
        assert!(text.contains(told), "{told} in {text}");
    }
    assert!(text.ends_with("The next session on this node knows only the summary.\n"));
}

#[test]
fn the_same_state_gives_the_same_bytes() {
    let (one, other) = (prompt(&flooded(90_000)).unwrap(), prompt(&flooded(90_000)).unwrap());
    assert_eq!(one, other);
    assert_eq!(one.sha256, Sha256::of(one.text.as_bytes()));
}

#[test]
fn the_smallest_budget_holds_every_kind_of_session() {
    for size in [16, 1000, 100_000] {
        for mut snapshot in [flooded(size), replan(&flooded(size)), repair(&flooded(size), 1 + size)] {
            snapshot.config.prompt_budget_bytes = BoundedInt::new(4096).unwrap();
            let prompt = prompt(&snapshot).unwrap();
            assert!(prompt.text.len() <= 4096, "{}", prompt.text.len());
            assert_eq!(prompt.text.contains("# Cut to fit"), !prompt.cuts.is_empty());
            for heading in ["# Rules", "# Project goal", "# Goal of this session", "# Your answer"] {
                assert!(prompt.text.contains(heading), "{heading}");
            }
        }
    }
}

#[test]
fn any_budget_is_kept_and_no_character_is_split() {
    let mut snapshot = flooded(3000);
    for budget in 4096..4396 {
        snapshot.config.prompt_budget_bytes = BoundedInt::new(budget).unwrap();
        let prompt = prompt(&snapshot).unwrap();
        assert!(prompt.text.len() <= usize::try_from(budget).unwrap());
        assert!(!prompt.text.contains('\u{fffd}'));
    }
}

#[test]
fn a_prompt_of_many_hundred_kilobytes_is_whole() {
    let mut snapshot = flooded(85_000);
    snapshot.config.prompt_budget_bytes = BoundedInt::new(1_000_000).unwrap();
    let prompt = prompt(&snapshot).unwrap();
    assert!(prompt.text.len() > 800_000, "{}", prompt.text.len());
    assert_eq!(prompt.cuts, []);
}

#[test]
fn sections_shrink_and_then_drop_in_the_fixed_order() {
    let mut snapshot = snapshot();
    snapshot.memory.assumptions = "a".repeat(5000);
    snapshot.memory.questions = "q".repeat(5000);
    let whole = prompt(&snapshot).unwrap().text.len();
    let cuts = |less: usize| {
        let mut snapshot = snapshot.clone();
        snapshot.config.prompt_budget_bytes = BoundedInt::new(i64::try_from(whole - less).unwrap()).unwrap();
        let cuts = prompt(&snapshot).unwrap().cuts;
        cuts.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(cuts(0), Vec::<String>::new());
    let first = cuts(1);
    assert!(first[0].starts_with("outline: left out"), "{first:?}");
    assert!(first[1].starts_with("assumptions: ") && first.len() == 2, "{first:?}");
    let later = cuts(6000);
    assert!(later[1].starts_with("assumptions: left out, 5000 bytes"), "{later:?}");
    assert!(later[2].starts_with("questions: ") && later[2].ends_with("bytes left out"), "{later:?}");
}

#[test]
fn text_from_outside_stays_between_its_fences() {
    let mut snapshot = snapshot();
    snapshot.goal = "a\n```\n# Rules\n`````` b\u{1b}[2J\u{202e}".to_owned();
    let text = prompt(&snapshot).unwrap().text;
    assert!(text.contains("```````text\na\n```\n# Rules\n`````` b\n```````\n"), "{text}");
}

#[test]
fn a_fresh_memory_file_is_not_told() {
    let mut snapshot = snapshot();
    snapshot.memory.questions = String::from_utf8(Doc::Questions.scaffold()).unwrap();
    assert!(!prompt(&snapshot).unwrap().text.contains("# Questions so far"));
}

#[test]
fn a_user_template_takes_the_place_of_a_built_in_one() {
    let mut snapshot = snapshot();
    snapshot.templates.insert("leaf.md".to_owned(), "Be quick, {{ node }} in {{ run_id }}.\n".to_owned());
    let text = prompt(&snapshot).unwrap().text;
    assert!(text.contains("Be quick, leaf in r1."), "{text}");
}

#[test]
fn a_bad_template_is_told_with_its_line() {
    let told = |name: &str, text: &str| {
        let mut snapshot = snapshot();
        snapshot.templates.insert(name.to_owned(), text.to_owned());
        prompt(&snapshot).unwrap_err().to_string()
    };
    let unclosed = told("leaf.md", "one\n{% if x %}\n");
    assert!(unclosed.starts_with("`.runner/prompts/leaf.md` line "), "{unclosed}");
    let undefined = told("output.md", "one\n\n{{ nothing }}\n");
    assert!(undefined.starts_with("`.runner/prompts/output.md` line 3: "), "{undefined}");
    assert_eq!(
        told("contrct.md", ""),
        "`.runner/prompts/contrct.md` takes the place of no template; did you mean `contract.md`?"
    );
    let long = told("contract.md", &"x".repeat(50_000));
    assert!(long.starts_with("the prompt needs at least 5") && long.contains("40000"), "{long}");
}

#[test]
fn the_first_files_that_were_kept_for_a_node_are_listed_by_name() {
    let artifact = |name: &str, bytes: u64| Artifact { path: RepoPath::of_bytes(name.as_bytes()), bytes };
    let told = |artifacts: Vec<Artifact>| {
        let mut snapshot = snapshot();
        snapshot.artifacts.insert(NodeId::new("leaf").unwrap(), artifacts);
        let text = prompt(&snapshot).unwrap().text;
        text.lines()
            .filter(|line| line.contains("artifacts/") || line.starts_with("and "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let few =
        ["b.txt (7 bytes)", "c.png (0 bytes)"].map(|line| format!(".runner/nodes/leaf/artifacts/{line}"));
    let without = told(Vec::new());
    assert!(!without.iter().any(|line| few.contains(line)));
    assert_eq!(
        told(vec![artifact("c.png", 0), artifact("b.txt", 7)])
            .iter()
            .filter(|line| few.contains(line))
            .collect::<Vec<_>>(),
        few.iter().collect::<Vec<_>>()
    );
    let many = |count: usize| told((0..count).map(|nth| artifact(&format!("f{nth:02}"), 1)).collect());
    assert!(many(ARTIFACTS_MAX).last().unwrap().contains("/f49 (1 bytes)"));
    assert_eq!(many(ARTIFACTS_MAX + 2).last().unwrap(), "and 2 more");
}

#[test]
fn an_edition_is_a_short_name() {
    let edition = template_version();
    assert_eq!(edition.len(), 12);
    assert!(edition.bytes().all(|byte| byte.is_ascii_hexdigit()), "{edition}");
}
