//! The room: where guard and checks run. It is a checkout of exactly the files to commit, mounted at the repository's own path
//! in a sandbox that can change nothing outside of it.
//!
//! The checkout stays between runs of the guard and is updated by difference, so that its cost follows the change and build
//! caches stay warm. Programs in the room never see the repository's own git directory: they get one of their own, with HEAD at
//! the candidate.

mod accepted;
mod caches;
mod candidate_view;
mod checkout;
mod cleaning;
mod exact_files;
mod git_dir;
mod home;
mod kept;
mod secrets;
mod setup;
mod slot;
mod tree_stamps;
mod tree_switch;

use std::path::{Path, PathBuf};

use runner_core::config::{GuardConfig, IgnoredFiles, RoomMode};
use runner_core::model::id::RunId;
use runner_core::model::object_id::{CommitId, TreeId};
use runner_core::step::RoomLevel;

use crate::agent::command::PreparedCommand;
use crate::agent::sandbox::{Bubblewrap, bubblewrap_fix, hidden_programs};
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{Git, PathSet, path_of};
use accepted::AcceptedFiles;
use caches::RoomCache;
pub(crate) use caches::users_caches;
pub(crate) use candidate_view::CandidateView;
use checkout::Checkout;
pub(crate) use kept::{KeptFiles, KeptStore};
pub(crate) use setup::SetupNeed;
pub(crate) use slot::RoomSlot;

/// How many protected files are mounted read-only. The others are compared after the run.
const PROTECTED_MAX: usize = 100;

/// The files that a guard run is about.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) tree: TreeId,
    /// A commit with that tree, for programs that ask git.
    pub(crate) commit: CommitId,
}

/// Files of a check that are put into a checkout before it runs.
pub(crate) trait CheckFiles {
    /// Where they are, relative to the repository.
    fn destinations(&self) -> Vec<PathBuf>;

    /// Writes them below a folder, in the place of whatever is there. No link is followed.
    fn lay_in(&self, root: &Path) -> Result<(), Error>;
}

/// Where the guard of a run runs.
#[derive(Debug)]
pub(crate) enum GuardRoom {
    /// In the work tree; with the reason, until it is announced.
    InPlace {
        why: Option<String>,
    },
    Room(Box<Room>),
}

impl GuardRoom {
    /// Chooses the place for a run by its configuration, and prepares the room at a commit of the run.
    pub(crate) fn choose(
        git: &Git,
        run: &RunId,
        guard: &GuardConfig,
        base: &Candidate,
    ) -> Result<Self, Error> {
        Self::choose_at(&git.paths().room(), git, run, guard, base, None)
    }

    /// A place for one run of the guard in a clean checkout: nothing is there but the files of the commit, those that the
    /// configuration keeps, and what the setup makes.
    pub(crate) fn fresh(
        git: &Git,
        run: &RunId,
        guard: &GuardConfig,
        base: &Candidate,
    ) -> Result<Self, Error> {
        Self::throwaway(git, run, guard, base, &git.paths().fresh_room())
    }

    /// The same, with the kept files of the work tree as they are now: for a configuration that is only tried.
    pub(crate) fn trial(
        git: &Git,
        run: &RunId,
        guard: &GuardConfig,
        base: &Candidate,
    ) -> Result<Self, Error> {
        let folder = git.paths().fresh_room();
        atomic::remove_any(&folder)?;
        Self::choose_at(&folder, git, run, guard, base, Some(KeptFiles::of_work_tree(git)))
    }

    /// A place for one held-out check, in a folder that the caller removes.
    pub(crate) fn throwaway(
        git: &Git,
        run: &RunId,
        guard: &GuardConfig,
        base: &Candidate,
        folder: &Path,
    ) -> Result<Self, Error> {
        atomic::remove_any(folder)?;
        Self::choose_at(folder, git, run, guard, base, None)
    }

    fn choose_at(
        folder: &Path,
        git: &Git,
        run: &RunId,
        guard: &GuardConfig,
        base: &Candidate,
        kept: Option<KeptFiles>,
    ) -> Result<Self, Error> {
        if guard.room == RoomMode::InPlace {
            return Ok(Self::InPlace { why: Some("the configuration has room = \"in-place\"".to_owned()) });
        }
        setup::check_kept(&guard.keep)?;
        let room = match Bubblewrap::find(git.root()) {
            Ok(bubblewrap) => {
                let kept = kept.map_or_else(|| kept_by_run(git, run, guard), Ok)?;
                let place = RoomPlace { folder, kept, bubblewrap };
                Room::open(git, run, guard, base, place).map_err(|error| error.to_string())
            }
            Err(why) => Err(why),
        };
        match room {
            Ok(room) => Ok(Self::Room(Box::new(room))),
            Err(why) if guard.room == RoomMode::Require => {
                let fix = bubblewrap_fix(&why);
                Err(UserError::NoRoom { why, fix }.into())
            }
            Err(why) => Ok(Self::InPlace { why: Some(why) }),
        }
    }

    /// Lets later runs find the ignored files and caches that the last one left.
    pub(crate) fn accept(&mut self) -> Result<(), Error> {
        match self {
            Self::InPlace { .. } => Ok(()),
            Self::Room(room) => room.accept(),
        }
    }

    pub(crate) fn level(&self, guard: &GuardConfig) -> RoomLevel {
        match self {
            Self::InPlace { .. } => RoomLevel::InPlace,
            Self::Room(_) => RoomLevel::Bubblewrap { ignored: guard.ignored },
        }
    }
}

/// The kept files of a run. Those that are not copied yet are copied now.
fn kept_by_run(git: &Git, run: &RunId, guard: &GuardConfig) -> Result<KeptFiles, Error> {
    let store = KeptStore::of_run(git, run);
    store.take(git, &guard.keep)?;
    Ok(KeptFiles::of_store(git, store))
}

/// What a room is opened with.
struct RoomPlace<'a> {
    folder: &'a Path,
    kept: KeptFiles,
    bubblewrap: Bubblewrap,
}

/// A checkout in the runner's private folder, and the sandbox around it.
#[derive(Debug)]
pub(crate) struct Room {
    bubblewrap: Bubblewrap,
    folder: PathBuf,
    checkout: Checkout,
    /// The files that the last candidate protects.
    read_only: Vec<PathBuf>,
    /// The files of a check that are here while it runs.
    laid: Vec<PathBuf>,
    caches: Vec<RoomCache>,
    /// Folders with objects that the candidate may need.
    object_folders: Vec<PathBuf>,
    /// Where the user's ignored files come from.
    kept: KeptFiles,
    /// The ignored files and caches that later runs may find; none until the first run.
    accepted: Option<AcceptedFiles>,
    /// Whether the setup ran since they were accepted.
    has_run_setup: bool,
}

impl Room {
    /// Opens the room of a run, or creates it, with the files of a commit.
    fn open(
        git: &Git,
        run: &RunId,
        guard: &GuardConfig,
        base: &Candidate,
        place: RoomPlace<'_>,
    ) -> Result<Self, Error> {
        setup::ensure_owner(place.folder, run)?;
        for name in ["tree", "cache"] {
            atomic::create_folders(git.paths().git_dir(), &place.folder.join(name))?;
        }
        Self::open_in(git, guard, base, place)
    }

    /// A room of its own in a new, empty folder. Nothing that another guard left is in it.
    pub(crate) fn fresh(
        git: &Git,
        folder: &Path,
        guard: &GuardConfig,
        base: &Candidate,
        kept: KeptFiles,
    ) -> Result<Self, Error> {
        let no_room = |why: String| {
            let fix = bubblewrap_fix(&why);
            Error::from(UserError::NoRoom { why, fix })
        };
        let bubblewrap = Bubblewrap::find(git.root()).map_err(no_room)?;
        atomic::ensure_folder(folder)?;
        for name in ["tree", "cache"] {
            atomic::ensure_folder(&folder.join(name))?;
        }
        Self::open_in(git, guard, base, RoomPlace { folder, kept, bubblewrap })
    }

    fn open_in(
        git: &Git,
        guard: &GuardConfig,
        base: &Candidate,
        place: RoomPlace<'_>,
    ) -> Result<Self, Error> {
        let RoomPlace { folder, kept, bubblewrap } = place;
        let mut checkout = Checkout::new(folder);
        checkout.update(git, &base.tree)?;
        kept.copy_new(folder, &guard.keep)?;
        let caches = caches::fill(&canonical(git.root()), &checkout.names(git)?, &folder.join("cache"))?;
        let object_folders = git_dir::object_folders(git);
        Ok(Self {
            bubblewrap,
            folder: folder.to_owned(),
            checkout,
            read_only: Vec::new(),
            laid: Vec::new(),
            caches,
            object_folders,
            kept,
            accepted: None,
            has_run_setup: false,
        })
    }

    /// Makes the files of the room those of a candidate. `Err` has why git cannot check it out.
    pub(crate) fn enter(
        &mut self,
        git: &Git,
        guard: &GuardConfig,
        candidate: &Candidate,
        protected: &PathSet,
    ) -> Result<(), Error> {
        match guard.ignored {
            IgnoredFiles::Room => self.keep_accepted(git, guard)?,
            IgnoredFiles::None | IgnoredFiles::Worktree => self.checkout.remove_ignored(git)?,
        }
        self.checkout.update(git, &candidate.tree)?;
        match guard.ignored {
            IgnoredFiles::Room => {}
            IgnoredFiles::None => self.kept.copy_again(&self.folder, &guard.keep)?,
            IgnoredFiles::Worktree => setup::copy_ignored(git, &self.checkout)?,
        }
        let is_file = |path: &PathBuf| {
            self.checkout.tree.join(path).symlink_metadata().is_ok_and(|metadata| metadata.is_file())
        };
        self.read_only = protected.iter().map(|path| path_of(path).to_owned()).filter(is_file).collect();
        exact_files::restore(git, &mut self.checkout, &candidate.tree, &self.read_only)?;
        self.checkout.stamp(&self.read_only);
        let temporary = self.folder.join("tmp");
        atomic::remove_any(&temporary)?;
        atomic::ensure_folder(&temporary)?;
        git_dir::write(git, &self.folder.join("git"), &self.checkout.index, &candidate.commit)?;
        Ok(())
    }

    /// Removes what programs left in the room since its files were last accepted, so that every run begins with accepted files.
    fn keep_accepted(&mut self, git: &Git, guard: &GuardConfig) -> Result<(), Error> {
        let is_unaccepted = accepted::is_unaccepted(&self.folder);
        let mut is_stale = self.accepted.is_none() || !is_unaccepted || self.has_run_setup;
        let places = self.changeable(git)?;
        if let (Some(accepted), true) = (&self.accepted, is_unaccepted) {
            let has_removed = accepted.restore(&places)?;
            let is_damaged = |path: &&String| {
                let target = self.checkout.tree.join(path.trim_end_matches('/'));
                !accepted.is_complete(&target)
            };
            let damaged: Vec<String> = guard.keep.iter().filter(is_damaged).cloned().collect();
            self.kept.copy_again(&self.folder, &damaged)?;
            if has_removed || !damaged.is_empty() {
                // A tracked file may have been reached through a link to an ignored one.
                self.checkout.distrust();
            }
            if self.has_run_setup || !damaged.is_empty() {
                setup::forget(&self.folder)?;
            }
            is_stale |= !damaged.is_empty();
        }
        if self.accepted.is_none() && is_unaccepted {
            // Another process ran something here: which files it left is not known.
            self.checkout.remove_ignored(git)?;
            setup::forget(&self.folder)?;
            let cache = self.folder.join("cache");
            atomic::remove_any(&cache)?;
            atomic::ensure_folder(&cache)?;
            self.caches = caches::fill(&canonical(git.root()), &self.checkout.names(git)?, &cache)?;
            self.kept.copy_again(&self.folder, &guard.keep)?;
        }
        if is_stale {
            self.accepted = Some(AcceptedFiles::read(&self.changeable(git)?)?);
        }
        self.has_run_setup = false;
        accepted::mark(&self.folder)
    }

    /// Lets later runs find what the last one left in the room.
    pub(crate) fn accept(&mut self) -> Result<(), Error> {
        self.has_run_setup = false;
        accepted::unmark(&self.folder)
    }

    /// Records that the setup succeeded for the files that are in the room now.
    pub(crate) fn set_up(&mut self, marker: &Path, inputs: &str) -> Result<(), Error> {
        self.has_run_setup = true;
        atomic::write_no_sync(marker, inputs.as_bytes())
    }

    /// Everything in the room that stays from one run to the next: ignored files, and caches.
    fn changeable(&mut self, git: &Git) -> Result<Vec<PathBuf>, Error> {
        let mut places = self.checkout.untracked(git)?;
        places.push(self.folder.join("cache"));
        Ok(places)
    }

    /// Puts the files of a check into the room. Programs in it cannot change them.
    pub(crate) fn lay(&mut self, files: &dyn CheckFiles) -> Result<(), Error> {
        files.lay_in(&self.checkout.tree)?;
        self.laid = files.destinations();
        let laid = &self.laid;
        self.read_only.retain(|path| !laid.contains(path));
        Ok(())
    }

    /// The folder with the files of the room.
    pub(crate) fn files(&self) -> &Path {
        &self.checkout.tree
    }

    /// Whether the setup must run before the guard, for the files that are in the room now.
    pub(crate) fn setup_need(&self, git: &Git, guard: &GuardConfig) -> Result<SetupNeed, Error> {
        setup::need(git, &self.folder, &self.checkout, guard)
    }

    /// Puts a command into the room.
    pub(crate) fn wrap(
        &self,
        git: &Git,
        guard: &GuardConfig,
        mut command: PreparedCommand,
    ) -> PreparedCommand {
        let root = canonical(git.root());
        let tree = &self.checkout.tree;
        let mut argv = self.bubblewrap.base_argv(guard.network, &guard.sockets);
        argv.mount("--bind", &self.folder.join("tmp"), Path::new("/tmp"));
        let caches = caches::mounts(&root, &self.caches, &self.folder.join("cache"));
        for mount in home::mounts(&root).iter().chain(&caches).chain(&secrets::mounts(&root)) {
            mount.add_to(&mut argv);
        }
        for path in hidden_programs(&command, &root) {
            argv.mount("--ro-bind", &path, &path);
        }
        argv.hide_user_sockets(&root, &guard.sockets);
        argv.mount("--bind", tree, &root);
        argv.mount("--bind", &self.folder.join("git"), &root.join(".git"));
        for (nth, objects) in self.object_folders.iter().enumerate() {
            argv.mount("--ro-bind", objects, &root.join(".git").join(git_dir::objects_name(nth)));
        }
        for path in self.read_only.iter().take(PROTECTED_MAX).chain(&self.laid) {
            argv.mount("--ro-bind", &tree.join(path), &root.join(path));
        }
        argv.hide_heldout(guard.hidden.as_deref());
        argv.finish(&mut command, &root);
        command
    }

    /// Ends a run of the guard: the protected files that it changed in the room.
    pub(crate) fn leave(&mut self, git: &Git) -> Result<Vec<Vec<u8>>, Error> {
        let changed = self.checkout.changed(git, &self.read_only)?;
        self.checkout.mark_used();
        Ok(changed)
    }

    /// Begins to check out a candidate beside other work. A guard that failed may have left files that [`Self::enter`] removes
    /// first.
    fn begin_update(&mut self, git: &Git, candidate: &TreeId) {
        if !accepted::is_unaccepted(&self.folder) {
            self.checkout.begin_update(git, candidate);
        }
    }
}

/// Resolves links: a mount point must be a real path.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
