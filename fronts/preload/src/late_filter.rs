//! Installs the system-call filter of a limit, as late as that is safe.
//!
//! Without the right to let the kernel wait for far pages, system calls on far memory must be filtered (`io/`). The
//! filter costs each of them some time, and programs that this one starts cannot gain rights any more (`sudo`). Most
//! programs never come near their limit. But a filter that is added to a thread that runs anywhere is not safe: the
//! thread may be in a system call with a page that is evicted then, or may block the signal of the filter. So it is
//! installed in a call of this library, while the program has no other thread that runs (`other_threads.rs`):
//!
//! ```text
//!   blocks, mappings, static arrays exceed 1/16 ───┐
//!   the program starts its first thread ──────────┼─► PENDING ─► INSTALLED
//!   the program asks for the change-over ─────────┘       └────► given up, with a line on standard error
//! ```
//! Before that, blocks are too small for a change-over. See docs/decisions/080.

use crate::errno::Errno;
use crate::fault_engine::SystemCalls;
use crate::guard::Inside;
use crate::heap::{self, LargeHeap};
use crate::limit_state::{OWNER, give_up};
use crate::limited::LimitedMemory;
use crate::no_filter::no_filter;
use crate::{io, near_mappings, near_statics, other_threads};
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Whether the filter is needed, and is installed. It changes while the program has one thread.
static STATE: AtomicU32 = AtomicU32::new(NOT_NEEDED);
const NOT_NEEDED: u32 = 0;
const PENDING: u32 = 1;
const INSTALLED: u32 = 2;

static PREPARED: OnceLock<io::PreparedFilter> = OnceLock::new();

/// Number of bytes of the heap's range, of mappings, and of static arrays, that may be used without the filter.
static BOUND: AtomicUsize = AtomicUsize::new(0);
/// That number is this part of the limit, or [`LEAST_BOUND`], whichever is more.
const SHARE: u64 = 16;
/// Fewer bytes are not worth a change-over (`spill.rs`).
const LEAST_BOUND: u64 = 4 << 20;

/// Has the filter for `memory`, and for `segments` with static arrays, installed later, if system calls need one, in a
/// process whose limit is `limit` bytes. The error is the reason why that would be refused.
pub(crate) fn want(
    calls: SystemCalls,
    memory: &LimitedMemory,
    segments: &[Range<usize>],
    limit: u64,
) -> Result<(), String> {
    let SystemCalls::Filtered { in_thread } = calls else { return Ok(()) };
    // Relaxed, as all here: it changes while there is one thread.
    if STATE.load(Ordering::Relaxed) != NOT_NEEDED {
        return Ok(());
    }
    let mappings = memory.range_for_mappings().ok_or("no address space")?;
    let ranges = [memory.range(), mappings].map(|range| {
        let start = range.start().as_ptr().addr();
        start..start + range.len()
    });
    let used: Vec<_> = ranges.into_iter().chain(segments.iter().cloned()).collect();
    let prepared = io::prepare(&used, in_thread).map_err(no_filter)?;
    let _ = PREPARED.set(prepared);
    let bound = usize::try_from((limit / SHARE).max(LEAST_BOUND)).unwrap_or(usize::MAX);
    BOUND.store(bound, Ordering::Relaxed);
    STATE.store(PENDING, Ordering::Relaxed);
    Ok(())
}

/// Returns whether the filter is needed, and not installed yet. Blocks must not become far then.
pub(crate) fn is_pending() -> bool {
    STATE.load(Ordering::Relaxed) == PENDING
}

/// Installs the filter if it is needed and blocks exceed the bound, before the program gets a new one.
pub(crate) fn before_use(heap: &LargeHeap) {
    if is_pending() && near_statics::bytes() + heap.used_range() > BOUND.load(Ordering::Relaxed) {
        ensure();
    }
}

/// Installs the filter if it is needed and blocks and mappings exceed the bound, before the program gets `more` bytes of
/// mappings.
pub(crate) fn before_mapping(more: usize) {
    if is_pending() {
        let blocks = heap::heap().map_or(0, LargeHeap::used_range);
        let used = [near_mappings::mapped_bytes(), near_statics::bytes(), more];
        if used.into_iter().fold(blocks, usize::saturating_add) > BOUND.load(Ordering::Relaxed) {
            ensure();
        }
    }
}

/// Installs the filter if it is needed and static arrays alone exceed the bound, before the program starts: it uses them
/// without any call.
pub(crate) fn before_program() {
    if is_pending() && near_statics::bytes() > BOUND.load(Ordering::Relaxed) {
        ensure();
    }
}

/// Installs the filter if it is needed, before the program starts a thread. No `errno` changes.
pub(crate) fn before_thread() {
    if is_pending() {
        let errno = Errno::save();
        ensure();
        errno.put();
    }
}

/// Installs the filter if it is needed. If that is not possible, the limit is given up, and the answer is `false`. Only
/// threads of the program call this.
pub(crate) fn ensure() -> bool {
    // A child of `vfork` has a filter of its own, but the memory of its parent.
    if !is_pending() || OWNER.load(Ordering::Relaxed) != std::process::id() {
        return true;
    }
    let installed = install();
    if let Err(why) = &installed {
        give_up(why);
    }
    installed.is_ok()
}

/// Installs the filter that [`want`] has built, in the calling thread, and in others that sleep until it wakes them. The
/// error is the reason why that is not safe, or is refused.
pub(crate) fn install() -> Result<(), String> {
    let _inside = Inside::enter();
    let Some(prepared) = PREPARED.get().filter(|_| is_pending()) else { return Ok(()) };
    let done = install_where_safe(prepared);
    STATE.store(if done.is_ok() { INSTALLED } else { NOT_NEEDED }, Ordering::Relaxed);
    done
}

fn install_where_safe(prepared: &io::PreparedFilter) -> Result<(), String> {
    other_threads::look(prepared.signals())?;
    io::take_signals(prepared).map_err(no_filter)?;
    // Again, since a handler may have run in one of them before that.
    let threads = other_threads::look(prepared.signals())?;
    io::install(prepared, threads).map_err(no_filter)
}
