//! Tests of decoding, on simulated memory.

use super::*;
use largesse_report::{CAUSES, Counters, MAX_ADVISED};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

const SIGNPOST: u64 = 0x1000;
const REPORT: u64 = 0x10_0000;
const BLOCKS: u64 = 0x20_0000;

/// Simulated memory: pieces by address, with unmapped space between them.
#[derive(Default)]
struct Memory {
    pieces: RefCell<BTreeMap<u64, Vec<u8>>>,
    reads: Cell<u32>,
}

impl Memory {
    fn with(report: HeapReport, blocks: &[BlockRecord]) -> Memory {
        let memory = Memory::default();
        memory.put(SIGNPOST, &mut [Signpost::to(REPORT)]);
        memory.put(REPORT, &mut [report]);
        memory.put(BLOCKS, &mut blocks.to_vec());
        memory
    }

    fn put<T: Plain>(&self, address: u64, values: &mut [T]) {
        self.pieces.borrow_mut().insert(address, as_bytes(values).to_vec());
    }

    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        self.reads.set(self.reads.get() + 1);
        let pieces = self.pieces.borrow();
        let piece = pieces.range(..=address).next_back().and_then(|(start, bytes)| {
            let skip = usize::try_from(address - start).ok()?;
            bytes.get(skip..skip.checked_add(into.len())?)
        });
        into.copy_from_slice(piece.ok_or_else(|| io::Error::from_raw_os_error(libc::EIO))?);
        Ok(())
    }

    fn heap(&self) -> Result<Heap, Undecodable> {
        heap(SIGNPOST, |address, into| self.read(address, into), || {})
    }
}

fn report(slots: u64) -> HeapReport {
    HeapReport {
        generation: 4,
        blocks: BLOCKS,
        slots,
        range_start: 1 << 40,
        range_len: 1 << 40,
        min_bytes: 256 << 10,
        max_bytes: 1 << 50,
        header: 48,
        pages: 0,
        enabled: 1,
        locked: 0,
        patched: 0,
        node: -1,
        far: 0,
        far_segments: 0,
        far_store: 0,
        limit_bytes: 0,
        spilling_since: 0,
        change_over_ns: 0,
        near_again: 0,
        near_since: 0,
        small_bytes: 0,
        counters: Counters::default(),
        not_granted: [0; CAUSES],
        advised: [[0; 2]; MAX_ADVISED],
    }
}

fn block(address: u64, kind: BlockKind) -> BlockRecord {
    BlockRecord { address, size: 1 << 20, kind: kind as u32, rest: 0 }
}

#[test]
fn live_blocks_are_sorted_by_address() {
    let blocks =
        [block(3 << 40, BlockKind::Thp), block(9, BlockKind::Free), block(1 << 40, BlockKind::Hugetlb)];
    let heap = Memory::with(report(3), &blocks).heap().unwrap();
    let addresses: Vec<u64> = heap.blocks.iter().map(|block| block.address).collect();
    assert_eq!(addresses, [1 << 40, 3 << 40]);
    assert!(heap.steady);
    assert_eq!(heap.report.header, 48);
}

#[test]
fn many_blocks_are_read_in_chunks() {
    let count = CHUNK * 2 + 17;
    let blocks: Vec<_> = (0..count as u64).map(|number| block(number << 20, BlockKind::Thp)).collect();
    let memory = Memory::with(report(count as u64), &blocks);
    assert_eq!(memory.heap().unwrap().blocks.len(), count);
}

#[test]
fn changing_heap_is_read_again() {
    let memory = Memory::with(HeapReport { generation: 5, ..report(1) }, &[block(1 << 40, BlockKind::Thp)]);
    let pauses = Cell::new(0);
    let pause = || {
        pauses.set(pauses.get() + 1);
        if pauses.get() == 3 {
            memory.put(REPORT, &mut [HeapReport { generation: 6, ..report(1) }]);
        }
    };
    let heap = heap(SIGNPOST, |address, into| memory.read(address, into), pause).unwrap();
    assert!(heap.steady);
    assert_eq!((pauses.get(), heap.report.generation), (3, 6));
}

#[test]
fn restless_heap_is_marked() {
    let memory = Memory::with(HeapReport { generation: 7, ..report(1) }, &[block(1 << 40, BlockKind::Thp)]);
    let heap = memory.heap().unwrap();
    assert!(!heap.steady);
    assert_eq!(heap.blocks.len(), 1);
    assert!(memory.reads.get() < 3 * TRIES);
}

#[test]
fn change_during_read_is_noticed() {
    let memory = Memory::with(report(1), &[block(1 << 40, BlockKind::Thp)]);
    let changed = Cell::new(false);
    let read = |address: u64, into: &mut [u8]| {
        if address == BLOCKS && !changed.replace(true) {
            memory.put(REPORT, &mut [HeapReport { generation: 8, ..report(0) }]);
        }
        memory.read(address, into)
    };
    let heap = heap(SIGNPOST, read, || {}).unwrap();
    assert!(heap.steady && heap.blocks.is_empty());
    assert_eq!(heap.report.generation, 8);
}

#[track_caller]
fn refused(memory: &Memory, words: &str) {
    let message = memory.heap().expect_err("decoded").to_string();
    assert!(message.contains(words), "{message}");
}

#[test]
fn damaged_reports_are_refused() {
    let good = || Memory::with(report(0), &[]);
    let memory = good();
    memory.put(SIGNPOST, &mut [Signpost { magic: *b"SOMEBODY", ..Signpost::to(REPORT) }]);
    refused(&memory, "not Largesse's");
    memory.put(SIGNPOST, &mut [Signpost { version: VERSION + 1, ..Signpost::to(REPORT) }]);
    refused(&memory, "use the `largesse` that came with that library");
    for address in [0, 1, u64::MAX, BLOCKS] {
        memory.put(SIGNPOST, &mut [Signpost::to(address)]);
        refused(&memory, "cannot be read");
    }
    refused(&Memory::default(), "cannot be read");
    refused(&Memory::with(report(u64::MAX), &[]), "number of slots is 0xffffffffffffffff");
    refused(&Memory::with(report(MOST_SLOTS), &[]), "cannot be read");
    refused(&Memory::with(HeapReport { blocks: u64::MAX, ..report(9000) }, &[]), "cannot be read");
    refused(&Memory::with(report(1), &[block(u64::MAX, BlockKind::Thp)]), "address of a block");
    refused(&Memory::with(report(1), &[block(ADDRESS_END, BlockKind::Thp)]), "address of a block");
}

#[test]
fn random_bytes_do_not_panic() {
    // A simple generator suffices to change bytes anywhere.
    let mut state = 1_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..2000 {
        let memory = Memory::with(report(64), &vec![block(1 << 40, BlockKind::Thp); 64]);
        for piece in memory.pieces.borrow_mut().values_mut() {
            for _ in 0..random() % 8 {
                let place = usize::try_from(random()).unwrap() % piece.len();
                piece[place] = random().to_le_bytes()[0];
            }
        }
        let _ = memory.heap();
    }
}
