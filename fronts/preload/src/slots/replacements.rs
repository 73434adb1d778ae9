//! Lists the functions of the library that replace those of the C library in patched slots.

use crate::ranges::calls;
use crate::{exports, mapping, process_vm};

/// Returns our replacement for a function with which R itself allocates blocks.
pub(super) fn for_r(name: &[u8]) -> Option<usize> {
    Some(match name {
        b"malloc" => exports::malloc as *const () as usize,
        b"calloc" => exports::calloc as *const () as usize,
        _ => return None,
    })
}

/// Returns our replacement for a function that handles blocks or maps memory, in any object.
pub(super) fn for_all(name: &[u8]) -> Option<usize> {
    Some(match name {
        b"free" => exports::free as *const () as usize,
        b"realloc" => exports::realloc as *const () as usize,
        b"reallocarray" => exports::reallocarray as *const () as usize,
        b"malloc_usable_size" => exports::malloc_usable_size as *const () as usize,
        b"mmap" => mapping::mmap as *const () as usize,
        b"mmap64" => mapping::mmap64 as *const () as usize,
        b"munmap" => calls::munmap as *const () as usize,
        b"mremap" => calls::mremap as *const () as usize,
        b"mprotect" => calls::mprotect as *const () as usize,
        b"pkey_mprotect" => calls::pkey_mprotect as *const () as usize,
        b"madvise" => calls::madvise as *const () as usize,
        b"mlock" => calls::mlock as *const () as usize,
        b"mlock2" => calls::mlock2 as *const () as usize,
        b"mlockall" => calls::mlockall as *const () as usize,
        b"process_vm_readv" => process_vm::process_vm_readv as *const () as usize,
        b"process_vm_writev" => process_vm::process_vm_writev as *const () as usize,
        _ => return None,
    })
}
