//! A temporary folder that other users cannot read, removed on drop.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::atomic;
use crate::error::Error;

pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn create() -> Result<Self, Error> {
        use std::os::unix::fs::DirBuilderExt;
        let base = std::env::temp_dir();
        for number in 0..100_000 {
            let path = base.join(format!("runner-guard-{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(source) => return Err(Error::Io { action: "create the folder", path, source }),
            }
        }
        Err(Error::Io { action: "create a folder in", path: base, source: ErrorKind::AlreadyExists.into() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = atomic::remove_any(&self.0);
    }
}
