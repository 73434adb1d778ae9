//! Implements marking: traces all objects reachable from the roots.

use crate::blocks::{GROUP, Offset};
use crate::language::{AHEAD, ALONE, CUSTOM, Item, OLD, TOGETHER, TraceMode, VERIFY};
use crate::mark_queues::MarkQueues;
use crate::reached::Reached;
use crate::sync::{Mutex, lock};
use crate::worker_pool::WorkerPool;
use crate::{Language, Layout, Tracer, Word};
use core::ptr::NonNull;

/// Number of slots scanned at once. The rest of a longer vector goes back on the stack, from which another worker can
/// take it.
const CHUNK: usize = 1024;

/// Number of objects traced between two checks for idle workers.
const HOPS: usize = 128;

/// Number of steps, of [`HOPS`] objects each, before helper threads are woken: most collections of a small heap end
/// earlier.
const UNHELPED: usize = 64;

/// Lowest number of items on the stack at which a worker shares some. It is low, because each item may be the start of
/// a long list.
const WORTH_LEAVING: usize = 2;

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

/// Prefetches memory beyond the end of a list that ran through memory in one direction, because the list probably
/// continues there and the hardware prefetcher stops at page boundaries.
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

impl<L: Language> Tracer<'_, L> {
    /// Scans up to [`HOPS`] items; returns `false` when none is left.
    fn step<const MODE: u8>(&mut self) -> bool {
        for _ in 0..HOPS {
            let Some(item) = self.next() else { return false };
            match item.words {
                2 if MODE != VERIFY => self.pairs::<MODE>(item),
                // SAFETY: the object was reached, so it is alive; the world is stopped.
                CUSTOM => unsafe { self.language.trace(item.at, self) },
                OLD => self.scan_old::<MODE>(item.at),
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

    /// Marks the pairs that follow a pair in a list, as far as their marks share one 64-bit word. Writes that word
    /// once, and scans the last of these pairs.
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

    /// Scans up to [`CHUNK`] slots of an item, and pushes the rest of it back. It scans the last slot first: so the
    /// first slot, a list's element, is on top of the stack and scanned next, while only the rest of the list waits
    /// below.
    #[inline(always)]
    pub(crate) fn scan<const MODE: u8>(&mut self, item: Item) {
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

    /// Scans until no item is left, and shares the work with the worker pool when there are many items. Returns the
    /// addresses of the reached objects of [`Layout::Weak`].
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

    /// Traces all items without marking, and returns the reached objects.
    pub(crate) fn look(mut self) -> Reached {
        while self.step::<VERIFY>() {}
        self.reached
    }
}
