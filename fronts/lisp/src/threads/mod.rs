//! Implements threads as a pool of workers, as in EusLisp, and their synchronisation.
//!
//! A worker is registered with the heap before its thread exists. It waits for work in state native, so that a
//! collection never waits for an idle worker.

mod builtins;
mod pool;
mod serve;
mod wait;
mod worker;

pub(crate) use builtins::BUILTINS;
pub(crate) use pool::ThreadPool;
pub(crate) use wait::{Condition, LispMutex, Semaphore};
pub(crate) use worker::{Worker, slot as worker_slot};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic of another holder: the guarded state is consistent at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the kernel's number of the calling thread.
pub(crate) fn kernel_thread() -> i32 {
    largesse_pages::thread_id().cast_signed()
}
