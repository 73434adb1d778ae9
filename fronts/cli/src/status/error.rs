//! The errors of showing a process, with messages that say what to do.

use super::decode::Undecodable;
use crate::doctor::is_root;
use largesse_machine::Unread;
use std::io;
use std::path::Path;

/// The reason why `largesse status` cannot show a process.
#[derive(Debug, thiserror::Error)]
pub(super) enum StatusError {
    #[error("there is no process {pid}")]
    NoSuchProcess { pid: u32 },
    /// The process is a kernel thread, or has ended and was not waited for.
    #[error("process {pid} ({command}) has no memory to look at: it has ended, or belongs to the kernel")]
    NoMemory { pid: u32, command: String },
    /// The process runs, but `/proc` does not show it.
    #[error("process {pid} cannot be looked at: {}", hidden(.unread.as_ref()))]
    Hidden { pid: u32, unread: Option<Unread> },
    /// `/proc` cannot be read.
    #[error("the processes are not known: {0}")]
    NoProc(Unread),
    /// The process does not have the library.
    #[error(
        "process {pid} ({command}) was not started with largesse run; start it with `largesse run -- PROGRAM`, or in R `library(largesse); ISM(TRUE)`"
    )]
    NotServed { pid: u32, command: String },
    /// The kernel's rules for debuggers forbid reading the process.
    #[error("process {pid} may not be looked at{}", denied(*.pid, *.root, *.ptrace_scope))]
    Denied {
        pid: u32,
        /// Whether this user is root.
        root: bool,
        ptrace_scope: Option<u32>,
    },
    /// The report cannot be decoded.
    #[error("process {pid}: {why}")]
    Report { pid: u32, why: Undecodable },
    /// The report was not read in time.
    #[error("process {pid} was left out: its report was not read within a second")]
    Slow { pid: u32 },
    #[error("process {pid} cannot be read: {error}")]
    Other { pid: u32, error: io::Error },
}

impl StatusError {
    /// Returns the meaning of an error of a file under `/proc/PID`.
    pub(super) fn of(pid: u32, error: io::Error) -> StatusError {
        match error.raw_os_error() {
            Some(libc::ENOENT) if runs(pid) => StatusError::Hidden {
                pid,
                unread: Unread::of(Path::new("/"), &format!("/proc/{pid}/maps"), &error),
            },
            Some(libc::ENOENT | libc::ESRCH) => StatusError::NoSuchProcess { pid },
            Some(libc::EACCES | libc::EPERM) => {
                let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
                let ptrace_scope = scope.ok().and_then(|text| text.trim().parse().ok());
                StatusError::Denied { pid, root: is_root(), ptrace_scope }
            }
            _ => StatusError::Other { pid, error },
        }
    }
}

/// Returns whether the process exists, by sending signal 0.
fn runs(pid: u32) -> bool {
    // SAFETY: takes numbers only; signal 0 is not delivered.
    let answer = i32::try_from(pid).map(|pid| unsafe { libc::kill(pid, 0) });
    answer == Ok(0) || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// Says why a process that runs is not visible.
fn hidden(unread: Option<&Unread>) -> String {
    unread.map_or_else(
        || "/proc does not show it to this user (mount option hidepid)".to_owned(),
        Unread::to_string,
    )
}

/// Says who may look at a process, and which setting forbids it.
fn denied(pid: u32, root: bool, ptrace_scope: Option<u32>) -> String {
    if root {
        return ", although you are root: this root lacks the right CAP_SYS_PTRACE, as in a container (docker run --cap-add SYS_PTRACE), or a security module of the kernel forbids it".to_owned();
    }
    let who = format!(": only the same user, or root, may (sudo largesse status {pid})");
    match ptrace_scope {
        Some(scope @ 1..) => format!(
            "{who}\nkernel.yama.ptrace_scope is {scope}, which forbids it to the same user too: use root, or sysctl kernel.yama.ptrace_scope=0"
        ),
        _ => who,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_process_is_not_called_absent() {
        let of = |pid| StatusError::of(pid, io::Error::from_raw_os_error(libc::ENOENT)).to_string();
        // /proc is readable here, so that hidepid is the only remaining reason.
        assert!(of(std::process::id()).contains("hidepid"), "{}", of(std::process::id()));
        assert_eq!(of(i32::MAX.unsigned_abs()), format!("there is no process {}", i32::MAX));
    }

    #[test]
    fn root_is_not_told_to_use_sudo() {
        let denied = |root| StatusError::Denied { pid: 1, root, ptrace_scope: None }.to_string();
        assert!(denied(false).contains("sudo largesse status 1"), "{}", denied(false));
        assert!(
            denied(true).contains("CAP_SYS_PTRACE") && !denied(true).contains("sudo"),
            "{}",
            denied(true)
        );
    }
}
