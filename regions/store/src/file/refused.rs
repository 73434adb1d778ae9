//! Explains why a file cannot be used as a store.

use std::path::PathBuf;

/// The reason why a file cannot be a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRefused {
    /// The file system keeps its files in memory, so that paging to it would deadlock the machine.
    InMemory(PathBuf),
    /// A system call failed.
    System {
        /// The path that was given for the file.
        path: PathBuf,
        /// Name of the system call.
        call: &'static str,
        /// Error number (`errno`) of the call.
        errno: i32,
    },
}

impl std::fmt::Display for FileRefused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileRefused::InMemory(path) => write!(
                f,
                "{}: lies in memory (tmpfs), and far memory must not: name a file on a disk, or set TMPDIR",
                path.display()
            ),
            FileRefused::System { path, call, errno } => {
                write!(f, "{}: {call}: {}", path.display(), std::io::Error::from_raw_os_error(*errno))?;
                match *errno {
                    libc::ENOSPC | libc::EDQUOT => {
                        write!(
                            f,
                            "; no room for another file (`df -i` shows it): name a file on another disk"
                        )
                    }
                    _ => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for FileRefused {}

/// Returns the error number of the calling thread's last system call.
pub(super) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
