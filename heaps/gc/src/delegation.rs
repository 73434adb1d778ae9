//! Holds the blocks delegated to a thread, from which it allocates cells without a lock.

use crate::AllocationClass;
use crate::blocks::{BlockNumber, Blocks, GRAIN};
use crate::classes::CLASSES;
use crate::context::Bump;

/// Number of bytes that are zeroed at a time, so that cells are still in the cache when they are handed out.
const PIECE: usize = 4 << 10;

/// Number of visits to the keep that a thread should need for each class between two collections.
const VISITS: f32 = 16.0;

/// Allocates cells of one class in one thread.
#[derive(Debug, Default)]
struct ClassAllocator {
    /// Address up to which `cells` counts the cells that were handed out.
    counted: usize,
    /// End of the free run that the class's [`Bump`] is in.
    run_end: usize,
    block: Option<BlockNumber>,
    /// Delegated blocks that are not begun yet.
    reserve: Vec<BlockNumber>,
    /// Number of cells handed out below `counted`.
    cells: u64,
    /// Number of blocks begun since the last collection.
    used: u32,
    /// Moving average of `used` over the collections to date.
    rate: f32,
}

/// The blocks delegated to one thread or, without delegation, those from which the keep hands out cells.
#[derive(Debug)]
pub(crate) struct Delegation {
    locals: Box<[ClassAllocator]>,
    /// Number of blocks in all reserves.
    held: usize,
}

impl Delegation {
    pub(crate) fn new() -> Delegation {
        Delegation { locals: (0..CLASSES).map(|_| ClassAllocator::default()).collect(), held: 0 }
    }

    /// Takes the next cell of a class, 16-byte aligned and all zeros. Returns `None` when no delegated block has a
    /// free cell.
    #[inline]
    pub(crate) fn take(&mut self, class: AllocationClass, bump: &mut Bump, blocks: &Blocks) -> Option<usize> {
        if let Some(at) = bump.take(class.bytes()) {
            return Some(at);
        }
        if self.refill(class, bump, blocks) { bump.take(class.bytes()) } else { None }
    }

    /// Refills the class's bump from its run, from the next run of its block, or from the next block. Returns `false`
    /// when no delegated block has a free cell.
    pub(crate) fn refill(&mut self, class: AllocationClass, bump: &mut Bump, blocks: &Blocks) -> bool {
        let local = &mut self.locals[class.index()];
        local.count(class, bump);
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
            let Some((from, to)) = blocks.run_to_hand_out(block, class, state.next()) else {
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
        let piece = (PIECE / class.bytes()).max(1) * class.bytes();
        let end = (bump.limit + piece).min(local.run_end);
        // SAFETY: the run is free, in a usable block that is delegated to this thread alone.
        unsafe { core::ptr::with_exposed_provenance_mut::<u8>(bump.limit).write_bytes(0, end - bump.limit) };
        bump.limit = end;
        true
    }

    /// Returns the number of blocks to request from the keep when none of the class is left: in proportion to recent
    /// use, and so that the thread holds at most `bound` blocks in reserve, but at least one.
    pub(crate) fn batch(&self, class: AllocationClass, bound: usize) -> usize {
        let local = &self.locals[class.index()];
        let wanted = (local.rate.max(local.used as f32) / VISITS) as usize + 1;
        wanted.min(bound.saturating_sub(self.held)).max(1)
    }

    /// Adds a block that the keep delegates.
    pub(crate) fn add(&mut self, class: AllocationClass, block: BlockNumber) {
        self.locals[class.index()].reserve.push(block);
        self.held += 1;
    }

    /// Returns the number of cells handed out to date.
    pub(crate) fn cells(&self, class: AllocationClass, bump: &Bump) -> u64 {
        let local = &self.locals[class.index()];
        local.cells + local.uncounted(class, bump)
    }

    /// Returns the number of cells that can be handed out without visiting the keep.
    pub(crate) fn free_cells(&self, class: AllocationClass, bump: &Bump, blocks: &Blocks) -> u64 {
        let local = &self.locals[class.index()];
        let rest = (local.run_end - bump.cursor) / class.bytes();
        let held = local.reserve.iter().chain(&local.block);
        let further: usize = held.map(|&block| blocks.free_cells(block, class)).sum();
        (rest + further) as u64
    }

    /// Drops every block before a collection, which determines the free cells again.
    pub(crate) fn retire(&mut self, bumps: &mut [Bump; CLASSES]) {
        for class in AllocationClass::all() {
            let bump = &mut bumps[class.index()];
            let local = &mut self.locals[class.index()];
            local.count(class, bump);
            local.forget(bump);
            local.rate = (local.rate + local.used as f32) / 2.0;
            local.used = 0;
        }
        self.held = 0;
    }

    /// Calls `back` for every delegated block that still has free cells, and forgets all blocks.
    pub(crate) fn release(
        &mut self,
        bumps: &mut [Bump; CLASSES],
        blocks: &Blocks,
        mut back: impl FnMut(BlockNumber),
    ) {
        for class in AllocationClass::all() {
            let bump = &mut bumps[class.index()];
            let local = &mut self.locals[class.index()];
            local.count(class, bump);
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

impl ClassAllocator {
    fn uncounted(&self, class: AllocationClass, bump: &Bump) -> u64 {
        ((bump.cursor - self.counted) / class.bytes()) as u64
    }

    fn count(&mut self, class: AllocationClass, bump: &Bump) {
        self.cells += self.uncounted(class, bump);
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
