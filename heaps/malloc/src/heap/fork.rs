//! Keeps the heap consistent across `fork`.

use super::LargeBlockHeap;
use largesse_arena::{Backing, SpanKind};
use largesse_pages::MapError;
use largesse_report::{BlockKind, Cause};

impl<B: Backing> LargeBlockHeap<B> {
    /// Locks the heap before `fork`, until one of the two calls below. The caller must not have
    /// [interrupted](LargeBlockHeap::is_interrupted) it.
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

    /// Moves a forked child's blocks on hugetlb pages to ordinary ones; the calling thread is its only one. A write to
    /// a shared hugetlb page needs a free one of the pool, without which the child is killed. `demote` moves a number
    /// of spans (its second argument) from a first one on.
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

    /// Returns whether any memory is on pages of a pool, which a fork has to demote.
    pub fn has_pool_pages(&self) -> bool {
        self.inner.with(|inner| {
            [SpanKind::Hugetlb, SpanKind::Hugetlb1G]
                .into_iter()
                .any(|kind| inner.arena.first_run_of(kind).is_some())
        })
    }
}
