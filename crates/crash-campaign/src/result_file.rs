//! The results of earlier invocations, so that an interrupted campaign continues and its report adds up.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::point::{PointSpec, PointVerdict};

/// One line of JSON per point. Only lines of the same build of the runner count.
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

    pub(crate) fn append(&self, point: &PointSpec, verdict: &PointVerdict, time: Duration) {
        let value = json!({
            "build": self.build,
            "point": point.to_string(),
            "verdict": verdict.to_text(),
            "milliseconds": u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        });
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
}
