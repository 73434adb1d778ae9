//! Implements a Fibonacci buddy allocator: splits a range of blocks into runs and merges them again.
//!
//! # Picture
//! ```text
//!   8 ──► 5 │ 3          a piece of order k is a left buddy of order k-1 and a right one of order k-2
//!         3 │ 2 │ 3      a run of 6 blocks: the 5, and 1 from the left of the 3
//! ```
//! Two bits of each piece say how to merge: `right` marks a right buddy, and `memory` stores a bit of its parent: a
//! left buddy the parent's `right`, a right buddy the parent's `memory`. (Cranston and Thomas 1975; the heap of
//! EusLisp is built this way.)
//!
//! The length of a run need not be a Fibonacci number: a run is the left part of a piece, that is a whole left buddy
//! and then the left part of the right one. So no block is lost to internal fragmentation.

use crate::blocks::BlockNumber;
use crate::side::{Side, Zeroed};
use core::cell::Cell;
use largesse_pages::MapError;

/// Number of orders of pieces. A piece of the highest order has more than 2^31 blocks.
const ORDERS: usize = 47;

/// Number of blocks in a piece of each order.
const SIZE: [u32; ORDERS] = {
    let mut size = [1; ORDERS];
    let mut order = 2;
    while order < ORDERS {
        size[order] = size[order - 1] + size[order - 2];
        order += 1;
    }
    size
};

/// This block number stands for no piece.
const NONE: BlockNumber = BlockNumber::MAX;

/// Describes the piece that starts at a block. While it is free, `before` and `after` link it to the other free pieces
/// of its order.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    order: u8,
    free: bool,
    right: bool,
    memory: bool,
    before: BlockNumber,
    after: BlockNumber,
}

// SAFETY: zero bytes are a piece of order 0 that is not free; a `Cell` may be written through a shared reference.
unsafe impl Zeroed for Cell<Piece> {}

/// Allocates runs of blocks.
#[derive(Debug)]
pub(crate) struct Buddy {
    pieces: Side<Cell<Piece>>,
    first: [BlockNumber; ORDERS],
    /// First block and order of each piece without a buddy.
    roots: Vec<(BlockNumber, u8)>,
}

impl Buddy {
    /// Creates an allocator in which all `blocks` blocks are free.
    pub(crate) fn new(blocks: usize) -> Result<Buddy, MapError> {
        let mut buddy = Buddy { pieces: Side::new(blocks)?, first: [NONE; ORDERS], roots: Vec::new() };
        let mut at = 0;
        let mut rest = u32::try_from(blocks).unwrap_or(u32::MAX);
        for order in (1..ORDERS).rev() {
            if SIZE[order] <= rest {
                buddy.roots.push((at, order as u8));
                buddy.link(at, Piece { order: order as u8, ..Piece::default() });
                at += SIZE[order];
                rest -= SIZE[order];
            }
        }
        Ok(buddy)
    }

    /// Allocates a run of `blocks` blocks, if a free piece is large enough.
    pub(crate) fn take(&mut self, blocks: u32) -> Option<BlockNumber> {
        let fits = |order: &usize| SIZE[*order] >= blocks && self.first[*order] != NONE;
        let order = (0..ORDERS).find(fits)?;
        let at = self.first[order];
        self.unlink(at);
        self.carve(at, blocks);
        Some(at)
    }

    /// Frees a run.
    pub(crate) fn give_back(&mut self, at: BlockNumber, blocks: u32) {
        let end = at + blocks;
        let mut at = at;
        while at < end {
            let next = at + SIZE[usize::from(self.pieces[at as usize].get().order)];
            self.join(at);
            at = next;
        }
    }

    /// Returns the number of blocks in free pieces.
    pub(crate) fn free_blocks(&self) -> usize {
        let lists = (0..ORDERS).map(|order| {
            let mut at = self.first[order];
            let mut blocks = 0;
            while at != NONE {
                blocks += SIZE[order] as usize;
                at = self.pieces[at as usize].get().after;
            }
            blocks
        });
        lists.sum()
    }

    /// Splits the piece at `at`, which is in no free list: keeps its first `wanted` blocks and frees the rest.
    fn carve(&mut self, at: BlockNumber, wanted: u32) {
        let (mut at, mut wanted) = (at, wanted);
        loop {
            let piece = self.pieces[at as usize].get();
            if SIZE[usize::from(piece.order)] == wanted {
                return;
            }
            let order = piece.order;
            let left = Piece { order: order - 1, right: false, memory: piece.right, ..piece };
            let right = Piece { order: order - 2, right: true, memory: piece.memory, ..piece };
            let middle = at + SIZE[usize::from(left.order)];
            self.pieces[at as usize].set(left);
            if wanted <= SIZE[usize::from(left.order)] {
                self.link(middle, right);
            } else {
                self.pieces[middle as usize].set(right);
                wanted -= SIZE[usize::from(left.order)];
                at = middle;
            }
        }
    }

    /// Frees a piece and merges it with its buddy for as long as that is free, too.
    fn join(&mut self, at: BlockNumber) {
        let mut at = at;
        let mut piece = self.pieces[at as usize].get();
        while !self.roots.contains(&(at, piece.order)) {
            let (left, right) = if piece.right {
                (at - SIZE[usize::from(piece.order) + 1], at)
            } else {
                (at, at + SIZE[usize::from(piece.order)])
            };
            let other = if piece.right { left } else { right };
            let buddy = self.pieces[other as usize].get();
            let whole = if piece.right { piece.order + 1 } else { piece.order.wrapping_sub(1) };
            if !buddy.free || buddy.order != whole {
                break;
            }
            self.unlink(other);
            let (left_piece, right_piece) = if piece.right { (buddy, piece) } else { (piece, buddy) };
            piece = Piece {
                order: left_piece.order + 1,
                right: left_piece.memory,
                memory: right_piece.memory,
                ..Piece::default()
            };
            at = left;
        }
        self.link(at, piece);
    }

    fn link(&mut self, at: BlockNumber, piece: Piece) {
        let after = core::mem::replace(&mut self.first[usize::from(piece.order)], at);
        self.pieces[at as usize].set(Piece { free: true, before: NONE, after, ..piece });
        self.change(after, |piece| piece.before = at);
    }

    fn unlink(&mut self, at: BlockNumber) {
        let piece = self.pieces[at as usize].get();
        if piece.before == NONE {
            self.first[usize::from(piece.order)] = piece.after;
        }
        self.change(piece.before, |it| it.after = piece.after);
        self.change(piece.after, |it| it.before = piece.before);
        self.pieces[at as usize].set(Piece { free: false, ..piece });
    }

    fn change(&self, at: BlockNumber, change: impl FnOnce(&mut Piece)) {
        if at != NONE {
            let mut piece = self.pieces[at as usize].get();
            change(&mut piece);
            self.pieces[at as usize].set(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_never_overlap_and_merge_again(
            blocks in 1_usize..400,
            steps in proptest::collection::vec((1_u32..40, any::<prop::sample::Index>(), any::<bool>()), 0..120),
        ) {
            let mut buddy = Buddy::new(blocks).unwrap();
            let mut owner = vec![0; blocks];
            let mut runs: Vec<(u32, u32)> = Vec::new();
            for (id, (len, which, take)) in steps.into_iter().enumerate() {
                if take || runs.is_empty() {
                    let Some(at) = buddy.take(len) else { continue };
                    for block in &mut owner[at as usize..(at + len) as usize] {
                        prop_assert_eq!(*block, 0, "handed out twice");
                        *block = id + 1;
                    }
                    runs.push((at, len));
                } else {
                    let (at, len) = runs.swap_remove(which.index(runs.len()));
                    owner[at as usize..(at + len) as usize].fill(0);
                    buddy.give_back(at, len);
                }
                prop_assert_eq!(buddy.free_blocks(), owner.iter().filter(|&&id| id == 0).count());
            }
            for (at, len) in runs {
                buddy.give_back(at, len);
            }
            let roots: Vec<_> = buddy.roots.clone();
            for (at, order) in roots {
                let piece = buddy.pieces[at as usize].get();
                prop_assert!(piece.free && piece.order == order, "a root piece was not merged again");
            }
        }
    }

    #[test]
    fn runs_have_no_internal_fragmentation() {
        let mut buddy = Buddy::new(21).unwrap();
        assert_eq!(buddy.take(17), Some(0));
        assert_eq!(buddy.free_blocks(), 4);
        assert!(buddy.take(4).is_none(), "free pieces of 3 and 1 blocks remain");
        assert!(buddy.take(3).is_some() && buddy.take(1).is_some() && buddy.take(1).is_none());
    }
}
