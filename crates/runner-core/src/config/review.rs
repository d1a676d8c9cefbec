//! `[review]`: a second agent that looks at work before its task passes.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Executor, read_keys};
use crate::strict::{BoundedInt, TomlTable};

/// The reviewer: an agent that sees the work after successful checks and a successful guard, and that may only refuse it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct ReviewConfig {
    /// How often the reviewer may refuse the work on one task. After that the task passes by its checks and the guard alone,
    /// with an annotation.
    #[schemars(extend("examples" = [2]))]
    pub rounds: BoundedInt<1, 100>,
    /// The agent. Without `kind`, the keys here override those of `[executor]`.
    #[serde(flatten)]
    pub executor: Executor,
}

impl Default for ReviewConfig {
    fn default() -> Self {
        Self { rounds: BoundedInt::fixed::<2>(), executor: Executor::default() }
    }
}

impl ReviewConfig {
    pub(super) fn take(table: &mut TomlTable<'_>, worker: &Executor) -> Self {
        let mut review = Self::default();
        read_keys!(table, review: rounds);
        let base = if table.has("kind") { Executor::default() } else { worker.clone() };
        Self { executor: Executor::take(table, base), ..review }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ExecutorKind};

    #[test]
    fn a_review_is_off_unless_its_table_is_there() {
        let review = |text: &str| Config::decode(text.as_bytes()).unwrap().review;
        assert_eq!(review("[executor]\nmodel = \"m\"\n"), None);
        let own = review("[executor]\nmodel = \"m\"\n[review]\nkind = \"claude\"\nrounds = 1\n").unwrap();
        assert_eq!((own.executor.kind, own.executor.model), (ExecutorKind::Claude, None));
        assert_eq!(own.rounds.get(), 1);
        let same = review("[executor]\nmodel = \"m\"\neffort = \"low\"\n[review]\nmodel = \"n\"\n").unwrap();
        assert_eq!((same.executor.kind, same.executor.model.as_deref()), (ExecutorKind::Codex, Some("n")));
        assert_eq!((same.executor.effort.is_some(), same.rounds.get()), (true, 2));
    }

    #[test]
    fn problems_name_the_table() {
        let problems = Config::decode(b"[review]\nkind = \"command\"\nround = 1\n").unwrap_err();
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "line 2: `review.kind` is \"command\": add `command` or `preset`",
                "line 3: `review.round` is not a known key; did you mean `rounds`?",
            ]
        );
    }
}
