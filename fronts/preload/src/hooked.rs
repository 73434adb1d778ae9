//! Records how the program's calls reach the library.

use core::sync::atomic::{AtomicU32, Ordering};

/// How the program's calls reach the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Hooked {
    /// No call reaches the library.
    No = 0,
    /// The dynamic linker finds the library first.
    Preloaded = 1,
    /// The slots of an R session were patched.
    Patched = 2,
    /// The program calls functions that the library gave it.
    Functions = 3,
}

static HOOKED: AtomicU32 = AtomicU32::new(Hooked::No as u32);

/// Returns how the program's calls reach the library, as the number of a [`Hooked`].
pub(crate) fn hooked() -> u32 {
    HOOKED.load(Ordering::Acquire)
}

/// Returns how the program's calls reach the library, as the number in the report: 0 preloaded, 1 patched, 2 by
/// functions.
pub(crate) fn way_in() -> u32 {
    hooked().saturating_sub(Hooked::Preloaded as u32)
}

/// Records how the program's calls reach the library.
pub(crate) fn set_hooked(how: Hooked) {
    HOOKED.store(how as u32, Ordering::Release);
}
