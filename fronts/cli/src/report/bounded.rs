//! Reads a file that the user named, within bounds.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Largest number of bytes of a report that is read. A report of 10,000 processes has less.
const MOST: u64 = 64 << 20;

/// The reason why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum RefusedFile {
    /// The file is a device, for example.
    #[error("it is neither a regular file nor a pipe")]
    Kind,
    /// The file has more than [`MOST`] bytes.
    #[error("it is larger than {} MiB, and no report is", MOST >> 20)]
    Size,
    /// A system call failed.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Returns the bytes of a regular file or a pipe.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, RefusedFile> {
    // A device is not even opened, which could change its state.
    check(&std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    check(&file.metadata()?)?;
    let mut text = Vec::new();
    file.take(MOST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MOST { Err(RefusedFile::Size) } else { Ok(text) }
}

fn check(data: &Metadata) -> Result<(), RefusedFile> {
    let kind = data.file_type();
    match data.len() {
        // Opening a folder succeeds, and reading it says that it is one.
        _ if !kind.is_file() && !kind.is_fifo() && !kind.is_dir() => Err(RefusedFile::Kind),
        len if kind.is_file() && len > MOST => Err(RefusedFile::Size),
        _ => Ok(()),
    }
}
