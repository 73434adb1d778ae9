//! Why far memory cannot go on.

use largesse_pages::fault::FaultError;
use largesse_policy::PageNumber;
use largesse_store::StoreError;

/// Why far memory cannot go on. Nothing wrong was handed to the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PagerError {
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

impl std::fmt::Display for PagerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PagerError::Store(error) => write!(f, "the store failed: {error}"),
            PagerError::Damaged { page, sent, read } => write!(
                f,
                "page {page} came back from the store damaged or out of date (checksum {read:016x}, {sent:016x} was sent)"
            ),
            PagerError::Kernel(FaultError(errno)) => {
                write!(f, "userfaultfd: {}", std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

impl std::error::Error for PagerError {}

impl From<StoreError> for PagerError {
    fn from(error: StoreError) -> PagerError {
        PagerError::Store(error)
    }
}

impl From<FaultError> for PagerError {
    fn from(error: FaultError) -> PagerError {
        PagerError::Kernel(error)
    }
}
