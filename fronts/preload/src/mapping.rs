//! Exports `mmap`, which gives large pages to large mappings of other libraries, or makes them far memory (`ranges/`).
//!
//! OpenBLAS, for example, maps its packing buffers itself. Only mappings of plain memory are
//! changed: private, anonymous, readable and writable, at an address that the kernel chooses.

use crate::guard::Inside;
use crate::heap::LargeHeap;
use crate::make::heap_or_make;
use crate::plain::{NEVER, is_plain};
use crate::ranges::{self, calls::told};
use crate::settings::options;
use crate::{causes, routing, spill};
use core::ffi::{c_int, c_void};
use largesse_pages::{PageKind, SPAN};
use largesse_report::{Cause, MAX_ADVISED, PageChoice};

/// Smallest size in bytes of mappings that get large pages: in smaller ones none fits.
const SMALLEST: usize = SPAN;

/// Returns whether a mapping is plain memory in which large pages fit.
fn wants_large_pages(address: *mut c_void, len: usize, protection: c_int, flags: c_int) -> bool {
    len >= SMALLEST && is_plain(address, protection, flags, NEVER)
}

/// Implements `mmap(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap(
    address: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    if len >= ranges::SMALLEST && ranges::may_be_far(address, len, protection, flags) {
        before_mapping(len);
    }
    // SAFETY: the caller's promise.
    if let Some(answer) = unsafe { ranges::map(address, len, protection, flags, fd, offset) } {
        return core::ptr::with_exposed_provenance_mut(told(answer).cast_unsigned());
    }
    if wants_large_pages(address, len, protection, flags)
        && routing::takes_mapping(len)
        && options().pages != PageChoice::Small
    {
        let len = len.next_multiple_of(largesse_pages::base_page());
        if let Some(at) = largesse_pages::map_aligned(len, SPAN, protection, flags) {
            advise(at, len);
            return at;
        }
    }
    // SAFETY: the caller's promise.
    let got = unsafe { largesse_pages::raw_mmap(address, len, protection, flags, fd, offset) };
    core::ptr::with_exposed_provenance_mut(told(got).cast_unsigned())
}

/// Implements `mmap64(2)`, which is `mmap` on 64-bit systems.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap64(
    address: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { mmap(address, len, protection, flags, fd, offset) }
}

/// Has the limit looked at before the program gets memory that could exceed it.
fn before_mapping(len: usize) {
    if options().limit.is_some() {
        let _inside = Inside::enter_heap();
        heap_or_make(); // which begins to watch the limit
    }
    spill::before_mapping(len);
}

fn advise(at: *mut c_void, len: usize) {
    let _inside = Inside::enter_heap();
    // A signal handler that interrupted the heap gets large pages without a check of the limit, and without a record.
    let heap = heap_or_make().filter(|heap| !heap.is_interrupted());
    if !heap.is_none_or(|heap| has_room(heap, len)) {
        causes::note(Cause::NearLimit);
        return;
    }
    if largesse_pages::advise_mapping(at, len, PageKind::Thp).is_err() {
        causes::note(Cause::ThpRefused);
        return;
    }
    if let Some(heap) = heap {
        heap.edit_report(|report| {
            let slot = report.counters.advised_mappings as usize % MAX_ADVISED;
            report.advised[slot] = [at.addr() as u64, len as u64];
            report.counters.advised_mappings += 1;
            report.counters.advised_bytes += len as u64;
        });
    }
}

/// Returns whether the program stays below the limit on its memory even if it touches all `len` bytes of a new mapping,
/// all earlier advised mappings that are still mapped, and all of the heap.
fn has_room(heap: &LargeHeap, len: usize) -> bool {
    let room = heap.room() as u64;
    let mut fits = false;
    heap.edit_report(|report| {
        let fits_now = |advised: &[[u64; 2]]| {
            advised.iter().fold(len as u64, |sum, [_, len]| sum.saturating_add(*len)) <= room
        };
        if !fits_now(&report.advised) {
            let is_gone = |[at, _]: &&mut [u64; 2]| {
                *at != 0 && !largesse_pages::is_mapped(core::ptr::without_provenance_mut(*at as usize))
            };
            report.advised.iter_mut().filter(is_gone).for_each(|slot| *slot = [0, 0]);
        }
        fits = fits_now(&report.advised);
    });
    fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::{ANONYMOUS, READ_WRITE};
    use core::ptr::null_mut;

    #[test]
    fn only_large_plain_mappings_are_advised() {
        let (private, rw) = (ANONYMOUS, READ_WRITE);
        let somewhere = core::ptr::without_provenance_mut(0x10000);
        for (address, len, protection, flags, want) in [
            (null_mut(), 32 << 20, rw, private, true),
            (null_mut(), 1 << 20, rw, private, false),
            (somewhere, 32 << 20, rw, private, false),
            (null_mut(), 32 << 20, libc::PROT_NONE, private, false),
            (null_mut(), 32 << 20, rw | libc::PROT_EXEC, private, false),
            (null_mut(), 32 << 20, rw, libc::MAP_PRIVATE, false),
            (null_mut(), 32 << 20, rw, libc::MAP_SHARED | libc::MAP_ANONYMOUS, false),
            (null_mut(), 32 << 20, rw, private | libc::MAP_STACK, false),
            (null_mut(), 32 << 20, rw, private | libc::MAP_NORESERVE, false),
        ] {
            assert_eq!(
                wants_large_pages(address, len, protection, flags),
                want,
                "{len} {protection} {flags:#x}"
            );
        }
    }
}
