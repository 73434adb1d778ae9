//! Counts of what happened, which other processes can read: words in a fixed order.

use core::sync::atomic::{AtomicU64, Ordering};
use largesse_pages::Zeroed;

/// The position of a word. Words count pages unless their comment says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Bytes of local memory: the upper bound of resident bytes, at present.
    LocalBytes,
    /// Resident bytes of far memory, at present.
    ResidentBytes,
    /// Bytes that are in the store and not resident, at present.
    StoredBytes,
    /// Bytes that the program may use, resident or not, at present.
    MappedBytes,
    /// Present size of transfer units in bytes, where most pages were filled recently.
    SetBytes,
    /// Smallest present size of transfer units in bytes.
    LeastSetBytes,
    /// Largest present size of transfer units in bytes.
    MostSetBytes,
    /// Number of faults that were served.
    Faults,
    /// Number of faults that were writes to resident, protected pages.
    WriteFaults,
    /// Number of faults that were handled on the faulting CPU (`on_cpu.rs`).
    OnCpu,
    /// Pages that were filled from the store.
    Fills,
    /// Pages that were filled with zeros, without the store.
    ZeroFills,
    /// Pages that were prefetched.
    Prefetched,
    /// Lower bound of the prefetched pages that the program then used without a fault.
    PrefetchHits,
    /// Pages that were filled from the copy that was being written to the store.
    FromWrites,
    /// Pages that were evicted.
    Evictions,
    /// Pages that were written to the store.
    WriteBacks,
    /// Resident pages that the program gave back, so that they were not written.
    Dropped,
    /// Bytes read from the store.
    BytesIn,
    /// Bytes written to the store.
    BytesOut,
    /// Nanoseconds that threads waited for faults, in sum.
    WaitNs,
    /// Nanoseconds of these in which they waited for room in local memory.
    RoomNs,
    /// Number of fills that exceeded local memory because no page could be evicted.
    OverLimit,
    /// Pages that could not be evicted because a device may have been writing to them.
    Pinned,
    /// Pages that could not be evicted because the store had no room for them.
    NoRoom,
    /// Resident bytes of the program outside far memory, when they were last counted; 0 while they are few.
    UncoveredBytes,
    /// Mechanism of transfers: 0 for calls that block, otherwise the number of a `Mechanism`.
    Mechanism,
    /// Error number of the kernel's refusal because of which transfers are not made in the fastest way; 0 if they are.
    Refusal,
    /// Number of transfers from the store that ended, if they run while the threads that started them continue.
    Reads,
    /// Nanoseconds from the start to the end of each such transfer from the store, in sum.
    ReadNs,
    /// Median of these times in nanoseconds, to 1/32.
    ReadMedianNs,
    /// 99th percentile of these times in nanoseconds, to 1/32.
    ReadP99Ns,
    /// Nanoseconds in which at least one transfer from the store was in flight.
    ReadBusyNs,
    /// The part of `ReadNs` in which no thread waited for the transfer: prefetching hid it.
    HiddenNs,
    /// Largest number of transfers from the store in flight at once.
    MostReads,
    /// Number of transfers to the store that ended, if they run while the threads that started them continue.
    Writes,
    /// Nanoseconds from the start to the end of each such transfer to the store, in sum.
    WriteNs,
    /// Median of these times in nanoseconds, to 1/32.
    WriteMedianNs,
    /// 99th percentile of these times in nanoseconds, to 1/32.
    WriteP99Ns,
    /// Nanoseconds in which at least one transfer to the store was in flight.
    WriteBusyNs,
    /// Largest number of transfers to the store in flight at once.
    MostWrites,
    /// Pages that were filled from the store because there was room for all of them (`recall.rs`).
    Recalled,
    /// Number of segments that have words of their own.
    Segments,
}

/// Largest number of segments that have words of their own. Further segments are counted only in the sums.
pub const MOST_SEGMENTS: usize = 4096;

/// Number of words.
pub const COUNTS: usize = Count::Segments as usize + 1;

impl Count {
    /// Names of the words, in their order, for readers.
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

/// The words of all counts.
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

    /// Raises a word to `now`, if it is less.
    pub(crate) fn raise(&self, count: Count, now: u64) {
        self.0[count as usize].fetch_max(now, Ordering::Relaxed);
    }

    /// Returns one word.
    #[must_use]
    pub fn get(&self, count: Count) -> u64 {
        self.0[count as usize].load(Ordering::Relaxed)
    }

    /// Returns all words.
    #[must_use]
    pub fn all(&self) -> [u64; COUNTS] {
        core::array::from_fn(|at| self.0[at].load(Ordering::Relaxed))
    }
}

/// The words of one segment, in memory that another process reads.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SegmentWords {
    /// The first address of the segment.
    pub start: AtomicU64,
    /// The length of the segment in bytes.
    pub len: AtomicU64,
    /// Kind of the segment, as a number that its creator chose.
    pub label: AtomicU64,
    /// Counts of this segment. All segments share local memory, so that `LocalBytes` is 0.
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
