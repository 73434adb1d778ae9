//! Random sequences of calls from several threads: every block keeps its contents, cleared blocks are zero, alignments
//! hold, and the sums agree at the end.

use largesse_arena::{NearMemory, Retention};
use largesse_malloc::{DataAlign, Fill, LargeBlockHeap, LargeHeapSettings};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use std::sync::Mutex;

/// Number of calls of each thread. It is smaller under Miri, where a call takes a thousand times longer.
const CALLS: usize = if cfg!(miri) { 12 } else { 1500 };
const LARGEST: usize = if cfg!(miri) { 300 << 10 } else { 6 << 20 };
const SPANS: usize = if cfg!(miri) { 3 } else { 40 };
const THREADS: u64 = if cfg!(miri) { 2 } else { 4 };

/// A generator of random numbers, whose seed determines the sequence of calls.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % end
    }

    fn size(&mut self) -> usize {
        match self.below(4) {
            0 => 1 + self.below(64 << 10),
            1 | 2 => 1 + self.below(LARGEST / 8),
            _ => 1 + self.below(LARGEST),
        }
    }
}

/// A live block, and the seed of its contents.
struct LiveBlock {
    address: usize,
    size: usize,
    seed: u8,
}

/// Distance between the bytes of a block that are written and checked. The last byte is, too.
const STRIDE: usize = 509;

fn mark(seed: u8, offset: usize) -> u8 {
    (offset / STRIDE).to_le_bytes()[0].wrapping_mul(29) ^ seed
}

impl LiveBlock {
    fn at(&self, offset: usize) -> *mut u8 {
        core::ptr::with_exposed_provenance_mut(self.address + offset)
    }

    fn offsets(&self, below: usize) -> impl Iterator<Item = usize> {
        (0..below).step_by(STRIDE).chain((below == self.size).then_some(below - 1))
    }

    fn fill(&self) {
        for offset in self.offsets(self.size) {
            // SAFETY: inside the block, which only this thread uses.
            unsafe { self.at(offset).write(mark(self.seed, offset)) };
        }
    }

    fn check(&self, below: usize) {
        for offset in self.offsets(below) {
            // SAFETY: as above.
            let found = unsafe { self.at(offset).read() };
            assert_eq!(
                found,
                mark(self.seed, offset),
                "byte {offset} of {} at {:x}",
                self.size,
                self.address
            );
        }
    }

    fn check_zero(&self) {
        // SAFETY: as above; the block was cleared, and the reference ends with this call.
        let bytes = unsafe { core::slice::from_raw_parts(self.at(0), self.size) };
        let (before, words, after) = {
            // SAFETY: any bytes are a valid number.
            unsafe { bytes.align_to::<u128>() }
        };
        let zero = words.iter().all(|&word| word == 0) && before.iter().chain(after).all(|&byte| byte == 0);
        assert!(zero, "{} bytes at {:x} were not cleared", self.size, self.address);
    }
}

fn heap(settings: LargeHeapSettings) -> &'static LargeBlockHeap<NearMemory> {
    let range = Reserved::new(SPANS * SPAN, SPAN).unwrap();
    let near = Box::leak(Box::new(NearMemory::new(range, PageKind::Thp, Placement::FirstTouch, false)));
    Box::leak(Box::new(LargeBlockHeap::new(near, settings).unwrap()))
}

fn work(heap: &LargeBlockHeap<NearMemory>, shared: &Mutex<Vec<LiveBlock>>, seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for call in 0..CALLS {
        match random.below(10) {
            0..=3 => {
                let size = random.size();
                let fill = if random.below(3) == 0 { Fill::Zero } else { Fill::Any };
                let align = if random.below(4) == 0 { 16 << random.below(9) } else { 16 };
                let Ok(block) = heap.allocate(size, align, fill) else { continue };
                let address = block.start.as_ptr().expose_provenance();
                assert_eq!(address % align, 0);
                assert!(heap.owns(address) && heap.usable(address).unwrap() >= size);
                let held = LiveBlock { address, size, seed: call.to_le_bytes()[0] };
                if fill == Fill::Zero {
                    held.check_zero();
                }
                held.fill();
                shared.lock().unwrap().push(held);
            }
            4..=6 => {
                let Some(held) = taken(shared, &mut random) else { continue };
                held.check(held.size);
                heap.free(held.address).unwrap();
            }
            7 | 8 => {
                let Some(mut held) = taken(shared, &mut random) else { continue };
                held.check(held.size);
                let size = random.size();
                // SAFETY: the block was taken from the list, so that no other thread uses it.
                if let Ok(block) = unsafe { heap.resize(held.address, size) } {
                    let common = held.size.min(size);
                    (held.address, held.size) = (block.start.as_ptr().expose_provenance(), size);
                    let moved = LiveBlock { size: common + 1, ..held };
                    moved.check(common);
                    assert!(heap.usable(held.address).unwrap() >= size);
                }
                held.fill();
                shared.lock().unwrap().push(held);
            }
            _ => match random.below(5) {
                0 => _ = heap.trim(random.below(8) * SPAN),
                1 => _ = heap.prepare(1 + random.below(4)),
                2 => heap.tick(),
                3 => heap.each_block(|record| assert!(record.size > 0 && record.address > 0)),
                _ => assert!(
                    heap.free((heap.range().0 + random.below(SPANS * SPAN)) | 1).is_err(),
                    "an odd address was freed"
                ),
            },
        }
    }
}

fn taken(shared: &Mutex<Vec<LiveBlock>>, random: &mut Random) -> Option<LiveBlock> {
    let mut shared = shared.lock().unwrap();
    let len = shared.len();
    (len > 0).then(|| shared.swap_remove(random.below(len)))
}

#[track_caller]
fn check(settings: LargeHeapSettings, threads: u64, seed: u64) {
    let heap = heap(settings);
    let shared = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let shared = &shared;
            scope.spawn(move || work(heap, shared, seed * 100 + thread));
        }
    });
    let left = shared.into_inner().unwrap();
    let live: usize = left.iter().map(|held| held.size).sum();
    assert_eq!(heap.with_report(|report| report.counters.live_bytes), live as u64);
    for held in left {
        held.check(held.size);
        heap.free(held.address).unwrap();
    }
    let counters = heap.with_report(|report| report.counters);
    assert_eq!((counters.live_bytes, counters.allocations), (0, counters.frees));
    heap.trim(0);
    // All free extents were coalesced: a block as large as the range fits.
    assert!(heap.allocate((SPANS - 1) * SPAN, 16, Fill::Zero).is_ok());
}

const PLAIN: LargeHeapSettings = LargeHeapSettings {
    header: 0,
    data: DataAlign::Lines,
    retention: Retention { share: 32, floor: 64 << 20 },
};

#[test]
fn one_threads_blocks_keep_contents() {
    for seed in 1..4 {
        check(PLAIN, 1, seed);
    }
}

#[test]
fn several_threads_blocks_keep_contents() {
    for seed in 4..6 {
        check(PLAIN, THREADS, seed);
    }
}

#[test]
fn blocks_with_header_keep_contents() {
    let settings = LargeHeapSettings { header: 48, retention: Retention { share: 0, floor: 0 }, ..PLAIN };
    check(settings, THREADS, 6);
}

#[test]
fn blocks_at_native_offsets_keep_contents() {
    check(LargeHeapSettings { data: DataAlign::Native, ..PLAIN }, THREADS, 7);
}
