//! Sweeping: which blocks are free. No cell is touched: the marks say it all, and the free runs of a block are
//! found by the thread that it is delegated to.

use crate::Language;
use crate::blocks::{BLOCK, BlockNumber};
use crate::heap::Shared;
use crate::keep::Ledger;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// Blocks with fewer free bytes are not worth a visit.
const WORTH_DELEGATING: usize = BLOCK / 16;

/// Blocks that a worker looks at before it asks for more.
const STRIDE: usize = 256;

/// What is alive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Live {
    pub(crate) objects: u64,
    pub(crate) bytes: usize,
}

/// What became of some blocks.
#[derive(Debug, Default)]
struct Swept {
    live: Live,
    full: Vec<BlockNumber>,
    partial: Vec<BlockNumber>,
    empty: Vec<BlockNumber>,
}

impl<L: Language> Shared<L> {
    /// Forget all marks.
    pub(crate) fn clear_marks(&self, in_use: &[BlockNumber]) {
        self.by_strides(in_use, |some| some.iter().for_each(|&block| self.blocks.clear_marks(block)));
    }

    /// Free blocks without a mark, and offer those with free cells.
    pub(crate) fn sweep(&self, ledger: &mut Ledger) -> Live {
        let all = Mutex::new(Vec::new());
        self.by_strides(&ledger.in_use, |some| {
            let swept = self.look(some);
            lock(&all).push(swept);
        });
        let mut live = Live::default();
        ledger.in_use.clear();
        for swept in core::mem::take(&mut *lock(&all)) {
            live.objects += swept.live.objects;
            live.bytes += swept.live.bytes;
            swept.empty.iter().for_each(|&block| ledger.free(block, &self.blocks));
            ledger.in_use.extend(swept.full);
            ledger.in_use.extend(&swept.partial);
            swept.partial.iter().for_each(|&block| ledger.offer(block, &self.blocks));
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
            let Some(lane) = state.lane() else {
                swept.full.push(block);
                continue;
            };
            self.blocks.set(block, state.with_next(0).unclean());
            let worth = self.blocks.bytes_to_hand_out(block, lane) >= WORTH_DELEGATING.max(lane.bytes());
            if worth { &mut swept.partial } else { &mut swept.full }.push(block);
        }
        swept
    }

    /// Let the crew go through blocks, when there are many.
    fn by_strides(&self, blocks: &[BlockNumber], f: impl Fn(&[BlockNumber]) + core::marker::Sync) {
        if blocks.len() <= STRIDE * 4 {
            f(blocks);
            return;
        }
        let next = AtomicUsize::new(0);
        self.crew.run(&|_| {
            loop {
                // Relaxed: it only deals out numbers.
                let from = next.fetch_add(STRIDE, Ordering::Relaxed);
                let Some(some) = blocks.get(from..blocks.len().min(from + STRIDE)) else { return };
                f(some);
            }
        });
    }
}
