//! Threads: a pool of workers, as in EusLisp, and what they wait for each other with.
//!
//! A worker is enrolled with the heap by whoever makes it, before the thread exists. It waits for work
//! as a stopped thread, so that a collection never waits for an idle worker.

mod builtins;
mod pool;
mod wait;

pub(crate) use builtins::BUILTINS;
pub(crate) use pool::{Pool, Worker};
pub(crate) use wait::{Condition, Lock, Semaphore};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The guard, also when a thread died with it: nothing that is locked here is ever half written.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
