//! Blocks that a thread was given, and the cells it takes from them without asking anybody.

use crate::Lane;
use crate::blocks::{BlockNumber, Blocks, GRAIN};
use crate::classes::LANES;
use crate::context::Bump;

/// A run is zeroed piece by piece, so that cells are still in the cache when they are handed out.
const PIECE: usize = 4 << 10;

/// Visits to the ledger that a thread should need for a lane from one collection to the next.
const VISITS: f32 = 16.0;

/// One lane of one thread.
#[derive(Debug, Default)]
struct Local {
    /// Cells up to here are in `cells`.
    counted: usize,
    /// End of the free run that the lane's [`Bump`] is in.
    run_end: usize,
    block: Option<BlockNumber>,
    /// Blocks to go on with.
    reserve: Vec<BlockNumber>,
    /// Cells handed out.
    cells: u64,
    /// Blocks used up since the last collection.
    used: u32,
    /// The same, from one collection to the next, smoothed.
    rate: f32,
}

/// What is delegated to one thread (or, without delegation, what the ledger hands cells out from).
#[derive(Debug)]
pub(crate) struct Delegation {
    locals: Box<[Local]>,
    /// Blocks in all reserves.
    held: usize,
}

impl Delegation {
    pub(crate) fn new() -> Delegation {
        Delegation { locals: (0..LANES).map(|_| Local::default()).collect(), held: 0 }
    }

    /// The next cell of a lane: 16-byte aligned, all zeros. `None`: nothing is left here.
    #[inline]
    pub(crate) fn take(&mut self, lane: Lane, bump: &mut Bump, blocks: &Blocks) -> Option<usize> {
        if let Some(at) = bump.take(lane.bytes()) {
            return Some(at);
        }
        if self.refill(lane, bump, blocks) { bump.take(lane.bytes()) } else { None }
    }

    /// Let the lane's bump go on: in its run, in the next run of its block, or in the next block.
    pub(crate) fn refill(&mut self, lane: Lane, bump: &mut Bump, blocks: &Blocks) -> bool {
        let local = &mut self.locals[lane.index()];
        local.count(lane, bump);
        while bump.limit == local.run_end {
            let Some(block) = local.block else {
                local.block = local.reserve.pop();
                if local.block.is_none() {
                    return false;
                }
                local.used += 1;
                self.held -= 1;
                continue;
            };
            let state = blocks.get(block);
            let Some((from, to)) = blocks.run_to_hand_out(block, lane, state.next()) else {
                local.block = None;
                continue;
            };
            blocks.set(block, state.with_next(to));
            let start = blocks.address(block);
            local.run_end = start + to * GRAIN;
            bump.cursor = start + from * GRAIN;
            bump.limit = if state.is_clean() { local.run_end } else { bump.cursor };
            local.counted = bump.cursor;
            if state.is_clean() {
                return true;
            }
        }
        let piece = (PIECE / lane.bytes()).max(1) * lane.bytes();
        let end = (bump.limit + piece).min(local.run_end);
        // SAFETY: the run is free, of a usable block that is delegated to this thread alone.
        unsafe { core::ptr::with_exposed_provenance_mut::<u8>(bump.limit).write_bytes(0, end - bump.limit) };
        bump.limit = end;
        true
    }

    /// Blocks to ask the ledger for when the lane has none left: from what it took of late, but so that the thread
    /// never holds more than `bound`, unless it has nothing at all.
    pub(crate) fn batch(&self, lane: Lane, bound: usize) -> usize {
        let local = &self.locals[lane.index()];
        let wanted = (local.rate.max(local.used as f32) / VISITS) as usize + 1;
        wanted.min(bound.saturating_sub(self.held)).max(1)
    }

    /// A block that the ledger hands over.
    pub(crate) fn add(&mut self, lane: Lane, block: BlockNumber) {
        self.locals[lane.index()].reserve.push(block);
        self.held += 1;
    }

    /// Cells handed out so far.
    pub(crate) fn cells(&self, lane: Lane, bump: &Bump) -> u64 {
        let local = &self.locals[lane.index()];
        local.cells + local.uncounted(lane, bump)
    }

    /// Cells that can be handed out without asking the ledger.
    pub(crate) fn free_cells(&self, lane: Lane, bump: &Bump, blocks: &Blocks) -> u64 {
        let local = &self.locals[lane.index()];
        let rest = (local.run_end - bump.cursor) / lane.bytes();
        let held = local.reserve.iter().chain(&local.block);
        let further: usize = held.map(|&block| blocks.free_cells(block, lane)).sum();
        (rest + further) as u64
    }

    /// Let go of every block: a collection decides anew what is free.
    pub(crate) fn retire(&mut self, bumps: &mut [Bump; LANES]) {
        for lane in Lane::all() {
            let bump = &mut bumps[lane.index()];
            let local = &mut self.locals[lane.index()];
            local.count(lane, bump);
            local.forget(bump);
            local.rate = (local.rate + local.used as f32) / 2.0;
            local.used = 0;
        }
        self.held = 0;
    }

    /// Give every block that is not used up to `back`.
    pub(crate) fn release(
        &mut self,
        bumps: &mut [Bump; LANES],
        blocks: &Blocks,
        mut back: impl FnMut(BlockNumber),
    ) {
        for lane in Lane::all() {
            let bump = &mut bumps[lane.index()];
            let local = &mut self.locals[lane.index()];
            local.count(lane, bump);
            if let Some(block) = local.block {
                let next = (bump.cursor - blocks.address(block)) / GRAIN;
                blocks.set(block, blocks.get(block).with_next(next));
                back(block);
            }
            local.reserve.drain(..).for_each(&mut back);
            local.forget(bump);
        }
        self.held = 0;
    }
}

impl Local {
    fn uncounted(&self, lane: Lane, bump: &Bump) -> u64 {
        ((bump.cursor - self.counted) / lane.bytes()) as u64
    }

    fn count(&mut self, lane: Lane, bump: &Bump) {
        self.cells += self.uncounted(lane, bump);
        self.counted = bump.cursor;
    }

    fn forget(&mut self, bump: &mut Bump) {
        *bump = Bump::default();
        self.block = None;
        self.reserve.clear();
        self.counted = 0;
        self.run_end = 0;
    }
}
