//! Implements sweeping, which finds free blocks by mark bits alone, without touching a cell. The free runs within a
//! block are found later, by the thread that it is delegated to.

use crate::Language;
use crate::blocks::{BLOCK, BlockNumber};
use crate::heap::HeapShared;
use crate::keep::Keep;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// Smallest number of free bytes for which a block is delegated.
const WORTH_DELEGATING: usize = BLOCK / 16;

/// Number of blocks that a worker sweeps at a time.
const STRIDE: usize = 256;

/// The number of live objects, and of the bytes of their cells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LiveTotals {
    pub(crate) objects: u64,
    pub(crate) bytes: usize,
}

/// The result of sweeping some blocks: which are empty, full or partly free.
#[derive(Debug, Default)]
struct Swept {
    live: LiveTotals,
    full: Vec<BlockNumber>,
    partial: Vec<BlockNumber>,
    empty: Vec<BlockNumber>,
}

impl<L: Language> HeapShared<L> {
    /// Clears all marks of the blocks `in_use`.
    pub(crate) fn clear_marks(&self, in_use: &[BlockNumber]) {
        self.by_strides(in_use, |some| some.iter().for_each(|&block| self.blocks.clear_marks(block)));
    }

    /// Frees the blocks without a mark, and offers those with free cells for delegation.
    pub(crate) fn sweep(&self, keep: &mut Keep) -> LiveTotals {
        let all = Mutex::new(Vec::new());
        self.by_strides(&keep.in_use, |some| {
            let swept = self.look(some);
            lock(&all).push(swept);
        });
        let mut live = LiveTotals::default();
        keep.in_use.clear();
        for swept in core::mem::take(&mut *lock(&all)) {
            live.objects += swept.live.objects;
            live.bytes += swept.live.bytes;
            swept.empty.iter().for_each(|&block| keep.free(block, &self.blocks));
            keep.in_use.extend(swept.full);
            keep.in_use.extend(&swept.partial);
            swept.partial.iter().for_each(|&block| keep.offer(block, &self.blocks));
        }
        live
    }

    fn look(&self, some: &[BlockNumber]) -> Swept {
        let mut swept = Swept::default();
        for &block in some {
            let marks = self.blocks.count_marks(block);
            if marks == 0 {
                swept.empty.push(block);
                continue;
            }
            let state = self.blocks.get(block);
            let bytes = marks * state.words() * 8;
            swept.live.objects += marks as u64;
            swept.live.bytes += bytes;
            let Some(class) = state.class() else {
                swept.full.push(block);
                continue;
            };
            self.blocks.set(block, state.with_next(0).unclean());
            let worth = self.blocks.bytes_to_hand_out(block, class) >= WORTH_DELEGATING.max(class.bytes());
            if worth { &mut swept.partial } else { &mut swept.full }.push(block);
        }
        swept
    }

    /// Runs `f` on all blocks, some at a time, in the worker pool when there are many.
    fn by_strides(&self, blocks: &[BlockNumber], f: impl Fn(&[BlockNumber]) + core::marker::Sync) {
        if blocks.len() <= STRIDE * 4 {
            f(blocks);
            return;
        }
        let next = AtomicUsize::new(0);
        self.pool.run(&|_| {
            loop {
                // Relaxed: the counter only hands out indices.
                let from = next.fetch_add(STRIDE, Ordering::Relaxed);
                let Some(some) = blocks.get(from..blocks.len().min(from + STRIDE)) else { return };
                f(some);
            }
        });
    }
}
