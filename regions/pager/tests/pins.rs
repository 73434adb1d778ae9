//! Pages that stay resident while a system call uses their addresses.

mod common;

use common::{SimulatedFault, TestPager, TestStore, pager, run};
use largesse_pager::{Count, LEAST_PIN};
use largesse_policy::PageNumber;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Writes `word` to each page as a system call would: it cannot wait, so that every page must be resident.
fn system_call(pager: &TestPager, pages: Range<PageNumber>, word: u64) {
    let mut rest = pages;
    while !rest.is_empty() {
        let pinned = pager.pin(rest.clone(), LEAST_PIN);
        assert!(pinned.len() >= rest.len().min(LEAST_PIN) && pinned.start == rest.start);
        for page in pinned.clone() {
            let found = pager.kernel().word(page, 0, None);
            pager.kernel().word(page, 0, Some(found));
        }
        for _ in 0..3 {
            std::thread::yield_now();
            for page in pinned.clone() {
                assert!(pager.kernel().try_write(page, 1, word), "page {page} left");
            }
        }
        pager.unpin(&pinned);
        rest.start = pinned.end;
    }
}

fn sweep(pager: &TestPager, pages: Range<PageNumber>) {
    for page in pages {
        pager.kernel().word(page, 2, Some(1));
    }
}

#[test]
fn pinned_pages_stay_until_unpinned() {
    for set in [1, 16] {
        let store = Arc::new(TestStore::new(SimulatedFault::None));
        let pager = pager(2048, 128, set, &store);
        run(&pager, || {
            let pinned = pager.pin(100..130, LEAST_PIN);
            let again = pager.pin(110..140, LEAST_PIN);
            sweep(&pager, 100..140);
            sweep(&pager, 200..2048);
            assert!((100..140).all(|page| pager.kernel().try_write(page, 1, 7)), "{set}");
            pager.unpin(&pinned);
            sweep(&pager, 200..2048);
            assert!((110..140).all(|page| pager.kernel().try_write(page, 1, 7)), "{set}");
            pager.unpin(&again);
            sweep(&pager, 200..2048);
            sweep(&pager, 200..2048);
            assert!((100..140).any(|page| !pager.kernel().try_write(page, 1, 7)), "{set}: nothing left");
        })
        .unwrap();
        assert_eq!(pager.counters.get(Count::OverLimit), 0);
    }
}

#[test]
fn pins_never_wait_for_each_other() {
    let store = Arc::new(TestStore::new(SimulatedFault::None));
    let pager = pager(4096, 64, 4, &store);
    run(&pager, || {
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let pager = &pager;
                scope.spawn(move || {
                    for turn in 0..4 {
                        let from = (thread * 500 + turn * 37) % 4000;
                        system_call(pager, from..from + 40, 9);
                    }
                });
            }
        });
        // All resident pages may be pinned: a thread that needs another page gets it, over the limit.
        let pins: Vec<_> = (0..6).map(|pin| pager.pin(pin * 64..pin * 64 + 64, LEAST_PIN)).collect();
        pins.iter().for_each(|pin| sweep(&pager, pin.clone()));
        pager.kernel().word(4000, 0, Some(1));
        pins.iter().for_each(|pin| pager.unpin(pin));
    })
    .unwrap();
    assert!(pager.counters.get(Count::OverLimit) > 0);
}

#[test]
fn pages_pinned_for_good_make_no_fault_wait() {
    let store = Arc::new(TestStore::new(SimulatedFault::None));
    // The same touches with room for all pages show how fast the machine serves faults.
    let roomy = pager(4096, 4096, 1, &store);
    let began = Instant::now();
    run(&roomy, || sweep(&roomy, 0..4096)).unwrap();
    let usual = began.elapsed();
    let pager = pager(4096, 64, 1, &store);
    run(&pager, || {
        let mut rest = 0..64;
        while !rest.is_empty() {
            let pinned = pager.pin(rest.clone(), LEAST_PIN);
            pager.keep(&pinned);
            rest.start = pinned.end;
        }
        sweep(&pager, 0..64);
        sweep(&pager, 64..4096);
    })
    .unwrap();
    // 4,032 waits of a millisecond would take more than 4 s.
    let waited = Duration::from_nanos(pager.counters.get(Count::RoomNs));
    assert!(waited < Duration::from_secs(3) + 4 * usual, "{waited:?}, and {usual:?} with room");
}
