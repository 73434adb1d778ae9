//! Checks that every queue of transfers must pass, whatever its store.
#![allow(dead_code, reason = "each test uses its part")]

use largesse_store::{Direction, StoreError, Transfer, TransferQueue};
use std::ops::Range;
use std::time::Duration;

/// Number of bytes of a page.
pub(crate) const BYTES: usize = 4096;
/// Number of pages of queue memory that the checks need.
pub(crate) const PAGES: usize = 64;
/// Number of transfers in flight that the checks need.
pub(crate) const DEPTH: usize = 8;

/// Starts a transfer between pages of queue memory and the same number of pages of the store from `page` on. `page` is
/// also the identifier of the transfer.
pub(crate) fn start(queue: &mut dyn TransferQueue, direction: Direction, page: u64, memory: Range<usize>) {
    let memory = memory.start * BYTES..memory.end * BYTES;
    queue.start(Transfer { id: usize::try_from(page).unwrap(), direction, at: page * BYTES as u64, memory });
}

/// Waits until no transfer is in flight. Returns the results of all transfers, sorted by their identifiers.
pub(crate) fn results(queue: &mut dyn TransferQueue) -> Vec<(usize, Result<(), StoreError>)> {
    let mut ended = Vec::new();
    while queue.in_flight() > 0 {
        queue.reap(Duration::from_secs(10), &mut |completion| ended.push((completion.id, completion.result)));
    }
    ended.sort_unstable_by_key(|(id, _)| *id);
    ended
}

/// Waits until no transfer is in flight, and checks that all succeeded. Returns their identifiers in order.
#[track_caller]
pub(crate) fn finish(queue: &mut dyn TransferQueue) -> Vec<usize> {
    let ended = results(queue);
    assert!(ended.iter().all(|(_, result)| result.is_ok()), "{ended:?}");
    ended.into_iter().map(|(id, _)| id).collect()
}

/// Fills each of `pages` of queue memory with a byte of its own.
pub(crate) fn fill_memory(queue: &mut dyn TransferQueue, pages: Range<usize>, byte: impl Fn(usize) -> u8) {
    for page in pages {
        // SAFETY: nothing is in flight.
        unsafe { queue.memory(page * BYTES..(page + 1) * BYTES) }.fill(byte(page));
    }
}

pub(crate) fn memory_is(queue: &mut dyn TransferQueue, page: usize, byte: u8) -> bool {
    // SAFETY: nothing is in flight.
    unsafe { queue.memory(page * BYTES..(page + 1) * BYTES) }.iter().all(|&is| is == byte)
}

/// Writes and reads [`DEPTH`] runs of four pages at once, `step` pages apart, in each of twenty rounds. The store must
/// have room for them.
#[track_caller]
pub(crate) fn moves_the_right_bytes(queue: &mut dyn TransferQueue, step: usize) {
    let first = |run: usize| (run * step) as u64;
    for round in 0..20_u8 {
        let byte = |page: usize| u8::try_from(page).unwrap() ^ round;
        fill_memory(queue, 0..PAGES / 2, byte);
        (0..DEPTH).for_each(|run| start(queue, Direction::Write, first(run), run * 4..run * 4 + 4));
        assert_eq!(queue.in_flight(), DEPTH);
        assert_eq!(finish(queue), (0..DEPTH).map(|run| run * step).collect::<Vec<_>>());
        let into = |run: usize| PAGES / 2 + run * 4..PAGES / 2 + run * 4 + 4;
        (0..DEPTH).for_each(|run| start(queue, Direction::Read, first(run), into(run)));
        finish(queue);
        let wrong = (0..PAGES / 2).find(|page| !memory_is(queue, PAGES / 2 + page, byte(*page)));
        assert_eq!(wrong, None, "page of round {round}");
    }
}

/// Starts one transfer more than the depth, which must end with an error and leave the others alone.
#[track_caller]
pub(crate) fn refuses_more_than_its_depth(queue: &mut dyn TransferQueue) {
    let depth = queue.depth();
    (0..=depth).for_each(|page| start(queue, Direction::Write, page as u64, page..page + 1));
    let refused: Vec<usize> =
        results(queue).iter().filter(|(_, result)| result.is_err()).map(|(id, _)| *id).collect();
    assert_eq!(refused, [depth]);
}

/// Reaps without waiting, and with a short wait, when nothing is in flight.
pub(crate) fn reaps_nothing_when_idle(queue: &mut dyn TransferQueue) {
    for wait in [Duration::ZERO, Duration::from_secs(5)] {
        queue.reap(wait, &mut |completion| panic!("{completion:?} of no transfer"));
    }
    assert_eq!(queue.in_flight(), 0);
}
