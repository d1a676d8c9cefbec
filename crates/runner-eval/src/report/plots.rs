//! Plots of a report as SVG inside of the page: differences, cost against success, pass^k, and who passes what. Pure.

use super::escape;
use crate::stats::Interval;
use crate::stats::pass_all;
use crate::stats::score::{ScoreRow, ScoreTable};

/// A difference of pass rates with its interval.
pub(crate) struct ForestRow {
    pub(crate) label: String,
    pub(crate) mean: f64,
    pub(crate) interval: Interval,
}

const WIDTH: f64 = 720.0;
const LABEL_WIDTH: f64 = 280.0;
const ROW_HEIGHT: f64 = 24.0;
const PLOT_HEIGHT: f64 = 260.0;
const MARGIN: f64 = 44.0;
/// Colours of lines and points, in turn; readable on light and dark backgrounds.
const COLOURS: [&str; 6] = ["#2f6fb0", "#c2571a", "#2e8b57", "#8a4fb5", "#b03060", "#6b7280"];

fn colour(index: usize) -> &'static str {
    COLOURS.get(index % COLOURS.len()).copied().unwrap_or("#2f6fb0")
}

fn section(title: &str, note: &str, body: &str) -> String {
    format!("<h2>{title}</h2>\n<p>{note}</p>\n<div class=\"scroll\">{body}</div>\n")
}

fn svg(label: &str, height: f64, body: &str) -> String {
    format!(
        "<svg class=\"plot\" role=\"img\" aria-label=\"{}\" width=\"{WIDTH}\" height=\"{height:.0}\">{body}</svg>\n",
        escape(label)
    )
}

/// A forest plot: one line per difference, the interval as a bar, zero as the vertical line.
pub(crate) fn forest(rows: &[ForestRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let ends = rows.iter().flat_map(|row| [row.interval.low.abs(), row.interval.high.abs()]);
    let reach = ends.fold(0.1_f64, f64::max).min(1.0);
    let half = (WIDTH - LABEL_WIDTH - MARGIN) / 2.0;
    let zero = LABEL_WIDTH + half;
    let x = |value: f64| zero + half * (value / reach).clamp(-1.0, 1.0);
    let count = f64::from(u32::try_from(rows.len()).unwrap_or(u32::MAX));
    let bottom = ROW_HEIGHT * count;
    let mut body =
        format!("<line class=\"axis\" x1=\"{zero:.1}\" y1=\"0\" x2=\"{zero:.1}\" y2=\"{bottom:.1}\"/>");
    for (row, number) in rows.iter().zip(0_u32..) {
        let y = ROW_HEIGHT * (f64::from(number) + 0.5);
        let Interval { low, high } = row.interval;
        let text = format!(
            "{}: {:+.1} points ({:+.1} to {:+.1})",
            row.label,
            100.0 * row.mean,
            100.0 * low,
            100.0 * high
        );
        body.push_str(&format!(
            "<g><title>{}</title><text x=\"0\" y=\"{:.1}\">{}</text>\
             <line class=\"interval\" x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>\
             <circle class=\"mean\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\"/></g>",
            escape(&text),
            y + 4.0,
            escape(&shortened(&row.label, 40)),
            x(low),
            x(high),
            x(row.mean)
        ));
    }
    for value in [-reach, 0.0, reach] {
        body.push_str(&axis_label(x(value), bottom + 16.0, &format!("{:+.0}", 100.0 * value)));
    }
    section(
        "Differences",
        "Pass rate against the base, in percentage points with 95 % confidence intervals, paired by case. An interval that crosses \
         the line is compatible with no difference.",
        &svg("differences of pass rates", bottom + 24.0, &body),
    )
}

/// Points of cost (or, if the cost of any agent is unknown, time) of a trial against the pass rate.
pub(crate) fn cost_against_success(table: &ScoreTable) -> String {
    let has_cost = table.agents.iter().all(|row| row.median_usd.value.is_some());
    let amount = |row: &ScoreRow| if has_cost { row.median_usd.value } else { row.median_secs.value };
    let points: Vec<(&ScoreRow, f64, f64)> =
        table.agents.iter().filter_map(|row| Some((row, amount(row)?, row.rate.value?))).collect();
    if points.is_empty() {
        return String::new();
    }
    let most = points.iter().map(|(_, amount, _)| *amount).fold(1e-9_f64, f64::max);
    let x = |value: f64| MARGIN + (WIDTH - LABEL_WIDTH - MARGIN) * value / most;
    let mut body = rate_axis();
    for ((row, amount, rate), index) in points.iter().zip(0..) {
        let text = format!("{}: {:.0} %, {}", row.agent, 100.0 * rate, amount_text(*amount, has_cost));
        let bar = row.rate.interval.map_or_else(String::new, |interval| {
            let at = x(*amount);
            format!(
                "<line class=\"interval\" x1=\"{at:.1}\" y1=\"{:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\"/>",
                rate_y(interval.low),
                rate_y(interval.high)
            )
        });
        body.push_str(&format!(
            "<g><title>{}</title>{bar}<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\" fill=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
            escape(&text),
            x(*amount),
            rate_y(*rate),
            colour(index),
            x(*amount) + 8.0,
            rate_y(*rate) + 4.0,
            escape(&shortened(&row.agent, 36))
        ));
    }
    for value in [0.0, most / 2.0, most] {
        body.push_str(&axis_label(x(value), PLOT_HEIGHT - 8.0, &amount_text(value, has_cost)));
    }
    let what = if has_cost { "cost" } else { "time (the cost of some agent is unknown)" };
    let note =
        format!("Median {what} of a trial, to the right, against the pass rate with its interval, upwards.");
    let title = if has_cost { "Cost against success" } else { "Time against success" };
    section(title, &note, &svg(title, PLOT_HEIGHT, &body))
}

fn amount_text(amount: f64, is_cost: bool) -> String {
    if is_cost { format!("${amount:.2}") } else { format!("{amount:.1} s") }
}

/// pass^k over k: how fast an agent that passes sometimes falls behind one that passes always.
pub(crate) fn pass_all_curve(table: &ScoreTable) -> String {
    let most = table.cases.iter().map(|row| row.score.n).max().unwrap_or(0).min(50);
    if most < 2 {
        return String::new();
    }
    let x = |k: u32| MARGIN + (WIDTH - LABEL_WIDTH - MARGIN) * f64::from(k - 1) / f64::from(most - 1);
    let mut body = rate_axis();
    for (agent, index) in table.agents.iter().zip(0..) {
        let mut points = Vec::new();
        for k in 1..=most {
            if let Some(rate) = mean_pass_all(table, &agent.agent, k) {
                points.push((k, rate));
            }
        }
        let Some((last_k, last_rate)) = points.last().copied() else { continue };
        let line: Vec<String> =
            points.iter().map(|(k, rate)| format!("{:.1},{:.1}", x(*k), rate_y(*rate))).collect();
        body.push_str(&format!(
            "<polyline fill=\"none\" stroke=\"{0}\" stroke-width=\"2\" points=\"{1}\"/>\
             <text x=\"{2:.1}\" y=\"{3:.1}\" fill=\"{0}\">{4}</text>",
            colour(index),
            line.join(" "),
            x(last_k) + 6.0,
            rate_y(last_rate) + 4.0,
            escape(&shortened(&agent.agent, 36))
        ));
    }
    for k in [1, most.div_ceil(2), most] {
        body.push_str(&axis_label(x(k), PLOT_HEIGHT - 8.0, &format!("k = {k}")));
    }
    section(
        "pass^k",
        "The chance that all of k trials of a case pass, over the cases with at least k scored trials.",
        &svg("pass^k over k", PLOT_HEIGHT, &body),
    )
}

/// The mean over the cases that have at least `k` trials.
fn mean_pass_all(table: &ScoreTable, agent: &str, k: u32) -> Option<f64> {
    let rows = table.cases.iter().filter(|row| row.agent == agent);
    let rates: Vec<f64> = rows.filter_map(|row| pass_all(k, row.score.n, row.score.successes)).collect();
    let count = u32::try_from(rates.len()).ok().filter(|count| *count > 0)?;
    Some(rates.iter().sum::<f64>() / f64::from(count))
}

/// A table of agents and cases; each cell has the rate and leads to the first trial. `anchor_of` finds the anchor for an
/// agent and a case.
pub(crate) fn matrix(table: &ScoreTable, anchor_of: &dyn Fn(&str, &str) -> Option<String>) -> String {
    if table.agents.len() < 2 {
        return String::new();
    }
    let mut cases: Vec<&str> = table.cases.iter().filter_map(|row| row.case.as_deref()).collect();
    cases.sort_unstable();
    cases.dedup();
    let mut text = "<table>\n<tr><th>case".to_owned();
    for agent in &table.agents {
        text.push_str(&format!("<th>{}", escape(&agent.agent)));
    }
    text.push('\n');
    for case in cases {
        text.push_str(&format!("<tr><th>{}", escape(case)));
        for agent in &table.agents {
            let row =
                table.cases.iter().find(|row| row.agent == agent.agent && row.case.as_deref() == Some(case));
            text.push_str(&matrix_cell(row, anchor_of(&agent.agent, case).as_deref()));
        }
        text.push('\n');
    }
    section(
        "Agents and cases",
        "The pass rate of each agent in each case. Follow a cell to its first trial.",
        &format!("{text}</table>"),
    )
}

fn matrix_cell(row: Option<&ScoreRow>, link: Option<&str>) -> String {
    let Some((row, rate)) = row.and_then(|row| Some((row, row.rate.value?))) else {
        return "<td class=\"n\">n/a".to_owned();
    };
    let class = match rate {
        rate if rate >= 0.999 => "success",
        rate if rate <= 0.001 => "fail",
        _ => "stuck",
    };
    let text = format!("{}/{}", row.score.successes, row.score.n);
    match link {
        Some(link) => format!("<td class=\"n\"><a class=\"cell {class}\" href=\"#{link}\">{text}</a>"),
        None => format!("<td class=\"n {class}\">{text}"),
    }
}

/// The place of a rate on the vertical axis.
fn rate_y(rate: f64) -> f64 {
    PLOT_HEIGHT - 28.0 - (PLOT_HEIGHT - 44.0) * rate
}

/// The vertical axis from 0 to 100 %.
fn rate_axis() -> String {
    let mut text = String::new();
    for rate in [0.0, 0.5, 1.0] {
        let y = rate_y(rate);
        let right = WIDTH - LABEL_WIDTH;
        text.push_str(&format!(
            "<line class=\"axis\" x1=\"{MARGIN}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
             <text class=\"tick\" x=\"0\" y=\"{:.1}\">{:.0} %</text>",
            y + 4.0,
            100.0 * rate
        ));
    }
    text
}

fn axis_label(x: f64, y: f64, text: &str) -> String {
    format!("<text class=\"tick\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>", escape(text))
}

/// At most this many characters.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{head}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{FailureCause, TrialMeta};
    use crate::stats::score::scores;
    use crate::stats::score::tests::meta;

    fn metas() -> Vec<TrialMeta> {
        let mut metas = Vec::new();
        for (agent, failures) in [("a", 0), ("b<", 1)] {
            for trial in 1..=3 {
                let cause = (trial <= failures).then_some(FailureCause::Agent);
                let mut meta = meta("case", cause, Some(10));
                meta.agent = agent.to_owned();
                meta.trial = trial;
                metas.push(meta);
            }
        }
        metas
    }

    #[test]
    fn plots_name_every_agent_and_escape_them() {
        let metas = metas();
        let table = crate::stats::score::table(&scores(&metas, []), None);
        for plot in [cost_against_success(&table), pass_all_curve(&table), matrix(&table, &|_, _| None)] {
            assert!(plot.contains("b&lt;") && !plot.contains("b<"), "{plot}");
        }
        assert!(pass_all_curve(&table).contains("k = 3"));
        assert!(matrix(&table, &|_, _| None).contains("2/3"));
    }

    #[test]
    fn forest_plot_has_a_line_per_difference() {
        let row = |label: &str, mean: f64| ForestRow {
            label: label.to_owned(),
            mean,
            interval: Interval { low: mean - 0.1, high: mean + 0.1 },
        };
        let plot = forest(&[row("one", -0.2), row("two", 0.0)]);
        assert_eq!(plot.matches("<circle").count(), 2);
        assert!(plot.contains("one: -20.0 points (-30.0 to -10.0)"), "{plot}");
        assert_eq!(forest(&[]), "");
    }
}
