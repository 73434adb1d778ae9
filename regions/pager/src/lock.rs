//! A mutex with a rank, and its condition variable. Debug builds check that each thread takes locks in the order of
//! their ranks. The table is in `lib.rs`.
//!
//! If a thread took a lock of the same or a lower rank than one that it holds, it could wait for a thread that waits
//! for it. Debug builds panic at such a call, whether or not the lock is free. Release builds hold no rank and check
//! nothing.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

/// Rank of the lock of the program's mappings (`mappings.rs`).
pub const MAPPINGS: u8 = 0;
/// Rank of the lock that gives a thread the right to use the doorbell (`doorbell.rs`).
pub(crate) const DOORBELL: u8 = 1;
/// Rank of the lock of the page that a thread asks for by the doorbell (`doorbell.rs`).
pub(crate) const REQUEST: u8 = 2;
/// Rank of the lock of the number of threads inside the gate (`gate.rs`).
pub(crate) const GATE: u8 = 3;
/// Rank of the lock of the faults that come as signals, and of the buffers of the threads that serve faults
/// (`fault_queue.rs`).
pub(crate) const FAULTS: u8 = 4;
/// Rank of the locks of the staging buffers, which hold pages that were taken out of the program (`staging.rs`).
pub(crate) const STAGING: u8 = 5;
/// Rank of the lock of the page table and the policies (`state.rs`).
pub(crate) const STATE: u8 = 6;
/// Rank of the lock of the addresses that are no longer far memory (`kernel/linux.rs`).
pub(crate) const OUTSIDE: u8 = 7;
/// Rank of the locks of the distributions of transfer times (`transfer_times.rs`).
pub(crate) const TIMES: u8 = 8;

/// A mutex of rank `RANK`. Poisoning is ignored: a panic of one thread must not stop the others from serving faults.
#[derive(Debug, Default)]
pub(crate) struct RankedMutex<T, const RANK: u8>(Mutex<T>);

/// Exclusive use of the value of a `RankedMutex`: its lock is released when this is dropped.
#[derive(Debug)]
pub struct RankedGuard<'a, T, const RANK: u8> {
    guard: MutexGuard<'a, T>,
    held: Held<RANK>,
}

impl<T, const RANK: u8> RankedMutex<T, RANK> {
    /// Makes an unlocked mutex.
    pub(crate) const fn new(value: T) -> RankedMutex<T, RANK> {
        RankedMutex(Mutex::new(value))
    }

    /// Waits until the lock is free, and takes it.
    pub(crate) fn lock(&self) -> RankedGuard<'_, T, RANK> {
        let held = Held::in_order();
        RankedGuard { guard: self.0.lock().unwrap_or_else(PoisonError::into_inner), held }
    }

    /// Takes the lock if it is free; otherwise returns `None`. This never waits, so that any order of ranks is
    /// permitted.
    pub(crate) fn try_lock(&self) -> Option<RankedGuard<'_, T, RANK>> {
        let guard = match self.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(RankedGuard { guard, held: Held::in_any_order() })
    }
}

impl<'a, T, const RANK: u8> RankedGuard<'a, T, RANK> {
    /// Releases the lock, waits until `condvar` is notified, and takes it again.
    pub(crate) fn wait(self, condvar: &Condvar) -> RankedGuard<'a, T, RANK> {
        let RankedGuard { guard, held } = self;
        RankedGuard { guard: condvar.wait(guard).unwrap_or_else(PoisonError::into_inner), held }
    }

    /// Releases the lock, waits until `condvar` is notified or the time `most` has passed, and takes the lock again.
    pub(crate) fn wait_at_most(self, condvar: &Condvar, most: Duration) -> RankedGuard<'a, T, RANK> {
        let RankedGuard { guard, held } = self;
        let (guard, _) = condvar.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner);
        RankedGuard { guard, held }
    }
}

impl<T, const RANK: u8> Deref for RankedGuard<'_, T, RANK> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T, const RANK: u8> DerefMut for RankedGuard<'_, T, RANK> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A condition variable of one lock, which counts its waiting threads: notifying without any costs no system call.
#[derive(Debug, Default)]
pub(crate) struct CountingCondvar {
    condvar: Condvar,
    /// Number of waiting threads. It changes under the lock. A thread that changes the guarded value under the lock and
    /// then notifies therefore sees every thread that waits for that change.
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

    /// Releases the lock, waits until notified or the given number of milliseconds has passed, and takes the lock
    /// again.
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

    /// Wakes all waiting threads. The caller has changed the guarded value under the lock before.
    pub(crate) fn notify_all(&self) {
        // Relaxed: the lock orders it
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condvar.notify_all();
        }
    }
}

/// A proof that the calling thread holds a lock of this rank. It is empty in release builds.
#[derive(Debug)]
struct Held<const RANK: u8>;

#[cfg(debug_assertions)]
mod held {
    use super::{Held, TIMES};
    use core::cell::Cell;

    const RANKS: usize = TIMES as usize + 1;

    thread_local! {
        /// The number of locks of each rank that this thread holds.
        static HELD: Cell<[u8; RANKS]> = const { Cell::new([0; RANKS]) };
    }

    fn change(rank: u8, change: impl Fn(u8) -> u8) {
        let mut held = HELD.get();
        held[usize::from(rank)] = change(held[usize::from(rank)]);
        HELD.set(held);
    }

    impl<const RANK: u8> Held<RANK> {
        pub(super) fn in_order() -> Held<RANK> {
            let highest = HELD.get().iter().rposition(|&count| count > 0);
            assert!(
                highest.is_none_or(|highest| highest < usize::from(RANK)),
                "a lock of rank {RANK} is taken while one of rank {highest:?} is held: see the table in lib.rs"
            );
            Held::in_any_order()
        }

        pub(super) fn in_any_order() -> Held<RANK> {
            change(RANK, |count| count + 1);
            Held
        }
    }

    impl<const RANK: u8> Drop for Held<RANK> {
        fn drop(&mut self) {
            change(RANK, |count| count - 1);
        }
    }
}

// Release builds have nothing of it: neither memory nor code at the end of a guard.
#[cfg(not(debug_assertions))]
const _: () = assert!(size_of::<Held<STATE>>() == 0 && !core::mem::needs_drop::<Held<STATE>>());

#[cfg(not(debug_assertions))]
impl<const RANK: u8> Held<RANK> {
    const fn in_order() -> Held<RANK> {
        Held
    }

    const fn in_any_order() -> Held<RANK> {
        Held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_may_rise() {
        let (low, high) = (RankedMutex::<_, GATE>::new(1), RankedMutex::<_, STATE>::new(2));
        let (first, second) = (low.lock(), high.lock());
        assert_eq!((*first, *second), (1, 2));
        // In any order of release, and again.
        drop(first);
        drop(second);
        drop((low.lock(), high.lock()));
        drop((high.lock(), low.try_lock()));
    }

    #[test]
    #[cfg(debug_assertions)]
    fn falling_rank_panics_in_debug_builds() {
        let taken = std::panic::catch_unwind(|| {
            let (low, high) = (RankedMutex::<_, GATE>::new(()), RankedMutex::<_, STATE>::new(()));
            drop((high.lock(), low.lock()));
        });
        let message = *taken.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("rank 3 is taken while one of rank Some(6) is held"), "{message}");
        // The panic gave its locks back.
        drop(RankedMutex::<_, MAPPINGS>::new(()).lock());
    }

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
