//! Defines the crate's atomics, which loom's replace in its tests, and the lock of a heap.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering},
};

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

#[cfg(not(loom))]
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

/// Gives the standard cell the interface of loom's.
#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(core::cell::UnsafeCell::new(value))
    }
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Value of [`HeapLock::owner`] while no thread holds the lock.
const FREE: usize = 0;
/// Lowest bit of [`HeapLock::owner`], which is set while other threads may sleep. Handles of threads are even.
const CONTENDED: usize = 1;

/// Excludes other threads by a lock that neither allocates nor poisons, that a forked child can reset, and that knows
/// its owner.
///
/// States: free → owner's handle → free. A thread that is about to sleep marks the handle as contended; unlocking a
/// contended lock wakes one sleeper, which takes it as contended again (it cannot know whether it was the last). Blocks
/// of this heap are large and rare, so that one lock causes no queue.
#[derive(Debug)]
pub(crate) struct HeapLock<T> {
    owner: AtomicUsize,
    /// Counter that changes when a contended lock becomes free. Sleeping threads wait for its change.
    wakes: AtomicU32,
    /// Handle of the thread that keeps the lock across `fork`, or 0. That thread may enter the heap, because the fork
    /// handlers of other libraries, which run between ours, also use memory.
    forking: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: `with` gives the value to one thread at a time.
unsafe impl<T: Send> Sync for HeapLock<T> {}
// SAFETY: the lock owns its value.
unsafe impl<T: Send> Send for HeapLock<T> {}

impl<T> HeapLock<T> {
    pub(crate) fn new(value: T) -> HeapLock<T> {
        HeapLock {
            owner: AtomicUsize::new(FREE),
            wakes: AtomicU32::new(0),
            forking: AtomicUsize::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Calls `f` with exclusive access to the value.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let taken = self.lock();
        // SAFETY: between `lock` and `unlock` no other thread has access; a thread that keeps the lock across `fork` is
        // outside of `with` when it enters again.
        let result = self.value.with_mut(|value| f(unsafe { &mut *value }));
        if taken {
            self.unlock();
        }
        result
    }

    /// Returns whether the calling thread holds the lock. That is so in a signal handler that has interrupted
    /// [`with`](HeapLock::with).
    pub(crate) fn is_mine(&self) -> bool {
        // Relaxed: only the thread that stored its own handle sees it.
        self.owner.load(Ordering::Relaxed) & !CONTENDED == this_thread()
    }

    /// Acquires the lock before `fork`, until `release_after_fork` in the parent and `reset` in the child.
    pub(crate) fn keep_across_fork(&self) {
        self.lock();
        // Relaxed: only the thread that stored its own number here acts on it.
        self.forking.store(this_thread(), Ordering::Relaxed);
    }

    /// Acquires the lock. Returns `false` if this thread already keeps it across `fork`.
    fn lock(&self) -> bool {
        self.try_lock(this_thread()) || self.lock_slow()
    }

    fn try_lock(&self, owner: usize) -> bool {
        // Acquire: pairs with the Release in `unlock`, so that we see what the last owner wrote.
        self.owner.compare_exchange(FREE, owner, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self) -> bool {
        let me = this_thread();
        // Relaxed: see `keep_across_fork`.
        if self.forking.load(Ordering::Relaxed) == me {
            return false;
        }
        #[cfg(not(loom))]
        for _ in 0..100 {
            core::hint::spin_loop();
            if self.try_lock(me) {
                return true;
            }
        }
        while !self.try_lock(me | CONTENDED) {
            // Acquire: pairs with the Release in `unlock`. If the lock becomes free after this, the counter differs.
            let wakes = self.wakes.load(Ordering::Acquire);
            // Relaxed, both: no data of the owner is read.
            let owner = self.owner.load(Ordering::Relaxed);
            let marked = || {
                let (yes, no) = (Ordering::Relaxed, Ordering::Relaxed);
                owner & CONTENDED != 0
                    || self.owner.compare_exchange(owner, owner | CONTENDED, yes, no).is_ok()
            };
            if owner != FREE && marked() {
                sleep_while(&self.wakes, wakes);
            }
        }
        true
    }

    /// Releases the lock after `fork`, in the parent.
    pub(crate) fn release_after_fork(&self) {
        self.forking.store(0, Ordering::Relaxed);
        self.unlock();
    }

    fn unlock(&self) {
        // Release: pairs with the Acquire of the next owner.
        if self.owner.swap(FREE, Ordering::Release) & CONTENDED != 0 {
            // Release: pairs with the Acquire in `lock_slow`.
            self.wakes.fetch_add(1, Ordering::Release);
            wake(&self.wakes);
        }
    }

    /// Frees the lock in a forked child, whatever the parent's other threads did with it. The value is consistent,
    /// because the forking thread held the lock.
    pub(crate) fn reset(&self) {
        self.forking.store(0, Ordering::Relaxed);
        // Release: pairs with the Acquire in `lock`, although only one thread is left.
        self.owner.store(FREE, Ordering::Release);
    }
}

#[cfg(not(loom))]
fn this_thread() -> usize {
    largesse_pages::thread_handle()
}
#[cfg(loom)]
fn this_thread() -> usize {
    usize::MAX & !CONTENDED
}
#[cfg(not(loom))]
fn sleep_while(word: &AtomicU32, value: u32) {
    largesse_pages::wait_while(word, value);
}
#[cfg(not(loom))]
fn wake(word: &AtomicU32) {
    largesse_pages::wake_one(word);
}
#[cfg(loom)]
fn sleep_while(_: &AtomicU32, _: u32) {
    loom::thread::yield_now();
}
#[cfg(loom)]
fn wake(_: &AtomicU32) {}

#[cfg(all(test, loom))]
mod tests {
    extern crate std;
    use super::*;
    use loom::sync::Arc;

    // Fails with `Relaxed` in `unlock`: "Causality violation".
    #[test]
    fn threads_never_share_the_value() {
        loom::model(|| {
            let lock = Arc::new(HeapLock::new(0));
            let other = {
                let lock = lock.clone();
                loom::thread::spawn(move || lock.with(|n| *n += 1))
            };
            lock.with(|n| *n += 1);
            other.join().unwrap();
            assert_eq!(lock.with(|n| *n), 2);
        });
    }
}
