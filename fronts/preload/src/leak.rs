//! Makes values that live as long as the process.

use core::ptr::NonNull;

/// Moves a value into a mapping of its own, which is never freed. Returns `None` if the kernel has no memory for it.
pub(crate) fn leak<T>(value: T) -> Option<&'static T> {
    let at: NonNull<T> = largesse_pages::mapping_at(size_of::<T>())?.cast();
    // SAFETY: the mapping is page-aligned, large enough, and never freed.
    unsafe {
        at.write(value);
        Some(at.as_ref())
    }
}
