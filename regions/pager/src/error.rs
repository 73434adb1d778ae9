//! Why far memory cannot go on.

use largesse_pages::fault::FaultError;
use largesse_policy::PageNumber;
use largesse_store::StoreError;

/// Why far memory cannot go on. Nothing wrong was handed to the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The store failed.
    Store(StoreError),
    /// A page came back different from what left.
    Damaged {
        /// The page.
        page: PageNumber,
        /// What the store was given, as a checksum.
        sent: u64,
        /// What came back.
        read: u64,
    },
    /// The kernel refused.
    Kernel(FaultError),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Store(error) => write!(f, "the store failed: {error}"),
            Error::Damaged { page, sent, read } => write!(
                f,
                "page {page} came back from the store damaged or out of date (checksum {read:016x}, {sent:016x} was sent)"
            ),
            Error::Kernel(FaultError(errno)) => {
                write!(f, "userfaultfd: {}", std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        Error::Store(error)
    }
}

impl From<FaultError> for Error {
    fn from(error: FaultError) -> Error {
        Error::Kernel(error)
    }
}
