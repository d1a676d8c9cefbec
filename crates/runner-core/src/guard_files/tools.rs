//! Programs whose configuration decides what they accept: the files that each reads before it runs any code.

/// A program and its configuration.
pub(super) struct Tool {
    pub(super) programs: &'static [&'static str],
    pub(super) files: &'static [&'static str],
    /// Values in files that have other uses.
    pub(super) entries: &'static [ToolEntry],
    /// If one of these files or of `files` exists, a configuration file that is missing must stay so: a new one would change
    /// what the program does in an existing project.
    pub(super) project: &'static [&'static str],
}

/// A value in a file.
pub(super) struct ToolEntry {
    pub(super) file: &'static str,
    pub(super) keys: &'static [&'static str],
}

const fn entry(file: &'static str, keys: &'static [&'static str]) -> ToolEntry {
    ToolEntry { file, keys }
}

/// Test programs and checkers by name. Programs that read no such file are not listed.
pub(super) const TOOLS: [Tool; 21] = [
    Tool {
        programs: &["cargo", "rustc"],
        files: &[
            ".cargo/config.toml",
            ".cargo/config",
            ".config/nextest.toml",
            "rust-toolchain",
            "rust-toolchain.toml",
            "clippy.toml",
            ".clippy.toml",
        ],
        entries: &[],
        project: &["Cargo.toml"],
    },
    Tool {
        programs: &["pytest", "py.test"],
        files: &["pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg"],
        entries: &[entry("pyproject.toml", &["tool", "pytest"])],
        project: &["pyproject.toml", "setup.py", "requirements.txt"],
    },
    Tool { programs: &["go"], files: &["go.work"], entries: &[], project: &["go.mod"] },
    Tool {
        programs: &["tox"],
        files: &["tox.ini"],
        entries: &[entry("pyproject.toml", &["tool", "tox"])],
        project: &[],
    },
    Tool { programs: &["nox"], files: &["noxfile.py"], entries: &[], project: &[] },
    Tool {
        programs: &["mypy"],
        files: &["mypy.ini", ".mypy.ini"],
        entries: &[entry("pyproject.toml", &["tool", "mypy"])],
        project: &["pyproject.toml"],
    },
    Tool {
        programs: &["ruff"],
        files: &["ruff.toml", ".ruff.toml"],
        entries: &[entry("pyproject.toml", &["tool", "ruff"])],
        project: &["pyproject.toml"],
    },
    Tool {
        programs: &["jest"],
        files: &[
            "jest.config.js",
            "jest.config.ts",
            "jest.config.mjs",
            "jest.config.cjs",
            "jest.config.json",
        ],
        entries: &[entry("package.json", &["jest"])],
        project: &["package.json"],
    },
    Tool {
        programs: &["vitest"],
        files: &["vitest.config.ts", "vitest.config.js", "vitest.config.mts", "vitest.config.mjs"],
        entries: &[],
        project: &["package.json"],
    },
    Tool {
        programs: &["mocha"],
        files: &[
            ".mocharc.js",
            ".mocharc.cjs",
            ".mocharc.yaml",
            ".mocharc.yml",
            ".mocharc.json",
            ".mocharc.jsonc",
        ],
        entries: &[entry("package.json", &["mocha"])],
        project: &["package.json"],
    },
    Tool {
        programs: &["eslint"],
        files: &[
            "eslint.config.js",
            "eslint.config.mjs",
            "eslint.config.cjs",
            ".eslintrc.json",
            ".eslintrc.js",
            ".eslintrc.cjs",
        ],
        entries: &[entry("package.json", &["eslintConfig"])],
        project: &[],
    },
    Tool {
        programs: &["golangci-lint"],
        files: &[".golangci.yml", ".golangci.yaml", ".golangci.toml"],
        entries: &[],
        project: &[],
    },
    Tool { programs: &["pre-commit"], files: &[".pre-commit-config.yaml"], entries: &[], project: &[] },
    Tool { programs: &["task"], files: &["Taskfile.yml", "Taskfile.yaml"], entries: &[], project: &[] },
    Tool { programs: &["rake"], files: &["Rakefile", "rakefile"], entries: &[], project: &[] },
    Tool { programs: &["rspec"], files: &[".rspec"], entries: &[], project: &["Gemfile"] },
    Tool {
        programs: &["gradle", "gradlew"],
        files: &["gradle.properties", "gradle/wrapper/gradle-wrapper.properties"],
        entries: &[],
        project: &[],
    },
    Tool {
        programs: &["mvn", "mvnw"],
        files: &[".mvn/maven.config", ".mvn/jvm.config", ".mvn/extensions.xml"],
        entries: &[],
        project: &["pom.xml"],
    },
    Tool {
        programs: &["bazel", "bazelisk"],
        files: &[".bazelrc", ".bazelversion"],
        entries: &[],
        project: &["MODULE.bazel"],
    },
    Tool { programs: &["turbo"], files: &["turbo.json"], entries: &[], project: &[] },
    Tool { programs: &["deno"], files: &["deno.json", "deno.jsonc"], entries: &[], project: &[] },
];
