//! Files of named recipes with dependencies: justfiles and makefiles, parsed as far as their text shows what runs.

use std::collections::BTreeMap;

/// The parts of a justfile or makefile that decide what runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RecipeFile {
    /// Files that are read as a part of this one.
    pub(super) includes: Vec<String>,
    /// Modules of a justfile, with the path if it is written out.
    pub(super) modules: BTreeMap<String, Option<String>>,
    pub(super) recipes: BTreeMap<String, Recipe>,
    /// The recipe that runs without a name.
    pub(super) first: Option<String>,
    /// Files with environment variables that are loaded.
    pub(super) env_files: Vec<String>,
    /// Text that is evaluated whichever recipe runs: variables with commands, the shell itself.
    pub(super) always: Vec<String>,
}

/// A recipe: the recipes that it depends on, and its lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Recipe {
    pub(super) needs: Vec<String>,
    pub(super) lines: Vec<String>,
}

impl RecipeFile {
    /// Adds the recipes of an included file. Those that are defined here win.
    pub(super) fn include(&mut self, other: Self) {
        for (name, recipe) in other.recipes {
            self.recipes.entry(name).or_insert(recipe);
        }
        for (name, path) in other.modules {
            self.modules.entry(name).or_insert(path);
        }
        self.first = self.first.take().or(other.first);
        self.env_files.extend(other.env_files);
        self.always.extend(other.always);
    }

    /// Whether there is a recipe of this name, or one that may make it.
    pub(super) fn has_recipe(&self, name: &str) -> bool {
        self.recipes.contains_key(name) || self.recipes.keys().any(|known| known.contains(['%', '$']))
    }

    /// The lines that run for these recipes, dependencies included.
    pub(super) fn lines_of(&self, wanted: &[String]) -> Vec<&str> {
        let needed = self.needed(wanted);
        let of_recipes = needed.iter().filter_map(|name| self.recipes.get(*name));
        let lines = of_recipes.flat_map(|recipe| &recipe.lines);
        self.always.iter().chain(lines).map(String::as_str).collect()
    }

    /// These recipes and their dependencies, as far as the file has them.
    pub(super) fn needed(&self, wanted: &[String]) -> Vec<&str> {
        let mut open: Vec<&str> = wanted.iter().map(String::as_str).collect();
        if open.is_empty() {
            open.extend(self.first.as_deref());
        }
        let mut known: Vec<&str> = Vec::new();
        while let Some(name) = open.pop() {
            let Some((name, recipe)) = self.recipes.get_key_value(name).filter(|_| !known.contains(&name))
            else {
                continue;
            };
            known.push(name);
            open.extend(recipe.needs.iter().map(String::as_str));
        }
        known
    }
}

pub(super) fn just(text: &str) -> RecipeFile {
    let mut file = RecipeFile::default();
    let mut current: Option<String> = None;
    for line in text.lines() {
        if line.starts_with([' ', '\t']) {
            if let Some(recipe) = current.as_ref().and_then(|name| file.recipes.get_mut(name)) {
                recipe.lines.push(line.trim().trim_start_matches(['@', '-']).to_owned());
            }
            continue;
        }
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', '[']) {
            continue;
        }
        current = just_item(line, &mut file);
    }
    file
}

/// One line of a justfile outside of recipes. Returns the recipe that it begins.
fn just_item(line: &str, file: &mut RecipeFile) -> Option<String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    match word.trim_end_matches('?') {
        "import" => file.includes.extend(quoted(rest)),
        "mod" => {
            let name = rest.split_whitespace().next().unwrap_or_default();
            file.modules.insert(name.to_owned(), quoted(rest).into_iter().next());
        }
        "set" => just_setting(rest, file),
        "alias" => {
            let (name, target) = rest.split_once(":=")?;
            let needs = vec![target.trim().to_owned()];
            file.recipes.insert(name.trim().to_owned(), Recipe { needs, lines: Vec::new() });
        }
        _ if line.contains(":=") => {
            let commands = line.split('`').skip(1).step_by(2).map(str::to_owned);
            file.always.extend(commands);
        }
        _ => {
            let (head, needs) = line.split_once(':')?;
            let name = head.trim_start_matches('@').split_whitespace().next()?.to_owned();
            let is_word = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '&');
            let needs = needs.split(is_word).filter(|word| !word.is_empty()).map(str::to_owned).collect();
            file.first.get_or_insert_with(|| name.clone());
            file.recipes.insert(name.clone(), Recipe { needs, lines: Vec::new() });
            return Some(name);
        }
    }
    None
}

fn just_setting(setting: &str, file: &mut RecipeFile) {
    let (name, value) = setting.split_once(":=").unwrap_or((setting, "true"));
    let is_off = value.trim() == "false";
    match name.trim() {
        "dotenv-load" | "dotenv-required" if !is_off => file.env_files.push(".env".to_owned()),
        "dotenv-filename" | "dotenv-path" => file.env_files.extend(quoted(value)),
        "shell" | "script-interpreter" => file.always.push(quoted(value).join(" ")),
        _ => {}
    }
}

/// The quoted texts in a line.
fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\'', '"']) {
        let (_, from_quote) = rest.split_at(at);
        let mut chars = from_quote.chars();
        let Some(quote) = chars.next() else { break };
        let Some((inner, after)) = chars.as_str().split_once(quote) else { break };
        if !inner.is_empty() {
            found.push(inner.to_owned());
        }
        rest = after;
    }
    found
}

/// Parses a makefile. Variables that it sets to plain text are replaced in what follows.
pub(super) fn make(text: &str) -> RecipeFile {
    let mut file = RecipeFile::default();
    let mut variables = BTreeMap::from([("MAKE".to_owned(), "make".to_owned())]);
    let mut current: Vec<String> = Vec::new();
    for line in text.replace("\\\n", " ").lines() {
        let expanded = expand(line, &variables);
        if line.starts_with('\t') {
            for name in &current {
                if let Some(recipe) = file.recipes.get_mut(name) {
                    recipe.lines.push(expanded.trim().trim_start_matches(['@', '-', '+']).to_owned());
                }
            }
            continue;
        }
        let line = expanded.split('#').next().unwrap_or_default().trim();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if matches!(word, "include" | "-include" | "sinclude") {
            let rest = rest.replace("$(wildcard ", "").replace(')', " ");
            file.includes.extend(rest.split_whitespace().map(str::to_owned));
        } else if let Some((name, value)) = assignment(line) {
            variables.insert(name.to_owned(), value.to_owned());
        } else if let Some((targets, needs)) = line.split_once(':') {
            current = make_rule(targets, needs, &mut file);
        }
    }
    file
}

fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+', ' ']).trim_start_matches("export ").trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (name, value.trim()))
}

/// A rule of a makefile. Returns its targets.
fn make_rule(targets: &str, needs: &str, file: &mut RecipeFile) -> Vec<String> {
    let (needs, inline) = needs.trim_start_matches(':').split_once(';').unwrap_or((needs, ""));
    let mut names = Vec::new();
    for target in targets.split_whitespace() {
        let recipe = file.recipes.entry(target.to_owned()).or_default();
        recipe.needs.extend(needs.split_whitespace().filter(|word| *word != "|").map(str::to_owned));
        if !inline.trim().is_empty() {
            recipe.lines.push(inline.trim().to_owned());
        }
        if !target.starts_with('.') {
            file.first.get_or_insert_with(|| target.to_owned());
        }
        names.push(target.to_owned());
    }
    names
}

/// A line with the variables that are known replaced, two levels deep.
fn expand(line: &str, variables: &BTreeMap<String, String>) -> String {
    let mut text = line.to_owned();
    for _ in 0..2 {
        if !text.contains('$') {
            break;
        }
        for (name, value) in variables {
            text = text.replace(&format!("$({name})"), value).replace(&format!("${{{name}}}"), value);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_justfile_is_read_with_its_settings_recipes_and_dependencies() {
        let text = "import 'a.just'\nimport? \"b.just\"\nmod x\nmod y 'sub/y.just'\nset dotenv-load\n\
            set shell := [\"./sh\", \"-c\"]\nv := `./version`\nalias t := test\n\n# comment\n[private]\n\
            @ci mode=\"a\": fmt (test \"b\") && last\n  @./ci.sh\n\nfmt:\n  cargo fmt\ntest arg:\n    pytest\n\
            last:\n  true\nother:\n  python3 app.py\n";
        let file = just(text);
        assert_eq!(file.includes, ["a.just", "b.just"]);
        let modules = [("x".to_owned(), None), ("y".to_owned(), Some("sub/y.just".to_owned()))];
        assert_eq!(file.modules, BTreeMap::from(modules));
        assert_eq!(
            (file.first.as_deref(), file.env_files.as_slice()),
            (Some("ci"), &[".env".to_owned()][..])
        );
        let mut lines = file.lines_of(&["ci".to_owned()]);
        lines.sort_unstable();
        assert_eq!(lines, ["./ci.sh", "./sh -c", "./version", "cargo fmt", "pytest", "true"]);
        assert_eq!(file.lines_of(&["t".to_owned()]), ["./sh -c", "./version", "pytest"]);
        assert_eq!(just("set dotenv-load := false\n").env_files, [""; 0]);
    }

    #[test]
    fn a_makefile_is_read_with_its_variables_and_includes() {
        let text = "include rules.mk\n-include more.mk # x\nPY ?= python3\n.PHONY: check\ncheck: lint\n\
            \t@$(PY) ci.py\nlint: ; sh lint.sh\nsub:\n\t$(MAKE) -C sub \\\n\t  x\n";
        let file = make(text);
        assert_eq!(file.includes, ["rules.mk", "more.mk"]);
        assert_eq!(file.first.as_deref(), Some("check"));
        assert_eq!(file.lines_of(&[]), ["python3 ci.py", "sh lint.sh"]);
        assert_eq!(file.lines_of(&["sub".to_owned()]), ["make -C sub  \t  x"]);
        assert_eq!(file.lines_of(&["none".to_owned()]), [""; 0]);
    }
}
