//! What a guard left in the room, and its removal.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::fs::atomic;
use crate::git::{GitCommand, nul_separated, path_of};
use crate::room::tree_stamps::TreeStamps;

/// The state of the files in the room, compared with its index.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RoomFiles {
    has_changed: bool,
    /// Files and links in the place of a folder with tracked files. Git looks through a link and does not miss the files.
    in_the_way: Vec<PathBuf>,
    /// Everything else that is not tracked, with a folder as one path.
    pub(super) untracked: Vec<PathBuf>,
}

impl RoomFiles {
    /// The arguments of the git command that lists them.
    pub(super) const SCAN: [&str; 7] =
        ["ls-files", "-z", "-t", "--modified", "--others", "--killed", "--directory"];

    pub(super) fn scan(command: GitCommand<'_>) -> Result<Self, Error> {
        command.run().map(|output| Self::parse(&output))
    }

    /// The state of files that look as they did when they were those of the index.
    fn compare(stamps: &mut TreeStamps, tree: &Path) -> Option<Self> {
        stamps.untracked(tree).map(|untracked| Self { untracked, ..Self::default() })
    }

    fn parse(output: &[u8]) -> Self {
        let mut files = Self::default();
        for entry in nul_separated(output) {
            let (tag, path) = entry.split_at_checked(2).unwrap_or((entry, b""));
            let path = path_of(path.strip_suffix(b"/").unwrap_or(path)).to_owned();
            match tag {
                b"? " => files.untracked.push(path),
                b"K " => files.in_the_way.push(path),
                _ => files.has_changed = true,
            }
        }
        files.untracked.retain(|path| !files.in_the_way.contains(path));
        files
    }

    /// Whether every tracked file is as in the index.
    pub(super) fn is_intact(&self) -> bool {
        !self.has_changed && self.in_the_way.is_empty()
    }

    pub(super) fn require_intact(&self) -> Result<(), Error> {
        if self.is_intact() { Ok(()) } else { Err(Error::GitOutput { command: Self::SCAN.join(" ") }) }
    }
}

/// Restores the tracked files of a room and removes what is neither tracked nor ignored, nested repositories included.
pub(super) struct Cleaning {
    pub(super) tree: PathBuf,
    /// The tracked files when they were last known.
    pub(super) stamps: Option<TreeStamps>,
    pub(super) commands: CleaningCommands,
}

/// The git commands of a [`Cleaning`].
pub(super) struct CleaningCommands {
    pub(super) scan: GitCommand<'static>,
    pub(super) reset: GitCommand<'static>,
    pub(super) clean: GitCommand<'static>,
    pub(super) scan_again: GitCommand<'static>,
    /// Lists the tracked files.
    pub(super) list: GitCommand<'static>,
}

/// A room after a [`Cleaning`].
pub(super) struct CleanRoom {
    pub(super) files: RoomFiles,
    pub(super) stamps: Option<TreeStamps>,
}

impl Cleaning {
    pub(super) fn run(self) -> Result<CleanRoom, Error> {
        let Self { tree, stamps, commands } = self;
        let mut known = stamps;
        let mut scan = |command: GitCommand<'static>| {
            let same = known.as_mut().and_then(|stamps| RoomFiles::compare(stamps, &tree));
            if same.is_none() {
                known = None;
            }
            same.map_or_else(|| RoomFiles::scan(command), Ok)
        };
        let mut files = scan(commands.scan)?;
        // Most guards leave nothing.
        if !files.is_intact() || !files.untracked.is_empty() {
            // Tracked files come first: a .gitignore that the guard changed must not hide anything.
            for path in &files.in_the_way {
                atomic::remove_any(&tree.join(path))?;
            }
            if !files.is_intact() {
                commands.reset.run()?;
            }
            commands.clean.run()?;
            files = scan(commands.scan_again)?;
        }
        if known.is_none() && files.is_intact() {
            known = TreeStamps::read(&tree, &commands.list.run()?);
        }
        Ok(CleanRoom { files, stamps: known })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_the_way_of_tracked_files_is_not_merely_untracked() {
        let files = RoomFiles::parse(b"? src\0? target/\0K src\0");
        assert_eq!(files.untracked, [PathBuf::from("target")]);
        assert_eq!(files.in_the_way, [PathBuf::from("src")]);
        assert!(!files.is_intact());
    }

    #[test]
    fn a_changed_file_and_a_missing_one_are_not_intact() {
        assert!(RoomFiles::parse(b"").is_intact());
        assert!(RoomFiles::parse(b"? target/\0").is_intact());
        assert!(!RoomFiles::parse(b"C a.txt\0").is_intact());
    }
}
