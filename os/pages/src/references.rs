//! Forgets (returns to the kernel) the pages to which nothing but the page table refers.
//!
//! After a page was protected, the kernel and devices may still write to it through a *reference* that they took
//! before, until they release it. Direct input and `process_vm_writev` do this. Before Linux 6.8 no call tells whether
//! there is a reference, but reclaim respects references:
//! ```text
//!   MADV_FREE     the pages count as unwritten, and may be dropped      ─┐ what is written through a reference
//!   compare       with the copy that was made before                     │ is seen by the comparison, or makes the
//!   MADV_PAGEOUT  drops pages without references that stayed unwritten  ─┘ page count as written when it is released
//! ```
//! The kernel may also drop a page between the steps, by the same rule. A page that was not dropped must be written
//! to, because otherwise the kernel could drop it later: [`keep`] does so without changing it.

use crate::{MapError, MapOp, base_page, sys};
use core::ptr::NonNull;

/// Bits of an entry in `/proc/PID/pagemap`, which describes one page.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const EXCLUSIVE: u64 = 1 << 56;

/// Number of entries of `pagemap` that are read at a time.
const ENTRIES: usize = 64;

/// The open files that the functions of this module read: this process's memory and its page tables.
#[derive(Debug)]
pub struct PageTables(sys::OwnTables);

impl PageTables {
    /// Opens both files. The error is the kernel's `errno`: `EACCES` in a process of which no dump may be made.
    pub fn open() -> Result<PageTables, i32> {
        sys::OwnTables::open().map(PageTables)
    }

    /// Reads a page into `into` if it is present, and returns whether it is. It never waits for a userfaultfd.
    #[must_use]
    pub fn read_present(&self, at: usize, into: &mut [u8]) -> bool {
        self.0.read(at, into) == into.len()
    }
}

fn refused(len: usize) -> impl Fn(i32) -> MapError {
    move |errno| MapError { op: MapOp::Purge, len, errno }
}

fn pointer(at: usize) -> Result<NonNull<u8>, i32> {
    NonNull::new(core::ptr::with_exposed_provenance_mut(at)).ok_or(libc::EFAULT)
}

/// Gives pages from address `at` on back to the kernel if they equal their copy in `copy` and nothing refers to them.
/// Calls `stays` with the offset of every page that was not forgotten. `again` is a buffer of at least one page.
///
/// # Safety
/// The program cannot write to the pages, because they are protected, and their contents may be forgotten. A page that
/// was not forgotten must be [kept](keep) once its protection is lifted.
pub unsafe fn forget_unused(
    PageTables(tables): &PageTables,
    at: usize,
    copy: &[u8],
    again: &mut [u8],
    stays: &mut dyn FnMut(usize),
) -> Result<(), MapError> {
    let (page, len, most) = (base_page(), copy.len(), again.len());
    let refused = refused(len);
    pointer(at).and_then(|at| sys::offer(at, len)).map_err(&refused)?;
    let (mut done, mut first) = (0, 0);
    while done < len {
        let part = most.min(len - done);
        let present = tables.read(at + done, &mut again[..part]) / page * page;
        for offset in (done..done + present).step_by(page) {
            if again[offset - done..offset - done + page] != copy[offset..offset + page] {
                reclaim(tables, at, first..offset, stays).map_err(&refused)?;
                stays(offset);
                first = offset + page;
            }
        }
        // The page after those was dropped: nothing was written to it.
        done += if present < part { present + page } else { present };
    }
    reclaim(tables, at, first..len, stays).map_err(refused)
}

/// Makes the kernel drop pages in this range of offsets, which were offered to it. Calls `stays` with the offset of
/// every page that it did not drop.
fn reclaim(
    tables: &sys::OwnTables,
    at: usize,
    range: core::ops::Range<usize>,
    stays: &mut dyn FnMut(usize),
) -> Result<(), i32> {
    let page = base_page();
    if range.is_empty() {
        return Ok(());
    }
    sys::reclaim(pointer(at + range.start)?, range.len())?;
    let mut entries = [0; ENTRIES];
    for start in range.clone().step_by(ENTRIES * page) {
        let entries = &mut entries[..ENTRIES.min((range.end - start) / page)];
        tables.entries(at + start, entries)?;
        for (offset, entry) in (start..).step_by(page).zip(entries) {
            match *entry & (PRESENT | SWAPPED | EXCLUSIVE) {
                0 => {}
                // The zero page, or one that is shared with a child since a fork: the kernel writes to neither.
                PRESENT => sys::purge(pointer(at + offset)?, page)?,
                _ => stays(offset),
            }
        }
    }
    Ok(())
}

/// Writes to the page at `at` without changing it, so that the kernel cannot drop it any more. This is needed for a
/// page that [`forget_unused`] did not forget, after its protection is lifted. Returns `false` if the page is missing
/// by now, or if the program may not write to it.
#[must_use]
pub fn keep(at: usize) -> bool {
    sys::rewrite(at)
}

/// Returns whether this kernel leaves a page that it refers to in place, and lets the program write to that same page.
/// `at` is a page of the caller's that can be written; `protect` sets whether a userfaultfd write-protects it.
///
/// Kernels before 5.19 give a program a copy when it writes to such a page, and some of them even drop the page.
///
/// # Safety
/// Nothing else uses the page. It may be missing afterwards.
pub unsafe fn are_respected(
    PageTables(tables): &PageTables,
    at: usize,
    protect: &mut dyn FnMut(bool),
) -> Result<bool, i32> {
    let page = core::ptr::with_exposed_provenance_mut::<u8>(at);
    let is_present = || {
        let mut entry = [0];
        tables.entries(at, &mut entry).map(|()| entry[0] & PRESENT != 0)
    };
    let drop_it =
        || pointer(at).and_then(|start| sys::offer(start, base_page()).and(sys::reclaim(start, base_page())));
    protect(true);
    let reference = sys::PageInPipe::new(at)?;
    drop_it()?;
    if !is_present()? {
        return Ok(false);
    }
    protect(false);
    // SAFETY: the page is the caller's, and present: a reference keeps it.
    unsafe { page.write_volatile(2) };
    if reference.first_byte() != Some(2) {
        return Ok(false);
    }
    drop(reference);
    drop_it()?;
    Ok(!is_present()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PageKind, Reserved, SPAN};
    extern crate std;
    use std::vec::Vec;

    /// Runs [`forget_unused`] on four pages, of which the second is referred to and the third differs from its copy.
    /// Returns the pages that were not forgotten, or `None` if this kernel does not respect references.
    fn staying() -> Option<Vec<usize>> {
        let (page, range) = (base_page(), Reserved::new(SPAN, SPAN).unwrap());
        range.commit(0, SPAN, PageKind::Small).unwrap();
        let at = range.start().as_ptr().expose_provenance();
        // SAFETY: pages of our own, inside the range; they are used through this slice only.
        let bytes = unsafe { core::slice::from_raw_parts_mut(range.start().as_ptr(), 5 * page) };
        bytes.fill(1);
        let tables = PageTables::open().unwrap();
        // SAFETY: nothing else uses the fifth page.
        if !unsafe { are_respected(&tables, at + 4 * page, &mut |_| ()) }.unwrap() {
            return None;
        }
        let copy = bytes[..4 * page].to_vec();
        bytes[2 * page] = 9;
        let _reference = sys::PageInPipe::new(at + page).unwrap();
        let (mut again, mut stay) = (std::vec![0; 3 * page], Vec::new());
        // SAFETY: nothing else uses the pages, and what stays is written to.
        unsafe { forget_unused(&tables, at, &copy, &mut again, &mut |offset| stay.push(offset / page)) }
            .unwrap();
        assert!(stay.iter().all(|number| keep(at + number * page)));
        for (number, byte) in [1, 1, 9, 1].into_iter().enumerate() {
            let want = if stay.contains(&number) { byte } else { 0 };
            assert_eq!(bytes[number * page], want, "page {number} of those of which {stay:?} stay");
        }
        Some(stay)
    }

    #[test]
    fn pages_in_use_stay() {
        // A page that was made on another processor just now may stay, too: not in every try.
        let tries: Option<Vec<_>> = (0..20).map(|_| staying()).collect();
        match tries {
            Some(tries) => {
                assert!(tries.iter().all(|stay| stay.contains(&1) && stay.contains(&2)), "{tries:?}");
                assert!(tries.contains(&[1, 2].into()), "{tries:?}");
            }
            #[expect(clippy::disallowed_macros, reason = "absent features are printed as skipped")]
            None => std::println!("skipped: this kernel drops pages that are referred to"),
        }
    }
}
