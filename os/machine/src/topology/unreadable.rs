//! Defines the error of reading a topology.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The error for a file of the topology that is missing or has unexpected contents.
#[derive(Debug)]
pub struct Unreadable {
    /// Path of the file.
    pub path: PathBuf,
    /// Reason why it is unreadable.
    pub why: Why,
}

/// The reason for which a file is unreadable.
#[derive(Debug)]
pub enum Why {
    /// The file could not be read.
    Io(io::Error),
    /// The file has this text, which the kernel does not write there.
    Text(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Io(error) => write!(f, "{}: {error}", self.path.display()),
            Why::Text(text) => {
                write!(f, "{} contains '{text}', which is not understood", self.path.display())
            }
        }
    }
}

impl std::error::Error for Unreadable {}
