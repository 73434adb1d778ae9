//! Counters of what the pager did, which other processes can read: 64-bit words in a fixed order.

use core::sync::atomic::{AtomicU64, Ordering};
use largesse_pages::Zeroed;

/// A counter, as the position of its word. The unit is pages unless the comment of a counter names another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Present size of local memory in bytes: the upper bound of resident far memory.
    LocalBytes,
    /// Present number of resident bytes of far memory.
    ResidentBytes,
    /// Present number of bytes that are in the store and not resident.
    StoredBytes,
    /// Present number of bytes of far memory that the program may use, resident or not.
    MappedBytes,
    /// Present size of a transfer unit in bytes, where most pages were filled recently.
    SetBytes,
    /// Present size in bytes of the smallest transfer unit.
    LeastSetBytes,
    /// Present size in bytes of the largest transfer unit.
    MostSetBytes,
    /// Number of faults that were served.
    Faults,
    /// Number of faults that were writes to resident, write-protected pages.
    WriteFaults,
    /// Number of faults that were handled on the faulting CPU (`on_cpu.rs`).
    OnCpu,
    /// Number of pages that were filled from the store.
    Fills,
    /// Number of pages that were filled with zeros, without the store.
    ZeroFills,
    /// Number of pages that were prefetched.
    Prefetched,
    /// Lower bound of the number of prefetched pages that the program then used without a fault.
    PrefetchHits,
    /// Number of pages that were filled from the copy of an eviction whose write to the store was in flight.
    FromWrites,
    /// Number of pages that were evicted.
    Evictions,
    /// Number of pages that were written to the store.
    WriteBacks,
    /// Number of resident pages that the program gave back, so that they were not written.
    Dropped,
    /// Number of bytes read from the store.
    BytesIn,
    /// Number of bytes written to the store.
    BytesOut,
    /// Nanoseconds that threads waited for faults to be served, in sum.
    WaitNs,
    /// The part of `WaitNs` in which threads waited for room in local memory, in nanoseconds.
    RoomNs,
    /// Number of fills that exceeded local memory because no page could be evicted.
    OverLimit,
    /// Number of pages that could not be evicted because a device may have been writing to them.
    Pinned,
    /// Number of pages that could not be evicted because the store had no room for them.
    NoRoom,
    /// Number of resident bytes of the program outside far memory, when they were last counted; 0 while they are few.
    UncoveredBytes,
    /// How transfers are made: 0 for calls that block, otherwise the number of a `largesse_store::Mechanism`.
    Mechanism,
    /// Error number with which the kernel refused the fastest mechanism of transfers; 0 if it is in use.
    Refusal,
    /// Number of transfers from the store that ended.
    Reads,
    /// Nanoseconds from the start to the end of each transfer from the store, in sum.
    ReadNs,
    /// Median time of a transfer from the store in nanoseconds, with a relative error of at most 1/32.
    ReadMedianNs,
    /// 99th percentile of the times of transfers from the store in nanoseconds, with a relative error of at most 1/32.
    ReadP99Ns,
    /// Nanoseconds in which at least one transfer from the store was in flight.
    ReadBusyNs,
    /// The part of `ReadNs` in which no thread waited for the transfer, because it was prefetched. It counts only
    /// transfers that run while the threads that started them continue.
    HiddenNs,
    /// Largest number of transfers from the store in flight at once.
    MostReads,
    /// Number of transfers to the store that ended.
    Writes,
    /// Nanoseconds from the start to the end of each transfer to the store, in sum.
    WriteNs,
    /// Median time of a transfer to the store in nanoseconds, with a relative error of at most 1/32.
    WriteMedianNs,
    /// 99th percentile of the times of transfers to the store in nanoseconds, with a relative error of at most 1/32.
    WriteP99Ns,
    /// Nanoseconds in which at least one transfer to the store was in flight.
    WriteBusyNs,
    /// Largest number of transfers to the store in flight at once.
    MostWrites,
    /// Number of pages that were filled from the store because there was room for all of them (`recall.rs`).
    Recalled,
    /// Number of segments that have counters of their own.
    Segments,
}

/// Largest number of segments that have counters of their own. Further segments are counted only in the sums of all.
pub const MOST_SEGMENTS: usize = 4096;

/// Number of counters.
pub const COUNTS: usize = Count::Segments as usize + 1;

impl Count {
    /// Names of the counters, in the order of their words, as readers show them.
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
        "from_writes",
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
        "refusal",
        "reads",
        "read_ns",
        "read_median_ns",
        "read_p99_ns",
        "read_busy_ns",
        "hidden_ns",
        "most_reads",
        "writes",
        "write_ns",
        "write_median_ns",
        "write_p99_ns",
        "write_busy_ns",
        "most_writes",
        "recalled",
        "segments",
    ];
}

/// The words of all counters.
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

    /// Raises a counter to `now`, if it is less.
    pub(crate) fn raise(&self, count: Count, now: u64) {
        self.0[count as usize].fetch_max(now, Ordering::Relaxed);
    }

    /// Returns the value of one counter.
    #[must_use]
    pub fn get(&self, count: Count) -> u64 {
        self.0[count as usize].load(Ordering::Relaxed)
    }

    /// Returns the values of all counters.
    #[must_use]
    pub fn all(&self) -> [u64; COUNTS] {
        core::array::from_fn(|at| self.0[at].load(Ordering::Relaxed))
    }
}

/// Returns a duration in nanoseconds, as it is counted.
pub(crate) fn as_nanoseconds(duration: core::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Address, length, label and counters of one segment, in memory that another process reads.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SegmentWords {
    /// Address of the first byte of the segment.
    pub start: AtomicU64,
    /// Length of the segment in bytes.
    pub len: AtomicU64,
    /// Kind of the segment, as a number that its creator chose.
    pub label: AtomicU64,
    /// Counters of this segment. `LocalBytes` is 0, because all segments share local memory.
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
