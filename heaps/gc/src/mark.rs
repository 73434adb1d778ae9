//! Marking: traces all objects reachable from the roots.

use crate::blocks::{Blocks, GROUP, Offset};
use crate::mark_queues::MarkQueues;
use crate::sync::{Mutex, lock};
use crate::verify::Reached;
use crate::worker_pool::WorkerPool;
use crate::{Language, Layout, Word};
use core::ptr::NonNull;

/// Number of slots scanned at once; the rest of a longer vector goes back on the stack, from which it can be shared.
const CHUNK: usize = 1024;

/// Number of objects traced between two checks for idle workers.
const HOPS: usize = 128;

/// Number of objects whose memory is prefetched before they are scanned.
const AHEAD: usize = 8;

/// Number of steps before helper threads are woken: most collections of a small heap end earlier.
const UNHELPED: usize = 64;

/// Lowest stack height from which a worker shares items. It is low as the items may be long lists.
const WORTH_LEAVING: usize = 2;

/// An item is an object, or part of one, to be scanned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    at: NonNull<u64>,
    /// Number of slots from there on, or [`CUSTOM`].
    words: usize,
}

// SAFETY: an address within the heap, which all workers only read while the world is stopped.
unsafe impl Send for Item {}

/// This length marks an item whose slots the language shows.
const CUSTOM: usize = usize::MAX;

/// Prefetches the cache line at an address.
#[inline(always)]
fn prefetch(at: *const u64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing, whatever the address is.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// Prefetches beyond the end of a list that ran through memory in one direction: it probably continues, and the
/// hardware prefetcher stops at page boundaries.
#[inline(always)]
fn fetch_further(from: NonNull<u64>, to: NonNull<u64>) {
    let direction = to.as_ptr().addr().wrapping_sub(from.as_ptr().addr()).cast_signed();
    if direction.unsigned_abs() < GROUP / 2 {
        return;
    }
    for line in 0..GROUP / 64 {
        let distance = (GROUP + line * 64).cast_signed() * direction.signum();
        prefetch(to.as_ptr().wrapping_byte_offset(distance));
    }
}

/// Holds the marker's state, and receives the slots that a [`Language`] shows.
#[derive(Debug)]
pub struct Tracer<'a, L> {
    language: &'a L,
    blocks: &'a Blocks,
    stack: Vec<Item>,
    /// Ring of items taken from the stack, whose memory is being prefetched; `turn` is the newest.
    ahead: [Option<Item>; AHEAD],
    turn: usize,
    /// Addresses of the reached objects of [`Layout::Weak`].
    weak: Vec<usize>,
    mode: TraceMode,
    /// The objects reached in [`TraceMode::Verify`].
    reached: Reached,
}

/// Selects the effect of reaching an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceMode {
    /// Marks the object without atomics, as no other worker marks.
    Alone,
    /// Marks the object atomically, as other workers mark, too.
    Together,
    /// Marks nothing, and panics when an invariant is broken.
    Verify,
}

const ALONE: u8 = TraceMode::Alone as u8;
const TOGETHER: u8 = TraceMode::Together as u8;
const VERIFY: u8 = TraceMode::Verify as u8;

impl<'a, L: Language> Tracer<'a, L> {
    pub(crate) fn new(language: &'a L, blocks: &'a Blocks) -> Tracer<'a, L> {
        Tracer {
            language,
            blocks,
            stack: Vec::new(),
            ahead: [None; AHEAD],
            turn: 0,
            weak: Vec::new(),
            mode: TraceMode::Alone,
            reached: Reached::default(),
        }
    }

    /// Creates a tracer that marks nothing, and panics when an invariant is broken.
    pub(crate) fn verifying(language: &'a L, blocks: &'a Blocks) -> Tracer<'a, L> {
        Tracer { mode: TraceMode::Verify, ..Tracer::new(language, blocks) }
    }

    /// Traces the object that a slot or root refers to.
    #[inline]
    pub fn word(&mut self, word: Word) {
        if let Some(object) = L::reference(word) {
            self.object(object);
        }
    }

    /// Traces `words` slots from `start` on.
    ///
    /// # Safety
    /// The slots can be read, and lie in an object of the heap.
    #[inline]
    pub unsafe fn words(&mut self, start: NonNull<u64>, words: usize) {
        if words > 0 {
            self.stack.push(Item { at: start, words });
        }
    }

    /// Marks a reachable object and puts it on the stack.
    #[inline]
    pub(crate) fn object(&mut self, object: NonNull<u64>) {
        let Some(offset) = self.blocks.offset(object.as_ptr().addr()) else { return };
        let item = match self.mode {
            TraceMode::Alone => self.reach::<ALONE>(object, offset),
            TraceMode::Together => self.reach::<TOGETHER>(object, offset),
            TraceMode::Verify => self.reach::<VERIFY>(object, offset),
        };
        self.stack.extend(item);
    }

    /// Marks an object; returns the item to scan when it was unmarked before and has slots.
    #[inline(always)]
    fn reach<const MODE: u8>(&mut self, object: NonNull<u64>, offset: Offset) -> Option<Item> {
        let first_time = match MODE {
            ALONE => self.blocks.mark::<false>(offset),
            TOGETHER => self.blocks.mark::<true>(offset),
            _ => self.reached.first_time(object, offset, self.blocks),
        };
        if !first_time {
            return None;
        }
        let block = self.blocks.at_offset(offset);
        if block.layout() == Layout::Slots {
            return Some(Item { at: object, words: block.words() });
        }
        if block.layout() == Layout::Weak {
            self.weak.push(object.as_ptr().expose_provenance());
        }
        (block.layout() == Layout::Custom).then_some(Item { at: object, words: CUSTOM })
    }

    /// Scans up to [`HOPS`] items; returns `false` when none is left.
    fn step<const MODE: u8>(&mut self) -> bool {
        for _ in 0..HOPS {
            let Some(item) = self.next() else { return false };
            match item.words {
                2 if MODE != VERIFY => self.pairs::<MODE>(item),
                // SAFETY: the object was reached, so it is alive; the world is stopped.
                CUSTOM => unsafe { self.language.trace(item.at, self) },
                _ => self.scan::<MODE>(item),
            }
        }
        true
    }

    /// Returns the item that was taken from the stack [`AHEAD`] calls ago, whose memory has been prefetched since.
    #[inline(always)]
    fn next(&mut self) -> Option<Item> {
        while let Some(item) = self.stack.pop() {
            prefetch(item.at.as_ptr());
            self.turn = (self.turn + 1) % AHEAD;
            let before = self.ahead[self.turn].replace(item);
            if before.is_some() {
                return before;
            }
        }
        (1..=AHEAD).find_map(|step| self.ahead[(self.turn + step) % AHEAD].take())
    }

    /// Returns the object that a slot of a live object refers to, and its offset.
    #[inline(always)]
    fn target(&self, at: NonNull<u64>, index: usize) -> Option<(NonNull<u64>, Offset)> {
        // SAFETY: the caller's index is within the object.
        let word = unsafe { at.cast::<Word>().add(index).read() };
        let object = L::reference(word)?;
        Some((object, self.blocks.offset(object.as_ptr().addr())?))
    }

    /// Marks the pairs that follow a pair in a list for as long as their marks share one word, writes that word once,
    /// and scans the last pair.
    ///
    /// When several workers mark, two may follow the same list until they write their marks. A worker that then finds
    /// its last pair marked by another abandons it: the other has scanned it, or reached it first and will.
    #[inline(always)]
    fn pairs<const MODE: u8>(&mut self, item: Item) {
        let mut at = item.at;
        let Some(mut offset) = self.blocks.offset(at.as_ptr().addr()) else { return };
        let block = self.blocks.at_offset(offset);
        if block.words() != 2 || block.layout() != Layout::Slots {
            // The rest of a longer object.
            return self.scan::<MODE>(item);
        }
        let mut group = self.blocks.group(offset);
        while let Some((rest, to)) = self.target(at, 1)
            && group.has(to)
            && self.target(at, 0).is_none_or(|(_, first)| match group.has(first) {
                true => group.is_marked(first),
                false => self.blocks.is_marked(first),
            })
            && group.mark(to)
        {
            (at, offset) = (rest, to);
        }
        fetch_further(item.at, at);
        if group.write(offset, MODE == TOGETHER) {
            self.scan::<MODE>(Item { at, words: 2 });
        }
    }

    /// Scans any number of slots. The first slot ends on top of the stack, so that the stack holds the rest of a list
    /// while an element is scanned, instead of all elements.
    #[inline(always)]
    fn scan<const MODE: u8>(&mut self, item: Item) {
        let now = item.words.min(CHUNK);
        if now < item.words {
            // SAFETY: the address is within the object, as `now < item.words`.
            let at = unsafe { item.at.add(now) };
            self.stack.push(Item { at, words: item.words - now });
        }
        for index in (0..now).rev() {
            if let Some((object, offset)) = self.target(item.at, index) {
                let found = self.reach::<MODE>(object, offset);
                self.stack.extend(found);
            }
        }
    }

    /// Scans until no item is left, with the worker pool when there are many. Returns the addresses of the reached
    /// objects of [`Layout::Weak`].
    pub(crate) fn drain(&mut self, pool: &WorkerPool) -> Vec<usize> {
        let mut steps = 0;
        // A single long list cannot be shared.
        while pool.workers() == 1 || steps < UNHELPED || self.stack.len() < 2 {
            if !self.step::<ALONE>() {
                return core::mem::take(&mut self.weak);
            }
            steps += 1;
        }
        let queues = MarkQueues::new(pool.workers());
        let ahead = core::mem::take(&mut self.ahead).into_iter().flatten();
        queues.put(0, ahead.chain(self.stack.drain(..)));
        let weak = Mutex::new(core::mem::take(&mut self.weak));
        let (language, blocks) = (self.language, self.blocks);
        pool.run(&|worker| {
            let mut tracer = Tracer { mode: TraceMode::Together, ..Tracer::new(language, blocks) };
            while queues.get(worker, &mut tracer.stack) {
                while tracer.step::<TOGETHER>() {
                    if queues.wants(worker) && tracer.stack.len() >= WORTH_LEAVING {
                        queues.leave(worker, &mut tracer.stack);
                    }
                }
            }
            lock(&weak).append(&mut tracer.weak);
        });
        core::mem::take(&mut *lock(&weak))
    }

    /// Traces everything and returns the reached objects.
    pub(crate) fn look(mut self) -> Reached {
        while self.step::<VERIFY>() {}
        self.reached
    }
}
