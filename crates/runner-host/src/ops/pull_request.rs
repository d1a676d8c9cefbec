//! Opens a pull request for a landed branch with the user's own `gh` or `glab`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runner_core::detect::command_line;
use supervise::executables;
use thiserror::Error;

use crate::error::{Error, UserError};
use crate::git::{Git, lossy};

/// Why no pull request can be opened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PullRequestError {
    #[error("the repository has no remote to push to")]
    NoRemote,
    #[error("`{0}` is not on PATH")]
    NoProgram(&'static str),
    #[error("`{command}` failed")]
    Failed { command: String, output: Vec<String> },
}

impl From<PullRequestError> for Error {
    fn from(error: PullRequestError) -> Self {
        UserError::PullRequest(error).into()
    }
}

/// The program that talks to the server of a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReviewTool {
    Gh,
    Glab,
}

impl ReviewTool {
    fn program(self) -> &'static str {
        match self {
            Self::Gh => "gh",
            Self::Glab => "glab",
        }
    }

    /// By the name of the server; for a server with a name of its own, the program that is installed.
    fn of_remote(url: &str, is_installed: impl Fn(&str) -> bool) -> Self {
        let server = server_of(url).to_ascii_lowercase();
        match (server.contains("github"), server.contains("gitlab")) {
            (true, false) => Self::Gh,
            (false, true) => Self::Glab,
            (true, true) | (false, false) if is_installed("gh") || !is_installed("glab") => Self::Gh,
            (true, true) | (false, false) => Self::Glab,
        }
    }
}

/// The server in the address of a remote: `https://user@server:443/path` or `user@server:path`. Empty for a path.
fn server_of(url: &str) -> &str {
    let address = match url.split_once("://") {
        Some((_, rest)) => rest.split('/').next().unwrap_or_default(),
        None => match url.split_once(':') {
            Some((address, _)) if !address.contains('/') => address,
            Some(_) | None => return "",
        },
    };
    let server = address.rsplit('@').next().unwrap_or_default();
    server.split(':').next().unwrap_or_default()
}

/// The branches and texts of a pull request.
#[derive(Clone, Copy, Debug)]
pub struct PullRequestSpec<'a> {
    pub branch: &'a str,
    pub base: &'a str,
    pub title: &'a str,
    pub body: &'a str,
}

/// Everything that is needed to open pull requests in a repository.
#[derive(Clone, Debug)]
pub struct PullRequestOpener {
    root: PathBuf,
    git: PathBuf,
    remote: String,
    tool: ReviewTool,
    program: PathBuf,
}

impl PullRequestOpener {
    /// Finds the remote and the program. Changes nothing.
    pub fn find(dir: &Path) -> Result<Self, Error> {
        let git = Git::open(dir)?;
        let remotes = lossy(&git.call(&["remote"]).run()?);
        let usual = remotes.lines().find(|name| *name == "origin");
        let remote = usual.or_else(|| remotes.lines().next()).ok_or(PullRequestError::NoRemote)?.to_owned();
        let url = lossy(&git.call(&["remote", "get-url", &remote]).run()?);
        let find = |program: &str| executables::find(program, Some(git.root()));
        let tool = ReviewTool::of_remote(&url, |program| find(program).is_some());
        let program = find(tool.program()).ok_or(PullRequestError::NoProgram(tool.program()))?;
        Ok(Self { root: git.root().to_owned(), git: git.program().to_owned(), remote, tool, program })
    }

    /// Pushes the branch and opens the pull request. Returns its address.
    pub fn open(&self, request: &PullRequestSpec<'_>) -> Result<String, Error> {
        let branch = format!("refs/heads/{0}:refs/heads/{0}", request.branch);
        self.run(&self.git, &["push", "--quiet", &self.remote, &branch], "")?;
        let output = match self.tool {
            ReviewTool::Gh => {
                let args = ["pr", "create", "--head", request.branch, "--base", request.base];
                let args = [&args[..], &["--title", request.title, "--body-file", "-"]].concat();
                self.run(&self.program, &args, request.body)?
            }
            ReviewTool::Glab => {
                let args = ["mr", "create", "--yes", "--source-branch", request.branch];
                let texts = ["--target-branch", request.base, "--title", request.title];
                let args = [&args[..], &texts, &["--description", request.body]].concat();
                self.run(&self.program, &args, "")?
            }
        };
        let is_address = |line: &&str| line.starts_with("http");
        let line = output.lines().map(str::trim).rev().find(is_address);
        Ok(line.or(output.lines().last()).unwrap_or_default().to_owned())
    }

    /// The command line that pushes the branch and opens the pull request by hand.
    pub fn by_hand(&self, request: &PullRequestSpec<'_>) -> String {
        let PullRequestSpec { branch, base, title, .. } = *request;
        let create = match self.tool {
            ReviewTool::Gh => ["gh", "pr", "create", "--head", branch, "--base", base, "--title", title],
            ReviewTool::Glab => {
                ["glab", "mr", "create", "--source-branch", branch, "--target-branch", base, "--title", title]
            }
        };
        format!("git push {} {branch} && {}", self.remote, command_line(&create.map(str::to_owned)))
    }

    /// Runs a program of the user's, with their login and without a terminal, so that it fails instead of asking.
    fn run(&self, program: &Path, args: &[&str], input: &str) -> Result<String, Error> {
        let failed = Error::io("run", program);
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.root);
        command.env("GH_PROMPT_DISABLED", "1").env("NO_PROMPT", "1").env("GIT_TERMINAL_PROMPT", "0");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read its input reports why it failed.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().map_err(Error::io("run", program))?;
        if output.status.success() {
            return Ok(lossy(&output.stdout));
        }
        let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let command = format!("{name} {}", args.iter().take(2).copied().collect::<Vec<_>>().join(" "));
        let output = lossy(&output.stderr).lines().map(runner_core::text::one_line).collect();
        Err(PullRequestError::Failed { command, output }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_decides_which_program_opens_the_request() {
        let tool =
            |url: &str, installed: &[&str]| ReviewTool::of_remote(url, |name| installed.contains(&name));
        assert_eq!(tool("git@github.example:a/b.git", &["glab"]), ReviewTool::Gh);
        assert_eq!(tool("https://gitlab.example/a/b", &["gh"]), ReviewTool::Glab);
        assert_eq!(tool("ssh://code.example/a", &["glab"]), ReviewTool::Glab);
        assert_eq!(tool("ssh://code.example/a", &[]), ReviewTool::Gh);
        assert_eq!(tool("https://gitlab.com/me/github-tools.git", &["gh"]), ReviewTool::Glab);
        assert_eq!(tool("git@GitHub.com:gitlab-org/a.git", &["glab"]), ReviewTool::Gh);
        assert_eq!(tool("https://github@code.example/a", &["glab"]), ReviewTool::Glab);
    }

    #[test]
    fn server_is_found_in_every_form_of_address() {
        for (url, server) in [
            ("https://gitlab.com/me/github-tools.git", "gitlab.com"),
            ("https://me:github@gitlab.com:8443/a", "gitlab.com"),
            ("ssh://git@ssh.github.com:443/me/gitlab.git", "ssh.github.com"),
            ("git@github.com:me/gitlab.git", "github.com"),
            ("gitlab.example:me/a:b.git", "gitlab.example"),
            ("/srv/github/a.git", ""),
            ("../github:a.git", ""),
            ("file:///srv/github/a.git", ""),
        ] {
            assert_eq!(server_of(url), server, "{url}");
        }
    }
}
