//! Defines a thread's allocation state: a structure at a fixed address, with offsets for machine code.

use crate::classes::CLASSES;
use crate::sync::AtomicU32;
use crate::{AllocationClass, Layout, Word};
use core::mem::offset_of;

/// The unallocated part of a run of cells of one class. Memory from `cursor` to `limit` is zero.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Bump {
    pub(crate) cursor: usize,
    pub(crate) limit: usize,
}

impl Bump {
    /// Offset in the structure, in bytes, of the word that holds the address of the next cell.
    pub const CURSOR: usize = offset_of!(Bump, cursor);
    /// Offset in the structure, in bytes, of the word that holds the address after the last cell.
    pub const LIMIT: usize = offset_of!(Bump, limit);

    /// Takes the next cell of `bytes` bytes, unless the run is used up.
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

/// The poll word, by which a thread is asked to stop, and the thread's state (running, native or parked).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Signal {
    pub(crate) poll: AtomicU32,
    pub(crate) state: AtomicU32,
}

/// The part of a thread's state that machine code may use. Its address never changes: see
/// [`Mutator::context`](crate::Mutator::context).
///
/// * A *poll* loads the 32-bit word at [`POLL`](Context::POLL) and calls [`Mutator::poll`](crate::Mutator::poll) when it
///   is not zero.
/// * An *allocation* loads [`Bump::CURSOR`] of the allocation class, adds the size of its cells in bytes and compares with
///   [`Bump::LIMIT`]. When the sum is not above, it is stored back: the cell is at the old cursor and holds zeros.
///   When it is above, call [`Mutator::allocate`](crate::Mutator::allocate).
/// * A *root* is pushed by a store at the address in [`ROOTS_TOP`](Context::ROOTS_TOP), which then grows by 8, and is
///   never above [`ROOTS_LIMIT`](Context::ROOTS_LIMIT).
///
/// The alignment is 128 bytes, as the hardware fetches cache lines in pairs: the owner writes its context all the
/// time, and no other thread's data shares a pair of lines with it.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Context {
    pub(crate) signal: Signal,
    pub(crate) roots_top: *mut Word,
    pub(crate) roots_limit: *mut Word,
    pub(crate) bumps: [Bump; CLASSES],
}

impl Context {
    /// Offset in bytes of the 32-bit word that is not zero when the thread should call
    /// [`Mutator::poll`](crate::Mutator::poll).
    pub const POLL: usize = offset_of!(Context, signal);
    /// Offset in bytes of the word that holds the address above the top root.
    pub const ROOTS_TOP: usize = offset_of!(Context, roots_top);
    /// Offset in bytes of the word that holds the address of the end of the root stack.
    pub const ROOTS_LIMIT: usize = offset_of!(Context, roots_limit);

    /// Returns the offset in bytes of the [`Bump`] for objects of `words` words, and the size in bytes of its cells.
    /// Returns `None` when objects of that size are large objects.
    #[must_use]
    pub const fn bump(layout: Layout, words: usize) -> Option<(usize, usize)> {
        match AllocationClass::of(layout, words) {
            Some(class) => {
                Some((offset_of!(Context, bumps) + class.index() * size_of::<Bump>(), class.bytes()))
            }
            None => None,
        }
    }
}
