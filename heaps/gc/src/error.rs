//! Defines the errors of the heap.

use largesse_pages::MapError;

/// The heap has no memory for an object. Nothing was allocated, and the heap is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Number of words requested.
    pub words: usize,
    /// Number of bytes in use.
    pub used: usize,
    /// Largest number of bytes that may be in use.
    pub limit: usize,
}

impl core::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let OutOfMemory { words, used, limit } = self;
        write!(
            f,
            "cannot allocate {words} words: {used} of at most {limit} bytes are in use after a collection"
        )
    }
}

impl core::error::Error for OutOfMemory {}

/// The root stack has no space for another word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootsFull;

impl core::fmt::Display for RootsFull {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the root stack is full")
    }
}

impl core::error::Error for RootsFull {}

/// The heap could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// The kernel refused memory for the heap's tables.
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
