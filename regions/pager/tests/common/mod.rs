//! Provides what the tests share: a simulated kernel, a store that injects faults, and threads that use the pager over
//! both.
#![allow(dead_code, reason = "each test uses its part")]

mod delayed;
mod queue;

#[allow(unused_imports, reason = "each test uses its part")]
pub(crate) use delayed::DelayedQueue;
#[allow(unused_imports, reason = "each test uses its part")]
pub(crate) use queue::ReorderingQueue;

use largesse_pager::{Buffer, Kernel, Pager, PagerError, Segments, Show, Touch};
use largesse_pages::fault::FaultError;
use largesse_policy::transfer::TransferSize;
use largesse_policy::{PageNumber, Policies};
use largesse_store::{PageStore, StoreError};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Size of a simulated page in bytes: small, so that many pages need little memory.
pub(crate) const PAGE: usize = 64;

#[derive(Clone, Copy, Default)]
struct PageTableEntry {
    present: bool,
    writable: bool,
}

#[derive(Default)]
struct SimulatedState {
    entries: Vec<PageTableEntry>,
    /// Number of wake-ups of each page for which a thread has ever waited.
    wakes: HashMap<PageNumber, u64>,
    /// Faults that no handler has read yet.
    queue: Vec<Touch>,
    pinned: Range<PageNumber>,
}

/// A simulated kernel: page tables and a queue of faults. A thread that waits for a page sleeps until that page is
/// woken.
pub(crate) struct Simulated {
    bytes: Box<[UnsafeCell<u8>]>,
    state: Mutex<SimulatedState>,
    changed: Condvar,
    /// Whether fills of several pages use frames of evicted pages, and are writable.
    reuses: bool,
    /// Whether a fill lets other threads run before it starts.
    fills_slowly: bool,
    /// Whether each page seems to be zero, as if the program wrote to it right after the look.
    looks_zero: bool,
}

// SAFETY: bytes are touched under `state`'s lock.
unsafe impl Sync for Simulated {}

impl Simulated {
    pub(crate) fn new(pages: usize) -> Simulated {
        let bytes = (0..pages * PAGE).map(|_| UnsafeCell::new(0)).collect();
        let state =
            SimulatedState { entries: vec![PageTableEntry::default(); pages], ..SimulatedState::default() };
        Simulated {
            bytes,
            state: Mutex::new(state),
            changed: Condvar::new(),
            reuses: false,
            fills_slowly: false,
            looks_zero: false,
        }
    }

    pub(crate) fn that_reuses(self, reuses: bool) -> Simulated {
        Simulated { reuses, ..self }
    }

    pub(crate) fn that_fills_slowly(self) -> Simulated {
        Simulated { fills_slowly: true, ..self }
    }

    pub(crate) fn that_looks_zero(self) -> Simulated {
        Simulated { looks_zero: true, ..self }
    }

    fn woken(&self, state: &mut SimulatedState, pages: Range<PageNumber>) {
        for (page, wakes) in &mut state.wakes {
            if pages.contains(page) {
                *wakes += 1;
            }
        }
        self.changed.notify_all();
    }

    /// Removes pages, and overwrites their bytes, so that a later use of them fails a test.
    fn clear(&self, state: &mut SimulatedState, pages: Range<PageNumber>) {
        for page in pages {
            state.entries[page] = PageTableEntry::default();
            for at in 0..PAGE {
                // SAFETY: under the lock.
                unsafe { *self.bytes[page * PAGE + at].get() = 0xdd };
            }
        }
    }

    /// Makes these resident pages unevictable from now on, as if a device wrote to them.
    pub(crate) fn pin(&self, pages: Range<PageNumber>) {
        self.state.lock().unwrap().pinned = pages;
    }

    /// Reads a word of a page, or writes `new` to it, and waits in faults like any thread.
    pub(crate) fn word(&self, page: PageNumber, word: usize, new: Option<u64>) -> u64 {
        let mut state = self.state.lock().unwrap();
        loop {
            let entry = state.entries[page];
            if entry.present && (entry.writable || new.is_none()) {
                let at = self.bytes[page * PAGE + word * 8].get().cast::<u64>();
                // SAFETY: inside the page, under the lock; `Box<[u8]>` pages may be unaligned.
                unsafe {
                    if let Some(new) = new {
                        at.write_unaligned(new);
                    }
                    return at.read_unaligned();
                }
            }
            // The kernel puts the thread to sleep with the page table locked: no wake is lost.
            let before = *state.wakes.entry(page).or_insert(0);
            state.queue.push(Touch { page, write: new.is_some() });
            self.changed.notify_all();
            while state.wakes[&page] == before {
                state = self.changed.wait(state).unwrap();
            }
        }
    }

    /// Writes a word as the kernel does for a system call, which cannot wait in a fault. Returns `false` if the page is
    /// not writable.
    pub(crate) fn try_write(&self, page: PageNumber, word: usize, new: u64) -> bool {
        let state = self.state.lock().unwrap();
        if !state.entries[page].writable {
            return false;
        }
        // SAFETY: inside the page, under the lock.
        unsafe { self.bytes[page * PAGE + word * 8].get().cast::<u64>().write_unaligned(new) };
        true
    }

    /// Returns the next fault, if there is one.
    pub(crate) fn try_next_fault(&self) -> Option<Touch> {
        self.state.lock().unwrap().queue.pop()
    }

    /// Waits for the next fault. Returns `None` once `stop` is true.
    pub(crate) fn next_fault(&self, stop: &AtomicBool) -> Option<Touch> {
        let mut state = self.state.lock().unwrap();
        loop {
            if let Some(touch) = state.queue.pop() {
                return Some(touch);
            }
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            state = self.changed.wait(state).unwrap();
        }
    }

    pub(crate) fn poke(&self) {
        let _state = self.state.lock().unwrap();
        self.changed.notify_all();
    }

    pub(crate) fn is_here(&self, page: PageNumber) -> bool {
        self.state.lock().unwrap().entries[page].present
    }

    pub(crate) fn present(&self) -> usize {
        self.state.lock().unwrap().entries.iter().filter(|entry| entry.present).count()
    }
}

impl Kernel for Simulated {
    fn page(&self) -> usize {
        PAGE
    }

    fn fill(&self, first: PageNumber, bytes: &[u8], protect: bool) -> Result<(), FaultError> {
        if self.fills_slowly {
            std::thread::yield_now(); // other threads run before the bytes are read
        }
        let mut state = self.state.lock().unwrap();
        for (page, bytes) in (first..).zip(bytes.chunks_exact(PAGE)) {
            assert!(!state.entries[page].present, "page {page} is filled twice");
            for (at, &byte) in bytes.iter().enumerate() {
                // SAFETY: under the lock.
                unsafe { *self.bytes[page * PAGE + at].get() = byte };
            }
            state.entries[page] = PageTableEntry { present: true, writable: !protect };
        }
        Ok(())
    }

    fn reuses(&self, pages: usize) -> bool {
        self.reuses && pages > 1
    }

    fn protect(&self, pages: Range<PageNumber>, on: bool) -> Result<(), FaultError> {
        let mut state = self.state.lock().unwrap();
        for page in pages {
            assert!(state.entries[page].present, "page {page} is protected and not there");
            state.entries[page].writable = !on;
        }
        Ok(())
    }

    fn take(&self, pages: Range<PageNumber>, show: Show<'_>) -> Result<(), PagerError> {
        for page in pages {
            let mut held = [0; PAGE];
            {
                let mut state = self.state.lock().unwrap();
                assert!(state.entries[page].present, "page {page} is taken and not there");
                if state.pinned.contains(&page) {
                    continue;
                }
                // SAFETY: under the lock.
                held.copy_from_slice(unsafe {
                    std::slice::from_raw_parts(self.bytes[page * PAGE].get(), PAGE)
                });
                self.clear(&mut state, page..page + 1);
            }
            show(page, &held)?;
        }
        Ok(())
    }

    fn forget(&self, pages: &[Range<PageNumber>]) -> Result<(), FaultError> {
        let mut state = self.state.lock().unwrap();
        pages.iter().for_each(|range| self.clear(&mut state, range.clone()));
        Ok(())
    }

    fn zeros(&self, pages: Range<PageNumber>) -> Vec<bool> {
        let state = self.state.lock().unwrap();
        let zero = |page: PageNumber| {
            assert!(state.entries[page].present, "page {page} is looked at and not there");
            // SAFETY: under the lock.
            self.looks_zero || (0..PAGE).all(|at| unsafe { *self.bytes[page * PAGE + at].get() } == 0)
        };
        pages.map(zero).collect()
    }

    fn wake(&self, pages: Range<PageNumber>) {
        let mut state = self.state.lock().unwrap();
        self.woken(&mut state, pages);
    }
}

/// A mistake that a test store makes, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimulatedFault {
    None,
    /// Each transfer takes a while.
    Slow,
    /// A bit of the n-th page read is flipped.
    Flip(u32),
    /// The n-th page read has the contents of its last write but one.
    Stale(u32),
    /// The n-th write fails.
    FailWrite(u32),
    /// The writes from the one with the first number on find no room; the second number is how many.
    Full(u32, u32),
    /// The n-th read fails.
    FailRead(u32),
}

/// A store in a table, which makes one kind of mistake.
#[derive(Debug)]
pub(crate) struct TestStore {
    pages: Mutex<HashMap<u64, [Vec<u8>; 2]>>,
    fault: SimulatedFault,
    calls: AtomicU32,
    pub(crate) room: AtomicU64,
    /// Number of calls that read.
    pub(crate) transfers: AtomicU32,
    pub(crate) reads: AtomicU32,
    pub(crate) writes: AtomicU32,
    /// Largest number of reads that were in flight at once in a queue.
    pub(crate) most_reads_in_flight: AtomicU32,
    /// The bytes of the store that transfers in flight in any queue read or write.
    in_flight: Mutex<Vec<Range<u64>>>,
}

impl TestStore {
    pub(crate) fn new(fault: SimulatedFault) -> TestStore {
        TestStore {
            pages: Mutex::default(),
            fault,
            calls: AtomicU32::new(0),
            room: AtomicU64::new(u64::MAX),
            transfers: AtomicU32::new(0),
            reads: AtomicU32::new(0),
            writes: AtomicU32::new(0),
            most_reads_in_flight: AtomicU32::new(0),
            in_flight: Mutex::default(),
        }
    }

    pub(crate) fn held(&self) -> usize {
        self.pages.lock().unwrap().len()
    }

    /// Notes the start of a transfer, and checks that no other transfer of these bytes is in flight in any queue.
    pub(crate) fn begin_transfer(&self, bytes: Range<u64>) {
        let mut in_flight = self.in_flight.lock().unwrap();
        let is_apart = |other: &Range<u64>| other.end <= bytes.start || bytes.end <= other.start;
        assert!(in_flight.iter().all(is_apart), "{bytes:?} is in flight in another queue");
        in_flight.push(bytes);
    }

    /// Notes the end of the transfer that starts with byte `at`.
    pub(crate) fn end_transfer(&self, at: u64) {
        self.in_flight.lock().unwrap().retain(|bytes| bytes.start != at);
    }

    /// Returns whether all writes that find no room have been made.
    pub(crate) fn has_room_again(&self) -> bool {
        let SimulatedFault::Full(first, count) = self.fault else { return true };
        self.calls.load(Ordering::Relaxed) >= first + count
    }

    /// Counts a call, and returns whether it is the one with this number.
    fn now(&self, number: u32) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) == number
    }
}

impl PageStore for TestStore {
    fn reserve(&self, _: u64, len: u64) -> Result<(), StoreError> {
        let room = self.room.load(Ordering::Relaxed);
        if room < len { Err(StoreError::Full { wanted: len }) } else { Ok(()) }
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.transfers.fetch_add(1, Ordering::Relaxed);
        if self.fault == SimulatedFault::Slow {
            std::thread::sleep(std::time::Duration::from_micros(at % 97));
        }
        if let SimulatedFault::FailRead(number) = self.fault
            && self.now(number)
        {
            return Err(StoreError::System { call: "read", errno: 5 });
        }
        let pages = self.pages.lock().unwrap();
        for (number, bytes) in (at / PAGE as u64..).zip(into.chunks_exact_mut(PAGE)) {
            self.reads.fetch_add(1, Ordering::Relaxed);
            let [new, old] = pages.get(&number).expect("a page is read that was never written");
            bytes.copy_from_slice(new);
            match self.fault {
                SimulatedFault::Flip(number) if self.now(number) => bytes[13] ^= 4,
                SimulatedFault::Stale(number) if !old.is_empty() && old != new && self.now(number) => {
                    bytes.copy_from_slice(old)
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        if self.fault == SimulatedFault::Slow {
            std::thread::sleep(std::time::Duration::from_micros(at % 89));
        }
        if let SimulatedFault::FailWrite(number) = self.fault
            && self.now(number)
        {
            return Err(StoreError::System { call: "write", errno: 5 });
        }
        if let SimulatedFault::Full(first, count) = self.fault
            && (first..first + count).contains(&self.calls.fetch_add(1, Ordering::Relaxed))
        {
            // Some of it arrived.
            self.pages.lock().unwrap().entry(at / PAGE as u64).or_default()[0] = vec![0xaa; PAGE];
            return Err(StoreError::System { call: "write", errno: 28 });
        }
        let mut pages = self.pages.lock().unwrap();
        for (number, bytes) in (at / PAGE as u64..).zip(from.chunks_exact(PAGE)) {
            self.writes.fetch_add(1, Ordering::Relaxed);
            let [new, old] = pages.entry(number).or_default();
            *old = std::mem::replace(new, bytes.to_vec());
        }
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        let gone = at / PAGE as u64..(at + len) / PAGE as u64;
        self.pages.lock().unwrap().retain(|number, _| !gone.contains(number));
    }
}

pub(crate) type TestPager = Pager<Simulated, Arc<TestStore>>;

/// Makes a pager of `pages` pages, of which `local` are resident at most, with transfer units of `set` pages.
pub(crate) fn pager(pages: usize, local: usize, set: usize, store: &Arc<TestStore>) -> Arc<TestPager> {
    pager_over(Simulated::new(pages), pages, local, set, store)
}

/// Makes a pager as [`pager`] does, over a given kernel.
pub(crate) fn pager_over(
    kernel: Simulated,
    pages: usize,
    local: usize,
    set: usize,
    store: &Arc<TestStore>,
) -> Arc<TestPager> {
    make(kernel, pages, (local, set), true, store)
}

pub(crate) fn pager_without_prefetch(
    pages: usize,
    local: usize,
    unit: usize,
    store: &Arc<TestStore>,
) -> Arc<TestPager> {
    make(Simulated::new(pages), pages, (local, unit), false, store)
}

fn make(
    kernel: Simulated,
    pages: usize,
    (local, unit): (usize, usize),
    prefetch: bool,
    store: &Arc<TestStore>,
) -> Arc<TestPager> {
    make_with(kernel, pages, local, Policies::new(TransferSize::Fixed(unit), prefetch), store)
}

/// Makes a pager of `pages` pages with these policies.
pub(crate) fn make_with(
    kernel: Simulated,
    pages: usize,
    local: usize,
    policies: Policies,
    store: &Arc<TestStore>,
) -> Arc<TestPager> {
    let mut bounds = Segments::new();
    bounds.add(0, pages, 1);
    Arc::new(Pager::new(kernel, Arc::clone(store), bounds, local, policies).unwrap())
}

/// Runs `program` while two threads serve its faults and one evicts pages. The first error ends these threads, and is
/// returned.
pub(crate) fn run(pager: &Arc<TestPager>, program: impl FnOnce() + Send) -> Result<(), PagerError> {
    run_while(pager, |_| program())
}

/// Runs a `program` that must fail with an error of the pager, which is returned. The thread of `program` then waits
/// for its page forever.
pub(crate) fn run_to_trouble(pager: &Arc<TestPager>, program: impl FnOnce() + Send + 'static) -> PagerError {
    run_while(pager, |stop| {
        let beside = std::thread::spawn(program);
        let since = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            assert!(!beside.is_finished(), "the program ended without trouble");
            assert!(since.elapsed() < Duration::from_secs(30), "no trouble in sight");
            std::thread::sleep(Duration::from_millis(1));
        }
    })
    .unwrap_err()
}

/// Runs `program` as [`run`] does. The flag that `program` gets becomes true at the first error.
fn run_while(pager: &Arc<TestPager>, program: impl FnOnce(&AtomicBool) + Send) -> Result<(), PagerError> {
    let stop = AtomicBool::new(false);
    let trouble = Mutex::new(None);
    let fail = |found: PagerError| {
        trouble.lock().unwrap().get_or_insert(found);
        stop.store(true, Ordering::Relaxed);
        pager.kernel().poke();
    };
    std::thread::scope(|scope| {
        for buffer in [Buffer::new(512), Buffer::on_cpu(512)] {
            scope.spawn(|| {
                let mut buffer = buffer.unwrap();
                while let Some(touch) = pager.kernel().next_fault(&stop) {
                    let mut done = pager.serve(touch, &mut buffer).map(|woken| {
                        pager.kernel().wake(woken);
                        true
                    });
                    while let Ok(true) = done {
                        done = pager.idle(&mut buffer);
                    }
                    if let Err(found) = done {
                        return fail(found);
                    }
                }
            });
        }
        scope.spawn(|| pager.reclaim_in_background(|| stop.load(Ordering::Relaxed)).err().map(fail));
        // Threads end even when the program fails its own checks.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| program(&stop)));
        stop.store(true, Ordering::Relaxed);
        pager.kernel().poke();
        pager.set_local(usize::MAX / 8192);
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
    trouble.into_inner().unwrap().map_or(Ok(()), Err)
}

pub(crate) const THREADS: usize = 4;

/// A pseudo-random sequence.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % limit
    }
}

/// Reads and writes random words in several threads. Each thread owns one word of every page, and checks that it reads
/// what it wrote.
pub(crate) fn random_words(pager: &TestPager, pages: usize, steps: usize, seed: u64) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut random = Random(seed + 77 * thread as u64 + 1);
                let mut known = vec![0_u64; pages];
                for step in 0..steps {
                    let page = random.below(pages);
                    if random.below(3) == 0 {
                        known[page] = ((step as u64) << 8) + thread as u64 + 1;
                        pager.kernel().word(page, thread, Some(known[page]));
                    } else {
                        assert_eq!(pager.kernel().word(page, thread, None), known[page], "page {page}");
                    }
                }
            });
        }
    });
}

/// Writes each of 512 pages, and then drops the contents of the pages in eight parts. Dropped pages must read as zero.
pub(crate) fn drop_in_parts(pager: &TestPager) {
    (0..512).for_each(|page| _ = pager.kernel().word(page, 0, Some(9)));
    for turn in 0..8 {
        let range = turn * 64..turn * 64 + 64;
        pager.drop_contents(range.clone()).unwrap();
        range.for_each(|page| assert_eq!(pager.kernel().word(page, 0, None), 0, "page {page}"));
    }
}

/// Reads and writes 256 pages in 19 laps; each page must hold what the lap before wrote.
pub(crate) fn change_in_laps(pager: &TestPager) {
    for lap in 1..20_u64 {
        for page in 0..256 {
            assert_eq!(pager.kernel().word(page, 0, None), lap - 1);
            pager.kernel().word(page, 0, Some(lap));
        }
    }
}

/// Writes each of 256 pages twice.
pub(crate) fn write_twice(pager: &TestPager) {
    (0..256).chain(0..256).for_each(|page| _ = pager.kernel().word(page, 0, Some(page as u64 + 1)));
}
