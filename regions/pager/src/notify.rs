//! A condition variable that counts its waiting threads, so that notifying without any costs no system call.

use crate::lock::RankedGuard;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Condvar;
use std::time::Duration;

/// A condition variable of one lock.
#[derive(Debug, Default)]
pub(crate) struct CountingCondvar {
    condvar: Condvar,
    /// Number of waiting threads. It changes under the lock: a thread that notifies after a change under the lock sees
    /// every thread that waits without having seen that change.
    waiting: AtomicUsize,
}

impl CountingCondvar {
    /// Releases the lock, waits until notified, and takes it again.
    pub(crate) fn wait<'a, T, const RANK: u8>(
        &self,
        guard: RankedGuard<'a, T, RANK>,
    ) -> RankedGuard<'a, T, RANK> {
        self.waiting.fetch_add(1, Ordering::Relaxed); // Relaxed: the lock orders it
        let guard = guard.wait(&self.condvar);
        self.waiting.fetch_sub(1, Ordering::Relaxed); // Relaxed: as above
        guard
    }

    /// As [`wait`](CountingCondvar::wait), for at most the given number of milliseconds.
    pub(crate) fn wait_at_most<'a, T, const RANK: u8>(
        &self,
        guard: RankedGuard<'a, T, RANK>,
        milliseconds: u64,
    ) -> RankedGuard<'a, T, RANK> {
        self.waiting.fetch_add(1, Ordering::Relaxed); // Relaxed: the lock orders it
        let guard = guard.wait_at_most(&self.condvar, Duration::from_millis(milliseconds));
        self.waiting.fetch_sub(1, Ordering::Relaxed); // Relaxed: as above
        guard
    }

    /// Wakes all waiting threads. The caller has made its change under the lock.
    pub(crate) fn notify_all(&self) {
        // Relaxed: the lock orders it
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condvar.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::{RankedMutex, STATE};

    #[test]
    fn every_waiting_thread_is_notified() {
        let (condvar, turn) = (CountingCondvar::default(), RankedMutex::<_, STATE>::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (condvar, turn) = (&condvar, &turn);
                scope.spawn(move || {
                    for round in 0..500 {
                        let mut now = turn.lock();
                        while *now % 4 != thread {
                            now = if round % 2 == 0 {
                                condvar.wait(now)
                            } else {
                                condvar.wait_at_most(now, 60_000)
                            };
                        }
                        *now += 1;
                        drop(now);
                        condvar.notify_all();
                    }
                });
            }
        });
        assert_eq!(*turn.lock(), 4 * 500);
        assert_eq!(condvar.waiting.into_inner(), 0);
    }
}
