//! The heap's memory use, delegation and statistics.

mod common;

use common::{MODES, Make, NIL, Tiny, check_list, heap, memory, number, set_slot, slot};
use core::ptr::NonNull;
use largesse_arena::{Backing, NearMemory, Purged, SpanKind};
use largesse_gc::{BLOCK, Bump, Cells, Context, GcSettings, Heap, Layout, Mutator, RootHeight, Sync, Word};
use largesse_pages::{MapError, MapOp, SPAN};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

const MIB: usize = 1 << 20;

/// Creates a heap without checks. Its budget never grows to meet a share of time, which would depend on the clock.
fn plain(settings: GcSettings) -> Heap<Tiny> {
    Heap::new(Tiny::default(), GcSettings { gc_share: 1.0, ..settings }, memory(512)).unwrap()
}

#[test]
fn heap_follows_live_bytes() {
    let heap = plain(GcSettings { floor: 4 * MIB, ..GcSettings::default() });
    let mut thread = heap.register_thread().enter();
    let mut list = NIL;
    for _ in 0..60 {
        let vector = thread.vector(MIB / 8 - 1).unwrap();
        set_slot(vector, 1, list);
        list = vector;
        thread.release(RootHeight::default());
        thread.push(list).unwrap();
    }
    let grown = heap.statistics();
    assert!(grown.used_bytes >= 60 * MIB && grown.warm_bytes >= 60 * MIB);
    assert!(grown.collections.pauses.count() <= 8, "{} collections", grown.collections.pauses.count());
    thread.release(RootHeight::default());
    (0..20).for_each(|_| thread.collect());
    let shrunk = heap.statistics();
    assert_eq!((shrunk.live_bytes, shrunk.used_bytes), (0, 0));
    assert!(shrunk.warm_bytes <= 6 * MIB, "{} bytes are still warm", shrunk.warm_bytes);
}

#[test]
fn garbage_does_not_grow_the_heap() {
    let heap = plain(GcSettings { floor: 4 * MIB, ..GcSettings::default() });
    let mut thread = heap.register_thread().enter();
    let kept = thread.list(1000);
    thread.push(kept).unwrap();
    for _ in 0..100 {
        thread.list(10_000);
    }
    check_list(kept, 1000);
    let statistics = heap.statistics();
    assert!(statistics.warm_bytes <= 8 * MIB, "{} bytes for 16 KB", statistics.warm_bytes);
    assert_eq!(statistics.allocations(), 1_001_000);
}

#[test]
fn requests_are_counted_by_size() {
    for sync in MODES {
        let heap = plain(GcSettings { sync, ..GcSettings::default() });
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let handle = heap.register_thread();
                scope.spawn(|| {
                    let mut thread = handle.enter();
                    thread.list(5000);
                    (0..300).for_each(|_| _ = thread.vector(6).unwrap());
                    thread.vector(100_000).unwrap();
                });
            }
        });
        let mut thread = heap.register_thread().enter();
        thread.weak(NIL, NIL);
        let statistics = heap.statistics();
        let cells = |layout, words, cells| Cells { layout, words, cells };
        let want =
            [cells(Layout::Slots, 2, 10_000), cells(Layout::Weak, 2, 1), cells(Layout::Custom, 8, 600)];
        assert_eq!(statistics.requests, want, "{sync:?}");
        assert_eq!((statistics.large_requests, statistics.large_words), (2, 200_002));
        let visits = statistics.visits_per_thousand();
        assert!(if sync == Sync::Mutex { visits >= 1000.0 } else { visits < 2.0 }, "{sync:?}: {visits}");
    }
}

#[test]
fn delegation_follows_use_within_the_bound() {
    let heap = plain(GcSettings { floor: 16 * MIB, ..GcSettings::default() });
    let mut idle = heap.register_thread().enter();
    idle.list(1);
    idle.vector(1).unwrap();
    let free = |thread: u64| {
        let delegated = heap.statistics().delegated;
        let one = delegated.into_iter().find(|it| it.thread == thread).unwrap();
        one.cells.iter().map(|it| (it.layout, it.cells * it.words as u64 * 8)).collect::<Vec<_>>()
    };
    let block = BLOCK as u64;
    assert_eq!(free(1).iter().map(|it| it.1).sum::<u64>(), 2 * block - 32, "a block for each of two sizes");
    let handle = heap.register_thread();
    idle.blocked(|| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut thread = handle.enter();
                let mut most = 0;
                for _ in 0..300 {
                    thread.list(10_000);
                    let bytes: u64 = free(2).iter().map(|it| it.1).sum();
                    most = most.max(bytes);
                }
                assert!(most > 4 * block, "a busy thread is delegated no more than an idle one");
                assert!(most <= 16 * MIB as u64 / 10, "{most} bytes are delegated");
            });
        });
    });
    assert_eq!(free(1), [], "an idle thread keeps its blocks over a collection");
}

/// Iterates over the pairs of a list.
fn listed(list: Word) -> impl Iterator<Item = Word> {
    let pair = |it: Word| Some(it).filter(|it| *it != NIL);
    std::iter::successors(pair(list), move |it| pair(slot(*it, 1)))
}

/// Creates a list of `len` pairs as a root, and then unlinks all but one in `every` of them.
fn thinned(thread: &mut Mutator<Tiny>, len: u64, every: usize) -> Word {
    let list = thread.list(len);
    thread.push(list).unwrap();
    let left: Vec<Word> = listed(list).step_by(every).collect();
    left.windows(2).for_each(|two| set_slot(two[0], 1, two[1]));
    set_slot(left[left.len() - 1], 1, NIL);
    list
}

fn line(object: Word) -> u64 {
    object.0 / 64
}

#[test]
fn new_objects_use_free_cache_lines() {
    let heap = plain(GcSettings { floor: 4 * MIB, ..GcSettings::default() });
    let mut thread = heap.register_thread().enter();
    // Half of all lines are free, and so are two cells of every other line.
    let old = thinned(&mut thread, 100_000, 8);
    thread.collect();
    let lines: HashSet<u64> = listed(old).map(line).collect();
    assert_eq!(lines.len(), 12_500);
    let new = thread.list(10_000);
    assert_eq!(listed(new).filter(|it| lines.contains(&line(*it))).count(), 0);
    let new: HashSet<u64> = listed(new).map(line).collect();
    assert_eq!(new.len(), 2500, "lines of 10 000 pairs");
}

#[test]
fn many_small_holes_are_filled() {
    let heap = plain(GcSettings { floor: MIB, ..GcSettings::default() });
    let mut thread = heap.register_thread().enter();
    // 16 MiB of blocks, a quarter of which is alive, without a free line.
    thinned(&mut thread, 1 << 20, 4);
    // The first collection measures, the second decides.
    thread.collect();
    thread.collect();
    let before = heap.statistics().used_bytes;
    let more = thread.list(200_000);
    thread.push(more).unwrap();
    let after = heap.statistics().used_bytes;
    assert!(after < before + MIB, "{before} bytes, then {after}");
}

/// Near memory that overwrites purged spans, and limits the number of spans that can be committed.
struct Forgetful {
    near: NearMemory,
    commits_left: AtomicUsize,
}

// SAFETY: as for near memory; only unwanted data is lost.
unsafe impl Backing for Forgetful {
    fn start(&self) -> NonNull<u8> {
        self.near.start()
    }
    fn spans(&self) -> usize {
        self.near.spans()
    }
    fn commit(&self, first: usize, spans: usize) -> Result<SpanKind, MapError> {
        let left = self.commits_left.load(Ordering::Relaxed);
        if left < spans {
            return Err(MapError { op: MapOp::Commit, len: spans * SPAN, errno: 12 });
        }
        self.commits_left.store(left - spans, Ordering::Relaxed);
        self.near.commit(first, spans)
    }
    unsafe fn purge(&self, first: usize, spans: usize, kind: SpanKind) -> Purged {
        // SAFETY: the caller's promise, handed on.
        unsafe { self.near.purge(first, spans, kind) };
        self.commits_left.fetch_add(spans, Ordering::Relaxed);
        Purged::Decommitted
    }
    fn wanted(&self, offset: usize, len: usize, wanted: bool) {
        if !wanted {
            // SAFETY: within the range, usable until now, and unwanted.
            unsafe { self.near.start().add(offset).write_bytes(0xa5, len) };
        }
    }
}

#[test]
fn backing_may_discard_and_refuse() {
    let backing = Forgetful { near: memory(512), commits_left: AtomicUsize::new(20) };
    let settings = GcSettings { floor: 8 * MIB, verify: true, ..GcSettings::default() };
    let heap = Heap::new(Tiny::default(), settings, backing).unwrap();
    let mut thread = heap.register_thread().enter();
    for round in 0..6 {
        let mut list = NIL;
        let error = loop {
            match thread.vector(5000) {
                Ok(vector) => {
                    set_slot(vector, 1, list);
                    list = vector;
                    thread.release(RootHeight::default());
                    thread.push(list).unwrap();
                }
                Err(error) => break error,
            }
        };
        // Runs of two blocks leave every fourth block unused.
        assert!(error.used > 28 * MIB && error.used <= 40 * MIB, "round {round}: {error}");
        let mut vectors = 0;
        while list != NIL {
            (list, vectors) = (slot(list, 1), vectors + 1);
        }
        assert!(vectors > 440, "round {round}: {vectors} vectors");
        thread.release(RootHeight::default());
        let small = thread.list(10_000);
        check_list(small, 10_000);
    }
}

#[test]
fn machine_code_can_use_the_context() {
    let heap = heap(GcSettings::default());
    let mut thread = heap.register_thread().enter();
    let context = thread.context().cast::<u8>();
    let (bump, bytes) = Context::bump(Layout::Slots, 2).unwrap();
    assert_eq!(Context::bump(Layout::Slots, 1 << 20), None);
    // SAFETY: the accesses are those that `Context` permits to machine code.
    unsafe {
        let cursor = context.add(bump + Bump::CURSOR).cast::<usize>();
        let limit = context.add(bump + Bump::LIMIT).cast::<usize>();
        let top = context.add(Context::ROOTS_TOP).cast::<*mut u64>();
        let mut list = 0;
        for value in 0..10_000 {
            let pair = if cursor.read() + bytes <= limit.read() {
                let at = cursor.read();
                cursor.write(at + bytes);
                NonNull::new(core::ptr::with_exposed_provenance_mut(at)).unwrap()
            } else {
                let root = top.read();
                assert!(root < context.add(Context::ROOTS_LIMIT).cast::<*mut u64>().read());
                root.write(list);
                top.write(root.add(1));
                let pair = thread.allocate(Layout::Slots, 2).unwrap();
                top.write(root);
                pair
            };
            assert_eq!((pair.read(), pair.add(1).read()), (0, 0));
            pair.write(number(value).0);
            pair.add(1).write(list);
            list = pair.as_ptr().expose_provenance() as u64;
        }
        let list = common::word(
            NonNull::new(core::ptr::with_exposed_provenance_mut(list.try_into().unwrap())).unwrap(),
        );
        thread.push(list).unwrap();
        let poll = context.add(Context::POLL).cast::<u32>();
        assert_eq!(poll.read(), 0);
        heap.call_attention();
        assert_ne!(poll.read(), 0);
        assert!(thread.poll());
        assert_eq!(poll.read(), 0);
        thread.collect();
        check_list(list, 10_000);
        assert_eq!(heap.statistics().requests[0].cells, 10_000);
    }
}
