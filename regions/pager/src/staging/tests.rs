//! These tests need a userfaultfd, and most of them Linux 6.8: elsewhere pages are not moved.

use super::*;
use largesse_pages::fault::OpenMethod;

/// Returns staging buffers to which pages are moved, and a registered range; `None` where the kernel does not permit
/// userfaultfd, or cannot move pages.
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

/// Fills pages of a program, each with bytes that are its number, which begins with `first`.
fn fill(faults: &Userfault, at: usize, first: u8, pages: usize) {
    let page = base_page();
    for (number, byte) in (0..pages).zip(first..) {
        faults.fill(at + number * page, &vec![byte; page], false).unwrap();
    }
}

/// Takes pages out of the program, and returns the byte of which each page is full.
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
fn occupied_place_loses_no_page() {
    let page = base_page();
    let stray = |faults: &Userfault, _: usize, to: usize| faults.fill(to, &vec![9; page], false).unwrap();
    let moved = |faults: &Userfault, from: usize, to: usize| assert_eq!(faults.take(from, to, page).0, page);
    for by in [&stray as &dyn Fn(&Userfault, usize, usize), &moved] {
        let Some((faults, staging, program)) = moving() else { return };
        let at = program.start().as_ptr().addr();
        fill(&faults, at, 1, 4);
        by(&faults, at + 2 * page, staging.buffers[0].lock().plain.start + 2 * page);
        assert_eq!(taken(&staging, &faults, at, 4), [1, 2, 3, 4]);
    }
}

#[test]
fn frames_of_evicted_pages_are_filled() {
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
    // Frames that were kept and pages that were taken since lie together, and all of them can be used.
    assert!(staging.frames(7 * page).is_none());
    staging.frames(6 * page).unwrap().put(&faults, |put| put((0, at, 6 * page))).unwrap();
    assert!(staging.frames(page).is_none());
    assert_eq!(taken(&staging, &faults, at, 6), [1, 2, 3, 7, 8, 30]);
}

#[test]
fn unused_frames_are_dropped() {
    let Some((faults, staging, program)) = moving() else { return };
    let (page, at) = (base_page(), program.start().as_ptr().addr());
    staging.keep(4);
    for pages in [BATCH, 4, 1] {
        fill(&faults, at, 1, pages);
        taken(&staging, &faults, at, pages);
    }
    assert!(staging.frames(5 * page).is_none() && staging.frames(4 * page).is_some());
    assert!(!are_resident(staging.buffers[0].lock().plain.start + 4 * page, page));
}

#[test]
fn guarded_pages_are_copied() {
    let Some((faults, staging, program)) = moving() else { return };
    let (page, at) = (base_page(), program.start().as_ptr().addr());
    fill(&faults, at, 1, 4);
    taken(&staging, &faults, at, 4);
    let first = core::ptr::with_exposed_provenance_mut(at);
    // SAFETY: a page of the test's own, without a reference to it.
    let guarded = unsafe { largesse_pages::raw_mprotect(first, page, libc::PROT_READ) };
    assert_eq!(guarded, 0);
    let mut frames = staging.frames(2 * page).unwrap();
    frames.bytes().fill(5);
    frames.put(&faults, |put| put((0, at, 2 * page))).unwrap();
    let bytes = core::ptr::with_exposed_provenance::<u8>(at);
    // SAFETY: two pages that were filled just now, and can be read.
    assert!(unsafe { core::slice::from_raw_parts(bytes, 2 * page) }.iter().all(|byte| *byte == 5));
    assert!(
        !are_resident(staging.buffers[0].lock().plain.start + 2 * page, page),
        "a copied page leaves no frame"
    );
    assert!(are_resident(staging.buffers[0].lock().plain.start, 2 * page));
}

/// Changes the protection of pages of a program.
fn protect(at: usize, pages: usize, protection: i32) {
    let first = core::ptr::with_exposed_provenance_mut(at);
    // SAFETY: pages of the test's own, without a reference to them.
    assert_eq!(unsafe { largesse_pages::raw_mprotect(first, pages * base_page(), protection) }, 0);
}

/// Returns the number of pages that were moved to each part of the first staging buffer.
fn moved(staging: &Staging) -> [usize; 2] {
    let buffer = staging.buffers[0].lock();
    [buffer.plain.shown, buffer.executable.shown].map(|bytes| bytes / base_page())
}

// Seen to fail without the executable part: all pages are copied.
#[test]
fn executable_pages_are_moved() {
    let Some((faults, staging, program)) = moving() else { return };
    let (page, at) = (base_page(), program.start().as_ptr().addr());
    let run = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    protect(at, 6, run);
    fill(&faults, at, 1, 6);
    assert_eq!(taken(&staging, &faults, at, 6), [1, 2, 3, 4, 5, 6]);
    assert_eq!(moved(&staging), [0, 0]);
    staging.map_executable(&faults).unwrap();
    fill(&faults, at, 1, 6);
    assert_eq!(taken(&staging, &faults, at, 6), [1, 2, 3, 4, 5, 6]);
    assert_eq!(moved(&staging), [0, 6]);
    protect(at + 2 * page, 2, libc::PROT_READ | libc::PROT_WRITE);
    protect(at + 5 * page, 1, libc::PROT_READ | libc::PROT_EXEC);
    fill(&faults, at, 1, 6);
    assert_eq!(taken(&staging, &faults, at, 6), [1, 2, 3, 4, 5, 6]);
    assert_eq!(moved(&staging), [2, 9]);
    fill(&faults, at, 1, BATCH);
    protect(at, BATCH, run);
    assert_eq!(taken(&staging, &faults, at, BATCH).last(), Some(&64));
    assert_eq!(moved(&staging), [2, 0], "surplus frames are dropped");
}

/// Returns staging buffers to which pages are copied, as before Linux 6.8; `None` where the kernel does not keep pages
/// to which it holds references.
fn copying() -> Option<(Userfault, Staging, Reserved)> {
    let (faults, mut staging, program) = moving()?;
    let at = staging.range.start().as_ptr().addr();
    (staging.moves, staging.respects) = (false, copied::are_references_respected(&faults, at).unwrap());
    staging.respects.then_some((faults, staging, program))
}

#[test]
fn copied_page_stays_while_it_is_referred_to() {
    use std::io::Read as _;
    use std::os::fd::AsRawFd as _;
    let Some((faults, staging, program)) = copying() else { return };
    let (page, at) = (base_page(), program.start().as_ptr().addr());
    fill(&faults, at, 1, 4);
    let (mut out, into) = std::io::pipe().unwrap();
    let third =
        libc::iovec { iov_base: core::ptr::with_exposed_provenance_mut(at + 2 * page), iov_len: page };
    // SAFETY: a page that is present, which the pipe refers to.
    assert_eq!(unsafe { libc::vmsplice(into.as_raw_fd(), &raw const third, 1, 0) }, page.cast_signed());
    let mut came = taken(&staging, &faults, at, 4);
    // A page that another processor has just made may stay at first.
    for number in [0, 1, 3] {
        for _ in 0..20 {
            if came[number] == 0 {
                came[number] = taken(&staging, &faults, at + number * page, 1)[0];
            }
        }
    }
    assert_eq!(came, [1, 2, 0, 4]);
    let bytes = core::ptr::with_exposed_provenance_mut::<u8>(at + 2 * page);
    // SAFETY: the page is present, and nothing else uses it: it can be written to, and the pipe has the same frame.
    unsafe { bytes.write_volatile(7) };
    let mut read = vec![0; page];
    out.read_exact(&mut read).unwrap();
    assert_eq!(read[..2], [7, 3]);
}
