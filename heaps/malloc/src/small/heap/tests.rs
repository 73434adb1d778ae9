extern crate std;
use super::super::class::LARGEST_SMALL;
use super::*;
use largesse_pages::{PageKind, Reserved};
use std::sync::Mutex;
use std::vec::Vec;

/// A heap over a range of its own, and the spans of it that the heap may get.
struct Fixture {
    heap: SmallHeap,
    free: Mutex<Vec<usize>>,
    spans: usize,
    range: Reserved,
}

impl Fixture {
    fn new(spans: usize) -> Fixture {
        let range = Reserved::new(spans * SPAN, SPAN).unwrap();
        range.commit(0, spans * SPAN, PageKind::Small).unwrap();
        let start = range.start().as_ptr().expose_provenance();
        let heap = SmallHeap::new(start, spans * SPAN).unwrap();
        let free = Mutex::new((0..spans).rev().map(|span| start + span * SPAN).collect());
        Fixture { heap, free, spans, range }
    }

    fn allocate(&self, cache: &SmallCache, size: usize, align: usize) -> Option<SmallBlock> {
        let span = || NonNull::new(core::ptr::with_exposed_provenance_mut(self.free.lock().unwrap().pop()?));
        self.heap.allocate(cache, size, align, span)
    }

    /// Reclaims spans, which read as zero again. Returns how many the heap does not have.
    fn reclaim(&self) -> usize {
        self.heap.reclaim(|span| {
            // SAFETY: the heap has released the span, all of which was committed.
            unsafe { span.write_bytes(0, SPAN) };
            self.free.lock().unwrap().push(span.as_ptr().addr());
        });
        self.free.lock().unwrap().len()
    }
}

fn address(block: SmallBlock) -> usize {
    block.start.as_ptr().addr()
}

/// Returns whether the `len` bytes at an address, which belong to the test, are zero.
fn is_zero(address: usize, len: usize) -> bool {
    let start = core::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: callers pass a live block.
    unsafe { core::slice::from_raw_parts(start, len) }.iter().all(|&byte| byte == 0)
}

#[test]
fn blocks_of_every_class_are_disjoint() {
    let fixture = Fixture::new(60);
    let cache = SmallCache::new();
    let mut blocks = Vec::new();
    for class in &TABLE {
        for _ in 0..class.blocks + 1 {
            let block = fixture.allocate(&cache, class.size, 16).unwrap();
            assert!(block.is_zero, "a new block of {} bytes", class.size);
            blocks.push((address(block), class.size));
        }
    }
    blocks.sort_unstable();
    assert!(blocks.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "Blocks overlap.");
    for &(address, size) in &blocks {
        assert_eq!(fixture.heap.usable(address), Ok(size));
        assert_eq!(fixture.heap.usable(address + 8), Err(NotABlock(address + 8)));
        fixture.heap.free(Some(&cache), address).unwrap();
        assert_eq!(fixture.heap.free(Some(&cache), address), Err(NotABlock(address)), "freed twice");
    }
    fixture.heap.give_back(&cache);
    assert_eq!(fixture.reclaim(), fixture.spans, "spans that came back");
    assert_eq!(fixture.heap.slab_bytes(), 0);
    assert!(!fixture.heap.owns(blocks[0].0));
}

// Without `SmallCache::put`, the blocks of a whole word are used in turns: 256 KiB for each class of the largest sizes.
#[test]
fn block_that_was_freed_last_is_allocated_next() {
    let fixture = Fixture::new(8);
    let cache = SmallCache::new();
    for class in &TABLE {
        let kept = fixture.allocate(&cache, class.size, 16).unwrap();
        let first = fixture.allocate(&cache, class.size, 16).unwrap();
        for _ in 0..100 {
            fixture.heap.free(Some(&cache), address(first)).unwrap();
            let next = fixture.allocate(&cache, class.size, 16).unwrap();
            assert_eq!(next.start, first.start, "{} bytes", class.size);
            assert!(!next.is_zero, "it was used");
        }
        assert!(fixture.allocate(&cache, class.size, 16).unwrap().is_zero, "the others were not");
        fixture.heap.free(None, address(kept)).unwrap();
    }
}

#[test]
fn block_that_another_thread_freed_is_not_freed_again() {
    let fixture = Fixture::new(1);
    let cache = SmallCache::new();
    let block = address(fixture.allocate(&cache, 64, 16).unwrap());
    fixture.heap.free(None, block).unwrap();
    assert_eq!(fixture.heap.free(Some(&cache), block), Err(NotABlock(block)));
}

#[test]
fn full_range_refuses_one_class_only() {
    let fixture = Fixture::new(1);
    let cache = SmallCache::new();
    let small = fixture.allocate(&cache, 16, 16).unwrap();
    assert!(fixture.allocate(&cache, LARGEST_SMALL, 16).is_none(), "a second kind needs a span of its own");
    assert!(fixture.allocate(&cache, LARGEST_SMALL + 1, 16).is_none(), "a large block");
    assert!(fixture.allocate(&cache, 32, 16).is_some(), "another slab of the span");
    fixture.heap.free(None, address(small)).unwrap();
}

#[test]
fn block_of_an_ended_thread_is_used_again() {
    let fixture = Fixture::new(1);
    let size = TABLE[31].size;
    let all = SPAN / SLAB_BYTES[0] * TABLE[31].blocks;
    let blocks: Vec<_> = {
        let cache = SmallCache::new();
        let blocks = (0..all).map(|_| fixture.allocate(&cache, size, 16).unwrap()).collect();
        assert!(fixture.allocate(&cache, size, 16).is_none());
        fixture.heap.give_back(&cache);
        blocks
    };
    fixture.heap.free(None, address(blocks[5])).unwrap();
    let again = fixture.allocate(&SmallCache::new(), size, 16).unwrap();
    assert_eq!(again.start, blocks[5].start);
    assert!(!again.is_zero, "it was used");
}

#[test]
fn emptied_slabs_ask_for_reclamation() {
    let fixture = Fixture::new(8);
    let cache = SmallCache::new();
    let size = TABLE[31].size;
    let all = 7 * SPAN / SLAB_BYTES[0] * TABLE[31].blocks;
    let blocks: Vec<_> = (0..all).map(|_| fixture.allocate(&cache, size, 16).unwrap()).collect();
    let due = blocks.iter().position(|&block| fixture.heap.free(None, address(block)).unwrap());
    let slabs = due.expect("due after an eighth") / TABLE[31].blocks + 1;
    assert_eq!(slabs, (RECLAIM_FROM + 7 * SPAN / 8) / SLAB_BYTES[0], "slabs that were emptied");
    // A slab stays with its thread, and so does its span.
    assert_eq!(fixture.reclaim(), fixture.spans - 7 + (slabs - 1) / SLABS);
}

/// A live block: its address, size, and the byte that it is filled with.
type Filled = (usize, usize, u8);

/// Allocates, checks and frees blocks in an order that a seed determines. Every third block is freed by another thread.
fn random_calls(fixture: &Fixture, shared: &Mutex<Vec<Filled>>, seed: u64) {
    let cache = SmallCache::new();
    let mut state = seed;
    let mut below = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % end
    };
    let mut mine: Vec<Filled> = Vec::new();
    let free = |(address, size, byte): Filled| {
        let start = core::ptr::with_exposed_provenance::<u8>(address);
        // SAFETY: the block is live, and this thread is the only one that knows it.
        let bytes = unsafe { core::slice::from_raw_parts(start, size) };
        assert!(bytes.iter().all(|&found| found == byte), "A block of {size} bytes was changed.");
        if fixture.heap.free(Some(&cache), address).unwrap() {
            fixture.reclaim();
        }
    };
    for call in 0..4000 {
        if below(5) < 3 {
            let (digits, align) = (3 + below(14), 1 << below(13));
            let size = 1 + below(1 << digits);
            let Some(block) = fixture.allocate(&cache, size.min(LARGEST_SMALL), align) else { continue };
            let (at, size) = (address(block), size.min(LARGEST_SMALL));
            assert!(at.is_multiple_of(align.max(16)), "{size} bytes at {align}");
            assert!(!block.is_zero || is_zero(at, size), "A block of {size} bytes is not zero.");
            let byte = u8::try_from(below(255)).unwrap() + 1;
            // SAFETY: a new block of at least `size` bytes.
            unsafe { block.start.write_bytes(byte, size) };
            mine.push((at, size, byte));
        } else if call % 3 == 0 {
            let theirs = shared.lock().unwrap().pop();
            theirs.into_iter().for_each(free);
            shared.lock().unwrap().extend(mine.pop());
        } else if !mine.is_empty() {
            free(mine.swap_remove(below(mine.len())));
        }
    }
    mine.into_iter().for_each(free);
    fixture.heap.give_back(&cache);
}

// Fails if `free` does not set ATTACHED, if `take` hands out the wrong bit, if a used word counts as untouched, or if
// `reclaim` releases a span with a block.
#[test]
fn threads_free_each_others_blocks() {
    for seed in 0..4 {
        let fixture = Fixture::new(40);
        let shared = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (fixture, shared) = (&fixture, &shared);
                scope.spawn(move || random_calls(fixture, shared, seed * 4 + thread));
            }
        });
        for (address, ..) in shared.into_inner().unwrap() {
            fixture.heap.free(None, address).unwrap();
        }
        assert_eq!(fixture.reclaim(), fixture.spans, "spans that came back, with seed {seed}");
        assert!(fixture.range.len() == fixture.spans * SPAN);
    }
}
