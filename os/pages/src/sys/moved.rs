//! Moves contents between mappings: by page tables where the kernel can, otherwise by copying.

use super::files::{Descriptor, memory_file};
use super::linux::{
    ANONYMOUS, READ_WRITE, advise, errno, map, map_aligned, map_over, release, reserve, system_mremap,
};
use crate::{PageKind, SPAN};
use core::ptr::NonNull;

/// Moves pages by way of an intermediate range. If the kernel refuses to move pages directly, it may have unmapped the
/// target (Linux before 6.17, if the source is more than one mapping), and a foreign mapping could be placed in that
/// hole of our reservation. The intermediate range is one mapping, or each of its spans is.
pub(crate) fn relocate(from: NonNull<u8>, to: NonNull<u8>, len: usize) -> Result<(), i32> {
    let (between, step) = match lift(from, len, len) {
        Ok(between) => (between, len),
        Err(libc::EFAULT) => (lift(from, len, SPAN)?, SPAN),
        Err(errno) => return Err(errno),
    };
    (0..len).step_by(step).try_for_each(|offset| put(between, to, offset, step))
}

/// Moves pages to a new intermediate range, `step` bytes at a time. The source stays mapped and reads as zero. After
/// an error all pages are back at the source.
fn lift(from: NonNull<u8>, len: usize, step: usize) -> Result<NonNull<u8>, i32> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    let between = reserve(len, SPAN)?;
    for offset in (0..len).step_by(step) {
        // SAFETY: the offset is inside both ranges.
        let (source, target) = unsafe { (from.add(offset), between.add(offset)) };
        // SAFETY: the target is a reservation made just now, the source is the caller's.
        let got = unsafe { system_mremap(source.as_ptr().cast(), step, step, flags, target.as_ptr()) };
        if got == libc::MAP_FAILED {
            let errno = errno();
            (0..offset).step_by(step).for_each(|done| _ = put(between, from, done, step));
            // The target of a refused move may be unmapped and in use by others: only the range behind it is ours.
            // SAFETY: inside the reservation.
            release(unsafe { target.add(step) }, len - offset - step);
            return Err(errno);
        }
    }
    Ok(between)
}

/// Moves `len` bytes, which are one mapping, from the intermediate range to their target.
fn put(between: NonNull<u8>, to: NonNull<u8>, offset: usize, len: usize) -> Result<(), i32> {
    // SAFETY: the offset is inside both ranges.
    let (source, target) = unsafe { (between.add(offset), to.add(offset)) };
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the source is our own, and the caller of `Reserved::relocate` promised that the target is unused.
    let got = unsafe { system_mremap(source.as_ptr().cast(), len, len, flags, target.as_ptr()) };
    if got != libc::MAP_FAILED {
        return Ok(());
    }
    // The kernel has no memory for page tables. Close the hole, if there is one, and copy the bytes.
    map_over(target, len, READ_WRITE, ANONYMOUS)?;
    // SAFETY: both ranges have `len` bytes and do not overlap.
    unsafe { target.copy_from_nonoverlapping(source, len) };
    release(source, len);
    Ok(())
}

/// Replaces hugetlb pages by ordinary ones: see [`Reserved::demote`](crate::Reserved::demote).
///
/// # Safety
/// Nothing else uses `[at, at + len)` during the call.
pub(crate) unsafe fn demote(
    at: NonNull<u8>,
    len: usize,
    lost: &mut dyn FnMut(NonNull<u8>, usize, usize) -> bool,
) -> Result<(), i32> {
    let copy = map_aligned(len, SPAN, READ_WRITE, ANONYMOUS).ok_or(libc::ENOMEM)?;
    let target = NonNull::new(copy.cast::<u8>()).ok_or(libc::ENOMEM)?;
    let _ = advise(target, len, PageKind::Thp);
    let between = memory_file(c"largesse-fork")?;
    for offset in (0..len).step_by(SPAN) {
        // SAFETY: the offset is inside both ranges.
        let (from, to) = unsafe { (at.add(offset), target.add(offset)) };
        if !copy_through(&between, from, to) && !lost(to, from.as_ptr().addr(), SPAN) {
            release(target, len);
            return Err(libc::EFAULT);
        }
    }
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the source is the private copy, the target our own range with the same contents.
    let got = unsafe { system_mremap(copy, len, len, flags, at.as_ptr()) };
    if got == libc::MAP_FAILED { Err(errno()) } else { Ok(()) }
}

/// Copies one span through a file, because the kernel answers `EFAULT` for a page that is missing, whereas reading it
/// here would kill the process. Returns whether all of the span was copied.
fn copy_through(file: &Descriptor, from: NonNull<u8>, to: NonNull<u8>) -> bool {
    let mut done = 0;
    while done < SPAN {
        // SAFETY: `done < SPAN`, inside the span.
        let (source, target) = unsafe { (from.as_ptr().add(done), to.as_ptr().add(done)) };
        // SAFETY: the kernel checks the source; it answers EFAULT where there is no page.
        let got = unsafe { libc::pwrite(file.0, source.cast(), SPAN - done, 0) };
        let Ok(len @ 1..) = usize::try_from(got) else { return false };
        // SAFETY: the target has `SPAN - done` bytes, of which `len` are written.
        if unsafe { libc::pread(file.0, target.cast(), len, 0) } != got {
            return false;
        }
        done += len;
    }
    true
}

/// Replaces a private mapping by anonymous memory with the same contents.
///
/// # Safety
/// `[at, at + len)` is mapped, readable, writable, and no other thread uses it during the call.
pub(crate) unsafe fn make_anonymous(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    let fresh = map(len, READ_WRITE, ANONYMOUS)?;
    // SAFETY: both have `len` bytes and do not overlap; the caller promises that no thread writes.
    unsafe { fresh.copy_from_nonoverlapping(at, len) };
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the new mapping, which no other code knows, replaces one with the same bytes.
    let got = unsafe { system_mremap(fresh.as_ptr().cast(), len, len, flags, at.as_ptr()) };
    if got == libc::MAP_FAILED {
        let errno = errno();
        release(fresh, len);
        return Err(errno);
    }
    Ok(())
}
