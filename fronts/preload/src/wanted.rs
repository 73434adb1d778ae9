//! The word on which the helper thread sleeps.

use core::sync::atomic::AtomicU32;

/// Value of [`WANTED`] while there is no helper.
pub(crate) const ABSENT: u32 = u32::MAX;
/// Value of [`WANTED`] if the helper prepares no spans and is not woken for them.
pub(crate) const DECAY_ONLY: u32 = u32::MAX - 1;
/// Number of spans that the helper is to touch ahead, or [`ABSENT`] or [`DECAY_ONLY`].
pub(crate) static WANTED: AtomicU32 = AtomicU32::new(ABSENT);
