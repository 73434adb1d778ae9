//! Explains why far memory cannot be made.

use largesse_agent::AgentRefused;
use largesse_pager::PagerError;
use largesse_pages::fault::FaultError;
use largesse_store::FileRefused;
use std::fmt;
use std::io;

/// The reason why far memory cannot be made. It prints as the rest of a line that begins with `no far memory: `.
#[derive(Debug)]
pub enum Error {
    /// A thread could not be started.
    Threads(io::Error),
    /// This process may not open a userfaultfd.
    Userfaultfd(FaultError),
    /// The file cannot be used as a store.
    File(FileRefused),
    /// The store's agent did not accept this process.
    Agent(AgentRefused),
    /// The kernel refused to report faults of the far ranges.
    Kernel(FaultError),
    /// There is no address space for the pager's tables.
    Tables,
    /// Pages could not be excluded from far memory.
    Pager(PagerError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = io::Error::from_raw_os_error;
        match *self {
            Error::Threads(ref error) => write!(f, "its threads could not be started: {error}"),
            Error::Userfaultfd(FaultError(errno)) => {
                write!(f, "userfaultfd: {}; `largesse doctor` says what to set", system(errno))
            }
            Error::File(ref refused) => write!(f, "file:{refused}"),
            Error::Agent(ref refused) => refused.fmt(f),
            Error::Kernel(FaultError(libc::EAGAIN)) => {
                write!(f, "every asynchronous request is taken: raise the sysctl fs.aio-max-nr")
            }
            Error::Kernel(FaultError(errno)) => write!(f, "userfaultfd: {}", system(errno)),
            Error::Pager(ref error) => error.fmt(f),
            Error::Tables => write!(f, "no address space for its tables"),
        }
    }
}
