//! The whole heap under loom: blocks that go from thread to thread, and collections in between.

use crate::blocks::BLOCK;
use crate::{Heap, Language, Layout, Mutator, Settings, Tracer, Word};
use core::ptr::NonNull;
use largesse_arena::NearMemory;
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use loom::cell::UnsafeCell;

/// One cell for each block of a span: whoever has the block may write it, and the collector reads them all.
#[derive(Debug)]
struct Watched(Vec<UnsafeCell<u32>>);

// SAFETY: loom fails when the cells are used by two threads at once.
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

/// Allocate a pair, and write to what stands for its block: loom fails when another thread does, too.
fn pair(thread: &mut Mutator<Watched>, start: usize) {
    let pair = thread.allocate(Layout::Slots, 2).unwrap();
    let block = (pair.as_ptr().addr() - start) / BLOCK;
    thread.heap().language().0[block].with_mut(|_| ());
}

// Seen to fail ("Concurrent write accesses") when a collection leaves threads the blocks that it frees, and when a block
// that is delegated stays in the ledger's list.
#[test]
fn a_block_is_in_one_hand_at_a_time() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let range = Reserved::new(SPAN, SPAN).unwrap();
        let start = range.start().as_ptr().addr();
        let memory = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
        let cells = (0..SPAN / BLOCK).map(|_| UnsafeCell::new(0)).collect();
        let settings = Settings { gc_threads: 1, root_words: 1, ..Settings::default() };
        let heap = Heap::new(Watched(cells), settings, memory).unwrap();
        // Leaves a block with free cells.
        pair(&mut heap.enrol().enter(), start);
        let seats = [heap.enrol(), heap.enrol()];
        let running = seats.map(|seat| {
            loom::thread::spawn(move || {
                let mut thread = seat.enter();
                pair(&mut thread, start);
                thread.poll();
                pair(&mut thread, start);
            })
        });
        let mut main = heap.enrol().enter();
        main.collect();
        pair(&mut main, start);
        drop(main);
        for thread in running {
            thread.join().unwrap();
        }
    });
}
