//! Compares the arena with a naive model, a map of used extents.
extern crate std;

use crate::*;
use core::ptr::NonNull;
use largesse_pages::{MapError, MapOp, PageKind, Placement, Reserved, SPAN};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::vec::Vec;

const SPANS: usize = if cfg!(miri) { 12 } else { 24 };

/// Backs an arena with real memory, and can be told to refuse commits.
#[derive(Debug)]
struct Refusing {
    near: NearMemory,
    refuse: AtomicBool,
    purged: AtomicUsize,
}

impl Refusing {
    fn new() -> Refusing {
        let range = Reserved::new(SPANS * SPAN, SPAN).unwrap();
        let near = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
        Refusing { near, refuse: AtomicBool::new(false), purged: AtomicUsize::new(0) }
    }
}

// SAFETY: near memory keeps the promises; a refusal does nothing.
unsafe impl Backing for Refusing {
    fn start(&self) -> NonNull<u8> {
        self.near.start()
    }
    fn spans(&self) -> usize {
        self.near.spans()
    }
    fn commit(&self, first: usize, spans: usize) -> Result<SpanKind, MapError> {
        if self.refuse.load(Ordering::Relaxed) {
            return Err(MapError { op: MapOp::Commit, len: spans * SPAN, errno: 12 });
        }
        self.near.commit(first, spans)
    }
    unsafe fn purge(&self, first: usize, spans: usize, kind: SpanKind) -> Purged {
        self.purged.fetch_add(spans, Ordering::Relaxed);
        // SAFETY: handed on.
        unsafe { self.near.purge(first, spans, kind) }
    }
    unsafe fn relocate(&self, from: usize, to: usize, spans: usize) -> bool {
        // SAFETY: handed on.
        unsafe { self.near.relocate(from, to, spans) }
    }
    fn populate(&self, first: usize, spans: usize) -> bool {
        self.near.populate(first, spans)
    }
    fn any_resident(&self, span: usize) -> bool {
        self.near.any_resident(span)
    }
}

fn plain(granules: u32) -> Request {
    Request { granules, align: 1, phase: 0, prefer: Prefer::Warm }
}

fn arena(floor: usize) -> Arena<Refusing> {
    Arena::new(Refusing::new(), Retention { share: 0, floor }).unwrap()
}

impl<B: Backing> Arena<B> {
    /// Checks the tables against the invariants of the crate and against the map of used extents.
    fn check(&self, used: &BTreeMap<u32, u32>) {
        let mut at = 0;
        let mut last_free = false;
        let mut seen = BTreeMap::new();
        for (start, entry) in self.extents.iter() {
            assert_eq!(start, at, "a gap or an overlap at {start}");
            assert_eq!(
                self.extents.get(start + entry.len - 1).back,
                entry.len,
                "the end tag of the extent at {start} is wrong"
            );
            let free = entry.state == crate::extent::ExtentState::Free;
            assert!(!(free && last_free), "two free neighbours at {start}");
            last_free = free;
            if !free {
                seen.insert(start, entry.len);
            }
            at += entry.len;
        }
        assert_eq!(at as usize, SPANS * PER_SPAN, "the extents do not reach the end of the range");
        assert_eq!(&seen, used);
        let live: usize = used.values().map(|len| *len as usize * GRANULE).sum();
        assert_eq!(self.totals().live, live);
        let linked: usize =
            self.bins.from(&self.extents, 1).map(|free| self.extents.get(free).len as usize).sum();
        assert_eq!(linked * GRANULE + live, SPANS * SPAN, "a free extent is in no bin");
    }

    #[expect(clippy::mut_from_ref, reason = "the bytes are not the arena's: extents that the test owns")]
    fn bytes(&self, at: u32, granules: u32) -> &mut [u8] {
        // SAFETY: tests call this for extents they own.
        unsafe { core::slice::from_raw_parts_mut(self.address(at).as_ptr(), granules as usize * GRANULE) }
    }
}

#[test]
fn freed_neighbours_become_one_extent() {
    let mut arena = arena(usize::MAX / 2);
    let extents: Vec<u32> = (0..3).map(|_| arena.take(plain(100), 0).unwrap().at).collect();
    for at in [extents[0], extents[2], extents[1]] {
        arena.give_back(at, false, 0);
    }
    arena.check(&BTreeMap::new());
    assert_eq!(
        arena.take(plain((SPANS * PER_SPAN) as u32), 0).unwrap().at,
        0,
        "the freed extents were not coalesced"
    );
}

#[test]
fn warm_memory_precedes_better_fit() {
    let mut arena = arena(usize::MAX / 2);
    let warm = arena.take(plain(256), 0).unwrap().at;
    let wall = arena.take(plain(1), 0).unwrap().at;
    arena.give_back(warm, false, 0);
    let again = arena.take(plain(64), 0).unwrap();
    assert_eq!((again.at, again.cold_bytes), (warm, 0));
    arena.give_back(wall, false, 0);
}

#[test]
fn cold_memory_can_be_preferred() {
    let mut arena = arena(usize::MAX / 2);
    let warm = arena.take(plain(256), 0).unwrap().at;
    let wall = arena.take(plain(128), 0).unwrap().at;
    arena.give_back(warm, false, 0);
    let cold = arena.take(Request { prefer: Prefer::Cold, ..plain(128) }, 0).unwrap();
    assert!(cold.at > wall && cold.cold_bytes > 0);
}

#[test]
fn unallocated_granules_are_clean() {
    let mut arena = arena(usize::MAX / 2);
    let a = arena.take(plain(10), 0).unwrap().at;
    assert_eq!(arena.dirty_run(a..a + 10), None);
    arena.give_back(a, false, 0);
    let b = arena.take(plain(20), 0).unwrap().at;
    assert_eq!((b, arena.dirty_run(b..b + 20)), (a, Some(a..a + 10)));
}

#[test]
fn refused_commit_changes_nothing() {
    let mut arena = arena(usize::MAX / 2);
    let a = arena.take(plain(10), 0).unwrap().at;
    arena.backing.refuse.store(true, Ordering::Relaxed);
    assert!(matches!(arena.take(plain(1000), 0), Err(TakeError::NoMemory(_))));
    assert!(!arena.grow(a, 1000, 0));
    arena.check(&BTreeMap::from([(a, 10)]));
    assert!(arena.take(plain(5), 0).is_ok(), "the first span was committed before");
}

#[test]
fn request_beyond_range_is_refused() {
    let mut arena = arena(0);
    assert_eq!(arena.take(plain((SPANS * PER_SPAN) as u32 + 1), 0), Err(TakeError::RangeFull));
    assert_eq!(arena.take(plain(u32::MAX), 0), Err(TakeError::RangeFull));
}

#[test]
fn bound_purges_before_warming() {
    let mut arena = arena(0);
    let wall = PER_SPAN as u32;
    let a = arena.take(plain(4 * wall), 0).unwrap().at;
    let keep = arena.take(plain(wall), 0).unwrap().at;
    arena.give_back(a, false, 0);
    // Five spans were live at most. Six more cannot be warm in addition to the four free ones.
    let b = arena.take(plain(5 * wall), 0).unwrap().at;
    assert!(arena.totals().warm <= 6 * SPAN, "{:?}", arena.totals());
    assert_eq!(arena.totals().returned, 4 * SPAN);
    arena.check(&BTreeMap::from([(keep, wall), (b, 5 * wall)]));
}

#[test]
fn only_idle_memory_decays() {
    let mut arena = arena(usize::MAX / 2);
    let a = arena.take(plain(256), 100).unwrap().at;
    let b = arena.take(plain(256), 100).unwrap().at;
    arena.give_back(a, false, 100);
    arena.decay(100 + DECAY_SECONDS - 1);
    assert_eq!(arena.totals().returned, 0);
    arena.decay(100 + DECAY_SECONDS);
    assert_eq!(arena.totals().returned, 2 * SPAN);
    arena.bytes(b, 256).fill(1);
    assert_eq!(arena.dirty_run(a..a + 256), None, "purged granules are dirty");
}

#[test]
fn trim_keeps_requested_bytes() {
    let mut arena = arena(usize::MAX / 2);
    let a = arena.take(plain(1024), 0).unwrap().at;
    arena.give_back(a, false, 0);
    assert_eq!(arena.trim(3 * SPAN), 5 * SPAN);
    assert_eq!(arena.totals().warm, 3 * SPAN);
}

#[test]
fn untouched_spans_become_cold() {
    if cfg!(miri) {
        return; // Miri's substitute for the kernel has no residency
    }
    let mut arena = arena(usize::MAX / 2);
    let a = arena.take(plain(512), 0).unwrap().at;
    arena.bytes(a, 1)[0] = 1;
    arena.give_back(a, true, 0);
    assert_eq!(arena.totals().warm, SPAN);
    assert_eq!(arena.dirty_run(a..a + 512), Some(a..a + PER_SPAN as u32));
}

#[test]
fn relocation_moves_only_whole_spans() {
    let mut arena = arena(usize::MAX / 2);
    let pad = arena.take(plain(5), 0).unwrap().at;
    let from = arena.take(plain(400), 0).unwrap().at;
    for granule in 0..400 {
        arena.bytes(from + granule, 1)[7] = granule as u8;
    }
    let request = Request { granules: 600, align: 128, phase: from % 128, prefer: Prefer::Cold };
    let to = arena.take(request, 0).unwrap().at;
    // SAFETY: both extents belong to this test.
    let moved = unsafe { arena.relocate(from, to, 400) }.unwrap();
    assert_eq!(moved, 123..379);
    for granule in moved {
        assert_eq!(arena.bytes(to + granule, 1)[7], granule as u8, "granule {granule}");
        assert_eq!(arena.bytes(from + granule, 1)[7], 0);
    }
    arena.check(&BTreeMap::from([(pad, 5), (from, 400), (to, 600)]));
}

#[derive(Clone, Debug)]
enum ArenaCall {
    Take { granules: u32, align: u32, cold: bool },
    Free(usize),
    Grow(usize, u32),
    Shrink(usize, u32),
    Decay(u32),
    Trim(usize),
    Ahead(usize),
}

fn call() -> impl Strategy<Value = ArenaCall> {
    let size = prop_oneof![1..20_u32, 1..600_u32];
    prop_oneof![
        4 => (size, 0..9_u32, any::<bool>()).prop_map(|(granules, log, cold)| ArenaCall::Take { granules, align: 1 << log, cold }),
        4 => any::<usize>().prop_map(ArenaCall::Free),
        1 => (any::<usize>(), 1..300_u32).prop_map(|(i, more)| ArenaCall::Grow(i, more)),
        1 => (any::<usize>(), 1..300_u32).prop_map(|(i, less)| ArenaCall::Shrink(i, less)),
        1 => (0..30_u32).prop_map(ArenaCall::Decay),
        1 => (0..10_usize).prop_map(ArenaCall::Trim),
        1 => (1..6_usize).prop_map(ArenaCall::Ahead),
    ]
}

/// Writes `value` to the first and last byte of each granule of a live extent.
fn mark(arena: &Arena<Refusing>, at: u32, granules: u32, value: u8) {
    for granule in at..at + granules {
        let bytes = arena.bytes(granule, 1);
        bytes[0] = value;
        bytes[GRANULE - 1] = value;
    }
}

fn verify(arena: &Arena<Refusing>, at: u32, granules: u32, value: u8) {
    for granule in at..at + granules {
        let bytes = arena.bytes(granule, 1);
        assert_eq!((bytes[0], bytes[GRANULE - 1]), (value, value), "granule {granule} of the extent at {at}");
    }
}

/// Returns whether all bytes are zero. It compares slices, which is fast without optimisation; under Miri, where a
/// million bytes take a minute, it samples.
fn is_zero(bytes: &[u8]) -> bool {
    if cfg!(miri) { bytes.iter().step_by(1021).all(|&byte| byte == 0) } else { bytes == [0; GRANULE] }
}

fn run(calls: Vec<ArenaCall>, floor: usize) {
    let mut arena = arena(floor);
    let mut used: BTreeMap<u32, u32> = BTreeMap::new();
    let mut marks: BTreeMap<u32, u8> = BTreeMap::new();
    let mut now = 0;
    let pick = |used: &BTreeMap<u32, u32>, i: usize| {
        used.iter().nth(i.checked_rem(used.len())?).map(|(at, len)| (*at, *len))
    };
    for (step, call) in calls.into_iter().enumerate() {
        let value = (step % 255) as u8 + 1;
        let mut grew = false;
        match call {
            ArenaCall::Take { granules, align, cold } => {
                let prefer = if cold { Prefer::Cold } else { Prefer::Warm };
                if let Ok(taken) = arena.take(Request { granules, align, phase: 0, prefer }, now) {
                    grew = taken.cold_bytes > 0;
                    assert_eq!(taken.at % align, 0);
                    let dirty: Vec<u32> =
                        core::iter::successors(arena.dirty_run(taken.at..taken.at + granules), |run| {
                            arena.dirty_run(run.end..taken.at + granules)
                        })
                        .flatten()
                        .collect();
                    for granule in (taken.at..taken.at + granules).filter(|granule| !dirty.contains(granule))
                    {
                        assert!(is_zero(arena.bytes(granule, 1)), "clean granule {granule} is not zero");
                    }
                    assert!(used.insert(taken.at, granules).is_none());
                    mark(&arena, taken.at, granules, value);
                    marks.insert(taken.at, value);
                }
            }
            ArenaCall::Free(i) => {
                if let Some((at, len)) = pick(&used, i) {
                    verify(&arena, at, len, marks[&at]);
                    arena.give_back(at, i % 2 == 0, now);
                    used.remove(&at);
                }
            }
            ArenaCall::Grow(i, more) => {
                if let Some((at, len)) = pick(&used, i)
                    && arena.grow(at, len + more, now)
                {
                    used.insert(at, len + more);
                    mark(&arena, at + len, more, marks[&at]);
                }
            }
            ArenaCall::Shrink(i, less) => {
                if let Some((at, len)) = pick(&used, i)
                    && less < len
                {
                    arena.shrink(at, len - less, now);
                    used.insert(at, len - less);
                }
            }
            ArenaCall::Decay(seconds) => {
                now += seconds;
                arena.decay(now);
            }
            ArenaCall::Trim(spans) => _ = arena.trim(spans * SPAN),
            ArenaCall::Ahead(spans) => {
                if let Some((first, count)) = arena.cold_ahead(spans) {
                    assert!(arena.backing.populate(first, count));
                    arena.warmed(first, count);
                }
            }
        }
        arena.check(&used);
        if grew {
            let allowed = arena.retention.allowed(arena.totals().peak) / SPAN * SPAN;
            let kept = arena.totals().warm <= allowed || arena.oldest_warm(|_| true).is_none();
            assert!(kept, "{:?} but {allowed} allowed", arena.totals());
        }
    }
    for (at, len) in used {
        verify(&arena, at, len, marks[&at]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 6 } else { 60 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_keep_the_invariants(calls in prop::collection::vec(call(), 1..if cfg!(miri) { 30 } else { 120 }), floor in 0..8_usize) {
        run(calls, floor * SPAN);
    }
}
