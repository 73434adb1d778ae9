//! Holds native objects that Lisp objects refer to: files, sockets, queues, locks, threads, collision models.

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

/// A stream of bytes on a message queue.
pub(crate) struct QueueStream {
    /// The kernel's number of the queue.
    pub(crate) number: i32,
    /// Number of bytes that the stream sends in one message.
    pub(crate) size: usize,
    /// The last message received, or the bytes that were not sent yet.
    pub(crate) text: Vec<u8>,
    /// Number of bytes of the last message that were read.
    pub(crate) read: usize,
    /// Whether the stream sends messages; otherwise it receives them.
    pub(crate) writes: bool,
}

/// A clone of a native object refers to the same one.
#[derive(Clone)]
pub(crate) enum Native {
    File(Arc<Mutex<OpenFile>>),
    Queue(Arc<Mutex<QueueStream>>),
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
