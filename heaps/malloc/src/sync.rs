//! The one door to atomics, and the lock of a heap.

#[cfg(loom)]
pub(crate) use loom::{cell::UnsafeCell, sync::atomic::{AtomicU32, Ordering}};

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, Ordering};

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
    value: UnsafeCell<T>,
}

// SAFETY: `with` gives the value to one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}
// SAFETY: the lock owns its value.
unsafe impl<T: Send> Send for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Lock<T> {
        Lock { state: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Run `f` with the value, alone.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.lock();
        // SAFETY: between `lock` and `unlock` no other thread is here.
        let result = self.value.with_mut(|value| f(unsafe { &mut *value }));
        self.unlock();
        result
    }

    /// Take the lock beyond the end of a scope (around `fork`).
    pub(crate) fn lock(&self) {
        // Acquire: pairs with the Release in `unlock`, so that we see what the last owner wrote.
        if self.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_slow();
        }
    }

    #[cold]
    fn lock_slow(&self) {
        #[cfg(not(loom))]
        for _ in 0..100 {
            core::hint::spin_loop();
            // Acquire: as in `lock`.
            if self.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return;
            }
        }
        // Acquire: as in `lock`.
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            sleep_while_contended(&self.state);
        }
    }

    /// Give the lock back.
    pub(crate) fn unlock(&self) {
        // Release: pairs with the Acquire of the next owner.
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            wake(&self.state);
        }
    }

    /// In a forked child: the lock is free, whatever threads that do not exist here did with it.
    ///
    /// The forking thread holds the lock, so the value is whole.
    pub(crate) fn reset(&self) {
        // Release: pairs with the Acquire in `lock`, although only one thread is left.
        self.state.store(FREE, Ordering::Release);
    }
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
