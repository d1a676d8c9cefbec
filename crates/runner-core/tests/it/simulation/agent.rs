//! Simulated agents: each behaviour gives the results of one session.

use runner_core::model::id::NodeId;
use runner_core::model::tree::{Node, Tree};
use runner_core::step::{Interruption, Job, LeftFile, ProviderError, SessionExit, SessionMode};
use serde::Serialize;

use super::random::Random;

/// How an agent behaves in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Temper {
    Honest,
    SlowLearner,
    Liar,
    NoOp,
    Lazy,
    Crasher,
    Vandal,
    GuardWriter,
    Plan(Plan),
    Spoil(Spoil),
    Fail(Fail),
}

/// Agents that change the plan in a valid tree, whether the rules allow it or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Plan {
    Decomposer,
    Planner,
    SelfMarker,
    Eraser,
    RootReplacer,
    PassedRemover,
    PassedMover,
    PassedEditor,
    PassedGrower,
    WrongStatus,
    Raiser,
}

/// Agents that leave an invalid tree.json.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spoil {
    SchemaBreaker,
    Babbler,
    TreeRemover,
    TreeLinker,
    TreeBloater,
    BadIds,
}

/// Agents that give no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fail {
    Sleeper,
    Mute,
    NoAnswer,
    BadAnswer,
    NotThere,
    RateLimited,
    Overloaded,
    Disconnected,
    UsedUp,
    Refused,
    LoggedOut,
    TooLong,
    Formless,
    Stopped,
}

impl Temper {
    pub(super) const ALL: [Self; 39] = [
        Self::Honest,
        Self::SlowLearner,
        Self::Liar,
        Self::NoOp,
        Self::Lazy,
        Self::Crasher,
        Self::Vandal,
        Self::GuardWriter,
        Self::Plan(Plan::Decomposer),
        Self::Plan(Plan::Planner),
        Self::Plan(Plan::SelfMarker),
        Self::Plan(Plan::Eraser),
        Self::Plan(Plan::RootReplacer),
        Self::Plan(Plan::PassedRemover),
        Self::Plan(Plan::PassedMover),
        Self::Plan(Plan::PassedEditor),
        Self::Plan(Plan::PassedGrower),
        Self::Plan(Plan::WrongStatus),
        Self::Plan(Plan::Raiser),
        Self::Spoil(Spoil::SchemaBreaker),
        Self::Spoil(Spoil::Babbler),
        Self::Spoil(Spoil::TreeRemover),
        Self::Spoil(Spoil::TreeLinker),
        Self::Spoil(Spoil::TreeBloater),
        Self::Spoil(Spoil::BadIds),
        Self::Fail(Fail::Sleeper),
        Self::Fail(Fail::Mute),
        Self::Fail(Fail::NoAnswer),
        Self::Fail(Fail::BadAnswer),
        Self::Fail(Fail::NotThere),
        Self::Fail(Fail::RateLimited),
        Self::Fail(Fail::Overloaded),
        Self::Fail(Fail::Disconnected),
        Self::Fail(Fail::UsedUp),
        Self::Fail(Fail::Refused),
        Self::Fail(Fail::LoggedOut),
        Self::Fail(Fail::TooLong),
        Self::Fail(Fail::Formless),
        Self::Fail(Fail::Stopped),
    ];
}

/// The results of a session.
pub(super) struct Session {
    pub(super) exit: SessionExit,
    pub(super) answer: LeftFile,
    pub(super) tree: LeftFile,
    /// Whether the node's work was really done.
    pub(super) did_the_work: bool,
    /// Whether any file outside `.runner/` was changed.
    pub(super) changed_files: bool,
    /// What the session wrote into guard files.
    pub(super) guard_files: Vec<(&'static str, &'static str)>,
}

#[derive(Serialize)]
struct Document<'t> {
    version: i64,
    root: &'t Node,
}

fn written(root: &Node) -> LeftFile {
    LeftFile::Bytes(serde_json::to_vec(&Document { version: 1, root }).unwrap())
}

fn answer(status: &str, summary: &str) -> LeftFile {
    let text = serde_json::json!({ "status": status, "summary": summary });
    LeftFile::Bytes(text.to_string().into_bytes())
}

fn node(id: &str, order: i64) -> Node {
    Node {
        id: NodeId::new(id).unwrap(),
        order,
        title: format!("title of {id}"),
        goal: format!("goal of {id} with ```` and é"),
        acceptance: vec!["it works".to_owned()],
        passes: false,
        attempts: 0,
        max_attempts: 2,
        children: Vec::new(),
    }
}

pub(super) fn all_nodes(root: &Node) -> Vec<&Node> {
    let below = root.children.iter().flat_map(all_nodes);
    std::iter::once(root).chain(below).collect()
}

fn find<'t>(node: &'t mut Node, id: &NodeId) -> Option<&'t mut Node> {
    if node.id == *id { Some(node) } else { node.children.iter_mut().find_map(|child| find(child, id)) }
}

fn remove(node: &mut Node, id: &NodeId) -> Option<Node> {
    match node.children.iter().position(|child| child.id == *id) {
        Some(at) => Some(node.children.remove(at)),
        None => node.children.iter_mut().find_map(|child| remove(child, id)),
    }
}

/// The id of a node below the root that has passed, or that is open.
fn some_id(root: &Node, passes: bool, random: &mut Random) -> Option<NodeId> {
    let ids: Vec<NodeId> = all_nodes(root)
        .into_iter()
        .skip(1)
        .filter(|node| node.passes == passes)
        .map(|node| node.id.clone())
        .collect();
    random.pick(&ids).cloned()
}

/// An id that no node has, the same for the same tree.
fn new_id(root: &Node, job: &Job, nth: usize) -> String {
    let count = all_nodes(root).len();
    format!("n{}-{count}-{nth}", job.iteration.get())
}

/// Runs one session.
pub(super) fn play(temper: Temper, job: &Job, before: &Tree, random: &mut Random) -> Session {
    let root = before.root().clone();
    let usual = Session {
        exit: SessionExit::Finished { code: 0 },
        answer: answer("done", "did it\n\nRunner-Outcome: passed"),
        tree: written(&root),
        did_the_work: false,
        changed_files: true,
        guard_files: Vec::new(),
    };
    match (temper, job.target.mode()) {
        (Temper::Honest, SessionMode::Leaf | SessionMode::Review) => Session { did_the_work: true, ..usual },
        (Temper::Honest, SessionMode::Repair) => Session { changed_files: false, ..usual },
        (Temper::Honest, SessionMode::Replan) => rewritten(job, root, usual),
        (Temper::Honest, SessionMode::Split | SessionMode::Plan) => {
            replan(Plan::Decomposer, job, root, usual, random)
        }
        (Temper::SlowLearner, _) => {
            let done = random.percent(40);
            let status = if done { "done" } else { "retry" };
            Session { did_the_work: done, answer: answer(status, "é half of it 日本"), ..usual }
        }
        (Temper::Liar, _) => usual,
        (Temper::NoOp, _) => {
            let status = if random.percent(50) { "retry" } else { "done" };
            Session { answer: answer(status, ""), changed_files: false, ..usual }
        }
        // The guard succeeds without any work of the session's.
        (Temper::Lazy, _) => Session { did_the_work: true, changed_files: false, ..usual },
        (Temper::Crasher, _) => Session {
            exit: SessionExit::Killed { signal: 11 },
            answer: if random.percent(20) { usual.answer } else { LeftFile::Missing },
            ..usual
        },
        (Temper::Vandal, _) => Session { guard_files: vec![("justfile", "true")], ..usual },
        (Temper::GuardWriter, _) => {
            Session { guard_files: vec![("ci.just", "more")], did_the_work: true, ..usual }
        }
        (Temper::Plan(temper), _) => replan(temper, job, root, usual, random),
        (Temper::Spoil(temper), _) => spoil(temper, job, root, usual, random),
        (Temper::Fail(temper), _) => {
            let changed_files = random.percent(50);
            Session { changed_files, ..fail(temper, usual, random) }
        }
    }
}

fn rewritten(job: &Job, mut root: Node, usual: Session) -> Session {
    if let Some(node) = job.target.node().and_then(|id| find(&mut root, id)) {
        node.goal.push_str(" (smaller)");
    }
    Session { tree: written(&root), answer: answer("retry", "rewrote it"), ..usual }
}

fn replan(temper: Plan, job: &Job, mut root: Node, usual: Session, random: &mut Random) -> Session {
    let mut status = "done";
    let mut did_the_work = false;
    match temper {
        Plan::Decomposer => {
            let ids = [new_id(&root, job, 2), new_id(&root, job, 1)];
            if let Some(node) = job.target.node().and_then(|id| find(&mut root, id)) {
                node.children = vec![self::node(&ids[0], 7), self::node(&ids[1], -7)];
                status = "decomposed";
            }
        }
        Plan::Planner => {
            edit_plan(job, &mut root, random);
            did_the_work = random.percent(50);
        }
        Plan::SelfMarker => {
            fn mark(node: &mut Node) {
                (node.passes, node.attempts) = (true, 0);
                node.children.iter_mut().for_each(mark);
            }
            mark(&mut root);
        }
        Plan::Eraser => {
            root.children.retain(|child| child.passes);
            did_the_work = true;
        }
        Plan::RootReplacer => root.id = NodeId::new("other").unwrap(),
        Plan::PassedRemover | Plan::PassedMover | Plan::PassedEditor | Plan::PassedGrower => {
            touch_passed(temper, job, &mut root, random);
        }
        Plan::WrongStatus if random.percent(50) => status = "decomposed",
        Plan::WrongStatus => {
            let id = new_id(&root, job, 1);
            if let Some(node) = job.target.node().and_then(|id| find(&mut root, id)) {
                node.children.push(self::node(&id, 0));
            }
        }
        Plan::Raiser => {
            fn raise(node: &mut Node) {
                if !node.passes {
                    (node.max_attempts, node.attempts) = (1_000_000, 0);
                }
                node.children.iter_mut().for_each(raise);
            }
            raise(&mut root);
        }
    }
    let tree = written(&root);
    Session { tree, did_the_work, answer: answer(status, "changed the plan"), ..usual }
}

/// Forbidden changes of nodes that passed.
fn touch_passed(temper: Plan, job: &Job, root: &mut Node, random: &mut Random) {
    let grown = new_id(root, job, 1);
    let Some(id) = some_id(root, true, random) else { return };
    if temper == Plan::PassedRemover {
        remove(root, &id);
    } else if temper == Plan::PassedMover {
        let moved = remove(root, &id);
        let target = some_id(root, false, random).unwrap_or_else(|| root.id.clone());
        if let (Some(moved), Some(target)) = (moved, find(root, &target)) {
            target.children.push(moved);
        }
    } else if let Some(node) = find(root, &id) {
        if temper == Plan::PassedGrower {
            node.children.push(self::node(&grown, 0));
        } else {
            node.order += 1;
            node.title.push('!');
        }
    }
}

/// Allowed edits: a new node, another order, another parent, other criteria.
fn edit_plan(job: &Job, root: &mut Node, random: &mut Random) {
    if random.percent(30) {
        let mut new = node(&new_id(root, job, 1), -1);
        (new.passes, new.attempts, new.max_attempts) = (true, 9, 999_999);
        root.children.push(new);
    }
    if random.percent(40)
        && let Some(node) = some_id(root, false, random).and_then(|id| find(root, &id))
    {
        node.order = i64::try_from(random.below(9)).unwrap() - 4;
        node.acceptance.push("and more".to_owned());
    }
    // An open node goes to the top level, so that no node can end up below itself.
    if random.percent(20)
        && let Some(moved) = some_id(root, false, random).and_then(|id| remove(root, &id))
    {
        root.children.insert(0, moved);
    }
}

fn spoil(temper: Spoil, job: &Job, mut root: Node, usual: Session, random: &mut Random) -> Session {
    let text = String::from_utf8(serde_json::to_vec(&Document { version: 1, root: &root }).unwrap()).unwrap();
    let tree = match temper {
        Spoil::SchemaBreaker => {
            LeftFile::Bytes(text.replacen("\"title\"", "\"titel\"", 1 + random.below(3)).into_bytes())
        }
        Spoil::Babbler => LeftFile::Bytes(b"I am done \xff\xfe".to_vec()),
        Spoil::TreeRemover => LeftFile::Missing,
        Spoil::TreeLinker => LeftFile::NotAFile,
        Spoil::TreeBloater => LeftFile::TooLarge(1 << 40),
        Spoil::BadIds => {
            root.children.push(node(&new_id(&root, job, 1), 0));
            let text = String::from_utf8(serde_json::to_vec(&Document { version: 1, root: &root }).unwrap());
            LeftFile::Bytes(text.unwrap().replace("\"id\":\"n", "\"id\":\"../").into_bytes())
        }
    };
    Session { tree, ..usual }
}

fn fail(temper: Fail, usual: Session, random: &mut Random) -> Session {
    let provider = |fault| SessionExit::Provider { fault };
    let exit = match temper {
        Fail::Sleeper => SessionExit::TimedOut,
        Fail::Mute => SessionExit::Idle,
        Fail::NotThere => SessionExit::NotStarted { why: "my-agent: not found".to_owned() },
        Fail::RateLimited => {
            provider(ProviderError::RateLimited { retry_after_secs: random.percent(50).then_some(17) })
        }
        Fail::Overloaded => provider(ProviderError::Overloaded),
        Fail::Disconnected => provider(ProviderError::Disconnected),
        Fail::UsedUp => provider(ProviderError::UsageLimit {
            resets_unix_secs: random.percent(50).then_some(1_800_000_000),
        }),
        Fail::Refused => provider(ProviderError::Refused { why: "no such model".to_owned() }),
        Fail::LoggedOut => provider(ProviderError::NotLoggedIn { why: "no key".to_owned() }),
        Fail::TooLong => provider(ProviderError::ContextFull),
        Fail::Formless => {
            provider(ProviderError::SchemaViolated { why: "no answer in the schema".to_owned() })
        }
        Fail::Stopped => SessionExit::Interrupted {
            by: *random.pick(&[Interruption::Int, Interruption::Term, Interruption::Hup]).unwrap(),
        },
        Fail::NoAnswer | Fail::BadAnswer => SessionExit::Finished { code: 1 },
    };
    let answer = match temper {
        Fail::BadAnswer => LeftFile::Bytes(br#"{"status": "finished"}"#.to_vec()),
        // Written before the session was stopped: it must not count.
        Fail::Sleeper | Fail::Stopped => usual.answer,
        Fail::Mute
        | Fail::NoAnswer
        | Fail::NotThere
        | Fail::RateLimited
        | Fail::Overloaded
        | Fail::Disconnected
        | Fail::UsedUp
        | Fail::Refused
        | Fail::LoggedOut
        | Fail::TooLong
        | Fail::Formless => LeftFile::Missing,
    };
    Session { exit, answer, ..usual }
}
