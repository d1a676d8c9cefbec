//! All power cuts of a scenario from one traced run: the disk is copied before every barrier, and each different copy is judged
//! when the run has ended. Judging in between would take so long that the kernel writes back what must be lost.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, umount2};
use testkit::test_repo::{TestRepo, run as run_command, temporary_root};

use super::disk_image::copy_image;
use super::{MountedScenario, PowerCut, WorkPromise, continue_from, skip_reason};
use crate::disk_state::{hash_folder, hash_sparse_file};
use crate::disk_view::DiskView;
use crate::injector::{CallClass, Injection, trace};
use crate::oracle::{Belongings, judge};
use crate::point::{PointSpec, PointVerdict};
use crate::pool::POINT_TIMEOUT;
use crate::scenarios::{FaultScenario, Workspace, find};
use crate::sweep::{NextState, StateNumbers, SweptPoint, print_points};

/// What a power cut leaves: a copy of the disk, and what is beside it.
struct CutState {
    folder: PathBuf,
    is_promised: bool,
}

/// The power cuts of a family in a scenario.
pub(super) struct CutSweep<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) family: &'static str,
    pub(super) scenario: &'a FaultScenario,
    pub(super) cut: &'a PowerCut,
    pub(super) every: usize,
}

impl CutSweep<'_> {
    pub(super) fn run(&self) {
        let mounted = match skip_reason(self.scenario) {
            Some(reason) => Err(reason),
            None => MountedScenario::prepare(self.workspace, self.scenario, self.cut),
        };
        let points = match mounted {
            Ok(mounted) => self.points(&mounted),
            Err(reason) => vec![SweptPoint { spec: self.spec(1), verdict: PointVerdict::Skipped(reason) }],
        };
        print_points(&points);
    }

    fn spec(&self, number: usize) -> PointSpec {
        PointSpec::new(self.family, self.scenario.name, &[number])
    }

    fn points(&self, mounted: &MountedScenario) -> Vec<SweptPoint> {
        let folder = tempfile::tempdir_in(temporary_root()).expect("a temporary folder");
        let before = folder.path().join("before.json");
        fs::write(&before, mounted.before.to_json().to_string()).expect("a file");
        let mut cuts = CutList { mounted, folder: folder.path(), states: BTreeMap::new(), keys: Vec::new() };
        cuts.record(self.scenario);
        umount2(&mounted.disk, MntFlags::MNT_DETACH).expect("umount");
        let mut states = StateNumbers::new(self.every);
        let mut points = Vec::new();
        for (number, key) in (1..).zip(&cuts.keys) {
            let verdict = match (states.add(key, number), cuts.states.get(key)) {
                (NextState::Same(first), _) => PointVerdict::Same(self.spec(first)),
                (NextState::New, Some(state)) => {
                    let args = CutArgs {
                        scenario: self.scenario.name.to_owned(),
                        folder: mounted.repo.outside().to_owned(),
                        before: before.clone(),
                        cut: state.folder.clone(),
                        options: self.cut.options.to_owned(),
                        is_promised: state.is_promised,
                    };
                    judge_in_view(self.workspace, &args, &folder.path().join("view"))
                }
                (NextState::New | NextState::LeftOut, _) => PointVerdict::NotReached,
            };
            points.push(SweptPoint { spec: self.spec(number), verdict });
        }
        points
    }
}

/// The cuts of one run.
struct CutList<'a> {
    mounted: &'a MountedScenario,
    folder: &'a Path,
    states: BTreeMap<String, CutState>,
    /// The key of the state at each barrier, and of the last one after the command's end.
    keys: Vec<String>,
}

impl CutList<'_> {
    fn record(&mut self, scenario: &FaultScenario) {
        let MountedScenario { repo, disk, .. } = self.mounted;
        let promise = WorkPromise::new(repo);
        let mut observer = |_: usize, _: &_| self.add(promise.is_made());
        let injection = Injection {
            class: CallClass::Barriers,
            root: disk,
            at: 0,
            fault: None,
            observer: Some(&mut observer),
        };
        let outcome = trace(&repo.runner_command(scenario.command), injection);
        assert_eq!(outcome.exit_code, Some(0), "`runner {}` without a fault", scenario.command.join(" "));
        self.add(promise.is_made());
    }

    fn add(&mut self, is_promised: bool) {
        let MountedScenario { repo, image, .. } = self.mounted;
        let folder = self.folder.join(format!("cut-{}", self.keys.len() + 1));
        let beside = folder.join("beside");
        fs::create_dir_all(&beside).expect("a folder");
        let copy = folder.join("disk.img");
        copy_image(image, &copy).expect("a copy of the disk");
        copy_beside_disk(repo.outside(), &beside);
        let key = format!("{} {} {is_promised}", hash_sparse_file(&copy), hash_folder(&beside));
        if self.states.contains_key(&key) {
            fs::remove_dir_all(&folder).expect("a copy of the disk");
        } else {
            self.states.insert(key.clone(), CutState { folder, is_promised });
        }
        self.keys.push(key);
    }
}

/// Copies everything but the disk and its images.
fn copy_beside_disk(outside: &Path, target: &Path) {
    for entry in fs::read_dir(outside).expect("the folder of the scenario").flatten() {
        let name = entry.file_name();
        let is_disk = ["disk", "disk.img", "new.img", "new-disk"].iter().any(|other| name == *other);
        if !is_disk {
            let output =
                run_command(std::process::Command::new("cp").arg("-a").arg(entry.path()).arg(target));
            assert_eq!(output.code, Some(0), "cp: {}", output.stderr);
        }
    }
}

/// Which cut to judge.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CutArgs {
    scenario: String,
    folder: PathBuf,
    before: PathBuf,
    /// The folder with the copies.
    cut: PathBuf,
    /// The mount options of the disk.
    #[arg(long, default_value = "")]
    options: String,
    #[arg(long = "promised")]
    is_promised: bool,
}

fn judge_in_view(workspace: &Workspace, cut: &CutArgs, scratch: &Path) -> PointVerdict {
    let CutArgs { scenario, folder, before, cut: copies, options, is_promised } = cut;
    let [before, copies, templates] =
        [before, copies, workspace.templates()].map(|path| path.display().to_string());
    let mut args =
        vec!["judge-cut".to_owned(), scenario.clone(), folder.display().to_string(), before, copies];
    args.extend(["--runner".to_owned(), workspace.runner.clone(), "--templates".to_owned(), templates]);
    args.push(format!("--options={options}"));
    args.extend(is_promised.then(|| "--promised".to_owned()));
    let Some(output) = DiskView { folder, scratch }.run(&args, POINT_TIMEOUT) else {
        return PointVerdict::Bad(vec![format!("no end within {} s", POINT_TIMEOUT.as_secs())]);
    };
    PointVerdict::parse(&output.stdout).unwrap_or_else(|| {
        PointVerdict::Bad(vec![format!("the judgement failed: {}", output.stderr.trim_end())])
    })
}

/// Continues from the copies of a cut; runs in a view of the scenario's folder.
pub(crate) fn judge_cut(workspace: &Workspace, args: &CutArgs) -> PointVerdict {
    let CutArgs { scenario, folder, before, cut, options, is_promised } = args;
    let scenario = find(scenario).unwrap_or_else(|| panic!("`{scenario}` is not a scenario"));
    let repo = TestRepo::borrow(&workspace.runner, folder).at(folder.join("disk").join(scenario.work_tree));
    let before = fs::read_to_string(before).ok().and_then(|text| Belongings::parse(&text));
    let before = before.expect("what belonged to the user before the command");
    for entry in fs::read_dir(folder).expect("the folder of the scenario").flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        match entry.file_name().to_str() {
            Some("disk" | "disk.img") => {}
            _ if is_folder => fs::remove_dir_all(entry.path()).expect("a folder"),
            _ => fs::remove_file(entry.path()).expect("a file"),
        }
    }
    crate::scenarios::populate(folder, &cut.join("beside"));
    if let Err(reason) = continue_from(&repo, &cut.join("disk.img"), options, *is_promised) {
        return PointVerdict::Bad(vec![reason]);
    }
    PointVerdict::of(judge(&repo, &scenario, &before))
}
