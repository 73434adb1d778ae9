//! Needs a userfaultfd and Linux 6.8: elsewhere nothing is moved.

use super::*;
use largesse_pages::fault::OpenMethod;

/// A staging that moves, and a registered part of a program; nothing where that is not allowed, or not known.
fn moving() -> Option<(Userfault, Staging, Reserved)> {
    let faults = Userfault::open(&[OpenMethod::Device, OpenMethod::Call, OpenMethod::UserModeOnly]).ok()?;
    let mut staging = Staging::new().unwrap();
    staging.register(&faults).unwrap();
    staging.try_moving(&faults).unwrap();
    let program = Reserved::new(SPAN, SPAN).unwrap();
    program.commit(0, SPAN, PageKind::Small).unwrap();
    faults.register(program.start().as_ptr().addr(), SPAN).unwrap();
    staging.moves().then_some((faults, staging, program))
}

/// Pages of a program, each full of its number from `first` on.
fn fill(faults: &Userfault, at: usize, first: u8, pages: usize) {
    let page = base_page();
    for (number, byte) in (0..pages).zip(first..) {
        faults.fill(at + number * page, &vec![byte; page], false).unwrap();
    }
}

/// Takes pages that are full of one byte each.
fn taken(staging: &Staging, faults: &Userfault, at: usize, pages: usize) -> Vec<u8> {
    let page = base_page();
    let mut came = vec![0; pages];
    staging
        .take(faults, at, pages * page, &mut |offset, bytes| {
            for (number, bytes) in (offset / page..).zip(bytes.chunks_exact(page)) {
                assert!(bytes.iter().all(|byte| *byte == bytes[0]));
                came[number] = bytes[0];
            }
            Ok(())
        })
        .unwrap();
    came
}

// Seen to fail ("File exists") without the two ways out.
#[test]
fn a_place_that_is_taken_costs_no_page() {
    let page = base_page();
    let stray = |faults: &Userfault, _: usize, to: usize| faults.fill(to, &vec![9; page], false).unwrap();
    let moved = |faults: &Userfault, from: usize, to: usize| assert_eq!(faults.take(from, to, page).0, page);
    for by in [&stray as &dyn Fn(&Userfault, usize, usize), &moved] {
        let Some((faults, staging, program)) = moving() else { return };
        let at = program.start().as_ptr().addr();
        fill(&faults, at, 1, 4);
        by(&faults, at + 2 * page, staging.start_of(0) + 2 * page);
        assert_eq!(taken(&staging, &faults, at, 4), [1, 2, 3, 4]);
    }
}

#[test]
fn frames_of_what_left_hold_what_comes() {
    let Some((faults, staging, program)) = moving() else { return };
    let (page, at) = (base_page(), program.start().as_ptr().addr());
    staging.keep(4);
    assert!(staging.frames(page).is_none());
    fill(&faults, at, 1, 6);
    assert_eq!(taken(&staging, &faults, at, 6), [1, 2, 3, 4, 5, 6]);
    assert!(staging.frames(7 * page).is_none());
    // Two parts, the second first, and the last page is there already.
    fill(&faults, at + 2 * page, 30, 1);
    let mut frames = staging.frames(3 * page).unwrap();
    frames.bytes().chunks_exact_mut(page).zip(7..).for_each(|(bytes, new)| bytes.fill(new));
    frames.put(&faults, |put| put((page, at + page, 2 * page)).and_then(|()| put((0, at, page)))).unwrap();
    assert_eq!(taken(&staging, &faults, at, 3), [7, 8, 30]);
    // What stayed and what came since lie together; all of it is there to be used.
    assert!(staging.frames(7 * page).is_none());
    staging.frames(6 * page).unwrap().put(&faults, |put| put((0, at, 6 * page))).unwrap();
    assert!(staging.frames(page).is_none());
    assert_eq!(taken(&staging, &faults, at, 6), [1, 2, 3, 7, 8, 30]);
}

#[test]
fn frames_that_nobody_uses_go() {
    let Some((faults, staging, program)) = moving() else { return };
    let (page, at) = (base_page(), program.start().as_ptr().addr());
    staging.keep(4);
    for pages in [BATCH, 4, 1] {
        fill(&faults, at, 1, pages);
        taken(&staging, &faults, at, pages);
    }
    assert!(staging.frames(5 * page).is_none() && staging.frames(4 * page).is_some());
    assert!(!are_here(staging.start_of(0) + 4 * page, page));
}

#[test]
fn what_may_not_be_written_to_is_copied() {
    let Some((faults, staging, program)) = moving() else { return };
    let (page, at) = (base_page(), program.start().as_ptr().addr());
    fill(&faults, at, 1, 4);
    taken(&staging, &faults, at, 4);
    let first = core::ptr::with_exposed_provenance_mut(at);
    // SAFETY: a page of the test's own, of which nobody has a reference.
    let guarded = unsafe { largesse_pages::raw_mprotect(first, page, libc::PROT_READ) };
    assert_eq!(guarded, 0);
    let mut frames = staging.frames(2 * page).unwrap();
    frames.bytes().fill(5);
    frames.put(&faults, |put| put((0, at, 2 * page))).unwrap();
    let bytes = core::ptr::with_exposed_provenance::<u8>(at);
    // SAFETY: two pages that were filled just now, and can be read.
    assert!(unsafe { core::slice::from_raw_parts(bytes, 2 * page) }.iter().all(|byte| *byte == 5));
    assert!(!are_here(staging.start_of(0) + 2 * page, page), "what was copied left no frame");
    assert!(are_here(staging.start_of(0), 2 * page));
}
