//! Keeps the process below `--limit`: large blocks become far memory when the limit comes near.
//!
//! ```text
//!             ┌──────── the reserve is reached, or a new block could exceed it ────────┐
//!   WATCHED ──┴► ASKED: a thread waits with such a block ─► the helper changes over ─► FAR: the bound of far memory
//!      │                                                         │                     follows what else is resident
//!      └─────────────────────────────────────────────────────────┴─ refused ─► OFF, with a line on standard error
//! ```
//! Large blocks are on large pages until then. The helper thread watches: the closer the limit, the more often. That
//! alone would be late for a program that touches a new block at once, so a block with which the heap could exceed the
//! limit is handed out only after the change-over. In a forked child another helper does the same.

use crate::change_over::{self, change_over};
use crate::heap::{self, LargeHeap};
use crate::limit::{Left, Limit};
use crate::message::warn;
use crate::options::FAR_MIN_KB;
use crate::routing::ROUTING;
use crate::settings::{is_launched, options};
use crate::wanted::WANTED;
use crate::{far_counters, timeline};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use largesse_pager::Count;
use largesse_pages::base_page;
use largesse_settings::Short;
use std::time::Instant;

/// State of the watch over the limit: [`OFF`], [`WATCHED`], [`ASKED`] or [`FAR`], as in the module's picture.
static STATE: AtomicU32 = AtomicU32::new(OFF);
const OFF: u32 = 0;
const WATCHED: u32 = 1;
const ASKED: u32 = 2;
const FAR: u32 = 3;

/// Number of the process whose helper watches the limit. A child of a raw `clone` or of `_Fork` has no helper.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Whether the line that spilling has begun was printed, or need not be.
static ANNOUNCED: AtomicBool = AtomicBool::new(false);

/// Largest number of bytes of new memory that a program can touch in a second.
const BYTES_PER_SECOND: u64 = 8 << 30;
/// The shortest and the longest pause between two readings of the process's own memory.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));
/// Time after which the limits are read again in any case, because other processes use memory, too.
const READ_AFTER: Duration = Duration::from_millis(250);
/// Least time between two readings of the limits, as a multiple of the time that a reading takes.
const REST: u32 = 50;
/// Smallest growth of the process in bytes after which the limits are read again; half of the bytes that the limit
/// leaves, where that is more.
const LEAST_GROWTH: u64 = 1 << 20;
/// Least bound of resident far memory, in bytes.
const LEAST_LOCAL: u64 = 4 << 20;

/// Begins to watch the limit of the settings, if there is one, for a new heap. The error is the reason why the process
/// cannot be kept below it.
pub(crate) fn begin() -> Result<(), String> {
    if let Some(config) = &options().limit {
        change_over::prepare(&config.far)?;
        OWNER.store(std::process::id(), Ordering::Relaxed); // Relaxed: before `STATE`
        STATE.store(WATCHED, Ordering::Release);
    }
    Ok(())
}

/// Returns whether the process is kept below a limit.
pub(crate) fn is_watched() -> bool {
    // Relaxed: no other memory depends on it.
    STATE.load(Ordering::Relaxed) != OFF
}

/// Ceases to watch the limit, and prints a line with the reason.
pub(crate) fn give_up(why: &str) {
    if STATE.swap(OFF, Ordering::AcqRel) != OFF {
        warn(&format!("the program is not kept below its limit from now on: {why}"));
    }
}

/// Continues to watch the limit in a forked child, which needs a helper of its own. Returns whether the child has a
/// limit.
pub(crate) fn in_child() -> bool {
    ANNOUNCED.store(true, Ordering::Relaxed); // the parent's line is enough
    OWNER.store(std::process::id(), Ordering::Relaxed); // Relaxed: the child has one thread
    match STATE.load(Ordering::Relaxed) {
        OFF => return false,
        FAR => {}
        _ => {
            change_over::forget();
            STATE.store(WATCHED, Ordering::Relaxed); // Relaxed: as above
        }
    }
    true
}

/// Ceases to watch the limit in a forked child whose heap cannot be used.
pub(crate) fn forget() {
    STATE.store(OFF, Ordering::Relaxed); // Relaxed: the child has one thread
}

/// If the heap could exceed its limit with a block that was just allocated and is not touched yet, has the helper make
/// large blocks far memory. Returns once that is done or refused.
pub(crate) fn before_use(heap: &LargeHeap) {
    // Relaxed: as in `is_watched`.
    if STATE.load(Ordering::Relaxed) == WATCHED && heap.exceeds_limit() {
        ask();
    }
}

#[cold]
fn ask() {
    if OWNER.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    let _ = STATE.compare_exchange(WATCHED, ASKED, Ordering::AcqRel, Ordering::Acquire);
    while STATE.load(Ordering::Acquire) == ASKED {
        // Repeated, since the helper may be about to sleep.
        largesse_pages::wake_one(&WANTED);
        largesse_pages::wait_while_for(&STATE, ASKED, Duration::from_millis(1));
    }
}

/// The helper thread's watch over the limit, with its last readings.
#[derive(Debug)]
pub(crate) struct LimitWatch<'a> {
    limit: Option<&'a Limit>,
    left: Left,
    /// Resident bytes that are not far memory, at the last reading.
    near: u64,
    read_at: Option<Instant>,
    /// The limits are read again after this time in any case.
    read_after: Duration,
    /// The bound of far memory that was set last, in bytes.
    local: u64,
}

impl<'a> LimitWatch<'a> {
    pub(crate) fn new(limit: Option<&'a Limit>) -> LimitWatch<'a> {
        if limit.is_none() {
            give_up("its files need Linux 5.9");
        }
        LimitWatch { limit, left: Left::default(), near: 0, read_at: None, read_after: READ_AFTER, local: 0 }
    }

    /// Keeps the process below the limit and sleeps in between, while `word` holds `value`, at most for the time
    /// `most`.
    pub(crate) fn sleep(&mut self, heap: &'static LargeHeap, word: &AtomicU32, value: u32, most: Duration) {
        let began = Instant::now();
        while word.load(Ordering::Relaxed) == value
            && let Some(rest) = most.checked_sub(began.elapsed()).filter(|rest| !rest.is_zero())
        {
            let pause = self.step(heap).min(rest);
            largesse_pages::wait_while_for(word, value, pause);
            if !is_watched() {
                break;
            }
        }
    }

    /// Reads how many bytes the limit leaves, if that may have changed much, and acts on it. Returns the time after
    /// which to look again.
    pub(crate) fn step(&mut self, heap: &'static LargeHeap) -> Duration {
        let Some(limit) = self.limit.filter(|_| is_watched()) else { return Duration::MAX };
        let state = STATE.load(Ordering::Acquire);
        let grown = limit.own_resident().saturating_sub(far_resident()).saturating_sub(self.near);
        let is_old = self.read_at.is_none_or(|at| at.elapsed() >= self.read_after);
        if state == ASKED || is_old || grown >= (self.left.before_reserve / 2).max(LEAST_GROWTH) {
            self.read(limit, heap);
            match state {
                FAR => self.follow(),
                _ => self.stay_near(limit, heap, state == ASKED),
            }
        }
        let available = self.left.before_reserve + self.left.reserve.saturating_sub(self.left.of_reserve);
        Duration::from_secs_f64(available as f64 / BYTES_PER_SECOND as f64).clamp(PAUSES.0, PAUSES.1)
    }

    fn read(&mut self, limit: &Limit, heap: &LargeHeap) {
        if self.read_at.is_none() {
            let bytes = limit.bytes();
            heap.edit_report(|report| report.limit_bytes = bytes);
        }
        self.left = limit.left();
        self.near = self.left.resident.saturating_sub(far_resident());
        self.read_at = Some(Instant::now());
    }

    /// Leaves the heap on near memory if the limit is far enough away; otherwise makes it far memory.
    fn stay_near(&mut self, limit: &Limit, heap: &'static LargeHeap, asked: bool) {
        let is_far_from_it = |left: &Left| left.before_reserve > 0 && !(asked && heap.exceeds_limit());
        let began = Instant::now();
        limit.refresh(heap);
        self.read_after = READ_AFTER.max(began.elapsed() * REST);
        if !is_far_from_it(&self.left) {
            heap.trim(0);
            self.read(limit, heap);
            limit.refresh(heap);
        }
        if is_far_from_it(&self.left) {
            if asked {
                STATE.store(WATCHED, Ordering::Release);
            }
            return;
        }
        let (Some(memory), Some(config)) = (heap::backing().and_then(|it| it.limited()), &options().limit)
        else {
            return give_up("its blocks are not on memory that can become far");
        };
        self.local = self.bound(limit.resident(heap));
        let began = Instant::now();
        match change_over(heap, memory, &config.far, usize::try_from(self.local).unwrap_or(usize::MAX)) {
            Ok(()) => self.became_far(heap, began.elapsed()),
            Err(why) => give_up(&why),
        }
    }

    fn became_far(&mut self, heap: &LargeHeap, took: Duration) {
        let (min, max, enabled) = ROUTING.limits();
        if min == options().min {
            // Without a bound set by the user, the default of far memory holds.
            let _ = ROUTING.set((FAR_MIN_KB << 10).min(min), max);
            ROUTING.enable(enabled);
        }
        heap.edit_report(|report| {
            far_counters::describe(report);
            report.min_bytes = ROUTING.limits().0 as u64;
            report.change_over_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        });
        self.read_at = None;
        timeline::start();
        STATE.store(FAR, Ordering::Release);
    }

    /// Sets the bound of far memory to the bytes that the limit leaves for it.
    fn follow(&mut self) {
        let Some(far) = heap::far() else { return };
        let local = self.bound(far_resident());
        if local.abs_diff(self.local) >= LEAST_GROWTH {
            self.local = local;
            far.pager().set_local(usize::try_from(local).unwrap_or(usize::MAX) / base_page());
        }
        announce();
    }

    /// Returns the number of bytes that far memory may have resident, given that it has `resident` bytes now.
    fn bound(&self, resident: u64) -> u64 {
        (resident + self.left.before_reserve).saturating_sub(self.left.of_reserve).max(LEAST_LOCAL)
    }
}

/// Returns the resident bytes of far memory.
fn far_resident() -> u64 {
    far_counters::all().map_or(0, |words| words.get(Count::ResidentBytes))
}

/// Prints a line once, and notes the time, if a page was written to the store of far memory that the limit made.
pub(crate) fn announce() {
    let Some(heap) = heap::heap().filter(|_| STATE.load(Ordering::Acquire) == FAR) else { return };
    let written = far_counters::all().map_or(0, |words| words.get(Count::WriteBacks));
    if written == 0 || heap.with_report(|report| report.spilling_since) != 0 {
        return;
    }
    let mut limit = 0;
    heap.edit_report(|report| {
        report.spilling_since = largesse_pages::now_seconds().into();
        limit = report.limit_bytes;
    });
    if !ANNOUNCED.swap(true, Ordering::Relaxed) && is_launched() {
        let store = crate::far_store::about().map_or("a file", |store| store.name());
        warn(&format!(
            "this program comes near its limit of {}: its coldest memory is kept in {store} from now on; `largesse \
             status {}` shows how much",
            Short(usize::try_from(limit).unwrap_or(usize::MAX)),
            std::process::id()
        ));
    }
}
