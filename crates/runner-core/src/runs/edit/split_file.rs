//! The file format of `runner node split --from`: one title per line, with the goal and the criteria indented below it.

/// One part of a split task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitPart {
    pub title: String,
    /// The indented text below the title.
    pub goal: Option<String>,
    /// The indented list items below the title.
    pub acceptance: Vec<String>,
}

/// Parses the file. `Err` has the number of a line that is indented before the first title.
pub fn parse_split_file(text: &str) -> Result<Vec<SplitPart>, usize> {
    let mut parts: Vec<SplitPart> = Vec::new();
    for (number, line) in (1_usize..).zip(text.lines()) {
        let text = line.trim();
        let item = text.strip_prefix("- ").or_else(|| text.strip_prefix("* "));
        if text.is_empty() {
            continue;
        }
        if !line.starts_with([' ', '\t']) {
            parts.push(SplitPart { title: item.unwrap_or(text).to_owned(), ..SplitPart::default() });
            continue;
        }
        let part = parts.last_mut().ok_or(number)?;
        match (item, &mut part.goal) {
            (Some(criterion), _) => part.acceptance.push(criterion.to_owned()),
            (None, Some(goal)) => {
                goal.push('\n');
                goal.push_str(text);
            }
            (None, goal @ None) => *goal = Some(text.to_owned()),
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_not_indented_and_their_details_are() {
        let text = "- Read it\n  All of it,\n  at once.\n\n  - no bytes lost\n\t* quick\nWrite it\n";
        let read = SplitPart {
            title: "Read it".to_owned(),
            goal: Some("All of it,\nat once.".to_owned()),
            acceptance: vec!["no bytes lost".to_owned(), "quick".to_owned()],
        };
        assert_eq!(
            parse_split_file(text),
            Ok(vec![read, SplitPart { title: "Write it".to_owned(), ..SplitPart::default() }])
        );
        assert_eq!(parse_split_file("\n  lost\n"), Err(2));
        assert_eq!(parse_split_file(""), Ok(Vec::new()));
    }
}
