//! A store in a file of its own, and in more of them once the process forks.

mod layers;
mod sheet;

use crate::{Broker, Fork, PageStore, StoreError};
use largesse_pages::{Table, thread_id};
use layers::Layers;
use sheet::{Handle, Sheet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sheets of one process: fewer than the descriptors that most may have.
const MOST: usize = 250;

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

/// Pages at their own offsets of files without names.
///
/// A fork is a snapshot. So each side gets a new sheet that is its own, and what was written so far
/// is only read from then on:
///
/// ```text
///   parent:  sheet 0 ── sheet 1 (own)       writes, and room for new memory: the own sheet, on top
///               │                           reads: the sheet that holds the page
///   child:   sheet 0 ── sheet 1 (own)
/// ```
///
/// A side that wrote nothing since the last fork keeps its empty sheet. The space of pages in a shared
/// sheet comes back when the last process that shares it has ended.
///
/// Both sides may come to write every page again, which doubles the space. It is set aside at the first
/// write if that leaves most of the disk free; otherwise a full disk is met when it is full.
///
/// Descriptors are the broker's: `read` and `write` are for threads that it started, the rest for
/// everybody. A child begins with the table of the thread that forked; so what it is to have is opened
/// there a second time, and by the child's own broker a third.
#[derive(Debug)]
pub struct FileStore {
    /// Of the first sheet; others are beside it.
    path: PathBuf,
    layers: Mutex<Layers>,
    broker: Arc<Broker>,
}

impl FileStore {
    /// Makes the file, readable by its owner only, and takes its name away.
    pub fn create(path: &Path, broker: &Arc<Broker>) -> Result<FileStore, FileRefused> {
        // The program may change its folder before it forks.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let first = broker.call(|| Sheet::create(&path))?;
        Ok(FileStore { path, layers: Mutex::new(Layers::new(first)), broker: Arc::clone(broker) })
    }

    fn lock(&self) -> MutexGuard<'_, Layers> {
        self.layers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new sheet beside the first one. Another process of the same origin may be at the same name.
    fn sheet(&self, layers: &mut Layers) -> Result<Sheet, StoreError> {
        for _ in 0..MOST {
            layers.made += 1;
            let mut name = self.path.clone().into_os_string();
            name.push(format!("-{}-{}", std::process::id(), layers.made));
            match Sheet::create(Path::new(&name)) {
                Ok(sheet) => return Ok(sheet),
                Err(FileRefused::Exists(_)) => {}
                Err(FileRefused::InMemory(_)) => break,
                Err(FileRefused::System { call, errno, .. }) => {
                    return Err(StoreError::System { call, errno });
                }
            }
        }
        Err(StoreError::System { call: "open", errno: libc::EEXIST })
    }

    /// New sheets; returns all that the child is to have, bottom to top.
    fn before_fork(&self, bytes: u64) -> Result<Vec<Handle>, StoreError> {
        let mut layers = self.lock();
        if layers.used && layers.sheets.len() >= MOST {
            return Err(StoreError::Forks { most: MOST });
        }
        if layers.holds.is_none() {
            let pages = usize::try_from(bytes).unwrap_or(usize::MAX) / largesse_pages::base_page();
            let table = Table::new(pages).ok_or(StoreError::System { call: "mmap", errno: libc::ENOMEM })?;
            layers.holds = Some(table);
        }
        let own = if layers.used { Some(self.sheet(&mut layers)?) } else { None };
        let child = self.sheet(&mut layers)?;
        // An own sheet that is empty is the parent's alone; the child's takes its place.
        let frozen = layers.sheets.len() - usize::from(own.is_none());
        let handles =
            layers.sheets[..frozen].iter().map(|sheet| sheet.handle()).chain([child.handle()]).collect();
        layers.next = Some((own, child));
        Ok(handles)
    }

    fn in_parent(&self) {
        let mut layers = self.lock();
        let Some((own, _)) = layers.next.take() else { return };
        if let Some(own) = own {
            layers.push(own);
        }
    }
}

impl PageStore for FileStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        self.broker.call(|| {
            let mut layers = self.lock();
            layers.own().reserve(at, len)?;
            layers.promise(at..at + len);
            Ok(())
        })
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let parts = self.lock().parts(at, into.len());
        for (part, sheet) in parts {
            sheet.read(at + part.start as u64, &mut into[part])?;
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        // No fork comes between the two: the pager is at rest then.
        let own = self.lock().write_to();
        own.write(at, from)?;
        self.lock().written(at, from.len());
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        self.broker.call(|| {
            let mut layers = self.lock();
            layers.forget(&(at..at + len));
            // Other sheets are other processes' as well. A hole in this one is as good as a hole below.
            layers.own().discard(at, len);
        });
    }

    fn fork(&self, step: Fork) -> Result<(), StoreError> {
        match step {
            Fork::Before { bytes } => {
                let handles = self.broker.call(|| self.before_fork(bytes))?;
                let carried = Sheet::open_all(&handles, self.broker.thread());
                match carried {
                    Ok(carried) => self.lock().carried = carried,
                    Err(error) => {
                        self.broker.call(|| self.in_parent());
                        return Err(error);
                    }
                }
            }
            Fork::InParent => {
                self.lock().carried.clear();
                self.broker.call(|| self.in_parent());
            }
            Fork::InChild => {
                let carried = core::mem::take(&mut self.lock().carried);
                let handles: Vec<_> = carried.iter().map(Sheet::handle).collect();
                let me = thread_id();
                let sheets = self.broker.call(|| Sheet::open_all(&handles, me))?;
                self.lock().begin_child(sheets);
            }
        }
        Ok(())
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.broker.call(|| self.lock().sheets.clear());
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests;
