//! Measures how long a program waits for two modelled stores, in modelled time: the numbers are the same on every
//! machine.
//!
//! `ci/constants.py --measure` runs this with each constant of the policies halved and doubled. Time is modelled: only
//! transfers, faults and the program's work advance the clock that the policies read.

mod common;

use common::{PAGE, Random, Simulated, SimulatedFault, TestStore};
use largesse_pager::{Buffer, Count, Pager, Segments, Touch};
use largesse_policy::transfer::TransferSize;
use largesse_policy::{MAX_TRANSFER, Policies};
use largesse_store::{PageStore, StoreError};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of pages of far memory.
const PAGES: usize = 4096;
/// Number of pages of local memory.
const LOCAL: usize = 1024;
/// Size of a page in bytes, from which the time of a transfer is computed.
const MODELLED_PAGE: u64 = 4096;
/// Nanoseconds for which the program works on a page.
const WORK: u64 = 2_000;
/// Nanoseconds that a fault takes without its transfers.
const FAULT: u64 = 6_000;

/// The modelled time in nanoseconds.
static NOW: AtomicU64 = AtomicU64::new(1 << 40);

fn advance(nanoseconds: u64) {
    NOW.fetch_add(nanoseconds, Ordering::Relaxed);
}

/// Replaces the function of the C library that the standard library calls, and returns the modelled time.
///
/// # Safety
///
/// `time` points to room for the answer.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(_clock: i32, time: *mut [i64; 2]) -> i32 {
    let now = i64::try_from(NOW.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
    // SAFETY: the caller's promise; a `timespec` of 64-bit Linux has these two numbers.
    unsafe { time.write([now / 1_000_000_000, now % 1_000_000_000]) };
    0
}

/// A store whose transfers advance the modelled clock.
#[derive(Debug)]
struct ModelledStore {
    pages: TestStore,
    /// Nanoseconds of each transfer, and nanoseconds of each KiB.
    times: [u64; 2],
}

impl ModelledStore {
    fn transfer(&self, len: usize) {
        advance(self.times[0] + self.times[1] * (len / PAGE) as u64 * MODELLED_PAGE / 1024);
    }
}

impl PageStore for ModelledStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        self.pages.reserve(at, len)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.transfer(into.len());
        self.pages.read(at, into)
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        self.transfer(from.len());
        self.pages.write(at, from)
    }

    fn discard(&self, at: u64, len: u64) {
        self.pages.discard(at, len);
    }
}

/// The stores: 1 µs and 4 GB/s, as memory; 60 µs and 1 GB/s, as a disk with one transfer in flight.
const STORES: [(&str, [u64; 2]); 2] = [("memory", [1_000, 250]), ("file", [60_000, 1_000])];

/// Returns the access patterns: the pages that a program touches, each with whether it writes.
fn patterns() -> Vec<(&'static str, Vec<(usize, bool)>)> {
    let mut random = Random(4711);
    let sweep = |pages: usize, write| (0..pages).map(move |page| (page, write));
    let columns = |stride| (0..stride).flat_map(move |column| (column..PAGES).step_by(stride));
    let mut patterns = vec![
        ("sweeps", (0..6).flat_map(|lap| sweep(PAGES, lap % 2 == 0)).collect()),
        ("loop", (0..16).flat_map(|_| sweep(LOCAL * 5 / 4, false)).collect()),
        ("columns", (0..4).flat_map(|_| columns(16)).map(|page| (page, false)).collect()),
        (
            "rows and columns",
            (0..3).flat_map(|_| (0..PAGES).chain(columns(64))).map(|page| (page, true)).collect(),
        ),
        ("random", (0..5 * PAGES).map(|_| (random.below(PAGES), random.below(4) == 0)).collect()),
    ];
    let hot = (0..5 * PAGES).map(|_| {
        let among = if random.below(5) == 0 { PAGES } else { LOCAL / 2 };
        (random.below(among), random.below(4) == 0)
    });
    patterns.push(("hot and cold", hot.collect()));
    let phases = (0..6).flat_map(|phase| {
        let first = phase % 3 * LOCAL;
        (0..3).flat_map(move |_| first..first + LOCAL).map(|page| (page, true))
    });
    patterns.push(("phases", phases.collect()));
    // Long ones, for constants that compare many evictions.
    patterns.push(("long loop", (0..200).flat_map(|_| sweep(LOCAL * 5 / 4, false)).collect()));
    let swept_and_hot = (0..60 * PAGES).map(|step| {
        let swept = step % 4 == 0;
        let page = if swept { LOCAL + step / 4 % (PAGES - LOCAL) } else { random.below(LOCAL * 5 / 8) };
        (page, !swept && random.below(8) == 0)
    });
    patterns.push(("long sweep and a hot area", swept_and_hot.collect()));
    let changing = (0..12).flat_map(|phase| {
        let pages: Vec<usize> = match phase % 3 {
            0 => (0..4).flat_map(|_| 0..LOCAL * 3 / 2).collect(),
            1 => (0..4 * PAGES).map(|_| random.below(PAGES / 2)).collect(),
            _ => columns(32).collect(),
        };
        pages.into_iter().map(move |page| (page, phase % 2 == 0))
    });
    patterns.push(("long changes", changing.collect()));
    patterns
}

/// Returns how long a program waits in nanoseconds, the number of its faults, and the number of pages that it moves.
fn run(times: [u64; 2], accesses: &[(usize, bool)]) -> [u64; 3] {
    let store = ModelledStore { pages: TestStore::new(SimulatedFault::None), times };
    let mut bounds = Segments::new();
    bounds.add(0, PAGES, 1);
    let policies = Policies::new(TransferSize::Auto, true);
    let pager = Pager::new(Simulated::new(PAGES), &store, bounds, LOCAL, policies).unwrap();
    let mut buffer = Buffer::new(MAX_TRANSFER).unwrap();
    let mut serve = |touch| {
        advance(FAULT);
        pager.serve(touch, &mut buffer).unwrap();
        while pager.idle(&mut buffer).unwrap() || pager.check_untouched().unwrap() {}
    };
    for page in 0..PAGES {
        while !pager.kernel().try_write(page, 0, page as u64 + 1) {
            serve(Touch { page, write: true });
        }
    }
    let counts = || {
        let words = [Count::Faults, Count::BytesIn, Count::BytesOut].map(|count| pager.counters.get(count));
        [NOW.load(Ordering::Relaxed), words[0], (words[1] + words[2]) / PAGE as u64]
    };
    let before = counts();
    for (step, &(page, write)) in accesses.iter().enumerate() {
        advance(WORK);
        let done = |write| {
            if write { pager.kernel().try_write(page, 1, step as u64) } else { pager.kernel().is_here(page) }
        };
        while !done(write) {
            serve(Touch { page, write });
        }
    }
    let after = counts();
    let [all, faults, moved] = [0, 1, 2].map(|at| after[at] - before[at]);
    [all - WORK * accesses.len() as u64, faults, moved]
}

#[expect(clippy::disallowed_macros, reason = "the numbers are for the script")]
fn main() {
    for (pattern, accesses) in patterns() {
        for (store, times) in STORES {
            let [waited, faults, moved] = run(times, &accesses);
            assert_eq!(
                run(times, &accesses),
                [waited, faults, moved],
                "{pattern} on {store}: not the same again"
            );
            assert!(faults > 0 && moved > 0, "{pattern} on {store}: everything is resident");
            let is_kept = faults < accesses.len() as u64 / 2;
            assert!(pattern != "hot and cold" || is_kept, "hot pages on {store} do not stay resident");
            println!("{store},{pattern},{waited},{faults},{moved}");
        }
    }
}
