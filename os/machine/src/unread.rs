//! Describes files of the kernel that cannot be read. Their contents are unknown, whereas a file that does not exist
//! is known to have none.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
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
    /// Directories below `folder` that Linux kernels usually have. If one is missing, nothing is known about the files
    /// in it.
    landmarks: &'static [&'static str],
    command: &'static str,
}

const SYSTEMS: [KernelFs; 2] = [
    KernelFs { folder: "/proc", landmarks: &["/proc/self"], command: "mount -t proc proc /proc" },
    KernelFs {
        folder: "/sys",
        landmarks: &["/sys/kernel/mm", "/sys/devices/system/cpu"],
        command: "mount -t sysfs sysfs /sys",
    },
];

impl Unread {
    /// Returns the file `path` below `root` with the reason for which it cannot be read, given the `error` of an
    /// attempt. Returns `None` if the file is absent, in the sense of [`Unread::hidden`].
    #[must_use]
    pub fn of(root: &Path, path: &str, error: &io::Error) -> Option<Unread> {
        if error.kind() != io::ErrorKind::NotFound {
            return Some(Unread { file: below(root, path), why: error.to_string() });
        }
        Unread::hidden(root, path)
    }

    /// Returns why a missing or empty file or directory `path` below `root` says nothing: the kernel's file system is not
    /// mounted, another mount hides a part of it (containers mask files by empty directories and devices), or the
    /// kernel does not show such a directory. Returns `None` if the file is known to be
    /// absent or empty, because the kernel's file system is there, or a saved machine, which has a `root` other than
    /// `/`, lacks it.
    #[must_use]
    pub fn hidden(root: &Path, path: &str) -> Option<Unread> {
        let file = below(root, path);
        let system = SYSTEMS.iter().find(|system| file.starts_with(system.folder))?;
        let seen = file.ancestors().find(|folder| folder.exists())?;
        let KernelFs { folder, landmarks, command } = system;
        let cut = |landmark: &&&str| file.starts_with(landmark) && !seen.starts_with(landmark);
        let why = if Path::new(folder).starts_with(seen) && !is_of_the_kernel(seen) {
            format!("{folder} is hidden, or not mounted: {command}")
        } else if !is_of_the_kernel(seen) {
            format!("another mount hides what the kernel has in {}", seen.display())
        } else {
            format!("this kernel does not show {}", landmarks.iter().find(cut)?)
        };
        Some(Unread { file, why })
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

fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Returns whether a file or directory is part of a file system by which the kernel describes itself. LXCFS, in user
/// space (FUSE), shows a container the same files with other numbers.
fn is_of_the_kernel(file: &Path) -> bool {
    let Ok(path) = CString::new(file.as_os_str().as_bytes()) else { return false };
    // SAFETY: `statfs` consists of numbers, for which zero is a valid value.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a C string, and `about` has room for the answer.
    let rc = unsafe { libc::statfs(path.as_ptr(), &raw mut about) };
    let kinds = [
        libc::PROC_SUPER_MAGIC,
        libc::SYSFS_MAGIC,
        libc::CGROUP_SUPER_MAGIC,
        libc::CGROUP2_SUPER_MAGIC,
        libc::FUSE_SUPER_MAGIC,
    ];
    rc == 0 && kinds.contains(&about.f_type)
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be read ({})", self.file.display(), self.why)
    }
}

/// Reads the file `path` below `root` as text. Returns `None` if it is absent, in the sense of [`Unread::of`].
pub fn text(root: &Path, path: &str) -> Result<Option<String>, Unread> {
    match std::fs::read(below(root, path)) {
        Ok(bytes) if bytes.is_empty() => Unread::hidden(root, path).map_or(Ok(Some(String::new())), Err),
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) => Unread::of(root, path, &error).map_or(Ok(None), Err),
    }
}

/// Reads a file as [`text`] does, and removes white space around the text, and zero bytes that programs which saved a
/// machine may have written at its end.
pub fn trimmed(root: &Path, path: &str) -> Result<Option<String>, Unread> {
    let trim = |text: String| text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned();
    text(root, path).map(|text| text.map(trim))
}

/// Returns the names in the directory `path` below `root`. Returns `None` if it is absent, in the sense of
/// [`Unread::of`].
pub fn names(root: &Path, path: &str) -> Result<Option<Vec<String>>, Unread> {
    let entries = match std::fs::read_dir(below(root, path)) {
        Ok(entries) => entries,
        Err(error) => return Unread::of(root, path, &error).map_or(Ok(None), Err),
    };
    let names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    match Unread::hidden(root, path).filter(|_| names.is_empty()) {
        Some(unread) => Err(unread),
        None => Ok(Some(names)),
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
