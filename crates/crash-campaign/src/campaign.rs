//! Chooses the points of a campaign, runs them, and prints what was tried and what was bad.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::families::{self, Family};
use crate::point::{PlannedPoint, PointSpec, PointVerdict};
use crate::pool::{PointPool, PoolTask, SweepSpec, TaskResult};
use crate::random::Random;
use crate::result_file::ResultFile;
use crate::scenarios::{self, FaultScenario, Workspace};
use crate::sweep::SweptPoint;

/// How many scenarios a sample covers. Each must be prepared and counted first, which takes a second or two.
const SAMPLE_SCENARIOS: usize = 4;

/// How long points run at least, whatever the time limit.
const TIME_MIN: Duration = Duration::from_secs(15);

/// What the user asked for.
pub(crate) struct CampaignPlan {
    /// Empty for all.
    pub(crate) scenarios: Vec<String>,
    pub(crate) families: Vec<String>,
    /// Only every K-th point of each family and scenario.
    pub(crate) every: usize,
    /// The text that seeds a random selection.
    pub(crate) sample: Option<String>,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) jobs: usize,
    pub(crate) until_bad: bool,
    /// Whether families that have sweeps run them instead of single points.
    pub(crate) sweeps: bool,
    /// Where results are kept between invocations.
    pub(crate) results: Option<ResultFile>,
}

#[derive(Clone, Copy, Debug, Default)]
struct PointCounts {
    /// All points, whether selected or not.
    all: usize,
    tried: usize,
    /// Not run, because an earlier point leaves the same files.
    same: usize,
    bad: usize,
    not_reached: usize,
    skipped: usize,
}

impl PointCounts {
    fn add(&mut self, other: &Self) {
        self.all += other.all;
        self.tried += other.tried;
        self.same += other.same;
        self.bad += other.bad;
        self.not_reached += other.not_reached;
        self.skipped += other.skipped;
    }

    fn has_results(&self) -> bool {
        self.tried + self.same + self.not_reached + self.skipped > 0
    }

    fn print_header() {
        crate::print(&format!(
            "{:<18} {:<24} {:>6} {:>6} {:>6} {:>4} {:>11}",
            "family", "scenario", "tried", "same", "of", "bad", "not reached"
        ));
    }

    fn print(&self, family: &str, subject: &str) {
        let Self { all, tried, same, bad, not_reached, .. } = self;
        crate::print(&format!(
            "{family:<18} {subject:<24} {tried:>6} {same:>6} {all:>6} {bad:>4} {not_reached:>11}"
        ));
    }
}

/// The counts of a campaign, and its printed report.
#[derive(Default)]
struct CampaignReport {
    counts: BTreeMap<(String, String), PointCounts>,
    /// How many points of a family are the same as points of a family.
    same: BTreeMap<[String; 2], usize>,
    skip_reasons: BTreeMap<String, usize>,
    /// The bad points with their violations, as text.
    bad: Vec<String>,
    broken_sweeps: usize,
}

impl CampaignReport {
    fn counts_of(&mut self, point: &PointSpec) -> &mut PointCounts {
        self.counts.entry((point.family.clone(), point.subject.clone())).or_default()
    }

    fn record_same(&mut self, point: &PointSpec, other: &PointSpec) {
        self.counts_of(point).same += 1;
        *self.same.entry([point.family.clone(), other.family.clone()]).or_default() += 1;
    }

    fn record(&mut self, point: &PointSpec, verdict: PointVerdict) {
        let counts = self.counts_of(point);
        match verdict {
            PointVerdict::Sound => counts.tried += 1,
            PointVerdict::Same(other) => self.record_same(point, &other),
            PointVerdict::NotReached => counts.not_reached += 1,
            PointVerdict::Skipped(reason) => {
                counts.skipped += 1;
                *self.skip_reasons.entry(format!("{}: {reason}", point.family)).or_default() += 1;
            }
            PointVerdict::Bad(violations) => {
                counts.tried += 1;
                counts.bad += 1;
                let text = format!(
                    "BAD {point}\n    {}\n    repeat: just crash --point {point}",
                    violations.join("\n    ")
                );
                crate::print(&text);
                self.bad.push(text);
            }
        }
    }

    /// Only a sweep knows how many points it has.
    fn record_sweep(&mut self, points: Vec<SweptPoint>) {
        for SweptPoint { spec, verdict } in points {
            self.counts_of(&spec).all += 1;
            self.record(&spec, verdict);
        }
    }

    fn record_broken_sweep(&mut self, sweep: &SweepSpec, error: &str) {
        let SweepSpec { family, scenario } = sweep;
        let text = format!(
            "BAD sweep of {family}/{scenario}: {error}\n    repeat: just crash {scenario} --family {family}"
        );
        crate::print(&text);
        self.bad.push(text);
        self.broken_sweeps += 1;
    }

    /// Prints one line per family and scenario with results, one per family, and the bad points again, because a campaign takes
    /// hours and its output may be cut; returns the sums.
    fn finish(&self, elapsed: Duration, left: &[PoolTask]) -> PointCounts {
        PointCounts::print_header();
        let mut families: BTreeMap<&str, PointCounts> = BTreeMap::new();
        for ((family, subject), counts) in &self.counts {
            if counts.has_results() {
                counts.print(family, subject);
            }
            families.entry(family).or_default().add(counts);
        }
        let mut total = PointCounts::default();
        for (family, counts) in &families {
            counts.print(family, "all");
            total.add(counts);
        }
        for ([family, other], count) in &self.same {
            crate::print(&format!(
                "{family}: {count} points leave the same files as other points of {other}"
            ));
        }
        for (reason, count) in &self.skip_reasons {
            crate::print(&format!("SKIPPED {count} points, {reason}"));
        }
        let seconds = elapsed.as_secs();
        let PointCounts { all, tried, same, bad, not_reached, .. } = total;
        crate::print(&format!(
            "points tried {tried} / same as another {same} / of {all} / bad {bad}, not reached {not_reached}, {seconds} s"
        ));
        let sweeps = left.iter().filter(|task| matches!(task, PoolTask::Sweep(_))).count();
        if !left.is_empty() {
            let points = left.len() - sweeps;
            crate::print(&format!("stopped early: {points} points and {sweeps} sweeps were not tried"));
        }
        for text in &self.bad {
            crate::print(text);
        }
        total
    }
}

/// Runs a campaign; returns whether no point was bad.
pub(crate) fn run(workspace: &Workspace, folder: &std::path::Path, plan: &CampaignPlan) -> bool {
    let started = Instant::now();
    let mut report = CampaignReport::default();
    let mut tasks = select(workspace, plan, &mut report);
    crate::print(&format!("{} points and sweeps selected, {} at a time", tasks.len(), plan.jobs));
    if let Some(results) = &plan.results {
        record_known(results, &mut tasks, &mut report);
        crate::print(&format!("{} are left", tasks.len()));
    }
    let pool = PointPool {
        workspace,
        folder,
        jobs: plan.jobs,
        until_bad: plan.until_bad,
        // On a busy machine the preparation may have used up the time; some points must run all the same.
        deadline: plan.time_limit.map(|limit| (started + limit).max(Instant::now() + TIME_MIN)),
    };
    let left = pool.run(tasks, &mut |result, time| match result {
        TaskResult::Point(SweptPoint { spec, verdict }) => {
            if let Some(results) = &plan.results {
                results.append(&spec, &verdict, time);
            }
            report.record(&spec, verdict);
        }
        TaskResult::Sweep(points) => {
            if let Some(results) = &plan.results {
                results.append_sweep(&points, time);
            }
            report.record_sweep(points);
        }
        TaskResult::BrokenSweep(sweep, error) => report.record_broken_sweep(&sweep, &error),
    });
    let total = report.finish(started.elapsed(), &left);
    // A campaign without a point proves nothing; skipped ones are printed with their reason.
    total.bad == 0 && report.broken_sweeps == 0 && total.tried + total.skipped > 0
}

/// Moves the results of earlier invocations from the tasks into the report.
fn record_known(results: &ResultFile, tasks: &mut Vec<PoolTask>, report: &mut CampaignReport) {
    let known = results.read();
    let mut sweeps = results.read_sweeps();
    tasks.retain(|task| match task {
        PoolTask::Point(point) => match known.get(point) {
            Some(verdict) => {
                report.record(point, verdict.clone());
                false
            }
            None => true,
        },
        PoolTask::Sweep(sweep) => match sweeps.remove(sweep) {
            Some(points) => {
                report.record_sweep(points);
                false
            }
            None => true,
        },
    });
}

/// The points of a plan. Those that are the same as another one are only counted.
fn select(workspace: &Workspace, plan: &CampaignPlan, report: &mut CampaignReport) -> Vec<PoolTask> {
    let mut scenarios: Vec<FaultScenario> = scenarios::all();
    scenarios.retain(|scenario| {
        plan.scenarios.is_empty() || plan.scenarios.iter().any(|name| name == scenario.name)
    });
    let mut families: Vec<Family> = families::all();
    families
        .retain(|family| plan.families.is_empty() || plan.families.iter().any(|name| name == family.name));
    let mut random = plan.sample.as_deref().map(Random::from_text);
    if let Some(random) = &mut random {
        random.shuffle(&mut scenarios);
        scenarios.truncate(SAMPLE_SCENARIOS);
    }
    let mut points = Vec::new();
    let mut sweeps = Vec::new();
    for family in &families {
        if plan.sweeps && families::sweep_of(family.name).is_some() {
            sweeps.extend(scenarios.iter().map(|scenario| SweepSpec {
                family: family.name.to_owned(),
                scenario: scenario.name.to_owned(),
            }));
            continue;
        }
        let all: Vec<PlannedPoint> = (family.points)(workspace, &scenarios);
        let mut different = Vec::new();
        for PlannedPoint { spec, same_as } in all {
            report.counts_of(&spec).all += 1;
            match same_as {
                Some(other) => report.record_same(&spec, &other),
                None => different.push(spec),
            }
        }
        points.extend(different.into_iter().step_by(plan.every));
    }
    // A campaign in parts tries points everywhere first, in the same order every time.
    let order = plan.results.is_some().then(|| Random::new(1));
    if let Some(random) = &mut random.or(order) {
        random.shuffle(&mut points);
    }
    sweeps.into_iter().map(PoolTask::Sweep).chain(points.into_iter().map(PoolTask::Point)).collect()
}
