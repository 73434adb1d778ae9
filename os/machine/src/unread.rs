//! Describes files of the kernel that cannot be read. Their contents are unknown, whereas a file that does not exist
//! is known to have none.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file of the kernel that cannot be read, with the cause and, if a command can help, that command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    file: PathBuf,
    why: String,
}

/// A virtual file system, with the command that mounts it.
struct KernelFs {
    folder: &'static str,
    /// A directory that exists whenever the file system is mounted.
    landmark: &'static str,
    command: &'static str,
}

const SYSTEMS: [KernelFs; 2] = [
    KernelFs { folder: "proc", landmark: "/proc/self", command: "mount -t proc proc /proc" },
    KernelFs { folder: "sys", landmark: "/sys/kernel", command: "mount -t sysfs sysfs /sys" },
];

impl Unread {
    /// Returns the file `path` below `root` with the reason for which it cannot be read, given the `error` of an
    /// attempt. Returns `None` if the file is absent: its file system is mounted, but the kernel does not have this
    /// file, or the file is missing from a saved machine, which has a `root` other than `/`.
    #[must_use]
    pub fn of(root: &Path, path: &str, error: &io::Error) -> Option<Unread> {
        let path = path.trim_start_matches('/');
        let file = root.join(path);
        if error.kind() != io::ErrorKind::NotFound {
            return Some(Unread { file, why: error.to_string() });
        }
        let system = SYSTEMS.iter().find(|system| path.starts_with(system.folder))?;
        let is_hidden = root == Path::new("/") && !Path::new(system.landmark).is_dir();
        let KernelFs { folder, command, .. } = system;
        is_hidden.then(|| Unread { file, why: format!("/{folder} is hidden, or not mounted: {command}") })
    }

    /// Describes a file or directory that cannot be read for the reason `why`, which is not an error of a system call.
    pub(crate) fn because(file: PathBuf, why: &str) -> Unread {
        Unread { file, why: why.to_owned() }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be read ({})", self.file.display(), self.why)
    }
}

/// Reads the file `path` below `root` as text. Returns `None` if it is absent, in the sense of [`Unread::of`].
pub fn text(root: &Path, path: &str) -> Result<Option<String>, Unread> {
    match std::fs::read(root.join(path.trim_start_matches('/'))) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) => Unread::of(root, path, &error).map_or(Ok(None), Err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_is_absent_where_its_system_is_mounted() {
        let here = Path::new("/");
        assert_eq!(text(here, "/proc/no-such-file"), Ok(None));
        assert_eq!(text(here, "sys/kernel/no-such-file"), Ok(None));
        assert_eq!(text(Path::new("/nowhere"), "proc/self/status"), Ok(None), "a saved machine");
        assert!(text(here, "/proc/self/status").unwrap().unwrap().contains("Threads:"));
    }

    #[test]
    fn refused_file_is_named_with_its_cause() {
        let unread = text(Path::new("/"), "/proc/self").unwrap_err();
        assert_eq!(unread.to_string(), "/proc/self cannot be read (Is a directory (os error 21))");
        let refused = io::Error::from_raw_os_error(libc::EACCES);
        assert!(Unread::of(Path::new("/saved"), "proc/x", &refused).is_some(), "in a saved machine, too");
    }
}
