//! Makes files without names. A directory for temporary files is shared: another user could create a name that can be
//! guessed first.

use super::refused::errno;
use core::ffi::{CStr, c_int};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The descriptor of a new file, and whether its contents pass through the page cache.
type Opened = (c_int, bool);

/// Opens a new file without a name in the directory of `path`, whose last component is not used. An error is an
/// `errno`.
pub(super) fn open_in_folder_of(path: &Path) -> Result<Opened, i32> {
    let folder = folder_of(path);
    match direct_first(|flags| never_named(folder, flags)) {
        // The file system does not support it (NFS, overlayfs before Linux 6.1), or the kernel does not know the
        // flag.
        Err(libc::EOPNOTSUPP | libc::EISDIR) => direct_first(|flags| named_for_a_moment(folder, flags)),
        opened => opened,
    }
}

/// Returns everything up to and including the last slash of a path, or `.` if it has no slash.
fn folder_of(path: &Path) -> &[u8] {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|&byte| byte == b'/');
    end.map_or(b".", |slash| &bytes[..=slash])
}

/// Calls `open` with `O_DIRECT`, and again without it if the file system or a seccomp filter refuses that flag.
fn direct_first(open: impl Fn(c_int) -> Result<c_int, i32>) -> Result<Opened, i32> {
    match open(libc::O_DIRECT) {
        Err(libc::EINVAL) => open(0).map(|fd| (fd, true)),
        opened => opened.map(|fd| (fd, false)),
    }
}

/// Opens a file that never has a name. `O_EXCL` forbids giving it one later.
fn never_named(folder: &[u8], flags: c_int) -> Result<c_int, i32> {
    open(&text(folder)?, libc::O_TMPFILE | libc::O_EXCL | flags)
}

/// Makes a file with a random name of 128 bits, and removes the name at once.
fn named_for_a_moment(folder: &[u8], flags: c_int) -> Result<c_int, i32> {
    let name = text(&[folder, format!("/.largesse-{:032x}", random()?).as_bytes()].concat())?;
    let opened = open(&name, libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | flags);
    // Some file systems refuse O_DIRECT after they have made the file.
    if opened != Err(libc::EEXIST) {
        // SAFETY: a C string. No other process can guess a name of 128 random bits, so a file of this name is ours.
        unsafe { libc::unlink(name.as_ptr()) };
    }
    opened
}

fn open(name: &CStr, flags: c_int) -> Result<c_int, i32> {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::open(name.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC | flags, 0o600) };
    if fd < 0 { Err(errno()) } else { Ok(fd) }
}

fn text(bytes: &[u8]) -> Result<CString, i32> {
    CString::new(bytes).map_err(|_| libc::EINVAL)
}

fn random() -> Result<u128, i32> {
    let mut bytes = [0; size_of::<u128>()];
    // SAFETY: the buffer has the length given.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(got) == Ok(bytes.len()) { Ok(u128::from_ne_bytes(bytes)) } else { Err(errno()) }
}

#[cfg(test)]
#[expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]
mod tests {
    use super::*;
    use std::os::fd::{FromRawFd as _, OwnedFd};
    use std::os::unix::fs::MetadataExt as _;

    #[track_caller]
    fn check_folder(path: &str, want: &str) {
        assert_eq!(folder_of(Path::new(path)), want.as_bytes(), "the folder of {path}");
    }

    #[test]
    fn folder_ends_at_the_last_slash() {
        check_folder("/var/tmp/largesse.far", "/var/tmp/");
        check_folder("/scratch/", "/scratch/");
        check_folder("/pages", "/");
        check_folder("pages", ".");
        check_folder("", ".");
    }

    #[track_caller]
    fn check_way(way: &str, open: impl Fn(&[u8], c_int) -> Result<c_int, i32>) {
        let folder = super::super::tests::folder().join(format!("unnamed-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        match direct_first(|flags| open(folder.as_os_str().as_bytes(), flags)) {
            Err(libc::EOPNOTSUPP) => eprintln!("skipped: {} has no {way}", folder.display()),
            opened => {
                // SAFETY: a descriptor that was just opened.
                let file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(opened.unwrap().0) });
                let about = file.metadata().unwrap();
                let names = std::fs::read_dir(&folder).unwrap().count();
                assert_eq!((names, about.nlink(), about.mode() & 0o777), (0, 0, 0o600), "{way}");
            }
        }
        std::fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn both_ways_leave_no_name() {
        check_way("O_TMPFILE", never_named);
        check_way("random name", named_for_a_moment);
    }
}
