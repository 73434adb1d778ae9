//! Pages that are touched while they are written back, with writes that end when the test wants it.

mod common;

use common::{PAGE, ReorderingQueue, Simulated, SimulatedFault, TestPager, TestStore, make_with};
use largesse_pager::{AsyncEvictor, AsyncFiller, Count, Touch};
use largesse_policy::Policies;
use largesse_store::{Completion, Mechanism, PageStore, Transfer, TransferQueue};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Number of pages of local memory.
const LOCAL: usize = 256;
/// Number of pages of far memory.
const PAGES: usize = 2048;
/// Number of pages of a transfer unit.
const UNIT: usize = 4;

/// Writes in flight. The flag of each says whether it may end.
type Writes = Arc<Mutex<Vec<(Transfer, bool)>>>;

/// A queue over the test store whose writes end only after the test has released them.
#[derive(Debug)]
struct HeldQueue {
    store: Arc<TestStore>,
    memory: Vec<u8>,
    writes: Writes,
}

fn pages_of(transfer: &Transfer) -> Range<usize> {
    let first = usize::try_from(transfer.at).unwrap() / PAGE;
    first..first + transfer.memory.len() / PAGE
}

impl TransferQueue for HeldQueue {
    fn mechanism(&self) -> Mechanism {
        Mechanism::Threads
    }

    fn depth(&self) -> usize {
        16
    }

    fn in_flight(&self) -> usize {
        self.writes.lock().unwrap().len()
    }

    unsafe fn memory(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.memory[range]
    }

    fn start(&mut self, transfer: Transfer) {
        let mut writes = self.writes.lock().unwrap();
        let new = pages_of(&transfer);
        for (other, _) in &*writes {
            let other = pages_of(other);
            assert!(other.end <= new.start || new.end <= other.start, "two writes of {new:?} in flight");
        }
        writes.push((transfer, false));
    }

    fn flush(&mut self) {}

    fn reap(&mut self, _: Duration, done: &mut dyn FnMut(Completion)) {
        let ended: Vec<_> = self.writes.lock().unwrap().extract_if(.., |(_, released)| *released).collect();
        for (transfer, _) in ended {
            let result = self.store.write(transfer.at, &self.memory[transfer.memory.clone()]);
            done(Completion { id: transfer.id, result });
        }
    }

    fn descriptor(&self) -> Option<core::ffi::c_int> {
        None
    }
}

/// A pager without threads: the test calls each step itself.
struct Steps {
    pager: Arc<TestPager>,
    store: Arc<TestStore>,
    filler: AsyncFiller,
    evictor: AsyncEvictor,
    writes: Writes,
}

impl Steps {
    /// Writes the word `page + 1` to each of many pages, until one of them is being written back. Returns that page,
    /// too.
    fn new(fault: SimulatedFault) -> (Steps, usize) {
        let store = Arc::new(TestStore::new(fault));
        // First in, first out: it is known which pages are evicted next.
        let pager = make_with(Simulated::new(PAGES), PAGES, LOCAL, Policies::baseline(UNIT), &store);
        let writes = Writes::default();
        let held =
            HeldQueue { store: Arc::clone(&store), memory: vec![0; 512 * PAGE], writes: Arc::clone(&writes) };
        let reads = ReorderingQueue::new(&store, 64, 8, 3);
        let filler = AsyncFiller::new(Box::new(reads), 64, PAGE).unwrap();
        let evictor = AsyncEvictor::new(Box::new(held), 512, PAGE);
        let mut steps = Steps { pager, store, filler, evictor, writes };
        for page in 0.. {
            steps.write(page, page as u64 + 1);
            steps.step();
            let first = steps.writes.lock().unwrap().first().map(|(write, _)| pages_of(write).start);
            if let Some(page) = first {
                return (steps, page);
            }
        }
        unreachable!("no page was evicted")
    }

    /// Releases the writes in flight of all pages but `page`.
    fn release_but(&self, page: usize) {
        for (write, released) in &mut *self.writes.lock().unwrap() {
            *released |= !pages_of(write).contains(&page);
        }
    }

    fn step(&mut self) {
        self.evictor.step(&self.pager).unwrap();
        self.filler.reap(&self.pager, Duration::from_secs(1)).unwrap();
    }

    fn touch(&mut self, page: usize, write: bool) {
        self.filler.serve(&self.pager, Touch { page, write }).unwrap();
        self.filler.prefetch(&self.pager).unwrap();
        self.filler.reap(&self.pager, Duration::from_secs(1)).unwrap();
    }

    fn write(&mut self, page: usize, value: u64) {
        while !self.pager.kernel().try_write(page, 0, value) {
            self.touch(page, true);
        }
    }

    fn read(&mut self, page: usize) -> u64 {
        while !self.pager.kernel().is_here(page) {
            self.touch(page, false);
        }
        self.pager.kernel().word(page, 0, None)
    }

    /// Touches pages other than `page`, and ends their writes, until three times as many pages as local memory has were
    /// evicted, or `until` returns true.
    fn evict_others(&mut self, page: usize, until: impl Fn(&Steps) -> bool) {
        let before = self.pager.counters.get(Count::Evictions);
        for other in (PAGES / 2..PAGES).cycle().take(4 * PAGES) {
            if until(self) || self.pager.counters.get(Count::Evictions) > before + 3 * LOCAL as u64 {
                return;
            }
            // At least one unit is free, so that no fault has to wait: nothing else would run.
            while self.pager.kernel().present() + 2 * UNIT > LOCAL || !self.writes_but(page).is_empty() {
                self.release_but(page);
                self.step();
            }
            self.write(other, other as u64 + 1);
        }
    }

    fn writes_but(&self, page: usize) -> Vec<Range<usize>> {
        let writes = self.writes.lock().unwrap();
        writes.iter().map(|(write, _)| pages_of(write)).filter(|pages| !pages.contains(&page)).collect()
    }

    /// Ends all writes in flight.
    fn release_all(&mut self) {
        self.release_but(usize::MAX);
        self.evictor.drain(&self.pager).unwrap();
    }

    /// Returns the first word of the store's contents of a page.
    fn stored(&self, page: usize) -> u64 {
        let mut bytes = [0; PAGE];
        self.store.read((page * PAGE) as u64, &mut bytes).unwrap();
        u64::from_ne_bytes(bytes[..8].try_into().unwrap())
    }
}

#[test]
fn touch_during_a_write_is_served_from_its_copy() {
    let (mut steps, page) = Steps::new(SimulatedFault::None);
    assert!(!steps.pager.kernel().is_here(page));
    steps.touch(page, false);
    assert!(steps.pager.kernel().is_here(page), "the touch waits for the write");
    assert_eq!(steps.read(page), page as u64 + 1);
    assert!(steps.pager.counters.get(Count::FromWrites) >= 1);
    // The program changes the page, whose first write is in flight.
    steps.write(page, 77);
    steps.evict_others(page, |_| false);
    assert!(steps.pager.kernel().is_here(page), "the page is evicted while its former contents are written");
    steps.release_all();
    assert_eq!(steps.stored(page), page as u64 + 1);
    // The change reaches the store by a second write, and comes back.
    steps.evict_others(usize::MAX, |steps| !steps.pager.kernel().is_here(page));
    assert!(!steps.pager.kernel().is_here(page), "the page is not evicted after its write");
    steps.release_all();
    assert_eq!(steps.stored(page), 77);
    assert_eq!(steps.read(page), 77);
    assert_eq!(steps.pager.counters.get(Count::OverLimit), 0);
}

#[test]
fn page_in_write_takes_no_local_memory() {
    let (mut steps, _) = Steps::new(SimulatedFault::None);
    let in_write = |steps: &Steps| steps.writes_but(usize::MAX).iter().map(Range::len).sum::<usize>();
    let before = in_write(&steps);
    let bytes = |steps: &Steps| steps.pager.counters.get(Count::ResidentBytes);
    let resident = |steps: &Steps| usize::try_from(bytes(steps)).unwrap() / PAGE;
    assert_eq!(resident(&steps), steps.pager.kernel().present(), "{before} pages are being written");
    // Other pages get the room, although no write ends.
    for page in PAGES / 2..PAGES / 2 + 2 * UNIT {
        steps.write(page, page as u64 + 1);
        steps.step();
    }
    assert!(in_write(&steps) > before, "nothing was evicted");
    assert_eq!(resident(&steps), steps.pager.kernel().present());
    assert!(resident(&steps) <= LOCAL);
    steps.release_all();
    assert_eq!(resident(&steps), steps.pager.kernel().present());
    assert_eq!(steps.pager.counters.get(Count::OverLimit), 0);
}

#[test]
fn refilled_page_is_written_once() {
    let (mut steps, page) = Steps::new(SimulatedFault::None);
    assert_eq!(steps.read(page), page as u64 + 1);
    steps.release_all();
    let before = steps.pager.counters.get(Count::WriteBacks);
    steps.evict_others(usize::MAX, |steps| !steps.pager.kernel().is_here(page));
    assert!(!steps.pager.kernel().is_here(page));
    let written: Vec<_> = steps.writes.lock().unwrap().iter().map(|(write, _)| pages_of(write)).collect();
    assert!(written.iter().all(|pages| !pages.contains(&page)), "written again: {written:?}");
    steps.release_all();
    assert!(steps.pager.counters.get(Count::WriteBacks) > before, "no other page was written");
    assert_eq!(steps.read(page), page as u64 + 1);
}

#[test]
fn failed_write_leaves_a_refilled_page_unstored() {
    let (mut steps, page) = Steps::new(SimulatedFault::Full(0, 1));
    assert_eq!(steps.read(page), page as u64 + 1);
    steps.release_all();
    assert!(steps.pager.kernel().is_here(page));
    assert_eq!(steps.stored(page), u64::from_ne_bytes([0xaa; 8]), "the write failed in its middle");
    // The store is asked again after a while.
    let since = Instant::now();
    while steps.pager.kernel().is_here(page) {
        assert!(since.elapsed() < Duration::from_secs(60), "the page is never evicted");
        steps.evict_others(usize::MAX, |steps| !steps.pager.kernel().is_here(page));
    }
    steps.release_all();
    assert_eq!(steps.read(page), page as u64 + 1);
}

#[test]
fn dropping_waits_for_the_write() {
    let (mut steps, page) = Steps::new(SimulatedFault::None);
    assert_eq!(steps.read(page), page as u64 + 1);
    let (pager, ended) = (Arc::clone(&steps.pager), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| {
            pager.drop_contents(page..page + 1).unwrap();
            assert!(ended.load(Ordering::Relaxed), "the room of a page is discarded while it is written");
        });
        // Long enough for a thread that does not wait, and harmless for one that does.
        (0..10_000).for_each(|_| std::thread::yield_now());
        ended.store(true, Ordering::Relaxed);
        while !dropping.is_finished() {
            steps.release_but(usize::MAX);
            steps.evictor.reap(&steps.pager, Duration::ZERO).unwrap();
        }
    });
    assert_eq!(steps.read(page), 0, "the page still has its former contents");
}

#[test]
fn page_in_write_may_have_changed() {
    let (mut steps, page) = Steps::new(SimulatedFault::None);
    let is_unchanged = |steps: &Steps| !steps.pager.unchanged(page..page + 1).is_empty();
    // Its write is in flight.
    steps.pager.watch(0..PAGES);
    assert!(!is_unchanged(&steps));
    steps.touch(page, false);
    steps.pager.watch(0..PAGES);
    steps.write(page, 77);
    steps.release_all();
    steps.evict_others(usize::MAX, |steps| !steps.pager.kernel().is_here(page));
    steps.release_all();
    assert!(!steps.pager.kernel().is_here(page) && !is_unchanged(&steps));
    steps.pager.watch(0..PAGES);
    assert!(is_unchanged(&steps));
    assert_eq!(steps.read(page), 77);
    assert!(!is_unchanged(&steps), "the page is resident");
}
