//! Simulates whole runs: agents of every kind, faults at every effect, and all rules checked after every commit.
//!
//! Each run has three parts.
//!
//! 1. Faults on: crashes before and after every effect, lost journal entries, full disks, odd guards. After a
//!    crash the world recovers, and the loop continues.
//! 2. Faults off, the same agents. The run must end (complete, stuck, or at its limit) within `max_iterations`
//!    iterations in all: every iteration takes the next number, and none is planned once so many of them count.
//!    Outages do not count, but at most two of them are committed before the next iteration that does.
//! 3. Honest agents and a raised limit. The run must be complete or stuck within `4 + 2 * n` iterations, where
//!    `n` counts its open leaves: at most one repair is pending and an honest agent fixes it at once; at most one
//!    leaf must be split, which makes one leaf more; an honest agent passes a leaf in one iteration; and a leaf that
//!    is stuck is replanned at most once before that.

mod agent;
mod audit;
mod expected_costs;
mod forged_commits;
mod oracle;
mod random;
mod world;

use std::collections::BTreeSet;

use runner_core::config::{
    AcceptConfig, Budget, Config, Executor, LimitsConfig, OnStuck, OnTimeout, OnUsageLimit, Prices,
    ProtectPolicy, RemovalPolicy, ReviewConfig, Rung, TokenPrice, UnchangedPolicy, Usd,
};
use runner_core::model::digest::Sha256;
use runner_core::model::id::NodeId;
use runner_core::model::tree::{Node, Tree};
use runner_core::step::{LoopLimits, Outcome, OutcomeClass, StopReason, World, run_loop};
use runner_core::strict::BoundedInt;

use agent::{Plan, Temper};
use oracle::Seen;
use random::Random;
use world::{Broken, Faults, Sim};

use crate::count_from_env;

/// The number of simulated runs; `RUNNER_SIMULATION_RUNS` overrides it.
const RUNS: u64 = 7_000;
/// One run in this many runs twice, to compare every byte.
const REPEATED_EVERY: u64 = 16;
/// One run in this many is audited from its commits.
const AUDITED_EVERY: u64 = 4;

fn start_tree(attempts: u32) -> Tree {
    let root = Node {
        id: NodeId::root(),
        order: 0,
        title: "the whole".to_owned(),
        goal: "build it".to_owned(),
        acceptance: Vec::new(),
        passes: false,
        attempts: 0,
        max_attempts: attempts,
        children: Vec::new(),
    };
    Tree::new(root).unwrap()
}

fn config(random: &mut Random) -> Config {
    let mut config = Config {
        max_iterations: BoundedInt::new(5 + i64::try_from(random.below(36)).unwrap()).unwrap(),
        max_attempts_default: BoundedInt::new(1 + i64::try_from(random.below(3)).unwrap()).unwrap(),
        prompt_budget_bytes: BoundedInt::new([8192, 10_000, 40_000][random.below(3)]).unwrap(),
        on_stuck: [OnStuck::Replan, OnStuck::Stop, OnStuck::Skip][random.below(3)],
        on_timeout: if random.percent(50) { OnTimeout::Retry } else { OnTimeout::Stop },
        limits: limits(random),
        accept: AcceptConfig { unchanged: unchanged(random) },
        review: review(random),
        ..Config::default()
    };
    (config.on_usage_limit, config.ladder) = ladder(random);
    (config.budget, config.prices) = budget(random);
    config.guard.protect =
        [ProtectPolicy::Restore, ProtectPolicy::Reject, ProtectPolicy::Flag][random.below(3)];
    config.plan.removal = if random.percent(25) { RemovalPolicy::Record } else { RemovalPolicy::Refuse };
    config
}

/// Some runs have low limits, so that agents reach each of them.
fn limits(random: &mut Random) -> LimitsConfig {
    let stall_iterations = BoundedInt::new([0, 3, 12][random.below(3)]).unwrap();
    let mut limits = LimitsConfig { stall_iterations, ..LimitsConfig::default() };
    match random.below(6) {
        0 => limits.max_depth = BoundedInt::new(2).unwrap(),
        1 => limits.max_children = BoundedInt::new(1).unwrap(),
        2 => limits.max_nodes = BoundedInt::new(4).unwrap(),
        _ => {}
    }
    limits
}

/// One run in three has a reviewer.
fn review(random: &mut Random) -> Option<ReviewConfig> {
    let executor = Executor { model: Some("critic".to_owned()), ..Config::default().executor };
    let rounds = BoundedInt::new(1 + i64::try_from(random.below(2)).unwrap()).unwrap();
    random.percent(33).then_some(ReviewConfig { rounds, executor })
}

fn unchanged(random: &mut Random) -> UnchangedPolicy {
    match random.below(5) {
        0 => UnchangedPolicy::Pass,
        1 => UnchangedPolicy::Retry,
        _ => UnchangedPolicy::Confirm,
    }
}

/// Half of the runs have more than one agent, and half continue with the next one at a usage limit.
fn ladder(random: &mut Random) -> (OnUsageLimit, Vec<Rung>) {
    let rung = |model: &str, after: Option<i64>| Rung {
        after_attempts: after.and_then(BoundedInt::new),
        executor: Executor { model: Some(model.to_owned()), ..Config::default().executor },
    };
    let rungs = match random.below(4) {
        0 => vec![rung("large", Some(1))],
        1 => vec![rung("large", Some(3)), rung("other", None)],
        _ => Vec::new(),
    };
    (if random.percent(50) { OnUsageLimit::Next } else { OnUsageLimit::Wait }, rungs)
}

/// One run in four has a budget, low or high.
fn budget(random: &mut Random) -> (Budget, Prices) {
    let mut budget = Budget::default();
    if random.percent(25) {
        let mut maybe_limit = |scale: i64| {
            let limit = (1 + i64::try_from(random.below(60)).unwrap()) * scale;
            random.percent(40).then_some(limit)
        };
        let usd = |limit: i64| Usd::of_microdollars(u64::try_from(limit).unwrap());
        budget.run_tokens = maybe_limit(20).and_then(BoundedInt::new);
        budget.leaf_tokens = maybe_limit(5).and_then(BoundedInt::new);
        budget.run_usd = maybe_limit(20).map(usd);
        budget.leaf_usd = maybe_limit(5).map(usd);
    }
    let price = TokenPrice {
        input: Usd::of_microdollars(1_250_000),
        cached_input: random.percent(50).then_some(Usd::of_microdollars(125_000)),
        cache_write: None,
        output: Usd::of_microdollars(10_000_000),
    };
    let priced = ["codex", "large"].into_iter().filter(|_| random.percent(50));
    (budget, priced.map(|name| (name.to_owned(), price)).collect())
}

/// Some runs have mostly good agents, some only bad ones; together they cover all.
fn tempers(random: &mut Random) -> Vec<Temper> {
    let mut tempers: Vec<Temper> = (0..4).map(|_| *random.pick(&Temper::ALL).unwrap()).collect();
    let good =
        [Temper::Honest, Temper::Plan(Plan::Decomposer), Temper::SlowLearner, Temper::Plan(Plan::Planner)];
    tempers.extend(good.into_iter().filter(|_| random.percent(70)));
    tempers
}

fn run(seed: u64) -> Sim {
    let mut random = Random::new(seed);
    let config = config(&mut random);
    let tempers = tempers(&mut random);
    let attempts = config.max_attempts_default.as_u32();
    let mut sim = Sim::new(random, config, tempers, &start_tree(attempts));
    let crash = [0, 1, 5, 20][sim.random.below(4)];
    sim.faults = Faults { crash, disk_full: crash / 2, guard: 10, review: 40 };
    for _ in 0..20 {
        if invoke(&mut sim).is_some_and(|stop| is_final(&stop)) {
            break;
        }
    }
    sim.faults = Faults::default();
    end_with_any_agent(&mut sim);
    end_with_honest_agents(&mut sim);
    sim.oracle.seen.runs = 1;
    sim
}

/// One invocation of the loop; none if it crashed.
fn invoke(sim: &mut Sim) -> Option<StopReason> {
    let limit = sim.random.percent(10).then_some(2);
    sim.is_fresh = true;
    let ended = sim
        .recover()
        .and_then(|()| sim.load())
        .and_then(|run| run_loop(sim, run, &LoopLimits::of_iterations(limit)));
    match ended {
        Ok(stop) => {
            sim.oracle.seen.stops.insert(stop.as_str());
            if let StopReason::Budget { limit, spent, max, .. } = &stop {
                assert!(spent >= max);
                sim.oracle.seen.branches.insert(limit.as_str());
            }
            Some(stop)
        }
        Err(Broken::Crash | Broken::DiskFull) => None,
        Err(Broken::Prompt(fault)) => panic!("{fault}"),
    }
}

fn is_final(stop: &StopReason) -> bool {
    matches!(
        stop,
        StopReason::Complete
            | StopReason::Stuck { .. }
            | StopReason::MaxIterations { .. }
            | StopReason::Budget { .. }
    )
}

fn end_with_any_agent(sim: &mut Sim) {
    let bound = sim.config.max_iterations.get() + 1;
    // An invocation may end in an outage, without an iteration that counts.
    let ended = (0..=3 * bound).any(|_| invoke(sim).is_some_and(|stop| is_final(&stop)));
    assert!(ended, "a run with a limit of {bound} iterations continues after {}", sim.commits.len());
    let counted = i64::from(sim.state().counted_iterations());
    assert!(counted < bound, "{counted}");
    let outages = i64::from(sim.state().progress.outages);
    assert!(outages <= 2 * (counted + 1), "{outages} outages with {counted} iterations");
}

fn end_with_honest_agents(sim: &mut Sim) {
    sim.tempers = vec![Temper::Honest];
    sim.raise_limit();
    let leaves = sim.tree().root().leaves();
    let iterations = |sim: &Sim| sim.commits.len() - sim.records;
    let before = iterations(sim);
    let bound = 4 + 2 * (leaves.total - leaves.passed);
    loop {
        match invoke(sim) {
            Some(StopReason::Complete | StopReason::Stuck { .. }) => break,
            Some(StopReason::LoopIterations { .. } | StopReason::UserStop | StopReason::Stalled { .. }) => {}
            other => panic!("honest agents end with {other:?}"),
        }
    }
    let iterations = iterations(sim) - before;
    assert!(iterations <= bound, "{iterations} of {bound}");
}

/// The digest of everything a run wrote.
fn history_digest(sim: &Sim) -> Sha256 {
    let mut bytes = Vec::new();
    for commit in &sim.commits {
        for part in [commit.message.as_bytes(), &commit.tree, &commit.state, commit.prompt.as_bytes()] {
            bytes.extend(Sha256::of(part).to_string().into_bytes());
        }
    }
    Sha256::of(&bytes)
}

/// Runs the seeds from `start` to `count` in steps of `step`; a panic names the failing seed.
fn run_seeds(start: u64, count: u64, step: usize) -> Seen {
    let mut seen = Seen::default();
    for seed in (start..count).step_by(step) {
        let sim = std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|_| panic!("seed {seed} failed"));
        if seed % REPEATED_EVERY == 0 {
            assert_eq!(history_digest(&run(seed)), history_digest(&sim), "seed {seed} has two histories");
        }
        if seed % AUDITED_EVERY == 0 {
            audit::assert_verified(&sim.commits);
        }
        seen.add(sim.oracle.seen);
    }
    seen
}

#[test]
fn every_rule_holds_in_every_run_and_every_ending_is_reached() {
    let mut seen = Seen::default();
    let count = count_from_env("RUNNER_SIMULATION_RUNS", RUNS);
    std::thread::scope(|scope| {
        let halves = [0, 1].map(|start| scope.spawn(move || run_seeds(start, count, 2)));
        for half in halves {
            seen.add(half.join().unwrap_or_else(|_| panic!("a run failed, see above")));
        }
    });
    assert_eq!(seen.runs, count);
    // Fewer runs do not cover everything.
    if count >= RUNS {
        assert_covered(&seen);
    }
}

/// The outcomes that a loop of the simulation can have: it has no planning sessions, and no agent reports its usage while it
/// works.
fn reachable_outcomes() -> Vec<Outcome> {
    const OTHERS: [Outcome; 4] =
        [Outcome::Planned, Outcome::PlanQuestions, Outcome::PlanRejected, Outcome::OverBudget];
    Outcome::ALL.into_iter().filter(|outcome| !OTHERS.contains(outcome)).collect()
}

/// Asserts that the runs covered every case, and reports everything that is missing or new at once.
fn assert_covered(seen: &Seen) {
    let mut differences = Vec::new();
    let mut compare = |what: &str, seen: Vec<String>, expected: Vec<String>| {
        let missing: Vec<&String> = expected.iter().filter(|word| !seen.contains(word)).collect();
        let new: Vec<&String> = seen.iter().filter(|word| !expected.contains(word)).collect();
        if !missing.is_empty() || !new.is_empty() {
            differences.push(format!("{what}: never seen {missing:?}, not listed {new:?}"));
        }
    };
    let all = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let owned = |words: &BTreeSet<&str>| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let outcomes =
        |list: &[Outcome]| list.iter().map(|outcome| outcome.as_str().to_owned()).collect::<Vec<_>>();
    compare(
        "outcomes",
        outcomes(&seen.outcomes.iter().copied().collect::<Vec<_>>()),
        outcomes(&reachable_outcomes()),
    );
    compare("stops", owned(&seen.stops), all(&STOPS));
    compare("events", owned(&seen.events), all(&EVENTS));
    compare("faults", owned(&seen.faults), all(&["crash", "disk full", "lost"]));
    compare("branches", owned(&seen.branches), all(&BRANCHES));
    compare("annotations", seen.annotations.iter().cloned().collect(), all(&ANNOTATIONS));
    for (mode, table) in [("leaf", &LEAF[..]), ("repair", &REPAIR), ("replan", &REPLAN), ("split", &SPLIT)] {
        let rows = seen.rows.iter().filter(|row| row.0 == mode);
        let answered =
            rows.filter(|row| !matches!(row.2.class(), OutcomeClass::Transient | OutcomeClass::UsageLimit));
        let row = |claim: &str, outcome: Outcome| format!("{claim}: {}", outcome.as_str());
        let free = FREE.map(|outcome| row("retry guard=skipped free", outcome));
        let listed = table.iter().map(|(claim, outcome)| row(claim, *outcome)).chain(free).collect();
        compare(mode, answered.map(|(_, claim, outcome)| row(claim, *outcome)).collect(), listed);
    }
    assert_eq!(differences, Vec::<String>::new());
    assert_eq!(seen.tempers.iter().copied().collect::<Vec<_>>(), Temper::ALL);
    for rule in RULES {
        assert!(seen.rules.iter().any(|message| message.starts_with(rule)), "no agent violated: {rule}");
    }
}

/// The simulation adds fewer regression tasks than the limit: the tests of the loop cover `regressed`.
const STOPS: [&str; 13] = [
    "stalled",
    "not_reproducible",
    "user_stop",
    "needs_user",
    "budget",
    "loop_budget",
    "complete",
    "failures",
    "interrupted",
    "loop_iterations",
    "max_iterations",
    "stuck",
    "time_limit",
];
const EVENTS: [&str; 21] = [
    "recheck_started",
    "recheck_ended",
    "regression_added",
    "review_started",
    "review_ended",
    "check_started",
    "check_ended",
    "outage_continues",
    "final_check_started",
    "final_check_ended",
    "planned",
    "recovered",
    "agent_ended",
    "checked",
    "guard_started",
    "guard_ended",
    "decided",
    "committed",
    "waiting",
    "budget_unenforceable",
    "stopped",
];
/// Branches of the choice of agents, of waits and of budgets.
const BRANCHES: [&str; 16] = [
    "moved up by the same failure",
    "outage continued",
    "climbed",
    "fell back",
    "fell back to the first",
    "all limited",
    "waits",
    "waits for another agent",
    "wait continued",
    "cost reported",
    "cost estimated",
    "cost unknown",
    "run_tokens",
    "run_usd",
    "leaf_tokens",
    "leaf_usd",
];
const ANNOTATIONS: [&str; 11] = [
    "in-place",
    "review-overruled",
    "check-unproven",
    "confirmed-unchanged",
    "guard-file-restored",
    "guard-file-changed",
    "guard-file-created",
    "plan-edited",
    "selected-task-edited",
    "repair-abandoned",
    "nothing-changed",
];
const RULES: [&str; 13] = [
    "was added on level",
    "got 2 children, but `max_children` is 1",
    "has 5 nodes, but `max_nodes` is 4",
    "has passed and must not be removed",
    "has passed and must not be moved",
    "has passed and must not change",
    "has passed and must not get the child",
    "is open and must not be removed",
    "is the root and must stay the root",
    "is the selected node and must stay",
    "got children although the status is",
    "the status is `decomposed`",
    "is protected and was restored",
];

/// The outcome table: the claim in the commit of a session on a leaf, and its outcome.
const LEAF: [(&str, Outcome); 16] = [
    ("done guard=pass charged", Outcome::ReviewRefused),
    ("done guard=pass free", Outcome::ReviewFailed),
    ("done guard=pass free", Outcome::Interrupted),
    ("done guard=pass free", Outcome::NotLoggedIn),
    ("done guard=skipped charged", Outcome::ChecksFailed),
    ("done guard=pass free", Outcome::Passed),
    ("done guard=pass free", Outcome::Unconfirmed),
    ("done guard=pass charged", Outcome::Unconfirmed),
    ("done guard=fail charged", Outcome::GuardFailed),
    ("retry guard=skipped charged", Outcome::Retry),
    ("decomposed guard=skipped free", Outcome::Decomposed),
    ("retry guard=skipped charged", Outcome::RuleViolation),
    ("retry guard=skipped charged", Outcome::InvalidTree),
    ("done guard=skipped free", Outcome::GuardNotStarted),
    ("done guard=skipped free", Outcome::GuardTimedOut),
    ("done guard=skipped free", Outcome::Interrupted),
];
const REPAIR: [(&str, Outcome); 4] = [
    ("decomposed guard=skipped free", Outcome::Repaired),
    ("done guard=skipped free", Outcome::Repaired),
    ("retry guard=skipped free", Outcome::RepairFailed),
    ("retry guard=skipped free", Outcome::RepairAbandoned),
];
const REPLAN: [(&str, Outcome); 6] = [
    ("done guard=skipped free", Outcome::Replanned),
    ("retry guard=skipped free", Outcome::Replanned),
    ("decomposed guard=skipped free", Outcome::Replanned),
    ("done guard=skipped free", Outcome::ReplanRefused),
    ("retry guard=skipped free", Outcome::ReplanRefused),
    ("retry guard=skipped free", Outcome::InvalidTree),
];
const SPLIT: [(&str, Outcome); 5] = [
    ("decomposed guard=skipped free", Outcome::Decomposed),
    ("done guard=skipped charged", Outcome::SplitRefused),
    ("retry guard=skipped charged", Outcome::SplitRefused),
    ("retry guard=skipped charged", Outcome::RuleViolation),
    ("retry guard=skipped charged", Outcome::InvalidTree),
];
/// Sessions without an answer that waiting does not help; in no mode do they charge an attempt.
const FREE: [Outcome; 9] = [
    Outcome::TimedOut,
    Outcome::IdleTimeout,
    Outcome::Interrupted,
    Outcome::AgentNotStarted,
    Outcome::AgentCrashed,
    Outcome::NoAnswer,
    Outcome::ProviderRefused,
    Outcome::NotLoggedIn,
    Outcome::ContextFull,
];
