//! Provides memory of this machine that becomes far memory in place when a limit comes near, and near again later.

use crate::leak::leak;
use crate::rlimit::soft_limit;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use largesse_arena::{Backing, NearMemory, Refusal, SpanKind};
use largesse_pages::residency::Inspector;
use largesse_pages::{MapError, MapOp, PageKind, Placement, Reserved, SPAN};
use largesse_paging::Far;
use std::sync::OnceLock;

/// Near memory until [`become_far`](LimitedMemory::become_far), then far memory of the same range until
/// [`become_near`](LimitedMemory::become_near), and so on.
#[derive(Debug)]
pub(crate) struct LimitedMemory {
    range: &'static Reserved,
    /// Range for the mappings that the program makes (`near_mappings.rs`); `None` if there is no address space.
    mappings: OnceLock<Option<&'static Reserved>>,
    near: NearMemory,
    /// Made at the first change-over, and kept: it also has the mappings that the program made while the heap was far.
    far: OnceLock<Far>,
    /// Whether `far` has the range. It changes under the heap's lock.
    is_far: AtomicBool,
    /// Whether free memory is never offered to the kernel. It changes under the heap's lock.
    keeps_free: AtomicBool,
}

impl LimitedMemory {
    pub(crate) fn new(range: &'static Reserved, kind: PageKind) -> LimitedMemory {
        let near = NearMemory::new(range.shared(), kind, Placement::FirstTouch, false);
        LimitedMemory {
            range,
            mappings: OnceLock::new(),
            near,
            far: OnceLock::new(),
            is_far: AtomicBool::new(false),
            keeps_free: AtomicBool::new(false),
        }
    }

    /// Returns another handle of the address range, for the far memory that will own its pages.
    pub(crate) fn range(&self) -> Reserved {
        self.range.shared()
    }

    /// Returns a handle of the range for the mappings that the program makes; reserves it at the first call.
    pub(crate) fn range_for_mappings(&self) -> Option<Reserved> {
        let reserve = || {
            let most = (soft_limit(libc::RLIMIT_AS) / 4).min(soft_limit(libc::RLIMIT_DATA)) / SPAN * SPAN;
            leak(Reserved::new(self.range.len().min(most), SPAN).ok()?)
        };
        self.mappings.get_or_init(reserve).map(Reserved::shared)
    }

    /// Populates pages of the range, given by addresses, so that the kernel meets none without contents. Other addresses
    /// have no effect. A refusal is not an error here: a page that is inaccessible to the kernel stays so.
    pub(crate) fn populate(&self, at: &Range<usize>) {
        let (start, len) = (self.start(), self.range.len());
        let part = at.start.clamp(start, start + len) - start..at.end.clamp(start, start + len) - start;
        let _ = self.range.populate(part.start, part.len());
    }

    /// Returns far memory, or `None` before this memory became far.
    pub(crate) fn far(&self) -> Option<&Far> {
        self.far.get()
    }

    /// Returns whether the memory is far at present.
    pub(crate) fn is_far(&self) -> bool {
        // Acquire: pairs with the Release of the thread that changed it.
        self.is_far.load(Ordering::Acquire)
    }

    /// Serves the range by `far` from now on, which has taken over its contents. The caller holds the heap's lock.
    pub(crate) fn become_far(&self, far: Far) {
        let _ = self.far.set(far);
        self.is_far.store(true, Ordering::Release);
    }

    /// Serves the range again by the far memory that it had before, which has taken over its contents. The caller holds
    /// the heap's lock.
    pub(crate) fn become_far_again(&self) {
        self.is_far.store(self.far.get().is_some(), Ordering::Release);
    }

    /// Serves the range by near memory from now on, whose contents are all resident. The caller holds the heap's lock.
    pub(crate) fn become_near(&self) {
        self.is_far.store(false, Ordering::Release);
    }

    /// Returns whether free memory is never offered to the kernel.
    pub(crate) fn keeps_free_memory(&self) -> bool {
        self.keeps_free.load(Ordering::Relaxed) // Relaxed: under the heap's lock
    }

    /// Offers no more free memory to the kernel. The caller holds the heap's lock, or is the only one that knows this
    /// value.
    pub(crate) fn keep_free_memory(&self) {
        self.keeps_free.store(true, Ordering::Relaxed); // Relaxed: as above
    }

    /// Takes back what was offered to the kernel in a run of spans, whose contents do not change. The caller holds the
    /// heap's lock.
    pub(crate) fn take_back(&self, spans: &Range<usize>) -> Result<(), MapError> {
        let start = self.range.start().as_ptr().addr() as u64;
        let inspect = |errno| MapError { op: MapOp::Inspect, len: spans.len() * SPAN, errno };
        let mut parts = Vec::new();
        Inspector::open(None)
            .and_then(|pages| {
                let (from, len) = ((spans.start * SPAN) as u64, (spans.len() * SPAN) as u64);
                pages.each_populated(start + from, len, &mut |at, len| parts.push((at - start, len)))
            })
            .map_err(inspect)?;
        // A write fault makes the kernel keep an offered page.
        parts.iter().try_for_each(|&(at, len)| self.range.populate(at as usize, len as usize))
    }

    /// Returns the kind of near pages.
    pub(crate) fn kind(&self) -> PageKind {
        self.near.kind()
    }

    /// Returns the kind of near spans.
    pub(crate) fn span_kind(&self) -> SpanKind {
        if self.kind() == PageKind::Thp { SpanKind::Thp } else { SpanKind::Small }
    }

    /// Makes the span at an offset large, if the kernel has a large page. Contents do not change.
    pub(crate) fn make_large(&self, offset: usize) -> Result<(), MapError> {
        self.range.collapse(offset, SPAN)
    }

    /// Moves the contents of the span at an offset, which is on small pages, to a large page, which does not change them.
    /// The kernel refuses if it has none.
    pub(crate) fn move_to_large_page(&self, offset: usize) -> Result<(), MapError> {
        self.range.advise(offset, SPAN, PageKind::Thp)?;
        self.range
            .collapse(offset, SPAN)
            .inspect_err(|_| _ = self.range.advise(offset, SPAN, PageKind::Small))
    }

    /// Returns the address of the first span.
    pub(crate) fn start(&self) -> usize {
        self.range.start().as_ptr().addr()
    }

    /// Has the kernel forget that the pages of a run of spans were used. Returns `false` if it refuses.
    pub(crate) fn forget_use(&self, spans: &Range<usize>) -> bool {
        self.range.forget_use(spans.start * SPAN, spans.len() * SPAN).is_ok()
    }

    /// Makes a run of spans a mapping of its own, or joins it with its neighbours. `None` if the kernel refuses.
    pub(crate) fn set_apart(&self, spans: &Range<usize>, apart: bool) -> Option<()> {
        self.range.set_apart(spans.start * SPAN, spans.len() * SPAN, apart).ok()
    }

    /// Returns the backing that has the pages now. When the other one takes over, spans have the contents that they had.
    pub(crate) fn backing(&self) -> &dyn Backing {
        match self.far.get().filter(|_| self.is_far()) {
            None => &self.near,
            Some(far) => far,
        }
    }

    /// Returns how often near memory has refused `what`.
    pub(crate) fn refused(&self, what: Refusal) -> u64 {
        self.near.refused(what)
    }
}
