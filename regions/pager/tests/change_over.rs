//! Memory that the test uses becomes far in place, with this machine's kernel: no word changes, and the large pages of
//! which no part was evicted stay.

use core::ptr::with_exposed_provenance_mut;
use largesse_pager::{
    Count, FarMemory, FarRange, Linux, Local, MappedParts, Pager, PagerError, Segments, start,
};
use largesse_pages::fault::{OPEN_METHODS, Userfault};
use largesse_pages::residency::{Answer, Inspector};
use largesse_pages::{PageKind, Reserved, SPAN, base_page};
use largesse_policy::{Policies, Unsampled};
use largesse_store::{Broker, FileStore, Ranges};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SPANS: usize = 12;
const WORDS: usize = SPAN / size_of::<u64>();
/// Longest time in which an event of the pager is awaited.
const PATIENCE: Duration = Duration::from_secs(60);

#[expect(clippy::disallowed_macros, reason = "absent features are printed as skipped")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

fn lost(error: &PagerError) -> ! {
    panic!("{error}");
}

/// Stops the writer when it is dropped, including when a check fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Words of one span at an address, of which every 64th is used.
fn words(start: usize, span: usize) -> impl Iterator<Item = (&'static AtomicU64, u64)> {
    (0..WORDS).step_by(64).map(move |word| {
        let at = with_exposed_provenance_mut(start + span * SPAN + word * size_of::<u64>());
        // SAFETY: a word of the range, which is committed and never unmapped; all uses are atomic.
        (unsafe { AtomicU64::from_ptr(at) }, (span * WORDS + word + 1) as u64)
    })
}

/// Commits the first [`SPANS`] spans of a new range, and opens a userfaultfd. `None`, with a line that says why, if
/// the kernel cannot move pages.
fn committed_range() -> Option<(Arc<Broker>, Userfault, &'static Reserved)> {
    let broker = Broker::start().unwrap();
    let Ok(faults) = broker.call(|| Userfault::open(&OPEN_METHODS)) else {
        skipped("no userfaultfd here");
        return None;
    };
    if !faults.can_move() {
        skipped("this kernel does not move pages");
        return None;
    }
    let range: &'static Reserved = Box::leak(Box::new(Reserved::new((SPANS + 4) * SPAN, SPAN).unwrap()));
    range.commit(0, SPANS * SPAN, PageKind::Thp).unwrap();
    Some((broker, faults, range))
}

#[test]
fn used_memory_becomes_far_in_place() {
    let Some((broker, faults, range)) = committed_range() else { return };
    let start_at = range.start().as_ptr().expose_provenance();
    // The last two spans are committed and never used: they are zero.
    let used = SPANS - 2;
    (0..used)
        .flat_map(|span| words(start_at, span))
        .for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    let large = || match Inspector::open(None).unwrap().ask(start_at as u64, (SPANS * SPAN) as u64) {
        Answer::Exact(seen) => seen.large / SPAN as u64,
        Answer::NotPerAddress => 0,
    };
    let large_before = large();

    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stopped = Stop(&stop);
        // The program goes on all the time, with words of its own in every span, missing ones included.
        let writer = scope.spawn(|| {
            let mut rounds = 0;
            while !stop.load(Ordering::Relaxed) {
                rounds += 1;
                for span in 0..SPANS {
                    let at = with_exposed_provenance_mut(start_at + span * SPAN + 8);
                    // SAFETY: the second word of a span, which only this thread uses.
                    let own = unsafe { AtomicU64::from_ptr(at) };
                    let before = own.swap(rounds, Ordering::Relaxed);
                    assert_eq!(before, rounds - 1, "the writer's word in span {span}");
                }
            }
            rounds
        });
        let mut segments = Segments::new();
        let heap = FarRange::new(range.shared(), &mut segments);
        let mappings = FarRange::new(Reserved::new(4 * SPAN, SPAN).unwrap(), &mut segments);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let store = FileStore::create(&folder.join("store"), &broker).unwrap();
        let kernel = Linux::new(Arc::clone(&broker), faults, segments.clone(), Ranges::new()).unwrap();
        let all = SPANS * SPAN / base_page();
        let pager = Arc::new(Pager::new(kernel, store, segments, 2 * all, Policies::baseline(1)).unwrap());
        let far = FarMemory::new(
            heap,
            (mappings, MappedParts::new()),
            Arc::clone(&pager),
            Local::Bytes(2 * SPANS * SPAN),
            lost,
        );
        far.take_over([0..3, 3..SPANS].into_iter(), &Unsampled).unwrap();
        start(&pager, lost).unwrap();
        assert!(large() >= large_before, "a large page was split that no one evicted");
        let resident = || usize::try_from(pager.counters.get(Count::ResidentBytes)).unwrap();
        assert!(resident() >= used * SPAN * usize::from(large_before > 0), "{} bytes resident", resident());

        // Nothing needs to be evicted yet; with half of the memory, much has.
        assert_eq!(pager.counters.get(Count::Evictions), 0);
        pager.set_local(all / 2);
        let began = Instant::now();
        while resident() > SPANS * SPAN / 2 {
            assert!(began.elapsed() < PATIENCE, "{} bytes are still resident", resident());
            std::thread::yield_now();
        }
        for round in 0..2 {
            for (word, value) in (0..used).flat_map(|span| words(start_at, span)) {
                assert_eq!(word.swap(value + round + 1, Ordering::Relaxed), value + round, "round {round}");
            }
        }
        drop(stopped);
        assert!(writer.join().unwrap() > 0);
        for span in used..SPANS {
            for (word, _) in words(start_at, span) {
                assert_eq!(word.load(Ordering::Relaxed), 0, "span {span} was never written");
            }
        }
        assert!(pager.counters.get(Count::WriteBacks) > 0 && pager.counters.get(Count::Fills) > 0);
    });
}

/// `Linux::release` ends a change-over that failed: written words keep their values, other pages read as zero, and a
/// thread that waits in a fault continues.
#[test]
fn released_memory_is_near_again() {
    let broker = Broker::start().unwrap();
    let Ok(faults) = broker.call(|| Userfault::open(&OPEN_METHODS)) else {
        return skipped("no userfaultfd here");
    };
    let range = Reserved::new(2 * SPAN, SPAN).unwrap();
    let start_at = range.start().as_ptr().expose_provenance();
    range.commit(0, 2 * SPAN, PageKind::Thp).unwrap();
    words(start_at, 0).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    let mut segments = Segments::new();
    segments.add(start_at, 2 * SPAN / base_page(), SPAN / base_page());
    let kernel = Linux::new(broker, faults, segments, Ranges::new()).unwrap();
    std::thread::scope(|scope| {
        // It waits in the kernel until the range is released: nothing serves faults.
        let waiting =
            scope.spawn(|| words(start_at, 1).map(|(word, _)| word.load(Ordering::Relaxed)).sum::<u64>());
        kernel.release();
        assert_eq!(waiting.join().unwrap(), 0);
    });
    assert!(words(start_at, 0).all(|(word, value)| word.load(Ordering::Relaxed) == value));
}

/// Far memory becomes near and far again while a thread uses it: no word changes.
#[test]
fn far_memory_is_near_again_and_far_again() {
    let Some((broker, faults, range)) = committed_range() else { return };
    let start_at = range.start().as_ptr().expose_provenance();
    let used = SPANS - 2;
    (0..used)
        .flat_map(|span| words(start_at, span))
        .for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    let mut segments = Segments::new();
    let heap = FarRange::new(range.shared(), &mut segments);
    let mappings = FarRange::new(Reserved::new(4 * SPAN, SPAN).unwrap(), &mut segments);
    let store = FileStore::create(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("again"), &broker).unwrap();
    let kernel = Linux::new(Arc::clone(&broker), faults, segments.clone(), Ranges::new()).unwrap();
    let all = SPANS * SPAN / base_page();
    let pager = Arc::new(Pager::new(kernel, store, segments, all / 3, Policies::baseline(1)).unwrap());
    let far = FarMemory::new(
        heap,
        (mappings, MappedParts::new()),
        Arc::clone(&pager),
        Local::Bytes(SPANS * SPAN),
        lost,
    );
    far.take_over([0..3, 3..SPANS].into_iter(), &Unsampled).unwrap();
    start(&pager, lost).unwrap();
    let wait_until = |what: &str, done: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < PATIENCE, "{what}: {:?}", pager.counters);
            std::thread::sleep(Duration::from_millis(1));
        }
    };

    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stopped = Stop(&stop);
        let writer = scope.spawn(|| {
            let mut rounds = 0;
            while !stop.load(Ordering::Relaxed) {
                rounds += 1;
                for page in (0..all).step_by(7) {
                    let at = with_exposed_provenance_mut(start_at + page * base_page() + 8);
                    // SAFETY: the second word of a page, which only this thread uses.
                    let own = unsafe { AtomicU64::from_ptr(at) };
                    let before = own.swap(rounds, Ordering::Relaxed);
                    assert_eq!(before, rounds - 1, "the writer's word in page {page}");
                }
            }
            rounds
        });
        for round in 0..8 {
            pager.set_local(all / 3);
            wait_until("something is swapped out", &|| far.heap_count(Count::StoredBytes) > 0);
            assert!(!far.make_near(SPANS, PageKind::Thp), "a page is swapped out");
            pager.set_local(2 * all);
            wait_until("all pages are fetched back", &|| {
                far.recall_heap(SPANS);
                far.heap_count(Count::StoredBytes) == 0
            });
            assert!(far.make_near(SPANS, PageKind::Thp));
            assert_eq!(pager.counters.get(Count::ResidentBytes), 0);
            far.forget_stored(SPANS);
            let at = start_at..start_at + SPAN;
            assert!(!far.is_far(&at));
            for (word, value) in (0..used).flat_map(|span| words(start_at, span)) {
                assert_eq!(word.swap(value + round + 1, Ordering::Relaxed), value + round, "round {round}");
            }
            far.take_over_again(std::iter::once(0..SPANS), &Unsampled, &|_| {}).unwrap();
            assert!(far.is_far(&at));
        }
        drop(stopped);
        assert!(writer.join().unwrap() > 0);
        for (word, value) in (0..used).flat_map(|span| words(start_at, span)) {
            assert_eq!(word.load(Ordering::Relaxed), value + 8);
        }
    });
    assert!(pager.counters.get(Count::Recalled) > 0);
}
