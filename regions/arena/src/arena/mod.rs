//! Allocates, resizes and frees extents.

mod change_over;
mod commit;
mod find;
mod free;
mod relocate;

use crate::bins::Bins;
use crate::extent::{ExtentState, Extents};
use crate::retention::Retention;
use crate::span::Spans;
use crate::{Backing, GRANULE, PER_SPAN, Purged, SpanKind};
use core::ops::Range;
use core::ptr::NonNull;
use largesse_pages::{MapError, SPAN};

/// A number of granules, or the index of a granule from the start of the range.
pub type Granules = u32;

/// Selects the kind of memory that a request prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefer {
    /// Memory that is warm: its first touch was already paid.
    Warm,
    /// Memory that is warm, or else small pages, because much of the extent may never be touched.
    Sparse,
    /// Memory without pages, because pages will be moved into it.
    Cold,
}

/// Describes a request for an extent.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Length in granules, at least 1.
    pub granules: Granules,
    /// Alignment in granules, a power of two: the extent starts at `phase` modulo `align`.
    pub align: Granules,
    /// Required remainder of the first granule modulo `align`, in granules.
    pub phase: Granules,
    /// Kind of memory that the request prefers.
    pub prefer: Prefer,
}

/// Describes an allocated extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Index of the extent's first granule.
    pub at: Granules,
    /// Number of bytes of the extent whose first touch is still to be paid.
    pub cold_bytes: usize,
}

/// Tells why no extent was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeError {
    /// No free extent is long enough.
    RangeFull,
    /// The backing refused the memory.
    NoMemory(MapError),
}

/// Numbers of bytes, summed over the arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaTotals {
    /// Number of bytes in allocated extents.
    pub live: usize,
    /// Highest value of `live` since the start.
    pub peak: usize,
    /// Number of bytes in warm spans: those that have memory.
    pub warm: usize,
    /// Number of bytes returned to the backing since the start.
    pub returned: usize,
}

/// Allocates extents over one backing (see the picture in the documentation of the crate).
#[derive(Debug)]
pub struct Arena<B> {
    pub(crate) backing: B,
    pub(crate) extents: Extents,
    pub(crate) bins: Bins,
    pub(crate) spans: Spans,
    pub(crate) retention: Retention,
    pub(crate) totals: ArenaTotals,
    /// Number of bytes that may be warm without the process reaching its memory limit.
    pub(crate) limit: usize,
    /// Whether spans were given small pages, so that the arena stays below `limit` or because requests are sparse.
    made_small: bool,
    /// Number of warm spans up to which short requests get small pages.
    small_first: usize,
}

impl<B: Backing> Arena<B> {
    /// Creates an arena over the whole range of `backing`, or returns `None` if its tables cannot be mapped or the
    /// range has too many granules.
    pub fn new(backing: B, retention: Retention) -> Option<Arena<B>> {
        let spans = backing.spans();
        let granules = u32::try_from(spans * PER_SPAN).ok()?;
        let mut arena = Arena {
            extents: Extents::new(granules as usize)?,
            bins: Bins::new(),
            spans: Spans::new(spans)?,
            backing,
            retention,
            totals: ArenaTotals::default(),
            limit: usize::MAX,
            made_small: false,
            small_first: 0,
        };
        arena.extents.define(0, granules, ExtentState::Free, 0);
        arena.bins.link(&mut arena.extents, 0);
        Some(arena)
    }

    /// Sets the arena's limit: the number of bytes that may be warm without the process reaching its memory limit.
    /// Beyond it, no memory is populated ahead of need, and blocks get small pages.
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Gives small pages to requests below two spans until `spans` spans are warm; later ones get large pages.
    pub fn start_on_small_pages(&mut self, spans: usize) {
        self.small_first = spans;
    }

    /// Lowers the limit so that only the part `1 / sharers` of the room that is left may become warm.
    pub fn share_limit(&mut self, sharers: usize) {
        self.limit = self.limit.min(self.spans.warm() * SPAN + self.room() / sharers);
    }

    /// Returns the number of bytes that may still become warm before the limit is reached.
    #[must_use]
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.spans.warm() * SPAN)
    }

    /// Returns whether the arena would exceed its limit if every block were touched.
    #[must_use]
    pub fn exceeds_limit(&self) -> bool {
        self.spans.warm() > self.limit / SPAN
    }

    /// Returns whether more than a quarter of the limit is warm, in which case free memory is offered to the kernel.
    #[must_use]
    pub fn is_near_limit(&self) -> bool {
        self.spans.warm() * SPAN > self.limit / 4
    }

    /// Returns the number of bytes from the start of the range to the end of the last span that was ever committed.
    #[must_use]
    pub fn used_range(&self) -> usize {
        self.spans.top() * SPAN
    }

    /// Allocates an extent: warm memory first, then the best fit, then the lowest address.
    pub fn take(&mut self, request: Request, now: u32) -> Result<Taken, TakeError> {
        let (at, from) = self.find(request).ok_or(TakeError::RangeFull)?;
        let window = at..at + request.granules;
        self.cut(from, &window);
        self.extents.define(at, request.granules, ExtentState::Used, now);
        match self.make_usable(&window, request.prefer) {
            Ok(cold_bytes) => {
                self.backing.wanted(at as usize * GRANULE, request.granules as usize * GRANULE, true);
                Ok(Taken { at, cold_bytes })
            }
            Err(error) => {
                self.link_free(at, request.granules, now);
                Err(TakeError::NoMemory(error))
            }
        }
    }

    /// Frees an extent. If `maybe_untouched`, spans of it that were never touched become cold.
    pub fn give_back(&mut self, at: Granules, maybe_untouched: bool, now: u32) {
        let len = self.extents.get(at).len;
        let window = at..at + len;
        self.spans.set_dirty(at as usize..window.end as usize);
        if maybe_untouched {
            for span in whole_spans(&window) {
                let kind = self.spans.get(span).kind;
                if kind.from_pool() || self.backing.any_resident(span) {
                    continue;
                }
                // A span without resident pages may be swapped out: only purging makes it zero.
                // SAFETY: the span lies wholly inside an extent that was freed.
                if unsafe { self.backing.purge(span, 1, kind) } == Purged::Kept {
                    self.spans.set_cold(span);
                }
            }
        }
        self.backing.wanted(at as usize * GRANULE, len as usize * GRANULE, false);
        self.totals.live -= len as usize * GRANULE;
        let free = self.link_free(at, len, now);
        if self.is_near_limit() {
            self.offer(&free, &window);
        }
        self.totals.warm = self.spans.warm() * SPAN;
    }

    /// Extends an extent in place. Returns `false` if the memory behind it is in use or cannot be committed.
    pub fn grow(&mut self, at: Granules, granules: Granules, now: u32) -> bool {
        let len = self.extents.get(at).len;
        let Some(more) = granules.checked_sub(len) else { return false };
        let Some(next) = self.extents.free_after(at) else { return false };
        let owner = self.owner(at);
        let room = self.extents.get(next).len;
        if room < more {
            return false;
        }
        let window = next..next + more;
        self.cut(next, &window);
        self.extents.define(next, more, ExtentState::Used, now);
        if self.make_usable(&window, Prefer::Warm).is_err() {
            self.link_free(next, more, now);
            return false;
        }
        self.backing.wanted(next as usize * GRANULE, more as usize * GRANULE, true);
        self.extents.forget(next);
        self.extents.define(at, granules, ExtentState::Used, now);
        self.set_owner(at, owner);
        true
    }

    /// Frees the part of an extent after its first `granules` granules.
    pub fn shrink(&mut self, at: Granules, granules: Granules, now: u32) {
        let len = self.extents.get(at).len;
        if granules == 0 || granules >= len {
            return;
        }
        let owner = self.owner(at);
        self.extents.define(at, granules, ExtentState::Used, now);
        self.set_owner(at, owner);
        self.extents.define(at + granules, len - granules, ExtentState::Used, now);
        self.give_back(at + granules, false, now);
    }

    /// Returns the address of a granule.
    #[must_use]
    pub fn address(&self, at: Granules) -> NonNull<u8> {
        // SAFETY: granule numbers come from this arena, so that the offset is inside the range.
        unsafe { self.backing.start().add(at as usize * GRANULE) }
    }

    /// Returns the used extent whose first granule contains an address, and its length in granules.
    #[must_use]
    pub fn used_at(&self, address: usize) -> Option<(Granules, Granules)> {
        let offset = address.checked_sub(self.backing.start().as_ptr().addr())?;
        let at = u32::try_from(offset / GRANULE).ok()?;
        if at as usize >= self.backing.spans() * PER_SPAN {
            return None;
        }
        let entry = self.extents.get(at);
        (entry.state == ExtentState::Used).then_some((at, entry.len))
    }

    /// Returns the tag that the arena's owner gave a used extent.
    #[must_use]
    pub fn owner(&self, at: Granules) -> u32 {
        self.extents.get(at).next
    }

    /// Sets the tag of a used extent, which has a meaning for the arena's owner only.
    pub fn set_owner(&mut self, at: Granules, tag: u32) {
        self.extents.get_mut(at).next = tag;
    }

    /// Returns the kinds of pages of an extent in address order, as runs: the number of spans, and their kind.
    pub fn kinds(&self, at: Granules) -> impl Iterator<Item = (usize, SpanKind)> {
        let mut spans = spans_of(&(at..at + self.extents.get(at).len));
        core::iter::from_fn(move || {
            let kind = self.spans.get(spans.clone().next()?).kind;
            let end = spans.clone().find(|&span| self.spans.get(span).kind != kind).unwrap_or(spans.end);
            let run = end - spans.start;
            spans.start = end;
            Some((run, kind))
        })
    }

    /// Returns the first run of dirty granules in `range`, which may hold something other than zero.
    #[must_use]
    pub fn dirty_run(&self, range: Range<Granules>) -> Option<Range<Granules>> {
        let run = self.spans.dirty_run(range.start as usize..range.end as usize)?;
        Some(run.start as u32..run.end as u32)
    }

    /// Returns the numbers of live, warm and returned bytes of the arena.
    #[must_use]
    pub fn totals(&self) -> ArenaTotals {
        self.totals
    }

    /// Returns the backing of the arena.
    #[must_use]
    pub fn backing(&self) -> &B {
        &self.backing
    }

    /// Returns the first run of spans of one kind: its first span and its number of spans.
    #[must_use]
    pub fn first_run_of(&self, kind: SpanKind) -> Option<(usize, usize)> {
        let end = self.spans.top();
        let first = (0..end).find(|&span| self.spans.get(span).kind == kind)?;
        let last = (first..end).find(|&span| self.spans.get(span).kind != kind).unwrap_or(end);
        Some((first, last - first))
    }

    /// Returns the first span at or after `from` that is warm and on small pages.
    #[must_use]
    pub fn small_span_from(&self, from: usize) -> Option<usize> {
        (from..self.spans.top()).find(|&span| {
            let span = self.spans.get(span);
            span.warm && span.kind == SpanKind::Small
        })
    }

    /// Records that spans changed their kind without the arena: a forked child demoted their pages, or the kernel has put
    /// their contents on large ones.
    pub fn rekind(&mut self, first: usize, spans: usize, kind: SpanKind) {
        self.spans.set_kind(first..first + spans, kind);
    }
}

/// Returns the spans that contain any of the granules `window`.
pub(crate) fn spans_of(window: &Range<Granules>) -> Range<usize> {
    window.start as usize / PER_SPAN..(window.end as usize).div_ceil(PER_SPAN)
}

/// Returns the spans that lie wholly inside the granules `window`.
pub(crate) fn whole_spans(window: &Range<Granules>) -> Range<usize> {
    let first = (window.start as usize).div_ceil(PER_SPAN);
    first..(window.end as usize / PER_SPAN).max(first)
}
