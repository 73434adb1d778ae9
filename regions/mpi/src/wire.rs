//! Transfers pages and messages between ranks.

use crate::message::Message;
use core::fmt;
use largesse_store::Direction;

/// The connection of one rank to those that were started with it. Its methods may be called by any thread.
pub trait Wire: Send + Sync + fmt::Debug {
    /// Starts a copy. Many copies may be in flight.
    ///
    /// # Safety
    ///
    /// The memory is writable, or readable if the copy is a write, and is used by no one else until
    /// [`test`](Wire::test) has returned true or an error.
    unsafe fn start(&self, copy: &mut RankCopy) -> Result<(), WireError>;
    /// Returns whether a copy that was started has ended: its bytes are in memory, or have arrived at the other rank.
    /// The copy is not tested again then.
    fn test(&self, copy: &mut RankCopy) -> Result<bool, WireError>;
    /// Synchronises this rank's memory with the transfers of others.
    fn look(&self) -> Result<(), WireError>;
    /// Sends a message; messages arrive in order.
    fn send(&self, rank: u32, message: Message) -> Result<(), WireError>;
    /// Receives a message, if there is one. The call also makes progress on transfers of others from and to this rank.
    fn receive(&self) -> Result<Option<Message>, WireError>;
}

/// A copy between memory of this process and memory that another rank lends.
#[derive(Debug)]
pub struct RankCopy {
    /// [`Direction::Read`] copies from the other rank.
    pub direction: Direction,
    /// The other rank.
    pub rank: u32,
    /// Offset in the memory that it lends, in bytes.
    pub at: u64,
    /// Address of the bytes in this process.
    pub memory: *mut u8,
    /// Number of bytes.
    pub len: usize,
    /// State of the wire.
    pub word: u64,
}

// SAFETY: the memory belongs to the copy while it is in flight, whichever thread tests it.
unsafe impl Send for RankCopy {}

/// Waits until a copy that was started has ended.
pub(crate) fn finish(wire: &impl Wire, copy: &mut RankCopy) -> Result<(), WireError> {
    while !wire.test(copy)? {
        std::thread::yield_now();
    }
    Ok(())
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    /// Attempted operation, as a word for the message.
    pub call: &'static str,
    /// The other rank, if the operation has one.
    pub rank: Option<u32>,
    /// Error message of the MPI library.
    pub words: String,
}

impl WireError {
    pub(crate) fn misunderstood(rank: u32) -> WireError {
        let words = "a message that is not understood: are there two versions of Largesse?";
        WireError { call: "listening to", rank: Some(rank), words: words.into() }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rank {
            Some(rank) => write!(f, "MPI: {} rank {rank}: {}", self.call, self.words),
            None => write!(f, "MPI: {}: {}", self.call, self.words),
        }
    }
}

impl std::error::Error for WireError {}
