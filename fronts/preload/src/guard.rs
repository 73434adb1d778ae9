//! In builds with debug assertions: our own code must not enter the exported `malloc`.

#[cfg(debug_assertions)]
mod checked {
    use core::cell::Cell;

    thread_local! {
        // `const`: no lazy initialisation and no destructor, hence no allocation.
        static INSIDE: Cell<bool> = const { Cell::new(false) };
    }

    /// While it lives, this thread runs our code.
    pub(crate) struct Inside(bool);

    impl Inside {
        pub(crate) fn enter() -> Inside {
            Inside(INSIDE.replace(true))
        }
    }

    impl Drop for Inside {
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
    pub(crate) struct Inside;

    impl Inside {
        #[inline]
        pub(crate) fn enter() -> Inside {
            Inside
        }
    }

    #[inline]
    pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline]
    pub(crate) fn called_from_outside(_name: &'static str) {}
}

pub(crate) use checked::{Inside, called_from_outside, outside};
