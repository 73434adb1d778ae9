//! A store in a file, and in further files after forks.

mod layer;
mod refused;
mod unnamed;
mod uring;

use crate::{Broker, Fork, Mechanism, Overlay, PageStore, StoreError, ThreadQueue, TransferQueue};
use largesse_pages::thread_id;
use layer::{File, Handle};
pub use refused::FileRefused;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uring::UringQueue;

/// A store in files without names, one for each layer of the [`Overlay`], with each page at its own offset.
///
/// After a fork both processes may write every page again, which doubles the space on disk. A process reserves its part
/// at its first write of a page from before the fork, if that takes at most a quarter of the free space. Otherwise a
/// later write may find the disk full.
///
/// The descriptors are in the broker's table: `read` and `write` are for threads that the broker started, all other
/// methods for any thread. A child starts with the descriptor table of the forking thread; its files are therefore
/// opened a second time there, and a third time by the child's own broker.
#[derive(Debug)]
pub struct FileStore {
    /// An absolute path, in whose directory files are made. Nothing needs to exist at the path itself.
    path: PathBuf,
    overlay: Arc<Overlay<File>>,
    fork_files: Mutex<ForkFiles>,
    broker: Arc<Broker>,
    /// The mechanism that queues try first: io_uring, or threads in tests.
    mechanism: Mechanism,
}

/// Number of threads of a queue where io_uring cannot be used. More transfers in flight gain little on one disk.
const MOST_THREADS: usize = 16;

#[derive(Debug, Default)]
struct ForkFiles {
    /// From `Fork::Before` until the fork is over: the parent's new file, if it needs one, and the child's new file.
    next: Option<(Option<File>, File)>,
    /// The files that the child will use, in the descriptor table of the forking thread.
    child_files: Vec<File>,
}

impl FileStore {
    /// Makes a store with one file in the directory of `path`. Any number of processes may give the same path.
    pub fn create(path: &Path, broker: &Arc<Broker>) -> Result<FileStore, FileRefused> {
        // Where it cannot be used, `open_queue` uses threads.
        let mechanism = Mechanism::IoUring;
        // The program may change its directory before it forks.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let overlay = Arc::new(Overlay::new(broker.call(|| File::create(&path))?));
        Ok(FileStore { path, overlay, fork_files: Mutex::default(), broker: Arc::clone(broker), mechanism })
    }

    fn fork_files(&self) -> MutexGuard<'_, ForkFiles> {
        self.fork_files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes another file in the same directory as the first one.
    fn new_file(&self) -> Result<File, StoreError> {
        File::create(&self.path).map_err(|refused| match refused {
            FileRefused::System { call, errno, .. } => StoreError::System { call, errno },
            // The directory was replaced by another one since the first file was made.
            FileRefused::InMemory(_) => StoreError::System { call: "open", errno: libc::EOPNOTSUPP },
        })
    }

    /// Makes a new file for each process that needs a new top layer. Returns the child's layers, the oldest first.
    /// `bytes` is the size of the store.
    fn before_fork(&self, bytes: u64) -> Result<Vec<Handle>, StoreError> {
        let mut fork_files = self.fork_files();
        let both = self.overlay.prepare(bytes)?;
        let own = if both { Some(self.new_file()?) } else { None };
        let child = self.new_file()?;
        let handles =
            self.overlay.frozen().iter().map(|file| file.handle()).chain([child.handle()]).collect();
        fork_files.next = Some((own, child));
        Ok(handles)
    }

    fn in_parent(&self) {
        if let Some((Some(own), _)) = self.fork_files().next.take() {
            self.overlay.push(own);
        }
    }
}

impl PageStore for FileStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        self.broker.call(|| self.overlay.reserve(at, len))
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.overlay.read(at, into)
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        self.overlay.write(at, from)
    }

    fn discard(&self, at: u64, len: u64) {
        self.broker.call(|| self.overlay.discard(at, len));
    }

    fn open_queue(&self, bytes: usize, depth: usize) -> Result<Option<Box<dyn TransferQueue>>, StoreError> {
        let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::ENOMEM);
        let mut refusal = None;
        if self.mechanism == Mechanism::IoUring {
            match UringQueue::open(&self.overlay, bytes, depth) {
                Ok(queue) => return Ok(Some(Box::new(queue))),
                Err(error) => refusal = Some(errno(error)),
            }
        }
        let queue = ThreadQueue::open(&self.overlay, bytes, depth.min(MOST_THREADS))
            .map_err(|error| StoreError::System { call: "pthread_create", errno: errno(error) })?;
        Ok(Some(Box::new(queue.instead_of_io_uring(refusal))))
    }

    fn fork(&self, step: Fork) -> Result<(), StoreError> {
        match step {
            Fork::Before { bytes } => {
                let handles = self.broker.call(|| self.before_fork(bytes))?;
                let child_files = File::open_all(&handles, self.broker.thread());
                match child_files {
                    Ok(child_files) => self.fork_files().child_files = child_files,
                    Err(error) => {
                        self.broker.call(|| self.in_parent());
                        return Err(error);
                    }
                }
            }
            Fork::InParent => {
                self.fork_files().child_files.clear();
                self.broker.call(|| self.in_parent());
            }
            Fork::InChild => {
                let child_files = core::mem::take(&mut self.fork_files().child_files);
                let handles: Vec<_> = child_files.iter().map(File::handle).collect();
                let me = thread_id();
                let files = self.broker.call(|| File::open_all(&handles, me))?;
                let before = self.overlay.replace(files.into_iter().map(Arc::new).collect());
                // The child's copies of the parent's files are numbers of another descriptor table.
                core::mem::forget((before, self.fork_files().next.take()));
            }
        }
        Ok(())
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.broker.call(|| drop(self.overlay.replace(Vec::new())));
    }
}

#[cfg(test)]
mod tests;
