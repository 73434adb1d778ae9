//! Lists the resources of system calls in progress: pinned pages, and copies of buffers.
//!
//! The program's signals are open during a trapped call. A handler may leave the call by `siglongjmp`, and
//! `pthread_cancel` may end its thread: no destructor of ours runs then. So each thread gives back what its abandoned
//! calls hold when it next uses far memory in a call:
//!
//! ```text
//!   call ─► SIGSYS: frame ─► pages are listed ─► kernel ─► handler of the program ─► siglongjmp
//!   next call: its stack pointer is above the listed frame ─► given back      (below it: the call in a handler)
//! ```
//! A handler that switches to another stack by itself, and returns later to restart the call, may find a page evicted.
//! The first use of each holder also checks one other thread, the next in turn, and gives back what that holds if it has
//! ended.

use crate::heap;
use crate::lost::give_up;
use crate::near_calls;
use crate::own_stacks::OwnStacks;
use crate::settings::store_is_everywhere;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use largesse_pages::{raw_call, thread_id};
use largesse_policy::PageNumber;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A resource that a system call holds until it returns.
#[derive(Debug)]
pub(crate) enum CallResource {
    /// Far pages that the pager has pinned.
    Pages(Range<PageNumber>),
    /// The number of near memory that must stay resident if it becomes far (`near_calls.rs`).
    Near(u64),
    /// Start and length in bytes of a mapping that only the call uses.
    #[cfg(target_arch = "x86_64")]
    Mapping(core::ptr::NonNull<u8>, usize),
}

impl CallResource {
    /// Returns the pages that are pinned for it.
    fn pages(&self) -> Option<Range<PageNumber>> {
        match self {
            CallResource::Pages(pages) => Some(pages.clone()),
            CallResource::Near(number) => near_calls::pinned(*number),
            #[cfg(target_arch = "x86_64")]
            CallResource::Mapping(..) => None,
        }
    }

    fn give_back(&self) {
        match self {
            CallResource::Pages(pages) => heap::far().into_iter().for_each(|far| far.pager().unpin(pages)),
            CallResource::Near(number) => near_calls::give_back(*number),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a mapping of our own, which only the call used. Pages that the kernel still references (sends
            // without a copy) stay allocated until it releases them.
            CallResource::Mapping(start, len) => unsafe { largesse_pages::unmap_own(*start, *len) },
        }
    }
}

#[derive(Debug)]
struct Entry {
    /// Number of the [`Holder`].
    holder: u64,
    /// The kernel's number of the thread that makes the call.
    thread: u32,
    /// Address of the signal frame of the trapped call, on the thread's stack.
    frame: usize,
    held: CallResource,
}

// SAFETY: the mapping that an entry may own is used by no thread but the one that removes the entry.
unsafe impl Send for Entry {}

/// All that calls in progress hold.
#[derive(Debug)]
pub(crate) struct CallsInProgress {
    entries: Vec<Entry>,
    /// Index of the entry whose thread was checked last.
    checked: usize,
    /// The kernel's number of the thread that forks, in parent and child.
    forking: u32,
}

static CALLS: Mutex<CallsInProgress> =
    Mutex::new(CallsInProgress { entries: Vec::new(), checked: 0, forking: 0 });
/// The number of the newest holder or trapped call. Numbers increase.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Locks the list for a fork of the calling thread.
pub(crate) fn lock_for_fork() -> MutexGuard<'static, CallsInProgress> {
    let mut calls = lock();
    calls.forking = thread_id();
    calls
}

/// Pins again what the only thread of a forked child holds, whose pager has forgotten all pins: a handler that forked
/// may return to the call, which then goes on in the child.
pub(crate) fn pin_again() {
    let Some(far) = heap::far() else { return };
    let held: Vec<_> = lock().entries.iter().filter_map(|entry| entry.held.pages()).collect();
    for pages in held {
        let pinned = far.pager().pin(pages.clone(), pages.len());
        if let Err(error) = far.pager().page_in(&pinned, true, store_is_everywhere()) {
            give_up(&error.to_string());
        }
    }
}

/// Locks the list. The caller blocks signals. A thread that holds the lock takes no other, except for a fork.
fn lock() -> MutexGuard<'static, CallsInProgress> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a number that is greater than those of all existing holders.
pub(crate) fn next_number() -> u64 {
    NUMBERS.fetch_add(1, Ordering::Relaxed) + 1 // Relaxed: only the calling thread compares it with its own numbers
}

impl CallsInProgress {
    /// Removes and returns what `is` selects.
    fn take(&mut self, is: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        self.entries.extract_if(.., |entry| is(entry)).collect()
    }

    /// Removes what the abandoned calls of the calling thread hold, and those of one other thread, the next in turn, if
    /// that has ended.
    fn take_abandoned(&mut self, own: &OwnStacks) -> Vec<Entry> {
        let this = thread_id();
        self.checked = if self.checked + 1 < self.entries.len() { self.checked + 1 } else { 0 };
        let checked = self.entries.get(self.checked).map_or(this, |entry| entry.thread);
        let ended = checked != this && has_ended(checked);
        let left = |entry: &Entry| entry.holder < own.call && own.have_left(entry.frame);
        self.take(|entry| entry.thread == this && left(entry) || ended && entry.thread == checked)
    }

    /// Forgets the calls of the parent's other threads in a forked child.
    pub(crate) fn in_child(&mut self) {
        let (forking, this) = (self.forking, thread_id());
        self.entries.retain(|entry| entry.thread == forking);
        self.entries.iter_mut().for_each(|entry| entry.thread = this);
    }

    /// Returns whether a call holds the near memory with this number.
    pub(crate) fn holds_near(&self, number: u64) -> bool {
        self.entries.iter().any(|entry| matches!(entry.held, CallResource::Near(held) if held == number))
    }
}

fn has_ended(thread: u32) -> bool {
    // `tkill` instead of `tgkill`: an entry may be that of a child of `vfork`, which is another process.
    // SAFETY: numbers only; signal 0 is never sent.
    let asked = unsafe { raw_call(libc::SYS_tkill, [thread as usize, 0, 0, 0, 0, 0]) };
    asked == -(libc::ESRCH as isize)
}

/// Holds resources for a part of a system call, until it is dropped or the call was abandoned.
#[derive(Debug)]
pub(crate) struct Holder<'a> {
    number: u64,
    /// Whether the list may have entries of this holder.
    is_used: bool,
    pub(crate) own: &'a OwnStacks,
}

impl Holder<'_> {
    pub(crate) fn new(own: &OwnStacks) -> Holder<'_> {
        Holder { number: next_number(), is_used: false, own }
    }

    /// Gives back what abandoned calls hold, at the first use of this holder.
    pub(crate) fn begin(&mut self) {
        if !core::mem::replace(&mut self.is_used, true) {
            let abandoned = lock().take_abandoned(self.own);
            // Without the lock, since the pager's is taken.
            abandoned.iter().for_each(|entry| entry.held.give_back());
        }
    }

    pub(crate) fn add(&self, held: CallResource) {
        let entry = Entry { holder: self.number, thread: thread_id(), frame: self.own.frame, held };
        lock().entries.push(entry);
    }

    /// Removes the holder's resources from the list and returns them. The caller gives them back or keeps them.
    pub(crate) fn take(&self) -> Vec<CallResource> {
        let mine = if self.is_used { lock().take(|entry| entry.holder == self.number) } else { Vec::new() };
        mine.into_iter().map(|entry| entry.held).collect()
    }
}

impl Drop for Holder<'_> {
    fn drop(&mut self) {
        self.take().iter().for_each(CallResource::give_back);
    }
}
