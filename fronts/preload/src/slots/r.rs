//! Recognizes R among the loaded objects, and knows the layout of its vectors.

use super::object::{Object, each_object};
use crate::settings::options;
use crate::symbol::symbol;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Number of bytes before the data of an R vector (R 3.5 and later).
const R_HEADER: usize = 48;

/// Address of R's own allocator in this process, 0 if there is none.
#[derive(Clone, Copy)]
pub(super) struct RAllocator(usize);

impl RAllocator {
    /// Looks the allocator up once per process, because the main program, which alone can hold it, never changes. Must
    /// be called before an enumeration: a failing look-up allocates, perhaps from an allocator that a forking thread
    /// has locked, and that thread waits for enumerations to end.
    pub(super) fn find() -> RAllocator {
        static FOUND: AtomicUsize = AtomicUsize::new(usize::MAX);
        // Relaxed, here and below: every thread finds the same number.
        let mut at = FOUND.load(Ordering::Relaxed);
        if at == usize::MAX {
            at = symbol(c"Rf_allocVector3").addr();
            FOUND.store(at, Ordering::Relaxed);
        }
        RAllocator(at)
    }

    /// Returns whether an object is libR.so, or the main program of an R that was built without it.
    pub(super) fn is_in(self, object: &Object<'_>) -> bool {
        let RAllocator(at) = self;
        object.file_name_starts_with(b"libR.so") || (object.name().is_empty() && at != 0 && object.holds(at))
    }
}

/// Returns whether libR.so (or an R program without it) is in this process.
pub(crate) fn r_is_loaded() -> bool {
    let (mut found, allocator) = (false, RAllocator::find());
    each_object(|object| found |= allocator.is_in(object));
    found
}

/// Returns the number of bytes between the start of a block and the data that the program keeps in it.
pub(crate) fn header() -> usize {
    options().header.unwrap_or(if r_is_loaded() { R_HEADER } else { 0 })
}
