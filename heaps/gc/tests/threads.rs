//! Concurrent threads: they start, block, end, and share objects while others collect.

mod common;

use common::{MODES, Make, Tiny, check_list, heap, number, set_slot, slot, value};
use largesse_gc::{GcSettings, Heap, Mutator, RootHeight};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

/// Runs `work` in `count` threads of a heap, and passes each thread its number.
fn threads(heap: &Heap<Tiny>, count: u64, work: impl Fn(u64, &mut Mutator<Tiny>) + Sync) {
    std::thread::scope(|scope| {
        for number in 0..count {
            let (handle, work) = (heap.register_thread(), &work);
            scope.spawn(move || work(number, &mut handle.enter()));
        }
    });
}

/// Keeps a list alive while allocating garbage, and checks it.
fn churn(thread: &mut Mutator<Tiny>, rounds: u64) {
    let kept = thread.list(20);
    thread.push(kept).unwrap();
    for round in 0..rounds {
        let list = thread.list(10);
        let mark = thread.mark();
        thread.push(list).unwrap();
        let vector = thread.vector(usize::try_from(round % 40).unwrap()).unwrap();
        if round % 40 > 0 {
            set_slot(vector, 1, list);
            check_list(slot(vector, 1), 10);
        }
        thread.release(mark);
        thread.poll();
    }
    check_list(kept, 20);
    thread.release(RootHeight::default());
}

#[test]
fn roots_survive_collections_of_other_threads() {
    for sync in MODES {
        for (stress, rounds) in [(1, 4), (10, 20), (1000, 400)] {
            for count in [1, 2, 8] {
                let heap = heap(GcSettings { sync, stress, gc_threads: 2, ..GcSettings::default() });
                threads(&heap, count, |_, thread| churn(thread, rounds));
                heap.collect();
                let statistics = heap.statistics();
                assert_eq!(statistics.live_objects, 0, "{sync:?}, {count} threads");
                assert!(statistics.collections.pauses.count() > 1);
            }
        }
    }
}

#[test]
fn collection_includes_threads_that_start() {
    let heap = heap(GcSettings { verify: false, ..GcSettings::default() });
    let mut main = heap.register_thread().enter();
    for round in 0..250 {
        let list = main.list(10);
        let mut running = Vec::new();
        for _ in 0..4 {
            let mut handle = heap.register_thread();
            handle.push(&main, list).unwrap();
            running.push(std::thread::spawn(move || {
                let mut thread = handle.enter();
                check_list(thread.roots()[0], 10);
                let own = thread.list(20);
                check_list(own, 20);
            }));
        }
        main.collect();
        main.list(100);
        main.blocked(|| {
            running.into_iter().for_each(|it| it.join().unwrap_or_else(|_| panic!("round {round}")))
        });
    }
}

#[test]
fn unused_handle_delays_no_collection() {
    let heap = heap(GcSettings::default());
    let mut main = heap.register_thread().enter();
    let mut handle = heap.register_thread();
    let list = main.list(10);
    handle.push(&main, list).unwrap();
    main.collect();
    assert_eq!(heap.statistics().live_objects, 10, "objects live through the roots of a handle");
    drop(handle);
    main.collect();
    assert_eq!(heap.statistics().live_objects, 0);
}

#[test]
fn blocked_thread_keeps_roots_without_delay() {
    let heap = heap(GcSettings::default());
    let (wake, sleep) = mpsc::channel::<()>();
    let asleep = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let handle = heap.register_thread();
        let asleep = &asleep;
        scope.spawn(move || {
            let mut thread = handle.enter();
            let list = thread.list(1000);
            thread.push(list).unwrap();
            thread.blocked(|| {
                asleep.store(true, Ordering::SeqCst);
                sleep.recv().unwrap();
            });
            check_list(list, 1000);
        });
        let mut main = heap.register_thread().enter();
        while !asleep.load(Ordering::SeqCst) {
            main.poll();
        }
        for _ in 0..10 {
            main.collect();
            assert_eq!(heap.statistics().live_objects, 1000);
        }
        wake.send(()).unwrap();
    });
}

#[test]
fn collection_in_wait_keeps_thread_native() {
    let heap = heap(GcSettings::default());
    let mut main = heap.register_thread().enter();
    let list = main.list(10);
    main.push(list).unwrap();
    main.blocked(|| {
        heap.collect();
        // A collection by another thread would wait for this one if it counted as running.
        std::thread::scope(|scope| _ = scope.spawn(|| heap.register_thread().enter().collect()).join());
        assert_eq!(heap.statistics().collections.pauses.count(), 2);
    });
    check_list(list, 10);
}

#[test]
fn threads_entering_waits_keep_roots() {
    let heap = heap(GcSettings { stress: 3, ..GcSettings::default() });
    threads(&heap, 4, |number_of, thread| {
        for round in 0..100 {
            let list = thread.list(5);
            thread.push(list).unwrap();
            thread.blocked(|| {
                if round % 4 == number_of {
                    std::thread::yield_now()
                }
            });
            check_list(list, 5);
            thread.release(RootHeight::default());
        }
    });
}

#[test]
fn objects_pass_safely_between_threads() {
    for sync in MODES {
        let heap = heap(GcSettings { sync, stress: 7, gc_threads: 2, ..GcSettings::default() });
        let sum = AtomicU64::new(0);
        threads(&heap, 4, |which, thread| {
            for round in 0..50 {
                let list = thread.list(8);
                heap.language().globals.lock().unwrap().push(list);
                thread.poll();
                let taken = heap.language().globals.lock().unwrap().pop().unwrap();
                check_list(taken, 8);
                let mark = thread.mark();
                thread.push(taken).unwrap();
                let pair = thread.pair(number(round + which), taken);
                sum.fetch_add(value(slot(pair, 0)), Ordering::Relaxed);
                check_list(slot(pair, 1), 8);
                thread.release(mark);
            }
        });
        assert_eq!(sum.into_inner(), 4 * (49 * 50 / 2) + 50 * (1 + 2 + 3));
    }
}

#[test]
fn attention_reaches_every_thread_once() {
    let heap = heap(GcSettings::default());
    let seen = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (handle, seen) = (heap.register_thread(), &seen);
            scope.spawn(move || {
                let mut thread = handle.enter();
                while !thread.poll() {
                    std::thread::yield_now();
                }
                seen.fetch_add(1, Ordering::SeqCst);
                assert!(!thread.poll());
            });
        }
        heap.call_attention();
    });
    assert_eq!(seen.into_inner(), 3);
}

#[test]
fn ended_thread_returns_its_blocks() {
    let heap = heap(GcSettings { floor: 1 << 30, ..GcSettings::default() });
    for _ in 0..100 {
        threads(&heap, 1, |_, thread| {
            let list = thread.list(10);
            heap.language().globals.lock().unwrap().push(list);
        });
    }
    let statistics = heap.statistics();
    assert_eq!(statistics.used_bytes, largesse_gc::BLOCK, "each thread took a new block");
    heap.language().globals.lock().unwrap().iter().for_each(|&list| check_list(list, 10));
}

#[test]
fn panicking_wait_returns_to_running() {
    let heap = heap(GcSettings::default());
    let mut thread = heap.register_thread().enter();
    let waiting = std::panic::AssertUnwindSafe(|| thread.blocked(|| panic!("in the wait")));
    assert!(std::panic::catch_unwind(waiting).is_err());
    let list = thread.list(10);
    thread.push(list).unwrap();
    heap.collect();
    check_list(list, 10);
}
