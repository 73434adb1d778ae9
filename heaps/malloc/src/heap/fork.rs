//! Keeps the heap consistent across `fork`.

use super::LargeBlockHeap;
use largesse_arena::{Backing, SpanKind};
use largesse_pages::MapError;
use largesse_report::{BlockKind, Cause};

impl<B: Backing> LargeBlockHeap<B> {
    /// Locks the heap before `fork`, until one of the two `after_fork` functions is called. The caller must not be a
    /// signal handler that [interrupted](LargeBlockHeap::is_interrupted) the heap.
    pub fn before_fork(&self) {
        self.inner.keep_across_fork();
    }

    /// Unlocks the heap in the parent, after `fork`.
    pub fn after_fork_in_parent(&self) {
        self.inner.release_after_fork();
    }

    /// Unlocks the heap in the child, after `fork`, on the child's only thread.
    pub fn after_fork_in_child(&self) {
        self.inner.reset();
    }

    /// Moves the blocks of a forked child that are on hugetlb pages to ordinary pages, because the child would be
    /// killed if it wrote to a shared hugetlb page while the pool had no free one. The caller must be the child's only
    /// thread. `demote` gets the index of a first span and a number of spans, and moves those.
    pub fn demote_in_child(&self, mut demote: impl FnMut(usize, usize) -> Result<(), MapError>) {
        self.inner.with(|inner| {
            for kind in [SpanKind::Hugetlb, SpanKind::Hugetlb1G] {
                while let Some((first, spans)) = inner.arena.first_run_of(kind) {
                    if demote(first, spans).is_err() {
                        // Leave the rest: a write may still succeed, and the child has no caller to inform.
                        inner.records.note(Cause::OutOfMemory);
                        return;
                    }
                    inner.arena.rekind(first, spans, SpanKind::Thp);
                    inner.records.note(Cause::DemotedInChild);
                }
            }
            inner.records.rekind(BlockKind::Hugetlb, BlockKind::Thp);
        });
    }

    /// Returns whether any memory is on pages of the hugetlb pool, which [`demote_in_child`](Self::demote_in_child)
    /// would move.
    pub fn has_pool_pages(&self) -> bool {
        self.inner.with(|inner| {
            [SpanKind::Hugetlb, SpanKind::Hugetlb1G]
                .into_iter()
                .any(|kind| inner.arena.first_run_of(kind).is_some())
        })
    }
}
