//! The ledger: who has which block, and how much may be handed out before the next collection.

use crate::blocks::{BLOCK, Block, BlockNumber, Blocks};
use crate::buddy::Buddy;
use crate::classes::LANES;
use crate::context::Bump;
use crate::delegation::Delegation;
use crate::heap_spans::Ground;
use crate::pace::Pace;
use crate::{Lane, Layout};
use core::ptr::NonNull;
use largesse_pages::MapError;
use std::time::Instant;

/// Of 100 blocks that will be in use before the next collection, so many may be delegated and not begun (the
/// paper's bound).
const DELEGATED_PERCENT: usize = 10;

/// A heap is exhausted when a collection leaves less than this part of the limit.
const EXHAUSTED: usize = 64;

/// Why the ledger gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// It is time for a collection.
    Budget,
    /// The limit, the range or the machine's memory is used up.
    Full,
}

/// Everything that one lock guards.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) ground: Ground,
    buddy: Buddy,
    /// First blocks of everything that is in use, in no order.
    pub(crate) in_use: Vec<BlockNumber>,
    /// Blocks with free cells that are delegated to nobody.
    pub(crate) partial: Vec<Vec<BlockNumber>>,
    /// Blocks that are not free.
    pub(crate) used_blocks: usize,
    /// Blocks that may be in use.
    limit_blocks: usize,
    /// Bytes that may be handed out before the next collection.
    pub(crate) budget: usize,
    pub(crate) pace: Pace,
    /// When the last collection ended.
    pub(crate) resumed: Instant,
    /// Threads that blocks are delegated to.
    pub(crate) threads: usize,
    /// Requests that reached the ledger.
    pub(crate) visits: u64,
    pub(crate) large_requests: u64,
    pub(crate) large_words: u64,
    /// Without delegation, cells come from here.
    pub(crate) undelegated: Delegation,
    pub(crate) undelegated_bumps: [Bump; LANES],
}

impl Ledger {
    pub(crate) fn new(ground: Ground, limit: usize, floor: usize, pace: Pace) -> Result<Ledger, MapError> {
        Ok(Ledger {
            buddy: Buddy::new(ground.blocks())?,
            limit_blocks: (limit / BLOCK).min(ground.blocks()),
            ground,
            in_use: Vec::new(),
            partial: vec![Vec::new(); LANES],
            used_blocks: 0,
            budget: floor,
            pace,
            resumed: Instant::now(),
            threads: 0,
            visits: 0,
            large_requests: 0,
            large_words: 0,
            undelegated: Delegation::new(),
            undelegated_bumps: [Bump::default(); LANES],
        })
    }

    /// Delegate blocks of a lane: as many as the thread is used to take, within the bound.
    pub(crate) fn delegate(&mut self, lane: Lane, to: &mut Delegation, blocks: &Blocks) -> Result<(), Short> {
        self.visits += 1;
        if self.budget == 0 {
            return Err(Short::Budget);
        }
        for given in 0..to.batch(lane, self.bound()) {
            match self.block(lane, blocks) {
                Ok(block) => to.add(lane, block),
                Err(_) if given > 0 => break,
                Err(short) => return Err(short),
            }
        }
        Ok(())
    }

    /// Blocks that one thread may hold in reserve.
    fn bound(&self) -> usize {
        (self.used_blocks + self.budget / BLOCK) * DELEGATED_PERCENT / 100 / self.threads.max(1)
    }

    /// A cell straight from the ledger.
    pub(crate) fn cell(&mut self, lane: Lane, blocks: &Blocks) -> Result<usize, Short> {
        self.visits += 1;
        loop {
            let bump = &mut self.undelegated_bumps[lane.index()];
            if let Some(at) = self.undelegated.take(lane, bump, blocks) {
                return Ok(at);
            }
            if self.budget == 0 {
                return Err(Short::Budget);
            }
            let block = self.block(lane, blocks)?;
            self.undelegated.add(lane, block);
        }
    }

    /// A large object: its address, and whether it reads as zero.
    pub(crate) fn large(
        &mut self,
        layout: Layout,
        words: usize,
        blocks: &Blocks,
    ) -> Result<(NonNull<u64>, bool), Short> {
        self.visits += 1;
        let count = u32::try_from(Block::span_of_large(words)).map_err(|_| Short::Full)?;
        if self.budget == 0 {
            return Err(Short::Budget);
        }
        let (at, clean) = self.run(count)?;
        blocks.set(at, Block::large(layout, words));
        self.in_use.push(at);
        self.charge(count as usize * BLOCK);
        self.large_requests += 1;
        self.large_words += words as u64;
        let start = core::ptr::with_exposed_provenance_mut(blocks.address(at));
        NonNull::new(start).map(|start| (start, clean)).ok_or(Short::Full)
    }

    /// Nothing of a block, or of a large object, is alive.
    pub(crate) fn free(&mut self, at: BlockNumber, blocks: &Blocks) {
        let block = blocks.get(at);
        let count = if block.is_large() { Block::span_of_large(block.words()) } else { 1 };
        blocks.set(at, Block::NONE);
        self.buddy.give_back(at, count as u32);
        self.ground.give_back(at, count as u32);
        self.used_blocks -= count;
    }

    /// After a collection there is so little room that the next one would come at once.
    pub(crate) fn is_exhausted(&self, blocks: &Blocks) -> bool {
        let partial =
            Lane::all().flat_map(|lane| self.partial[lane.index()].iter().map(move |&it| (lane, it)));
        let within: usize = partial.map(|(lane, it)| BLOCK - blocks.count_marks(it) * lane.bytes()).sum();
        (self.limit_blocks - self.used_blocks) * BLOCK + within < self.limit() / EXHAUSTED
    }

    /// A block has free cells.
    pub(crate) fn offer(&mut self, block: BlockNumber, blocks: &Blocks) {
        if let Some(lane) = blocks.get(block).lane() {
            self.partial[lane.index()].push(block);
        }
    }

    /// The books agree with themselves, or it is a panic.
    pub(crate) fn verify(&self, blocks: &Blocks) {
        let mut used = 0;
        for &block in &self.in_use {
            let state = blocks.get(block);
            used += if state.is_large() { Block::span_of_large(state.words()) } else { 1 };
        }
        assert_eq!(used, self.used_blocks, "blocks in use, and those that are known");
        assert_eq!(used + self.buddy.free_blocks(), self.ground.blocks(), "blocks in use, free, and all");
        for lane in Lane::all() {
            for &block in &self.partial[lane.index()] {
                assert_eq!(blocks.get(block).lane(), Some(lane), "the lane of block {block}");
            }
        }
    }

    /// A collection decides anew what is free.
    pub(crate) fn retire(&mut self) {
        self.undelegated.retire(&mut self.undelegated_bumps);
        self.partial.iter_mut().for_each(Vec::clear);
    }

    /// Bytes that may be in use.
    pub(crate) const fn limit(&self) -> usize {
        self.limit_blocks * BLOCK
    }

    fn block(&mut self, lane: Lane, blocks: &Blocks) -> Result<BlockNumber, Short> {
        if let Some(block) = self.partial[lane.index()].pop() {
            self.charge(blocks.bytes_to_hand_out(block, lane));
            return Ok(block);
        }
        let (at, clean) = self.run(1)?;
        blocks.set(at, Block::cells(lane, clean));
        self.in_use.push(at);
        self.charge(BLOCK);
        Ok(at)
    }

    fn run(&mut self, blocks: u32) -> Result<(BlockNumber, bool), Short> {
        if self.used_blocks + blocks as usize > self.limit_blocks {
            return Err(Short::Full);
        }
        let at = self.buddy.take(blocks).ok_or(Short::Full)?;
        let Ok(clean) = self.ground.take(at, blocks) else {
            self.buddy.give_back(at, blocks);
            return Err(Short::Full);
        };
        self.used_blocks += blocks as usize;
        Ok((at, clean))
    }

    fn charge(&mut self, bytes: usize) {
        self.budget = self.budget.saturating_sub(bytes);
    }
}
