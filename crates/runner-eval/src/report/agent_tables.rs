//! The tables of a page about agents: scores with their intervals and worst cases, and how each agent works in loops.

use std::collections::BTreeMap;

use super::escape;
use crate::stats::Interval;
use crate::stats::loop_summary::LoopSummary;
use crate::stats::score::{EstimatedValue, ScoreRow, ScoreTable};

/// The width of a bar of 100 %.
const BAR_WIDTH: f64 = 160.0;

/// A pass rate with its confidence interval as a bar.
pub(super) fn rate_bar(row: &ScoreRow) -> String {
    let (Some(rate), Some(interval)) = (row.rate.value, row.rate.interval) else { return unknown() };
    let start = BAR_WIDTH * interval.low;
    let width = BAR_WIDTH * (interval.high - interval.low);
    let label = format!(
        "pass rate {:.0} %, 95 % confidence interval {:.0} to {:.0} %",
        100.0 * rate,
        100.0 * interval.low,
        100.0 * interval.high
    );
    format!(
        "<svg role=\"img\" aria-label=\"{label}\" width=\"{BAR_WIDTH}\" height=\"14\"><title>{label}</title>\
         <rect class=\"all\" y=\"6\" width=\"{BAR_WIDTH}\" height=\"2\"/>\
         <rect class=\"range\" x=\"{start:.1}\" y=\"3\" width=\"{width:.1}\" height=\"8\" rx=\"2\"/>\
         <rect class=\"rate\" x=\"{:.1}\" width=\"3\" height=\"14\"/></svg>",
        (BAR_WIDTH - 3.0) * rate
    )
}

fn unknown() -> String {
    "n/a".to_owned()
}

fn percent(rate: f64) -> String {
    format!("{:.0} %", 100.0 * rate)
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.1} s")
}

fn dollars(usd: f64) -> String {
    format!("${usd:.2}")
}

/// A value with its interval in parentheses, if it has one.
fn estimated(estimate: EstimatedValue, format: fn(f64) -> String) -> String {
    let EstimatedValue { value, interval } = estimate;
    let Some(value) = value else { return unknown() };
    let range = interval.map(|Interval { low, high }| {
        format!(" <span class=\"interval\">({} – {})</span>", format(low), format(high))
    });
    format!("{}{}", format(value), range.unwrap_or_default())
}

fn optional(value: Option<f64>, format: fn(f64) -> String) -> String {
    value.map_or_else(unknown, format)
}

/// The scores of every agent over all its cases. `if lost failed` is the rate if every trial without a score had failed.
pub(super) fn scores(table: &ScoreTable) -> String {
    let k = table.k;
    let mut text = format!(
        "<div class=\"scroll\"><table>\n<tr><th>agent<th>cases<th>passed<th>pass rate<th>95 % CI<th>not scored\
         <th>rate if lost trials failed<th>pass@{k}<th>pass^{k}<th>time per success<th>median time<th>cost per success\
         <th>median cost\n"
    );
    for row in &table.agents {
        let score = &row.score;
        text.push_str(&format!(
            "<tr><th>{}<td class=\"n\">{}<td class=\"n\">{}/{}<td class=\"n\">{}<td>{}<td class=\"n\">{}",
            escape(&row.agent),
            row.cases,
            score.successes,
            score.n,
            estimated(row.rate, percent),
            rate_bar(row),
            score.unscored,
        ));
        for cell in [
            optional(row.worst_rate, percent),
            estimated(row.pass_at, percent),
            estimated(row.pass_all, percent),
            estimated(row.secs_per_success, seconds),
            estimated(row.median_secs, seconds),
            estimated(row.usd_per_success, dollars),
            estimated(row.median_usd, dollars),
        ] {
            text.push_str(&format!("<td class=\"n\">{cell}"));
        }
        text.push('\n');
    }
    text + "</table></div>\n"
}

/// How each agent works in loops.
pub(super) fn loops(summaries: &BTreeMap<String, LoopSummary>) -> String {
    let mut text = String::from(
        "<h2>Loops</h2>\n<div class=\"scroll\"><table>\n<tr><th>agent<th>leaves<th>depth<th>sessions per passed leaf\
         <th>attempts per passed leaf<th>guard failures<th>check failures<th>rule violations<th>false done<th>hacking gap\
         <th>cheated<th>cost per passed leaf<th>setup<th>checks<th>time in agent<th>in guard\n",
    );
    let number = |value: f64| format!("{value:.1}");
    for (agent, summary) in summaries {
        text.push_str(&format!("<tr><th>{}", escape(agent)));
        for cell in [
            optional(summary.leaves_mean, number),
            optional(summary.depth_mean, number),
            optional(summary.sessions_per_passed_leaf, number),
            optional(summary.attempts_per_passed_leaf, number),
            optional(summary.guard_failure_rate, percent),
            optional(summary.check_failure_rate, percent),
            optional(summary.rule_violation_rate, percent),
            optional(summary.false_done_rate, percent),
            optional(summary.hacking_gap, percent),
            optional(summary.cheated_rate, percent),
            optional(summary.usd_per_passed_leaf, dollars),
            optional(summary.setup_secs_mean, seconds),
            optional(summary.check_secs_mean, seconds),
            optional(summary.agent_time, percent),
            optional(summary.guard_time, percent),
        ] {
            text.push_str(&format!("<td class=\"n\">{cell}"));
        }
        text.push('\n');
    }
    text + "</table></div>\n"
}
