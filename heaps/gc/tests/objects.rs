//! The guarantees for a language: objects are unchanged while a root leads to them, and freed when none does.

mod common;

use common::{MODES, Make, NIL, check_list, heap, number, set_slot, slot, value};
use largesse_gc::{GcSettings, LARGEST_CELL, RootHeight};

#[test]
fn rooted_list_survives_collections() {
    for sync in MODES {
        let heap = heap(GcSettings { sync, ..GcSettings::default() });
        let mut thread = heap.register_thread().enter();
        let list = thread.list(10_000);
        thread.push(list).unwrap();
        for _ in 0..3 {
            thread.list(10_000);
            thread.collect();
            check_list(list, 10_000);
            assert_eq!(heap.statistics().live_objects, 10_000, "{sync:?}");
        }
        thread.release(RootHeight::default());
        thread.collect();
        assert_eq!(heap.statistics().live_objects, 0, "{sync:?}");
    }
}

#[test]
fn vectors_of_all_sizes_keep_elements() {
    let heap = heap(GcSettings::default());
    let mut thread = heap.register_thread().enter();
    for len in (0..40).chain([100, 500, LARGEST_CELL - 1, LARGEST_CELL, 10_000, 100_000]) {
        let vector = thread.vector(len).unwrap();
        thread.push(vector).unwrap();
        for index in 0..len.min(200) {
            let element = thread.pair(number(index as u64), NIL);
            set_slot(vector, index + 1, element);
        }
        thread.collect();
        for index in 0..len.min(200) {
            assert_eq!(value(slot(slot(vector, index + 1), 0)), index as u64);
        }
    }
}

#[test]
fn weak_slot_of_dead_object_is_cleared() {
    let heap = heap(GcSettings::default());
    let mut thread = heap.register_thread().enter();
    let kept = thread.pair(number(1), NIL);
    thread.push(kept).unwrap();
    let lost = thread.pair(number(2), NIL);
    let weak = thread.weak(kept, lost);
    thread.push(weak).unwrap();
    thread.collect();
    assert_eq!((slot(weak, 0), slot(weak, 1)), (kept, NIL));
}

#[test]
fn unreachable_object_is_finalized_once() {
    let heap = heap(GcSettings::default());
    let mut thread = heap.register_thread().enter();
    let list = thread.list(10);
    let doomed = thread.pair(number(77), list);
    let weak = thread.weak(doomed, NIL);
    thread.push(weak).unwrap();
    thread.finalize_later(common::object(doomed));
    assert!(!thread.poll());
    thread.collect();
    assert!(thread.poll(), "the poll reports no object to finalize");
    assert_eq!(slot(weak, 0), NIL, "a finalizable object is reachable through a weak slot");
    thread.collect();
    let object = thread.next_finalizable().unwrap();
    let object = common::word(object);
    assert_eq!(value(slot(object, 0)), 77);
    check_list(slot(object, 1), 10);
    assert_eq!(thread.next_finalizable(), None);
    thread.collect();
    assert_eq!(thread.next_finalizable(), None);
    assert_eq!(heap.statistics().live_objects, 1);
}

#[test]
fn parallel_marking_finds_all_reachable_objects() {
    let heap = heap(GcSettings { gc_threads: 4, floor: 1 << 30, ..GcSettings::default() });
    let mut thread = heap.register_thread().enter();
    let lists = thread.vector(1000).unwrap();
    thread.push(lists).unwrap();
    for index in 1..=1000 {
        let list = thread.list(40);
        set_slot(lists, index, list);
    }
    // Enough blocks that sweeping is parallel, too: two of these vectors fill one block.
    let large = thread.vector(2200).unwrap();
    thread.push(large).unwrap();
    for index in 1..=2200 {
        let vector = thread.vector(2000).unwrap();
        set_slot(large, index, vector);
        set_slot(vector, index % 2000 + 1, slot(lists, index % 1000 + 1));
    }
    for _ in 0..3 {
        thread.collect();
        assert_eq!(heap.statistics().live_objects, 1 + 1000 * 40 + 1 + 2200);
        (1..=1000).for_each(|index| check_list(slot(lists, index), 40));
    }
    (1..=2200).filter(|index| index % 3 != 0).for_each(|index| set_slot(large, index, NIL));
    thread.collect();
    assert_eq!(heap.statistics().live_objects, 1 + 1000 * 40 + 1 + 733);
    thread.release(RootHeight::default());
    thread.collect();
    assert_eq!(heap.statistics().used_bytes, 0);
}

/// Traces lists whose pairs alternate in memory, and other lists that join them in the middle. So several marks of one
/// word are written at once, and two workers reach the same pair.
#[test]
fn parallel_marking_keeps_shared_lists() {
    const LISTS: usize = 16;
    const LENGTH: usize = if cfg!(miri) { 20 } else { 10_000 };
    let heap = heap(GcSettings { gc_threads: 4, floor: 1 << 30, ..GcSettings::default() });
    let mut thread = heap.register_thread().enter();
    let heads = thread.vector(LISTS + LENGTH).unwrap();
    thread.push(heads).unwrap();
    for index in 0..LENGTH {
        for list in 1..=LISTS {
            let longer = thread.pair(number(1), slot(heads, list));
            set_slot(heads, list, longer);
        }
        let branch = thread.pair(number(1), slot(heads, index % LISTS + 1));
        set_slot(heads, LISTS + index + 1, branch);
    }
    for _ in 0..8 {
        thread.collect();
        assert_eq!(heap.statistics().live_objects, (1 + LENGTH * (LISTS + 1)) as u64);
    }
}

#[test]
fn unreachable_cycle_is_freed() {
    let heap = heap(GcSettings::default());
    let mut thread = heap.register_thread().enter();
    let first = thread.pair(number(1), NIL);
    thread.push(first).unwrap();
    let second = thread.pair(first, NIL);
    set_slot(first, 1, second);
    thread.collect();
    assert_eq!(heap.statistics().live_objects, 2);
    thread.release(RootHeight::default());
    thread.collect();
    assert_eq!(heap.statistics().live_objects, 0);
}

#[test]
fn full_heap_fails_and_stays_usable() {
    for sync in MODES {
        let heap = heap(GcSettings { sync, limit: 4 << 20, ..GcSettings::default() });
        let mut thread = heap.register_thread().enter();
        let mut list = NIL;
        let error = loop {
            thread.push(list).unwrap();
            let made = thread.vector(500);
            thread.release(RootHeight::default());
            match made {
                Ok(vector) => {
                    set_slot(vector, 1, list);
                    list = vector;
                }
                Err(error) => break error,
            }
        };
        assert_eq!((error.words, error.limit), (501, 4 << 20));
        assert!(thread.vector(10_000_000).is_err());
        for _ in 0..3000 {
            thread.vector(500).unwrap();
        }
    }
}
