//! What a fork asks of the heap.

use super::Heap;
use largesse_arena::{Backing, SpanKind};
use largesse_pages::MapError;
use largesse_report::{BlockKind, Cause};

impl<B: Backing> Heap<B> {
    /// Before `fork`: nobody is inside the heap until one of the two calls below. The caller does not
    /// [interrupt](Heap::is_interrupted) it.
    pub fn before_fork(&self) {
        self.inner.keep_across_fork();
    }

    /// After `fork`, in the parent.
    pub fn after_fork_in_parent(&self) {
        self.inner.release_after_fork();
    }

    /// After `fork`, in the child, whose only thread calls.
    pub fn after_fork_in_child(&self) {
        self.inner.reset();
    }

    /// In a forked child: blocks on hugetlb pages move to ordinary ones. A write to a shared hugetlb
    /// page needs a free one of the pool, and the child is killed when there is none. `demote` moves
    /// so many spans from a first one on; only this thread exists.
    pub fn demote_in_child(&self, mut demote: impl FnMut(usize, usize) -> Result<(), MapError>) {
        self.inner.with(|inner| {
            for kind in [SpanKind::Hugetlb, SpanKind::Hugetlb1G] {
                while let Some((first, spans)) = inner.arena.first_run_of(kind) {
                    if demote(first, spans).is_err() {
                        // Leave the rest: a write may still succeed, and there is nobody to tell.
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

    /// Whether any memory is on pages of a pool (and a fork has to demote it).
    pub fn has_pool_pages(&self) -> bool {
        self.inner.with(|inner| {
            [SpanKind::Hugetlb, SpanKind::Hugetlb1G]
                .into_iter()
                .any(|kind| inner.arena.first_run_of(kind).is_some())
        })
    }
}
