//! The steps of a leaf, as a person writes them down: a title a line, and indented below it its goal and points.

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitPart {
    pub title: String,
    /// What stands below it.
    pub goal: Option<String>,
    /// The points below it.
    pub acceptance: Vec<String>,
}

/// Reads the steps. What is indented before the first title is a fault, told by its line.
pub fn parts(text: &str) -> Result<Vec<SplitPart>, usize> {
    let mut all: Vec<SplitPart> = Vec::new();
    for (nth, line) in (1_usize..).zip(text.lines()) {
        let words = line.trim();
        let point = words.strip_prefix("- ").or_else(|| words.strip_prefix("* "));
        if words.is_empty() {
            continue;
        }
        if !line.starts_with([' ', '\t']) {
            all.push(SplitPart { title: point.unwrap_or(words).to_owned(), ..SplitPart::default() });
            continue;
        }
        let part = all.last_mut().ok_or(nth)?;
        match (point, &mut part.goal) {
            (Some(point), _) => part.acceptance.push(point.to_owned()),
            (None, Some(goal)) => {
                goal.push('\n');
                goal.push_str(words);
            }
            (None, goal @ None) => *goal = Some(words.to_owned()),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_stand_at_the_margin_and_the_rest_below_them() {
        let text = "- Read it\n  All of it,\n  at once.\n\n  - no bytes lost\n\t* quick\nWrite it\n";
        let read = SplitPart {
            title: "Read it".to_owned(),
            goal: Some("All of it,\nat once.".to_owned()),
            acceptance: vec!["no bytes lost".to_owned(), "quick".to_owned()],
        };
        assert_eq!(
            parts(text),
            Ok(vec![read, SplitPart { title: "Write it".to_owned(), ..SplitPart::default() }])
        );
        assert_eq!(parts("\n  lost\n"), Err(2));
        assert_eq!(parts(""), Ok(Vec::new()));
    }
}
