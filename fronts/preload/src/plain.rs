//! Tells which mappings are plain memory: private, anonymous, readable and writable, at an address that the kernel
//! chooses.

use core::ffi::{c_int, c_void};

/// Flags of `mmap` with which a mapping is not plain memory, or is only reserved.
pub(crate) const NEVER: c_int = libc::MAP_FIXED
    | libc::MAP_FIXED_NOREPLACE
    | libc::MAP_GROWSDOWN
    | libc::MAP_STACK
    | libc::MAP_HUGETLB
    | libc::MAP_NORESERVE;
/// Flags of a private anonymous mapping.
pub(crate) const ANONYMOUS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
/// Protection of plain memory.
pub(crate) const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// Protection of memory in which the program writes code that it runs.
pub(crate) const EXECUTABLE: c_int = READ_WRITE | libc::PROT_EXEC;

/// Returns whether a mapping is plain memory and has none of the flags `never`.
pub(crate) fn is_plain(address: *mut c_void, protection: c_int, flags: c_int, never: c_int) -> bool {
    address.is_null() && protection == READ_WRITE && flags & (ANONYMOUS | never) == ANONYMOUS
}
