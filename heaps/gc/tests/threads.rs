//! Many threads: they start, block, end, and share objects while others collect.

mod common;

use common::{MODES, Make, Tiny, check_list, heap, number, set_slot, slot, value};
use largesse_gc::{Heap, Mark, Mutator, Settings};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

/// Run `work` in so many threads of a heap; each is told its number.
fn threads(heap: &Heap<Tiny>, count: u64, work: impl Fn(u64, &mut Mutator<Tiny>) + Sync) {
    std::thread::scope(|scope| {
        for number in 0..count {
            let (seat, work) = (heap.enrol(), &work);
            scope.spawn(move || work(number, &mut seat.enter()));
        }
    });
}

/// Keep a list and make garbage around it.
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
    thread.release(Mark::default());
}

#[test]
fn threads_keep_what_is_theirs_however_often_others_collect() {
    for sync in MODES {
        for (stress, rounds) in [(1, 4), (10, 20), (1000, 400)] {
            for count in [1, 2, 8] {
                let heap = heap(Settings { sync, stress, gc_threads: 2, ..Settings::default() });
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
fn a_collection_right_after_threads_are_made_misses_none() {
    let heap = heap(Settings { verify: false, ..Settings::default() });
    let mut main = heap.enrol().enter();
    for round in 0..250 {
        let list = main.list(10);
        let mut running = Vec::new();
        for _ in 0..4 {
            let mut seat = heap.enrol();
            seat.push(&main, list).unwrap();
            running.push(std::thread::spawn(move || {
                let mut thread = seat.enter();
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
fn a_seat_that_nobody_takes_holds_up_nobody() {
    let heap = heap(Settings::default());
    let mut main = heap.enrol().enter();
    let mut seat = heap.enrol();
    let list = main.list(10);
    seat.push(&main, list).unwrap();
    main.collect();
    assert_eq!(heap.statistics().live_objects, 10, "a seat's roots count");
    drop(seat);
    main.collect();
    assert_eq!(heap.statistics().live_objects, 0);
}

#[test]
fn a_blocked_thread_holds_up_nobody_and_keeps_its_roots() {
    let heap = heap(Settings::default());
    let (wake, sleep) = mpsc::channel::<()>();
    let asleep = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let seat = heap.enrol();
        let asleep = &asleep;
        scope.spawn(move || {
            let mut thread = seat.enter();
            let list = thread.list(1000);
            thread.push(list).unwrap();
            thread.blocked(|| {
                asleep.store(true, Ordering::SeqCst);
                sleep.recv().unwrap();
            });
            check_list(list, 1000);
        });
        let mut main = heap.enrol().enter();
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
fn a_collection_asked_for_within_a_wait_leaves_the_thread_waiting() {
    let heap = heap(Settings::default());
    let mut main = heap.enrol().enter();
    let list = main.list(10);
    main.push(list).unwrap();
    main.blocked(|| {
        heap.collect();
        // Another thread's collection would wait for this one if it were taken to run.
        std::thread::scope(|scope| _ = scope.spawn(|| heap.enrol().enter().collect()).join());
        assert_eq!(heap.statistics().collections.pauses.count(), 2);
    });
    check_list(list, 10);
}

#[test]
fn threads_that_go_in_and_out_of_waits_are_always_seen() {
    let heap = heap(Settings { stress: 3, ..Settings::default() });
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
            thread.release(Mark::default());
        }
    });
}

#[test]
fn objects_of_one_thread_are_safe_in_the_hands_of_another() {
    for sync in MODES {
        let heap = heap(Settings { sync, stress: 7, gc_threads: 2, ..Settings::default() });
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
    let heap = heap(Settings::default());
    let seen = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (seat, seen) = (heap.enrol(), &seen);
            scope.spawn(move || {
                let mut thread = seat.enter();
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
fn a_thread_that_ends_leaves_its_blocks_to_others() {
    let heap = heap(Settings { floor: 1 << 30, ..Settings::default() });
    for _ in 0..100 {
        threads(&heap, 1, |_, thread| {
            let list = thread.list(10);
            heap.language().globals.lock().unwrap().push(list);
        });
    }
    let statistics = heap.statistics();
    assert_eq!(statistics.used_bytes, largesse_gc::BLOCK, "a block for each thread that ever was");
    heap.language().globals.lock().unwrap().iter().for_each(|&list| check_list(list, 10));
}

#[test]
fn a_wait_that_panics_comes_back_running() {
    let heap = heap(Settings::default());
    let mut thread = heap.enrol().enter();
    let waiting = std::panic::AssertUnwindSafe(|| thread.blocked(|| panic!("in the wait")));
    assert!(std::panic::catch_unwind(waiting).is_err());
    let list = thread.list(10);
    thread.push(list).unwrap();
    heap.collect();
    check_list(list, 10);
}
