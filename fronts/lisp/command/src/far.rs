//! Puts the Lisp's heap into far memory: reserves its range, opens the store and starts the threads that handle
//! faults.
//!
//! No system call gets an address of the heap, since input and output pass through buffers. So fault engines that
//! need no privilege suffice, and no call is filtered.

use largesse_far::totals::totals;
use largesse_pager::{Count, MappedParts, PagerError};
use largesse_pages::fault::FaultError;
use largesse_pages::{Reserved, SPAN};
use largesse_paging::{Error, Far, FarBuilder, FarConfig, FarPager, start_broker};
use largesse_store::borrow_stderr;
use largesse_terminal::name;
use largesse_terminal::say::complain;
use largesse_terminal::table::Paper;
use std::fmt::Write as _;
use std::sync::Arc;

/// Exit status when far memory is lost, equal to that of the library.
const LOST: i32 = 74;

/// The data for the report on far memory.
#[derive(Clone, Debug)]
pub(super) struct FarReport {
    pager: Arc<FarPager>,
    store: String,
}

impl FarReport {
    /// Returns the counters since the start as a table.
    pub(super) fn table(&self) -> String {
        let words = Count::NAMES.into_iter().zip(self.pager.counters.all()).collect();
        let mut text = String::new();
        let _ = write!(text, "Far memory in {}\n{}", name(&self.store), totals(&words, Paper::here()));
        text
    }
}

/// The message if a range or the tables of the pager do not fit into the address space.
const NO_ADDRESSES: &str = "no address space for far memory";

/// Makes `range` the backing of a heap, with at most `config.local` of it resident and the rest in the store.
pub(super) fn over(range: Reserved, config: &FarConfig) -> Result<(Far, FarReport), String> {
    let mut builder = FarBuilder::open(start_broker().map_err(words)?, config.engine).map_err(words)?;
    // The Lisp maps no other memory, so this range is never used.
    let none = builder.add_range(Reserved::new(SPAN, SPAN).map_err(|_| NO_ADDRESSES)?);
    let heap = builder.add_range(range);
    let unstarted = builder.build(heap, (none, MappedParts::new()), config, lost).map_err(words)?;
    let (far, store) = unstarted.start().map_err(words)?;
    let report = FarReport { pager: Arc::clone(far.pager()), store: store.name };
    Ok((far, report))
}

fn words(error: Error) -> String {
    match error {
        Error::Tables => NO_ADDRESSES.to_owned(),
        Error::Kernel(FaultError(errno)) => {
            format!("no far memory: userfaultfd: {}", std::io::Error::from_raw_os_error(errno))
        }
        error => format!("no far memory: {error}"),
    }
}

/// Ends the process: the heap's contents cannot be read any more, and no wrong data has reached the program.
fn lost(error: &PagerError) -> ! {
    borrow_stderr();
    complain!("largesse lisp: far memory is lost, and the program with it: {error}");
    // SAFETY: only a number is passed. An ordinary exit would run handlers that could touch the heap.
    unsafe { libc::_exit(LOST) }
}
