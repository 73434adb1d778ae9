//! What carries pages and messages between ranks.

use crate::message::Message;
use core::fmt;

/// The ranks that were started together, seen from one of them. Calls may come from any thread.
pub trait Wire: Send + Sync + fmt::Debug {
    /// Copy from the memory that `rank` lends.
    fn get(&self, rank: u32, at: u64, into: &mut [u8]) -> Result<(), WireError>;
    /// Copy to it; it is there when this returns.
    fn put(&self, rank: u32, at: u64, from: &[u8]) -> Result<(), WireError>;
    /// What others put into this rank's memory becomes visible to it, and the other way round.
    fn look(&self) -> Result<(), WireError>;
    /// Send a message; they arrive in order.
    fn send(&self, rank: u32, message: Message) -> Result<(), WireError>;
    /// A message, if there is one. It is in here, too, that a rank helps others to its memory.
    fn receive(&self) -> Result<Option<Message>, WireError>;
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    /// What was tried.
    pub call: &'static str,
    /// With whom.
    pub rank: Option<u32>,
    /// The MPI library's own words.
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
