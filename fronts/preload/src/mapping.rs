//! Exports `mmap`, which gives large pages to large mappings of other libraries, or makes them far memory (`ranges/`).
//!
//! OpenBLAS, for example, maps its packing buffers itself. Only mappings of plain memory are
//! changed: private, anonymous, readable and writable, at an address that the kernel chooses.

use crate::guard::Inside;
use crate::heap;
use crate::make::heap_or_make;
use crate::near_mappings::Purpose;
use crate::plain::{NEVER, is_plain};
use crate::ranges::{self, calls::told};
use crate::settings::options;
use crate::{advised, limit_state, routing, spill};
use core::ffi::{c_int, c_void};
use largesse_pages::SPAN;
use largesse_report::PageChoice;

/// Returns whether a mapping is plain memory in which large pages fit.
fn wants_large_pages(address: *mut c_void, len: usize, protection: c_int, flags: c_int) -> bool {
    len >= advised::SMALLEST && is_plain(address, protection, flags, NEVER)
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
    let purpose = ranges::purpose(address, len, protection, flags);
    if purpose.is_some() && options().limit.is_some() {
        let _inside = Inside::enter_heap();
        heap_or_make(); // which begins to watch the limit
    }
    let usable = match purpose {
        Some(Purpose::Use { .. }) => len,
        Some(Purpose::Reserve) => 0,
        None => ranges::usable_after(address, len, protection, flags),
    };
    if usable > 0 {
        spill::before_mapping(usable);
    }
    let wants_large = wants_large_pages(address, len, protection, flags)
        && routing::takes_mapping(len)
        && options().pages != PageChoice::Small;
    let becomes_far = limit_state::is_watched() && heap::far().is_none();
    let large = wants_large && becomes_far && advised::has_room_for(len);
    // SAFETY: the caller's promise.
    if let Some(answer) = unsafe { ranges::map(address, len, protection, flags, (fd, offset), large) } {
        if large && let Ok(at) = usize::try_from(answer) {
            advised::record(at, len);
        }
        return core::ptr::with_exposed_provenance_mut(told(answer).cast_unsigned());
    }
    if wants_large {
        let len = len.next_multiple_of(largesse_pages::base_page());
        if let Some(at) = largesse_pages::map_aligned(len, SPAN, protection, flags) {
            advised::advise(at, len);
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
