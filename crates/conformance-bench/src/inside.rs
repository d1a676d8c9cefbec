//! The program inside the sandbox of a row: it prepares the repository, starts the model and the tool, waits, and records
//! how the tool ended and which of its processes are left. Everything dies when it ends.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The port of the model. The sandbox has a network of its own, so that it is always free.
pub(crate) const MODEL_PORT: u16 = 4000;

/// How long processes of the tool may take to end after it.
const PROCESSES_GRACE: Duration = Duration::from_secs(5);

const POLL: Duration = Duration::from_millis(20);

/// What the inner program saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Observation {
    /// A step of the adapter that failed before the tool started, with its output.
    pub(crate) failed_step: Option<(String, String)>,
    /// Without one, the tool did not end in time, or a signal ended it.
    pub(crate) exit_code: Option<i32>,
    pub(crate) ended: bool,
    pub(crate) seconds: f64,
    /// Whether the adapter's script for it found that the tool reports that all work is done.
    pub(crate) state_is_complete: bool,
    /// The command lines of processes that were left.
    pub(crate) processes: Vec<String>,
    pub(crate) branch: String,
}

/// Runs the row in `folder` and writes what it saw to `observation.json`.
pub(crate) fn run(folder: &Path, deadline: Duration) -> io::Result<()> {
    let observation = observe(folder, deadline)?;
    fs::write(folder.join("observation.json"), serde_json::to_vec_pretty(&observation)?)
}

fn observe(folder: &Path, deadline: Duration) -> io::Result<Observation> {
    let mut observation = Observation::default();
    for step in ["setup", "commit"] {
        let output = script(folder, step).output()?;
        if !output.status.success() {
            let text = [output.stdout, output.stderr].concat();
            observation.failed_step = Some((step.to_owned(), String::from_utf8_lossy(&text).into_owned()));
            return Ok(observation);
        }
    }
    let model = start_model(folder)?;
    let log = File::create(folder.join("output.log"))?;
    let started = Instant::now();
    let mut tool = script(folder, "run").stdout(log.try_clone()?).stderr(log).spawn()?;
    let status = wait_until(&mut tool, started + deadline)?;
    observation.seconds = started.elapsed().as_secs_f64();
    let Some(status) = status else { return Ok(observation) };
    observation.ended = true;
    observation.exit_code = status.code();
    let own: Vec<u32> = [1, std::process::id()].into_iter().chain(model.as_ref().map(Child::id)).collect();
    let grace = Instant::now() + PROCESSES_GRACE;
    observation.processes = processes(&own)?;
    while !observation.processes.is_empty() && Instant::now() < grace {
        sleep(POLL);
        observation.processes = processes(&own)?;
    }
    let exit = observation.exit_code.map_or_else(|| "signal".to_owned(), |code| code.to_string());
    let mut complete = script(folder, "complete");
    complete.env("CONFORMANCE_EXIT", exit).stdout(Stdio::null()).stderr(Stdio::null());
    observation.state_is_complete = complete.status()?.success();
    let branch = script(folder, "branch").output()?;
    observation.branch = String::from_utf8_lossy(&branch.stdout).trim().to_owned();
    Ok(observation)
}

/// A script of the row, to be run in its repository.
fn script(folder: &Path, name: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-eu").arg(folder.join(format!("{name}.sh"))).current_dir(folder.join("repo"));
    command.stdin(Stdio::null());
    command
}

/// Starts the scripted model, if the row has one, and waits until it listens.
fn start_model(folder: &Path) -> io::Result<Option<Child>> {
    let model_script = folder.join("model.toml");
    if !model_script.exists() {
        return Ok(None);
    }
    let ready = folder.join("model.ready");
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(crate::MODEL_ARG).arg(&model_script).arg(&ready);
    let log = File::create(folder.join("model.log"))?;
    let model = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
    while !ready.exists() {
        sleep(POLL);
    }
    Ok(Some(model))
}

/// Serves the model of a row for ever. Returns the problem if that is not possible.
pub(crate) fn serve_model(script: &Path, ready: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let script = scripted_model::ModelScript::parse(&fs::read_to_string(script)?);
    let model = script.map(|script| scripted_model::ScriptedModel::start_at(script, MODEL_PORT, None));
    // The process that waits for the model goes on in any case; the log has the problem.
    File::create(ready)?;
    model??.serve();
    Ok(())
}

fn wait_until(process: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        let status = process.try_wait()?;
        if status.is_some() || Instant::now() >= deadline {
            return Ok(status);
        }
        sleep(POLL);
    }
}

/// The command lines of all living processes of the sandbox except these.
fn processes(own: &[u32]) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let process = Path::new("/proc").join(pid.to_string());
        let (Ok(stat), Ok(line)) =
            (fs::read_to_string(process.join("stat")), fs::read(process.join("cmdline")))
        else {
            continue;
        };
        // The state follows the name, which is in parentheses.
        let is_dead = stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']));
        if !is_dead && !own.contains(&pid) {
            let words: Vec<String> = line
                .split(|byte| *byte == 0)
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect();
            lines.push(words.join(" ").trim().to_owned());
        }
    }
    lines.sort();
    Ok(lines)
}
