//! Marking: from the roots to everything that can be reached.

use crate::blocks::{Blocks, GROUP, Offset};
use crate::worker_pool::Crew;
use crate::mark_queues::Shelves;
use crate::sync::{Mutex, lock};
use crate::verify::Reached;
use crate::{Language, Layout, Word};
use core::ptr::NonNull;

/// Slots that are scanned in one go; the rest of a long vector is work for anybody.
const CHUNK: usize = 1024;

/// Objects that are followed before a worker looks whether others have nothing to do.
const HOPS: usize = 128;

/// Objects whose memory is fetched before they are scanned.
const AHEAD: usize = 8;

/// So many steps are made before helpers are woken: most collections of a small heap end before.
const UNHELPED: usize = 64;

/// A worker whose stack is lower leaves nothing to others. Low: what is left may be long lists.
const WORTH_LEAVING: usize = 2;

/// Something to scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    at: NonNull<u64>,
    /// Slots from there on, or [`CUSTOM`].
    words: usize,
}

// SAFETY: an address within the heap, which all workers read while the world stands still.
unsafe impl Send for Item {}

/// The language says what the slots are.
const CUSTOM: usize = usize::MAX;

/// Let memory come closer, which is read soon.
#[inline(always)]
fn prefetch(at: *const u64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: nothing is read, whatever the address is.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// A list that went through memory in order for a while goes on so, most likely, and faster than the processor guesses
/// from page to page.
#[inline(always)]
fn fetch_further(from: NonNull<u64>, to: NonNull<u64>) {
    let way = to.as_ptr().addr().wrapping_sub(from.as_ptr().addr()).cast_signed();
    if way.unsigned_abs() < GROUP / 2 {
        return;
    }
    for line in 0..GROUP / 64 {
        let distance = (GROUP + line * 64).cast_signed() * way.signum();
        prefetch(to.as_ptr().wrapping_byte_offset(distance));
    }
}

/// Receives the slots that a [`Language`] shows.
#[derive(Debug)]
pub struct Tracer<'a, L> {
    language: &'a L,
    blocks: &'a Blocks,
    stack: Vec<Item>,
    /// What was taken from it and is scanned next, in a ring; and which of them is the newest.
    ahead: [Option<Item>; AHEAD],
    turn: usize,
    /// Addresses of objects of weak slots that were reached.
    weak: Vec<usize>,
    way: Way,
    /// For [`Way::Look`].
    reached: Reached,
}

/// What it means to reach an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Mark it; nobody else does.
    Alone,
    /// Mark it; others do, too.
    Together,
    /// Mark nothing, and complain about what is wrong.
    Look,
}

const ALONE: u8 = Way::Alone as u8;
const TOGETHER: u8 = Way::Together as u8;
const LOOK: u8 = Way::Look as u8;

impl<'a, L: Language> Tracer<'a, L> {
    pub(crate) fn new(language: &'a L, blocks: &'a Blocks) -> Tracer<'a, L> {
        Tracer {
            language,
            blocks,
            stack: Vec::new(),
            ahead: [None; AHEAD],
            turn: 0,
            weak: Vec::new(),
            way: Way::Alone,
            reached: Reached::default(),
        }
    }

    /// A tracer that marks nothing, and complains about what it meets.
    pub(crate) fn verifying(language: &'a L, blocks: &'a Blocks) -> Tracer<'a, L> {
        Tracer { way: Way::Look, ..Tracer::new(language, blocks) }
    }

    /// A slot, or a root.
    #[inline]
    pub fn word(&mut self, word: Word) {
        if let Some(object) = L::reference(word) {
            self.object(object);
        }
    }

    /// `words` slots from `start` on.
    ///
    /// # Safety
    /// They can be read, and lie in an object of the heap.
    #[inline]
    pub unsafe fn words(&mut self, start: NonNull<u64>, words: usize) {
        if words > 0 {
            self.stack.push(Item { at: start, words });
        }
    }

    /// An object that can be reached.
    #[inline]
    pub(crate) fn object(&mut self, object: NonNull<u64>) {
        let Some(offset) = self.blocks.offset(object.as_ptr().addr()) else { return };
        let item = match self.way {
            Way::Alone => self.reach::<ALONE>(object, offset),
            Way::Together => self.reach::<TOGETHER>(object, offset),
            Way::Look => self.reach::<LOOK>(object, offset),
        };
        self.stack.extend(item);
    }

    /// Reach an object; the first time, if it has slots, they are to be scanned.
    #[inline(always)]
    fn reach<const WAY: u8>(&mut self, object: NonNull<u64>, offset: Offset) -> Option<Item> {
        let first_time = match WAY {
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

    /// Scan the top of the stack and what it leads to, for a while. `false`: nothing was left.
    fn step<const WAY: u8>(&mut self) -> bool {
        for _ in 0..HOPS {
            let Some(item) = self.next() else { return false };
            match item.words {
                2 if WAY != LOOK => self.pairs::<WAY>(item),
                // SAFETY: the object was reached, so it is alive; the world stands still.
                CUSTOM => unsafe { self.language.trace(item.at, self) },
                _ => self.scan::<WAY>(item),
            }
        }
        true
    }

    /// What was taken from the stack a few steps ago: until now its memory was on the way.
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

    /// The object that a slot of a live object refers to, and where it lies.
    #[inline(always)]
    fn target(&self, at: NonNull<u64>, index: usize) -> Option<(NonNull<u64>, Offset)> {
        // SAFETY: the caller's index is within the object.
        let word = unsafe { at.cast::<Word>().add(index).read() };
        let object = L::reference(word)?;
        Some((object, self.blocks.offset(object.as_ptr().addr())?))
    }

    /// A pair, and those that its second slot leads to as long as their marks lie in one word: a list that was made at
    /// once is marked word by word.
    ///
    /// When several mark, two may follow the same list until they write their marks. Whoever finds then that the
    /// pair it came to was marked by another leaves it: that one has scanned it, or came to it, too, and was first.
    #[inline(always)]
    fn pairs<const WAY: u8>(&mut self, item: Item) {
        let mut at = item.at;
        let Some(mut offset) = self.blocks.offset(at.as_ptr().addr()) else { return };
        let block = self.blocks.at_offset(offset);
        if block.words() != 2 || block.layout() != Layout::Slots {
            // The rest of something longer.
            return self.scan::<WAY>(item);
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
        if group.write(offset, WAY == TOGETHER) {
            self.scan::<WAY>(Item { at, words: 2 });
        }
    }

    /// Any number of slots. The first is on top of the stack: it holds the rest of a list while an element is scanned,
    /// and not all elements while the list is.
    #[inline(always)]
    fn scan<const WAY: u8>(&mut self, item: Item) {
        let now = item.words.min(CHUNK);
        if now < item.words {
            // SAFETY: still within the object.
            let at = unsafe { item.at.add(now) };
            self.stack.push(Item { at, words: item.words - now });
        }
        for index in (0..now).rev() {
            if let Some((object, offset)) = self.target(item.at, index) {
                let found = self.reach::<WAY>(object, offset);
                self.stack.extend(found);
            }
        }
    }

    /// Scan until nothing is left; with the help of the crew, if there is much. Answers with the addresses of objects of
    /// weak slots that were reached.
    pub(crate) fn drain(&mut self, crew: &Crew) -> Vec<usize> {
        let mut steps = 0;
        // A single long list is nothing that could be shared.
        while crew.workers() == 1 || steps < UNHELPED || self.stack.len() < 2 {
            if !self.step::<ALONE>() {
                return core::mem::take(&mut self.weak);
            }
            steps += 1;
        }
        let shelves = Shelves::new(crew.workers());
        let ahead = core::mem::take(&mut self.ahead).into_iter().flatten();
        shelves.put(0, ahead.chain(self.stack.drain(..)));
        let weak = Mutex::new(core::mem::take(&mut self.weak));
        let (language, blocks) = (self.language, self.blocks);
        crew.run(&|worker| {
            let mut tracer = Tracer { way: Way::Together, ..Tracer::new(language, blocks) };
            while shelves.get(worker, &mut tracer.stack) {
                while tracer.step::<TOGETHER>() {
                    if shelves.wants(worker) && tracer.stack.len() >= WORTH_LEAVING {
                        shelves.leave(worker, &mut tracer.stack);
                    }
                }
            }
            lock(&weak).append(&mut tracer.weak);
        });
        core::mem::take(&mut *lock(&weak))
    }

    /// Look at everything.
    pub(crate) fn look(mut self) -> Reached {
        while self.step::<LOOK>() {}
        self.reached
    }
}
