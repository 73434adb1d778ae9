//! The part of a queue of transfers that program and agent share.
//!
//! | step | by | owner of the slot and its bytes afterwards |
//! |---|---|---|
//! | index into `started` | the queue's thread of the program | the agent |
//! | index into `ended` | any thread of the agent | the program |

use crate::index_ring::{DEPTH, IndexRing};
use crate::message::{Answer, Request};
use crate::sync::UnsafeCell;

/// A slot for each transfer in flight, and the rings that pass slots between the processes. All-zero bytes are an idle
/// queue.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TransferSlots {
    /// Ring of the slots whose transfers the program has started, for the agent.
    pub(crate) started: Aligned<IndexRing>,
    /// Ring of the slots whose transfers have ended, for the program.
    pub(crate) ended: Aligned<IndexRing>,
    slots: [TransferSlot; DEPTH],
}

/// A value that shares no cache line with other values.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Aligned<T>(T);

impl<T> core::ops::Deref for Aligned<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

#[derive(Debug)]
#[repr(C)]
struct TransferSlot {
    request: UnsafeCell<Request>,
    answer: UnsafeCell<Answer>,
}

// SAFETY: a slot is accessed only by the side that owns it.
unsafe impl Sync for TransferSlots {}

impl TransferSlots {
    /// Writes the request of a slot.
    ///
    /// # Safety
    ///
    /// The calling process owns the slot, and no other thread of it accesses the slot.
    pub(crate) unsafe fn set_request(&self, slot: usize, request: Request) {
        // SAFETY: the caller's promise.
        self.slots[slot].request.with_mut(|at| unsafe { *at = request });
    }

    /// Returns a copy of a slot's request, which the other side cannot change.
    ///
    /// # Safety
    ///
    /// The calling process owns the slot, and no other thread of it accesses the slot.
    pub(crate) unsafe fn request(&self, slot: usize) -> Request {
        // SAFETY: the caller's promise. Any bytes are a request.
        self.slots[slot].request.with(|at| unsafe { *at })
    }

    /// Writes the answer of a slot.
    ///
    /// # Safety
    ///
    /// The calling process owns the slot, and no other thread of it accesses the slot.
    pub(crate) unsafe fn set_answer(&self, slot: usize, answer: Answer) {
        // SAFETY: the caller's promise.
        self.slots[slot].answer.with_mut(|at| unsafe { *at = answer });
    }

    /// Returns a copy of a slot's answer.
    ///
    /// # Safety
    ///
    /// The calling process owns the slot, and no other thread of it accesses the slot.
    pub(crate) unsafe fn answer(&self, slot: usize) -> Answer {
        // SAFETY: the caller's promise. Any bytes are an answer.
        self.slots[slot].answer.with(|at| unsafe { *at })
    }
}
