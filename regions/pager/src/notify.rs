//! Telling threads that wait, for nothing when there are none: waking nobody is a system call, too.

use crate::lock::RankedGuard;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Condvar;
use std::time::Duration;

/// Something that threads wait for, together with one lock.
#[derive(Debug, Default)]
pub(crate) struct CountingCondvar {
    condvar: Condvar,
    /// Changed under the lock: who told of a change that it made under the lock sees everybody who had not seen it.
    waiting: AtomicUsize,
}

impl CountingCondvar {
    /// Sleeps until there are some.
    pub(crate) fn wait<'a, T, const RANK: u8>(
        &self,
        guard: RankedGuard<'a, T, RANK>,
    ) -> RankedGuard<'a, T, RANK> {
        self.waiting.fetch_add(1, Ordering::Relaxed); // Relaxed: the lock orders it
        let guard = guard.wait(&self.condvar);
        self.waiting.fetch_sub(1, Ordering::Relaxed); // Relaxed: as above
        guard
    }

    /// Sleeps until there are some, or for so many milliseconds.
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

    /// By who changed something under the lock.
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
    fn everybody_who_waits_is_told() {
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
