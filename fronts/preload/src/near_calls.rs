//! Lists the near memory that trapped system calls use, until blocks become far memory for the first time.
//!
//! The kernel cannot wait for far pages in a system call of a program that has the system-call filter. A call that was
//! trapped while its pages were near may still be in the kernel when they become far:
//!
//! ```text
//!   SIGSYS ─► hold: the buffer is listed ─► the call, which may take long ─► give_back
//!                          │                                                    │
//!              hand_over: pages are populated, registered, pinned ─► far        └─► unpinned
//! ```
//! So the change-over first gives contents to every listed page, since the kernel would meet a missing one, and pins
//! these pages before any page is evicted. Once there is far memory, the pager keeps this list itself (`pinned.rs`),
//! also while blocks are near again.

use crate::{heap, near_mappings, near_statics};
use core::ops::Range;
use largesse_policy::PageNumber;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Memory that a system call uses, in whole pages of the heap's range, that of mappings, or static arrays.
#[derive(Debug)]
pub(crate) struct NearCall {
    number: u64,
    /// Addresses of the memory.
    pub(crate) at: Range<usize>,
    /// Whether the kernel may use the memory at any later time, too.
    pub(crate) forever: bool,
    /// The pages that the change-over has pinned for the call.
    pub(crate) pinned: Option<Range<PageNumber>>,
}

/// All such memory.
#[derive(Debug)]
pub(crate) struct NearCalls {
    calls: Vec<NearCall>,
    /// The number of the next call.
    next: u64,
}

static CALLS: Mutex<NearCalls> = Mutex::new(NearCalls { calls: Vec::new(), next: 0 });

/// Locks the list. The caller blocks signals. A thread that holds the lock takes the pager's only for a change-over, with
/// the heap's lock held: a fork takes them in the same order.
pub(crate) fn lock() -> MutexGuard<'static, NearCalls> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The answer to a request to [`hold`] memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldCall {
    /// The memory is listed under this number.
    Listed(u64),
    /// The memory is neither of the heap nor of mappings or static arrays that become far.
    NotOurs,
    /// The memory is far by now, and its pager pins pages itself.
    ByPager,
}

/// Lists the `len` bytes from the address `at` on as used by a system call, unless there is far memory.
pub(crate) fn hold(at: usize, len: usize) -> HeldCall {
    let Some(at) = memory_at(at, len) else { return HeldCall::NotOurs };
    let mut list = lock();
    // Under the lock: a change-over publishes far memory while it holds it.
    if heap::far().is_some() {
        return HeldCall::ByPager;
    }
    let number = list.next;
    list.next += 1;
    list.calls.push(NearCall { number, at, forever: false, pinned: None });
    HeldCall::Listed(number)
}

/// Returns the pages of the heap, of mappings or of static arrays among the `len` bytes from the address `at` on.
fn memory_at(at: usize, len: usize) -> Option<Range<usize>> {
    let (start, end) = heap::addresses();
    let all = at..at.saturating_add(len);
    let of_heap = all.start.max(start)..all.end.min(end);
    let candidates = [of_heap, near_mappings::inside(&all), near_statics::inside(&all)];
    let ours = candidates.into_iter().find(|part| !part.is_empty()).unwrap_or(0..0);
    let page = largesse_pages::base_page();
    (!ours.is_empty()).then(|| ours.start / page * page..ours.end.next_multiple_of(page))
}

/// Ends the use of memory that was listed under `number`.
pub(crate) fn give_back(number: u64) {
    let call = {
        let mut list = lock();
        let found = list.calls.iter().position(|call| call.number == number);
        found.map(|at| list.calls.swap_remove(at))
    };
    // Without the lock, since the pager's is taken.
    if let Some(pages) = call.and_then(|call| call.pinned)
        && let Some(far) = heap::far()
    {
        far.pager().unpin(&pages);
    }
}

/// Returns the pages that the change-over has pinned of memory that was listed under `number`.
pub(crate) fn pinned(number: u64) -> Option<Range<PageNumber>> {
    lock().calls.iter().find(|call| call.number == number)?.pinned.clone()
}

/// Notes that the kernel may use memory that was listed under `number` at any later time.
pub(crate) fn keep(number: u64) {
    let mut list = lock();
    let Some(call) = list.calls.iter_mut().find(|call| call.number == number) else { return };
    call.forever = true;
    let pinned = call.pinned.take();
    drop(list);
    if let Some((pages, far)) = pinned.zip(heap::far()) {
        far.pager().keep(&pages);
    }
}

/// Runs a change-over with the listed calls: no further one is listed during it.
pub(crate) fn hand_over<R>(change_over: impl FnOnce(&mut [NearCall]) -> R) -> R {
    change_over(&mut lock().calls)
}

impl NearCalls {
    /// Forgets the calls of the parent's other threads in a forked child. `is_own` returns whether the forking thread
    /// uses memory with a number.
    pub(crate) fn in_child(&mut self, is_own: impl Fn(u64) -> bool) {
        self.calls.retain(|call| call.forever || is_own(call.number));
    }
}
