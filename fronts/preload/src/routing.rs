//! Decides which requests and mappings the library serves.

use crate::settings::options;
use core::sync::atomic::{AtomicBool, Ordering};
use largesse_malloc::Routing;

/// Holds the bounds of the sizes that the heap serves; none is served before the library has started.
pub(crate) static ROUTING: Routing = Routing::new(usize::MAX, usize::MAX, false);

/// Whether another allocator serves the blocks of this process ([`crate::allocator`]).
static MAPPINGS_ONLY: AtomicBool = AtomicBool::new(false);

/// Returns whether the heap serves requests of `size` bytes.
#[inline]
pub(crate) fn takes(size: usize) -> bool {
    ROUTING.takes(size)
}

/// Returns whether the heap of large blocks is for requests of `size` bytes.
pub(crate) fn is_large(size: usize) -> bool {
    let (min, max, _) = ROUTING.limits();
    (min..=max).contains(&size)
}

/// Makes the heap serve the blocks that far memory has by default, unless a bound was set.
pub(crate) fn serve_far_sizes() {
    let (min, max, enabled) = ROUTING.limits();
    let _ = ROUTING.set(options().min_when_far(min), max);
    ROUTING.enable(enabled);
}

/// Returns whether the library serves anything: blocks and mappings, or mappings only.
pub(crate) fn is_enabled() -> bool {
    // Relaxed: set before the program starts.
    ROUTING.limits().2 || MAPPINGS_ONLY.load(Ordering::Relaxed)
}

/// Returns whether the library serves mappings of `len` bytes.
pub(crate) fn takes_mapping(len: usize) -> bool {
    is_enabled() && is_large(len)
}

/// Makes the library serve the mappings of this process only, since another allocator serves its blocks.
pub(crate) fn serve_mappings_only() {
    MAPPINGS_ONLY.store(true, Ordering::Relaxed);
}
