//! The private folder that holds an agent's socket, so that the kernel refuses connections of other users.
//!
//! An agent holds a lock (`flock`) on its folder for as long as it lives. A folder of this user without such a lock
//! belongs to an agent that was killed, and the next agent removes it. `systemd-tmpfiles` respects the lock, too.

use crate::socket::{self, Name};
use std::fs::{DirBuilder, File, read_dir, symlink_metadata};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

/// Largest number of entries of a folder that are searched for leftovers of killed agents. There is a limit because
/// other users may fill the folder.
const MOST_ENTRIES: usize = 10_000;
/// Age from which a folder without a lock and without a socket is stale. A younger one may belong to an agent that is
/// about to lock it, which takes far less time than this.
const YOUNG: Duration = Duration::from_secs(60);

/// A folder of mode 0700 with a listening socket in it; both are removed when this is dropped.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    name: Name,
    socket: OwnedFd,
    /// The lock on the folder, held until this is dropped.
    _lock: File,
}

impl PrivateFolder {
    /// Creates the folder of `name` directly below `base`, after it has removed folders of killed agents there. Fails
    /// if another user could rename the folder, or if the file system supports no locks or sockets.
    pub(crate) fn create(name: Name, base: &Path) -> Result<PrivateFolder> {
        if !is_safe(base)? {
            return Err(ErrorKind::PermissionDenied.into());
        }
        remove_stale(base);
        let folder = name.folder().ok_or(ErrorKind::InvalidInput)?;
        DirBuilder::new().mode(0o700).create(folder)?;
        match lock_and_listen(&name, folder.as_ref()) {
            Ok((lock, socket)) => Ok(PrivateFolder { name, socket, _lock: lock }),
            Err(error) => {
                name.withdraw();
                Err(error)
            }
        }
    }

    /// Returns the name that leads to the folder.
    pub(crate) const fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the listening socket.
    pub(crate) const fn socket(&self) -> &OwnedFd {
        &self.socket
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        self.name.withdraw();
    }
}

fn lock_and_listen(name: &Name, folder: &Path) -> Result<(File, OwnedFd)> {
    let lock = open(folder)?;
    // Another agent that searches for stale folders holds the lock briefly, and does not remove a young folder.
    lock.lock()?;
    let socket = socket::listen(name.in_folder().ok_or(ErrorKind::InvalidInput)?)?;
    Ok((lock, socket))
}

/// Returns whether only this user and root can rename or remove entries that this user creates in `base`.
fn is_safe(base: &Path) -> Result<bool> {
    let about = base.metadata()?;
    let shared = about.mode() & 0o022 != 0;
    let sticky = about.mode() & libc::S_ISVTX != 0;
    Ok(socket::trusted(about.uid()) && (!shared || sticky))
}

fn open(folder: &Path) -> Result<File> {
    File::options().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(folder)
}

/// Removes the folders below `base` that belong to this user and that no living agent has locked.
fn remove_stale(base: &Path) {
    let Ok(entries) = read_dir(base) else { return };
    for entry in entries.take(MOST_ENTRIES).flatten() {
        let path = entry.path();
        let Some(name) = path.to_str().and_then(Name::parse) else { continue };
        if is_stale(&path).unwrap_or(false) {
            name.withdraw();
        }
    }
}

fn is_stale(folder: &Path) -> Result<bool> {
    let about = symlink_metadata(folder)?;
    // SAFETY: the call has no preconditions.
    if !about.is_dir() || about.uid() != unsafe { libc::geteuid() } {
        return Ok(false);
    }
    let lock = open(folder)?;
    lock.try_lock().map_err(Error::from)?;
    let is_young = about.modified()?.elapsed().is_ok_and(|age| age < YOUNG);
    let is_empty = read_dir(folder)?.next().is_none();
    Ok(!(is_young && is_empty))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, remove_dir_all, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    /// A new folder with a given mode, removed when dropped.
    struct Base(PathBuf);

    impl Base {
        fn new(mode: u32) -> Base {
            let path = std::env::temp_dir().join(format!("agent-{}", &Name::new().unwrap().to_string()[..8]));
            create_dir(&path).unwrap();
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            Base(path)
        }

        fn name(&self) -> Name {
            Name::new().unwrap().below(&self.0).unwrap()
        }

        fn entries(&self) -> Vec<String> {
            let names = read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
            names.map(|path| path.to_str().unwrap().to_owned()).collect()
        }
    }

    impl Drop for Base {
        fn drop(&mut self) {
            remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn dropped_folders_are_removed() {
        let base = Base::new(0o700);
        let folder = PrivateFolder::create(base.name(), &base.0).unwrap();
        let path = folder.name().folder().unwrap().to_owned();
        assert_eq!(Path::new(&path).metadata().unwrap().mode() & 0o777, 0o700);
        assert!(socket::connect(folder.name()).is_ok());
        assert_eq!(base.entries(), [path]);
        drop(folder);
        assert_eq!(base.entries(), [""; 0]);
    }

    #[test]
    fn only_unlocked_folders_are_stale() {
        let base = Base::new(0o1777);
        let live = PrivateFolder::create(base.name(), &base.0).unwrap();
        let killed = base.name();
        create_dir(killed.folder().unwrap()).unwrap();
        drop(socket::listen(killed.in_folder().unwrap()).unwrap());
        let young = base.name();
        create_dir(young.folder().unwrap()).unwrap();
        let other = base.0.join("largesse-data");
        create_dir(&other).unwrap();
        assert_eq!(base.entries().len(), 4);
        remove_stale(&base.0);
        let mut entries = base.entries();
        entries.sort();
        let mut kept = [live.name().to_string(), young.to_string(), other.to_str().unwrap().to_owned()];
        kept.sort();
        assert_eq!(entries, kept);
    }

    #[test]
    fn renamable_folders_are_refused() {
        let base = Base::new(0o777);
        let refused = PrivateFolder::create(base.name(), &base.0).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        assert_eq!(base.entries(), [""; 0]);
    }
}
