//! Keeps the process below `--limit`: large blocks become far memory when the limit comes near.
//!
//! ```text
//!             ┌──────── the reserve is reached, or a new block could exceed it ────────┐
//!   WATCHED ──┴► ASKED: a thread waits with such a block ─► the helper changes over ─► FAR: the bound of far memory
//!    │  ▲                                                        │                     follows what else is resident
//!    │  └──────────────── room for all of it for a while (`near_again.rs`) ──────────────────────────┘
//!    └───────────────────────────────────────────────────────────┴─ refused ─► OFF, with a line on standard error
//! ```
//! Large blocks are on large pages until then. The helper thread watches: the closer the limit, the more often. That
//! alone would be late for a program that touches a new block at once, so a block with which the heap could exceed the
//! limit is handed out only after the change-over. In a forked child another helper does the same.

use crate::backing::HeapBacking;
use crate::change_over::{self, change_over};
use crate::dense_spans::DenseSpans;
use crate::exhausted::Exhaustion;
use crate::family;
use crate::fault_engine::SystemCalls;
use crate::forked::{self, SharedBytes, SharedCopies};
use crate::heap::{self, LargeHeap};
use crate::limit::{Left, Limit};
use crate::limit_state::{
    self, ASKED, FAR, FORCED, HELPER, OFF, OWNER, STATE, WATCHED, ask, far_config, give_up, is_watched,
};
use crate::limited::LimitedMemory;
use crate::near_again::NearAgainWatch;
use crate::notices::{Notice, warn_once};
use crate::routing::ROUTING;
use crate::samples::HeapSamples;
use crate::settings::options;
use crate::{far_counters, late_filter, near_mappings, near_statics, routing, timeline};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use largesse_pager::Count;
use largesse_pages::base_page;
use largesse_paging::FaultEngine;
use largesse_settings::{MemoryLimit, Short};
use std::time::Instant;

/// Whether the reserve is so close that new mappings could reach it before the next look.
static CLOSE: AtomicBool = AtomicBool::new(false);
/// Bytes of mappings that the program has got since the last look.
static MAPPED: AtomicU64 = AtomicU64::new(0);
/// It is close from this number of bytes on, or from half of the reserve on, if that is more.
const CLOSE_BYTES: u64 = 16 << 20;

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
/// Processes that share pages take one part in this number of what is left, at each look.
const SHARERS: u64 = 4;
/// Samples of which parts of the heap are used begin when less than this many times the reserve is left before it: when
/// half of a large limit is used.
const SAMPLED_RESERVES: u64 = 4;
/// Least bound of resident far memory, in bytes.
const LEAST_LOCAL: u64 = 4 << 20;

/// Begins to watch the limit of the settings, if there is one, for a new heap. Returns how system calls will use
/// far memory. The error is the reason why the process cannot be kept below the limit.
pub(crate) fn begin() -> Result<SystemCalls, String> {
    let Some(config) = &options().limit else { return Ok(SystemCalls::Wait) };
    let calls = change_over::prepare(&config.far)?;
    OWNER.store(std::process::id(), Ordering::Relaxed); // Relaxed: before `STATE`
    STATE.store(WATCHED, Ordering::Release);
    Ok(calls)
}

/// Continues in a forked child, which needs a helper of its own. Returns whether the limit is watched there.
pub(crate) fn in_child() -> bool {
    OWNER.store(std::process::id(), Ordering::Relaxed); // Relaxed: the child has one thread
    match STATE.load(Ordering::Relaxed) {
        OFF => return false,
        FAR => {}
        _ => {
            change_over::forget();
            STATE.store(WATCHED, Ordering::Relaxed); // Relaxed: as above
            // Faults that are signals need a descriptor of the program's thread.
            if let Some(config) = far_config().filter(|config| config.engine == FaultEngine::Thread)
                && let Err(why) = change_over::prepare(config)
            {
                give_up(&why);
            }
        }
    }
    true
}

/// Has static arrays made far memory before the program starts if it could exceed the limit with them. It touches them
/// without any call, perhaps faster than the helper looks.
pub(crate) fn before_program() {
    // Relaxed: as in `is_watched`.
    let bytes = near_statics::bytes() as u64;
    if bytes == 0 || STATE.load(Ordering::Relaxed) != WATCHED {
        return;
    }
    late_filter::before_program();
    ask();
    if bytes > forked::free() && late_filter::ensure() {
        limit_state::become_far();
    }
}

/// Has large blocks made far memory if the heap could exceed its limit, with a block that was just allocated and is not
/// touched yet. Returns once that is done, or refused.
pub(crate) fn before_use(heap: &LargeHeap) {
    // Relaxed: as in `is_watched`.
    if STATE.load(Ordering::Relaxed) == WATCHED {
        late_filter::before_use(heap);
        if heap.exceeds_limit() && late_filter::ensure() {
            ask();
        }
    }
}

/// Has the limit looked at before the program can use `len` more bytes of mappings, if it is close, or could be
/// exceeded with these bytes and those since the last look. Those with which it could are far when the program gets
/// them.
pub(crate) fn before_mapping(len: usize) {
    // Relaxed: hints. A signal handler that interrupted the heap holds its lock, which the helper needs.
    if STATE.load(Ordering::Relaxed) != WATCHED {
        return;
    }
    late_filter::before_mapping(len);
    let len = len as u64;
    let mapped = || MAPPED.load(Ordering::Relaxed);
    let could_exceed = || mapped() > forked::free();
    let may_wait = || heap::heap().is_some_and(|heap| !heap.is_interrupted());
    MAPPED.fetch_add(len, Ordering::Relaxed);
    if !forked::has_looked() && mapped() >= CLOSE_BYTES && may_wait() {
        // The helper has just started, and the program could touch the memory before its first look.
        ask();
        MAPPED.fetch_add(len, Ordering::Relaxed); // the look has forgotten it
    }
    if (CLOSE.load(Ordering::Relaxed) || could_exceed()) && may_wait() && late_filter::ensure() {
        ask();
        MAPPED.fetch_add(len, Ordering::Relaxed); // the look has forgotten it
        if could_exceed() {
            limit_state::become_far();
        }
    }
}

/// The helper thread's watch over the limit, with its last readings.
#[derive(Debug)]
pub(crate) struct LimitWatch {
    left: Left,
    /// The limit that `left` was read for.
    of: Option<MemoryLimit>,
    /// Resident bytes that are not far memory, at the last reading.
    near: u64,
    read_at: Option<Instant>,
    /// The limits are read again after this time in any case.
    read_after: Duration,
    /// The bound of far memory that was set last, in bytes.
    local: u64,
    again: NearAgainWatch,
    samples: HeapSamples,
    dense: DenseSpans,
    exhaustion: Exhaustion,
    /// Whether blocks and mappings stay near within the reserve, because there is nothing to evict.
    heap_is_small: bool,
    shared: SharedBytes,
    /// Whether other processes may have been told of the same free bytes.
    is_shared: bool,
}

impl LimitWatch {
    pub(crate) fn new() -> LimitWatch {
        HELPER.store(largesse_pages::thread_id(), Ordering::Relaxed); // Relaxed: as in `before_mapping`
        LimitWatch {
            left: Left::default(),
            of: None,
            near: 0,
            read_at: None,
            read_after: READ_AFTER,
            local: 0,
            again: NearAgainWatch::default(),
            samples: HeapSamples::default(),
            dense: DenseSpans::default(),
            exhaustion: Exhaustion::default(),
            heap_is_small: false,
            shared: SharedBytes::default(),
            is_shared: false,
        }
    }

    /// Sleeps while `word` holds `value`, at most for the time `most`, and keeps the limit.
    pub(crate) fn sleep(
        &mut self,
        limit: Option<&Limit>,
        heap: &'static LargeHeap,
        word: &AtomicU32,
        value: u32,
        most: Duration,
    ) {
        let began = Instant::now();
        while word.load(Ordering::Relaxed) == value
            && let Some(rest) = most.checked_sub(began.elapsed()).filter(|rest| !rest.is_zero())
        {
            let pause = self.step(limit, heap).min(rest);
            largesse_pages::wait_while_for(word, value, pause);
            if !is_watched() {
                break;
            }
        }
    }

    /// Reads what the limit leaves, if it may have changed much, and acts on it. Returns the time after which to look
    /// again.
    pub(crate) fn step(&mut self, limit: Option<&Limit>, heap: &'static LargeHeap) -> Duration {
        let Some(limit) = limit.filter(|_| is_watched()) else { return Duration::MAX };
        let state = STATE.load(Ordering::Acquire);
        let grown = limit.own_resident().saturating_sub(far_resident()).saturating_sub(self.near);
        let is_old =
            self.of != limit_state::limit() || self.read_at.is_none_or(|at| at.elapsed() >= self.read_after);
        let is_old = is_old || family::is_waiting();
        if state == ASKED || is_old || grown >= (self.unclaimed() / 2).max(LEAST_GROWTH) {
            self.read(limit, heap);
            match state {
                FAR => self.stay_far(limit, heap),
                _ => self.stay_near(limit, heap, state == ASKED),
            }
        }
        let state = STATE.load(Ordering::Acquire);
        let lost = if state == FAR || self.heap_is_small {
            self.check_exhaustion(limit, state)
        } else {
            Duration::MAX
        };
        let large = match limited().filter(|memory| !memory.is_far()) {
            Some(memory) => {
                if self.left.before_reserve < SAMPLED_RESERVES * self.left.reserve {
                    self.samples.step(heap, memory);
                } else {
                    self.dense.step(limit, heap, memory);
                }
                self.again.make_large(limit, self.left, heap, memory)
            }
            None => Duration::MAX,
        };
        let available = self.unclaimed() + self.left.reserve.saturating_sub(self.left.of_reserve);
        let pause = Duration::from_secs_f64(available as f64 / BYTES_PER_SECOND as f64);
        let waits = if family::is_waiting() { family::PAUSE } else { Duration::MAX };
        pause.min(large).min(waits).clamp(PAUSES.0, PAUSES.1).min(lost)
    }

    /// Returns the bytes that were left before the reserve at the last reading, less those that far memory may still fill
    /// within its bound: only these are left for other memory.
    fn unclaimed(&self) -> u64 {
        let claim = if heap::far().is_some() { self.local.saturating_sub(far_resident()) } else { 0 };
        self.left.before_reserve.saturating_sub(claim)
    }

    /// Ends the program if nothing is left to evict and the reserve is used up. Returns the longest pause until the
    /// next look.
    fn check_exhaustion(&mut self, limit: &Limit, state: u32) -> Duration {
        // `follow` leaves the bound of far memory as it is for less than `LEAST_GROWTH`.
        let is_least = self.local < LEAST_LOCAL + LEAST_GROWTH && far_resident() <= 2 * LEAST_LOCAL;
        let can_be_evicted = state == FAR && !is_least;
        if !self.is_shared {
            return self.exhaustion.check(self.left, can_be_evicted, (self.near, 0), limit.bytes());
        }
        // `left` counts shared bytes twice, which may never be copied. The child that began last ends for all.
        let left = limit.left(0);
        match family::is_last().filter(|_| left.before_reserve == 0) {
            Some((true, members)) => {
                self.exhaustion.check(left, can_be_evicted, (self.near, members as u64), limit.bytes())
            }
            _ => Duration::MAX,
        }
    }

    fn read(&mut self, limit: &Limit, heap: &LargeHeap) {
        let of = limit_state::limit();
        if self.read_at.is_none() || self.of != of {
            self.of = of;
            let bytes = limit.bytes();
            heap.edit_report(|report| report.limit_bytes = bytes);
        }
        let is_far = STATE.load(Ordering::Relaxed) == FAR;
        let shared = if is_far || family::is_waiting() { self.shared.get() } else { SharedCopies::default() };
        self.left = limit.left(if is_far { shared.all } else { 0 });
        self.is_shared = is_far && shared.all > 0;
        family::step(|| limit.left(0).before_reserve, shared.near);
        forked::note(self.left.before_reserve, self.left.resident);
        MAPPED.store(0, Ordering::Relaxed); // Relaxed: as in `before_mapping`
        self.near = self.left.resident.saturating_sub(far_resident());
        self.read_at = Some(Instant::now());
        let close = self.left.before_reserve < CLOSE_BYTES.max(self.left.reserve / 2);
        CLOSE.store(close, Ordering::Relaxed); // Relaxed: as in `before_mapping`
    }

    /// Leaves the heap on near memory if the limit is far enough away; otherwise makes it far memory.
    fn stay_near(&mut self, limit: &Limit, heap: &'static LargeHeap, asked: bool) {
        // Relaxed: the flag is set before a thread asks.
        let forced = FORCED.load(Ordering::Relaxed);
        let is_far_from_it =
            |left: &Left| left.before_reserve > 0 && !(asked && heap.exceeds_limit()) && !forced;
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
            self.heap_is_small = false;
            return self.follow(); // mappings may be far
        }
        // New mappings of a program that asks will be far.
        let resident =
            limit.resident(heap) + near_mappings::resident_bytes() + near_statics::resident_bytes();
        self.heap_is_small = late_filter::is_pending() || !asked && resident <= LEAST_LOCAL;
        if self.heap_is_small {
            if asked {
                STATE.store(WATCHED, Ordering::Release);
            }
            return self.follow();
        }
        let (Some(memory), Some(config)) = (limited(), far_config()) else {
            return give_up("its blocks are not on memory that can become far");
        };
        self.local = self.bound(resident + far_resident());
        let began = Instant::now();
        let coldness = self.samples.at_change_over(heap, memory);
        let local = usize::try_from(self.local).unwrap_or(usize::MAX);
        match change_over(heap, memory, config, local, coldness) {
            Ok(()) => self.became_far(heap, began.elapsed()),
            Err(why) => give_up(&why),
        }
    }

    fn became_far(&mut self, heap: &LargeHeap, took: Duration) {
        routing::serve_far_sizes();
        heap.edit_report(|report| {
            far_counters::describe(report);
            report.min_bytes = ROUTING.limits().0 as u64;
            report.change_over_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            report.near_since = 0;
        });
        self.again.became_far();
        self.read_at = None;
        timeline::start();
        STATE.store(FAR, Ordering::Release);
    }

    /// Keeps far blocks within the limit, and lets them become near again if there is room.
    fn stay_far(&mut self, limit: &Limit, heap: &'static LargeHeap) {
        self.follow();
        announce();
        let Some((memory, far)) = limited().and_then(|memory| Some((memory, memory.far()?))) else { return };
        let near = || STATE.store(WATCHED, Ordering::Release);
        if self.again.step(limit, self.left, heap, (memory, far), near) {
            self.read_at = None;
        }
    }

    /// Sets the bound of far memory to what the limit leaves for it.
    fn follow(&mut self) {
        let Some(far) = heap::far().filter(|_| !forked::is_forking()) else { return };
        let local = self.bound(far_resident());
        if local.abs_diff(self.local) >= LEAST_GROWTH {
            self.local = local;
            far.pager().set_local(usize::try_from(local).unwrap_or(usize::MAX) / base_page());
        }
    }

    /// Returns the number of bytes that far memory may have resident, given that it has `resident` bytes now.
    fn bound(&self, resident: u64) -> u64 {
        let more = self.left.before_reserve / if self.is_shared { SHARERS } else { 1 };
        (resident + more).saturating_sub(self.left.of_reserve).max(LEAST_LOCAL)
    }
}

/// Returns the memory of a heap that can become far.
fn limited() -> Option<&'static LimitedMemory> {
    heap::backing().and_then(HeapBacking::limited)
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
    let store = crate::far_store::about().map_or("a file", |store| store.name());
    let text = format!(
        "this program comes near its limit of {}: its coldest memory is kept in {store} from now on; `largesse status \
         {}` shows how much",
        Short(usize::try_from(limit).unwrap_or(usize::MAX)),
        std::process::id()
    );
    warn_once(Notice::Spilling, &text);
}
