//! Contents that move from mapping to mapping: by page tables where the kernel does it, by copying where not.

use super::files::{Descriptor, memory_file};
use super::linux::{
    ANONYMOUS, READ_WRITE, advise, errno, map, map_aligned, map_over, release, reserve, system_mremap,
};
use crate::{PageKind, SPAN};
use core::ptr::NonNull;

/// Through a place between: a move that the kernel refuses may have taken its target away already (Linux before 6.17,
/// where the source is more than one mapping), and in a hole of our reservation it would place somebody else's memory.
/// What is between is one mapping where it is moved on, or each span of it is.
pub(crate) fn relocate(from: NonNull<u8>, to: NonNull<u8>, len: usize) -> Result<(), i32> {
    let (between, step) = match lift(from, len, len) {
        Ok(between) => (between, len),
        Err(libc::EFAULT) => (lift(from, len, SPAN)?, SPAN),
        Err(errno) => return Err(errno),
    };
    (0..len).step_by(step).try_for_each(|offset| put(between, to, offset, step))
}

/// Moves pages to a place of our own, `step` bytes at a time; the source stays, and reads as zero. After an error
/// everything is back.
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
            // The target of a refused move may be gone, and its place somebody else's: only what is behind it is ours.
            // SAFETY: inside the reservation.
            release(unsafe { target.add(step) }, len - offset - step);
            return Err(errno);
        }
    }
    Ok(between)
}

/// Moves `len` bytes, one mapping, on from between.
fn put(between: NonNull<u8>, to: NonNull<u8>, offset: usize, len: usize) -> Result<(), i32> {
    // SAFETY: the offset is inside both ranges.
    let (source, target) = unsafe { (between.add(offset), to.add(offset)) };
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the source is our own, and the caller of `Reserved::relocate` promised that nobody uses the target.
    let got = unsafe { system_mremap(source.as_ptr().cast(), len, len, flags, target.as_ptr()) };
    if got != libc::MAP_FAILED {
        return Ok(());
    }
    // The kernel is out of memory for its own tables. The hole, if there is one, is closed, and the bytes are copied.
    map_over(target, len, READ_WRITE, ANONYMOUS)?;
    // SAFETY: both ranges have `len` bytes and do not overlap.
    unsafe { target.copy_from_nonoverlapping(source, len) };
    release(source, len);
    Ok(())
}

/// # Safety
/// Nobody else uses `[at, at + len)` meanwhile.
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

/// Copy one span by way of a file: where a page was taken away the kernel answers EFAULT, while
/// reading it here would be the end of the process.
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

/// # Safety
/// `[at, at + len)` is mapped, readable, writable, and no other thread uses it meanwhile.
pub(crate) unsafe fn make_anonymous(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    let fresh = map(len, READ_WRITE, ANONYMOUS)?;
    // SAFETY: both have `len` bytes and do not overlap; the caller promises that nobody writes.
    unsafe { fresh.copy_from_nonoverlapping(at, len) };
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the new mapping, which nobody else knows, takes the place of one with the same bytes.
    let got = unsafe { system_mremap(fresh.as_ptr().cast(), len, len, flags, at.as_ptr()) };
    if got == libc::MAP_FAILED {
        let errno = errno();
        release(fresh, len);
        return Err(errno);
    }
    Ok(())
}
