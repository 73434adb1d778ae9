//! Recognises requests that the C library and the dynamic linker make for themselves, by the address of the caller.
//!
//! Their blocks are never far memory. The dynamic linker's tables are used by every thread, those of the pager among
//! them, and a forked child uses the C library's files and fork handlers before its own pager runs.

use crate::slots::object;
use crate::symbol::symbol;
use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Start and length of the code of the dynamic linker and of the C library.
static CODE: [[AtomicUsize; 2]; 2] = [const { [const { AtomicUsize::new(0) }; 2] }; 2];
/// Start and length of the C library's functions that allocate a block for their caller.
static FOR_CALLER: [[AtomicUsize; 2]; 4] = [const { [const { AtomicUsize::new(0) }; 2] }; 4];

/// Returns whether the code at an address allocates for the C library or the dynamic linker itself.
#[inline]
pub(crate) fn is_for_c_library(caller: usize) -> bool {
    is_in(&CODE, caller) && !is_in(&FOR_CALLER, caller)
}

// Relaxed, here and below: set before small blocks are served.
#[inline]
fn is_in(ranges: &[[AtomicUsize; 2]], address: usize) -> bool {
    ranges
        .iter()
        .any(|[start, len]| address.wrapping_sub(start.load(Ordering::Relaxed)) < len.load(Ordering::Relaxed))
}

fn set(ranges: &[[AtomicUsize; 2]], found: impl Iterator<Item = Range<usize>>) {
    for ([start, len], range) in ranges.iter().zip(found) {
        start.store(range.start, Ordering::Relaxed);
        len.store(range.len(), Ordering::Relaxed);
    }
}

/// Looks up the code of both, before small blocks are served.
pub(crate) fn prepare() {
    let both = [c"getpid", c"__tls_get_addr"].map(|name| symbol(name).addr());
    let mut found = Vec::new();
    object::each_object(|object| found.extend(both.iter().find_map(|&at| object.code_around(at))));
    set(&CODE, found.into_iter());
    let functions: [&CStr; 4] = [c"strdup", c"strndup", c"wcsdup", c"getdelim"];
    set(&FOR_CALLER, functions.into_iter().filter_map(|name| object::extent_of(symbol(name))));
}
