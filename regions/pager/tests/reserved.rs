//! Reserved parts of the range of mappings get room in the store when they become usable, and give it back.

use core::ops::Range;
use core::ptr::with_exposed_provenance_mut;
use largesse_pager::{
    Count, FarMemory, FarRange, Linux, Local, MappedParts, Pager, PagerError, Segments, start,
};
use largesse_pages::fault::{OPEN_METHODS, Userfault};
use largesse_pages::{Reserved, SPAN, base_page};
use largesse_policy::Policies;
use largesse_store::{Broker, FileStore, Ranges};
use std::path::Path;
use std::sync::Arc;

#[expect(clippy::disallowed_macros, reason = "absent features are printed as skipped")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

fn lost(error: &PagerError) -> ! {
    panic!("{error}");
}

fn write(at: usize, value: u64) {
    // SAFETY: the caller has made the page at this address usable, and only this test uses it.
    unsafe { with_exposed_provenance_mut::<u64>(at).write_volatile(value) };
}

fn read(at: usize) -> u64 {
    // SAFETY: as in `write`.
    unsafe { with_exposed_provenance_mut::<u64>(at).read_volatile() }
}

fn make_usable(at: &Range<usize>) {
    let start = with_exposed_provenance_mut(at.start);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: memory of this test.
    assert_eq!(unsafe { largesse_pages::raw_mprotect(start, at.len(), protection) }, 0);
}

#[test]
fn usable_parts_alone_have_room() {
    let broker = Broker::start().unwrap();
    let Ok(faults) = broker.call(|| Userfault::open(&OPEN_METHODS)) else {
        return skipped("no userfaultfd here");
    };
    let mut segments = Segments::new();
    let heap = FarRange::new(Reserved::new(SPAN, SPAN).unwrap(), &mut segments);
    let mappings = FarRange::new(Reserved::new(64 * SPAN, SPAN).unwrap(), &mut segments);
    let store = FileStore::create(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("reserved"), &broker).unwrap();
    let kernel = Linux::new(Arc::clone(&broker), faults, segments.clone(), Ranges::new()).unwrap();
    let pager = Arc::new(Pager::new(kernel, store, segments, 4096, Policies::baseline(1)).unwrap());
    let local = Local::Bytes(4096 * base_page());
    let far = FarMemory::new(heap, (mappings, MappedParts::new()), Arc::clone(&pager), local, lost);
    start(&pager, lost).unwrap();
    let mapped = || usize::try_from(pager.counters.get(Count::MappedBytes)).unwrap();

    let at = far.reserve(32 * SPAN, 0).unwrap();
    let span = |number: usize| at + number * SPAN..at + (number + 1) * SPAN;
    assert_eq!((mapped(), far.reserved_bytes(&(at..at + 32 * SPAN))), (0, 32 * SPAN));
    for number in [3, 5] {
        far.use_reserved(&span(number), || make_usable(&span(number))).unwrap();
        assert_eq!(read(span(number).start), 0);
        write(span(number).start, 7);
    }
    assert_eq!((mapped(), far.reserved_bytes(&(at..at + 32 * SPAN))), (2 * SPAN, 30 * SPAN));
    // Usable for the second time: the contents are kept.
    far.use_reserved(&(span(3).start..span(5).end), || make_usable(&span(3))).unwrap();
    assert_eq!((mapped(), read(span(3).start)), (3 * SPAN, 7));

    far.reserve_over(&span(3)).unwrap();
    assert_eq!(mapped(), 2 * SPAN);
    far.use_reserved(&span(3), || make_usable(&span(3))).unwrap();
    assert_eq!((mapped(), read(span(3).start)), (3 * SPAN, 0));

    // A mapping gets the address that it wishes for if that is free.
    assert_ne!(far.map(SPAN, span(5).start).unwrap(), span(5).start);
    far.unmap(&span(5)).unwrap();
    assert_eq!((mapped(), far.is_mapped(&span(5))), (3 * SPAN, false));
    assert_eq!(far.map(SPAN, span(5).start).unwrap(), span(5).start);
    assert_eq!(read(span(5).start), 0);
    far.unmap(&(at..at + 64 * SPAN)).unwrap();
    assert_eq!((mapped(), far.reserved_bytes(&(at..at + 32 * SPAN))), (0, 0));
}
