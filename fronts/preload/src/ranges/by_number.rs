//! Exports `syscall`, by which some programs map memory: SBCL maps its heap with `syscall(SYS_mmap, …)`.

use super::calls;
use crate::mapping;
use crate::next;
use core::ffi::{c_int, c_long, c_uint};
use core::ptr::with_exposed_provenance_mut as pointer;

/// Implements `syscall(2)`. Calls on ranges of memory are answered by this library's functions of the same name; the C
/// library makes all others. Six arguments are always read, as the C library does, even if the caller passed fewer.
#[unsafe(no_mangle)]
#[expect(clippy::cast_possible_truncation, reason = "the kernel reads the low half of these arguments, too")]
pub(crate) unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let (at, len, protection) = (pointer(a), b, c as c_int);
    match number {
        libc::SYS_mmap => {
            let (flags, fd, offset) = (d as c_int, e as c_int, f.cast_signed() as i64);
            // SAFETY: the caller made this very call, by its number.
            let got = unsafe { mapping::mmap(at, len, protection, flags, fd, offset) };
            got.addr().cast_signed() as c_long
        }
        libc::SYS_mremap => {
            // SAFETY: as above.
            let got = unsafe { calls::mremap(at, len, c, d as c_int, pointer(e)) };
            got.addr().cast_signed() as c_long
        }
        // SAFETY: as above.
        libc::SYS_munmap => unsafe { calls::munmap(at, len) }.into(),
        // SAFETY: as above.
        libc::SYS_mprotect => unsafe { calls::mprotect(at, len, protection) }.into(),
        // SAFETY: as above.
        libc::SYS_pkey_mprotect => unsafe { calls::pkey_mprotect(at, len, protection, d as c_int) }.into(),
        // SAFETY: as above.
        libc::SYS_madvise => unsafe { calls::madvise(at, len, c as c_int) }.into(),
        // SAFETY: as above.
        libc::SYS_mlock => unsafe { calls::mlock(at, len) }.into(),
        // SAFETY: as above.
        libc::SYS_mlock2 => unsafe { calls::mlock2(at, len, c as c_uint) }.into(),
        // SAFETY: as above.
        libc::SYS_mlockall => unsafe { calls::mlockall(a as c_int) }.into(),
        // SAFETY: as above.
        _ => unsafe { next::syscall(number, [a, b, c, d, e, f]) },
    }
}
