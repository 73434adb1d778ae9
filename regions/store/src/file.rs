//! A store in a file of its own, and in more of them once the process forks.

mod layer;
mod unnamed;

use crate::{Broker, Fork, Layers, PageStore, StoreError};
use largesse_pages::thread_id;
use layer::{File, Handle};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why a file cannot be a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRefused {
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

/// Pages at their own offsets of files without names: one, and more of them once the process forks.
///
/// Both sides of a fork may come to write every page again, which doubles the space. It is set aside at
/// the first write if that leaves most of the disk free; otherwise a full disk is met when it is full.
///
/// Descriptors are the broker's: `read` and `write` are for threads that it started, the rest for
/// everybody. A child begins with the table of the thread that forked; so what it is to have is opened
/// there a second time, and by the child's own broker a third.
#[derive(Debug)]
pub struct FileStore {
    /// Every file is made in the folder of this path, which need not exist itself.
    path: PathBuf,
    layers: Layers<File>,
    forking: Mutex<Forking>,
    broker: Arc<Broker>,
}

#[derive(Debug, Default)]
struct Forking {
    /// Between the two ends of a fork: files for the parent, if it needs a new one, and the child.
    next: Option<(Option<File>, File)>,
    /// And what the child is to have, in the table of the thread that forks.
    carried: Vec<File>,
}

impl FileStore {
    /// Makes the first file, in the folder of `path`. Any number of processes may give the same path.
    pub fn create(path: &Path, broker: &Arc<Broker>) -> Result<FileStore, FileRefused> {
        // The program may change its folder before it forks.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let layers = Layers::new(broker.call(|| File::create(&path))?);
        Ok(FileStore { path, layers, forking: Mutex::default(), broker: Arc::clone(broker) })
    }

    fn forking(&self) -> MutexGuard<'_, Forking> {
        self.forking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes another file beside the first one.
    fn another(&self) -> Result<File, StoreError> {
        File::create(&self.path).map_err(|refused| match refused {
            FileRefused::System { call, errno, .. } => StoreError::System { call, errno },
            // The folder has become another one since the first file was made.
            FileRefused::InMemory(_) => StoreError::System { call: "open", errno: libc::EOPNOTSUPP },
        })
    }

    /// New files; returns all that the child is to have, bottom to top.
    fn before_fork(&self, bytes: u64) -> Result<Vec<Handle>, StoreError> {
        let mut forking = self.forking();
        let both = self.layers.prepare(bytes)?;
        let own = if both { Some(self.another()?) } else { None };
        let child = self.another()?;
        let handles = self.layers.frozen().iter().map(|file| file.handle()).chain([child.handle()]).collect();
        forking.next = Some((own, child));
        Ok(handles)
    }

    fn in_parent(&self) {
        if let Some((Some(own), _)) = self.forking().next.take() {
            self.layers.push(own);
        }
    }
}

impl PageStore for FileStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        self.broker.call(|| self.layers.reserve(at, len))
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.layers.read(at, into)
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        self.layers.write(at, from)
    }

    fn discard(&self, at: u64, len: u64) {
        self.broker.call(|| self.layers.discard(at, len));
    }

    fn fork(&self, step: Fork) -> Result<(), StoreError> {
        match step {
            Fork::Before { bytes } => {
                let handles = self.broker.call(|| self.before_fork(bytes))?;
                let carried = File::open_all(&handles, self.broker.thread());
                match carried {
                    Ok(carried) => self.forking().carried = carried,
                    Err(error) => {
                        self.broker.call(|| self.in_parent());
                        return Err(error);
                    }
                }
            }
            Fork::InParent => {
                self.forking().carried.clear();
                self.broker.call(|| self.in_parent());
            }
            Fork::InChild => {
                let carried = core::mem::take(&mut self.forking().carried);
                let handles: Vec<_> = carried.iter().map(File::handle).collect();
                let me = thread_id();
                let files = self.broker.call(|| File::open_all(&handles, me))?;
                let before = self.layers.replace(files.into_iter().map(Arc::new).collect());
                // What the child has of the parent's are numbers of another table.
                core::mem::forget((before, self.forking().next.take()));
            }
        }
        Ok(())
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.broker.call(|| drop(self.layers.replace(Vec::new())));
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests;
