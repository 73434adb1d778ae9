use super::*;
use crate::{Coldness, SpanAges, Unsampled};
use std::collections::HashMap;

/// Simulates accesses to `pages` in their order, with `local` pages of local memory. Returns the share of hits, the
/// resident pages at the end, and the queue.
fn simulate(local: usize, pages: impl Iterator<Item = u32>) -> (f64, HashMap<u32, ()>, ReplacementQueue) {
    let mut queue = ReplacementQueue::new();
    let mut resident: HashMap<u32, ()> = HashMap::new();
    let mut evicted: HashMap<u32, (Protection, u32)> = HashMap::new();
    let (mut hits, mut all) = (0_u32, 0_u32);
    for page in pages {
        all += 1;
        if resident.contains_key(&page) {
            hits += 1;
            continue;
        }
        while resident.len() >= local {
            let (run, from) = queue.select_victim(local).unwrap();
            resident.remove(&run.first);
            evicted.insert(run.first, (from, queue.clock()));
        }
        queue.insert(PageRun { first: page, pages: 1 }, local, evicted.get(&page).copied());
        resident.insert(page, ());
    }
    (f64::from(hits) / f64::from(all), resident, queue)
}

/// Returns the share of hits of a [simulation](simulate), and the resident pages at its end.
fn run(local: usize, pages: impl Iterator<Item = u32>) -> (f64, HashMap<u32, ()>) {
    let (hits, resident, _) = simulate(local, pages);
    (hits, resident)
}

/// Returns the refaults of a [simulation](simulate).
pub(super) fn refaults(local: usize, pages: impl Iterator<Item = u32>) -> Refaults {
    *simulate(local, pages).2.refaults()
}

fn hits(local: usize, pages: impl Iterator<Item = u32>) -> f64 {
    run(local, pages).0
}

fn rounds(pages: u32, rounds: u32) -> impl Iterator<Item = u32> {
    (0..rounds).flat_map(move |_| 0..pages)
}

#[test]
fn part_of_a_large_loop_stays_resident() {
    // First in, first out would hit nothing. At best a share of local / pages hits.
    for (local, pages) in [(750, 1000), (500, 1000), (250, 1000), (100, 1000)] {
        let share = hits(local, rounds(pages, 40));
        let best = local as f64 / f64::from(pages);
        assert!(share > 0.7 * best, "{local} of {pages}: {share:.3}, {best:.3} is possible");
    }
}

// Seen to fail (4199 pieces) when probes take a single page.
#[test]
fn protected_pages_of_a_loop_are_contiguous() {
    let (local, pages) = (8192, 24_000);
    let (_, resident) = run(local, rounds(pages, 40));
    let pieces =
        (0..pages).filter(|page| resident.contains_key(page) && !resident.contains_key(&(page + 1))).count();
    assert!(pieces < local / 40, "{pieces} pieces");
}

#[test]
fn loop_that_fits_misses_once() {
    assert!(hits(1000, rounds(990, 20)) > 0.94);
}

#[test]
fn new_loop_replaces_protected_pages() {
    // Two loops that both fit, one after the other: the second must not starve.
    let pages = rounds(800, 20).chain((0..30).flat_map(|_| 5000..5800));
    assert!(hits(1000, pages) > 0.75);
}

// Seen to fail (0.005) when only refaults within twice the local memory count.
#[test]
fn later_large_loop_is_protected_too() {
    let (local, times) = (10_000, 10);
    let before = || rounds(30_000, 4);
    let after = || (0..times).flat_map(|_| 50_000..90_000);
    let (first, all) = (4.0 * 30_000.0, f64::from(times) * 40_000.0);
    let hit = hits(local, before().chain(after())) * (first + all) - hits(local, before()) * first;
    assert!(hit / all > 0.7 * 0.1875, "{:.3}, 0.188 is possible", hit / all);
}

#[test]
fn hot_pages_survive_a_scan() {
    // Every other access is to one of 200 hot pages, the rest is used once.
    let pages = (0..60_000_u32).map(|i| if i % 2 == 0 { i / 2 % 200 } else { 10_000 + i });
    let share = hits(1000, pages);
    assert!(share > 0.40, "{share} of 0.5 that are possible");
}

#[test]
fn window_larger_than_the_probationary_part_hits() {
    // 4000 pages in a memory of 1000: first in their order, then in windows of 500, 10 times each.
    let windows = (0..8_u32).flat_map(|at| (0..10).flat_map(move |_| at * 500..at * 500 + 500));
    let share = hits(1000, rounds(4000, 6).chain((0..8).flat_map(|_| windows.clone())));
    let most = 8.0 * 0.9 * 40_000.0 / (6.0 * 4000.0 + 8.0 * 40_000.0);
    assert!(share > 0.8 * most, "{share:.3}, {most:.3} is possible");
}

// Seen to fail when any of the three counts it as evicted, and when it is selected again at once.
#[test]
fn deferred_runs_count_as_never_evicted() {
    let mut queue = ReplacementQueue::new();
    (0..200).for_each(|first| queue.insert(PageRun { first, pages: 1 }, 100, None));
    let seen = |queue: &ReplacementQueue| {
        (queue.rates.map(|rate| rate.evicted), queue.refault_distance.absent, queue.protected.absent())
    };
    let before = seen(&queue);
    for _ in 0..190 {
        let (run, from) = queue.select_victim(100).unwrap();
        queue.defer(run, from);
    }
    assert_eq!((seen(&queue), queue.runs(), queue.is_empty()), (before, 200, false));
    let others: Vec<_> = core::iter::from_fn(|| queue.select_victim(100)).collect();
    assert_eq!((others.len(), queue.is_empty()), (10, true));
    let few = queue.deferred[10].first;
    queue.retry_deferred(&(few as usize..few as usize + 1), 100);
    assert_eq!(
        core::iter::from_fn(|| queue.select_victim(100)).map(|(run, _)| run.first).collect::<Vec<_>>(),
        [few]
    );
    queue.retry_deferred(&(0..PageNumber::MAX), 100);
    assert_eq!(core::iter::from_fn(|| queue.select_victim(100)).count(), 189);
}

/// Runs of 10 pages each, the first with number 0, with these ages.
fn adopted(ages: &[u8], local: usize) -> ReplacementQueue {
    let mut queue = ReplacementQueue::new();
    let runs = ages.iter().zip(0..).map(|(&age, at)| (PageRun { first: at * 10, pages: 10 }, age));
    queue.adopt(runs.collect(), local);
    queue
}

#[test]
fn coldest_adopted_runs_are_evicted_first() {
    let mut queue = adopted(&[0, 2, 0, 3, 2, 0], 60);
    let victims: Vec<_> = (0..3).map(|_| queue.select_victim(60).unwrap().0.first).collect();
    assert_eq!(victims, [30, 10, 40]);
    // New pages are protected in the place of cold ones.
    queue.insert(PageRun { first: 70, pages: 10 }, 60, None);
    assert_eq!(queue.protected.pages(), 40);
}

#[test]
fn adopted_runs_of_one_age_are_evicted_in_order() {
    let mut queue = adopted(&[0; 8], 80);
    assert_eq!(queue.protected.pages(), 60);
    let victims: Vec<_> = (0..2).map(|_| queue.select_victim(80).unwrap().0.first).collect();
    assert_eq!(victims, [0, 10]);
}

/// Adopts 90 runs of 10 pages, of which the program uses `hot` again and again while it fills 300 more pages, with room
/// for 900. Returns the number of faults on hot pages.
fn faults_after_change_over(coldness: &dyn Coldness, hot: &Range<u32>) -> usize {
    const LOCAL: usize = 900;
    let mut queue = ReplacementQueue::new();
    let runs = (0..90).map(|run| (PageRun { first: run * 10, pages: 10 }, coldness.age(run as usize)));
    queue.adopt(runs.collect(), LOCAL);
    let mut resident: HashMap<u32, ()> = (0..900).map(|page| (page, ())).collect();
    let mut evicted: HashMap<u32, (Protection, u32)> = HashMap::new();
    let mut faults = 0;
    for fresh in 2000..2300 {
        for page in core::iter::once(fresh).chain(hot.start * 10..hot.end * 10) {
            if resident.insert(page, ()).is_some() {
                continue;
            }
            faults += usize::from(page != fresh);
            while resident.len() > LOCAL {
                let (run, from) = queue.select_victim(LOCAL).unwrap();
                for page in run.first..run.first + run.pages {
                    resident.remove(&page);
                    evicted.insert(page, (from, queue.clock()));
                }
            }
            queue.insert(PageRun { first: page, pages: 1 }, LOCAL, evicted.get(&page).copied());
        }
    }
    faults
}

#[test]
fn sampled_ages_save_faults_after_a_change_over() {
    for hot in [0..40, 50..90] {
        let mut ages = SpanAges::default();
        for (run, number) in (0..90).zip(0_u32..) {
            ages.sampled(run..run + 1, hot.contains(&number), true);
        }
        let [sampled, baseline] =
            [&ages as &dyn Coldness, &Unsampled].map(|coldness| faults_after_change_over(coldness, &hot));
        // Probes of protected pages cost some faults.
        let most = if hot.start == 0 { baseline / 3 } else { 30 };
        assert!(sampled <= most, "hot {hot:?}: {sampled} faults, baseline {baseline}");
    }
}

#[test]
fn dead_runs_are_removed() {
    let mut queue = ReplacementQueue::new();
    for first in 0..10 {
        queue.insert(PageRun { first, pages: 1 }, 100, None);
    }
    queue.retain(&mut |run| run.first % 2 == 0);
    assert_eq!(queue.runs(), 5);
    assert_eq!(queue.select_victim(100).unwrap().0, PageRun { first: 0, pages: 1 });
}
