//! Reads the newest events of a run from its iteration folders, for `runner status`.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::run_status::with_later_events;
use runner_core::step::RecordedEvent;
use rustix::fs::{FileType, Mode, OFlags};

use crate::fs::atomic;
use crate::paths::RepoPaths;

/// How much of the end of events.jsonl is read.
const TAIL_BYTES: u64 = 256 << 10;

/// The newest events of a run, oldest first: those of its newest iteration, and those of the run itself after them. Empty where
/// the logs are missing: they are not committed.
pub fn newest_events(root: &Path, run: &RunId) -> Vec<RecordedEvent> {
    let Some(logs) = run_logs(root, run) else { return Vec::new() };
    let events = |folder: &Path| {
        let bytes = tail(&folder.join("events.jsonl")).unwrap_or_default();
        RecordedEvent::from_lines(&bytes).collect()
    };
    let iteration = newest_iteration(&logs).map(|folder| events(&folder)).unwrap_or_default();
    with_later_events(iteration, events(&logs))
}

fn run_logs(root: &Path, run: &RunId) -> Option<PathBuf> {
    let logs = RepoPaths::new(root, Path::new("")).run_logs(run.as_str());
    // An agent can write below `.runner/`: a link in the place of a folder is not followed.
    (is_folder(logs.parent()?) && is_folder(&logs)).then_some(logs)
}

fn is_folder(path: &Path) -> bool {
    atomic::is_folder(path).unwrap_or(false)
}

fn newest_iteration(logs: &Path) -> Option<PathBuf> {
    let names = fs::read_dir(logs).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let newest: IterationNumber = names.filter_map(|name| name.parse().ok()).max()?;
    Some(logs.join(newest.to_string())).filter(|path| is_folder(path))
}

/// The last bytes of a regular file. Links are not followed; a pipe in its place does not block.
fn tail(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let size = u64::try_from(stat.st_size).ok()?;
    let mut bytes = vec![0; usize::try_from(size.min(TAIL_BYTES)).ok()?];
    File::from(file).read_exact_at(&mut bytes, size.saturating_sub(TAIL_BYTES)).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_core::step::Event;

    #[test]
    fn events_are_read_from_the_newest_folder_and_through_no_link() {
        let around = tempfile::tempdir().unwrap();
        let (root, run) = (around.path(), RunId::new("x").unwrap());
        assert_eq!(newest_events(root, &run), []);
        let folder = root.join(".runner/iterations/x");
        for iteration in ["0001", "0002"] {
            fs::create_dir_all(folder.join(iteration)).unwrap();
        }
        fs::write(folder.join("0001/events.jsonl"), "{\"t_ms\": 1, \"event\": \"paused\"}\n").unwrap();
        assert_eq!(newest_events(root, &run), []);
        let filler = "x".repeat(1 << 20);
        let line = "{\"t_ms\": 2, \"event\": \"resumed\"}\n";
        fs::write(folder.join("0002/events.jsonl"), format!("{filler}\n{line}{{\"t_ms\"")).unwrap();
        assert_eq!(newest_events(root, &run), [RecordedEvent { t_ms: 2, event: Event::Resumed }]);
        for (t_ms, is_newer) in [(1, false), (2, true)] {
            let line = format!("{{\"t_ms\": {t_ms}, \"event\": \"paused\"}}\n");
            fs::write(folder.join("events.jsonl"), line).unwrap();
            let newest = newest_events(root, &run).pop().map(|recorded| recorded.event);
            assert_eq!(newest, Some(if is_newer { Event::Paused } else { Event::Resumed }));
        }
        fs::remove_file(folder.join("events.jsonl")).unwrap();
        fs::remove_file(folder.join("0002/events.jsonl")).unwrap();
        std::os::unix::fs::symlink(folder.join("0001/events.jsonl"), folder.join("0002/events.jsonl"))
            .unwrap();
        assert_eq!(newest_events(root, &run), []);
    }
}
