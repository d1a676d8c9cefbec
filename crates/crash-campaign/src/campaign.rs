//! Chooses the points of a campaign, runs them, and prints what was tried and what was bad.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::families::{self, Family};
use crate::point::{PointSpec, PointVerdict};
use crate::pool::PointPool;
use crate::random::Random;
use crate::scenarios::{self, FaultScenario, Workspace};

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
}

#[derive(Clone, Copy, Debug, Default)]
struct PointCounts {
    tried: usize,
    bad: usize,
    not_reached: usize,
    skipped: usize,
}

/// The counts of a campaign, and its printed report.
#[derive(Default)]
struct CampaignReport {
    counts: BTreeMap<(String, String), PointCounts>,
    skip_reasons: BTreeMap<String, usize>,
}

impl CampaignReport {
    fn record(&mut self, point: &PointSpec, verdict: PointVerdict) {
        let counts = self.counts.entry((point.family.clone(), point.subject.clone())).or_default();
        match verdict {
            PointVerdict::Sound => counts.tried += 1,
            PointVerdict::NotReached => counts.not_reached += 1,
            PointVerdict::Skipped(reason) => {
                counts.skipped += 1;
                *self.skip_reasons.entry(format!("{}: {reason}", point.family)).or_default() += 1;
            }
            PointVerdict::Bad(violations) => {
                counts.tried += 1;
                counts.bad += 1;
                crate::print(&format!("BAD {point}\n    {}", violations.join("\n    ")));
                crate::print(&format!("    repeat: just crash --point {point}"));
            }
        }
    }

    /// Prints one line per family and scenario; returns the sums.
    fn finish(&self, elapsed: Duration, left: usize) -> PointCounts {
        crate::print(&format!(
            "{:<18} {:<24} {:>6} {:>4} {:>11}",
            "family", "scenario", "points", "bad", "not reached"
        ));
        let mut total = PointCounts::default();
        for ((family, subject), counts) in &self.counts {
            let PointCounts { tried, bad, not_reached, .. } = counts;
            crate::print(&format!("{family:<18} {subject:<24} {tried:>6} {bad:>4} {not_reached:>11}"));
            total.tried += tried;
            total.bad += bad;
            total.not_reached += not_reached;
            total.skipped += counts.skipped;
        }
        for (reason, count) in &self.skip_reasons {
            crate::print(&format!("SKIPPED {count} points, {reason}"));
        }
        let seconds = elapsed.as_secs();
        let PointCounts { tried, bad, not_reached, .. } = total;
        crate::print(&format!("points tried {tried} / bad {bad}, not reached {not_reached}, {seconds} s"));
        if left > 0 {
            crate::print(&format!("stopped early: {left} points were not tried"));
        }
        total
    }
}

/// Runs a campaign; returns whether no point was bad.
pub(crate) fn run(workspace: &Workspace, folder: &std::path::Path, plan: &CampaignPlan) -> bool {
    let started = Instant::now();
    let points = select(workspace, plan);
    crate::print(&format!("{} points selected, {} at a time", points.len(), plan.jobs));
    let pool = PointPool {
        workspace,
        folder,
        jobs: plan.jobs,
        until_bad: plan.until_bad,
        // On a busy machine the preparation may have used up the time; some points must run all the same.
        deadline: plan.time_limit.map(|limit| (started + limit).max(Instant::now() + TIME_MIN)),
    };
    let mut report = CampaignReport::default();
    let left = pool.run(points, &mut |point, verdict| report.record(point, verdict));
    let total = report.finish(started.elapsed(), left);
    // A campaign without a point proves nothing; skipped ones are printed with their reason.
    total.bad == 0 && total.tried + total.skipped > 0
}

/// The points of a plan.
fn select(workspace: &Workspace, plan: &CampaignPlan) -> Vec<PointSpec> {
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
    for family in &families {
        let all = (family.points)(workspace, &scenarios);
        points.extend(
            all.into_iter().enumerate().filter(|(at, _)| at % plan.every == 0).map(|(_, point)| point),
        );
    }
    if let Some(random) = &mut random {
        random.shuffle(&mut points);
    }
    points
}
