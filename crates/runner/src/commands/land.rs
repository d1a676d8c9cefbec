//! `runner land`

use std::path::Path;

use runner_host::ops::land::{
    LandRequest, LandStyle, LandTarget, LandedCommit, LandedConfig, LandedTask, PreparedLand, prepare_land,
};
use runner_host::ops::pull_request::{PullRequestOpener, PullRequestSpec};
use runner_host::repo::own_output::ignore_own_output;
use runner_term::format::counted;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use crate::args::LandArgs;
use crate::render::clean;

const WHAT: &str = "could not land the run";

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
    let opened = opener.map(|opener| open_pull_request(&opener, &land, ui)).transpose()?;
    Ok(LandOutput { land, commits, has_pull_request: args.pr, opened })
}

fn open_pull_request(
    opener: &PullRequestOpener,
    land: &PreparedLand,
    ui: &Ui,
) -> Result<String, CommandError> {
    let _status_line = ui.status_line("opening the pull request");
    let PullRequest { title, body } = PullRequest::of(land);
    let request =
        PullRequestSpec { branch: &land.branch, base: &land.base.branch, title: &title, body: &body };
    opener.open(&request).map_err(|error| {
        let what = format!("the branch {} is created, but not the pull request", land.branch);
        CommandError::from_host(&what, error)
            .hint(format!("to open it by hand: {}", opener.by_hand(&request)))
    })
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
    }
}

/// The title and text of a pull request.
struct PullRequest {
    title: String,
    body: String,
}

impl PullRequest {
    fn of(land: &PreparedLand) -> Self {
        let mut body = String::new();
        for task in &land.tasks {
            body.push_str(&task_text(task));
        }
        let state = if land.is_complete { "all tasks passed" } else { "some tasks are still open" };
        body.push_str(&format!(
            "\n### Evidence\n\n- {} of run `{}` verified, {state}\n- `{}` succeeds on this branch\n\
             - to check it again: `runner verify {}`\n",
            counted(land.verified, "commit", "commits"),
            land.run,
            clean(&land.guard_line()),
            land.run,
        ));
        Self { title: clean(&land.goal), body: format!("### Tasks\n\n{body}") }
    }

    fn text(&self) -> String {
        format!("{}\n\n{}", self.title, self.body)
    }
}

fn task_text(task: &LandedTask) -> String {
    let unchanged = if task.has_changes { "" } else { " (no changes)" };
    let mut text = format!("- **{}**{unchanged}", clean(&task.title));
    let summary = clean(&task.summary);
    if !summary.is_empty() {
        text.push_str(&format!(": {summary}"));
    }
    for annotation in &task.annotations {
        text.push_str(&format!("\n  - note: {}", clean(annotation)));
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
            "branch": land.branch,
            "onto": land.base.branch,
            "commit": land.tip,
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
            line("branch", self.land.branch.clone()),
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
            "{tick} run {} verified ({})\n{tick} {}, {place}\n{tick} {} succeeds on the result\n{tick} branch {}\n\n",
            land.run,
            counted(land.verified, "commit", "commits"),
            counted(self.commits.len(), "commit", "commits"),
            clean(&land.guard_line()),
            styler.paint(TextRole::Strong, &clean(&land.branch)),
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
        if !land.base.has_config {
            let offer = format!(
                "To let later runs start from this configuration, put it on {} with --with-config.",
                clean(&land.base.branch)
            );
            text.push_str(&format!("\n{}\n", styler.wrap(&offer, 0)));
        }
        let (onto, branch) = (clean(&land.base.branch), clean(&land.branch));
        if land.branch == land.base.branch {
            text.push_str(&format!("\nNext: git log -p -{} {branch}\n", self.commits.len()));
        } else {
            text.push_str(&format!("\nNext: git log -p {onto}..{branch}\n"));
            text.push_str(&format!("      git switch {onto} && git merge --ff-only {branch}\n"));
        }
        text
    }
}
