//! Implements the objects that threads wait for: mutexes, conditions and semaphores. Each wait consists of short
//! timed waits, so that Ctrl-C and the end of the program are noticed.

use super::lock;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Duration of a timed wait, after which the thread polls.
pub(super) const PIECE: Duration = Duration::from_millis(50);

/// A mutex of Lisp may be unlocked by any thread.
#[derive(Debug, Default)]
pub(crate) struct LispMutex {
    held: Mutex<bool>,
    freed: Condvar,
}

impl LispMutex {
    pub(crate) fn try_lock(&self) -> bool {
        !std::mem::replace(&mut *lock(&self.held), true)
    }

    /// Waits up to [`PIECE`] for the lock; returns whether it was locked by this call.
    pub(crate) fn lock_for_a_while(&self) -> bool {
        let held = lock(&self.held);
        let (mut held, _) =
            self.freed.wait_timeout_while(held, PIECE, |held| *held).unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut *held, true)
    }

    /// Unlocks; returns whether it was locked.
    pub(crate) fn unlock(&self) -> bool {
        let was = std::mem::replace(&mut *lock(&self.held), false);
        self.freed.notify_one();
        was
    }
}

/// A semaphore is a counter that posts increment and waits decrement.
#[derive(Debug, Default)]
pub(crate) struct Semaphore {
    count: Mutex<u64>,
    posted: Condvar,
}

impl Semaphore {
    pub(crate) fn post(&self) {
        *lock(&self.count) += 1;
        self.posted.notify_one();
    }

    pub(crate) fn try_wait(&self) -> bool {
        let mut count = lock(&self.count);
        let got = *count > 0;
        *count -= u64::from(got);
        got
    }

    /// Waits up to [`PIECE`] for a post; returns whether there was one.
    pub(crate) fn wait_for_a_while(&self) -> bool {
        let count = lock(&self.count);
        let (mut count, _) = self
            .posted
            .wait_timeout_while(count, PIECE, |count| *count == 0)
            .unwrap_or_else(PoisonError::into_inner);
        let got = *count > 0;
        *count -= u64::from(got);
        got
    }
}

/// A signal of a condition variable wakes a thread that waits at that time.
#[derive(Debug, Default)]
pub(crate) struct Condition {
    /// Number of waiting threads, and of signals to them that are not consumed yet.
    state: Mutex<(u64, u64)>,
    signalled: Condvar,
}

impl Condition {
    /// Registers a waiter: later signals can wake it.
    pub(crate) fn announce(&self) {
        lock(&self.state).0 += 1;
    }

    /// Waits up to [`PIECE`] for a signal; returns whether there was one.
    pub(crate) fn wait_for_a_while(&self) -> bool {
        let state = lock(&self.state);
        let (mut state, _) = self
            .signalled
            .wait_timeout_while(state, PIECE, |(_, signals)| *signals == 0)
            .unwrap_or_else(PoisonError::into_inner);
        if state.1 == 0 {
            return false;
        }
        state.0 -= 1;
        state.1 -= 1;
        true
    }

    /// Unregisters a waiter that ends without a signal.
    pub(crate) fn withdraw(&self) {
        let mut state = lock(&self.state);
        state.0 = state.0.saturating_sub(1);
        state.1 = state.1.min(state.0);
    }

    pub(crate) fn signal(&self) {
        let mut state = lock(&self.state);
        if state.1 < state.0 {
            state.1 += 1;
        }
        self.signalled.notify_one();
    }

    pub(crate) fn broadcast(&self) {
        let mut state = lock(&self.state);
        state.1 = state.0;
        self.signalled.notify_all();
    }
}
