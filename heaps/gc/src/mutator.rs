//! Implements the mutator: a thread's access to a heap.

use crate::blocks::object_at;
use crate::context::Context;
use crate::heap::{Heap, HeapShared};
use crate::keep::AllocationFailure;
use crate::partial::Scope;
use crate::record::Record;
use crate::sync::{Ordering, lock};
use crate::world::{ATTENTION, Member, STOP};
use crate::{AllocationClass, Language, Layout, OutOfMemory, RootsFull, Sync, Word};
use core::ptr::NonNull;
use std::sync::Arc;

/// A registered thread that has not started: see [`Heap::register_thread`].
#[derive(Debug)]
#[must_use = "collections scan its roots until it is dropped"]
pub struct ThreadHandle<L: Language> {
    heap: Heap<L>,
    record: Arc<Record>,
    entered: bool,
}

impl<L: Language> ThreadHandle<L> {
    pub(crate) fn new(heap: Heap<L>, record: Arc<Record>) -> ThreadHandle<L> {
        ThreadHandle { heap, record, entered: false }
    }

    /// Adds a root to those with which the thread starts. `parent` proves that the calling thread is running, so that
    /// no collection is under way.
    pub fn push(&mut self, parent: &Mutator<L>, word: Word) -> Result<(), RootsFull> {
        assert!(Arc::ptr_eq(&self.heap.0, &parent.heap.0), "a thread of another heap");
        // SAFETY: the thread has not started, so the record belongs to this handle.
        unsafe { push(self.record.context(), word) }
    }

    /// Makes the calling thread a mutator of the heap. Waits for the end of a collection that is under way.
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

impl<L: Language> Drop for ThreadHandle<L> {
    fn drop(&mut self) {
        if !self.entered {
            self.heap.0.leave(&self.record);
        }
    }
}

/// A thread that uses the heap. It must call [`poll`](Mutator::poll) or [`allocate`](Mutator::allocate) regularly,
/// because a collection waits for it, and must run waits and long work without objects in
/// [`blocked`](Mutator::blocked).
///
/// An object survives `poll`, `allocate`, `blocked` and `collect` only if a root leads to it.
#[derive(Debug)]
pub struct Mutator<L: Language> {
    context: NonNull<Context>,
    record: Arc<Record>,
    heap: Heap<L>,
    /// Number of allocations since the last collection, if [`GcSettings::stress`](crate::GcSettings::stress) is set.
    allocations: u64,
}

/// A height of the root stack, to which [`Mutator::release`] returns. The default is the bottom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootHeight(usize);

impl<L: Language> Mutator<L> {
    /// Allocates an object of at least `words` words, all zeros and 16-byte aligned. This may collect.
    #[inline]
    pub fn allocate(&mut self, layout: Layout, words: usize) -> Result<NonNull<u64>, OutOfMemory> {
        if let Some(class) = AllocationClass::of(layout, words) {
            // SAFETY: the context lives as long as the record, and its bumps belong to this thread.
            let bump = unsafe { &mut (*self.context.as_ptr()).bumps[class.index()] };
            if let Some(at) = bump.take(class.bytes()) {
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
                self.heap.0.collect(Some(&self.record), Scope::Partial);
            }
        }
        let mut emergency = false;
        loop {
            // An error is better than one collection after another.
            if emergency && lock(&self.heap.0.keep).is_exhausted(&self.heap.0.blocks) {
                return Err(self.heap.0.out_of_memory(words));
            }
            let got = match AllocationClass::of(layout, words) {
                Some(class) => self.cell(class).map(object_at),
                None => self.large(layout, words),
            };
            match got {
                Ok(object) => return Ok(object),
                Err(AllocationFailure::Full) if emergency => return Err(self.heap.0.out_of_memory(words)),
                Err(failure) => {
                    emergency = failure == AllocationFailure::Full;
                    let scope = if emergency { Scope::Full } else { Scope::Partial };
                    self.heap.0.collect(Some(&self.record), scope);
                }
            }
        }
    }

    fn cell(&mut self, class: AllocationClass) -> Result<usize, AllocationFailure> {
        let shared = &*self.heap.0;
        if shared.settings.sync == Sync::Mutex {
            self.stop_if_asked();
            return lock(&shared.keep).cell(class, &shared.blocks);
        }
        loop {
            // SAFETY: this thread runs, and no earlier borrow is in use.
            let (delegation, bumps) = unsafe { self.record.delegation(shared.hides_bumps()) };
            let reading = (shared.settings.sync == Sync::Rwlock).then(|| shared.allocating.read());
            let cell = delegation.take(class, &mut bumps[class.index()], &shared.blocks);
            drop(reading);
            if let Some(at) = cell {
                return Ok(at);
            }
            if !self.stop_if_asked() {
                // SAFETY: as above.
                let (delegation, _) = unsafe { self.record.delegation(shared.hides_bumps()) };
                lock(&shared.keep).delegate(class, delegation, &shared.blocks)?;
            }
        }
    }

    fn large(&mut self, layout: Layout, words: usize) -> Result<NonNull<u64>, AllocationFailure> {
        self.stop_if_asked();
        let shared = &*self.heap.0;
        let (object, clean) = lock(&shared.keep).large(layout, words, &shared.blocks)?;
        if !clean {
            // SAFETY: the run of blocks was just allocated by this thread, for `words` words.
            unsafe { object.write_bytes(0, words) };
        }
        Ok(object)
    }

    /// Waits for the end of a collection if one is under way. Returns whether anything happened since the last poll
    /// that the language should look at: [`Heap::call_attention`], objects to finalize, or a collection by this
    /// thread.
    #[inline]
    pub fn poll(&mut self) -> bool {
        // Relaxed: the word is only a hint, which `poll_slow` checks.
        if self.record.signal().poll.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.poll_slow()
    }

    #[cold]
    #[inline(never)]
    fn poll_slow(&mut self) -> bool {
        self.stop_if_asked();
        // Acquire: pairs with the Release in `call_attention`.
        self.record.signal().poll.fetch_and(!ATTENTION, Ordering::Acquire) & ATTENTION != 0
    }

    /// Waits for the end of a collection. Returns `false` when none is under way.
    fn stop_if_asked(&self) -> bool {
        let signal = self.record.signal();
        // Relaxed: the registry's lock orders the rest.
        let asked = signal.poll.load(Ordering::Relaxed) & STOP != 0;
        if asked {
            self.heap.0.world.stand_still(signal);
        }
        asked
    }

    /// Runs a closure that accesses no object and may take long. Collections do not wait for it.
    pub fn blocked<R>(&mut self, wait: impl FnOnce() -> R) -> R {
        struct Back<'a, L: Language>(&'a mut Mutator<L>);
        impl<L: Language> Drop for Back<'_, L> {
            fn drop(&mut self) {
                self.0.resume();
            }
        }
        self.suspend();
        let _back = Back(self);
        wait()
    }

    /// Begins a time in which this thread accesses no object, so that collections do not wait for it. It ends with
    /// [`resume`](Mutator::resume). For code that cannot be a closure of [`blocked`](Mutator::blocked), because the
    /// thread may come back in between, as from a function of C that calls one of the language.
    pub fn suspend(&mut self) {
        self.heap.0.world.go_native(self.record.signal());
    }

    /// Ends the time that [`suspend`](Mutator::suspend) began. Waits for the end of a collection.
    pub fn resume(&mut self) {
        self.heap.0.world.enter(self.record.signal());
    }

    /// Collects now, or waits for the collection that is under way.
    pub fn collect(&mut self) {
        self.heap.0.collect(Some(&self.record), Scope::Full);
    }

    /// Pushes a root: keeps the object that `word` refers to alive until the root is released.
    #[inline]
    pub fn push(&mut self, word: Word) -> Result<(), RootsFull> {
        // SAFETY: the record belongs to this thread, which runs.
        unsafe { push(self.context, word) }
    }

    /// Returns the height of the root stack.
    #[inline]
    #[must_use]
    pub fn mark(&self) -> RootHeight {
        // SAFETY: the context belongs to this thread.
        let top = unsafe { (*self.context.as_ptr()).roots_top };
        // SAFETY: the top never leaves the stack.
        RootHeight(unsafe { top.offset_from_unsigned(self.record.roots_bottom()) })
    }

    /// Removes the roots above `mark`.
    #[inline]
    pub fn release(&mut self, mark: RootHeight) {
        debug_assert!(mark.0 <= self.mark().0, "the stack is lower already");
        // SAFETY: the mark is a height this stack had, and it only gets lower here.
        unsafe { (*self.context.as_ptr()).roots_top = self.record.roots_bottom().add(mark.0) };
    }

    /// Returns the root stack, bottom first.
    #[inline]
    #[must_use]
    pub fn roots(&self) -> &[Word] {
        // SAFETY: the record belongs to this thread; the borrow keeps `self` from changing it.
        unsafe { self.record.roots() }
    }

    /// Returns the root stack, bottom first, for writing.
    #[inline]
    pub fn roots_mut(&mut self) -> &mut [Word] {
        // SAFETY: as in `roots`, and the borrow is unique.
        unsafe { self.record.roots_mut() }
    }

    /// Registers `object` for finalization: when it becomes unreachable it stays alive until
    /// [`next_finalizable`](Mutator::next_finalizable) returns it.
    pub fn finalize_later(&mut self, object: NonNull<u64>) {
        lock(&self.heap.0.finalizers).registered.push(object.as_ptr().expose_provenance());
    }

    /// Returns an unreachable object to finalize, which from now on is an ordinary object. Call it until it returns
    /// `None` whenever [`poll`](Mutator::poll) returns `true`.
    pub fn next_finalizable(&mut self) -> Option<NonNull<u64>> {
        lock(&self.heap.0.finalizers).ready.pop().map(object_at)
    }

    /// Returns the structure through which machine code allocates, polls and pushes roots. It is valid while this
    /// thread uses the heap, and in this thread only.
    #[inline]
    #[must_use]
    pub const fn context(&self) -> NonNull<Context> {
        self.context
    }

    /// Returns the heap.
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

impl<L: Language> Heap<L> {
    /// Registers a thread. The parent calls this before it starts the thread and passes the handle on, so that
    /// collections include the thread before it can allocate.
    pub fn register_thread(&self) -> ThreadHandle<L> {
        let number = {
            let mut totals = lock(&self.0.totals);
            totals.registered += 1;
            totals.registered
        };
        let record = Arc::new(Record::new(number, self.0.settings.root_words));
        lock(&self.0.keep).threads += 1;
        self.0.world.register(record.clone());
        ThreadHandle::new(self.clone(), record)
    }
}

impl<L: Language> HeapShared<L> {
    /// Unregisters a thread that ended or never started, and returns its blocks to the keep.
    fn leave(&self, record: &Arc<Record>) {
        self.world.leave(record, || {
            let mut keep = lock(&self.keep);
            keep.threads -= 1;
            // SAFETY: the thread calls this itself, or never started, and no collection runs.
            let (delegation, bumps) = unsafe { record.delegation(self.hides_bumps()) };
            delegation.release(bumps, &self.blocks, |block| keep.offer(block, &self.blocks));
            let mut totals = lock(&self.totals);
            for class in AllocationClass::all() {
                totals.cells[class.index()] += delegation.cells(class, &bumps[class.index()]);
            }
        });
    }

    fn out_of_memory(&self, words: usize) -> OutOfMemory {
        let keep = lock(&self.keep);
        OutOfMemory { words, used: keep.used_blocks * crate::BLOCK, limit: keep.limit() }
    }
}

/// Pushes a root.
///
/// # Safety
/// The context belongs to the caller.
#[inline]
unsafe fn push(context: NonNull<Context>, word: Word) -> Result<(), RootsFull> {
    // SAFETY: the caller's promise; between top and limit there is space for whole words.
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
