//! Runs the helper thread, which touches pages before the program needs them.
//!
//! First touch of a large page costs as much as clearing 2 MiB, and the program waits for it. While the program works
//! on a block whose memory was cold, the helper touches the spans that the next requests will reach. That pays where
//! first touch costs more than clearing, as in a virtual machine whose free pages went back to the host. Elsewhere the
//! program clears a page as fast itself and then has it in its cache, and a second thread disturbs it; so the helper
//! times its touches and pauses where they are cheap. It touches at most as many bytes as the program just requested,
//! as the program touched of the block before, as [`MOST_AHEAD`], and as the arena's bound on warm memory, which the
//! helper keeps below the limits on the process's memory (`limit.rs`).
//!
//! Between requests it sleeps, and now and then returns unused memory to the kernel, since an idle program makes no
//! call that would do so. With `--limit` it also watches the limit (`spill.rs`). A forked child has a helper only then.

use crate::limit::Limit;
use crate::spill::LimitWatch;
use crate::waits::WaitMonitor;
use crate::wanted::{ABSENT, DECAY_ONLY, WANTED};
use crate::{causes, coverage, heap, limit_state, service_thread, small};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use largesse_arena::DECAY_SECONDS;
use largesse_machine::process;
use largesse_malloc::HeapBlock;
use largesse_pages::SPAN;
use largesse_report::Cause;

/// Smallest number of cold bytes in a block that wakes the helper.
const WAKE_FROM: usize = SPAN;
/// Largest number of bytes that the helper prepares for one request.
const MOST_AHEAD: usize = 64 << 20;
/// Number of spans that the helper touches in one system call.
const STEP: usize = 4;

/// Time in nanoseconds below which touching a span is cheap; clearing 2 MiB takes a fifth of it.
const CHEAP: u128 = 1_000_000;
/// The first pause after cheap touches and the longest, in seconds; each is twice as long as the one before.
const PAUSE: (u32, u32) = (1, 16);

/// Seconds between two checks of how long the program waits for far memory and how much of its memory is outside it.
const FAR_SECONDS: u32 = 1;

/// Holds the last block with cold memory that was handed out, as [`ColdBlock`].
static LAST: AtomicU64 = AtomicU64::new(0);
/// Holds the block with cold memory that was handed out before [`LAST`], as [`ColdBlock`].
static BEFORE: AtomicU64 = AtomicU64::new(0);
/// The helper touches no page before this second of the monotonic clock.
static PAUSED_UNTIL: AtomicU32 = AtomicU32::new(0);

/// Starts the helper unless it runs. With `prepare` it touches spans ahead of requests, which needs a second processor:
/// on one it would only take turns with the program.
pub(crate) fn start(prepare: bool) {
    let processors = process::mask(None).iter().map(|word| word.count_ones()).sum::<u32>();
    let alone = processors < 2;
    if prepare && alone && !limit_state::is_watched() || WANTED.load(Ordering::Relaxed) != ABSENT {
        return;
    }
    let prepare = prepare && !alone;
    WANTED.store(if prepare { 0 } else { DECAY_ONLY }, Ordering::Relaxed);
    if !service_thread::start(work) {
        WANTED.store(ABSENT, Ordering::Relaxed);
        causes::note(Cause::HelperRefused);
        limit_state::give_up("the thread that watches it could not be started");
    }
}

/// Wakes the helper if enough of `block`, which was just handed out, is cold.
pub(crate) fn block_taken(block: &HeapBlock) {
    let wanted = WANTED.load(Ordering::Relaxed);
    if block.cold_bytes < WAKE_FROM || wanted >= DECAY_ONLY {
        return;
    }
    let spans = (block.cold_bytes.min(MOST_AHEAD) / SPAN) as u32;
    // Relaxed: both are hints.
    BEFORE.store(LAST.swap(ColdBlock::new(block, spans).0, Ordering::Relaxed), Ordering::Relaxed);
    if !block.near_limit && is_paused() {
        return;
    }
    // Relaxed: a hint. Of two blocks at once the larger one decides.
    if wanted < spans && WANTED.swap(spans, Ordering::Relaxed) == 0 {
        largesse_pages::wake_one(&WANTED);
    }
}

/// Returns whether the helper pauses because touching was cheap.
fn is_paused() -> bool {
    largesse_pages::now_seconds() < PAUSED_UNTIL.load(Ordering::Relaxed)
}

/// Packs the first span of a block and the number of its spans, up to [`MOST_AHEAD`], into one word.
#[derive(Clone, Copy)]
struct ColdBlock(u64);

impl ColdBlock {
    const BITS: u32 = 16;

    fn new(block: &HeapBlock, spans: u32) -> ColdBlock {
        ColdBlock(((block.start.as_ptr().addr() / SPAN) as u64) << ColdBlock::BITS | u64::from(spans))
    }

    /// Returns the number of the block's spans that have a resident page.
    fn touched(self) -> usize {
        let first = (self.0 >> ColdBlock::BITS) as usize;
        let spans = (self.0 & ((1 << ColdBlock::BITS) - 1)) as usize;
        let is_touched = |span: &usize| {
            let mut any = false;
            let at = core::ptr::with_exposed_provenance_mut(span * SPAN);
            largesse_pages::each_resident(at, SPAN, &mut |_| any = true);
            any
        };
        (first..first + spans).filter(is_touched).count()
    }
}

/// Records in a forked child that there is no helper.
pub(crate) fn forget() {
    WANTED.store(ABSENT, Ordering::Relaxed);
}

fn work() {
    let mut pause = PAUSE.0;
    let mut waits = WaitMonitor::new();
    let prepares = WANTED.load(Ordering::Relaxed) != DECAY_ONLY;
    let mut limit = if prepares { Limit::of_own_thread() } else { None };
    let mut watch = LimitWatch::new();
    loop {
        if limit.is_none() && limit_state::is_watched() {
            limit = Limit::of_own_thread();
            if limit.is_none() {
                limit_state::give_up("its files need Linux 5.9");
            }
        }
        let spans = WANTED.load(Ordering::Relaxed);
        let Some(heap) = heap::heap() else {
            largesse_pages::wait_while_for(&WANTED, spans, Duration::from_secs(FAR_SECONDS.into()));
            continue; // with far memory the thread is started before the heap
        };
        if spans == 0 || spans >= DECAY_ONLY {
            let seconds = if heap::is_far() { FAR_SECONDS } else { DECAY_SECONDS / 2 };
            watch.sleep(limit.as_ref(), heap, &WANTED, spans, Duration::from_secs(seconds.into()));
            if spans == 0 && heap::is_far() {
                // A page that is filled before its use would evict another one.
                let _ = WANTED.compare_exchange(0, DECAY_ONLY, Ordering::Relaxed, Ordering::Relaxed);
            }
            heap.tick();
            small::tick();
            waits.check();
            coverage::update();
            if !heap::is_far() {
                limit.iter().for_each(|limit| limit.refresh(heap));
                if prepares && spans == DECAY_ONLY {
                    // Blocks are near again.
                    let _ = WANTED.compare_exchange(DECAY_ONLY, 0, Ordering::Relaxed, Ordering::Relaxed);
                }
            }
            continue;
        }
        limit.iter().for_each(|limit| limit.refresh(heap));
        // Nothing is prepared for a program that requests more than it uses.
        let touched = ColdBlock(BEFORE.load(Ordering::Relaxed)).touched();
        let mut left = if is_paused() { 0 } else { touched.min(spans as usize) };
        while left > 0 {
            let began = std::time::Instant::now();
            let done = heap.prepare(left.min(STEP)) / SPAN;
            if done == 0 {
                break;
            }
            if began.elapsed().as_nanos() < CHEAP * done as u128 {
                PAUSED_UNTIL.store(largesse_pages::now_seconds() + pause, Ordering::Relaxed);
                pause = (pause * 2).min(PAUSE.1);
                break;
            }
            pause = PAUSE.0;
            left = left.saturating_sub(done);
            limit.iter().for_each(|limit| limit.refresh(heap));
            watch.step(limit.as_ref(), heap);
        }
        WANTED.store(0, Ordering::Relaxed);
    }
}
