//! The runner's block in `.git/info/exclude`: on branches without `.runner/.gitignore`, git must ignore the logs of runs too.

use std::fs;
use std::path::Path;

use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;
use crate::paths::RUNNER_LOCAL;

const BEGIN: &str = "# BEGIN runner: local files of runs; runner writes this block again";
const END: &str = "# END runner";
const BYTES_MAX: u64 = 1 << 20;

/// Adds the runner's patterns to `info/exclude`, or updates them; other lines stay as they are. A failure is ignored: the
/// patterns only keep `git status` short, and a file that is not a regular one is the user's own arrangement.
pub(crate) fn ignore_local_files(git: &Git) {
    let _ = update(&git.common_dir().join("info/exclude"));
}

fn update(path: &Path) -> Result<(), Error> {
    let old = atomic::read(path, BYTES_MAX)?.unwrap_or_default();
    let new = with_block(&old);
    if new == old {
        return Ok(());
    }
    let permissions = fs::metadata(path).map(|metadata| metadata.permissions());
    path.parent().map_or(Ok(()), atomic::ensure_folder)?;
    atomic::write(path, &new)?;
    permissions.map_or(Ok(()), |mode| fs::set_permissions(path, mode).map_err(Error::io("write", path)))
}

/// The file with the current block: in the place of an old one, else at the end.
fn with_block(old: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let is_line = |line: &[u8], text: &str| line.trim_ascii_end() == text.as_bytes();
    let begin = lines.iter().position(|line| is_line(line, BEGIN));
    let end = begin.and_then(|begin| {
        let after = lines.iter().skip(begin).position(|line| is_line(line, END))?;
        Some(begin + after + 1)
    });
    let (head, tail) = match (begin, end) {
        (Some(begin), Some(end)) => (lines.get(..begin), lines.get(end..)),
        (_, _) => (Some(lines.as_slice()), None),
    };
    let mut new = head.unwrap_or_default().concat();
    if !new.is_empty() && !new.ends_with(b"\n") {
        new.push(b'\n');
    }
    new.extend(block().bytes());
    new.extend(tail.unwrap_or_default().concat());
    new
}

fn block() -> String {
    let patterns: String = RUNNER_LOCAL.iter().map(|pattern| format!("/{pattern}\n")).collect();
    format!("{BEGIN}\n{patterns}{END}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_added_once_and_keeps_other_lines() {
        let once = with_block(b"*.o\nmine");
        let text = String::from_utf8(once.clone()).unwrap();
        assert!(text.starts_with("*.o\nmine\n# BEGIN runner"), "{text}");
        assert!(text.contains("\n/.runner/iterations\n") && text.ends_with("# END runner\n"), "{text}");
        assert_eq!(with_block(&once), once);
        assert_eq!(with_block(b""), block().as_bytes());
    }

    #[test]
    fn an_old_block_is_replaced_in_its_place() {
        let old = format!("a\n{BEGIN}\n/old\n{END}\nb\n");
        assert_eq!(with_block(old.as_bytes()), format!("a\n{}b\n", block()).as_bytes());
        // Without its end the block has unknown extent, so nothing is removed.
        let open = format!("a\n{BEGIN}\n/old\n");
        assert_eq!(with_block(open.as_bytes()), format!("{open}{}", block()).as_bytes());
    }
}
