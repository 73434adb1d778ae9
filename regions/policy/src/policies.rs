//! The policies of one pager, each of which can be replaced by a simpler one.

use crate::replacement::{Fifo, Replacement, ReplacementQueue};
use crate::streams::{NoPrefetch, Prefetch, Streams};
use crate::transfer::TransferSize;

/// The policies of one pager. An ablation, which shows what a policy is good for, replaces one of them by its
/// [baseline](Policies::baseline).
#[derive(Debug)]
pub struct Policies {
    /// Which pages to evict.
    pub replacement: Box<dyn Replacement>,
    /// Which pages to fill before they are used.
    pub prefetch: Box<dyn Prefetch>,
    /// How many pages to transfer at once.
    pub size: TransferSize,
}

impl Policies {
    /// Returns segmented replacement, prefetching by streams if `prefetch` is true (otherwise none), and transfer units
    /// of `size`.
    #[must_use]
    pub fn new(size: TransferSize, prefetch: bool) -> Policies {
        let streams: Box<dyn Prefetch> =
            if prefetch { Box::new(Streams::new()) } else { Box::new(NoPrefetch) };
        Policies { replacement: Box::new(ReplacementQueue::new()), prefetch: streams, size }
    }

    /// Returns the simplest policies: first in, first out; no prefetching; and transfer units of `pages` pages.
    #[must_use]
    pub fn baseline(pages: usize) -> Policies {
        let (replacement, prefetch) = (Box::new(Fifo::default()), Box::new(NoPrefetch));
        Policies { replacement, prefetch, size: TransferSize::Fixed(pages) }
    }
}
