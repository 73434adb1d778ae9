//! Why far memory cannot go on.

use largesse_pages::fault::FaultError;
use largesse_policy::PageNumber;
use largesse_store::StoreError;

/// Why far memory cannot go on. Nothing wrong was handed to the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The store failed.
    Store(StoreError),
    /// A page came back different from what left.
    Damaged {
        /// The page.
        page: PageNumber,
        /// What the store was given, as a checksum.
        sent: u64,
        /// What came back.
        came: u64,
    },
    /// The kernel refused.
    Kernel(FaultError),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Store(error) => write!(f, "the store failed: {error}"),
            Trouble::Damaged { page, sent, came } => write!(
                f,
                "page {page} came back from the store damaged or out of date (checksum {came:016x}, {sent:016x} was sent)"
            ),
            Trouble::Kernel(FaultError(errno)) => {
                write!(f, "userfaultfd: {}", std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

impl std::error::Error for Trouble {}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Store(error)
    }
}

impl From<FaultError> for Trouble {
    fn from(error: FaultError) -> Trouble {
        Trouble::Kernel(error)
    }
}
