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
    pub(crate) fn called_from_outside(_name: &'static str) {}
}

pub(crate) use checked::{Inside, called_from_outside};
