//! Makes the heap of the process once, at the first large request or for far memory, and never during a fork.

use crate::backing::HeapBacking;
use crate::causes::{count_early, note};
use crate::guard::Inside;
use crate::heap::{self, LargeHeap, backing, heap};
use crate::limit_state;
use crate::message::warn;
use crate::routing::ROUTING;
use crate::settings::options;
use crate::{new_heap, refused, shortage, signpost};
use core::sync::atomic::{AtomicU32, Ordering};
use largesse_paging::FarConfig;
use largesse_report::Cause;

/// Tells whether a thread makes the heap, or forbids that: [`UNCLAIMED`], [`MAKER`] or [`FORKER`].
static MAKING: AtomicU32 = AtomicU32::new(UNCLAIMED);
const UNCLAIMED: u32 = 0;
const MAKER: u32 = 1;
/// Value of [`MAKING`] while a thread forks without a heap, during which no other thread may make one.
const FORKER: u32 = 2;

/// Returns the heap, and makes it if there is none yet.
pub(crate) fn heap_or_make() -> Option<&'static LargeHeap> {
    heap().or_else(make)
}

/// Makes the heap in one of several threads; returns `None` in the others, which the next allocator serves.
#[cold]
fn make() -> Option<&'static LargeHeap> {
    let _inside = Inside::enter();
    if claim_making(MAKER) { make_claimed() } else { None }
}

/// Returns the heap, and makes it if there is none yet. If another thread makes it, this one waits: a library may have
/// started that thread before this library is started. The caller holds no lock of the dynamic linker.
pub(crate) fn heap_or_wait() -> Option<&'static LargeHeap> {
    let _inside = Inside::enter();
    while !claim_making(MAKER) {
        // SAFETY: `usleep` has no preconditions.
        unsafe { libc::usleep(100) };
    }
    make_claimed()
}

fn make_claimed() -> Option<&'static LargeHeap> {
    // Another thread may have made it since this one checked.
    let made = heap().or_else(make_alone);
    MAKING.store(UNCLAIMED, Ordering::Release);
    made
}

fn make_alone() -> Option<&'static LargeHeap> {
    let Some((backing, heap)) = new_heap::make() else {
        note(Cause::RangeFull);
        ROUTING.enable(false); // later requests would not find a range either
        let why =
            shortage::with_limits("no address space for large blocks, the C library serves them".into());
        warn(&why);
        return None;
    };
    Some(publish(backing, heap))
}

/// Makes the heap on far memory in a session that has no heap yet; otherwise returns a message for the user.
pub(crate) fn make_far(config: &FarConfig) -> Result<(), String> {
    if !claim_making(MAKER) {
        return Err("another thread requests a large block at this moment; try again".into());
    }
    let outcome = match backing() {
        Some(HeapBacking::Far(_)) => {
            Err("this session has far memory already, chosen when it started".into())
        }
        Some(HeapBacking::Limited(_)) if limit_state::limit().is_some() => {
            Err("this session has a limit, near which it makes far memory".into())
        }
        Some(HeapBacking::Near(_) | HeapBacking::Limited(_)) => Err("this session has large blocks already; \
            far memory is chosen before the first one, or at the start: largesse run --local SIZE -- PROGRAM; a \
            limit (memory_limit, largesse_limit) can be set at any time"
            .into()),
        None => match options().excluded_by_far() {
            Some((name, accepts)) => Err(format!("{name} is set; it accepts {accepts}")),
            // Static arrays cannot become far: the program already uses them.
            None => new_heap::make_far(config, false).map(|(backing, heap)| _ = publish(backing, heap)),
        },
    };
    MAKING.store(UNCLAIMED, Ordering::Release);
    outcome
}

/// Makes a new heap visible to all threads and to `largesse status`.
fn publish(backing: &'static HeapBacking, heap: &'static LargeHeap) -> &'static LargeHeap {
    heap::set(backing, heap);
    count_early(heap);
    signpost::publish(heap);
    refused::report(heap);
    heap
}

fn claim_making(claim: u32) -> bool {
    // Acquire and Release: the thread that makes the heap sees the stores of the last one that claimed it.
    MAKING.compare_exchange(UNCLAIMED, claim, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Forbids making a heap before a fork, until [`fork_is_over`]; returns `false` while a thread makes one. That thread
/// may hold locks of the dynamic linker, which would never be released in the child.
pub(crate) fn forbid_heap() -> bool {
    claim_making(FORKER)
}

/// Allows making a heap again, in parent and child.
pub(crate) fn fork_is_over() {
    // Relaxed: a claim that is not the forking thread's is not changed.
    let _ = MAKING.compare_exchange(FORKER, UNCLAIMED, Ordering::Release, Ordering::Relaxed);
}

/// Forgets, in a forked child, a heap that another thread was about to make without [`forbid_heap`]. It will not be
/// finished, and this thread has no block of it.
pub(crate) fn after_fork_without_heap() {
    heap::forget();
    MAKING.store(UNCLAIMED, Ordering::Release);
}
