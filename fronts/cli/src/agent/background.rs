//! A process of its own: who started it goes on at once, and nothing of theirs is kept open.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::process::ExitCode;

/// The two processes after [`Background::enter`].
pub(super) enum Background {
    /// The one that was started; it ends with this.
    Before(ExitCode),
    /// The one in the background, still with the standard streams.
    Behind(Ready),
}

/// The other process waits for this.
pub(super) struct Ready(OwnedFd);

impl Background {
    /// Forks. The first process returns when the second one is ready, or has failed and said why.
    pub(super) fn enter() -> io::Result<Background> {
        // SAFETY: nothing of ours is open yet but the standard streams.
        unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
        let mut ends = [0; 2];
        // SAFETY: two numbers to fill.
        checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
        // SAFETY: descriptors that the kernel just made for us.
        let [from, into] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        // SAFETY: this process has one thread.
        let child = checked(unsafe { libc::fork() })?;
        if child != 0 {
            drop(into);
            return Ok(Background::Before(await_word(&from)));
        }
        drop(from);
        // What a terminal sends to the program's processes is not for this one, and it may outlast the terminal. But it
        // stays in the session: the kernel shares out processors by session (autogroups), and has kept another one
        // waiting for minutes on a processor that was busy with faults.
        // SAFETY: numbers; a forked child of this session may always lead a group.
        unsafe {
            libc::setpgid(0, 0);
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
        }
        std::env::set_current_dir("/")?;
        Ok(Background::Behind(Ready(into)))
    }
}

/// The status to end with.
fn await_word(from: &OwnedFd) -> ExitCode {
    let mut word = 0_u8;
    loop {
        // SAFETY: one byte of our own.
        let got = unsafe { libc::read(from.as_raw_fd(), (&raw mut word).cast(), 1) };
        match got {
            1 => return ExitCode::SUCCESS,
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return ExitCode::from(super::NO_STORE),
        }
    }
}

impl Ready {
    /// Lets go of the standard streams, and of who waits.
    pub(super) fn detach(self) -> io::Result<()> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        for stream in 0..3 as RawFd {
            // SAFETY: our own descriptors.
            checked(unsafe { libc::dup2(null.as_raw_fd(), stream) })?;
        }
        File::from(self.0).write_all(b"+")
    }
}

/// Nobody but root may look at this process: it knows a password.
pub(super) fn hide() {
    // SAFETY: a number.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
}

fn checked(rc: i32) -> io::Result<i32> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) }
}
