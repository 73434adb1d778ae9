//! Atomics, and sleeping until they change: this crate uses no others. Under loom, a lock and a condition variable take
//! the place of the kernel's queue of sleepers, so that loom finds a lost wake-up as a deadlock.

use std::time::Duration;

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU32, Ordering},
};

/// A cell of the standard library with the interface of loom's.
#[cfg(not(loom))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A word in shared memory, on which threads of several processes sleep until it changes.
#[cfg(not(loom))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct FutexWord(AtomicU32);

#[cfg(not(loom))]
impl FutexWord {
    /// Sleeps while the word holds `value`, for at most the time `wait` if it is given. It may return early.
    pub(crate) fn wait(&self, value: u32, wait: Option<Duration>) {
        largesse_pages::shared::wait_across(&self.0, value, wait);
    }
    pub(crate) fn wake(&self) {
        largesse_pages::shared::wake_across(&self.0);
    }
}

#[cfg(loom)]
#[derive(Debug, Default)]
pub(crate) struct FutexWord(AtomicU32, loom::sync::Mutex<()>, loom::sync::Condvar);

#[cfg(loom)]
impl FutexWord {
    pub(crate) fn wait(&self, value: u32, _: Option<Duration>) {
        let queue = self.1.lock().unwrap();
        if self.0.load(Ordering::Relaxed) == value {
            drop(self.2.wait(queue).unwrap());
        }
    }
    pub(crate) fn wake(&self) {
        drop(self.1.lock().unwrap());
        self.2.notify_all();
    }
}

impl core::ops::Deref for FutexWord {
    type Target = AtomicU32;
    fn deref(&self) -> &AtomicU32 {
        &self.0
    }
}
