//! Loads the cases of a folder with all their files, computes their digests, and filters them for a command.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use runner_core::agents::scenario::Scenario;
use runner_core::model::digest::Sha256;
use runner_core::strict::nearest;
use runner_term::CommandError;

use crate::case::Case;
use crate::files::{self, FixtureFile};

/// The name of the case file in a case's own folder.
const CASE_FILE: &str = "case.toml";

/// A case with everything that it depends on.
#[derive(Clone, Debug)]
pub(crate) struct LoadedCase {
    pub(crate) case: Case,
    pub(crate) file: PathBuf,
    /// The folder that its paths are relative to.
    pub(crate) folder: PathBuf,
    pub(crate) digests: CaseDigests,
    fixture: Vec<FixtureFile>,
    hidden: Vec<FixtureFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaseDigests {
    /// Of the case file.
    pub(crate) case: Sha256,
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
        let read_tree =
            |path: &Path| files::read_tree(path).map_err(|error| CommandError::io(what(), path, &error));
        let read_attachment = |path: &Option<String>| match path {
            None => Ok(Vec::new()),
            Some(path) => read_tree(&folder.join(path)),
        };
        let fixture = read_attachment(&case.fixture)?;
        let hidden = read_attachment(&case.hidden)?;
        let mut whole = format!("case {}\n", Sha256::of(&bytes));
        for name in case.attachments() {
            whole.push_str(&format!("{name} {}\n", files::digest(&read_tree(&folder.join(name))?)));
        }
        if file.file_name().is_some_and(|name| name == CASE_FILE) {
            whole.push_str(&format!("folder {}\n", files::digest(&read_tree(&folder)?)));
        }
        let mut checks = serde_json::to_vec(&case.checks).unwrap_or_default();
        checks.extend(files::digest(&hidden).to_string().bytes());
        let digests = CaseDigests {
            case: Sha256::of(&bytes),
            fixture: case.fixture.as_ref().map(|_| files::digest(&fixture)),
            checks: Sha256::of(&checks),
            whole: Sha256::of(whole.as_bytes()),
        };
        let loaded = Self { case, file: file.to_owned(), folder, digests, fixture, hidden };
        loaded.check_scenarios()?;
        Ok(loaded)
    }

    /// An invalid scenario is an error of the case, so it is reported before any trial starts.
    fn check_scenarios(&self) -> Result<(), CommandError> {
        let names = [&self.case.solution, &self.case.cheat].into_iter().flatten().map(String::as_str);
        for name in names.chain(self.case.config.scenario()) {
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

    /// The initial files of the repository; none if it is cloned from a bundle.
    pub(crate) fn fixture(&self) -> &[FixtureFile] {
        if self.bundle().is_some() { &[] } else { &self.fixture }
    }

    /// The files for hidden checks.
    pub(crate) fn hidden(&self) -> &[FixtureFile] {
        &self.hidden
    }
}

/// Loads all cases of a folder, ordered by id. A case is `<id>/case.toml` or `<id>.toml`.
pub(crate) fn load_cases(folder: &Path) -> Result<Vec<LoadedCase>, CommandError> {
    let what = "could not read the cases";
    let entries = fs::read_dir(folder).map_err(|error| {
        CommandError::io(what, folder, &error)
            .hint("name their folder with --cases DIR, or the folder that holds eval/ with -C DIR")
    })?;
    let mut case_files: Vec<PathBuf> = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let inner = path.join(CASE_FILE);
        if inner.is_file() {
            case_files.push(inner);
        } else if path.extension().is_some_and(|extension| extension == "toml") && path.is_file() {
            case_files.push(path);
        }
    }
    let mut cases = case_files.iter().map(|file| LoadedCase::load(file)).collect::<Result<Vec<_>, _>>()?;
    cases.sort_by(|a, b| a.case.id.cmp(&b.case.id));
    if let Some([first, second]) = cases.array_windows().find(|[a, b]| a.case.id == b.case.id) {
        return Err(CommandError::refused("duplicate_case", what).cause(format!(
            "`{}` and `{}` have the same id `{}`",
            first.file.display(),
            second.file.display(),
            first.case.id
        )));
    }
    Ok(cases)
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

/// The cases that match the filter, ordered by id.
pub(crate) fn filter_cases(
    cases: Vec<LoadedCase>,
    filter: &CaseFilter,
) -> Result<Vec<LoadedCase>, CommandError> {
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

    fn three_cases(folder: &Path) -> Vec<LoadedCase> {
        for (id, tag) in [("alpha", "fast"), ("beta", "slow"), ("gamma", "fast")] {
            let text = format!(
                "[case]\nid = \"{id}\"\ngoal = \"g\"\ntags = [\"{tag}\"]\n[[checks]]\ntype = \"git_clean\"\n"
            );
            fs::write(folder.join(format!("{id}.toml")), text).unwrap();
        }
        load_cases(folder).unwrap()
    }

    fn ids(cases: &[LoadedCase], filter: &CaseFilter) -> Vec<String> {
        filter_cases(cases.to_vec(), filter).unwrap().into_iter().map(|loaded| loaded.case.id).collect()
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
    fn changed_file_of_a_case_changes_its_digest() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("one");
        fs::create_dir_all(folder.join("hidden")).unwrap();
        fs::write(folder.join("hidden/t"), "1").unwrap();
        let text =
            "[case]\nid = \"one\"\ngoal = \"g\"\nhidden = \"hidden\"\n[[checks]]\ntype = \"git_clean\"\n";
        fs::write(folder.join("case.toml"), text).unwrap();
        let digests = || LoadedCase::load(&folder.join("case.toml")).unwrap().digests;
        let before = digests();
        fs::write(folder.join("hidden/t"), "2").unwrap();
        let after = digests();
        assert_eq!(before.case, after.case);
        assert_ne!(before.checks, after.checks);
        assert_ne!(before.whole, after.whole);
    }
}
