//! Finds slabs for the caches of threads, and the slab of a block that is freed.

use super::cache::SmallCache;
use super::class::{CLASSES, KINDS, SLAB_BYTES, TABLE, class_for};
use super::list::SlabList;
use super::slab::{Slab, WORDS, Word};
use crate::NotABlock;
use crate::sync::HeapLock;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use largesse_pages::{SPAN, Table, Zeroed};

/// Number of slab records of a span.
const SLABS: usize = SPAN / SLAB_BYTES[0];
/// Bytes in slabs without a block from which on [`SmallHeap::free`] asks for [`SmallHeap::reclaim`], besides an eighth of
/// all.
const RECLAIM_FROM: usize = SPAN;
/// Bit of [`SlabSpan::idle`] that is set while all slabs of the span are being removed.
const COMPLETE: u8 = 1 << 7;

/// A span of the range.
#[derive(Debug)]
struct SlabSpan {
    /// Kind of its slabs, plus one; 0 if it has no small blocks.
    kind: AtomicU8,
    /// Number of its slabs that were found idle, during [`SmallHeap::reclaim`].
    idle: AtomicU8,
}

// SAFETY: zero is a number, and the type has no destructor.
unsafe impl Zeroed for SlabSpan {}

/// A small block that was allocated just now.
#[derive(Clone, Copy, Debug)]
pub struct SmallBlock {
    /// Address of the block.
    pub start: NonNull<u8>,
    /// Whether the whole block is zero.
    pub is_zero: bool,
}

/// Allocates small blocks in spans of an address range that it gets one by one.
#[derive(Debug)]
pub struct SmallHeap {
    start: usize,
    spans: Table<SlabSpan>,
    slabs: Table<Slab>,
    words: Table<Word>,
    /// Slabs of each class that have free blocks and no owner.
    listed: [SlabList; CLASSES],
    /// Slabs of each kind that have no class.
    idle: [SlabList; KINDS],
    span_count: AtomicUsize,
    slab_bytes: AtomicUsize,
    /// Bytes of the slabs that lost their last block since the last [`SmallHeap::reclaim`].
    emptied: AtomicUsize,
    reclaiming: HeapLock<()>,
}

impl SmallHeap {
    /// Creates a heap without spans in the `len` bytes at `start`, a multiple of the span size; returns `None` if its
    /// tables cannot be mapped.
    #[must_use]
    pub fn new(start: usize, len: usize) -> Option<SmallHeap> {
        let spans = len / SPAN;
        Some(SmallHeap {
            start,
            spans: Table::new(spans)?,
            slabs: Table::new(spans * SLABS)?,
            words: Table::new(spans * SLABS * WORDS)?,
            listed: [(); CLASSES].map(|()| SlabList::default()),
            idle: [(); KINDS].map(|()| SlabList::default()),
            span_count: AtomicUsize::new(0),
            slab_bytes: AtomicUsize::new(0),
            emptied: AtomicUsize::new(0),
            reclaiming: HeapLock::new(()),
        })
    }

    /// Returns the number of spans that the heap has.
    // Relaxed, here and for the other counters: no memory depends on them.
    #[must_use]
    pub fn spans(&self) -> usize {
        self.span_count.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes in slabs that have a size class.
    #[must_use]
    pub fn slab_bytes(&self) -> usize {
        self.slab_bytes.load(Ordering::Relaxed)
    }

    /// Allocates a block of `size` bytes at a multiple of `align`, a power of two. `new_span` returns the address of a
    /// span that reads as zero, and is this heap's from now on. Returns `None` if `new_span` does, or if the block
    /// would not be small.
    #[inline]
    pub fn allocate(
        &self,
        cache: &SmallCache,
        size: usize,
        align: usize,
        new_span: impl FnOnce() -> Option<NonNull<u8>>,
    ) -> Option<SmallBlock> {
        let class = class_for(size, align)?;
        let (address, is_zero) = match cache.take(class) {
            Some(taken) => taken,
            None => self.allocate_slow(cache, class, new_span)?,
        };
        let start = NonNull::new(core::ptr::with_exposed_provenance_mut(address))?;
        Some(SmallBlock { start, is_zero })
    }

    #[cold]
    fn allocate_slow(
        &self,
        cache: &SmallCache,
        class: usize,
        new_span: impl FnOnce() -> Option<NonNull<u8>>,
    ) -> Option<(usize, bool)> {
        if !self.refill_from_slabs(cache, class) {
            let kind = TABLE[class].kind;
            let number = match self.idle[kind].pop(&self.slabs) {
                Some(number) => number,
                None => self.add_span(new_span()?, kind),
            };
            self.slabs[number as usize].prepare(class, &TABLE[class], self.words(number));
            self.slab_bytes.fetch_add(SLAB_BYTES[kind], Ordering::Relaxed);
            cache.set_slab(class, Some(number));
            self.refill_from_slabs(cache, class);
        }
        cache.take(class)
    }

    /// Fills a cache from the slab that its thread owns, or from one that is listed. Returns `false` if there is none.
    fn refill_from_slabs(&self, cache: &SmallCache, class: usize) -> bool {
        loop {
            let Some(number) = cache.slab(class) else {
                let Some(listed) = self.listed[class].pop(&self.slabs) else { return false };
                cache.set_slab(class, Some(listed));
                continue;
            };
            let slab = &self.slabs[number as usize];
            if let Some(taken) = slab.take_word(self.words(number)) {
                let first = self.slab_start(number, class) + taken.word * 64 * TABLE[class].size;
                cache.add(class, taken, first);
                return true;
            }
            // Before `detach`, after which the slab may have another owner.
            cache.set_slab(class, None);
            if !slab.detach() {
                cache.set_slab(class, Some(number));
            }
        }
    }

    /// Makes slabs of a new span. Returns the number of one, and lists the others.
    fn add_span(&self, start: NonNull<u8>, kind: usize) -> u32 {
        let span = (start.as_ptr().expose_provenance() - self.start) / SPAN;
        self.span_count.fetch_add(1, Ordering::Relaxed);
        // Relaxed: other threads get the span's blocks from this one.
        self.spans[span].kind.store(kind as u8 + 1, Ordering::Relaxed);
        let first = (span * SLABS) as u32;
        let slabs = (SPAN / SLAB_BYTES[kind]) as u32;
        // The first address is used first.
        for number in (first..first + slabs).rev() {
            self.slabs[number as usize].make_idle(true);
            if number != first {
                self.idle[kind].push(&self.slabs, number);
            }
        }
        first
    }

    /// Returns the number of the slab that contains an address of the range and the number of its class; `None` if no
    /// small block is there.
    #[inline]
    fn slab_at(&self, address: usize) -> Option<(u32, usize)> {
        let offset = address - self.start;
        let span = offset / SPAN;
        // Relaxed: as in `add_span`.
        let kind = usize::from(self.spans.get(span)?.kind.load(Ordering::Relaxed)).checked_sub(1)?;
        let number = span * SLABS + offset % SPAN / SLAB_BYTES[kind];
        let class = self.slabs[number].class()?;
        Some((number as u32, class))
    }

    /// Returns whether an address of the range is in a span of small blocks.
    #[inline]
    #[must_use]
    pub fn owns(&self, address: usize) -> bool {
        // Relaxed: as in `add_span`.
        self.spans
            .get((address - self.start) / SPAN)
            .is_some_and(|span| span.kind.load(Ordering::Relaxed) != 0)
    }

    fn slab_start(&self, number: u32, class: usize) -> usize {
        let number = number as usize;
        self.start + number / SLABS * SPAN + number % SLABS * SLAB_BYTES[TABLE[class].kind]
    }

    fn words(&self, number: u32) -> &[Word] {
        &self.words[number as usize * WORDS..][..WORDS]
    }

    /// Returns the slab, class and number of the block that starts at an address which the heap [owns](Self::owns).
    fn block_at(&self, address: usize) -> Result<(u32, usize, usize), NotABlock> {
        let (number, class) = self.slab_at(address).ok_or(NotABlock(address))?;
        let block = TABLE[class].block_at(address - self.slab_start(number, class));
        Ok((number, class, block.ok_or(NotABlock(address))?))
    }

    /// Frees a block at an address which the heap [owns](Self::owns), without access to its memory, in a thread that
    /// has a cache or none. Returns whether [`reclaim`](Self::reclaim) is due.
    #[inline]
    pub fn free(&self, cache: Option<&SmallCache>, address: usize) -> Result<bool, NotABlock> {
        let (number, class, block) = self.block_at(address)?;
        if self.words(number)[block / 64].is_free(block) {
            return Err(NotABlock(address));
        }
        if let Some(was_in_use) = cache.and_then(|cache| cache.put(class, number, block)) {
            return if was_in_use { Ok(false) } else { Err(NotABlock(address)) };
        }
        let (slab, words) = (&self.slabs[number as usize], self.words(number));
        let freed = slab.free(words, &TABLE[class], block).ok_or(NotABlock(address))?;
        if freed.attached {
            self.listed[class].push(&self.slabs, number);
        }
        if freed.word_is_full && slab.is_empty(words, &TABLE[class]) {
            let bytes = SLAB_BYTES[TABLE[class].kind];
            let emptied = self.emptied.fetch_add(bytes, Ordering::Relaxed) + bytes;
            // An eighth of all: each reclamation looks at all listed slabs.
            return Ok(emptied >= RECLAIM_FROM + self.spans() * SPAN / 8);
        }
        Ok(false)
    }

    /// Returns whether a slab lost its last block since the last [`reclaim`](Self::reclaim).
    #[must_use]
    pub fn has_emptied(&self) -> bool {
        self.emptied.load(Ordering::Relaxed) > 0
    }

    /// Returns the number of bytes that the owner of a block may use, for an address which the heap
    /// [owns](Self::owns).
    pub fn usable(&self, address: usize) -> Result<usize, NotABlock> {
        self.block_at(address).map(|(_, class, _)| TABLE[class].size)
    }

    /// Returns whether a block of `usable` bytes is to be kept when it is resized to `size` bytes.
    #[must_use]
    pub fn fits(usable: usize, size: usize) -> bool {
        size <= usable && (size > usable / 2 || usable <= 64)
    }

    /// Makes slabs without blocks available to every class, and calls `release` with each span that has no block. The
    /// caller does not run in a signal handler that could interrupt this function in the same thread.
    pub fn reclaim(&self, mut release: impl FnMut(NonNull<u8>)) {
        self.reclaiming.with(|()| {
            self.emptied.store(0, Ordering::Relaxed);
            for (class, list) in TABLE.iter().zip(&self.listed) {
                list.take_all(&self.slabs, |number| {
                    let slab = &self.slabs[number as usize];
                    if slab.is_empty(self.words(number), class) {
                        slab.make_idle(false);
                        self.slab_bytes.fetch_sub(SLAB_BYTES[class.kind], Ordering::Relaxed);
                        self.idle[class.kind].push(&self.slabs, number);
                    } else {
                        list.push(&self.slabs, number);
                    }
                });
            }
            (0..KINDS).for_each(|kind| self.release_spans(kind, &mut release));
        });
    }

    /// Calls `release` with each span all of whose slabs are idle. The caller holds the lock.
    fn release_spans(&self, kind: usize, release: &mut impl FnMut(NonNull<u8>)) {
        let slabs = (SPAN / SLAB_BYTES[kind]) as u8;
        let aside = SlabList::default();
        let span_of = |number: u32| &self.spans[number as usize / SLABS];
        // Relaxed, here and below: under the lock.
        self.idle[kind].take_all(&self.slabs, |number| {
            span_of(number).idle.fetch_add(1, Ordering::Relaxed);
            aside.push(&self.slabs, number);
        });
        aside.take_all(&self.slabs, |number| {
            let span = span_of(number);
            let idle = span.idle.load(Ordering::Relaxed);
            let left = if idle == slabs { COMPLETE | (slabs - 1) } else { idle - 1 };
            span.idle.store(left, Ordering::Relaxed);
            if left & COMPLETE == 0 {
                self.idle[kind].push(&self.slabs, number);
            } else if left == COMPLETE {
                span.idle.store(0, Ordering::Relaxed);
                span.kind.store(0, Ordering::Relaxed);
                self.span_count.fetch_sub(1, Ordering::Relaxed);
                let start = self.start + number as usize / SLABS * SPAN;
                NonNull::new(core::ptr::with_exposed_provenance_mut(start))
                    .into_iter()
                    .for_each(&mut *release);
            }
        });
    }

    /// Returns everything that a cache has, whose thread has ended or calls this.
    pub fn give_back(&self, cache: &SmallCache) {
        for class in 0..CLASSES {
            if let Some((number, taken)) = cache.remove(class) {
                let slab = &self.slabs[number as usize];
                if taken.free != 0 {
                    slab.put_back(self.words(number), taken);
                }
                if !slab.detach() {
                    self.listed[class].push(&self.slabs, number);
                }
            }
        }
    }

    /// Locks the heap before `fork`, until one of the two `after_fork` functions is called. Other threads still
    /// allocate and free, without a lock.
    pub fn before_fork(&self) {
        self.reclaiming.keep_across_fork();
    }

    /// Unlocks the heap in the parent, after `fork`.
    pub fn after_fork_in_parent(&self) {
        self.reclaiming.release_after_fork();
    }

    /// Unlocks the heap in the child, after `fork`, on the child's only thread.
    pub fn after_fork_in_child(&self) {
        self.reclaiming.reset();
    }
}

#[cfg(all(test, not(miri)))]
mod tests;
