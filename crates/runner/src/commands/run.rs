//! `runner step` and `runner loop`

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use runner_cli::{Exit, Line, Out, Pen, Reply, Report};
use runner_core::step::{self, Event, Next, Pace, StepEnd, Stop};
use runner_host::record::last_line;
use runner_host::terminal::Keys;
use runner_host::workshop::{Taken, Workshop, take_up};
use serde_json::{Value, json};

use crate::cli::LoopArgs;
use crate::live::{Live, Stage};
use crate::view::recovered::{recovered_json, recovered_line, recovered_text};
use crate::view::spending::spent_text;
use crate::view::summary::{Summary, why};

/// How it ended.
pub(crate) struct Done {
    stop: Option<Stop>,
    summary: Summary,
    took: Duration,
}

/// How much is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    OneStep,
    UntilItStops { at_most: Option<u32> },
}

pub(crate) fn step(dir: &Path, out: &Out) -> Result<Done, Report> {
    run(dir, Amount::OneStep, out)
}

pub(crate) fn run_loop(dir: &Path, args: &LoopArgs, out: &Out) -> Result<Done, Report> {
    run(dir, Amount::UntilItStops { at_most: args.max_iterations }, out)
}

fn run(dir: &Path, amount: Amount, out: &Out) -> Result<Done, Report> {
    let told = |error| Report::of("could not make an iteration", &error);
    let root: OnceLock<PathBuf> = OnceLock::new();
    let log_of = |stage| if stage == Stage::Guard { "guard.log" } else { "executor.log" };
    let live = Live::new(out, Box::new(|run, iter, stage| last_line(root.get()?, run, iter, log_of(stage))));
    let asked = Arc::new(AtomicBool::new(false));
    let (pressed, presses) = channel();
    let keys = out
        .is_terminal()
        .then(|| {
            Keys::read(move |key| {
                let _ = pressed.send(key);
            })
        })
        .flatten();
    std::thread::scope(|scope| {
        let fresh = scope.spawn(|| live.keep_fresh());
        let (live, wanted) = (&live, Arc::clone(&asked));
        if keys.is_some() {
            scope.spawn(move || listen_to_keys(&presses, live, &wanted));
        }
        let stop = work(dir, amount, live, (&asked, &root));
        drop(keys);
        let (summary, took) = live.end();
        fresh.thread().unpark();
        stop.map(|stop| Done { stop, summary, took }).map_err(told)
    })
}

/// `q` stops after the running iteration, `t` prints where things stand.
fn listen_to_keys(presses: &std::sync::mpsc::Receiver<u8>, live: &Live<'_>, asked: &AtomicBool) {
    while !live.is_over() {
        match presses.recv_timeout(Duration::from_millis(200)) {
            Ok(b'q') => asked.store(true, Ordering::SeqCst),
            Ok(b't') => live.snapshot(),
            Ok(_) | Err(_) => {}
        }
    }
}

fn work(
    dir: &Path,
    amount: Amount,
    live: &Live<'_>,
    (asked, root): (&AtomicBool, &OnceLock<PathBuf>),
) -> Result<Option<Stop>, runner_host::Error> {
    let mut audience = |event: &Event| live.tell(event);
    let wants_stop = Box::new(|| asked.load(Ordering::SeqCst));
    let mut workshop = Workshop::open(dir, &mut audience, wants_stop)?;
    let _ = root.set(workshop.root().to_owned());
    workshop.listen()?;
    if let Some(taken) = take_up(&mut workshop)? {
        live.say(&TakenUp(taken));
    }
    if let Some(stop) = surveyed(&mut workshop, amount)? {
        return Ok(Some(stop));
    }
    match amount {
        Amount::UntilItStops { at_most } => step::run_loop(&mut workshop, at_most).map(Some),
        Amount::OneStep => Ok(match step::step(&mut workshop)? {
            StepEnd::Stopped(stop) => Some(stop),
            StepEnd::Iterated(it) => match it.transition.next {
                Next::Stop(stop) => Some(stop),
                Next::Go | Next::Wait(_) => None,
            },
        }),
    }
}

/// Asks the guard before the first session, unless the run is paused or the user breaks in.
fn surveyed(workshop: &mut Workshop<'_>, amount: Amount) -> Result<Option<Stop>, runner_host::Error> {
    if !workshop.is_before_first() {
        return Ok(None);
    }
    let stop = if amount == Amount::OneStep { None } else { workshop.pause(None)? };
    if stop.is_some() { Ok(stop) } else { step::baseline(workshop) }
}

/// What a crash had left and what became of it.
struct TakenUp(Taken);

impl Reply for TakenUp {
    fn json(&self) -> Value {
        json!({ "event": "recovered", "recovered": recovered_json(&self.0) })
    }

    fn plain(&self) -> Vec<Line> {
        vec![recovered_line(&self.0)]
    }

    fn drawn(&self, _: &Pen) -> String {
        format!("{}\n", recovered_text(&self.0))
    }
}

impl Reply for Done {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.loop/1",
            "event": "end",
            "stop": self.stop,
            "iterations": self.summary.iterations,
            "leaves": self.summary.leaves,
            "spent": self.summary.spent,
            "cost": self.summary.spent.basis(),
            "why": self.stop.as_ref().map(why),
            "next": self.stop.as_ref().map(|stop| self.summary.next(stop)),
            "exit": self.exit().0,
        })
    }

    fn plain(&self) -> Vec<Line> {
        let stop = self.stop.as_ref().map_or("none", Stop::as_str);
        let line = Line::new().with("event", "end").with("stop", stop);
        let mut line = line.with("iterations", self.summary.iterations);
        if let Some(spent) = spent_text(&self.summary.spent, &self.summary.budget) {
            line = line.with("spent", spent);
        }
        if let Some(stop) = self.stop.as_ref().filter(|stop| **stop != Stop::Complete) {
            line = self
                .summary
                .next(stop)
                .iter()
                .fold(line.with("why", why(stop)), |line, next| line.with("next", next));
        }
        vec![line.with("exit", self.exit().0)]
    }

    fn drawn(&self, pen: &Pen) -> String {
        self.stop.as_ref().map(|stop| self.summary.drawn(stop, self.took, pen)).unwrap_or_default()
    }

    fn ends_lines(&self) -> bool {
        true
    }

    fn exit(&self) -> Exit {
        self.stop.as_ref().map_or(Exit::SUCCESS, |stop| Exit(stop.exit_code()))
    }
}
