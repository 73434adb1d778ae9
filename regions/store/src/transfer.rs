//! Transfers that run while the thread that started them continues.
//!
//! ```text
//!   start ──► [ queue: at most `depth` in flight ] ──► device
//!   reap  ◄── completions, in any order ◄──────────────┘
//! ```
//! A queue belongs to one thread, and owns the memory that its transfers read and write. The identifier of a transfer
//! is chosen by its starter and returned with its completion.

use crate::StoreError;
use core::ffi::c_int;
use core::ops::Range;
use std::fmt;
use std::time::Duration;

/// The direction of a transfer, as seen from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the store into memory.
    Read,
    /// From memory to the store.
    Write,
}

/// A transfer of bytes between the memory of a queue and a store.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Identifier that the completion of the transfer carries.
    pub id: usize,
    /// Whether the transfer reads from the store or writes to it.
    pub direction: Direction,
    /// Position in the store, in bytes.
    pub at: u64,
    /// Range of the queue's memory, in bytes.
    pub memory: Range<usize>,
}

/// The report that a transfer has ended.
#[derive(Debug)]
pub struct Completion {
    /// The identifier of the transfer, from [`Transfer::id`].
    pub id: usize,
    /// Whether all bytes were transferred. After a failed write the contents of these bytes in the store are undefined.
    pub result: Result<(), StoreError>,
}

/// The way in which a queue makes its transfers. The numbers are those of the counter `mechanism`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// `io_uring(7)`.
    IoUring = 1,
    /// Threads that make blocking system calls.
    Threads = 2,
    /// Connections to a Redis server, each with several requests in flight.
    RedisPipelines = 3,
    /// One-sided MPI transfers, several in flight.
    MpiRequests = 4,
}

impl Mechanism {
    const ALL: [Mechanism; 4] =
        [Mechanism::IoUring, Mechanism::Threads, Mechanism::RedisPipelines, Mechanism::MpiRequests];

    /// Returns the mechanism with this number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|&it| it as u64 == number)
    }

    /// Returns the name that `largesse status` shows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Mechanism::IoUring => "io_uring",
            Mechanism::Threads => "threads",
            Mechanism::RedisPipelines => "Redis pipelines",
            Mechanism::MpiRequests => "MPI requests",
        }
    }
}

/// Transfers of one thread to and from a store, several at a time.
pub trait TransferQueue: Send + fmt::Debug {
    /// Returns how transfers are made.
    fn mechanism(&self) -> Mechanism;

    /// Returns the error number with which the kernel refused a faster way: io_uring, if this is
    /// [`Mechanism::Threads`], or pinned memory, if this is [`Mechanism::IoUring`]. Returns `None` if it refused
    /// nothing.
    fn refusal(&self) -> Option<c_int> {
        None
    }

    /// Returns the largest number of transfers in flight.
    fn depth(&self) -> usize;

    /// Returns the number of transfers in flight: those that were started and not reaped.
    fn in_flight(&self) -> usize;

    /// Returns the bytes of `range` in the queue's memory.
    ///
    /// # Safety
    ///
    /// No transfer in flight uses any of these bytes.
    unsafe fn memory(&mut self, range: Range<usize>) -> &mut [u8];

    /// Adds a transfer to those in flight. There must be fewer than [`depth`](TransferQueue::depth), and none of them
    /// may use the same memory. The transfer may wait for the next call of [`reap`](TransferQueue::reap) or
    /// [`flush`](TransferQueue::flush) before it reaches the device.
    fn start(&mut self, transfer: Transfer);

    /// Submits all started transfers to the device.
    fn flush(&mut self);

    /// Submits all started transfers to the device, and calls `done` for each transfer that has ended since the last
    /// call. If there is none and transfers are in flight, waits for the next end, for at most the time `wait`.
    fn reap(&mut self, wait: Duration, done: &mut dyn FnMut(Completion));

    /// Returns a descriptor in the table of the calling thread that is readable when a transfer has ended and was not
    /// reaped.
    fn descriptor(&self) -> Option<c_int>;
}
