//! Makes the heap far memory in place, and near memory again, while the program runs.
//!
//! The userfaultfd is opened and the store is tried before the program starts, so that a refusal is reported at that
//! time.

use crate::fault_engine::SystemCalls;
use crate::heap::LargeHeap;
use crate::limited::LimitedMemory;
use crate::lost::pager_failed;
use crate::near_calls::{self, NearCall};
use crate::near_mappings::{self, NearMappings};
use crate::{far_store, fault_engine, guard, last_thread, near_statics};
use core::ops::Range;
use largesse_arena::Retention;
use largesse_pager::MappedParts;
use largesse_pages::{SPAN, base_page};
use largesse_paging::{Amount, Far, FarBuilder, FarConfig, FarPager, FaultEngine, start_broker};
use largesse_policy::Coldness;
use largesse_report::Region;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Far memory retains no free memory, which would occupy the store.
const RETENTION: Retention = Retention { share: 0, floor: 0 };

/// Message for kernels before Linux 6.8, on which a device could write to a page while it is evicted.
const NO_MOVE: &str = "it needs Linux 6.8 or later; --local works on this one";

/// The userfaultfd for the change-over, which is opened when the heap is made; `None` once it is used.
static PREPARED: Mutex<Option<FarBuilder>> = Mutex::new(None);

fn prepared() -> MutexGuard<'static, Option<FarBuilder>> {
    PREPARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the userfaultfd for a later change-over, and tries the store. Returns how system calls will use far memory: if
/// a filter is needed, it must be there before the change-over (`late_filter.rs`). The error is the reason why the
/// change-over would be refused. With the in-thread engine, the caller is a thread of the program.
pub(crate) fn prepare(config: &FarConfig) -> Result<SystemCalls, String> {
    let engine = fault_engine::choose(config.engine);
    let builder = open(config, engine)?;
    let filtered = builder.needs_filter();
    *prepared() = Some(builder);
    let in_thread = engine == FaultEngine::Thread;
    Ok(if filtered { SystemCalls::Filtered { in_thread } } else { SystemCalls::Wait })
}

/// Closes what [`prepare`] has opened.
pub(crate) fn cancel() {
    drop(prepared().take());
}

fn open(config: &FarConfig, engine: FaultEngine) -> Result<FarBuilder, String> {
    let refused = |error: largesse_paging::Error| error.to_string();
    // `outside`, because starting a thread allocates.
    let broker = guard::outside(start_broker).map_err(refused)?;
    let builder = FarBuilder::open(broker, engine).map_err(refused)?;
    if !builder.moves_pages() {
        return Err(NO_MOVE.into());
    }
    builder.try_store(&config.store).map_err(refused)?;
    Ok(builder)
}

/// Forgets, in a forked child, the userfaultfd that the parent has opened.
pub(crate) fn forget() {
    if let Some(builder) = prepared().take() {
        builder.forget_in_child();
    }
}

/// Makes the heap on `memory` far memory, of which at most `local` bytes are resident once the pager's threads have
/// evicted the rest, the coldest by `coldness` first. If the change-over is refused, nothing changes; the error says
/// why.
pub(crate) fn change_over(
    heap: &LargeHeap,
    memory: &LimitedMemory,
    config: &FarConfig,
    local: usize,
    coldness: &dyn Coldness,
) -> Result<(), String> {
    if let Some(far) = memory.far() {
        return change_over_again(heap, memory, far, local, coldness);
    }
    let before = prepared().take();
    let builder = before.map_or_else(|| open(config, config.engine), Ok)?;
    let config = FarConfig { local: Amount::Bytes(local), ..config.clone() };
    let far = |spans: &mut dyn Iterator<Item = Range<usize>>| {
        near_calls::hand_over(|calls| {
            near_mappings::hand_over(|mapped| {
                let far = make(builder, memory, &config, (spans, coldness), (calls, mapped))?;
                memory.become_far(far);
                near_statics::are_far(|at| memory.far().is_some_and(|far| far.is_far(at)));
                Ok(())
            })
        })
    };
    heap.change_over(RETENTION, far)
}

/// Does the same with the far memory that the heap had before it became near again.
fn change_over_again(
    heap: &LargeHeap,
    memory: &LimitedMemory,
    far: &Far,
    local: usize,
    coldness: &dyn Coldness,
) -> Result<(), String> {
    far.pager().set_local(local / base_page());
    heap.change_over(RETENTION, |spans| {
        far.take_over_again(spans, coldness, &|at| memory.populate(at)).map_err(|error| error.to_string())?;
        memory.become_far_again();
        Ok(())
    })
}

/// Makes the heap near memory again, which may hold `limit` bytes before it could exceed its limit. Calls `near` as
/// soon as it is, before any other thread can use the heap. `false`: nothing changed, because some pages are not
/// resident.
pub(crate) fn change_back(
    heap: &LargeHeap,
    memory: &LimitedMemory,
    far: &Far,
    limit: usize,
    near: impl FnOnce(),
) -> bool {
    let done = heap.change_back(Retention::default(), limit, memory.span_kind(), |spans| {
        let done = far.make_near(spans, memory.kind());
        if done {
            memory.become_near();
            near();
        }
        done
    });
    if done {
        far.forget_stored(heap.used_range() / SPAN);
    }
    done
}

/// Makes far memory of the range, which takes over `spans`, of the range of mappings, which takes over those of
/// `mapped`, and of static arrays, and starts its threads. Until then a thread that touches a missing page waits. The
/// memory of `calls`, which system calls use, is pinned.
fn make(
    mut builder: FarBuilder,
    memory: &LimitedMemory,
    config: &FarConfig,
    (spans, coldness): (&mut dyn Iterator<Item = Range<usize>>, &dyn Coldness),
    (calls, mapped): (&mut [NearCall], Option<&NearMappings>),
) -> Result<Far, String> {
    let refused = |error: largesse_paging::Error| error.to_string();
    for call in calls.iter() {
        near_mappings::populate(mapped, &call.at);
        memory.populate(&call.at);
        near_statics::populate(&call.at);
    }
    let statics = near_statics::for_change_over();
    let firsts: Vec<_> = statics.iter().map(|at| builder.add(at.start, at.len())).collect();
    let mappings = memory.range_for_mappings().ok_or("no address space")?;
    // The heap first: its low addresses are used first, which keeps a store in a file as short as possible.
    let heap = builder.add_range(memory.range());
    let mappings = builder.add_range(mappings);
    let first = mappings.first;
    mapped.into_iter().flat_map(NearMappings::left_out).for_each(|at| builder.leave_out(&at));
    let parts = mapped.map_or_else(MappedParts::new, |mapped| mapped.parts().clone());
    let unstarted = builder.build(heap, (mappings, parts), config, pager_failed).map_err(refused)?;
    let pager = unstarted.far().pager().clone();
    pager.set_label(first, Region::Mapping as u64);
    firsts.iter().for_each(|&first| pager.set_label(first, Region::Static as u64));
    if near_mappings::are_executable() {
        // A refusal makes evictions slower.
        let _ = pager.kernel().expect_executable();
    }
    // The program may have passed pages to a pipe or a socket without a copy, before its calls were filtered.
    pager.kernel().lend();
    let taken = if unstarted.kernel().knows_pinned() {
        // Static arrays last: they stay near if the store has no room for them.
        let far = unstarted.far();
        far.take_over(spans, coldness)
            .and_then(|()| statics.iter().try_for_each(|at| far.take_over_segment(at)))
            .map_err(|error| error.to_string())
    } else {
        Err(NO_MOVE.into())
    };
    last_thread::watch();
    calls.iter_mut().for_each(|call| pin(&pager, call));
    let started = taken.and_then(|()| guard::outside(|| unstarted.start()).map_err(refused));
    let (far, store) = started.inspect_err(|_| {
        pager.kernel().release();
        calls.iter_mut().for_each(|call| call.pinned = None);
    })?;
    far_store::set(&store);
    Ok(far)
}

/// Keeps the pages of a system call resident. None is evicted yet, so that all of them are, whatever the bound is.
fn pin(pager: &FarPager, call: &mut NearCall) {
    let all = call.at.len() / base_page();
    let pinned = pager.pin_at(call.at.start, call.at.len(), all).map(|(_, pages)| pages);
    match pinned {
        Some(pages) if call.forever => pager.keep(&pages),
        pinned => call.pinned = pinned,
    }
}
