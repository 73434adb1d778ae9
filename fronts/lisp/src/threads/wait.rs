//! What threads wait for: locks, conditions, semaphores. Each wait is in short pieces, so that Ctrl-C
//! and the end of the program are noticed.

use super::lock;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a wait lasts before the waiting thread looks around.
pub(super) const PIECE: Duration = Duration::from_millis(50);

/// A mutex that is locked and unlocked by calls, by any thread.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    held: Mutex<bool>,
    freed: Condvar,
}

impl Lock {
    pub(crate) fn try_lock(&self) -> bool {
        !std::mem::replace(&mut *lock(&self.held), true)
    }

    /// Whether the lock was got within a piece of time.
    pub(crate) fn lock_for_a_while(&self) -> bool {
        let held = lock(&self.held);
        let (mut held, _) =
            self.freed.wait_timeout_while(held, PIECE, |held| *held).unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut *held, true)
    }

    /// Whether it was locked.
    pub(crate) fn unlock(&self) -> bool {
        let was = std::mem::replace(&mut *lock(&self.held), false);
        self.freed.notify_one();
        was
    }
}

/// A counter that goes up by posts and down by waits.
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

    /// Whether there was a post within a piece of time.
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

/// A condition: a signal wakes one that waits now.
#[derive(Debug, Default)]
pub(crate) struct Condition {
    /// Threads that wait, and signals that were meant for them and are not taken yet.
    state: Mutex<(u64, u64)>,
    signalled: Condvar,
}

impl Condition {
    /// Announces a waiter: signals from now on are for it, too.
    pub(crate) fn announce(&self) {
        lock(&self.state).0 += 1;
    }

    /// Whether a signal came within a piece of time.
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

    /// Takes a waiter back that goes away without a signal.
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
