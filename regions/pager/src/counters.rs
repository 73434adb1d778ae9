//! What happened, in numbers that other processes can read: words in a fixed order.

use core::sync::atomic::{AtomicU64, Ordering};
use largesse_pages::Zeroed;

/// The place of a word. Pages unless the name says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Bytes that may be here, now.
    LocalBytes,
    /// Bytes that are here, now.
    ResidentBytes,
    /// Bytes that are in the store and not here, now.
    StoredBytes,
    /// Bytes that may be anywhere, now.
    MappedBytes,
    /// Size of a transfer unit in bytes, now, where most pages were filled recently.
    SetBytes,
    /// The same where they are least,
    LeastSetBytes,
    /// and where they are most.
    MostSetBytes,
    /// Faults that were served.
    Faults,
    /// Of these, for the right to write only.
    WriteFaults,
    /// Of all faults, those that were served on the processor of the thread that waited (`on_cpu.rs`).
    OnCpu,
    /// Pages that came from the store.
    Fills,
    /// Pages that came as zeros, without the store.
    ZeroFills,
    /// Pages that were fetched ahead of a fault.
    Prefetched,
    /// Lower bound of those of them that the program then used without a fault.
    PrefetchHits,
    /// Pages that left.
    Evictions,
    /// Of these, written to the store.
    WriteBacks,
    /// Pages that the program gave back, so that they were never written.
    Dropped,
    /// Bytes read from the store.
    BytesIn,
    /// Bytes written to the store.
    BytesOut,
    /// Nanoseconds that threads waited for faults to be served.
    WaitNs,
    /// Of these, for room.
    RoomNs,
    /// Fills that found no room and went over the limit, because nothing could leave.
    OverLimit,
    /// Pages that could not leave when it was their turn: a device may have been writing to them.
    Pinned,
    /// Pages that could not leave because the store had no room for them.
    NoRoom,
    /// Resident bytes of the program outside far memory, when they were counted last; 0 while they are few.
    UncoveredBytes,
    /// Way in which pages are transferred: 0 by calls that block, otherwise 1 by io_uring, 2 by threads.
    Mechanism,
    /// Transfers from the store that ended, if they run while the threads that started them continue.
    Reads,
    /// Nanoseconds from their starts to their ends, in sum.
    ReadNs,
    /// Nanoseconds in which at least one of them was in flight.
    ReadBusyNs,
    /// Of `ReadNs`, those of reads for which no thread had to wait: the part that prefetch hid.
    HiddenNs,
    /// Largest number of them in flight at once.
    MostReads,
    /// The same for transfers to the store.
    Writes,
    /// Nanoseconds from their starts to their ends, in sum.
    WriteNs,
    /// Nanoseconds in which at least one of them was in flight.
    WriteBusyNs,
    /// Largest number of them in flight at once.
    MostWrites,
    /// Segments that have words of their own.
    Segments,
}

/// Segments that have words of their own at most; what happens in others is counted in all.
pub const MOST_SEGMENTS: usize = 4096;

/// How many there are.
pub const COUNTS: usize = Count::Segments as usize + 1;

impl Count {
    /// Names for readers, in the order of the words.
    pub const NAMES: [&str; COUNTS] = [
        "local_bytes",
        "resident_bytes",
        "stored_bytes",
        "mapped_bytes",
        "set_bytes",
        "least_set_bytes",
        "most_set_bytes",
        "faults",
        "write_faults",
        "beside",
        "fills",
        "zero_fills",
        "prefetched",
        "prefetch_hits",
        "evictions",
        "write_backs",
        "dropped",
        "bytes_in",
        "bytes_out",
        "wait_ns",
        "room_ns",
        "over_limit",
        "pinned",
        "no_room",
        "uncovered_bytes",
        "mechanism",
        "reads",
        "read_ns",
        "read_busy_ns",
        "hidden_ns",
        "most_reads",
        "writes",
        "write_ns",
        "write_busy_ns",
        "most_writes",
        "segments",
    ];
}

/// The words.
#[derive(Debug)]
#[repr(C)]
pub struct Counters([AtomicU64; COUNTS]);

impl Default for Counters {
    fn default() -> Counters {
        Counters([const { AtomicU64::new(0) }; COUNTS])
    }
}

// Relaxed throughout: statistics.
impl Counters {
    pub(crate) fn add(&self, count: Count, more: u64) {
        self.0[count as usize].fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, count: Count, less: u64) {
        self.0[count as usize].fetch_sub(less, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, count: Count, now: u64) {
        self.0[count as usize].store(now, Ordering::Relaxed);
    }

    /// Raises one of them to `now`, if it is less.
    pub(crate) fn raise(&self, count: Count, now: u64) {
        self.0[count as usize].fetch_max(now, Ordering::Relaxed);
    }

    /// One of them, now.
    #[must_use]
    pub fn get(&self, count: Count) -> u64 {
        self.0[count as usize].load(Ordering::Relaxed)
    }

    /// All of them, now.
    #[must_use]
    pub fn all(&self) -> [u64; COUNTS] {
        core::array::from_fn(|at| self.0[at].load(Ordering::Relaxed))
    }
}

/// The words of one segment, where another process finds them.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SegmentWords {
    /// First address.
    pub start: AtomicU64,
    /// Length in bytes.
    pub len: AtomicU64,
    /// Kind of the segment, as a number that its creator chose.
    pub label: AtomicU64,
    /// What happened there. Local memory is shared by all segments: `LocalBytes` is 0.
    pub counts: Counters,
}

impl SegmentWords {
    pub(crate) fn are_of(&self, start: usize, len: usize) {
        self.start.store(start as u64, Ordering::Relaxed);
        self.len.store(len as u64, Ordering::Relaxed);
    }
}

// SAFETY: zero bytes are words that are all zero.
unsafe impl Zeroed for SegmentWords {}
