//! The interface of prefetch policies to the pager, and the baseline, which prefetches nothing.

use super::fault_context::{Access, FaultContext};
use crate::PageNumber;
use core::fmt::Debug;
use core::ops::Range;

/// Predicts from faults which pages are used next.
pub trait Prefetch: Debug + Send {
    /// Observes a fault and returns how the pages around it are used.
    ///
    /// Calls `prefetch` for the pages that are expected to be used next, at most `most` in total. Calls `passed` for
    /// prefetched pages that the program has used without a fault since the last fault of their stream.
    fn on_fault(
        &mut self,
        fault: &FaultContext,
        most: usize,
        passed: &mut dyn FnMut(Range<PageNumber>, Access),
        prefetch: &mut dyn FnMut(Range<PageNumber>, Access),
    ) -> Access;
}

/// Prefetches nothing, and assumes that the neighbours of each page are used, too.
#[derive(Debug)]
pub struct NoPrefetch;

impl Prefetch for NoPrefetch {
    fn on_fault(
        &mut self,
        _: &FaultContext,
        _: usize,
        _: &mut dyn FnMut(Range<PageNumber>, Access),
        _: &mut dyn FnMut(Range<PageNumber>, Access),
    ) -> Access {
        Access::Dense
    }
}
