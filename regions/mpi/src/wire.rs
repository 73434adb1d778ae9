//! Transfers pages and messages between ranks.

use crate::message::Message;
use core::fmt;

/// The connection of one rank to those that were started with it. Its methods may be called by any thread.
pub trait Wire: Send + Sync + fmt::Debug {
    /// Copies from offset `at` of the memory that `rank` lends.
    fn get(&self, rank: u32, at: u64, into: &mut [u8]) -> Result<(), WireError>;
    /// Copies to offset `at` of the memory that `rank` lends; the copy has arrived when this returns.
    fn put(&self, rank: u32, at: u64, from: &[u8]) -> Result<(), WireError>;
    /// Synchronises this rank's memory with the transfers of others.
    fn look(&self) -> Result<(), WireError>;
    /// Sends a message; messages arrive in order.
    fn send(&self, rank: u32, message: Message) -> Result<(), WireError>;
    /// Receives a message, if there is one. The call also makes progress on transfers of others from and to this rank.
    fn receive(&self) -> Result<Option<Message>, WireError>;
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
