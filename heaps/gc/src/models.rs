//! Models the whole heap under loom: blocks that change owner, with collections in between.

use crate::blocks::BLOCK;
use crate::{GcSettings, Heap, Language, Layout, Mutator, Tracer, Word};
use core::ptr::NonNull;
use largesse_arena::NearMemory;
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use loom::cell::UnsafeCell;

/// A language with a cell for each block of a span. The owner of the block writes the cell, and the collector reads
/// all.
#[derive(Debug)]
struct Watched(Vec<UnsafeCell<u32>>);

// SAFETY: loom fails when two threads use a cell at the same time.
unsafe impl Sync for Watched {}

// SAFETY: no word is a reference, and there are no roots.
unsafe impl Language for Watched {
    fn reference(_: Word) -> Option<NonNull<u64>> {
        None
    }
    unsafe fn trace(&self, _: NonNull<u64>, _: &mut Tracer<'_, Watched>) {}
    fn roots(&self, _: &mut Tracer<'_, Watched>) {
        self.0.iter().for_each(|cell| cell.with(|_| ()));
    }
}

/// Allocates a pair and writes the cell of its block: loom fails when another thread does so at the same time.
fn pair(thread: &mut Mutator<Watched>, start: usize) {
    let pair = thread.allocate(Layout::Slots, 2).unwrap();
    let block = (pair.as_ptr().addr() - start) / BLOCK;
    thread.heap().language().0[block].with_mut(|_| ());
}

// Seen to fail ("Concurrent write accesses") when a collection leaves freed blocks delegated, and when a delegated
// block stays in the keep's list.
#[test]
fn block_has_one_owner() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let range = Reserved::new(SPAN, SPAN).unwrap();
        let start = range.start().as_ptr().addr();
        let memory = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
        let cells = (0..SPAN / BLOCK).map(|_| UnsafeCell::new(0)).collect();
        let settings = GcSettings { gc_threads: 1, root_words: 1, ..GcSettings::default() };
        let heap = Heap::new(Watched(cells), settings, memory).unwrap();
        // Leaves a block with free cells.
        pair(&mut heap.register_thread().enter(), start);
        let handles = [heap.register_thread(), heap.register_thread()];
        let running = handles.map(|handle| {
            loom::thread::spawn(move || {
                let mut thread = handle.enter();
                pair(&mut thread, start);
                thread.poll();
                pair(&mut thread, start);
            })
        });
        let mut main = heap.register_thread().enter();
        main.collect();
        pair(&mut main, start);
        drop(main);
        for thread in running {
            thread.join().unwrap();
        }
    });
}
