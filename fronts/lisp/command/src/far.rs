//! The Lisp's heap in far memory: its range, the store, and the threads that serve faults.
//!
//! No system call is given an address of the heap: what is read or written passes through buffers. So the ways
//! in which every user may have faults served will do, and no call is filtered.

use crate::say::complain;
use crate::table::Paper;
use largesse_agent::{AgentStore, Name};
use largesse_far::Far;
use largesse_far::totals::totals;
use largesse_pager::{Count, FarMemory, FarRange, Linux, Pager, PagerError, Segments};
use largesse_pages::fault::{FaultError, OPEN_METHODS, Userfault};
use largesse_pages::{Reserved, SPAN, base_page};
use largesse_policy::transfer::TransferSize;
use largesse_store::{Broker, FileStore, PageStore, borrow_stderr};
use std::fmt::Write as _;
use std::sync::Arc;

/// Exit status when far memory is lost, as of the library.
const LOST: i32 = 74;

/// The way from a fault to the store.
type OurPager = Arc<Pager<Linux, Box<dyn PageStore>>>;

/// What is told of far memory.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pager: OurPager,
    store: String,
}

impl Told {
    /// What happened so far, as a table.
    pub(super) fn table(&self) -> String {
        let words = Count::NAMES.into_iter().zip(self.pager.counters.all()).collect();
        let mut text = String::new();
        let _ = write!(text, "Far memory in {}\n{}", self.store, totals(&words, Paper::here()));
        text
    }
}

/// `range` as a heap's ground, most of it in the store.
pub(super) fn over(range: Reserved, far: &Far) -> Result<(FarMemory<Box<dyn PageStore>>, Told), String> {
    let broker = Broker::start().map_err(no_thread)?;
    let faults = broker.call(|| Userfault::open(&OPEN_METHODS)).map_err(|FaultError(errno)| {
        format!(
            "no far memory: userfaultfd: {}; `largesse doctor` says what to set",
            std::io::Error::from_raw_os_error(errno)
        )
    })?;
    let mut segments = Segments::new();
    let no_addresses = "no address space for far memory";
    // The program maps nothing itself.
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
    let told = Told { pager: Arc::clone(&pager), store: called };
    Ok((FarMemory::new(heap, none, pager, far.local, lost), told))
}

/// The store, and its name for people.
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

/// The heap is out of reach: nobody must go on, and nothing wrong was handed to anybody.
fn lost(error: &PagerError) -> ! {
    borrow_stderr();
    complain!("largesse lisp: far memory is lost, and the program with it: {error}");
    // SAFETY: a number. What runs at an ordinary exit could touch the heap.
    unsafe { libc::_exit(LOST) }
}

fn no_thread(error: std::io::Error) -> String {
    format!("no far memory: its threads could not be started: {error}")
}
