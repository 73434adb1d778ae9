//! A thread of the program inside our own code.
//!
//! No handler of the program interrupts it there (`signals.rs`). In builds with debug assertions, our code must not enter
//! the exported `malloc` either.

use crate::signals::Blocked;

/// While it lives, the calling thread runs our code, and may hold locks of ours.
pub(crate) struct Inside {
    // Dropped in this order: a handler may run from the moment that signals are no longer blocked.
    _mark: Mark,
    _blocked: Option<Blocked>,
}

impl Inside {
    /// Enters code that may take any lock of ours.
    pub(crate) fn enter() -> Inside {
        let blocked = Some(Blocked::handlers());
        Inside { _mark: Mark::set(), _blocked: blocked }
    }

    /// Enters the heap, which takes no lock but its own, and those of far memory if there is any. Without far memory signals
    /// are not blocked, which takes longer than the rest of a `malloc`: the two things that want the heap's lock in a
    /// handler, `fork` and `mmap`, ask [`is_interrupted`](largesse_malloc::LargeBlockHeap::is_interrupted).
    pub(crate) fn enter_heap() -> Inside {
        let blocked = crate::serve::far().map(|_| Blocked::handlers());
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

    /// While it lives, this thread is known to run our code.
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

    /// Run `f`, which is the C library's business, although this thread is inside our code.
    pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> R {
        let before = INSIDE.replace(false);
        let result = f();
        INSIDE.set(before);
        result
    }

    /// Called by each exported allocation function.
    pub(crate) fn called_from_outside(name: &'static str) {
        if INSIDE.get() {
            INSIDE.set(false);
            crate::start::die(&["largesse's own code entered the exported ", name]);
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
