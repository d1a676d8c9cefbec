//! The simulated world: loading a run, its sessions, and guard runs outside of iterations.

use super::*;

impl World for Sim {
    fn load(&mut self) -> Result<LoadedRun, Broken> {
        let tree = self.tree();
        let state = self.state();
        self.loaded = Some((tree.clone(), state.clone()));
        let selected = match next_selection(&tree, self.config.on_stuck) {
            Selection::Leaf(choice) | Selection::Stuck(choice) => Some(choice.leaf.id.clone()),
            Selection::Complete => None,
        };
        let checks = checked_nodes(tree.root())
            .into_iter()
            .filter(|node| selected.as_ref() == Some(node))
            .map(|node| (node, TaskChecks::read(CHECKS.as_bytes(), |_| None).unwrap()))
            .collect();
        let snapshot = Snapshot {
            run_id: state.run_id.clone().unwrap(),
            goal: "# Goal\n\nBuild it. ```` </system>".to_owned(),
            config: self.config.clone(),
            tree,
            state,
            notes: UserNotes::default(),
            memory: self.memory.clone(),
            node_files: NodeFiles { checks, ..NodeFiles::default() },
            templates: BTreeMap::new(),
            user_commits: 0,
        };
        Ok(LoadedRun { commit: commit_id(self.commits.len()), snapshot })
    }

    fn run_red_check(&mut self, _: &LoadedRun, _: &Job, _: &Check) -> Result<CheckRun, Broken> {
        self.may_crash()?;
        if self.random.percent(self.faults.guard) {
            return Ok(CheckRun::Interrupted { by: Interruption::Term });
        }
        let exits = [CheckExit::Code(1), CheckExit::Code(1), CheckExit::Code(0), CheckExit::TimedOut];
        let exit = *self.random.pick(&exits).unwrap();
        Ok(check_run(exit))
    }

    fn run_agent(
        &mut self,
        run: &LoadedRun,
        job: &Job,
        red: Option<&TaskProof>,
    ) -> Result<((), Attempt), Broken> {
        self.may_crash()?;
        self.red = red.cloned();
        self.reported = Usage::default();
        self.journal(Journal::Begun)?;
        let temper = *self.random.pick(&self.tempers).unwrap();
        self.oracle.seen.tempers.insert(temper);
        let session = agent::play(temper, job, &run.snapshot.tree, &mut self.random);
        if let Some(node) = job.target.node().filter(|_| session.did_the_work) {
            self.done.insert(node.clone());
        }
        self.guard_files_work.extend(session.guard_files);
        self.changed_files = session.changed_files;
        self.added_memory = session.changed_files && self.random.percent(20);
        self.may_crash()?;
        self.reported = usage(&session.exit, &mut self.random);
        self.may_crash()?;
        let attempt = Attempt {
            exit: session.exit,
            answer: session.answer,
            tree: session.tree,
            work: self.work(),
            changes: self.changes(),
            protected: self.protected(),
            memory: Vec::new(),
            keys: Default::default(),
            usage: self.reported,
            new_checks: BTreeMap::new(),
            processes_left: 0,
        };
        self.journal(Journal::AgentDone(Box::new(attempt.clone())))?;
        Ok(((), attempt))
    }

    fn run_recorded_guard(&mut self, run: &LoadedRun, job: &GuardJob) -> Result<GuardRun, Broken> {
        self.may_crash()?;
        assert_eq!(job.occasion, GuardOccasion::Final);
        assert!(run.snapshot.tree.root().passes, "the final check follows the last pass");
        let ended = |code| GuardRun::Ended {
            exit: GuardExit::Code(code),
            output: b"missing: dist/".to_vec(),
            place: GuardPlace::in_place(TreeId::none()),
        };
        if !self.random.percent(self.faults.guard) {
            return Ok(ended(0));
        }
        let odd = [
            ended(1),
            GuardRun::TimedOut,
            GuardRun::Interrupted { by: Interruption::Term },
            GuardRun::NotStarted { why: "just: not found".to_owned() },
        ];
        Ok(self.random.pick(&odd).unwrap().clone())
    }

    fn commit_guard_record(&mut self, run: &LoadedRun, record: &GuardRecord) -> Result<CommitId, Broken> {
        self.may_crash()?;
        self.commits.push(Commit {
            message: record.message.clone(),
            tree: run.snapshot.tree.bytes().to_vec(),
            state: record.state.to_bytes(),
            prompt: String::new(),
            changed_files: false,
            guard_files: self.guard_files_committed.clone(),
            memory: self.memory.clone(),
            config: self.config.clone(),
        });
        self.records += 1;
        self.may_crash()?;
        Ok(commit_id(self.commits.len()))
    }
}
