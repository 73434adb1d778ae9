//! The memory that one process of the program shares with the agent.
//!
//! ```text
//!   request slots │ a buffer for each of them ║ queue 0: transfer slots │ memory ║ queue 1: the same
//! ```
//! A queue's part of the shared file has memory only while the queue is open.

use crate::slot::RequestSlot;
use crate::transfer_slots::TransferSlots;
use core::ops::Range;
use core::ptr::NonNull;
use largesse_pages::shared::{MemoryFile, SharedMapping};
use largesse_pages::{MapError, MapOp, SPAN, base_page};

/// Number of requests at a time: one for a fault, one for an eviction, and others that reserve or discard.
pub(crate) const SLOTS: usize = 4;
/// Size in bytes of the page buffer of a slot: the largest number of bytes that one request carries.
pub(crate) const MAX_TRANSFER: usize = 2 << 20;
/// Offset in bytes of the first page buffer in the shared memory.
const PAGES: usize = 4096;
/// Offset in bytes of the first queue in the shared memory.
const FIRST_QUEUE: usize = (PAGES + SLOTS * MAX_TRANSFER).next_multiple_of(SPAN);
/// Number of queues: one for reads, one for writes.
pub(crate) const QUEUES: usize = 2;
/// Largest size of the memory of a queue, in pages: two transfer units of the largest size.
const QUEUE_PAGES: usize = 1024;

const _: () = assert!(SLOTS * size_of::<RequestSlot>() <= PAGES);

/// Returns the size of the header of a queue in the shared memory: its `TransferSlots`, rounded up to whole pages. The
/// pages that the queue transfers follow it.
fn lead() -> usize {
    size_of::<TransferSlots>().next_multiple_of(base_page())
}

/// Returns the offset in the shared memory, in bytes, of a queue's header.
fn queue_at(number: usize) -> usize {
    FIRST_QUEUE + number * (lead() + QUEUE_PAGES * base_page())
}

/// A mapping of the shared memory in one of the two processes.
#[derive(Debug)]
pub(crate) struct RequestSlots(SharedMapping);

impl RequestSlots {
    /// Creates the file of the shared memory, in the agent. With `carries` it has page buffers, which programs that
    /// copy pages themselves do not need.
    pub(crate) fn file(carries: bool) -> Result<MemoryFile, MapError> {
        let file = MemoryFile::new(c"largesse-ring", if carries { queue_at(QUEUES) } else { PAGES })?;
        allocate(&file, 0..file.len().min(FIRST_QUEUE))?;
        Ok(file)
    }

    /// Allocates memory for a queue's part, with `bytes` bytes of queue memory, in the agent. The program must not use
    /// it before the answer.
    pub(crate) fn open_queue(&self, file: &MemoryFile, number: usize, bytes: usize) -> Result<(), MapError> {
        let part = queue_at(number)..queue_at(number) + lead() + bytes;
        allocate(file, part.clone())?;
        let slots = self.transfers(number);
        slots.started.reset();
        slots.ended.reset();
        let _ = self.0.lock(part.start, part.len()); // where that is allowed
        Ok(())
    }

    /// Frees the memory of a queue, in the agent.
    pub(crate) fn close_queue(&self, file: &MemoryFile, number: usize) {
        let (at, len) = (queue_at(number), queue_at(number + 1) - queue_at(number));
        self.0.unlock(at, len);
        let _ = file.punch(at, len); // what is refused stays
    }

    /// Makes request slots of a mapping. Returns `None` if the mapping is too short.
    pub(crate) fn over(mapping: SharedMapping) -> Option<RequestSlots> {
        let _ = mapping.lock(0, mapping.len().min(FIRST_QUEUE)); // fails where RLIMIT_MEMLOCK forbids it
        (mapping.len() >= PAGES).then_some(RequestSlots(mapping))
    }

    /// Returns whether the shared memory has queues with room for `bytes` bytes of memory each.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.0.len() >= queue_at(QUEUES) && bytes <= QUEUE_PAGES * base_page()
    }

    /// Returns the slots of a queue. Panics if there is no such queue.
    pub(crate) fn transfers(&self, number: usize) -> &TransferSlots {
        assert!(number < QUEUES && self.has_room(0), "there is no queue {number}");
        // SAFETY: inside the mapping, as was just checked; page-aligned, and zero at first, which is a valid value.
        // Both sides access the parts of the value by atomic operations, or while they own them.
        unsafe { self.0.start().add(queue_at(number)).cast().as_ref() }
    }

    /// Returns the address of a queue's memory. Panics if there is no such queue.
    pub(crate) fn queue_memory(&self, number: usize) -> NonNull<u8> {
        assert!(number < QUEUES && self.has_room(0), "there is no queue {number}");
        // SAFETY: inside the mapping, as was just checked.
        unsafe { self.0.start().add(queue_at(number) + lead()) }
    }

    /// Returns the bytes of `range` in a queue's memory.
    ///
    /// # Safety
    ///
    /// The queue is open, and no transfer in flight, nor any other reference, uses these bytes.
    #[expect(clippy::mut_from_ref, reason = "shared memory, whose users are told apart by the queue")]
    pub(crate) unsafe fn queue_bytes(&self, number: usize, range: &Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && self.has_room(range.end), "{range:?} is outside of the memory");
        // SAFETY: inside the mapping, which lives as long as `self`; the caller's promise.
        unsafe {
            core::slice::from_raw_parts_mut(self.queue_memory(number).as_ptr().add(range.start), range.len())
        }
    }

    pub(crate) fn slots(&self) -> &[RequestSlot; SLOTS] {
        // SAFETY: the mapping is long enough, page-aligned, initially zero, and lives as long as `self`. The other side
        // accesses a slot by atomic operations, or while the turn is its own.
        unsafe { self.0.start().cast().as_ref() }
    }

    /// Returns the address of a slot's page buffer; `None` if the buffer has less than `len` bytes.
    pub(crate) fn pages(&self, slot: usize, len: usize) -> Option<NonNull<u8>> {
        let at = PAGES + slot * MAX_TRANSFER;
        let inside = len <= MAX_TRANSFER && at + len <= self.0.len();
        // SAFETY: `at` is inside the mapping, as was just checked.
        inside.then(|| unsafe { self.0.start().add(at) })
    }

    /// Sets whether a forked child inherits the mapping. If not, it has nothing at its addresses.
    pub(crate) fn inherited(&self, yes: bool) -> Result<(), MapError> {
        self.0.inherited(yes)
    }
}

fn allocate(file: &MemoryFile, part: Range<usize>) -> Result<(), MapError> {
    let len = part.len();
    file.allocate(part.start, len).map_err(|errno| MapError { op: MapOp::Commit, len, errno })
}
