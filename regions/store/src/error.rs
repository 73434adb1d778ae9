//! The errors of stores.

use std::fmt;

/// The reason why a store did not carry out a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The store has no room for more bytes.
    Full {
        /// Number of bytes that were requested.
        wanted: u64,
    },
    /// A system call failed.
    System {
        /// Name of the system call.
        call: &'static str,
        /// Error number (`errno`) of the call.
        errno: i32,
    },
    /// A system call repeatedly transferred no further bytes.
    Short {
        /// Name of the system call.
        call: &'static str,
        /// Number of bytes that were requested.
        wanted: usize,
        /// Number of bytes that were transferred.
        done: usize,
    },
    /// The process or server that holds the pages is gone, or answers wrongly. The text is written for the user and
    /// contains no secrets.
    Lost(String),
    /// The store cannot be shared by a process and its forked child, so that the process may not fork.
    OneProcess,
    /// Too many forks follow each other: each fork after new writes adds a layer to the store.
    Forks {
        /// Largest number of layers.
        most: usize,
    },
}

impl StoreError {
    /// Returns whether the store is only full: nothing is lost, the pages stay resident, and there may be room later.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        let StoreError::System { errno, .. } = self else { return matches!(self, StoreError::Full { .. }) };
        matches!(*errno, libc::ENOSPC | libc::EDQUOT)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Full { wanted } => write!(f, "no room for {wanted} bytes more"),
            StoreError::System { call, errno } => {
                write!(f, "{call}: {}", std::io::Error::from_raw_os_error(*errno))
            }
            StoreError::Short { call, wanted, done } => {
                write!(f, "{call}: {done} of {wanted} bytes")
            }
            StoreError::Lost(why) => f.write_str(why),
            StoreError::OneProcess => write!(f, "the store serves one process only"),
            StoreError::Forks { most } => write!(f, "{most} forks, each after new writes, are the most"),
        }
    }
}

impl std::error::Error for StoreError {}
