//! Makes sequences of calls of the malloc family, from one thread and then from three at once, and checks the bytes
//! that it marked in each block.
#![no_main]

use arbitrary::Arbitrary;
use largesse_arena::{NearMemory, Retention};
use largesse_malloc::{DataAlign, Fill, LargeBlockHeap, LargeHeapSettings};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use libfuzzer_sys::fuzz_target;
use std::sync::{Mutex, OnceLock};

const SPANS: usize = 12;
/// Distance in bytes between marked bytes of a block. The last byte is marked, too.
const STRIDE: usize = 1021;

#[derive(Arbitrary, Debug, Clone, Copy)]
enum MallocCall {
    Allocate { size: u32, align: u8, zero: bool },
    Free { which: u8 },
    Resize { which: u8, size: u32 },
    FreeWrong { offset: u32 },
    Trim { keep: u8 },
    Prepare { spans: u8 },
    Tick,
}

#[derive(Arbitrary, Debug)]
struct Input {
    heap: u8,
    calls: Vec<MallocCall>,
    others: [Vec<MallocCall>; 2],
}

struct Held {
    address: usize,
    size: usize,
    seed: u8,
}

impl Held {
    fn at(&self, offset: usize) -> *mut u8 {
        core::ptr::with_exposed_provenance_mut(self.address + offset)
    }

    fn mark(&self, offset: usize) -> u8 {
        self.seed ^ (offset / STRIDE) as u8
    }

    fn fill(&self) {
        for offset in (0..self.size).step_by(STRIDE).chain([self.size - 1]) {
            // SAFETY: inside the block, which one thread has at a time.
            unsafe { self.at(offset).write(self.mark(offset)) };
        }
    }

    fn check(&self, below: usize) {
        for offset in (0..below).step_by(STRIDE) {
            // SAFETY: inside the block, which one thread has at a time.
            assert_eq!(
                unsafe { self.at(offset).read() },
                self.mark(offset),
                "byte {offset} of {}",
                self.size
            );
        }
    }
}

/// Returns the heap of this kind. It lives as long as the process, so that each input finds the blocks of the one
/// before.
fn heap(kind: u8) -> &'static LargeBlockHeap<NearMemory> {
    static HEAPS: [OnceLock<&'static LargeBlockHeap<NearMemory>>; 4] = [const { OnceLock::new() }; 4];
    HEAPS[usize::from(kind % 4)].get_or_init(|| {
        let range = Reserved::new(SPANS * SPAN, SPAN).expect("address space");
        let near = NearMemory::new(range, PageKind::Thp, Placement::FirstTouch, false);
        let settings = LargeHeapSettings {
            header: if kind & 1 == 0 { 0 } else { 48 },
            data: if kind & 2 == 0 { DataAlign::Lines } else { DataAlign::Native },
            retention: if kind & 2 == 0 { Retention::default() } else { Retention { share: 0, floor: 0 } },
        };
        let heap = LargeBlockHeap::new(Box::leak(Box::new(near)), settings).expect("room for tables");
        Box::leak(Box::new(heap))
    })
}

fn make(heap: &LargeBlockHeap<NearMemory>, calls: &[MallocCall], shared: &Mutex<Vec<Held>>, seed: u8) {
    let take = |which: u8| {
        let mut shared = shared.lock().unwrap();
        let len = shared.len();
        (len > 0).then(|| shared.swap_remove(usize::from(which) % len))
    };
    for (number, call) in calls.iter().take(200).enumerate() {
        match *call {
            MallocCall::Allocate { size, align, zero } => {
                let (size, align) = (size as usize % (5 << 20) + 1, 1_usize << (align % 22));
                let fill = if zero { Fill::Zero } else { Fill::Any };
                let Ok(block) = heap.allocate(size, align, fill) else { continue };
                let address = block.start.as_ptr().expose_provenance();
                assert_eq!(address % align, 0, "alignment {align} of {size}");
                assert!(heap.usable(address).unwrap() >= size);
                let held = Held { address, size, seed: seed ^ number as u8 };
                if zero {
                    // SAFETY: the block has that many bytes, and only this thread knows it.
                    let bytes = unsafe { core::slice::from_raw_parts(held.at(0), size) };
                    assert!(bytes.iter().all(|&byte| byte == 0), "{size} bytes were not cleared");
                }
                held.fill();
                shared.lock().unwrap().push(held);
            }
            MallocCall::Free { which } => {
                let Some(held) = take(which) else { continue };
                held.check(held.size);
                heap.free(held.address).unwrap();
            }
            MallocCall::Resize { which, size } => {
                let Some(mut held) = take(which) else { continue };
                held.check(held.size);
                let size = size as usize % (9 << 20) + 1;
                // SAFETY: this thread alone has the block.
                if let Ok(block) = unsafe { heap.resize(held.address, size) } {
                    let common = held.size.min(size);
                    held.address = block.start.as_ptr().expose_provenance();
                    held.size = size;
                    // Each marked byte depends on its offset alone, and so does the last byte of the old size.
                    held.check(common);
                }
                held.fill();
                shared.lock().unwrap().push(held);
            }
            MallocCall::FreeWrong { offset } => {
                let address = (heap.range().0 + offset as usize % (SPANS * SPAN)) | 1;
                assert!(heap.free(address).is_err() && heap.usable(address).is_err(), "an odd address");
            }
            MallocCall::Trim { keep } => _ = heap.trim(usize::from(keep) << 16),
            MallocCall::Prepare { spans } => _ = heap.prepare(usize::from(spans % 5)),
            MallocCall::Tick => heap.tick(),
        }
    }
}

fuzz_target!(|input: Input| {
    let heap = heap(input.heap);
    let shared = Mutex::new(Vec::new());
    make(heap, &input.calls, &shared, 1);
    if input.others.iter().any(|calls| !calls.is_empty()) {
        std::thread::scope(|scope| {
            for (calls, seed) in input.others.iter().zip([50, 90]) {
                let shared = &shared;
                scope.spawn(move || make(heap, calls, shared, seed));
            }
            make(heap, &input.calls, &shared, 120);
        });
    }
    for held in shared.into_inner().unwrap() {
        held.check(held.size);
        heap.free(held.address).unwrap();
    }
    let counters = heap.with_report(|report| report.counters);
    assert_eq!((counters.live_bytes, counters.allocations), (0, counters.frees));
});
