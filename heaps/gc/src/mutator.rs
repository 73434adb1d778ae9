//! A thread's hold on a heap.

use crate::blocks::object_at;
use crate::context::Context;
use crate::heap::{Heap, Shared};
use crate::keep::Short;
use crate::record::Record;
use crate::sync::{Ordering, lock};
use crate::world::{ATTENTION, Member, STOP};
use crate::{Lane, Language, Layout, OutOfMemory, RootsFull, Sync, Word};
use core::ptr::NonNull;
use std::sync::Arc;

/// A thread that was announced and has not started: see [`Heap::enrol`].
#[derive(Debug)]
#[must_use = "collections scan its roots until it is dropped"]
pub struct Seat<L: Language> {
    heap: Heap<L>,
    record: Arc<Record>,
    entered: bool,
}

impl<L: Language> Seat<L> {
    pub(crate) fn new(heap: Heap<L>, record: Arc<Record>) -> Seat<L> {
        Seat { heap, record, entered: false }
    }

    /// Give the thread a root to start with, above those it was given before. That `parent` runs means that no
    /// collection does.
    pub fn push(&mut self, parent: &Mutator<L>, word: Word) -> Result<(), RootsFull> {
        assert!(Arc::ptr_eq(&self.heap.0, &parent.heap.0), "a thread of another heap");
        // SAFETY: the thread has not started, so the record is the seat's.
        unsafe { push(self.record.context(), word) }
    }

    /// Start: the calling thread uses the heap from now on. Waits for the end of a collection.
    #[must_use]
    pub fn enter(mut self) -> Mutator<L> {
        self.entered = true;
        self.record.claim();
        self.heap.0.world.enter(self.record.signal());
        Mutator {
            context: self.record.context(),
            record: self.record.clone(),
            heap: self.heap.clone(),
            allocations: 0,
        }
    }
}

impl<L: Language> Drop for Seat<L> {
    fn drop(&mut self) {
        if !self.entered {
            self.heap.0.leave(&self.record);
        }
    }
}

/// A thread that uses the heap. It must come to [`poll`](Mutator::poll) or [`allocate`](Mutator::allocate) now and then,
/// and wrap what may take long and touches no object in [`blocked`](Mutator::blocked), or every other thread waits for it.
///
/// An object that only this thread knows stays alive from one `poll`, `allocate`, `blocked` or `collect` to
/// the next only if a root leads to it.
#[derive(Debug)]
pub struct Mutator<L: Language> {
    context: NonNull<Context>,
    record: Arc<Record>,
    heap: Heap<L>,
    /// Since the last collection that stress mode asked for.
    allocations: u64,
}

/// The height of a root stack; the default is the bottom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(usize);

impl<L: Language> Mutator<L> {
    /// An object of at least `words` words, all zeros, at a multiple of 16 bytes. This may collect.
    #[inline]
    pub fn allocate(&mut self, layout: Layout, words: usize) -> Result<NonNull<u64>, OutOfMemory> {
        if let Some(lane) = Lane::of(layout, words) {
            // SAFETY: the context lives as long as the record, and its bumps belong to this thread.
            let bump = unsafe { &mut (*self.context.as_ptr()).lanes[lane.index()] };
            if let Some(at) = bump.take(lane.bytes()) {
                return Ok(object_at(at));
            }
        }
        self.allocate_slow(layout, words)
    }

    #[cold]
    #[inline(never)]
    fn allocate_slow(&mut self, layout: Layout, words: usize) -> Result<NonNull<u64>, OutOfMemory> {
        if let stress @ 1.. = self.heap.0.settings.stress {
            self.allocations += 1;
            if self.allocations >= stress {
                self.allocations = 0;
                self.collect();
            }
        }
        let mut emergency = false;
        loop {
            // Rather an error now than one collection after another.
            if emergency && lock(&self.heap.0.ledger).is_exhausted(&self.heap.0.blocks) {
                return Err(self.heap.0.out_of_memory(words));
            }
            let got = match Lane::of(layout, words) {
                Some(lane) => self.cell(lane).map(object_at),
                None => self.large(layout, words),
            };
            match got {
                Ok(object) => return Ok(object),
                Err(Short::Full) if emergency => return Err(self.heap.0.out_of_memory(words)),
                Err(short) => {
                    emergency = short == Short::Full;
                    self.heap.0.collect(Some(&self.record));
                }
            }
        }
    }

    fn cell(&mut self, lane: Lane) -> Result<usize, Short> {
        let shared = &*self.heap.0;
        if shared.settings.sync == Sync::Mutex {
            self.stop_if_asked();
            return lock(&shared.ledger).cell(lane, &shared.blocks);
        }
        loop {
            // SAFETY: this thread runs, and nothing that was borrowed earlier is in use.
            let (delegation, bumps) = unsafe { self.record.delegation(shared.hides_bumps()) };
            let reading = (shared.settings.sync == Sync::Rwlock).then(|| shared.allocating.read());
            let cell = delegation.take(lane, &mut bumps[lane.index()], &shared.blocks);
            drop(reading);
            if let Some(at) = cell {
                return Ok(at);
            }
            if !self.stop_if_asked() {
                // SAFETY: as above.
                let (delegation, _) = unsafe { self.record.delegation(shared.hides_bumps()) };
                lock(&shared.ledger).delegate(lane, delegation, &shared.blocks)?;
            }
        }
    }

    fn large(&mut self, layout: Layout, words: usize) -> Result<NonNull<u64>, Short> {
        self.stop_if_asked();
        let shared = &*self.heap.0;
        let (object, clean) = lock(&shared.ledger).large(layout, words, &shared.blocks)?;
        if !clean {
            // SAFETY: the run of blocks was handed out to this thread just now, for so many words.
            unsafe { object.write_bytes(0, words) };
        }
        Ok(object)
    }

    /// Whether something wants this thread's attention since its last poll: [`Heap::call_attention`], objects to
    /// finalize, a collection that it made. Waits for the end of a collection.
    #[inline]
    pub fn poll(&mut self) -> bool {
        // Relaxed: the word is only a hint to look properly.
        if self.record.signal().poll.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.poll_slow()
    }

    #[cold]
    #[inline(never)]
    fn poll_slow(&mut self) -> bool {
        self.stop_if_asked();
        // Acquire: pairs with the Release of whoever calls for attention.
        self.record.signal().poll.fetch_and(!ATTENTION, Ordering::Acquire) & ATTENTION != 0
    }

    /// Wait for the end of a collection; `false`: there is none.
    fn stop_if_asked(&self) -> bool {
        let signal = self.record.signal();
        // Relaxed: the world's lock orders the rest.
        let asked = signal.poll.load(Ordering::Relaxed) & STOP != 0;
        if asked {
            self.heap.0.world.stand_still(signal);
        }
        asked
    }

    /// Run something that touches no object and may take long. Collections do not wait for it.
    pub fn blocked<R>(&mut self, wait: impl FnOnce() -> R) -> R {
        struct Back<'a, L: Language>(&'a Mutator<L>);
        impl<L: Language> Drop for Back<'_, L> {
            fn drop(&mut self) {
                self.0.heap.0.world.enter(self.0.record.signal());
            }
        }
        self.heap.0.world.go_native(self.record.signal());
        let _back = Back(self);
        wait()
    }

    /// Collect now, or wait for the collection that is under way.
    pub fn collect(&mut self) {
        self.heap.0.collect(Some(&self.record));
    }

    /// Keep what `word` refers to alive until it is released.
    #[inline]
    pub fn push(&mut self, word: Word) -> Result<(), RootsFull> {
        // SAFETY: the record belongs to this thread, which runs.
        unsafe { push(self.context, word) }
    }

    /// The height of the root stack.
    #[inline]
    #[must_use]
    pub fn mark(&self) -> Mark {
        // SAFETY: the context belongs to this thread.
        let top = unsafe { (*self.context.as_ptr()).roots_top };
        // SAFETY: the top never leaves the stack.
        Mark(unsafe { top.offset_from_unsigned(self.record.roots_bottom()) })
    }

    /// Forget the roots above `mark`.
    #[inline]
    pub fn release(&mut self, mark: Mark) {
        debug_assert!(mark.0 <= self.mark().0, "the stack is lower already");
        // SAFETY: the mark is a height this stack had, and it only gets lower here.
        unsafe { (*self.context.as_ptr()).roots_top = self.record.roots_bottom().add(mark.0) };
    }

    /// The root stack, from the bottom.
    #[inline]
    #[must_use]
    pub fn roots(&self) -> &[Word] {
        // SAFETY: the record belongs to this thread; the borrow keeps `self` from changing it.
        unsafe { self.record.roots() }
    }

    /// The root stack, from the bottom, to be changed.
    #[inline]
    pub fn roots_mut(&mut self) -> &mut [Word] {
        // SAFETY: as in `roots`, and the borrow is unique.
        unsafe { self.record.roots_mut() }
    }

    /// Ask for a word when `object` cannot be reached any more: it then stays alive until
    /// [`next_finalizable`](Mutator::next_finalizable) answers with it.
    pub fn finalize_later(&mut self, object: NonNull<u64>) {
        lock(&self.heap.0.finalizers).registered.push(object.as_ptr().expose_provenance());
    }

    /// An object to be finalized, which nobody else uses; asked for until there is none, whenever
    /// [`poll`](Mutator::poll) answers `true`. From here on it is an object like any other.
    pub fn next_finalizable(&mut self) -> Option<NonNull<u64>> {
        lock(&self.heap.0.finalizers).ready.pop().map(object_at)
    }

    /// Where machine code allocates, polls and pushes roots: valid while this thread uses the heap, and from this
    /// thread only.
    #[inline]
    #[must_use]
    pub const fn context(&self) -> NonNull<Context> {
        self.context
    }

    /// The heap.
    #[inline]
    #[must_use]
    pub const fn heap(&self) -> &Heap<L> {
        &self.heap
    }
}

impl<L: Language> Drop for Mutator<L> {
    fn drop(&mut self) {
        self.heap.0.leave(&self.record);
    }
}

impl<L: Language> Shared<L> {
    /// A thread is gone, or never came: what was delegated to it goes back.
    fn leave(&self, record: &Arc<Record>) {
        self.world.leave(record, || {
            let mut ledger = lock(&self.ledger);
            ledger.threads -= 1;
            // SAFETY: the thread calls this itself, or never started, and no collection runs.
            let (delegation, bumps) = unsafe { record.delegation(self.hides_bumps()) };
            delegation.release(bumps, &self.blocks, |block| ledger.offer(block, &self.blocks));
            let mut totals = lock(&self.totals);
            for lane in Lane::all() {
                totals.cells[lane.index()] += delegation.cells(lane, &bumps[lane.index()]);
            }
        });
    }

    fn out_of_memory(&self, words: usize) -> OutOfMemory {
        let ledger = lock(&self.ledger);
        OutOfMemory { words, used: ledger.used_blocks * crate::BLOCK, limit: ledger.limit() }
    }
}

/// # Safety
/// The context belongs to the caller.
#[inline]
unsafe fn push(context: NonNull<Context>, word: Word) -> Result<(), RootsFull> {
    // SAFETY: the caller's promise; between top and limit there is room for whole words.
    unsafe {
        let top = (*context.as_ptr()).roots_top;
        if top == (*context.as_ptr()).roots_limit {
            return Err(RootsFull);
        }
        top.write(word);
        (*context.as_ptr()).roots_top = top.add(1);
    }
    Ok(())
}
