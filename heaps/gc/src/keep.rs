//! Implements the keep: the global record of all blocks, and the budget of allocation until the next collection.

use crate::blocks::{BLOCK, BlockNumber, BlockState, Blocks};
use crate::buddy::Buddy;
use crate::classes::CLASSES;
use crate::context::Bump;
use crate::delegation::Delegation;
use crate::heap_spans::HeapSpans;
use crate::pace::Pace;
use crate::partial::OldMarks;
use crate::{AllocationClass, Layout};
use core::ptr::NonNull;
use largesse_pages::MapError;
use std::time::Instant;

/// Bound on the blocks that threads hold in reserve, in percent of the blocks expected to be in use before the next
/// collection (the bound of EusLisp, Matsui and Sekiguchi 1995).
const DELEGATED_PERCENT: usize = 10;

/// After a collection, the heap is exhausted if less than the limit divided by this number is free.
const EXHAUSTED: usize = 64;

/// The reason for which the keep handed out no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationFailure {
    /// The budget of bytes until the next collection is used up: a collection is due.
    Budget,
    /// The limit, the address range or the machine's memory is used up.
    Full,
}

/// The global record of all blocks of a heap. One lock guards it.
#[derive(Debug)]
pub(crate) struct Keep {
    pub(crate) spans: HeapSpans,
    buddy: Buddy,
    /// Numbers of the blocks of cells in use, and of the first block of each large object, in no order.
    pub(crate) in_use: Vec<BlockNumber>,
    /// For each class, blocks with free cells that are delegated to no thread.
    pub(crate) partial: Vec<Vec<BlockNumber>>,
    /// Number of blocks that are not free.
    pub(crate) used_blocks: usize,
    /// Largest number of blocks that may be in use.
    limit_blocks: usize,
    /// Number of bytes that may still be handed out before the next collection.
    pub(crate) budget: usize,
    pub(crate) pace: Pace,
    /// The state of the marks after the last collection; `None` before the first one, and during one.
    pub(crate) old: Option<OldMarks>,
    /// Time of the end of the last collection.
    pub(crate) resumed: Instant,
    /// Number of registered threads.
    pub(crate) threads: usize,
    /// Number of requests that reached the keep.
    pub(crate) visits: u64,
    pub(crate) large_requests: u64,
    pub(crate) large_words: u64,
    /// The blocks that [`Sync::Mutex`](crate::Sync::Mutex) hands out cells from, without delegation.
    pub(crate) undelegated: Delegation,
    pub(crate) undelegated_bumps: [Bump; CLASSES],
}

impl Keep {
    pub(crate) fn new(spans: HeapSpans, limit: usize, floor: usize, pace: Pace) -> Result<Keep, MapError> {
        Ok(Keep {
            buddy: Buddy::new(spans.blocks())?,
            limit_blocks: (limit / BLOCK).min(spans.blocks()),
            spans,
            in_use: Vec::new(),
            partial: vec![Vec::new(); CLASSES],
            used_blocks: 0,
            budget: floor,
            pace,
            old: None,
            resumed: Instant::now(),
            threads: 0,
            visits: 0,
            large_requests: 0,
            large_words: 0,
            undelegated: Delegation::new(),
            undelegated_bumps: [Bump::default(); CLASSES],
        })
    }

    /// Delegates blocks of a class to a thread: as many as its recent use suggests, within the bound on blocks in
    /// reserve.
    pub(crate) fn delegate(
        &mut self,
        class: AllocationClass,
        to: &mut Delegation,
        blocks: &Blocks,
    ) -> Result<(), AllocationFailure> {
        self.visits += 1;
        if self.budget == 0 {
            return Err(AllocationFailure::Budget);
        }
        for given in 0..to.batch(class, self.bound()) {
            match self.block(class, blocks) {
                Ok(block) => to.add(class, block),
                Err(_) if given > 0 => break,
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Returns the number of blocks that one thread may hold in reserve.
    fn bound(&self) -> usize {
        (self.used_blocks + self.budget / BLOCK) * DELEGATED_PERCENT / 100 / self.threads.max(1)
    }

    /// Allocates a cell for [`Sync::Mutex`](crate::Sync::Mutex), without delegation.
    pub(crate) fn cell(
        &mut self,
        class: AllocationClass,
        blocks: &Blocks,
    ) -> Result<usize, AllocationFailure> {
        self.visits += 1;
        loop {
            let bump = &mut self.undelegated_bumps[class.index()];
            if let Some(at) = self.undelegated.take(class, bump, blocks) {
                return Ok(at);
            }
            if self.budget == 0 {
                return Err(AllocationFailure::Budget);
            }
            let block = self.block(class, blocks)?;
            self.undelegated.add(class, block);
        }
    }

    /// Allocates a large object; returns its address and whether it reads as zero.
    pub(crate) fn large(
        &mut self,
        layout: Layout,
        words: usize,
        blocks: &Blocks,
    ) -> Result<(NonNull<u64>, bool), AllocationFailure> {
        self.visits += 1;
        let count = u32::try_from(BlockState::span_of_large(words)).map_err(|_| AllocationFailure::Full)?;
        if self.budget == 0 {
            return Err(AllocationFailure::Budget);
        }
        let (at, clean) = self.run(count)?;
        blocks.set(at, BlockState::large(layout, words));
        self.in_use.push(at);
        self.charge(count as usize * BLOCK);
        self.large_requests += 1;
        self.large_words += words as u64;
        let start = core::ptr::with_exposed_provenance_mut(blocks.address(at));
        NonNull::new(start).map(|start| (start, clean)).ok_or(AllocationFailure::Full)
    }

    /// Frees a block of cells, or all blocks of a large object.
    pub(crate) fn free(&mut self, at: BlockNumber, blocks: &Blocks) {
        let block = blocks.get(at);
        let count = if block.is_large() { BlockState::span_of_large(block.words()) } else { 1 };
        blocks.set(at, BlockState::NONE);
        self.buddy.give_back(at, count as u32);
        self.spans.give_back(at, count as u32);
        self.used_blocks -= count;
    }

    /// Returns whether so little memory is free after a collection that allocation would need the next one
    /// immediately.
    pub(crate) fn is_exhausted(&self, blocks: &Blocks) -> bool {
        let partial = AllocationClass::all()
            .flat_map(|class| self.partial[class.index()].iter().map(move |&it| (class, it)));
        let within: usize = partial.map(|(class, it)| BLOCK - blocks.count_marks(it) * class.bytes()).sum();
        (self.limit_blocks - self.used_blocks) * BLOCK + within < self.limit() / EXHAUSTED
    }

    /// Adds a block that has free cells to the blocks that can be delegated.
    pub(crate) fn offer(&mut self, block: BlockNumber, blocks: &Blocks) {
        if let Some(class) = blocks.get(block).class() {
            self.partial[class.index()].push(block);
        }
    }

    /// Panics when the counts of blocks do not agree.
    pub(crate) fn verify(&self, blocks: &Blocks) {
        let mut used = 0;
        for &block in &self.in_use {
            let state = blocks.get(block);
            used += if state.is_large() { BlockState::span_of_large(state.words()) } else { 1 };
        }
        assert_eq!(used, self.used_blocks, "blocks in use, and blocks counted");
        assert_eq!(
            used + self.buddy.free_blocks(),
            self.spans.blocks(),
            "blocks in use and free, and all blocks"
        );
        for class in AllocationClass::all() {
            for &block in &self.partial[class.index()] {
                assert_eq!(blocks.get(block).class(), Some(class), "the class of block {block}");
            }
        }
    }

    /// Forgets all free cells before a collection, which finds them again.
    pub(crate) fn retire(&mut self) {
        self.undelegated.retire(&mut self.undelegated_bumps);
        self.partial.iter_mut().for_each(Vec::clear);
    }

    /// Returns the largest number of bytes that may be in use.
    pub(crate) const fn limit(&self) -> usize {
        self.limit_blocks * BLOCK
    }

    fn block(&mut self, class: AllocationClass, blocks: &Blocks) -> Result<BlockNumber, AllocationFailure> {
        if let Some(block) = self.partial[class.index()].pop() {
            self.charge(blocks.bytes_to_hand_out(block, class));
            return Ok(block);
        }
        let (at, clean) = self.run(1)?;
        blocks.set(at, BlockState::cells(class, clean));
        self.in_use.push(at);
        self.charge(BLOCK);
        Ok(at)
    }

    fn run(&mut self, blocks: u32) -> Result<(BlockNumber, bool), AllocationFailure> {
        if self.used_blocks + blocks as usize > self.limit_blocks {
            return Err(AllocationFailure::Full);
        }
        let at = self.buddy.take(blocks).ok_or(AllocationFailure::Full)?;
        let Ok(clean) = self.spans.take(at, blocks) else {
            self.buddy.give_back(at, blocks);
            return Err(AllocationFailure::Full);
        };
        self.used_blocks += blocks as usize;
        Ok((at, clean))
    }

    fn charge(&mut self, bytes: usize) {
        self.budget = self.budget.saturating_sub(bytes);
    }
}
