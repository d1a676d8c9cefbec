//! The results of earlier invocations, so that an interrupted campaign continues and its report adds up.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::point::{PointSpec, PointVerdict};
use crate::pool::SweepSpec;
use crate::sweep::{self, SweptPoint};

/// One line of JSON per point, or per complete sweep. Only lines of the same build of the runner count.
pub(crate) struct ResultFile {
    path: PathBuf,
    build: String,
}

impl ResultFile {
    pub(crate) fn open(path: PathBuf, build: String) -> Self {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if !text.is_empty() && !text.ends_with('\n') {
            // The campaign was killed while it wrote: the next line must not continue that one.
            fs::write(&path, format!("{text}\n")).expect("the file of results");
        }
        Self { path, build }
    }

    /// The verdicts of this build. The last one of a point counts.
    pub(crate) fn read(&self) -> BTreeMap<PointSpec, PointVerdict> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        // A line may be incomplete after a crash of the campaign.
        let values = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        values
            .filter(|value| value.get("build").and_then(Value::as_str) == Some(self.build.as_str()))
            .filter_map(|value| {
                let text = |name: &str| value.get(name).and_then(Value::as_str);
                Some((PointSpec::parse(text("point")?)?, PointVerdict::parse(text("verdict")?)?))
            })
            .collect()
    }

    /// The points of complete sweeps of this build. The last sweep of a family and a scenario counts.
    pub(crate) fn read_sweeps(&self) -> BTreeMap<SweepSpec, Vec<SweptPoint>> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let values = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut sweeps = BTreeMap::new();
        for value in values {
            let text = |name: &str| value.get(name).and_then(Value::as_str);
            if let (Some(build), Some(output)) = (text("build"), text("sweep"))
                && build == self.build
                && let Some(points) = sweep::parse(output)
                && let Some(first) = points.first()
            {
                let key =
                    SweepSpec { family: first.spec.family.clone(), scenario: first.spec.subject.clone() };
                sweeps.insert(key, points);
            }
        }
        sweeps
    }

    pub(crate) fn append_sweep(&self, points: &[SweptPoint], time: Duration) {
        self.append_line(&json!({
            "build": self.build,
            "sweep": sweep::to_text(points),
            "milliseconds": u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        }));
    }

    pub(crate) fn append(&self, point: &PointSpec, verdict: &PointVerdict, time: Duration) {
        self.append_line(&json!({
            "build": self.build,
            "point": point.to_string(),
            "verdict": verdict.to_text(),
            "milliseconds": u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        }));
    }

    fn append_line(&self, value: &Value) {
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()))
            .expect("the file of results");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::ResultFile;
    use crate::point::{PointSpec, PointVerdict};
    use crate::sweep::SweptPoint;

    #[test]
    fn results_of_another_build_do_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results");
        let old = ResultFile::open(path.clone(), "old".to_owned());
        let new = ResultFile::open(path.clone(), "new".to_owned());
        let point = |at: usize| PointSpec::new("kill-all", "step", &[at]);
        let bad = PointVerdict::Bad(vec!["one".to_owned(), "two".to_owned()]);
        old.append(&point(1), &PointVerdict::Sound, Duration::ZERO);
        new.append(&point(2), &bad, Duration::ZERO);
        new.append(&point(3), &PointVerdict::NotReached, Duration::ZERO);
        std::fs::write(
            &path,
            std::fs::read_to_string(&path).expect("results") + "{\"build\": \"new\", \"poi",
        )
        .expect("an incomplete line");
        let read: Vec<_> = new.read().into_iter().collect();
        assert_eq!(read, [(point(2), bad), (point(3), PointVerdict::NotReached)]);
    }

    #[test]
    fn a_sweep_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = ResultFile::open(folder.path().join("results"), "new".to_owned());
        let point = |at: usize| PointSpec::new("kill-all", "step", &[at]);
        let points = [
            SweptPoint { spec: point(1), verdict: PointVerdict::Sound },
            SweptPoint { spec: point(2), verdict: PointVerdict::Same(point(1)) },
        ];
        file.append_sweep(&points, Duration::ZERO);
        assert_eq!(file.read_sweeps().into_values().collect::<Vec<_>>(), [points.to_vec()]);
        assert!(file.read().is_empty(), "a sweep is not a point");
    }
}
