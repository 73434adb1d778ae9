//! `--report`: writes one report for all processes of the program when it has ended in any way.
//!
//! # Picture
//! ```text
//!   largesse run ──fork──► watcher ◄── pidfd of each process, /proc/PID/smaps_rollup
//!        │                    ▲
//!        exec                 │ a private folder: records (mapped by each process), its own JSON
//!        ▼                    │
//!     program ── children ────┘                    at the end: report.json, picture
//! ```
//! # Knows / does not know
//! Knows which processes have the library, how each ended, and its last record. Does not know how a heap works.
//! # Invariants
//! 1. The program keeps the launcher's process number, and has no child that it did not start.
//! 2. The watcher ends with the program and removes its folder. It replaces no file that the user did not name, except
//!    an earlier picture.

mod clock;
mod compose;
mod end;
mod target;
mod watcher;

pub(crate) use target::ReportTarget;

use crate::descriptors::close_range;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Starts a watcher for the program that will replace this process, and returns the watcher's folder, where the library
/// writes its records. The caller must have one thread.
pub(super) fn watch(target: &ReportTarget, temporary: &Path) -> io::Result<PathBuf> {
    let folder = private_folder(temporary)?;
    let program = std::process::id();
    let process = end::open(program)?;
    // SAFETY: this process has one thread.
    let child = checked(unsafe { libc::fork() })?;
    if child == 0 {
        // The second fork makes the watcher no child of the program, which may wait for all of its children.
        // SAFETY: the forked process has one thread, too.
        if unsafe { libc::fork() } == 0 {
            detach(&process, target);
            watcher::watch(&folder, program, process, target);
        }
        // SAFETY: takes a number only, and runs no destructor of the launcher's a second time.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` has room for the status of our own child.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    Ok(folder)
}

/// Creates a folder that only this user can enter.
fn private_folder(temporary: &Path) -> io::Result<PathBuf> {
    let name = temporary.join("largesse-report-XXXXXX").into_os_string();
    let name = CString::new(name.into_vec())?;
    let made = name.into_raw();
    // SAFETY: `made` is a C string that this function owns; its X are replaced in place.
    let done = unsafe { libc::mkdtemp(made) };
    // SAFETY: `made` came from `into_raw`, and its length is the same.
    let name = unsafe { CString::from_raw(made) };
    if done.is_null() {
        return Err(io::Error::last_os_error());
    }
    Ok(PathBuf::from(OsStr::from_bytes(name.as_bytes())))
}

/// Leaves the program's process group, ignores signals, and closes all descriptors except `process`, standard error
/// and, if the report goes there, standard output, so that the report follows the program's output.
fn detach(process: &OwnedFd, target: &ReportTarget) {
    const FIRST: i32 = 3;
    let ignored = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE, libc::SIGTTOU];
    // SAFETY: ignoring a signal runs none of our code, and this copy of the launcher uses none of the descriptors
    // that are closed.
    unsafe {
        libc::setpgid(0, 0);
        for signal in ignored {
            libc::signal(signal, libc::SIG_IGN);
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        libc::dup2(null, 0);
        if *target != ReportTarget::Stdout {
            libc::dup2(null, 1);
        }
        libc::close(null);
        let own = process.as_raw_fd();
        if own > FIRST {
            close_range(FIRST.cast_unsigned(), own.cast_unsigned() - 1);
        }
        close_range(own.cast_unsigned() + 1, u32::MAX);
        libc::chdir(c"/".as_ptr());
    }
}

fn checked(rc: i32) -> io::Result<i32> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) }
}
