//! Marks a thread of the program while it runs the library's code.
//!
//! No handler of the program interrupts it there (`signals.rs`). Builds with debug assertions abort if that code calls
//! the exported `malloc`.

use crate::signals::Blocked;

/// A guard that marks the calling thread as running the library's code, where it may hold the library's locks.
pub(crate) struct Inside {
    // Dropped in this order: a handler may run as soon as signals are unblocked.
    _mark: Mark,
    _blocked: Option<Blocked>,
}

impl Inside {
    /// Marks the calling thread as being inside the library, and blocks its signals until the result is dropped: a
    /// signal handler that ran in between could want a lock of the library that this thread holds.
    pub(crate) fn enter() -> Inside {
        let blocked = Some(Blocked::handlers());
        Inside { _mark: Mark::set(), _blocked: blocked }
    }

    /// Enters the heap, which takes no lock but its own, and those of far memory if there is any. On near memory it
    /// does not block signals, which would take longer than the rest of a `malloc`: the calls that need the heap's lock
    /// in a handler, `fork`, `mmap` and `mremap`, check
    /// [`is_interrupted`](largesse_malloc::LargeBlockHeap::is_interrupted).
    pub(crate) fn enter_heap() -> Inside {
        let blocked = crate::heap::may_be_far().then(Blocked::handlers);
        Inside { _mark: Mark::set(), _blocked: blocked }
    }
}

#[cfg(debug_assertions)]
mod checked {
    use core::cell::Cell;

    thread_local! {
        // `const`: no lazy initialisation and no destructor, hence no allocation.
        static INSIDE: Cell<bool> = const { Cell::new(false) };
    }

    /// A mark of the calling thread: while it lives, [`called_from_outside`] aborts in this thread.
    pub(super) struct Mark(bool);

    impl Mark {
        pub(super) fn set() -> Mark {
            Mark(INSIDE.replace(true))
        }
    }

    impl Drop for Mark {
        fn drop(&mut self) {
            INSIDE.set(self.0);
        }
    }

    /// Runs `f` as if outside the library's code, because `f` calls functions of the C library that allocate.
    pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> R {
        let before = INSIDE.replace(false);
        let result = f();
        INSIDE.set(before);
        result
    }

    /// Aborts if the library's own code called the exported function `name`. Each exported allocation function makes
    /// this check.
    pub(crate) fn called_from_outside(name: &'static str) {
        if INSIDE.get() {
            INSIDE.set(false);
            crate::message::die(&["largesse's own code entered the exported ", name]);
        }
    }
}

#[cfg(not(debug_assertions))]
mod checked {
    pub(super) struct Mark;

    impl Mark {
        #[inline]
        pub(super) fn set() -> Mark {
            Mark
        }
    }

    #[inline]
    pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline]
    pub(crate) fn called_from_outside(_name: &'static str) {}
}

use checked::Mark;
pub(crate) use checked::{called_from_outside, outside};
