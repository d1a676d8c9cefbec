//! Reads a stopped process: its registers, strings in its memory, and the paths that its arguments name.

use std::ffi::OsString;
use std::fs;
use std::io::IoSliceMut;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use super::call_table::{CallClass, PathArguments, TracedCall};

const PAGE_BYTES: usize = 4096;

/// A process that is stopped at the entry of a system call.
pub(super) struct StoppedCall {
    process: Pid,
    registers: libc::user_regs_struct,
}

impl StoppedCall {
    pub(super) fn read(process: Pid) -> nix::Result<Self> {
        Ok(Self { process, registers: ptrace::getregs(process)? })
    }

    pub(super) fn number(&self) -> i64 {
        self.registers.orig_rax.cast_signed()
    }

    /// The name of the program that the process runs.
    pub(super) fn program(&self) -> String {
        let path = fs::read_link(format!("/proc/{}/exe", self.process)).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.trim_end_matches(" (deleted)").to_owned()
    }

    /// Skips the call, which then returns this error.
    pub(super) fn fail(&self, errno: Errno) -> nix::Result<()> {
        let mut registers = self.registers;
        registers.orig_rax = u64::MAX;
        registers.rax = (-i64::from(errno as i32)).cast_unsigned();
        ptrace::setregs(self.process, registers)
    }

    /// The files of the call. None if it is not one of the class, such as an `open` for reading where only changes count.
    pub(super) fn paths(&self, call: &TracedCall, class: CallClass) -> Option<Vec<PathBuf>> {
        let working_dir = libc::AT_FDCWD;
        let paths = match call.arguments {
            PathArguments::Nowhere => Vec::new(),
            PathArguments::Descriptor(at) => vec![self.descriptor_path(self.descriptor(at))],
            PathArguments::Path(at) => vec![self.path(working_dir, at)],
            PathArguments::PathAt(at) => vec![self.path(self.descriptor(at), at + 1)],
            PathArguments::Open(at) if class.counts_open(self.argument(at + 1)) => {
                vec![self.path(working_dir, at)]
            }
            PathArguments::OpenAt(at) if class.counts_open(self.argument(at + 2)) => {
                vec![self.path(self.descriptor(at), at + 1)]
            }
            PathArguments::OpenAt2(at) if class.counts_open(self.word(self.argument(at + 2))) => {
                vec![self.path(self.descriptor(at), at + 1)]
            }
            PathArguments::Duplicate if self.is_duplication() => Vec::new(),
            PathArguments::Open(_)
            | PathArguments::OpenAt(_)
            | PathArguments::OpenAt2(_)
            | PathArguments::Duplicate => return None,
            PathArguments::TwoPaths => vec![self.path(working_dir, 0), self.path(working_dir, 1)],
            PathArguments::TwoPathsAt => {
                vec![self.path(self.descriptor(0), 1), self.path(self.descriptor(2), 3)]
            }
        };
        Some(paths)
    }

    fn argument(&self, at: usize) -> u64 {
        let registers = &self.registers;
        match at {
            0 => registers.rdi,
            1 => registers.rsi,
            2 => registers.rdx,
            3 => registers.r10,
            4 => registers.r8,
            _ => registers.r9,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the kernel reads only the lower half of the register"
    )]
    fn descriptor(&self, at: usize) -> i32 {
        self.argument(at) as i32
    }

    /// Whether a `fcntl` copies a descriptor.
    fn is_duplication(&self) -> bool {
        [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&self.descriptor(1))
    }

    /// The number at an address; 0 if it cannot be read.
    fn word(&self, address: u64) -> u64 {
        let mut bytes = [0; size_of::<u64>()];
        let base = usize::try_from(address).unwrap_or_default();
        let remote = RemoteIoVec { base, len: bytes.len() };
        let _ = process_vm_readv(self.process, &mut [IoSliceMut::new(&mut bytes)], &[remote]);
        u64::from_ne_bytes(bytes)
    }

    fn descriptor_path(&self, descriptor: i32) -> PathBuf {
        let link = if descriptor == libc::AT_FDCWD { "cwd".to_owned() } else { format!("fd/{descriptor}") };
        fs::read_link(format!("/proc/{}/{link}", self.process)).unwrap_or_default()
    }

    fn path(&self, folder: i32, at: usize) -> PathBuf {
        let text = self.string(self.argument(at));
        if Path::new(&text).is_absolute() { text.into() } else { self.descriptor_path(folder).join(text) }
    }

    /// The string at an address, read up to the end of its second page.
    fn string(&self, address: u64) -> OsString {
        let mut bytes = Vec::new();
        let mut base = usize::try_from(address).unwrap_or_default();
        for _ in 0..2 {
            let mut page = [0; PAGE_BYTES];
            let (part, _) = page.split_at_mut(PAGE_BYTES - base % PAGE_BYTES);
            let remote = RemoteIoVec { base, len: part.len() };
            let local = &mut [IoSliceMut::new(part)];
            let Ok(read) = process_vm_readv(self.process, local, &[remote]) else { break };
            let read_part = part.get(..read).unwrap_or_default();
            let end = read_part.iter().position(|byte| *byte == 0);
            bytes.extend_from_slice(read_part.get(..end.unwrap_or(read)).unwrap_or_default());
            if end.is_some() {
                break;
            }
            base += read;
        }
        OsString::from_vec(bytes)
    }
}
