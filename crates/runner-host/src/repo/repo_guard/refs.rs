//! Restores the run's branch after a session, and keeps every other reference as its owner left it.

use std::collections::{BTreeMap, BTreeSet};

use runner_core::step::{MovedRef, RestoreReport};

use super::{AsideFolder, GitAccess, RepoSnapshot, SessionRef};
use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;

impl RepoSnapshot {
    pub(super) fn restore_refs(
        &self,
        aside: &AsideFolder<'_>,
        session: SessionRef<'_>,
        agent_head: &str,
        report: &mut RestoreReport,
    ) -> Result<(), Error> {
        let git = aside.git;
        if session.access == GitAccess::Writable {
            self.repair_packed_refs(git, report)?;
        }
        let mut now = git.all_refs()?;
        if session.access == GitAccess::Writable {
            self.reflogs.clear_way(aside, &now, report)?;
            self.repair_broken_refs(git, &mut now, report)?;
        }
        let conflicting: Vec<&String> = now.keys().filter(|name| self.must_remove(name, session)).collect();
        let mut tips = agent_tips(git, session, &now, agent_head)?;
        tips.extend(conflicting.iter().filter_map(|name| now.get(*name).cloned()));
        if !tips.is_empty() {
            // The agent's own git may not have synced its objects.
            git.sync()?;
        }
        for tip in &tips {
            let prefix = tip.get(..8).unwrap_or(tip);
            let name = format!("refs/runner/{}/agent/{}-{prefix}", session.run, session.iter);
            git.set_ref(&name, tip)?;
            report.kept.push(name);
        }
        for name in conflicting {
            git.remove_ref(name, now.get(name).map_or("", String::as_str))?;
            report.refs.push(name.clone());
        }
        self.restore_branch(git, session, &now, report)?;
        if session.access == GitAccess::Writable {
            self.save_moved(git, session, &now, report)?;
        }
        let is_new = |name: &String| !self.refs.contains_key(name) && !report.refs.contains(name);
        report.new_refs = now.into_keys().filter(is_new).collect();
        Ok(())
    }

    fn restore_branch(
        &self,
        git: &Git,
        session: SessionRef<'_>,
        now: &BTreeMap<String, String>,
        report: &mut RestoreReport,
    ) -> Result<(), Error> {
        let branch = session.run.branch().reference();
        let tip = now.get(&branch);
        if tip.map(String::as_str) == Some(session.base.as_str()) {
            return Ok(());
        }
        if tip.is_none() {
            remove_unreadable_ref(git, &branch)?;
        }
        git.set_ref(&branch, session.base.as_str())?;
        report.refs.push(branch);
        Ok(())
    }

    /// Handles references of someone else's that an agent outside a sandbox could have moved. One that vanished is created
    /// again. One that moved keeps its new value, because its owner may have moved it; the old value is kept, too.
    fn save_moved(
        &self,
        git: &Git,
        session: SessionRef<'_>,
        now: &BTreeMap<String, String>,
        report: &mut RestoreReport,
    ) -> Result<(), Error> {
        let own = format!("refs/runner/{}/", session.run);
        let branch = session.run.branch().reference();
        for (name, from) in &self.refs {
            let to = now.get(name);
            let is_ours = *name == branch || name.starts_with(&own);
            // A reference that was broken before the session cannot be restored, and nothing is lost with it.
            if is_ours || to == Some(from) || !git.has_object(from)? {
                continue;
            }
            let saved = || {
                let rest = name.strip_prefix("refs/").unwrap_or(name);
                format!("refs/runner/{}/moved/{}/{rest}", session.run, session.iter)
            };
            let Some(to) = to else {
                // Git has no reference beside one whose name begins with it, as after `git branch -m topic topic/part`.
                let is_in_way = |other: &String| conflicts(name, other) && !report.refs.contains(other);
                if now.keys().any(is_in_way) {
                    git.set_ref(&saved(), from)?;
                    report.kept.push(saved());
                    continue;
                }
                remove_unreadable_ref(git, name)?;
                git.set_ref(name, from)?;
                report.refs.push(name.clone());
                continue;
            };
            // Other runs move their own references, and their readers verify them.
            if name.starts_with("refs/runner/") || name.starts_with("refs/heads/runner/") {
                continue;
            }
            let saved = if git.is_ancestor(from, to)? {
                None
            } else {
                git.set_ref(&saved(), from)?;
                Some(saved())
            };
            report.moved_refs.push(MovedRef {
                name: name.clone(),
                from: from.clone(),
                to: to.clone(),
                saved,
            });
        }
        Ok(())
    }

    /// Whether a new reference cannot stay. Its name conflicts with the run's own references; or it replaces an object, so
    /// that git would show another history, and the agent could have made it.
    fn must_remove(&self, name: &str, session: SessionRef<'_>) -> bool {
        let branch = session.run.branch().reference();
        let own = format!("refs/runner/{}", session.run);
        let is_in_way = conflicts(name, &branch) || is_below(&own, name) || name == own;
        let replaces = session.access == GitAccess::Writable && name.starts_with("refs/replace/");
        !self.refs.contains_key(name) && (is_in_way || replaces)
    }

    /// Takes back every change of a reference to an object that does not exist: after a power cut, git may have written the
    /// reference and lost the object.
    fn repair_broken_refs(
        &self,
        git: &Git,
        now: &mut BTreeMap<String, String>,
        report: &mut RestoreReport,
    ) -> Result<(), Error> {
        let changed: Vec<(String, String)> = now
            .iter()
            .filter(|(name, object)| self.refs.get(*name) != Some(*object))
            .map(|(name, object)| (name.clone(), object.clone()))
            .collect();
        for (name, object) in changed {
            if git.has_object(&object)? {
                continue;
            }
            match self.refs.get(&name) {
                Some(before) if git.has_object(before)? => {
                    git.set_ref(&name, before)?;
                    now.insert(name.clone(), before.clone());
                    git.forget_lost_objects(&name)?;
                }
                Some(_) | None => {
                    git.remove_ref(&name, &object)?;
                    now.remove(&name);
                }
            }
            git.forget_lost_objects("HEAD")?;
            report.refs.push(name);
        }
        // Those that existed before are created again below.
        let mut unreadable = git.unreadable_refs();
        unreadable.retain(|name| !self.refs.contains_key(name) && !now.contains_key(name));
        for name in unreadable {
            remove_unreadable_ref(git, &name)?;
            report.refs.push(name);
        }
        Ok(())
    }

    /// Writes packed-refs from the captured references if git cannot read it any more.
    fn repair_packed_refs(&self, git: &Git, report: &mut RestoreReport) -> Result<(), Error> {
        if git.lists_refs()? {
            return Ok(());
        }
        let path = git.common_dir().join("packed-refs");
        let mut text = String::from("# pack-refs with: sorted \n");
        for (name, object) in &self.refs {
            text.push_str(&format!("{object} {name}\n"));
        }
        atomic::replace_durably(git.common_dir(), &path, text.as_bytes())?;
        report.files.push("packed-refs".to_owned());
        Ok(())
    }
}

fn is_below(one: &str, other: &str) -> bool {
    one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether git refuses to have both references.
fn conflicts(one: &str, other: &str) -> bool {
    is_below(one, other) || is_below(other, one)
}

/// Removes what is at the path of a reference that git does not list: git would not overwrite a file or folder that is not
/// a reference.
fn remove_unreadable_ref(git: &Git, name: &str) -> Result<(), Error> {
    atomic::remove_any(&git.common_dir().join(name))
}

/// The commits that the agent left on the run's branch and at HEAD.
fn agent_tips(
    git: &Git,
    session: SessionRef<'_>,
    refs: &BTreeMap<String, String>,
    agent_head: &str,
) -> Result<BTreeSet<String>, Error> {
    let head = match agent_head.strip_prefix("ref: ") {
        // A commit on a branch stays reachable from it.
        Some(_) => None,
        None => Some(agent_head),
    };
    let branch = refs.get(&session.run.branch().reference()).map(String::as_str);
    let mut tips = BTreeSet::new();
    for tip in [branch, head].into_iter().flatten().filter(|tip| *tip != session.base.as_str()) {
        if git.existing_commit(tip)?.is_some() {
            tips.insert(tip.to_owned());
        }
    }
    Ok(tips)
}
