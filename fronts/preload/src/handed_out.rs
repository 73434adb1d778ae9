//! Fills in structures that callers in C allocate (`include/largesse.h`).
//!
//! Each structure begins with `struct_size`, which the caller sets: an older caller gets the fields it knows and
//! nothing beyond, a newer one gets the fields that this library knows.

use crate::status::{BAD_ARGUMENT, OK};
use core::ffi::c_int;

/// Largest `struct_size` in bytes that is accepted: a larger one comes from memory that the caller did not set.
const LARGEST: usize = 64 << 10;

/// Marks a structure of `largesse.h` that callers allocate.
///
/// # Safety
/// The type must be `repr(C)`, its first field a `usize` that holds its size, and `FIRST` at least
/// `size_of::<usize>()`.
pub(crate) unsafe trait Structure: Copy {
    /// Size in bytes of the structure in the first version of the interface; a smaller `struct_size` is refused.
    const FIRST: usize;
}

/// Result of the calls that fill in arrays if a `struct_size` is refused: `(size_t)-1`.
pub(crate) const REFUSED: usize = usize::MAX;

/// Returns the caller's `struct_size`; `None` when it is refused.
///
/// # Safety
/// `out` must point to a `usize` and be aligned for it.
unsafe fn size_of_callers<T: Structure>(out: *const T) -> Option<usize> {
    // SAFETY: the caller's promise; the structure begins with its size.
    let size = unsafe { out.cast::<usize>().read() };
    let fits = (T::FIRST..=LARGEST).contains(&size) && size.is_multiple_of(align_of::<T>());
    fits.then_some(size)
}

/// Copies `now` to the caller's structure, as far as the caller knows its fields.
///
/// # Safety
/// `out` must be null, or aligned and writable for as many bytes as its first field says.
pub(crate) unsafe fn fill<T: Structure>(out: *mut T, now: T) -> c_int {
    if out.is_null() {
        return BAD_ARGUMENT;
    }
    // SAFETY: the caller's promise.
    match unsafe { size_of_callers(out) } {
        // SAFETY: `size` is at least `T::FIRST`, and the caller promises as many writable bytes.
        Some(size) => unsafe { copy(out, size, now) },
        None => return BAD_ARGUMENT,
    }
    OK
}

/// Fills in an array of at most `capacity` structures, each of the size that the first one says. Returns `false`, and
/// writes nothing, when that size is refused.
///
/// # Safety
/// `out` must point to `capacity` structures of `out[0].struct_size` bytes each, or be null, or `capacity` be 0.
pub(crate) unsafe fn fill_all<T: Structure>(
    out: *mut T,
    capacity: usize,
    all: impl Iterator<Item = T>,
) -> bool {
    if out.is_null() || capacity == 0 {
        return true;
    }
    // SAFETY: `capacity` is not 0, so the caller promises a first structure.
    let Some(size) = (unsafe { size_of_callers(out) }) else { return false };
    for (number, one) in all.take(capacity).enumerate() {
        // SAFETY: `number < capacity` structures of `size` bytes, by the caller's promise; `size` keeps them aligned.
        unsafe { copy(out.byte_add(number * size), size, one) };
    }
    true
}

/// Copies `now` to `out`, at most `size` bytes, and sets `struct_size` to the number of bytes copied.
///
/// # Safety
/// `size` bytes at `out` must be writable, and at least `size_of::<usize>()`.
unsafe fn copy<T: Structure>(out: *mut T, size: usize, mut now: T) {
    let len = size.min(size_of::<T>());
    // SAFETY: a `Structure` starts with a `usize`, its size.
    unsafe { (&raw mut now).cast::<usize>().write(len) };
    // SAFETY: both sides have `len` bytes (theirs by promise, ours by `min`), and `now` is a local.
    unsafe { out.cast::<u8>().copy_from_nonoverlapping((&raw const now).cast(), len) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{BlockInfo, Stats, largesse_blocks, largesse_stats};
    use crate::topology::{CpuInfo, NodeInfo, largesse_cpus, largesse_nodes};

    /// Number of words in the memory that [`check`] passes as the caller's structures. All but the first are
    /// [`UNTOUCHED`] before each call.
    const ROOM: usize = 512;
    const UNTOUCHED: usize = 0x5a5a_5a5a_5a5a_5a5a;

    #[track_caller]
    fn check<T: Structure>(
        name: &str,
        call: impl Fn(*mut T, usize) -> usize,
        refused: usize,
        size_written: bool,
    ) {
        let first = T::FIRST;
        let sizes = [0, 1, 4, 7, 8, 12, 16, 24, first - 8, first - 1, first + 1, LARGEST + 8, usize::MAX];
        for size in sizes {
            let mut memory = [UNTOUCHED; ROOM];
            memory[0] = size;
            assert_eq!(call(memory.as_mut_ptr().cast(), 8), refused, "{name} with struct_size {size}");
            assert!(
                memory[1..].iter().all(|word| *word == UNTOUCHED),
                "{name} wrote with struct_size {size}"
            );
            assert_eq!(memory[0], size, "{name} changed a struct_size it refused");
        }
        for size in [first, size_of::<T>(), size_of::<T>() + 64] {
            let mut memory = [UNTOUCHED; ROOM];
            memory[0] = size;
            let count = call(memory.as_mut_ptr().cast(), 1);
            assert!(count != refused, "{name} refused struct_size {size}");
            assert!(!size_written || memory[0] == size.min(size_of::<T>()), "{name}: struct_size {size}");
            assert!(
                memory[size.min(size_of::<T>()).div_ceil(8)..].iter().all(|word| *word == UNTOUCHED),
                "{name} wrote beyond {size} bytes"
            );
        }
    }

    #[test]
    fn small_structures_are_refused() {
        // SAFETY: the buffer of `check` has room for every size that the calls must accept.
        unsafe {
            check::<CpuInfo>("largesse_cpus", |out, n| largesse_cpus(out, n), REFUSED, true);
            check::<NodeInfo>("largesse_nodes", |out, n| largesse_nodes(out, n), REFUSED, true);
            check::<BlockInfo>("largesse_blocks", |out, n| largesse_blocks(out, n), REFUSED, false);
            let stats = |out: *mut Stats, _| usize::try_from(largesse_stats(out)).unwrap_or(REFUSED);
            check::<Stats>("largesse_stats", stats, REFUSED, true);
        }
    }
}
