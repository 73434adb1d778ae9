//! Makes far memory in this process: its ranges, store, userfaultfd and threads.

use crate::backing::Far;
use crate::lost::pager_failed;
use crate::no_filter::no_filter;
use crate::statics::{self, Piece};
use crate::{causes, far_store, fault_engine, guard, helper, io, last_thread, settings, timeline};
use largesse_pager::MappedParts;
use largesse_pages::fault::{FaultError, refuse_direct_input};
use largesse_pages::{Reserved, base_page};
use largesse_paging::{Error, FarBuilder, FarConfig, FarPager, FaultEngine, start_broker};
use largesse_report::{Cause, Region};
use std::sync::Arc;

/// A message to the user why there is no far memory.
type Refusal = String;

/// Makes far memory of two ranges of addresses, one for the heap and one for mappings, and with `static_data` of the
/// static arrays of the program and its libraries.
pub(crate) fn make(
    heap: Reserved,
    mappings: Reserved,
    config: &FarConfig,
    static_data: bool,
) -> Result<Far, Refusal> {
    let refused = |error: Error| error.to_string();
    let statics = if static_data { statics::pieces() } else { Vec::new() };
    // Asked before service threads are started.
    let is_alone = statics::runs_alone();
    // `outside`, because starting a thread allocates.
    let broker = guard::outside(start_broker).map_err(refused)?;
    let engine = fault_engine::choose(config.engine);
    let mut builder = FarBuilder::open(broker, engine).map_err(refused)?;
    let filtered = builder.needs_filter();
    let addresses = |range: &Reserved| {
        let start = range.start().as_ptr().addr();
        start..start + range.len()
    };
    let mut used = vec![addresses(&heap), addresses(&mappings)];
    let statics: Vec<_> = statics
        .into_iter()
        // Another thread could write to a page while it is copied, and its system calls are not filtered.
        .filter(|piece| is_alone || !piece.of_library || !(piece.from_file || filtered))
        .filter(made_anonymous)
        .map(|piece| (builder.add(piece.at.start, piece.at.len()), piece))
        .collect();
    // Last, because its low addresses are used first, which keeps a store in a file as short as possible.
    let (heap, mappings) = (builder.add_range(heap), builder.add_range(mappings));
    let mapped = mappings.first;
    let unstarted =
        builder.build(heap, (mappings, MappedParts::new()), config, pager_failed).map_err(refused)?;
    if !unstarted.kernel().knows_pinned() {
        refuse_direct_input().map_err(|FaultError(errno)| {
            format!("before Linux 6.8 it needs seccomp: {}", std::io::Error::from_raw_os_error(errno))
        })?;
        causes::note(Cause::DirectInputRefused);
    }
    // Before faults are served, so that a thread that touches a missing page waits until its state is known.
    for (number, piece) in &statics {
        take_over(unstarted.far(), *number, piece)?;
    }
    last_thread::watch();
    let (far, store) = guard::outside(|| unstarted.start()).map_err(refused)?;
    far_store::set(&store);
    far.pager().set_label(mapped, Region::Mapping as u64);
    if filtered {
        used.extend(statics::around(statics.iter().map(|(_, piece)| piece)));
        // Threads are started before the filter, which would raise a signal for each, at which a debugger stops.
        helper::start(false);
        if settings::options().report.is_some() {
            timeline::start_thread();
        }
        let prepared = io::prepare(&used, engine == FaultEngine::Thread).map_err(no_filter)?;
        io::take_signals(&prepared).map_err(no_filter)?;
        io::install(&prepared, io::FilteredThreads::Calling).map_err(no_filter)?;
    }
    Ok(far)
}

/// Replaces the pages of `piece`, which are mapped from a file, by anonymous copies, since only anonymous memory can be
/// far. Returns `false`, and counts the cause, if the kernel has no memory for them.
fn made_anonymous(piece: &Piece) -> bool {
    let at = core::ptr::with_exposed_provenance_mut(piece.at.start);
    // SAFETY: the piece is whole pages of data of the program, which has not started yet, or of a library, and there is
    // no other thread that could use these (`pieces`); the dynamic linker does not use them any more.
    let done = !piece.from_file || unsafe { largesse_pages::make_anonymous(at, piece.at.len()) }.is_ok();
    if !done {
        causes::note(Cause::OutOfMemory);
    }
    done
}

fn take_over(far: &Far, first: usize, piece: &Piece) -> Result<(), Refusal> {
    let page = base_page();
    let pages = first..first + piece.at.len() / page;
    far.pager().enter(pages).map_err(|error| format!("for static arrays: {error}"))?;
    let mut here = Vec::new();
    let at = core::ptr::with_exposed_provenance_mut(piece.at.start);
    largesse_pages::each_resident(at, piece.at.len(), &mut |offset| {
        let number = first + offset / page;
        here.push(number..number + 1);
    });
    far.pager().adopt(here.into_iter(), |_| 0);
    far.mapped_more(first, piece.at.len());
    far.pager().set_label(first, Region::Static as u64);
    Ok(())
}

/// Starts the threads of `pager` in a forked child, which has none of them yet.
pub(crate) fn start_threads(pager: &Arc<FarPager>) -> std::io::Result<()> {
    last_thread::watch();
    guard::outside(|| largesse_pager::start(pager, pager_failed))
}
