//! Moves the heap from near to far memory while the program uses it.

use super::LargeBlockHeap;
use core::ops::Range;
use largesse_arena::{Backing, Retention};
use largesse_report::BlockKind;

impl<B: Backing> LargeBlockHeap<B> {
    /// Returns whether the process would exceed its memory limit if every block were touched.
    pub fn exceeds_limit(&self) -> bool {
        self.inner.with(|inner| inner.arena.exceeds_limit())
    }

    /// Moves the heap to far memory: calls `take_over`, which must make the whole range far memory. Its argument
    /// iterates over the runs of spans that may hold something, counted from the start of the range. No other thread
    /// is inside the heap during that call. If it succeeds, the heap retains as much free memory as `retention` says;
    /// otherwise nothing changes.
    pub fn change_over<R, E>(
        &self,
        retention: Retention,
        take_over: impl FnOnce(&mut dyn Iterator<Item = Range<usize>>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.inner.with(|inner| {
            let taken = take_over(&mut inner.arena.warm_runs())?;
            inner.arena.became_far(retention);
            inner.records.rekind(BlockKind::Thp, BlockKind::Small);
            Ok(taken)
        })
    }
}
