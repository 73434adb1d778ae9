//! The one door to atomics, and the lock of a heap.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
};

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

#[cfg(not(loom))]
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

/// loom's interface over the real cell.
#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(core::cell::UnsafeCell::new(value))
    }
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Taken, and someone may sleep.
const CONTENDED: u32 = 2;

/// A mutual exclusion lock that neither allocates nor poisons, and that a forked child can reset.
///
/// States: free → taken → free; taken → contended when somebody is about to sleep; whoever unlocks
/// a contended lock wakes one sleeper, which takes it as contended again (it cannot know whether it
/// was the last). Blocks of this heap are large and rare, so that one lock does not queue.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    state: AtomicU32,
    /// The thread that keeps the lock across `fork`, 0 when there is none. It may enter meanwhile:
    /// fork handlers of other libraries, which run between ours, use memory too.
    forking: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: `with` gives the value to one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}
// SAFETY: the lock owns its value.
unsafe impl<T: Send> Send for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Lock<T> {
        Lock { state: AtomicU32::new(FREE), forking: AtomicUsize::new(0), value: UnsafeCell::new(value) }
    }

    /// Run `f` with the value, alone.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let taken = self.lock();
        // SAFETY: between `lock` and `unlock` no other thread is here; a thread that keeps the lock
        // across `fork` is outside of `with` when it comes here again.
        let result = self.value.with_mut(|value| f(unsafe { &mut *value }));
        if taken {
            self.unlock();
        }
        result
    }

    /// Keep the lock beyond the end of a scope: until `release_after_fork` in the parent, `reset` in the child.
    pub(crate) fn keep_across_fork(&self) {
        self.lock();
        // Relaxed: only the thread that stored its own number here acts on it.
        self.forking.store(this_thread(), Ordering::Relaxed);
    }

    /// `false`: this thread has it already.
    fn lock(&self) -> bool {
        // Acquire: pairs with the Release in `unlock`, so that we see what the last owner wrote.
        self.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
            || self.lock_slow()
    }

    #[cold]
    fn lock_slow(&self) -> bool {
        // Relaxed: see `keep_across_fork`.
        if self.forking.load(Ordering::Relaxed) == this_thread() {
            return false;
        }
        #[cfg(not(loom))]
        for _ in 0..100 {
            core::hint::spin_loop();
            // Acquire: as in `lock`.
            if self.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return true;
            }
        }
        // Acquire: as in `lock`.
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            sleep_while_contended(&self.state);
        }
        true
    }

    /// Give the lock back after `fork`, in the parent.
    pub(crate) fn release_after_fork(&self) {
        self.forking.store(0, Ordering::Relaxed);
        self.unlock();
    }

    fn unlock(&self) {
        // Release: pairs with the Acquire of the next owner.
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            wake(&self.state);
        }
    }

    /// In a forked child: the lock is free, whatever threads that do not exist here did with it.
    ///
    /// The forking thread holds the lock, so the value is whole.
    pub(crate) fn reset(&self) {
        self.forking.store(0, Ordering::Relaxed);
        // Release: pairs with the Acquire in `lock`, although only one thread is left.
        self.state.store(FREE, Ordering::Release);
    }
}

#[cfg(not(loom))]
fn this_thread() -> usize {
    largesse_pages::thread_handle()
}
#[cfg(loom)]
fn this_thread() -> usize {
    usize::MAX
}
#[cfg(not(loom))]
fn sleep_while_contended(state: &AtomicU32) {
    largesse_pages::wait_while(state, CONTENDED);
}
#[cfg(not(loom))]
fn wake(state: &AtomicU32) {
    largesse_pages::wake_one(state);
}
#[cfg(loom)]
fn sleep_while_contended(_: &AtomicU32) {
    loom::thread::yield_now();
}
#[cfg(loom)]
fn wake(_: &AtomicU32) {}

#[cfg(all(test, loom))]
mod tests {
    extern crate std;
    use super::*;
    use loom::sync::Arc;

    // Seen to fail with `Relaxed` in `unlock`: "Causality violation".
    #[test]
    fn two_threads_never_share_the_value() {
        loom::model(|| {
            let lock = Arc::new(Lock::new(0));
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
