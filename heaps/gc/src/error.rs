//! What can go wrong.

use largesse_pages::MapError;

/// Nothing was allocated; the heap is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Words that were asked for.
    pub words: usize,
    /// Bytes that are in use.
    pub used: usize,
    /// Bytes that may be.
    pub limit: usize,
}

impl core::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let OutOfMemory { words, used, limit } = self;
        write!(f, "no room for {words} words: {used} bytes of at most {limit} are in use after a collection")
    }
}

impl core::error::Error for OutOfMemory {}

/// The root stack has no room for another word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootsFull;

impl core::fmt::Display for RootsFull {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the root stack is full")
    }
}

impl core::error::Error for RootsFull {}

/// No heap was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// The kernel refused memory for the tables.
    Tables(MapError),
}

impl core::fmt::Display for StartError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            StartError::Tables(error) => write!(f, "no memory for the heap's tables: {error:?}"),
        }
    }
}

impl core::error::Error for StartError {}

impl From<MapError> for StartError {
    fn from(error: MapError) -> StartError {
        StartError::Tables(error)
    }
}
