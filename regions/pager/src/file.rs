//! A store in a file of its own.

use crate::{PageStore, StoreError};
use core::ffi::c_int;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const TMPFS_MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;

/// Why a file cannot be a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRefused {
    /// A file of that name is there: it may be somebody's.
    Exists(PathBuf),
    /// The file system keeps files in memory: paging to it would deadlock the machine.
    InMemory(PathBuf),
    /// The kernel's answer.
    System {
        /// The file.
        path: PathBuf,
        /// Which call.
        call: &'static str,
        /// Its `errno`.
        errno: i32,
    },
}

impl std::fmt::Display for FileRefused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileRefused::Exists(path) => {
                write!(f, "{}: a file of this name exists and is left alone; name a new one", path.display())
            }
            FileRefused::InMemory(path) => write!(
                f,
                "{}: lies in memory (tmpfs), and far memory must not: name a file on a disk, or set TMPDIR",
                path.display()
            ),
            FileRefused::System { path, call, errno } => {
                write!(f, "{}: {call}: {}", path.display(), std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

impl std::error::Error for FileRefused {}

/// Pages at their own offsets of a sparse file that has no name any more: nothing is left behind,
/// however the process ends. The page cache is bypassed where the file system can.
#[derive(Debug)]
pub struct FileStore {
    fd: c_int,
    cached: bool,
}

impl FileStore {
    /// Makes the file, readable by its owner only, and takes its name away.
    pub fn create(path: &Path) -> Result<FileStore, FileRefused> {
        let refuse = |call, errno| FileRefused::System { path: path.to_owned(), call, errno };
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| refuse("open", libc::EINVAL))?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        let open = |more| {
            // SAFETY: the name is a C string.
            let fd = unsafe { libc::open(name.as_ptr(), flags | more, 0o600) };
            if fd < 0 { Err(errno()) } else { Ok(fd) }
        };
        // O_DIRECT fails after the file was made where the file system lacks it.
        // SAFETY: the name is a C string; the file is the one that was just made, by us.
        let unlink = || unsafe { libc::unlink(name.as_ptr()) };
        let (fd, cached) = match open(libc::O_DIRECT) {
            Ok(fd) => (fd, false),
            Err(libc::EEXIST) => return Err(FileRefused::Exists(path.to_owned())),
            Err(libc::EINVAL) => {
                unlink();
                (open(0).map_err(|errno| refuse("open", errno))?, true)
            }
            Err(errno) => return Err(refuse("open", errno)),
        };
        unlink();
        let store = FileStore { fd, cached };
        if store.lies_in_memory() {
            return Err(FileRefused::InMemory(path.to_owned()));
        }
        Ok(store)
    }

    fn lies_in_memory(&self) -> bool {
        // SAFETY: a plain structure that the call fills.
        let mut about: libc::statfs = unsafe { core::mem::zeroed() };
        // SAFETY: our own descriptor and a structure to fill.
        let rc = unsafe { libc::fstatfs(self.fd, &raw mut about) };
        rc == 0 && matches!(about.f_type, TMPFS_MAGIC | RAMFS_MAGIC)
    }

    /// Repeats a transfer until it is whole.
    fn transfer(
        &self,
        call: &'static str,
        len: usize,
        step: impl Fn(usize) -> isize,
    ) -> Result<(), StoreError> {
        let (mut done, mut idle) = (0, 0);
        while done < len {
            match usize::try_from(step(done)) {
                Ok(0) if idle == 3 => return Err(StoreError::Short { call, wanted: len, done }),
                Ok(0) => idle += 1,
                Ok(more) => done += more,
                Err(_) => match errno() {
                    libc::EINTR | libc::EAGAIN => {}
                    errno => return Err(StoreError::System { call, errno }),
                },
            }
        }
        Ok(())
    }

    fn uncache(&self, at: u64, len: usize) {
        if self.cached {
            // SAFETY: advice on our own descriptor.
            unsafe { libc::posix_fadvise(self.fd, at.cast_signed(), len as i64, libc::POSIX_FADV_DONTNEED) };
        }
    }
}

impl PageStore for FileStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        // SAFETY: our own descriptor.
        let rc = unsafe { libc::fallocate(self.fd, 0, at.cast_signed(), len.cast_signed()) };
        if rc == 0 {
            return Ok(());
        }
        match errno() {
            // Without the call a full disk is found when it is full: the file system's own limit.
            libc::EOPNOTSUPP | libc::ENOSYS => Ok(()),
            libc::ENOSPC | libc::EFBIG | libc::EDQUOT => Err(StoreError::Full { wanted: len }),
            errno => Err(StoreError::System { call: "fallocate", errno }),
        }
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let len = into.len();
        let start = into.as_mut_ptr();
        // SAFETY: `done < len`, the length of the buffer.
        self.transfer("pread", len, |done| unsafe {
            let offset = at.cast_signed() + done as i64;
            libc::pread(self.fd, start.add(done).cast(), len - done, offset)
        })?;
        self.uncache(at, len);
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        let len = from.len();
        // SAFETY: `done < len`, the length of the buffer.
        self.transfer("pwrite", len, |done| unsafe {
            let offset = at.cast_signed() + done as i64;
            libc::pwrite(self.fd, from.as_ptr().add(done).cast(), len - done, offset)
        })?;
        self.uncache(at, len);
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: our own descriptor. A file system without holes keeps the space.
        unsafe { libc::fallocate(self.fd, mode, at.cast_signed(), len.cast_signed()) };
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        // SAFETY: our own descriptor, closed once.
        unsafe { libc::close(self.fd) };
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        // The build folder is on a disk; the folder for temporary files may not be.
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
    }

    #[test]
    fn what_was_written_is_read_and_nothing_is_left_behind() {
        let path = folder().join(format!("store-{}", std::process::id()));
        let store = FileStore::create(&path).unwrap();
        assert!(!path.exists());
        let mut page = largesse_pages::Table::<u8>::new(8192).unwrap();
        page.fill(7);
        store.reserve(1 << 30, 8192).unwrap();
        store.write(1 << 30, &page).unwrap();
        page.fill(0);
        store.read(1 << 30, &mut page).unwrap();
        assert!(page.iter().all(|&byte| byte == 7));
        store.discard(1 << 30, 8192);
        store.read(1 << 30, &mut page).unwrap();
        assert!(page.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn an_existing_file_is_left_alone() {
        let path = folder().join(format!("mine-{}", std::process::id()));
        std::fs::write(&path, "mine").unwrap();
        let refused = FileStore::create(&path).unwrap_err();
        let kept = std::fs::read(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(refused, FileRefused::Exists(path));
        assert_eq!(kept.unwrap(), b"mine");
    }

    #[test]
    fn a_file_in_memory_is_refused() {
        let path = Path::new("/dev/shm").join(format!("largesse-{}", std::process::id()));
        if !path.parent().is_some_and(Path::is_dir) {
            return;
        }
        match FileStore::create(&path) {
            Err(FileRefused::InMemory(named)) => assert_eq!(named, path),
            other => assert!(!path.exists(), "{other:?}"),
        }
        assert!(!path.exists());
    }
}
