//! `runner land`

use std::path::Path;

use runner_core::detect::command_line;
use runner_core::text::shortened;
use runner_host::ops::land::{
    ExistingLanding, LandRequest, LandStyle, LandTarget, LandedCommit, LandedConfig, LandedTask,
    PreparedLand, prepare_land,
};
use runner_host::ops::pull_request::{PullRequestOpener, PullRequestSpec};
use runner_host::repo::own_output::ignore_own_output;
use runner_term::format::counted;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use crate::args::LandArgs;
use crate::render::clean;

const WHAT: &str = "could not land the run";

/// The most bytes of a pull request's text. GitHub takes 65,536 characters. Linux takes 128 KiB in one argument, which is how
/// glab gets it.
const BODY_BYTES_MAX: usize = 60_000;

/// The most bytes of a title or summary in a text that would be too long.
const SHORT_BYTES_MAX: usize = 300;

pub(crate) struct LandOutput {
    land: PreparedLand,
    commits: Vec<LandedCommit>,
    has_pull_request: bool,
    /// The address of the pull request that was opened.
    opened: Option<String>,
}

pub(crate) fn run(dir: &Path, args: &LandArgs, ui: &Ui) -> Result<LandOutput, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    ignore_own_output(dir).map_err(failed)?;
    let opener = if args.open { Some(PullRequestOpener::find(dir).map_err(failed)?) } else { None };
    let status_line = ui.status_line("verifying the run");
    let land = prepare_land(dir, &request(args)).map_err(failed)?;
    drop(status_line);
    let status_line =
        ui.status_line(&format!("running the guard on the result: {}", clean(&land.guard_line())));
    land.check_guard(dir).map_err(failed)?;
    drop(status_line);
    let commits = land.publish().map_err(failed)?;
    let opened = opener.map(|opener| open_pull_request(&opener, &land, args, ui)).transpose()?;
    Ok(LandOutput { land, commits, has_pull_request: args.pr, opened })
}

fn open_pull_request(
    opener: &PullRequestOpener,
    land: &PreparedLand,
    args: &LandArgs,
    ui: &Ui,
) -> Result<String, CommandError> {
    let _status_line = ui.status_line("opening the pull request");
    let PullRequest { title, body } = PullRequest::of(land);
    let request =
        PullRequestSpec { branch: &land.branch.name, base: &land.base.branch, title: &title, body: &body };
    opener.open(&request).map_err(|error| {
        let what = if land.branch.has_landing {
            format!("could not open the pull request for branch {}", land.branch.name)
        } else {
            format!("the branch {} is created, but not the pull request", land.branch.name)
        };
        CommandError::from_host(&what, error)
            .hint(format!("when the cause is fixed: {}", land_again(land, args, "--open")))
            .hint(format!("or open it by hand: {}", opener.by_hand(&request)))
            .hint(format!("to print its text: {}", land_again(land, args, "--pr")))
    })
}

/// The command that does something with the branch that this one made.
fn land_again(land: &PreparedLand, args: &LandArgs, option: &str) -> String {
    let mut words = vec!["runner".to_owned(), "land".to_owned(), land.run.to_string(), option.to_owned()];
    for (option, value) in [("--onto", &args.onto), ("--branch", &args.branch)] {
        words.extend(value.iter().flat_map(|value| [option.to_owned(), value.clone()]));
    }
    command_line(&words)
}

fn request(args: &LandArgs) -> LandRequest {
    let target = match (&args.into, &args.branch) {
        (Some(_), _) => LandTarget::BaseBranch,
        (None, Some(name)) => LandTarget::Named(name.clone()),
        (None, None) => LandTarget::NewBranch,
    };
    LandRequest {
        run: args.run.clone(),
        onto: args.into.clone().or_else(|| args.onto.clone()),
        target,
        style: if args.squash { LandStyle::Squash } else { LandStyle::CommitPerTask },
        config: if args.with_config { LandedConfig::OwnCommit } else { LandedConfig::LeftOut },
        existing: if args.open || args.pr { ExistingLanding::Used } else { ExistingLanding::Refused },
    }
}

/// The title and text of a pull request.
struct PullRequest {
    title: String,
    body: String,
}

impl PullRequest {
    fn of(land: &PreparedLand) -> Self {
        let state = if land.is_complete { "all tasks passed" } else { "some tasks are still open" };
        let evidence = format!(
            "\n### Evidence\n\n- {} of run `{}` verified, {state}\n- `{}` succeeds on this branch\n\
             - to check it again: `runner verify {}`\n",
            counted(land.verified, "commit", "commits"),
            land.run,
            shortened(&clean(&land.guard_line()), SHORT_BYTES_MAX),
            land.run,
        );
        let heading = "### Tasks\n\n";
        let room = BODY_BYTES_MAX.saturating_sub(heading.len() + evidence.len());
        let body = format!("{heading}{}{evidence}", task_list(&land.tasks, room));
        Self { title: clean(&land.goal), body }
    }

    fn text(&self) -> String {
        format!("{}\n\n{}", self.title, self.body)
    }
}

/// How much of a task a list shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskDetail {
    Full,
    /// Long texts are shortened.
    Short,
    Title,
}

/// The tasks in at most `bytes_max` bytes: with as much detail as fits, and without the last ones if titles alone do not.
fn task_list(tasks: &[LandedTask], bytes_max: usize) -> String {
    for detail in [TaskDetail::Full, TaskDetail::Short, TaskDetail::Title] {
        let mut list = String::new();
        let all_fit = tasks.iter().all(|task| {
            list.push_str(&task_text(task, detail));
            list.len() <= bytes_max
        });
        if all_fit {
            return list;
        }
    }
    let omission = |omitted: usize| {
        format!("\n{} did not fit into this text.\n", counted(omitted, "more task", "more tasks"))
    };
    let room = bytes_max.saturating_sub(omission(tasks.len()).len());
    let mut list = String::new();
    for (index, task) in tasks.iter().enumerate() {
        let line = task_text(task, TaskDetail::Title);
        if list.len() + line.len() > room {
            return list + &omission(tasks.len() - index);
        }
        list.push_str(&line);
    }
    list
}

fn task_text(task: &LandedTask, detail: TaskDetail) -> String {
    let bytes_max = if detail == TaskDetail::Full { usize::MAX } else { SHORT_BYTES_MAX };
    let words = |text: &str| shortened(&clean(text), bytes_max);
    let unchanged = if task.has_changes { "" } else { " (no changes)" };
    let mut text = format!("- **{}**{unchanged}", words(&task.title));
    if detail == TaskDetail::Title {
        return text + "\n";
    }
    let summary = words(&task.summary);
    if !summary.is_empty() {
        text.push_str(&format!(": {summary}"));
    }
    for annotation in &task.annotations {
        text.push_str(&format!("\n  - note: {}", words(annotation)));
    }
    text + "\n"
}

impl CommandOutput for LandOutput {
    fn json(&self) -> Value {
        let land = &self.land;
        let commits: Vec<Value> = self
            .commits
            .iter()
            .map(|landed| json!({ "commit": landed.commit, "subject": landed.subject }))
            .collect();
        let mut document = json!({
            "schema": "runner.land/1",
            "run_id": land.run,
            "branch": land.branch.name,
            "onto": land.base.branch,
            "commit": land.branch.tip,
            "commits": commits,
            "complete": land.is_complete,
            "verified_commits": land.verified,
            "newer_commits": land.base.newer_commits,
            "opened": self.opened,
        });
        if self.has_pull_request
            && let Value::Object(document) = &mut document
        {
            let PullRequest { title, body } = PullRequest::of(land);
            document.insert("pull_request".to_owned(), json!({ "title": title, "body": body }));
        }
        document
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = |key: &str, value: String| KeyValueLine::new().with(key, value);
        let mut lines = vec![
            line("run_id", self.land.run.to_string()),
            line("branch", self.land.branch.name.clone()),
            line("onto", self.land.base.branch.clone()),
        ];
        for landed in &self.commits {
            lines.push(
                KeyValueLine::new().with("commit", &landed.commit).with("subject", clean(&landed.subject)),
            );
        }
        lines.extend(self.opened.as_ref().map(|url| line("pull_request", clean(url))));
        if self.has_pull_request {
            lines.extend(PullRequest::of(&self.land).text().lines().map(KeyValueLine::verbatim));
        }
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let land = &self.land;
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        let place = match land.base.newer_commits {
            0 => format!("on {}", land.base.branch),
            newer => format!(
                "rebased onto {}, which has {} since",
                land.base.branch,
                counted(newer, "newer commit", "newer commits")
            ),
        };
        let mut text = format!(
            "{tick} run {} verified ({})\n{tick} {}, {place}\n{tick} {} succeeds on the result\n{tick} branch {}{}\n\n",
            land.run,
            counted(land.verified, "commit", "commits"),
            counted(self.commits.len(), "commit", "commits"),
            clean(&land.guard_line()),
            styler.paint(TextRole::Strong, &clean(&land.branch.name)),
            if land.branch.has_landing { ", which has the landed work already" } else { "" },
        );
        for landed in &self.commits {
            let line = format!("  {}  {}", landed.commit.prefix(8), clean(&landed.subject));
            text.push_str(&format!("{}\n", styler.fit(&line, styler.width)));
        }
        if !land.is_complete {
            text.push_str(&format!(
                "\n{}\n",
                styler.paint(TextRole::Warn, "Some tasks of the run are still open.")
            ));
        }
        if self.has_pull_request {
            text.push_str(&format!("\n{}\n", PullRequest::of(land).text()));
        }
        if let Some(url) = &self.opened {
            text.push_str(&format!("\n{tick} pull request {}\n", clean(url)));
        }
        if !land.base.has_config && !land.branch.has_landing {
            let offer = format!(
                "To let later runs start from this configuration, put it on {} with --with-config.",
                clean(&land.base.branch)
            );
            text.push_str(&format!("\n{}\n", styler.wrap(&offer, 0)));
        }
        text + &self.next_steps()
    }
}

impl LandOutput {
    fn next_steps(&self) -> String {
        let land = &self.land;
        let (onto, branch) = (clean(&land.base.branch), clean(&land.branch.name));
        if self.opened.is_some() {
            "\nNext: review and merge the pull request\n".to_owned()
        } else if land.branch.name == land.base.branch {
            format!("\nNext: git log -p -{} {branch}\n", self.commits.len())
        } else {
            format!(
                "\nNext: git log -p {onto}..{branch}\n      git switch {onto} && git merge --ff-only {branch}\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use runner_core::model::id::IterationNumber;

    use super::*;

    fn tasks(count: usize, summary: &str) -> Vec<LandedTask> {
        let task = |number: usize| LandedTask {
            node: None,
            title: format!("task {number}"),
            summary: summary.to_owned(),
            iteration: IterationNumber::FIRST,
            annotations: Vec::new(),
            has_changes: true,
        };
        (1..=count).map(task).collect()
    }

    #[test]
    fn text_of_a_pull_request_has_as_much_of_every_task_as_fits() {
        let summary = "é".repeat(4_000);
        let list = |count: usize| task_list(&tasks(count, &summary), BODY_BYTES_MAX);
        assert!(list(7).contains(&summary), "whole summaries");
        let short = list(100);
        assert!(short.contains("- **task 100**: é") && short.contains("é…\n"), "shortened summaries");
        assert!(list(2_000).ends_with("- **task 1999**\n- **task 2000**\n"), "only titles");
        let cut = list(10_000);
        let kept = cut.lines().filter(|line| line.starts_with("- **")).count();
        let omission = format!("\n{} more tasks did not fit into this text.\n", 10_000 - kept);
        assert!(kept > 2_000 && cut.ends_with(&omission), "{kept}");
        assert!([7, 100, 2_000, 10_000].iter().all(|count| list(*count).len() <= BODY_BYTES_MAX));
    }
}
