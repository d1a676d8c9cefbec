//! Dependencies as order: what others wait for comes first, and otherwise everything stays where it is.
//!
//! A tree is worked on from left to right, so a dependency between two tasks is one between the two branches that
//! they lie in, below the node where those part.

use std::collections::{BTreeMap, BTreeSet};

use super::{EntryStatus, PlanEntry, PlanError};

/// An item with what it waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct DependentEntry {
    pub(super) item: PlanEntry,
    /// Its name, unique in the plan.
    pub(super) key: String,
    /// The names of what must come before it.
    pub(super) after: Vec<String>,
    pub(super) children: Vec<DependentEntry>,
}

/// Where a task is: the index at every level.
type Path = Vec<usize>;
/// For every parent: which child must come before which.
type Edges = BTreeMap<Path, BTreeSet<(usize, usize)>>;

/// The items in an order in which nothing comes before what it waits for.
pub(super) fn arranged(tasks: Vec<DependentEntry>) -> Result<Vec<PlanEntry>, Vec<PlanError>> {
    let (mut places, mut faults) = (BTreeMap::new(), Vec::new());
    locate(&tasks, &mut Vec::new(), &mut places, &mut faults);
    let mut edges = Edges::new();
    connect(&tasks, &mut Vec::new(), &places, (&mut edges, &mut faults));
    if !faults.is_empty() {
        return Err(faults);
    }
    let items = sorted(tasks, &mut Vec::new(), &edges, &mut faults);
    if faults.is_empty() { Ok(items) } else { Err(faults) }
}

fn locate(
    tasks: &[DependentEntry],
    path: &mut Path,
    places: &mut BTreeMap<String, (Path, EntryStatus)>,
    faults: &mut Vec<PlanError>,
) {
    for (index, task) in tasks.iter().enumerate() {
        path.push(index);
        if places.insert(task.key.clone(), (path.clone(), task.item.status)).is_some() {
            faults.push(PlanError::new(task.item.line, format!("there is a second task `{}`", task.key)));
        }
        locate(&task.children, path, places, faults);
        path.pop();
    }
}

fn connect(
    tasks: &[DependentEntry],
    path: &mut Path,
    places: &BTreeMap<String, (Path, EntryStatus)>,
    found: (&mut Edges, &mut Vec<PlanError>),
) {
    let (edges, faults) = found;
    for (index, task) in tasks.iter().enumerate() {
        path.push(index);
        for wanted in &task.after {
            let Some((other, standing)) = places.get(wanted) else {
                let reason = format!("`{}` depends on `{wanted}`, which is not in the plan", task.key);
                faults.push(PlanError::new(task.item.line, reason));
                continue;
            };
            let fork = path.iter().zip(other).take_while(|(mine, theirs)| mine == theirs).count();
            match (path.get(fork), other.get(fork), path.get(..fork)) {
                (Some(mine), Some(theirs), Some(parent)) => {
                    // What is done already, or never will be, is not waited for.
                    if *standing == EntryStatus::Open {
                        edges.entry(parent.to_vec()).or_default().insert((*theirs, *mine));
                    }
                }
                _ => {
                    let how =
                        if path == other { "itself" } else { "a task that it is part of, or the reverse" };
                    let reason = format!("`{}` depends on `{wanted}`: {how}", task.key);
                    faults.push(PlanError::new(task.item.line, reason));
                }
            }
        }
        connect(&task.children, path, places, (edges, faults));
        path.pop();
    }
}

fn sorted(
    tasks: Vec<DependentEntry>,
    path: &mut Path,
    edges: &Edges,
    faults: &mut Vec<PlanError>,
) -> Vec<PlanEntry> {
    let none = BTreeSet::new();
    let order = match topological(tasks.len(), edges.get(path).unwrap_or(&none)) {
        Ok(order) => order,
        Err(cycle) => {
            let named = cycle.iter().filter_map(|index| tasks.get(*index));
            let names: Vec<String> = named.clone().map(|task| format!("`{}`", task.key)).collect();
            let line = named.map(|task| task.item.line).min().unwrap_or(1);
            let first = names.first().cloned().unwrap_or_default();
            let reason = format!("tasks wait for each other: {} → {first}", names.join(" → "));
            faults.push(PlanError::new(line, reason));
            (0..tasks.len()).collect()
        }
    };
    let mut tasks: Vec<Option<DependentEntry>> = tasks.into_iter().map(Some).collect();
    let mut items = Vec::new();
    for index in order {
        let Some(task) = tasks.get_mut(index).and_then(Option::take) else { continue };
        path.push(index);
        let children = sorted(task.children, path, edges, faults);
        path.pop();
        items.push(PlanEntry { children, ..task.item });
    }
    items
}

/// Indexes in order: of those that wait for nothing, always the first. A cycle is given as what waits for the next.
fn topological(count: usize, edges: &BTreeSet<(usize, usize)>) -> Result<Vec<usize>, Vec<usize>> {
    let mut waiting: BTreeMap<usize, BTreeSet<usize>> =
        (0..count).map(|index| (index, BTreeSet::new())).collect();
    let mut followers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (before, after) in edges {
        waiting.entry(*after).or_default().insert(*before);
        followers.entry(*before).or_default().push(*after);
    }
    let mut ready: BTreeSet<usize> =
        waiting.iter().filter(|(_, on)| on.is_empty()).map(|(index, _)| *index).collect();
    let mut order = Vec::new();
    while let Some(index) = ready.pop_first() {
        order.push(index);
        waiting.remove(&index);
        for after in followers.get(&index).into_iter().flatten() {
            if let Some(on) = waiting.get_mut(after) {
                on.remove(&index);
                if on.is_empty() {
                    ready.insert(*after);
                }
            }
        }
    }
    if waiting.is_empty() { Ok(order) } else { Err(cycle_in(&waiting)) }
}

/// A cycle among tasks of which every one waits for another of them.
fn cycle_in(waiting: &BTreeMap<usize, BTreeSet<usize>>) -> Vec<usize> {
    let mut way: Vec<usize> = Vec::new();
    let mut at = waiting.keys().next().copied();
    while let Some(index) = at {
        if let Some(begin) = way.iter().position(|seen| *seen == index) {
            return way.split_off(begin);
        }
        way.push(index);
        at =
            waiting.get(&index).and_then(|on| on.iter().find(|before| waiting.contains_key(before))).copied();
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(key: &str, after: &[&str], children: Vec<DependentEntry>) -> DependentEntry {
        let after = after.iter().map(|name| (*name).to_owned()).collect();
        let item = PlanEntry { title: key.to_owned(), line: 7, ..PlanEntry::default() };
        DependentEntry { item, key: key.to_owned(), after, children }
    }

    fn titles(items: &[PlanEntry]) -> Vec<String> {
        items
            .iter()
            .flat_map(|item| std::iter::once(item.title.clone()).chain(titles(&item.children)))
            .collect()
    }

    #[test]
    fn what_others_wait_for_comes_first_and_the_rest_stays() {
        let tasks = vec![
            task("a", &["c"], vec![]),
            task("b", &[], vec![]),
            task("c", &[], vec![]),
            task("d", &["a"], vec![]),
        ];
        assert_eq!(titles(&arranged(tasks).unwrap()), ["b", "c", "a", "d"]);
    }

    #[test]
    fn a_dependency_between_parts_is_one_between_their_branches() {
        let tasks = vec![
            task(
                "a",
                &[],
                vec![task("a1", &["b2"], vec![]), task("a2", &["a3"], vec![]), task("a3", &[], vec![])],
            ),
            task("b", &[], vec![task("b1", &[], vec![]), task("b2", &[], vec![])]),
        ];
        assert_eq!(titles(&arranged(tasks).unwrap()), ["b", "b1", "b2", "a", "a1", "a3", "a2"]);
    }

    #[test]
    fn what_cannot_be_put_in_order_is_named() {
        let told = |tasks| arranged(tasks).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>();
        let round = vec![task("a", &["c"], vec![]), task("b", &["a"], vec![]), task("c", &["b"], vec![])];
        assert_eq!(told(round), ["line 7: tasks wait for each other: `a` → `c` → `b` → `a`"]);
        assert_eq!(told(vec![task("a", &["a"], vec![])]), ["line 7: `a` depends on `a`: itself"]);
        assert_eq!(
            told(vec![task("a", &["x"], vec![])]),
            ["line 7: `a` depends on `x`, which is not in the plan"]
        );
        assert_eq!(
            told(vec![task("a", &[], vec![]), task("a", &[], vec![])]),
            ["line 7: there is a second task `a`"]
        );
        let parts = vec![
            task("a", &[], vec![task("a1", &["b1"], vec![]), task("a2", &[], vec![])]),
            task("b", &[], vec![task("b1", &[], vec![]), task("b2", &["a2"], vec![])]),
        ];
        assert_eq!(told(parts), ["line 7: tasks wait for each other: `a` → `b` → `a`"]);
    }

    #[test]
    fn what_is_done_is_not_waited_for() {
        let mut done = task("b", &["a"], vec![]);
        done.item.status = EntryStatus::Done;
        assert_eq!(titles(&arranged(vec![task("a", &["b"], vec![]), done]).unwrap()), ["a", "b"]);
    }
}
