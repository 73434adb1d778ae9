//! Pages that are not resident and have not changed since a moment.

mod common;

use common::{Random, Simulated, SimulatedFault, TestPager, TestStore, make_with, pager, run};
use largesse_arena::Reads;
use largesse_policy::Policies;
use std::sync::Arc;

/// Number of pages of far memory.
const PAGES: usize = 512;
/// Number of pages of local memory.
const LOCAL: usize = 128;

fn store() -> Arc<TestStore> {
    Arc::new(TestStore::new(SimulatedFault::None))
}

/// Makes a pager that evicts pages in the order in which they were filled.
fn make(unit: usize) -> Arc<TestPager> {
    make_with(Simulated::new(PAGES), PAGES, LOCAL, Policies::baseline(unit), &store())
}

/// Returns for each page whether it is known to be unchanged.
fn unchanged(pager: &TestPager) -> Vec<bool> {
    let runs = pager.unchanged(0..PAGES);
    (0..PAGES).map(|page| runs.iter().any(|run| run.contains(&page))).collect()
}

fn read(pager: &TestPager, pages: std::ops::Range<usize>) {
    pages.for_each(|page| _ = pager.kernel().word(page, 0, None));
}

fn write(pager: &TestPager, pages: std::ops::Range<usize>, value: u64) {
    pages.for_each(|page| _ = pager.kernel().word(page, 0, Some(value)));
}

/// Reads pages that are otherwise unused, so that all others are evicted.
fn evict_others(pager: &TestPager) {
    read(pager, 256..PAGES);
}

#[test]
fn nothing_is_unchanged_before_the_first_watch() {
    let pager = make(1);
    run(&pager, || {
        write(&pager, 0..PAGES, 1);
        evict_others(&pager);
        assert!(!unchanged(&pager).contains(&true));
    })
    .unwrap();
}

// Seen to fail when a write-back or the state `Dirty` at the call of `watch` is not noted.
#[test]
fn only_unwritten_missing_pages_are_unchanged() {
    for unit in [1, 16] {
        let pager = make(unit);
        run(&pager, || {
            write(&pager, 0..PAGES, 1);
            // Three times, since pages that were changed during their last two residencies are filled writable.
            for _ in 0..3 {
                read(&pager, 0..256);
                evict_others(&pager);
            }
            write(&pager, 240..256, 2);
            pager.watch(0..PAGES);
            read(&pager, 32..64);
            write(&pager, 96..112, 3);
            evict_others(&pager);
            let found = unchanged(&pager);
            let missing = |page: usize| !pager.kernel().is_here(page);
            assert!((0..256).all(missing), "{unit}");
            assert!(found[..96].iter().all(|it| *it), "{unit}: {found:?}");
            assert!(!found[96..112].contains(&true), "{unit}: written since");
            assert!(!found[240..256].contains(&true), "{unit}: writable at the call");
            pager.watch(0..PAGES);
            assert_eq!(unchanged(&pager)[..256], [true; 256], "{unit}");
        })
        .unwrap();
    }
}

#[test]
fn dropped_pages_are_not_unchanged() {
    let pager = make(1);
    run(&pager, || {
        write(&pager, 0..PAGES, 1);
        evict_others(&pager);
        pager.watch(0..PAGES);
        pager.drop_contents(0..32).unwrap();
        pager.set_wanted(32..64, false);
        pager.set_wanted(32..64, true);
        assert!(!unchanged(&pager)[..64].contains(&true));
        // New contents are no old ones, even if they are the same.
        write(&pager, 0..64, 1);
        evict_others(&pager);
        let found = unchanged(&pager);
        assert!(!found[..64].contains(&true) && !found[64..256].contains(&false), "{found:?}");
    })
    .unwrap();
}

// Seen to fail when pages that were changed before are filled writable.
#[test]
fn page_filled_while_the_program_only_reads_is_unchanged() {
    for unit in [1, 16] {
        let pager = make(unit);
        run(&pager, || {
            write(&pager, 0..PAGES, 1);
            pager.only_read(Reads::All);
            read(&pager, 0..64);
            pager.watch(0..PAGES);
            evict_others(&pager);
            assert!((0..64).all(|page| !pager.kernel().is_here(page)), "{unit}");
            // Each of the two threads that serve faults may still have been filling a transfer unit at the call of
            // `watch`.
            let found = unchanged(&pager)[..64].iter().filter(|it| **it).count();
            assert!(found >= 64 - 2 * unit, "{unit}: {found}");
            write(&pager, 0..64, 2);
            evict_others(&pager);
            assert!(!unchanged(&pager)[..64].contains(&true), "{unit}");
        })
        .unwrap();
    }
}

// Seen to fail when a fill brings its neighbours along.
#[test]
fn page_is_filled_alone_while_the_program_reads_changed_ones() {
    let pager = make(16);
    run(&pager, || {
        write(&pager, 0..PAGES, 1);
        evict_others(&pager);
        pager.watch(0..PAGES);
        (0..128).step_by(8).for_each(|page| write(&pager, page..page + 2, 2));
        evict_others(&pager);
        let before = unchanged(&pager);
        let changed = |page: &usize| !before[*page];
        pager.only_read(Reads::Changed);
        (0..128).filter(changed).for_each(|page| read(&pager, page..page + 1));
        // A page that is filled along with another is in flight before the read of the other returns.
        let after = unchanged(&pager);
        let brought: Vec<usize> = (0..128).filter(|&page| before[page] && !after[page]).collect();
        assert_eq!(brought, []);
        // An unchanged page can be read all the same, and units are filled together again afterwards.
        let out = (0..128).find(|&page| before[page]).expect("a page that was not written to");
        assert_eq!(pager.kernel().word(out, 0, None), 1);
        evict_others(&pager);
        pager.watch(0..PAGES);
        assert_eq!(unchanged(&pager)[..16], [true; 16]);
        read(&pager, 0..1);
        assert_eq!(unchanged(&pager)[..16], [false; 16]);
    })
    .unwrap();
}

// Seen to fail when a fill of a zero page is not noted.
#[test]
fn page_with_contents_that_it_had_before_it_was_zero_has_changed() {
    let pager = make(1);
    run(&pager, || {
        write(&pager, 0..PAGES, 1);
        for _ in 0..3 {
            read(&pager, 0..32);
            evict_others(&pager);
        }
        // Evicted without a write, since the program has given them up.
        read(&pager, 0..32);
        pager.set_wanted(0..32, false);
        evict_others(&pager);
        pager.set_wanted(0..32, true);
        pager.watch(0..PAGES);
        write(&pager, 0..32, 1);
        evict_others(&pager);
        assert!((0..32).all(|page| !pager.kernel().is_here(page)));
        assert!(!unchanged(&pager)[..32].contains(&true));
    })
    .unwrap();
}

#[test]
fn unchanged_pages_have_their_former_contents() {
    for (unit, seed) in [(1, 1), (4, 2), (16, 3)] {
        let pager = pager(PAGES, LOCAL, unit, &store());
        run(&pager, || {
            let (mut random, mut now, mut found_in_all) = (Random(seed), vec![0; PAGES], 0);
            let mut watched = now.clone();
            for step in 0..24_000_u64 {
                let page = random.below(PAGES);
                match random.below(4000) {
                    0 => {
                        pager.watch(0..PAGES);
                        watched.clone_from(&now);
                    }
                    1 | 2 => {
                        let found = unchanged(&pager);
                        found_in_all += found.iter().filter(|it| **it).count();
                        for page in (0..PAGES).filter(|page| found[*page]) {
                            assert_eq!(now[page], watched[page], "page {page} after {step} steps");
                        }
                    }
                    3 => {
                        pager.drop_contents(page..page + 1).unwrap();
                        now[page] = 0;
                    }
                    // Often the same values again, so that contents return to what they were.
                    4..400 => {
                        now[page] = random.below(3) as u64;
                        pager.kernel().word(page, 0, Some(now[page]));
                    }
                    _ => assert_eq!(pager.kernel().word(page, 0, None), now[page], "page {page}"),
                }
            }
            assert!(found_in_all > 300, "{found_in_all} unchanged pages");
        })
        .unwrap();
    }
}
