//! What a thread allocates through: a struct at a fixed address, with offsets for machine code.

use crate::classes::LANES;
use crate::sync::AtomicU32;
use crate::{Lane, Layout, Word};
use core::mem::offset_of;

/// Where the next cell of a lane comes from. From `cursor` to `limit` everything is zero.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Bump {
    pub(crate) cursor: usize,
    pub(crate) limit: usize,
}

impl Bump {
    /// Offset of the address of the next cell.
    pub const CURSOR: usize = offset_of!(Bump, cursor);
    /// Offset of the address where the run ends.
    pub const LIMIT: usize = offset_of!(Bump, limit);

    /// The next cell of `bytes` bytes, unless the run is used up.
    #[inline(always)]
    pub(crate) fn take(&mut self, bytes: usize) -> Option<usize> {
        let at = self.cursor;
        let next = at + bytes;
        if next > self.limit {
            return None;
        }
        self.cursor = next;
        Some(at)
    }
}

/// What tells a thread to stop, and whether it has.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Signal {
    pub(crate) poll: AtomicU32,
    pub(crate) state: AtomicU32,
}

/// The part of a thread's state that machine code may use, at an address that never changes
/// ([`Mutator::context`](crate::Mutator::context)).
///
/// * A *poll* is: load the 32-bit word at [`POLL`](Context::POLL); when it is not zero, call
///   [`Mutator::poll`](crate::Mutator::poll).
/// * An *allocation* of a lane is: load [`Bump::CURSOR`] of the lane, add the bytes of its cells, compare with
///   [`Bump::LIMIT`]; when it is not above, store it back: the cell is where the cursor was, and holds zeros.
///   When it is above, call [`Mutator::allocate`](crate::Mutator::allocate).
/// * A *root* is pushed by a store at the address in [`ROOTS_TOP`](Context::ROOTS_TOP), which then grows by 8, and is
///   never above [`ROOTS_LIMIT`](Context::ROOTS_LIMIT).
///
/// Cache lines are fetched in pairs: no other thread's words are in those of a context, which its thread writes all
/// the time.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Context {
    pub(crate) signal: Signal,
    pub(crate) roots_top: *mut Word,
    pub(crate) roots_limit: *mut Word,
    pub(crate) lanes: [Bump; LANES],
}

impl Context {
    /// Offset of the 32-bit word that is not zero when the thread should call its slow poll.
    pub const POLL: usize = offset_of!(Context, signal);
    /// Offset of the address above the top root.
    pub const ROOTS_TOP: usize = offset_of!(Context, roots_top);
    /// Offset of the address above which there is no root.
    pub const ROOTS_LIMIT: usize = offset_of!(Context, roots_limit);

    /// Offset of the [`Bump`] for objects of `words` words, and the bytes of its cells; `None` when they are large.
    #[must_use]
    pub const fn bump(layout: Layout, words: usize) -> Option<(usize, usize)> {
        match Lane::of(layout, words) {
            Some(lane) => Some((offset_of!(Context, lanes) + lane.index() * size_of::<Bump>(), lane.bytes())),
            None => None,
        }
    }
}
