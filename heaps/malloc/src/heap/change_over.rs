//! Moves the heap from near to far memory, and back, while the program uses it.

use super::LargeBlockHeap;
use core::ops::Range;
use largesse_arena::{Backing, Retention, SpanKind};
use largesse_pages::SPAN;
use largesse_report::BlockKind;

impl<B: Backing> LargeBlockHeap<B> {
    /// Returns whether the process would exceed its memory limit if every block were touched.
    pub fn exceeds_limit(&self) -> bool {
        self.inner.with(|inner| inner.arena.exceeds_limit())
    }

    /// Calls `f` with each run of spans that may hold something, counted from the start of the range, until it fails. No
    /// other thread is inside the heap during these calls.
    pub fn each_warm_run<E>(&self, f: impl FnMut(Range<usize>) -> Result<(), E>) -> Result<(), E> {
        self.inner.with(|inner| inner.arena.warm_runs().try_for_each(f))
    }

    /// Calls `take_over`, which makes the whole range far memory, with the runs of spans that may hold something,
    /// counted from the start of the range. No other thread is inside the heap during that call. If it succeeds, the
    /// heap retains as much free memory as `retention` says; otherwise nothing changes.
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

    /// Calls `make_near`, which makes the whole range near memory on pages of `kind`, with the number of spans from the
    /// start of the range that contain every block ever allocated. No other thread is inside the heap during that call.
    /// If it returns `true`, the heap retains as much free memory as `retention` says, and its limit is `limit` bytes;
    /// otherwise nothing changes. Returns the same.
    pub fn change_back(
        &self,
        retention: Retention,
        limit: usize,
        kind: SpanKind,
        make_near: impl FnOnce(usize) -> bool,
    ) -> bool {
        self.inner.with(|inner| {
            let done = make_near(inner.arena.used_range() / SPAN);
            if done {
                inner.arena.became_near(retention, limit, kind);
                if kind == SpanKind::Thp {
                    inner.records.rekind(BlockKind::Small, BlockKind::Thp);
                }
            }
            done
        })
    }
}
