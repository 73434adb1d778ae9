//! Runs the agent in a background process, which keeps no descriptor of the original process open.

use crate::descriptors::close_range;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

/// The process in which [`Background::enter`] has returned.
pub(super) enum Background {
    /// The original process, and whether the background process is ready.
    Parent { ready: bool },
    /// The background process, in which the standard streams are still open.
    Child(Ready),
}

/// Holds the pipe on which the original process waits for a byte.
pub(super) struct Ready(OwnedFd);

impl Background {
    /// Forks. The original process returns once the child is ready, or has failed and printed the reason.
    pub(super) fn enter() -> io::Result<Background> {
        // SAFETY: this process has opened no descriptor above the standard streams that it still uses.
        unsafe { close_range(3, u32::MAX) };
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for the two descriptors.
        checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
        // SAFETY: the kernel just made these descriptors, which have no other owner.
        let [from, into] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        // SAFETY: this process has one thread.
        let child = checked(unsafe { libc::fork() })?;
        if child != 0 {
            drop(into);
            return Ok(Background::Parent { ready: is_ready(&from) });
        }
        drop(from);
        // A process group of its own gets no signals of the terminal's, and ignoring SIGHUP lets it outlive the
        // terminal. It stays in the session: the kernel divides CPU time by session (autogroups), and an agent in
        // another one waited for minutes on a CPU that was busy with faults.
        // SAFETY: takes numbers only; a forked child may always lead a process group.
        unsafe {
            libc::setpgid(0, 0);
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
        }
        std::env::set_current_dir("/")?;
        Ok(Background::Child(Ready(into)))
    }
}

/// Waits for the child's byte, and returns whether it came before the child ended.
fn is_ready(from: &OwnedFd) -> bool {
    let mut word = 0_u8;
    loop {
        // SAFETY: `word` has room for the one byte that is read.
        let got = unsafe { libc::read(from.as_raw_fd(), (&raw mut word).cast(), 1) };
        match got {
            1 => return true,
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return false,
        }
    }
}

impl Ready {
    /// Redirects the standard streams to `/dev/null`, and releases the waiting original process.
    pub(super) fn detach(self) -> io::Result<()> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        for stream in 0..3 as RawFd {
            // SAFETY: takes numbers only; the standard streams belong to this process.
            checked(unsafe { libc::dup2(null.as_raw_fd(), stream) })?;
        }
        File::from(self.0).write_all(b"+")
    }
}

/// Makes this process's memory, which holds a password, unreadable to all users but root.
pub(super) fn hide() {
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
}

fn checked(rc: i32) -> io::Result<i32> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) }
}
