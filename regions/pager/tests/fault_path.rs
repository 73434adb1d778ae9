//! One fault with an eviction, in one thread. `ci/fault-path.sh` traces it, and counts the source files that it passes
//! through.

mod common;

use common::{PAGE, ReorderingQueue, SimulatedFault, TestPager, TestStore, pager};
use largesse_pager::{AsyncEvictor, AsyncFiller, Buffer, Count, Touch};
use std::hint::black_box;
use std::sync::Arc;

/// Number of pages of local memory.
const LOCAL: usize = 64;

/// Marks the start of the path: `ci/fault-path.sh` traces all calls between here and `path_ends`.
#[inline(never)]
fn path_begins() {
    black_box(());
}

#[inline(never)]
fn path_ends() {
    black_box(());
}

/// Fills twice as many pages as fit by calling `fault`, and writes to them. Then traces a fault on the first page,
/// which is in the store, and which evicts a changed page.
fn trace(pager: &TestPager, mut fault: impl FnMut(Touch)) {
    for page in 0..2 * LOCAL {
        fault(Touch { page, write: true });
        pager.kernel().word(page, 0, Some(page as u64 + 1));
    }
    let counts = || [Count::Fills, Count::WriteBacks].map(|count| pager.counters.get(count));
    let before = counts();
    path_begins();
    fault(Touch { page: 0, write: false });
    path_ends();
    let after = counts();
    assert!(
        after[0] > before[0] && after[1] > before[1],
        "no page was read and written: {before:?}, {after:?}"
    );
    assert_eq!(pager.kernel().word(0, 0, None), 1);
}

#[test]
fn fault_with_transfers_that_end_at_once() {
    let store = Arc::new(TestStore::new(SimulatedFault::None));
    let pager = pager(4 * LOCAL, LOCAL, 1, &store);
    let mut buffer = Buffer::new(1).unwrap();
    trace(&pager, |touch| _ = pager.serve(touch, &mut buffer).unwrap());
}

#[test]
fn fault_with_transfers_in_flight() {
    let store = Arc::new(TestStore::new(SimulatedFault::None));
    let pager = pager(4 * LOCAL, LOCAL, 1, &store);
    let queue = |pages, seed| Box::new(ReorderingQueue::new(&store, pages, 8, seed));
    let mut filler = AsyncFiller::new(queue(512, 1), 512, PAGE).unwrap();
    let mut evictor = AsyncEvictor::new(queue(512, 2), 512, PAGE);
    trace(&pager, |touch| {
        filler.serve(&pager, touch).unwrap();
        filler.prefetch(&pager).unwrap();
        filler.drain(&pager).unwrap();
        while evictor.step(&pager).unwrap() {}
        evictor.drain(&pager).unwrap();
    });
}
