//! Puts the Lisp's heap into far memory: reserves its range, opens the store and starts the threads that handle
//! faults.
//!
//! No system call gets an address of the heap, since input and output pass through buffers. So fault engines that
//! need no privilege suffice, and no call is filtered.

use largesse_agent::{AgentStore, Name};
use largesse_far::FarOptions;
use largesse_far::totals::totals;
use largesse_pager::{Count, FarMemory, FarRange, Linux, Pager, PagerError, Segments};
use largesse_pages::fault::{FaultError, OPEN_METHODS, Userfault};
use largesse_pages::{Reserved, SPAN, base_page};
use largesse_policy::transfer::TransferSize;
use largesse_store::{Broker, FileStore, PageStore, borrow_stderr};
use largesse_terminal::say::complain;
use largesse_terminal::table::Paper;
use std::fmt::Write as _;
use std::sync::Arc;

/// Exit status when far memory is lost, equal to that of the library.
const LOST: i32 = 74;

/// The pager of the heap, over any store.
type OurPager = Arc<Pager<Linux, Box<dyn PageStore>>>;

/// The data for the report on far memory.
#[derive(Clone, Debug)]
pub(super) struct FarReport {
    pager: OurPager,
    store: String,
}

impl FarReport {
    /// Returns the counters since the start as a table.
    pub(super) fn table(&self) -> String {
        let words = Count::NAMES.into_iter().zip(self.pager.counters.all()).collect();
        let mut text = String::new();
        let _ = write!(text, "Far memory in {}\n{}", self.store, totals(&words, Paper::here()));
        text
    }
}

/// Makes `range` the backing of a heap, with at most `far.local` of it resident and the rest in the store.
pub(super) fn over(
    range: Reserved,
    far: &FarOptions,
) -> Result<(FarMemory<Box<dyn PageStore>>, FarReport), String> {
    let broker = Broker::start().map_err(no_thread)?;
    let faults = broker.call(|| Userfault::open(&OPEN_METHODS)).map_err(|FaultError(errno)| {
        format!(
            "no far memory: userfaultfd: {}; `largesse doctor` says what to set",
            std::io::Error::from_raw_os_error(errno)
        )
    })?;
    let mut segments = Segments::new();
    let no_addresses = "no address space for far memory";
    // The Lisp maps no other memory, so this range is never used.
    let none = FarRange::new(Reserved::new(SPAN, SPAN).map_err(|_| no_addresses)?, &mut segments);
    let heap = FarRange::new(range, &mut segments);
    let (store, called) = store(&far.store, segments.pages() * base_page(), &broker)?;
    let bounds = segments.clone();
    let kernel = Linux::new(broker, faults, segments).map_err(|FaultError(errno)| {
        format!("no far memory: userfaultfd: {}", std::io::Error::from_raw_os_error(errno))
    })?;
    let (local, size) = (far.local.first_pages(), TransferSize::from_bytes(far.page_size, base_page()));
    let pager = Arc::new(Pager::new(kernel, store, bounds, local, size, true).ok_or(no_addresses)?);
    largesse_pager::start(&pager, lost).map_err(no_thread)?;
    let report = FarReport { pager: Arc::clone(&pager), store: called };
    Ok((FarMemory::new(heap, none, pager, far.local, lost), report))
}

/// Opens the store `name`. Returns it with its name for messages.
fn store(name: &str, len: usize, broker: &Arc<Broker>) -> Result<(Box<dyn PageStore>, String), String> {
    if let Some(name) = name.strip_prefix("agent:").and_then(Name::parse) {
        let store = AgentStore::connect(&name, len).map_err(|refused| format!("no far memory: {refused}"))?;
        let called = store.about().store.clone();
        return Ok((Box::new(store), called));
    }
    let path = name.strip_prefix("file:").unwrap_or(name);
    let store = FileStore::create(path.as_ref(), broker)
        .map_err(|refused| format!("no far memory: file:{refused}"))?;
    Ok((Box::new(store), format!("file:{path}")))
}

/// Ends the process: the heap's contents cannot be read any more, and no wrong data has reached the program.
fn lost(error: &PagerError) -> ! {
    borrow_stderr();
    complain!("largesse lisp: far memory is lost, and the program with it: {error}");
    // SAFETY: only a number is passed. An ordinary exit would run handlers that could touch the heap.
    unsafe { libc::_exit(LOST) }
}

fn no_thread(error: std::io::Error) -> String {
    format!("no far memory: its threads could not be started: {error}")
}
