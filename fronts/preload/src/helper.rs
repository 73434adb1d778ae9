//! One thread that pays first touches ahead of need.
//!
//! First touch of a large page costs as much as clearing 2 MiB, and the program waits for it. While
//! the program works on a block whose memory was cold, the helper touches the spans that the next
//! requests will reach. That pays where first touch is dear: where it means more than clearing, as in
//! a virtual machine whose free pages went back to the host. Where it is clearing only, the program
//! does it as fast and has the page in its cache, and a second thread disturbs; so the helper takes
//! its own time, and where touching is cheap it stays away for a while. What it touches is bounded by what
//! the program just asked for, by what the program touched of the block before, by [`MOST_AHEAD`], and by
//! the arena's bound on warm memory, which the helper keeps clear of the limits on the process's memory
//! (`limit.rs`). It sleeps otherwise, and looks now and then whether
//! memory that nobody takes should go back: a program that went idle does not ask. A forked child
//! has no helper.

use crate::limit::Limit;
use crate::waits::Waits;
use crate::{coverage, guard, last_thread, serve};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use largesse_arena::DECAY_SECONDS;
use largesse_machine::service;
use largesse_malloc::HeapBlock;
use largesse_pages::SPAN;
use largesse_report::Cause;

/// Cold bytes in a block below which nobody is woken.
const WAKE_FROM: usize = SPAN;
/// Never prepare more than this at a time.
const MOST_AHEAD: usize = 64 << 20;
/// Touched in one system call.
const STEP: usize = 4;

/// Touching a span is cheap up to here: clearing 2 MiB takes a fifth of it.
const CHEAP: u128 = 1_000_000; // nanoseconds
/// How long to stay away after it was found cheap, in seconds: at first, and at most.
const AWAY: (u32, u32) = (1, 16);

/// The helper looks at the waits and the coverage of far memory once in this number of seconds.
const FAR_SECONDS: u32 = 1;

const ABSENT: u32 = u32::MAX;
/// The helper looks whether memory should go back, and no more: nobody wakes it.
const DECAY_ONLY: u32 = u32::MAX - 1;
/// Spans to prepare; [`ABSENT`] without a helper.
static WANTED: AtomicU32 = AtomicU32::new(ABSENT);
/// The last block with cold memory that was handed out, and the one before it, as [`Handed`].
static LAST: AtomicU64 = AtomicU64::new(0);
/// See [`LAST`].
static BEFORE: AtomicU64 = AtomicU64::new(0);
/// Nobody is woken before this second of the monotonic clock.
static AWAY_UNTIL: AtomicU32 = AtomicU32::new(0);

/// Start the helper, if it can be of use: to `prepare` not on one processor, where it would only take turns.
pub(crate) fn start(prepare: bool) {
    // SAFETY: no preconditions.
    let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    if prepare && processors < 2 || WANTED.load(Ordering::Relaxed) != ABSENT {
        return;
    }
    WANTED.store(if prepare { 0 } else { DECAY_ONLY }, Ordering::Relaxed);
    if !spawn(work) {
        WANTED.store(ABSENT, Ordering::Relaxed);
        serve::note(Cause::HelperRefused);
    }
}

/// A block was handed out: wakes the helper if enough of it is cold.
pub(crate) fn block_taken(block: &HeapBlock) {
    let wanted = WANTED.load(Ordering::Relaxed);
    if block.cold_bytes < WAKE_FROM || wanted >= DECAY_ONLY {
        return;
    }
    let spans = (block.cold_bytes.min(MOST_AHEAD) / SPAN) as u32;
    // Relaxed: hints, as below.
    BEFORE.store(LAST.swap(Handed::new(block, spans).0, Ordering::Relaxed), Ordering::Relaxed);
    if !block.near_limit && is_away() {
        return;
    }
    // Relaxed: a hint. Of two blocks at once the larger decides.
    if wanted < spans && WANTED.swap(spans, Ordering::Relaxed) == 0 {
        largesse_pages::wake_one(&WANTED);
    }
}

/// Whether touching was found to be cheap a short while ago.
fn is_away() -> bool {
    largesse_pages::now_seconds() < AWAY_UNTIL.load(Ordering::Relaxed)
}

/// The first span of a block, and the number of its spans up to [`MOST_AHEAD`], in one word.
#[derive(Clone, Copy)]
struct Handed(u64);

impl Handed {
    const BITS: u32 = 16;

    fn new(block: &HeapBlock, spans: u32) -> Handed {
        Handed(((block.start.as_ptr().addr() / SPAN) as u64) << Handed::BITS | u64::from(spans))
    }

    /// Number of its spans of which anything is in memory.
    fn touched(self) -> usize {
        let first = (self.0 >> Handed::BITS) as usize;
        let spans = (self.0 & ((1 << Handed::BITS) - 1)) as usize;
        let is_touched = |span: &usize| {
            let mut any = false;
            let at = core::ptr::with_exposed_provenance_mut(span * SPAN);
            largesse_pages::each_resident(at, SPAN, &mut |_| any = true);
            any
        };
        (first..first + spans).filter(is_touched).count()
    }
}

/// In a forked child: there is no helper.
pub(crate) fn forget() {
    WANTED.store(ABSENT, Ordering::Relaxed);
}

/// Starts a thread that receives none of the program's signals. Starting one asks the C library for memory, which may
/// ask us.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> bool {
    const STACK: usize = 128 << 10;
    last_thread::watch();
    guard::outside(|| service::start(c"largesse", STACK, &[], work)).is_ok()
}

fn work() {
    let mut away = AWAY.0;
    let mut waits = Waits::new();
    let limit = if WANTED.load(Ordering::Relaxed) == DECAY_ONLY { None } else { Limit::of_own_thread() };
    loop {
        let spans = WANTED.load(Ordering::Relaxed);
        let Some(heap) = serve::heap() else {
            largesse_pages::wait_while_for(&WANTED, spans, FAR_SECONDS);
            continue; // with far memory the thread is started before the heap
        };
        if spans == 0 || spans >= DECAY_ONLY {
            let seconds = if serve::far().is_some() { FAR_SECONDS } else { DECAY_SECONDS / 2 };
            largesse_pages::wait_while_for(&WANTED, spans, seconds);
            heap.tick();
            waits.look();
            coverage::look();
            limit.iter().for_each(|limit| limit.refresh(heap));
            continue;
        }
        limit.iter().for_each(|limit| limit.refresh(heap));
        // A program that asks for more than it uses gets nothing ahead.
        let touched = Handed(BEFORE.load(Ordering::Relaxed)).touched();
        let mut left = if is_away() { 0 } else { touched.min(spans as usize) };
        while left > 0 {
            let began = std::time::Instant::now();
            let done = heap.prepare(left.min(STEP)) / SPAN;
            if done == 0 {
                break;
            }
            if began.elapsed().as_nanos() < CHEAP * done as u128 {
                AWAY_UNTIL.store(largesse_pages::now_seconds() + away, Ordering::Relaxed);
                away = (away * 2).min(AWAY.1);
                break;
            }
            away = AWAY.0;
            left = left.saturating_sub(done);
            limit.iter().for_each(|limit| limit.refresh(heap));
        }
        WANTED.store(0, Ordering::Relaxed);
    }
}
