//! The simulated world: loading a run, its sessions, and guard runs outside of iterations.

use super::*;

impl Sim {
    /// checks.toml of a task, if it has one.
    fn checks_of(&self, tree: &Tree, node: &NodeId) -> Option<Vec<u8>> {
        let added = self.tip().added.get(&checks_path(node)).cloned();
        added.or_else(|| checked_nodes(tree.root()).contains(node).then(|| CHECKS.into()))
    }
}

impl World for Sim {
    fn load(&mut self) -> Result<LoadedRun, Broken> {
        let tree = self.tree();
        let state = self.state();
        self.loaded = Some((tree.clone(), state.clone()));
        let selected: Vec<NodeId> = match next_selection(&tree, self.config.on_stuck) {
            Selection::Leaf(choice) | Selection::Stuck(choice) => {
                choice.path.iter().map(|node| node.id.clone()).collect()
            }
            Selection::Complete => Vec::new(),
        };
        let is_rechecked = selected.is_empty() || !state.ratchet.due.is_empty();
        let mut checks = BTreeMap::new();
        for node in agent::all_nodes(tree.root()) {
            let toml = self.checks_of(&tree, &node.id);
            if selected.contains(&node.id) || is_rechecked && node.passes {
                checks.extend(toml.map(|toml| (node.id.clone(), TaskChecks::read(&toml, |_| None).unwrap())));
            }
        }
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
        Ok(LoadedRun { commit: commit_id(self.commits.len()), snapshot, request: SessionRequest::Next })
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
            planning: PlanningChanges::default(),
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

    fn run_recheck(
        &mut self,
        _: &LoadedRun,
        _: &GuardJob,
        task: &PassedChecks,
        _: &Check,
        _: &CommitId,
    ) -> Result<CheckRun, Broken> {
        self.may_crash()?;
        assert!(self.tree().path_to(&task.node).unwrap().last().unwrap().passes, "only passed tasks");
        if !self.random.percent(self.faults.guard) {
            return Ok(check_run(CheckExit::Code(0)));
        }
        let odd = [
            CheckRun::Interrupted { by: Interruption::Hup },
            check_run(CheckExit::Code(1)),
            check_run(CheckExit::TimedOut),
        ];
        Ok(self.random.pick(&odd).unwrap().clone())
    }

    fn past_iterations(&mut self, _: &LoadedRun) -> Result<Vec<PastIteration>, Broken> {
        let mut past = Vec::new();
        for (nth, commit) in self.commits.iter().enumerate() {
            let kind = CommitKind::parse(commit.message.as_bytes());
            let outcome = MessageParts::parse(&commit.message).value(Trailer::Outcome);
            if let Some(iter) = kind.iter() {
                let passed = kind.node().filter(|_| outcome == Some("passed")).cloned();
                past.push(PastIteration { iter, commit: commit_id(nth + 1), passed });
            }
        }
        Ok(past)
    }

    fn discard_guard_record(&mut self, _: &LoadedRun, _: &GuardJob) -> Result<(), Broken> {
        self.may_crash()
    }

    fn commit_guard_record(&mut self, run: &LoadedRun, record: &GuardRecord) -> Result<CommitId, Broken> {
        self.may_crash()?;
        let mut added = self.tip().added.clone();
        for file in record.regression.iter().flat_map(|task| &task.files) {
            let RecordContent::Bytes(bytes) = &file.content else { panic!("{file:?}") };
            added.insert(file.path.clone(), bytes.clone());
        }
        let tree = record.regression.as_ref().map_or(&run.snapshot.tree, |task| &task.tree);
        self.commits.push(Commit {
            message: record.message.clone(),
            tree: tree.bytes().to_vec(),
            state: record.state.to_bytes(),
            prompt: String::new(),
            changed_files: false,
            guard_files: self.guard_files_committed.clone(),
            memory: self.memory.clone(),
            config: self.config.clone(),
            added,
        });
        self.records += 1;
        self.may_crash()?;
        Ok(commit_id(self.commits.len()))
    }
}
