//! The cases of a folder, with everything that belongs to each, in memory and as fingerprints.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use runner_core::agents::scenario::Scenario;
use runner_core::model::digest::Sha256;
use runner_core::strict::nearest;
use runner_term::CommandError;

use crate::case::Case;
use crate::files::{self, FixtureFile};

/// The name of a case's file in a folder of its own.
const CASE_FILE: &str = "case.toml";

/// A case and all that it depends on.
#[derive(Clone, Debug)]
pub(crate) struct LoadedCase {
    pub(crate) case: Case,
    /// Where its file is.
    pub(crate) file: PathBuf,
    /// The folder that its paths begin at.
    pub(crate) folder: PathBuf,
    pub(crate) digests: CaseDigests,
    fixture: Vec<FixtureFile>,
    hidden: Vec<FixtureFile>,
}

/// Fingerprints of a case's parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaseDigests {
    pub(crate) case: Sha256,
    pub(crate) fixture: Option<Sha256>,
    pub(crate) checks: Sha256,
    /// Of everything.
    pub(crate) whole: Sha256,
}

impl LoadedCase {
    /// Reads a case and what it names.
    pub(crate) fn read(file: &Path) -> Result<Self, CommandError> {
        let what = || format!("could not read the case `{}`", file.display());
        let bytes = fs::read(file).map_err(|error| CommandError::io(what(), file, &error))?;
        let case = Case::decode(&bytes).map_err(|problems| {
            let report = CommandError::refused("case", what());
            let report = problems.iter().fold(report, |report, problem| report.cause(problem.to_string()));
            report.hint("mend the file; docs/guide/evaluation.md lists every key")
        })?;
        let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
        let hold = |path: &Option<String>| match path {
            None => Ok(Vec::new()),
            Some(path) => {
                let path = folder.join(path);
                files::hold(&path).map_err(|error| CommandError::io(what(), &path, &error))
            }
        };
        let (fixture, hidden) = (hold(&case.fixture)?, hold(&case.hidden)?);
        let mut whole = format!("case {}\n", Sha256::of(&bytes));
        for name in case.attachments() {
            let path = folder.join(name);
            let held = files::hold(&path).map_err(|error| CommandError::io(what(), &path, &error))?;
            whole.push_str(&format!("{name} {}\n", files::digest(&held)));
        }
        if file.file_name().is_some_and(|name| name == CASE_FILE) {
            let held = files::hold(&folder).map_err(|error| CommandError::io(what(), &folder, &error))?;
            whole.push_str(&format!("folder {}\n", files::digest(&held)));
        }
        let checks = serde_json::to_vec(&case.checks).unwrap_or_default();
        let checks = [checks, files::digest(&hidden).to_string().into_bytes()].concat();
        let digests = CaseDigests {
            case: Sha256::of(&bytes),
            fixture: case.fixture.as_ref().map(|_| files::digest(&fixture)),
            checks: Sha256::of(&checks),
            whole: Sha256::of(whole.as_bytes()),
        };
        let kit = Self { case, file: file.to_owned(), folder, digests, fixture, hidden };
        kit.check_scenarios()?;
        Ok(kit)
    }

    /// A scenario that cannot be played is a fault of the case, not of a trial.
    fn check_scenarios(&self) -> Result<(), CommandError> {
        let named = [&self.case.solution, &self.case.cheat].into_iter().flatten().map(String::as_str);
        for name in named.chain(self.case.config.scenario()) {
            let path = self.folder.join(name);
            let what = || format!("could not read the scenario `{}`", path.display());
            let text = fs::read_to_string(&path).map_err(|error| CommandError::io(what(), &path, &error))?;
            Scenario::decode(&text)
                .map_err(|fault| CommandError::refused("scenario", what()).cause(fault.to_string()))?;
        }
        Ok(())
    }

    /// The git bundle that the repository begins with, if it does.
    pub(crate) fn bundle(&self) -> Option<PathBuf> {
        let fixture = self.case.fixture.as_ref()?;
        fixture.ends_with(".bundle").then(|| self.folder.join(fixture))
    }

    /// The files that the repository begins with.
    pub(crate) fn fixture(&self) -> &[FixtureFile] {
        if self.bundle().is_some() { &[] } else { &self.fixture }
    }

    /// The files that come in for hidden checks.
    pub(crate) fn hidden(&self) -> &[FixtureFile] {
        &self.hidden
    }
}

/// All cases of a folder, ordered by id. Each is `<id>/case.toml`, or a file `<id>.toml`.
pub(crate) fn read_all(folder: &Path) -> Result<Vec<LoadedCase>, CommandError> {
    let what = "could not read the cases";
    let entries = fs::read_dir(folder).map_err(|error| {
        CommandError::io(what, folder, &error)
            .hint("name their folder: runner eval --cases DIR, or go to it: -C DIR")
    })?;
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let inner = path.join(CASE_FILE);
        if inner.is_file() {
            found.push(inner);
        } else if path.extension().is_some_and(|extension| extension == "toml") && path.is_file() {
            found.push(path);
        }
    }
    let mut kits = found.iter().map(|file| LoadedCase::read(file)).collect::<Result<Vec<_>, _>>()?;
    kits.sort_by(|a, b| a.case.id.cmp(&b.case.id));
    if let Some([first, second]) = kits.array_windows().find(|[a, b]| a.case.id == b.case.id) {
        return Err(CommandError::refused("case_twice", what).cause(format!(
            "`{}` and `{}` have the same id `{}`",
            first.file.display(),
            second.file.display(),
            first.case.id
        )));
    }
    Ok(kits)
}

/// Which cases are meant.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaseFilter {
    /// These ids; all, if none is named.
    pub(crate) ids: Vec<String>,
    /// With all of these tags.
    pub(crate) tags: Vec<String>,
    /// With an id like this: `*` stands for anything, `?` for one character.
    pub(crate) filter: Option<String>,
    /// So many of them, chosen by a seed.
    pub(crate) sample: Option<(usize, u64)>,
}

/// The cases that are meant, ordered by id.
pub(crate) fn choose(kits: Vec<LoadedCase>, choice: &CaseFilter) -> Result<Vec<LoadedCase>, CommandError> {
    let known: Vec<&str> = kits.iter().map(|kit| kit.case.id.as_str()).collect();
    if let Some(unknown) = choice.ids.iter().find(|id| !known.contains(&id.as_str())) {
        let report = CommandError::refused("no_such_case", format!("there is no case `{unknown}`"));
        let near = nearest(unknown, &known).map(|near| format!("did you mean `{near}`?"));
        return Err(report.hint(near.unwrap_or_else(|| "list the cases: runner eval list".to_owned())));
    }
    let glob = choice.filter.as_deref().map(glob);
    let is_meant = |kit: &LoadedCase| {
        let case = &kit.case;
        (choice.ids.is_empty() || choice.ids.contains(&case.id))
            && choice.tags.iter().all(|tag| case.tags.contains(tag))
            && glob.as_ref().is_none_or(|glob| glob.as_ref().is_some_and(|glob| glob.is_match(&case.id)))
    };
    let mut chosen: Vec<LoadedCase> = kits.into_iter().filter(is_meant).collect();
    if let Some((count, seed)) = choice.sample {
        let rank = |kit: &LoadedCase| Sha256::of(format!("{seed} {}", kit.case.id).as_bytes());
        chosen.sort_by_key(rank);
        chosen.truncate(count);
        chosen.sort_by(|a, b| a.case.id.cmp(&b.case.id));
    }
    if chosen.is_empty() {
        return Err(CommandError::refused("no_cases", "no case fits what was asked for")
            .hint("list the cases and their tags: runner eval list"));
    }
    Ok(chosen)
}

/// A pattern with `*` and `?`.
fn glob(pattern: &str) -> Option<Regex> {
    let escaped = regex::escape(pattern).replace("\\*", ".*").replace("\\?", ".");
    Regex::new(&format!("^(?:{escaped})$")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(folder: &Path) -> Vec<LoadedCase> {
        for (id, tag) in [("alpha", "fast"), ("beta", "slow"), ("gamma", "fast")] {
            let text = format!(
                "[case]\nid = \"{id}\"\ngoal = \"g\"\ntags = [\"{tag}\"]\n[[checks]]\ntype = \"git_clean\"\n"
            );
            fs::write(folder.join(format!("{id}.toml")), text).unwrap();
        }
        read_all(folder).unwrap()
    }

    fn chosen(kits: &[LoadedCase], choice: &CaseFilter) -> Vec<String> {
        choose(kits.to_vec(), choice).unwrap().into_iter().map(|kit| kit.case.id).collect()
    }

    #[test]
    fn cases_are_chosen_by_name_tag_pattern_and_seed() {
        let folder = tempfile::tempdir().unwrap();
        let kits = suite(folder.path());
        assert_eq!(chosen(&kits, &CaseFilter::default()), ["alpha", "beta", "gamma"]);
        assert_eq!(
            chosen(&kits, &CaseFilter { ids: vec!["beta".into()], ..CaseFilter::default() }),
            ["beta"]
        );
        assert_eq!(
            chosen(&kits, &CaseFilter { tags: vec!["fast".into()], ..CaseFilter::default() }),
            ["alpha", "gamma"]
        );
        assert_eq!(
            chosen(&kits, &CaseFilter { filter: Some("*m?a".into()), ..CaseFilter::default() }),
            ["gamma"]
        );
        let sample = |seed| chosen(&kits, &CaseFilter { sample: Some((2, seed)), ..CaseFilter::default() });
        assert_eq!(sample(7).len(), 2);
        assert_eq!(sample(7), sample(7));
        assert!((0..20).any(|seed| sample(seed) != sample(7)));
    }

    #[test]
    fn a_case_that_is_not_there_is_told_with_what_was_meant() {
        let folder = tempfile::tempdir().unwrap();
        let kits = suite(folder.path());
        let wrong = CaseFilter { ids: vec!["betta".into()], ..CaseFilter::default() };
        assert!(choose(kits, &wrong).unwrap_err().json()["hints"][0].as_str().unwrap().contains("`beta`"));
    }

    #[test]
    fn a_changed_file_of_a_case_changes_its_fingerprint() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("one");
        fs::create_dir_all(folder.join("hidden")).unwrap();
        fs::write(folder.join("hidden/t"), "1").unwrap();
        let text =
            "[case]\nid = \"one\"\ngoal = \"g\"\nhidden = \"hidden\"\n[[checks]]\ntype = \"git_clean\"\n";
        fs::write(folder.join("case.toml"), text).unwrap();
        let read = || LoadedCase::read(&folder.join("case.toml")).unwrap().digests;
        let before = read();
        fs::write(folder.join("hidden/t"), "2").unwrap();
        let after = read();
        assert_eq!(before.case, after.case);
        assert_ne!(before.checks, after.checks);
        assert_ne!(before.whole, after.whole);
    }
}
