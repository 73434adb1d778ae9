//! Makes far memory in this process: its ranges, store, userfaultfd and threads.

use crate::backing::Far;
use crate::far_config::{Engine, FarConfig, Store};
use crate::statics::{self, Piece};
use crate::{causes, guard, helper, io, last_thread, lost, message, settings, timeline};
use largesse_agent::AgentStore;
use largesse_machine::thread;
use largesse_pager::{FarMemory, FarRange, Linux, Pager, PagerError, Segments};
use largesse_pages::fault::{FaultError, OPEN_METHODS, OpenMethod, Userfault, refuse_direct_input};
use largesse_pages::{Reserved, SPAN, base_page};
use largesse_policy::transfer::TransferSize;
use largesse_report::{Cause, FarStore, Region};
use largesse_store::{Broker, FileStore, PageStore};
use std::sync::{Arc, OnceLock};

/// Names the store for `largesse status`, which reads it from outside.
static STORE: OnceLock<FarStore> = OnceLock::new();

/// Tells the user why there is no far memory.
type Refusal = String;

/// Makes far memory over two ranges, one for the heap and one for mappings.
pub(crate) fn make(heap: Reserved, mappings: Reserved, config: &FarConfig) -> Result<Far, Refusal> {
    // `outside`, because starting a thread allocates.
    let broker = guard::outside(Broker::start).map_err(no_thread)?;
    let ways = match config.engine {
        Engine::Auto | Engine::Thread => &OPEN_METHODS[..],
        Engine::Events => &[OpenMethod::Device, OpenMethod::Call],
        Engine::UserMode => &[OpenMethod::UserModeOnly],
    };
    let traced = config.engine == Engine::Thread && thread::is_traced();
    if traced {
        message::warn(
            "a debugger or tracer stops at each signal: far pages are served by userfaultfd, \
             not by --fault-engine thread",
        );
    }
    let in_thread = config.engine == Engine::Thread && !traced;
    let faults =
        if in_thread { Userfault::open_by_signal(ways) } else { broker.call(|| Userfault::open(ways)) };
    let faults = faults.map_err(|FaultError(errno)| no_userfaultfd(errno))?;
    let filtered = in_thread || faults.method() == OpenMethod::UserModeOnly;
    let addresses = |range: &Reserved| {
        let start = range.start().as_ptr().addr();
        start..start + range.len()
    };
    let mut used = vec![addresses(&heap), addresses(&mappings)];
    let page = base_page();
    let mut segments = Segments::new();
    let statics = if config.static_data { statics::pieces() } else { Vec::new() };
    let statics: Vec<_> = statics
        .into_iter()
        .filter(made_anonymous)
        .map(|piece| (segments.add(piece.at.start, piece.at.len() / page, SPAN / page), piece))
        .collect();
    // Last, because its low addresses are used first, which keeps a store in a file as short as possible.
    let (heap, mappings) = (FarRange::new(heap, &mut segments), FarRange::new(mappings, &mut segments));
    let mapped = mappings.first;
    let store = store(&config.store, segments.pages() * page, &broker)?;
    let bounds = segments.clone();
    let kernel = Linux::new(broker, faults, segments).map_err(|FaultError(errno)| match errno {
        libc::EAGAIN => "every asynchronous request is taken: raise the sysctl fs.aio-max-nr".to_owned(),
        errno => format!("userfaultfd: {}", std::io::Error::from_raw_os_error(errno)),
    })?;
    if !kernel.knows_pinned() {
        refuse_direct_input().map_err(|FaultError(errno)| {
            format!("before Linux 6.8 it needs seccomp: {}", std::io::Error::from_raw_os_error(errno))
        })?;
        causes::note(Cause::DirectInputRefused);
    }
    let (local, size) = (config.local.first_pages(), TransferSize::from_bytes(config.page_size, base_page()));
    let pager = Pager::new(kernel, store, bounds, local, size, config.prefetch)
        .ok_or("no address space for its tables")?;
    let pager = Arc::new(pager);
    start_threads(&pager).map_err(no_thread)?;
    let far = FarMemory::new(heap, mappings, pager, config.local, lost);
    far.pager().set_label(mapped, Region::Mapping as u64);
    for (number, piece) in &statics {
        take_over(&far, *number, piece)?;
    }
    if filtered {
        used.extend(statics::around(statics.iter().map(|(_, piece)| piece)));
        // Threads are started before the filter, which would raise a signal for each, at which a debugger stops.
        helper::start(false);
        if settings::options().report.is_some() {
            timeline::start_thread();
        }
        io::install(&used, in_thread).map_err(no_filter)?;
    }
    Ok(far)
}

/// Replaces pages of the program's file by anonymous copies, since only anonymous memory can be far. Returns `false`,
/// and counts the cause, if the kernel has no memory for them.
fn made_anonymous(piece: &Piece) -> bool {
    let at = core::ptr::with_exposed_provenance_mut(piece.at.start);
    // SAFETY: the piece is whole pages of the program's own data; the program has not started yet, and
    // the dynamic linker does not use them any more.
    let done = !piece.from_file || unsafe { largesse_pages::make_anonymous(at, piece.at.len()) }.is_ok();
    if !done {
        causes::note(Cause::OutOfMemory);
    }
    done
}

fn take_over(far: &Far, first: usize, piece: &Piece) -> Result<(), Refusal> {
    let page = base_page();
    let pages = first..first + piece.at.len() / page;
    far.pager().enter(pages).map_err(|error| format!("for the program's static data: {error}"))?;
    let mut here = Vec::new();
    let at = core::ptr::with_exposed_provenance_mut(piece.at.start);
    largesse_pages::each_resident(at, piece.at.len(), &mut |offset| here.push(first + offset / page));
    far.pager().adopt(here.into_iter());
    far.mapped_more(first, piece.at.len());
    far.pager().set_label(first, Region::Static as u64);
    Ok(())
}

/// Returns the description of the store, if there is far memory.
pub(crate) fn about_store() -> Option<&'static FarStore> {
    STORE.get()
}

fn store(choice: &Store, len: usize, broker: &Arc<Broker>) -> Result<Box<dyn PageStore>, Refusal> {
    match choice {
        Store::File(path) => {
            let store = FileStore::create(path, broker).map_err(|refused| format!("file:{refused}"))?;
            let _ = STORE.set(FarStore::new(0, &format!("file:{}", path.display())));
            Ok(Box::new(store))
        }
        Store::Agent(name) => {
            let store = AgentStore::connect(name, len).map_err(|refused| refused.to_string())?;
            let _ = STORE.set(FarStore::new(store.about().agent, &store.about().store));
            Ok(Box::new(store))
        }
    }
}

fn no_thread(error: std::io::Error) -> Refusal {
    format!("its threads could not be started: {error}")
}

fn no_filter(errno: i32) -> Refusal {
    format!(
        "a filter for system calls (seccomp): {}; `largesse doctor` says how to do without",
        std::io::Error::from_raw_os_error(errno)
    )
}

fn no_userfaultfd(errno: i32) -> Refusal {
    format!("userfaultfd: {}; `largesse doctor` says what to set", std::io::Error::from_raw_os_error(errno))
}

fn lost(error: &PagerError) -> ! {
    lost::give_up(&error.to_string())
}

/// Starts the threads of `pager` in a process that has none of them yet.
pub(crate) fn start_threads(pager: &Arc<Pager<Linux, Box<dyn PageStore>>>) -> std::io::Result<()> {
    last_thread::watch();
    guard::outside(|| largesse_pager::start(pager, lost))
}
