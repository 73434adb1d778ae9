//! Errors after which the program cannot continue, because pages of it are lost.

use largesse_pages::fault::FaultError;
use largesse_policy::PageNumber;
use largesse_store::StoreError;

/// An error after which the program cannot continue, because pages of it are lost. It has received no wrong data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PagerError {
    /// The store failed.
    Store(StoreError),
    /// The contents of a page in the store differ from those that were written.
    Damaged {
        /// Number of the page.
        page: PageNumber,
        /// Checksum of the contents that were written.
        sent: u64,
        /// Checksum of the contents that were read.
        read: u64,
    },
    /// The kernel refused an operation on pages.
    Kernel(FaultError),
    /// Another system call failed.
    System {
        /// Name of the system call or function of the C library.
        call: &'static str,
        /// Error number (`errno`) of the call.
        errno: i32,
    },
}

impl std::fmt::Display for PagerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PagerError::Store(error) => write!(f, "the store failed: {error}"),
            PagerError::Damaged { page, sent, read } => write!(
                f,
                "page {page} came back from the store damaged or out of date (checksum {read:016x}, {sent:016x} was \
                 sent)"
            ),
            PagerError::Kernel(FaultError(errno)) => {
                write!(f, "userfaultfd: {}", std::io::Error::from_raw_os_error(*errno))
            }
            PagerError::System { call, errno } => {
                write!(f, "{call}: {}", std::io::Error::from_raw_os_error(*errno))
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
