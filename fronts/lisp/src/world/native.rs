//! Holds native objects that Lisp objects refer to: files, sockets, locks, threads, collision models.

use crate::geometry::collide::CollisionModel;
use crate::threads::{Semaphore, Worker};
use crate::value::Value;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

/// An open file has a reader, a writer, or both.
#[derive(Default)]
pub(crate) struct OpenFile {
    pub(crate) reader: Option<BufReader<File>>,
    pub(crate) writer: Option<BufWriter<File>>,
    /// A byte pushed back by the reader.
    pub(crate) unread: Option<u8>,
}

/// A clone of a native object refers to the same one.
#[derive(Clone)]
pub(crate) enum Native {
    File(Arc<Mutex<OpenFile>>),
    Mutex(Arc<crate::threads::LispMutex>),
    Condition(Arc<crate::threads::Condition>),
    Semaphore(Arc<Semaphore>),
    Worker(Arc<Worker>),
    Collision(Arc<Mutex<CollisionModel>>),
    Socket(Arc<OwnedFd>),
    /// The handle of a shared library, which is never closed.
    Library(usize),
}

impl Native {
    pub(super) fn roots(&self, visit: &mut impl FnMut(Value)) {
        if let Native::Worker(worker) = self {
            worker.roots(visit);
        }
    }
}
