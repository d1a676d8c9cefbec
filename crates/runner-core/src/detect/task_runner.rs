//! `just` and `make`: the user's own commands. A recipe for all checks is the guard, whatever it runs.

use super::{PackageCheck, RepoListing, Stack};

/// Names of recipes that run all checks, best first.
const RECIPES: [&str; 3] = ["ci", "check", "test"];

const JUSTFILES: [&str; 3] = ["justfile", ".justfile", "Justfile"];
/// In the order in which make looks for them.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// The task runners of a folder that have a recipe for all checks.
pub(super) fn checks(listing: &RepoListing, folder: &str) -> Vec<PackageCheck> {
    let just = JUSTFILES.iter().find_map(|name| {
        let recipe = best(&recipes(listing.text(folder, name)?))?;
        Some(PackageCheck::new(Stack::Just, format!("{name}, recipe `{recipe}`"), &["just", recipe]))
    });
    let make = MAKEFILES.iter().find_map(|name| {
        let target = best(&targets(listing.text(folder, name)?))?;
        Some(PackageCheck::new(Stack::Make, format!("{name}, target `{target}`"), &["make", target]))
    });
    just.into_iter().chain(make).collect()
}

fn best(names: &[&str]) -> Option<&'static str> {
    RECIPES.into_iter().find(|recipe| names.contains(recipe))
}

/// The names of a justfile's recipes that need no argument.
fn recipes(text: &str) -> Vec<&str> {
    let head = |line: &'_ str| -> Option<usize> {
        let is_recipe = line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '@' || c == '_');
        let colon = line.find(':').filter(|_| is_recipe)?;
        (!line.get(colon..)?.starts_with(":=")).then_some(colon)
    };
    text.lines()
        .filter_map(|line| {
            let mut words = line.get(..head(line)?)?.split_whitespace();
            let name = words.next()?.trim_start_matches('@');
            words.all(|parameter| parameter.contains('=') || parameter.starts_with('*')).then_some(name)
        })
        .collect()
}

/// The names of a makefile's targets.
fn targets(text: &str) -> Vec<&str> {
    let is_rule = |line: &&str| !line.starts_with(|c: char| c.is_whitespace() || matches!(c, '#' | '.'));
    let rules = text.lines().filter(is_rule).filter_map(|line| {
        let (names, rest) = line.split_once(':')?;
        (!rest.trim_start_matches(':').starts_with('=') && !names.contains(['=', '$'])).then_some(names)
    });
    rules.flat_map(str::split_whitespace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::sample::listing;

    #[test]
    fn recipes_without_required_arguments_are_found() {
        let text = "set shell := [\"sh\"]\nalias t := test\nv := 'ci:'\n# ci:\ntest name:\n  x\n@check *args: build\n  y\n\
            build target=\"all\":\n    ci: no\n";
        assert_eq!(recipes(text), ["check", "build"]);
    }

    #[test]
    fn targets_are_found_and_assignments_are_not() {
        let text = ".PHONY: ci\nCC := gcc\nX = a:b\nall build: x\n\tci: no\ntest::\n\ttrue\n$(OBJ): y\n";
        assert_eq!(targets(text), ["all", "build", "test"]);
    }

    #[test]
    fn the_recipe_for_everything_comes_first() {
        let files = [("justfile", "test:\n x\nci: test\n"), ("Makefile", "test:\n\ttrue\n")];
        let found = checks(&listing(&files), "");
        let commands: Vec<String> = found.iter().map(|check| check.command.join(" ")).collect();
        assert_eq!(commands, ["just ci", "make test"]);
        assert_eq!(checks(&listing(&[("Makefile", "build:\n\tcc\n")]), ""), []);
    }
}
