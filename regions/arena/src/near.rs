//! Implements a backing in this machine's own memory.

use crate::{Backing, Purged, Refusal, SpanKind};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use largesse_pages::{MapError, PageKind, Placement, Reserved, SPAN};

/// Number of kinds of refusal.
const REFUSALS: usize = 7;

/// A reserved range of this machine's memory, with the properties that its pages get.
#[derive(Debug)]
pub struct NearMemory {
    range: Reserved,
    kind: PageKind,
    placement: Placement,
    lock: bool,
    refused: [AtomicU64; REFUSALS],
}

impl NearMemory {
    /// Creates a backing from a reserved range, with the kind, placement and locking of its pages.
    #[must_use]
    pub fn new(range: Reserved, kind: PageKind, placement: Placement, lock: bool) -> NearMemory {
        NearMemory { range, kind, placement, lock, refused: Default::default() }
    }

    /// Returns the kind of its pages.
    #[must_use]
    pub const fn kind(&self) -> PageKind {
        self.kind
    }

    /// Replaces the hugetlb pages of `spans` spans by ordinary ones with the same contents; see [`Reserved::demote`].
    ///
    /// # Safety
    /// Nothing else reads or writes the spans during the call.
    pub unsafe fn demote(
        &self,
        first: usize,
        spans: usize,
        lost: &mut dyn FnMut(NonNull<u8>, usize, usize) -> bool,
    ) -> Result<(), MapError> {
        // SAFETY: the caller's promise.
        unsafe { self.range.demote(first * SPAN, spans * SPAN, lost) }?;
        self.settle(first * SPAN, spans * SPAN);
        Ok(())
    }

    /// Places pages that were newly mapped on their NUMA node, and locks them, as the settings of the range say.
    fn settle(&self, offset: usize, len: usize) {
        if self.range.place(offset, len, self.placement).is_err() {
            self.refuse(Refusal::Place);
        }
        if self.lock && self.range.lock(offset, len).is_err() {
            self.refuse(Refusal::Lock);
        }
    }

    fn refuse(&self, what: Refusal) {
        // Relaxed: a statistic.
        self.refused[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn commit_pool(&self, offset: usize, len: usize) -> Option<SpanKind> {
        if !(offset | len).is_multiple_of(self.unit() * SPAN) {
            self.refuse(Refusal::PoolRefused); // part of a 1 GiB page cannot be mapped
            return None;
        }
        let error = match self.range.commit(offset, len, self.kind) {
            Ok(()) if self.kind == PageKind::Hugetlb1G => return Some(SpanKind::Hugetlb1G),
            Ok(()) => return Some(SpanKind::Hugetlb),
            Err(error) => error,
        };
        self.refuse(if error.is_out_of_memory() { Refusal::PoolEmpty } else { Refusal::PoolRefused });
        None
    }
}

// SAFETY: `Reserved::commit` makes the range readable, writable and zero, or fails.
unsafe impl Backing for NearMemory {
    fn start(&self) -> NonNull<u8> {
        self.range.start()
    }

    fn spans(&self) -> usize {
        self.range.len() / SPAN
    }

    fn unit(&self) -> usize {
        if self.kind == PageKind::Hugetlb1G { (1 << 30) / SPAN } else { 1 }
    }

    fn commit(&self, first: usize, spans: usize) -> Result<SpanKind, MapError> {
        let (offset, len) = (first * SPAN, spans * SPAN);
        let pool = matches!(self.kind, PageKind::Hugetlb | PageKind::Hugetlb1G);
        let kind = match if pool { self.commit_pool(offset, len) } else { None } {
            Some(kind) => kind,
            None => {
                let kind = if pool { PageKind::Thp } else { self.kind };
                self.range.commit(offset, len, kind)?;
                if kind == PageKind::Thp { SpanKind::Thp } else { SpanKind::Small }
            }
        };
        self.settle(offset, len);
        Ok(kind)
    }

    fn prefer_large(&self, first: usize, spans: usize, large: bool) -> Option<SpanKind> {
        if matches!(self.kind, PageKind::Small | PageKind::Medium) {
            return None;
        }
        let kind = if large { PageKind::Thp } else { PageKind::Small };
        self.range.advise(first * SPAN, spans * SPAN, kind).ok()?;
        Some(if large { SpanKind::Thp } else { SpanKind::Small })
    }

    unsafe fn offer(&self, first: usize, spans: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.range.offer(first * SPAN, spans * SPAN) }.is_ok()
    }

    unsafe fn purge(&self, first: usize, spans: usize, kind: SpanKind) -> Purged {
        let (offset, len) = (first * SPAN, spans * SPAN);
        if kind.from_pool() {
            // A purged hugetlb mapping may fault into an empty pool later and kill the program: its pages return to the
            // pool together with the mapping.
            // SAFETY: the caller's promise.
            let done = unsafe { self.range.decommit(offset, len) };
            return if done.is_ok() { Purged::Decommitted } else { Purged::Refused };
        }
        // SAFETY: the caller's promise.
        let done = unsafe { self.range.purge(offset, len) };
        if done.is_ok() { Purged::Kept } else { Purged::Refused }
    }

    unsafe fn relocate(&self, from: usize, to: usize, spans: usize) -> bool {
        // SAFETY: the caller's promise.
        let done = unsafe { self.range.relocate(from * SPAN, to * SPAN, spans * SPAN) };
        if done.is_err() {
            self.refuse(Refusal::Move);
        }
        done.is_ok()
    }

    fn populate(&self, first: usize, spans: usize) -> bool {
        let done = self.range.populate(first * SPAN, spans * SPAN);
        if done.is_err() {
            self.refuse(Refusal::Populate);
        }
        done.is_ok()
    }

    fn count_refusal(&self, what: Refusal) {
        self.refuse(what);
    }

    fn refused(&self, what: Refusal) -> u64 {
        // Relaxed: a statistic.
        self.refused[what as usize].load(Ordering::Relaxed)
    }

    fn any_resident(&self, span: usize) -> bool {
        self.range.any_resident(span * SPAN, SPAN)
    }
}
