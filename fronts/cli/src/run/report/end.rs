//! Determines how a process that is not a child of this one has ended.
//!
//! Linux 6.15 and later report the status through a pidfd. Earlier kernels show it in `/proc/PID/stat` until the parent
//! has waited for the process; afterwards it is unknown.
#![expect(clippy::disallowed_methods, reason = "descriptors of processes, which are not memory")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::Duration;

/// The way in which a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The process exited with this status.
    Exited(i32),
    /// This signal killed the process.
    Killed(i32),
    /// The system did not report the end.
    Unknown,
}

impl End {
    /// Decodes a status as `wait` returns it.
    fn of_status(status: i32) -> End {
        match status & 0x7f {
            0 => End::Exited(status >> 8 & 0xff),
            signal => End::Killed(signal),
        }
    }
}

/// Number of attempts to read the status of an ended process.
const TRIES: u32 = 100;
/// Pause between two attempts.
const APART: Duration = Duration::from_millis(1);

/// Opens a pidfd of the process.
pub(super) fn open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match i32::try_from(fd) {
        // SAFETY: the kernel just made this descriptor, which has no other owner.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns how a process ended, which must have ended.
pub(super) fn of(pid: u32, process: &OwnedFd) -> End {
    for _ in 0..TRIES {
        if let Some(status) = by_descriptor(process).or_else(|| of_zombie(pid)) {
            return End::of_status(status);
        }
        std::thread::sleep(APART);
    }
    End::Unknown
}

/// Returns how a process without a pidfd ended, or `None` if it still runs.
pub(super) fn of_unwatched(pid: u32) -> Option<End> {
    if let Some(status) = of_zombie(pid) {
        return Some(End::of_status(status));
    }
    // SAFETY: takes numbers only, and signal 0 is sent to no process.
    let refused = unsafe { libc::kill(pid.cast_signed(), 0) } != 0;
    // A process of another user is there, too: the kernel refuses with EPERM.
    let is_gone = refused && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    is_gone.then_some(End::Unknown)
}

/// Mirrors the first version of `struct pidfd_info` in `linux/pidfd.h`.
#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

fn by_descriptor(process: &OwnedFd) -> Option<i32> {
    const EXIT: u64 = 1 << 3;
    /// Number of the request, `_IOWR(0xff, 11, struct pidfd_info)`.
    const GET_INFO: libc::c_ulong = 0xc000_ff0b | (size_of::<Info>() as libc::c_ulong) << 16;
    let mut info = Info { mask: EXIT, ..Info::default() };
    // SAFETY: `info` has the size that the request encodes.
    let rc = unsafe { libc::ioctl(process.as_raw_fd(), GET_INFO, &raw mut info) };
    (rc == 0 && info.mask & EXIT != 0).then_some(info.exit_code)
}

/// Returns the status of a process that has ended and for which its parent has not waited yet.
fn of_zombie(pid: u32) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    status_in(&text)
}

/// Returns the last field of a zombie's `stat`. The process name before it may contain any characters.
fn status_in(stat: &str) -> Option<i32> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    (fields.next()? == "Z").then(|| fields.next_back()?.parse().ok()).flatten()
}

/// Returns the name of a signal, or `signal N` for a less common one.
pub(super) fn signal_name(signal: i32) -> String {
    let names = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    let known = names.into_iter().find(|(number, _)| *number == signal);
    known.map_or_else(|| format!("signal {signal}"), |(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn zombies_have_status() {
        assert_eq!(status_in("7 (a) b) Z 1 7 7 0 -1 0 256"), Some(256));
        assert_eq!(status_in("7 (a) R 1 7 7 0 -1 0 0"), None);
        assert_eq!(status_in(""), None);
        assert_eq!([256, 6, 134].map(End::of_status), [End::Exited(1), End::Killed(6), End::Killed(6)]);
    }

    #[test]
    fn process_end_is_found() {
        for (script, want) in [("exit 3", End::Exited(3)), ("kill -ABRT $$", End::Killed(libc::SIGABRT))] {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            let process = open(child.id()).unwrap();
            // The child is not waited for yet, so that it becomes a zombie.
            assert_eq!(of(child.id(), &process), want, "{script}");
            child.wait().unwrap();
        }
    }
}
