//! What `just` and `make` run, with the files that they include.

use super::recipes::{self, RecipeFile};
use super::{DEPTH_MAX, Options, Origin, Search, folder, join};

const JUSTFILES: [&str; 3] = ["justfile", ".justfile", "Justfile"];
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// Whether a file of recipes has those that a command names.
enum Recipes {
    Known,
    New,
}

impl Recipes {
    fn of(are_known: bool) -> Self {
        if are_known { Self::Known } else { Self::New }
    }
}

impl Search<'_> {
    pub(super) fn just(&mut self, args: &[String], dir: &str) {
        self.unless_new(|search| search.just_files(args, dir));
    }

    pub(super) fn make(&mut self, args: &[String], dir: &str) {
        self.unless_new(|search| search.make_files(args, dir));
    }

    /// Follows recipes. Where a check names one that its file does not have yet, the file is for the session to change.
    fn unless_new(&mut self, follow: impl FnOnce(&mut Self) -> Recipes) {
        let before = (self.origin == Origin::Check).then(|| self.found.clone());
        if let (Some(before), Recipes::New) = (before, follow(self)) {
            self.found = before;
        }
    }

    fn just_files(&mut self, args: &[String], dir: &str) -> Recipes {
        let options = Options::parse(args, &["-f", "--justfile", "-d", "--working-directory"]);
        let dir = options
            .value(&["-d", "--working-directory"])
            .and_then(|to| join(dir, to))
            .unwrap_or_else(|| dir.to_owned());
        if let Some(file) = options.value(&["-f", "--justfile"]) {
            if let Some(path) = join(&dir, file) {
                self.protect(&path);
                return self.justfile(&path, &options.words);
            }
            return Recipes::Known;
        }
        self.protect_names(&dir, &JUSTFILES, &[]);
        let paths = JUSTFILES.iter().filter_map(|name| join(&dir, name));
        match paths.into_iter().find(|path| self.exists(path)) {
            Some(path) => self.justfile(&path, &options.words),
            None => Recipes::Known,
        }
    }

    /// The recipes of a justfile, in its own folder.
    fn justfile(&mut self, path: &str, recipes: &[String]) -> Recipes {
        if !self.is_new(format!("just {path} {recipes:?}")) || self.depth >= DEPTH_MAX {
            return Recipes::Known;
        }
        let dir = folder(path).to_owned();
        let file = self.recipe_file(path, recipes::just, 0);
        for env in &file.env_files {
            let Some(path) = join(&dir, env) else { continue };
            if !self.exists(&path) {
                self.found.missing.insert(path.clone());
            }
            self.protect(&path);
        }
        let is_known =
            |name: &String| name.contains("::") || file.modules.contains_key(name) || file.has_recipe(name);
        let known = Recipes::of(!self.exists(path) || recipes.first().is_none_or(is_known));
        let mut own = Vec::new();
        for recipe in recipes {
            match recipe.split_once("::") {
                Some((module, rest)) => self.just_module(&file, &dir, module, &[rest.to_owned()]),
                None if file.modules.contains_key(recipe) => {
                    let rest: Vec<String> =
                        recipes.iter().skip_while(|word| *word != recipe).skip(1).cloned().collect();
                    self.just_module(&file, &dir, recipe, &rest);
                }
                None => own.push(recipe.clone()),
            }
        }
        if !own.is_empty() || recipes.is_empty() {
            let lines: Vec<String> = file.lines_of(&own).into_iter().map(str::to_owned).collect();
            self.shell(&lines.join("\n"), &dir);
        }
        known
    }

    fn just_module(&mut self, file: &RecipeFile, dir: &str, module: &str, recipes: &[String]) {
        let Some(path) = file.modules.get(module) else { return };
        let candidates = match path {
            Some(path) => vec![path.clone(), format!("{path}/mod.just"), format!("{path}/justfile")],
            None => vec![
                format!("{module}.just"),
                format!("{module}/mod.just"),
                format!("{module}/justfile"),
                format!("{module}/.justfile"),
            ],
        };
        let mut paths = candidates.iter().filter_map(|name| join(dir, name));
        if let Some(path) = paths.find(|path| self.exists(path)) {
            self.protect(&path);
            self.justfile(&path, recipes);
        }
    }

    /// A file of recipes with all that it includes; protects each of them, and the modules of a justfile.
    fn recipe_file(&mut self, path: &str, parse: fn(&str) -> RecipeFile, level: usize) -> RecipeFile {
        let Some(text) = self.text(path) else { return RecipeFile::default() };
        let mut file = parse(&text);
        let dir = folder(path).to_owned();
        for include in std::mem::take(&mut file.includes) {
            let Some(path) = join(&dir, &include) else { continue };
            if path.contains('*') {
                // Which files are read depends on those that there are: none may be added.
                self.found.patterns.insert(path.clone());
                self.found.missing.insert(path);
                continue;
            }
            if !self.exists(&path) {
                // An optional import, or a makefile that a rule creates: an agent must not fill the place.
                self.found.missing.insert(path.clone());
            }
            self.protect(&path);
            if level < DEPTH_MAX {
                let included = self.recipe_file(&path, parse, level + 1);
                file.include(included);
            }
        }
        for (module, named) in &file.modules {
            let name = named.clone().unwrap_or_else(|| format!("{module}.just"));
            if let Some(path) = join(&dir, &name).filter(|path| self.exists(path)) {
                self.protect(&path);
            }
        }
        file
    }

    fn make_files(&mut self, args: &[String], dir: &str) -> Recipes {
        let options = Options::parse(
            args,
            &["-f", "--file", "--makefile", "-C", "--directory", "-j", "-l", "-o", "-W", "-I"],
        );
        let dir = options
            .value(&["-C", "--directory"])
            .and_then(|to| join(dir, to))
            .unwrap_or_else(|| dir.to_owned());
        let targets: Vec<String> = options.words.iter().filter(|word| !word.contains('=')).cloned().collect();
        let named = options.value(&["-f", "--file", "--makefile"]);
        let paths: Vec<String> = match named {
            Some(file) => join(&dir, file).into_iter().collect(),
            None => {
                self.protect_names(&dir, &MAKEFILES, &[]);
                MAKEFILES.iter().filter_map(|name| join(&dir, name)).collect()
            }
        };
        named.iter().flat_map(|_| &paths).for_each(|path| self.protect(path));
        let Some(path) = paths.into_iter().find(|path| self.exists(path)) else { return Recipes::Known };
        if !self.is_new(format!("make {path} {targets:?}")) || self.depth >= DEPTH_MAX {
            return Recipes::Known;
        }
        let file = self.recipe_file(&path, recipes::make, 0);
        // A file of this name would be the target itself.
        let phony = file.recipes.get(".PHONY").map(|recipe| recipe.needs.clone()).unwrap_or_default();
        let names =
            file.needed(&targets).into_iter().filter(|name| !name.starts_with('.') && !name.contains('%'));
        for path in
            names.filter(|name| !phony.iter().any(|phony| phony == name)).filter_map(|name| join(&dir, name))
        {
            self.refuse(&path);
        }
        let lines: Vec<String> = file.lines_of(&targets).into_iter().map(str::to_owned).collect();
        self.shell(&lines.join("\n"), &dir);
        Recipes::of(targets.iter().all(|target| file.has_recipe(target)))
    }
}
