//! Transfers pages and messages between ranks.

use crate::message::Message;
use core::fmt;
use largesse_store::Direction;

/// The connection of one rank to the other ranks that were started with it. Any thread may call its methods.
pub trait Wire: Send + Sync + fmt::Debug {
    /// Starts a copy, which is then in flight. Many copies may be.
    ///
    /// # Safety
    ///
    /// The memory of `copy` is writable, or readable if the copy is a write, and nothing else uses it until
    /// [`test`](Wire::test) has returned true or an error.
    unsafe fn start(&self, copy: &mut RankCopy) -> Result<(), WireError>;
    /// Returns whether a copy that was started has ended: whether its bytes are in memory, or have arrived at the other
    /// rank. After it has returned true, the copy must not be tested again.
    fn test(&self, copy: &mut RankCopy) -> Result<bool, WireError>;
    /// Synchronises the memory that this rank lends with the transfers of other ranks.
    fn look(&self) -> Result<(), WireError>;
    /// Sends a message to the rank `rank`. Messages to one rank arrive in order.
    fn send(&self, rank: u32, message: Message) -> Result<(), WireError>;
    /// Receives a message, if there is one. The call also advances transfers of other ranks from and to this rank.
    fn receive(&self) -> Result<Option<Message>, WireError>;
}

/// A copy between memory of this process and memory that another rank lends, and its state.
#[derive(Debug)]
pub struct RankCopy {
    /// [`Direction::Read`] copies from the other rank.
    pub direction: Direction,
    /// The other rank.
    pub rank: u32,
    /// Offset in bytes in the memory that the other rank lends.
    pub at: u64,
    /// Address of the bytes in this process.
    pub memory: *mut u8,
    /// Number of bytes.
    pub len: usize,
    /// A word for the implementation of [`Wire`] to keep the state of the copy in.
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

/// A call of the wire that failed.
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
