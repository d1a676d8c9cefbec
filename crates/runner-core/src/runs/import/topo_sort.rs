//! A stable topological sort: entries come after their dependencies, and otherwise keep their order.
//!
//! The runner works through a tree from left to right, so a dependency between two tasks becomes one between the two branches
//! that contain them, below their common ancestor.

use std::collections::{BTreeMap, BTreeSet};

use super::{EntryStatus, PlanEntry, PlanError};

/// An entry with its dependencies.
#[derive(Clone, Debug, Default)]
pub(super) struct DependentEntry {
    pub(super) entry: PlanEntry,
    /// Its id, unique in the plan.
    pub(super) key: String,
    /// The ids of its dependencies.
    pub(super) after: Vec<String>,
    pub(super) children: Vec<DependentEntry>,
}

/// The position of a task: the index at each level.
type Path = Vec<usize>;
/// Position and status of each task by id.
type Positions = BTreeMap<String, (Path, EntryStatus)>;
/// For each parent, pairs of children: the first must come before the second.
type Edges = BTreeMap<Path, BTreeSet<(usize, usize)>>;

/// The entries in an order in which each comes after its dependencies.
pub(super) fn sort_by_dependencies(tasks: Vec<DependentEntry>) -> Result<Vec<PlanEntry>, Vec<PlanError>> {
    let mut positions = Positions::new();
    let mut errors = Vec::new();
    locate(&tasks, &mut Vec::new(), &mut positions, &mut errors);
    let mut edges = Edges::new();
    connect(&tasks, &mut Vec::new(), &positions, &mut edges, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let entries = sort_level(tasks, &mut Vec::new(), &edges, &mut errors);
    if errors.is_empty() { Ok(entries) } else { Err(errors) }
}

fn locate(tasks: &[DependentEntry], path: &mut Path, positions: &mut Positions, errors: &mut Vec<PlanError>) {
    for (index, task) in tasks.iter().enumerate() {
        path.push(index);
        if positions.insert(task.key.clone(), (path.clone(), task.entry.status)).is_some() {
            let reason = format!("duplicate task id `{}`", task.key);
            errors.push(PlanError::new(task.entry.line, reason));
        }
        locate(&task.children, path, positions, errors);
        path.pop();
    }
}

fn connect(
    tasks: &[DependentEntry],
    path: &mut Path,
    positions: &Positions,
    edges: &mut Edges,
    errors: &mut Vec<PlanError>,
) {
    for (index, task) in tasks.iter().enumerate() {
        path.push(index);
        for dependency in &task.after {
            let Some((other, status)) = positions.get(dependency) else {
                let reason = format!("`{}` depends on `{dependency}`, which is not in the plan", task.key);
                errors.push(PlanError::new(task.entry.line, reason));
                continue;
            };
            let fork = path.iter().zip(other).take_while(|(mine, theirs)| mine == theirs).count();
            match (path.get(fork), other.get(fork), path.get(..fork)) {
                (Some(mine), Some(theirs), Some(parent)) => {
                    // A dependency that is done or dropped needs no order.
                    if *status == EntryStatus::Open {
                        edges.entry(parent.to_vec()).or_default().insert((*theirs, *mine));
                    }
                }
                _ => {
                    let relation = if path == other { "itself" } else { "its own ancestor or descendant" };
                    let reason = format!("`{}` depends on `{dependency}`, {relation}", task.key);
                    errors.push(PlanError::new(task.entry.line, reason));
                }
            }
        }
        connect(&task.children, path, positions, edges, errors);
        path.pop();
    }
}

fn sort_level(
    tasks: Vec<DependentEntry>,
    path: &mut Path,
    edges: &Edges,
    errors: &mut Vec<PlanError>,
) -> Vec<PlanEntry> {
    let none = BTreeSet::new();
    let order = match topological(tasks.len(), edges.get(path).unwrap_or(&none)) {
        Ok(order) => order,
        Err(cycle) => {
            let tasks_of_cycle = cycle.iter().filter_map(|index| tasks.get(*index));
            let names: Vec<String> = tasks_of_cycle.clone().map(|task| format!("`{}`", task.key)).collect();
            let line = tasks_of_cycle.map(|task| task.entry.line).min().unwrap_or(1);
            let first = names.first().cloned().unwrap_or_default();
            let reason = format!("dependency cycle: {} → {first}", names.join(" → "));
            errors.push(PlanError::new(line, reason));
            (0..tasks.len()).collect()
        }
    };
    let mut tasks: Vec<Option<DependentEntry>> = tasks.into_iter().map(Some).collect();
    let mut entries = Vec::new();
    for index in order {
        let Some(task) = tasks.get_mut(index).and_then(Option::take) else { continue };
        path.push(index);
        let children = sort_level(task.children, path, edges, errors);
        path.pop();
        entries.push(PlanEntry { children, ..task.entry });
    }
    entries
}

/// The indexes in order: always the first of those without open dependencies. `Err` is a cycle, in which each depends on the
/// next.
fn topological(count: usize, edges: &BTreeSet<(usize, usize)>) -> Result<Vec<usize>, Vec<usize>> {
    let mut blocked: BTreeMap<usize, BTreeSet<usize>> =
        (0..count).map(|index| (index, BTreeSet::new())).collect();
    let mut followers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (before, after) in edges {
        blocked.entry(*after).or_default().insert(*before);
        followers.entry(*before).or_default().push(*after);
    }
    let mut ready: BTreeSet<usize> =
        blocked.iter().filter(|(_, by)| by.is_empty()).map(|(index, _)| *index).collect();
    let mut order = Vec::new();
    while let Some(index) = ready.pop_first() {
        order.push(index);
        blocked.remove(&index);
        for after in followers.get(&index).into_iter().flatten() {
            if let Some(by) = blocked.get_mut(after) {
                by.remove(&index);
                if by.is_empty() {
                    ready.insert(*after);
                }
            }
        }
    }
    if blocked.is_empty() { Ok(order) } else { Err(cycle_in(&blocked)) }
}

/// A cycle among tasks, each of which depends on another of them.
fn cycle_in(blocked: &BTreeMap<usize, BTreeSet<usize>>) -> Vec<usize> {
    let mut path: Vec<usize> = Vec::new();
    let mut at = blocked.keys().next().copied();
    while let Some(index) = at {
        if let Some(begin) = path.iter().position(|visited| *visited == index) {
            return path.split_off(begin);
        }
        path.push(index);
        at =
            blocked.get(&index).and_then(|by| by.iter().find(|before| blocked.contains_key(before))).copied();
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(key: &str, after: &[&str], children: Vec<DependentEntry>) -> DependentEntry {
        let after = after.iter().map(|name| (*name).to_owned()).collect();
        let entry = PlanEntry { title: key.to_owned(), line: 7, ..PlanEntry::default() };
        DependentEntry { entry, key: key.to_owned(), after, children }
    }

    fn titles(entries: &[PlanEntry]) -> Vec<String> {
        entries
            .iter()
            .flat_map(|entry| std::iter::once(entry.title.clone()).chain(titles(&entry.children)))
            .collect()
    }

    #[test]
    fn dependencies_come_first_and_the_rest_keeps_its_order() {
        let tasks = vec![
            task("a", &["c"], vec![]),
            task("b", &[], vec![]),
            task("c", &[], vec![]),
            task("d", &["a"], vec![]),
        ];
        assert_eq!(titles(&sort_by_dependencies(tasks).unwrap()), ["b", "c", "a", "d"]);
    }

    #[test]
    fn dependencies_between_children_order_their_branches() {
        let tasks = vec![
            task(
                "a",
                &[],
                vec![task("a1", &["b2"], vec![]), task("a2", &["a3"], vec![]), task("a3", &[], vec![])],
            ),
            task("b", &[], vec![task("b1", &[], vec![]), task("b2", &[], vec![])]),
        ];
        assert_eq!(titles(&sort_by_dependencies(tasks).unwrap()), ["b", "b1", "b2", "a", "a1", "a3", "a2"]);
    }

    #[test]
    fn invalid_dependencies_are_reported() {
        let errors = |tasks| {
            sort_by_dependencies(tasks).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let round = vec![task("a", &["c"], vec![]), task("b", &["a"], vec![]), task("c", &["b"], vec![])];
        assert_eq!(errors(round), ["line 7: dependency cycle: `a` → `c` → `b` → `a`"]);
        assert_eq!(errors(vec![task("a", &["a"], vec![])]), ["line 7: `a` depends on `a`, itself"]);
        assert_eq!(
            errors(vec![task("a", &["x"], vec![])]),
            ["line 7: `a` depends on `x`, which is not in the plan"]
        );
        assert_eq!(
            errors(vec![task("a", &[], vec![]), task("a", &[], vec![])]),
            ["line 7: duplicate task id `a`"]
        );
        let parts = vec![
            task("a", &[], vec![task("a1", &["b1"], vec![]), task("a2", &[], vec![])]),
            task("b", &[], vec![task("b1", &[], vec![]), task("b2", &["a2"], vec![])]),
        ];
        assert_eq!(errors(parts), ["line 7: dependency cycle: `a` → `b` → `a`"]);
    }

    #[test]
    fn completed_dependencies_are_ignored() {
        let mut done = task("b", &["a"], vec![]);
        done.entry.status = EntryStatus::Done;
        assert_eq!(titles(&sort_by_dependencies(vec![task("a", &["b"], vec![]), done]).unwrap()), ["a", "b"]);
    }
}
