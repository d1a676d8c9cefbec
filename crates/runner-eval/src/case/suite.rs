//! Loads the cases of a folder, computes the digests of their files, and filters them for a command.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use regex::Regex;
use runner_core::agents::scenario::Scenario;
use runner_core::model::digest::Sha256;
use runner_core::strict::nearest;
use runner_term::CommandError;

use crate::case::Case;
use crate::files;

/// The name of the case file in a case's own folder.
const CASE_FILE: &str = "case.toml";

/// A case file that is valid, with the paths of its other files. Their contents stay on the disk.
#[derive(Clone, Debug)]
pub(crate) struct LoadedCase {
    pub(crate) case: Case,
    pub(crate) file: PathBuf,
    /// The folder that its paths are relative to.
    pub(crate) folder: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaseDigests {
    /// Of everything that the result of a trial depends on: all but the solution and the cheats.
    pub(crate) task: Sha256,
    pub(crate) fixture: Option<Sha256>,
    /// Of the checks and the hidden files.
    pub(crate) checks: Sha256,
    /// Of everything that belongs to the case.
    pub(crate) whole: Sha256,
}

impl LoadedCase {
    pub(crate) fn load(file: &Path) -> Result<Self, CommandError> {
        let what = || format!("could not read the case `{}`", file.display());
        let bytes = fs::read(file).map_err(|error| CommandError::io(what(), file, &error))?;
        let case = Case::decode(&bytes).map_err(|problems| {
            let error = CommandError::refused("case", what());
            let error = problems.iter().fold(error, |error, problem| error.cause(problem.to_string()));
            error.hint("fix the file; docs/guide/evaluation.md lists every key")
        })?;
        let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
        let loaded = Self { case, file: file.to_owned(), folder };
        for name in loaded.case.attachments() {
            let path = loaded.folder.join(name);
            fs::symlink_metadata(&path).map_err(|error| CommandError::io(what(), &path, &error))?;
        }
        if let Some(rootfs) = loaded.rootfs().filter(|rootfs| !rootfs.is_dir()) {
            let error = io::Error::from(io::ErrorKind::NotFound);
            return Err(CommandError::io(what(), &rootfs, &error)
                .hint("export it from an image: podman export, or debootstrap"));
        }
        loaded.check_scenarios()?;
        Ok(loaded)
    }

    /// Reads every file of the case and computes its digests.
    pub(crate) fn digests(&self) -> Result<CaseDigests, CommandError> {
        self.compute_digests().map_err(|error| {
            CommandError::io(format!("could not read the case `{}`", self.case.id), &self.folder, &error)
        })
    }

    fn compute_digests(&self) -> io::Result<CaseDigests> {
        let attachment = |path: &Option<String>| match path {
            None => Ok(None),
            Some(path) => files::digest_tree(&self.folder.join(path), &[]).map(Some),
        };
        let mut checks = serde_json::to_vec(&self.case.checks).unwrap_or_default();
        checks.extend(
            attachment(&self.case.hidden)?.map(|digest| digest.to_string()).unwrap_or_default().bytes(),
        );
        Ok(CaseDigests {
            task: self.digest_without(&self.case.answers())?,
            fixture: attachment(&self.case.fixture)?,
            checks: Sha256::of(&checks),
            whole: self.digest_without(&[])?,
        })
    }

    /// The digest of the case file, of the files that it names, and of everything in the case's own folder.
    fn digest_without(&self, excluded: &[&str]) -> io::Result<Sha256> {
        let mut listing = format!("case {}\n", Sha256::of(&fs::read(&self.file)?));
        for name in self.case.attachments().into_iter().filter(|name| !excluded.contains(name)) {
            let digest = files::digest_tree(&self.folder.join(name), &[])?;
            listing.push_str(&format!("{name} {digest}\n"));
        }
        if self.file.file_name().is_some_and(|name| name == CASE_FILE) {
            let digest = files::digest_tree(&self.folder, &[excluded, &self.rootfs_name()[..]].concat())?;
            listing.push_str(&format!("folder {digest}\n"));
        }
        if let Some(rootfs) = self.rootfs() {
            listing.push_str(&format!("rootfs {}\n", files::digest_rootfs(&rootfs)?));
        }
        Ok(Sha256::of(listing.as_bytes()))
    }

    /// The root file system, as the case names it.
    fn rootfs_name(&self) -> Vec<&str> {
        self.case.environment.rootfs.as_deref().into_iter().collect()
    }

    /// An invalid scenario is an error of the case, so it is reported before any trial starts.
    fn check_scenarios(&self) -> Result<(), CommandError> {
        for name in self.case.answers().into_iter().chain(self.case.config.scenario()) {
            let path = self.folder.join(name);
            let what = || format!("could not read the scenario `{}`", path.display());
            let text = fs::read_to_string(&path).map_err(|error| CommandError::io(what(), &path, &error))?;
            Scenario::decode(&text)
                .map_err(|error| CommandError::refused("scenario", what()).cause(error.to_string()))?;
        }
        Ok(())
    }

    /// The git bundle that the repository is cloned from, if the fixture is one.
    pub(crate) fn bundle(&self) -> Option<PathBuf> {
        let fixture = self.case.fixture.as_ref()?;
        fixture.ends_with(".bundle").then(|| self.folder.join(fixture))
    }

    /// The folder with the initial files of the repository; none if it is cloned from a bundle.
    pub(crate) fn fixture(&self) -> Option<PathBuf> {
        if self.bundle().is_some() {
            None
        } else {
            self.case.fixture.as_ref().map(|name| self.folder.join(name))
        }
    }

    /// The folder with the tasks and checks that the run starts with.
    pub(crate) fn plan(&self) -> Option<PathBuf> {
        self.case.plan.as_ref().map(|name| self.folder.join(name))
    }

    /// The folder with the held-out checks of the run.
    pub(crate) fn heldout(&self) -> Option<PathBuf> {
        self.case.heldout.as_ref().map(|name| self.folder.join(name))
    }

    /// The folder that is the root file system of the trial, by its absolute path.
    pub(crate) fn rootfs(&self) -> Option<PathBuf> {
        let name = self.case.environment.rootfs.as_ref()?;
        Some(files::absolute(&self.folder.join(name)))
    }

    /// The folder with the files for hidden checks.
    pub(crate) fn hidden(&self) -> Option<PathBuf> {
        self.case.hidden.as_ref().map(|name| self.folder.join(name))
    }
}

/// The cases of a folder.
#[derive(Debug)]
pub(crate) struct CaseFolder {
    /// Ordered by id.
    pub(crate) cases: Vec<LoadedCase>,
    /// Case files that cannot be used.
    pub(crate) broken: Vec<BrokenCase>,
}

#[derive(Debug)]
pub(crate) struct BrokenCase {
    /// The name of the folder or file, which is usually also the id.
    pub(crate) name: String,
    pub(crate) error: CommandError,
}

/// Loads all cases of a folder. A case is `<id>/case.toml` or `<id>.toml`.
pub(crate) fn load_cases(folder: &Path) -> Result<CaseFolder, CommandError> {
    let what = "could not read the cases";
    let entries = fs::read_dir(folder).map_err(|error| {
        CommandError::io(what, folder, &error)
            .hint("name their folder with --cases DIR, or the folder that holds eval/ with -C DIR")
    })?;
    let mut found = CaseFolder { cases: Vec::new(), broken: Vec::new() };
    for entry in entries.flatten() {
        let path = entry.path();
        let inner = path.join(CASE_FILE);
        let file = if inner.is_file() {
            inner
        } else if path.extension().is_some_and(|extension| extension == "toml") && path.is_file() {
            path.clone()
        } else {
            continue;
        };
        match LoadedCase::load(&file) {
            Ok(loaded) => found.cases.push(loaded),
            Err(error) => {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                found.broken.push(BrokenCase { name, error });
            }
        }
    }
    found.cases.sort_by(|a, b| a.case.id.cmp(&b.case.id));
    found.broken.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some([first, second]) = found.cases.array_windows().find(|[a, b]| a.case.id == b.case.id) {
        return Err(CommandError::refused("duplicate_case", what).cause(format!(
            "`{}` and `{}` have the same id `{}`",
            first.file.display(),
            second.file.display(),
            first.case.id
        )));
    }
    Ok(found)
}

/// Which cases a command is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaseFilter {
    /// Empty for all cases.
    pub(crate) ids: Vec<String>,
    /// A case must have all of these.
    pub(crate) tags: Vec<String>,
    /// A pattern for the id, with `*` and `?`.
    pub(crate) pattern: Option<String>,
    pub(crate) sample: Option<CaseSample>,
}

/// A pseudo-random choice of `count` cases, the same for the same seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaseSample {
    pub(crate) count: usize,
    pub(crate) seed: u64,
}

/// The cases that match the filter, ordered by id. A broken case is an error unless the filter names other cases: a suite
/// must not become smaller without notice.
pub(crate) fn filter_cases(found: CaseFolder, filter: &CaseFilter) -> Result<Vec<LoadedCase>, CommandError> {
    let CaseFolder { cases, broken } = found;
    let is_needed = |broken: &BrokenCase| filter.ids.is_empty() || filter.ids.contains(&broken.name);
    if let Some(broken) = broken.into_iter().find(is_needed) {
        return Err(broken.error);
    }
    let ids: Vec<&str> = cases.iter().map(|loaded| loaded.case.id.as_str()).collect();
    if let Some(unknown) = filter.ids.iter().find(|id| !ids.contains(&id.as_str())) {
        let hint = match nearest(unknown, &ids) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "list the cases: runner eval list".to_owned(),
        };
        return Err(CommandError::refused("no_such_case", format!("no such case: `{unknown}`")).hint(hint));
    }
    let glob = filter.pattern.as_deref().map(glob_regex);
    let matches_glob = |id: &str| match &glob {
        None => true,
        Some(None) => false,
        Some(Some(glob)) => glob.is_match(id),
    };
    let mut chosen = cases;
    chosen.retain(|loaded| {
        let case = &loaded.case;
        let is_named = filter.ids.is_empty() || filter.ids.contains(&case.id);
        let has_tags = filter.tags.iter().all(|tag| case.tags.contains(tag));
        is_named && has_tags && matches_glob(&case.id)
    });
    if let Some(CaseSample { count, seed }) = filter.sample {
        chosen.sort_by_key(|loaded| Sha256::of(format!("{seed} {}", loaded.case.id).as_bytes()));
        chosen.truncate(count);
        chosen.sort_by(|a, b| a.case.id.cmp(&b.case.id));
    }
    if chosen.is_empty() {
        return Err(CommandError::refused("no_cases", "no case matches these options")
            .hint("list the cases and their tags: runner eval list"));
    }
    Ok(chosen)
}

fn glob_regex(pattern: &str) -> Option<Regex> {
    let escaped = regex::escape(pattern).replace("\\*", ".*").replace("\\?", ".");
    Regex::new(&format!("^(?:{escaped})$")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three_cases(folder: &Path) -> CaseFolder {
        for (id, tag) in [("alpha", "fast"), ("beta", "slow"), ("gamma", "fast")] {
            let text = format!(
                "[case]\nid = \"{id}\"\ngoal = \"g\"\ntags = [\"{tag}\"]\n[[checks]]\ntype = \"git_clean\"\n"
            );
            fs::write(folder.join(format!("{id}.toml")), text).unwrap();
        }
        load_cases(folder).unwrap()
    }

    fn ids(found: &CaseFolder, filter: &CaseFilter) -> Vec<String> {
        let found = CaseFolder { cases: found.cases.clone(), broken: Vec::new() };
        filter_cases(found, filter).unwrap().into_iter().map(|loaded| loaded.case.id).collect()
    }

    #[test]
    fn cases_are_filtered_by_id_tag_pattern_and_sample() {
        let folder = tempfile::tempdir().unwrap();
        let cases = three_cases(folder.path());
        assert_eq!(ids(&cases, &CaseFilter::default()), ["alpha", "beta", "gamma"]);
        let by_id = CaseFilter { ids: vec!["beta".into()], ..CaseFilter::default() };
        assert_eq!(ids(&cases, &by_id), ["beta"]);
        let by_tag = CaseFilter { tags: vec!["fast".into()], ..CaseFilter::default() };
        assert_eq!(ids(&cases, &by_tag), ["alpha", "gamma"]);
        let by_pattern = CaseFilter { pattern: Some("*m?a".into()), ..CaseFilter::default() };
        assert_eq!(ids(&cases, &by_pattern), ["gamma"]);
        let sample = |seed| {
            let sample = Some(CaseSample { count: 2, seed });
            ids(&cases, &CaseFilter { sample, ..CaseFilter::default() })
        };
        assert_eq!(sample(7).len(), 2);
        assert_eq!(sample(7), sample(7));
        assert!((0..20).any(|seed| sample(seed) != sample(7)));
    }

    #[test]
    fn unknown_case_is_reported_with_a_suggestion() {
        let folder = tempfile::tempdir().unwrap();
        let cases = three_cases(folder.path());
        let filter = CaseFilter { ids: vec!["betta".into()], ..CaseFilter::default() };
        let error = filter_cases(cases, &filter).unwrap_err().json();
        assert!(error["hints"][0].as_str().unwrap().contains("`beta`"));
    }

    #[test]
    fn broken_case_does_not_affect_the_others() {
        let folder = tempfile::tempdir().unwrap();
        three_cases(folder.path());
        fs::write(folder.path().join("broken.toml"), "[case]\nid = 1\n").unwrap();
        let found = || load_cases(folder.path()).unwrap();
        assert_eq!((found().cases.len(), found().broken.len()), (3, 1));
        let named = |id: &str| CaseFilter { ids: vec![id.to_owned()], ..CaseFilter::default() };
        assert_eq!(filter_cases(found(), &named("beta")).unwrap().len(), 1);
        assert!(filter_cases(found(), &named("broken")).unwrap_err().json().to_string().contains("goal"));
        assert!(filter_cases(found(), &CaseFilter::default()).is_err(), "the suite would be smaller");
    }

    #[test]
    fn task_digest_covers_every_file_but_solution_and_cheats() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("one");
        fs::create_dir_all(folder.join("hidden")).unwrap();
        let scenario = "[[session]]\nanswer = { status = \"done\", summary = \"x\" }\n";
        for (name, text) in
            [("hidden/t", "1"), ("justfile", "ci:\n"), ("setup.sh", "true\n"), ("solution.toml", scenario)]
        {
            fs::write(folder.join(name), text).unwrap();
        }
        let text = "[case]\nid = \"one\"\ngoal = \"g\"\nhidden = \"hidden\"\njustfile = \"justfile\"\n\
                    setup = [\"sh\", \"setup.sh\"]\nsolution = \"solution.toml\"\n[[checks]]\ntype = \"git_clean\"\n";
        fs::write(folder.join("case.toml"), text).unwrap();
        let digests = || LoadedCase::load(&folder.join("case.toml")).unwrap().digests().unwrap();
        for (name, is_task, is_check) in [
            ("hidden/t", true, true),
            ("justfile", true, false),
            ("setup.sh", true, false),
            ("solution.toml", false, false),
        ] {
            let before = digests();
            let text = fs::read_to_string(folder.join(name)).unwrap();
            fs::write(folder.join(name), format!("{text}# changed\n")).unwrap();
            let after = digests();
            assert_eq!(before.task != after.task, is_task, "{name}");
            assert_eq!(before.checks != after.checks, is_check, "{name}");
            assert_ne!(before.whole, after.whole, "{name}");
        }
    }
}
