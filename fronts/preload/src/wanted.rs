//! The word on which the helper thread sleeps.

use core::sync::atomic::AtomicU32;

/// [`WANTED`] has this value without a helper.
pub(crate) const ABSENT: u32 = u32::MAX;
/// [`WANTED`] has this value if the helper prepares no spans and is not woken for them.
pub(crate) const DECAY_ONLY: u32 = u32::MAX - 1;
/// Holds the number of spans to prepare, or [`ABSENT`] or [`DECAY_ONLY`].
pub(crate) static WANTED: AtomicU32 = AtomicU32::new(ABSENT);
