//! Implements `munmap` and `mremap` on far memory, where each page has a fixed place in the store, so that moved pages
//! are copied, and on memory that becomes far, whose pages the kernel moves.

use super::{far_range, protection, quietly, range};
use crate::answer::{Answer, is_error, refused};
use crate::backing::Far;
use crate::message::warn;
use crate::near_mappings::{self, Purpose};
use crate::plain::READ_WRITE;
use crate::{advised, causes, heap, near_statics};
use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::ptr::with_exposed_provenance_mut;
use largesse_pager::NoMapping;
use largesse_report::Cause;
use std::sync::Once;

/// Ensures that the message why far memory was not moved is printed only once.
static UNREAD: Once = Once::new();

/// Implements `munmap`.
///
/// # Safety
/// The requirements are those of `munmap(2)`.
pub(super) unsafe fn unmap(at: *mut c_void, len: usize) -> Answer {
    let near = |all| {
        near_statics::leave_near(&all);
        near_mappings::with(&all, |near| near.unmap(&all))
    };
    if let Some(answer) = range(at, len).and_then(near) {
        return answer;
    }
    match far_range(at, len) {
        Some((far, all)) => unmap_far(far, &all),
        // SAFETY: the caller's promise.
        None => unsafe { largesse_pages::raw_munmap(at, len) },
    }
}

/// Unmaps a range that includes far pages.
fn unmap_far(far: &Far, at: &Range<usize>) -> Answer {
    let done = quietly(|| far.unmap(at));
    let mut answer = if done.is_ok() { 0 } else { refused(libc::ENOMEM) };
    for part in quietly(|| far.near_parts(at)) {
        let start = with_exposed_provenance_mut(part.start);
        // SAFETY: the program asked for it, and none of the range is ours.
        answer = answer.min(unsafe { largesse_pages::raw_munmap(start, part.len()) });
    }
    answer
}

/// Implements `mremap`.
///
/// # Safety
/// The requirements are those of `mremap(2)`.
pub(super) unsafe fn remap(
    old: *mut c_void,
    old_len: usize,
    new_len: usize,
    flags: c_int,
    new: *mut c_void,
) -> Answer {
    let fixed = flags & libc::MREMAP_FIXED != 0;
    range(old, old_len).iter().for_each(near_statics::leave_near);
    if fixed {
        range(new, new_len).iter().for_each(near_statics::leave_near);
    }
    // SAFETY: the caller's promise.
    let by_kernel = || unsafe { largesse_pages::raw_mremap(old, old_len, new_len, flags, new) };
    let Some(from) = range(old, old_len).filter(is_ours) else {
        let to = if fixed { range(new, new_len).filter(is_ours) } else { None };
        let answer = to.map_or_else(by_kernel, |to| move_over(&to, by_kernel));
        if let (Some(from), Some(to)) = (range(old, old_len), moved_to(answer, new_len)) {
            advised::moved(&from, &to);
        }
        return answer;
    };
    let Some(to_len) = new_len.checked_next_multiple_of(largesse_pages::base_page()) else {
        return refused(libc::EINVAL);
    };
    let overlaps = fixed && new.addr() < from.end && from.start < new.addr().saturating_add(to_len);
    if to_len == 0 || overlaps || !is_mapped(&from) || flags & libc::MREMAP_DONTUNMAP != 0 {
        causes::note(Cause::FarAdvice);
        return refused(libc::EINVAL);
    }
    if !fixed && to_len <= from.len() {
        let rest = from.start + to_len..from.end;
        // SAFETY: the program gives the rest up.
        let answer = if rest.is_empty() { 0 } else { unsafe { unmap_addresses(&rest) } };
        return if is_error(answer) { answer } else { from.start.cast_signed() };
    }
    let allowed = match quietly(|| protection::of(&from)) {
        Ok(Some(allowed)) => allowed,
        Ok(None) => {
            causes::note(Cause::FarAdvice);
            return refused(libc::EFAULT); // as older kernels refuse a range of several protections
        }
        Err(unread) => {
            causes::note(Cause::FarAdvice);
            let text =
                || format!("far memory was not moved by mremap, since its protection is not known: {unread}");
            quietly(|| UNREAD.call_once(|| warn(&text())));
            return refused(libc::ENOMEM);
        }
    };
    let extended = if fixed { None } else { extend(&from, to_len, allowed) };
    let answer = match extended {
        Some(answer) => answer,
        None if flags & libc::MREMAP_MAYMOVE == 0 => return refused(libc::ENOMEM),
        // SAFETY: the caller promises that the old contents of a fixed target are no longer used.
        None => unsafe { move_to(&from, to_len, allowed, fixed.then_some(new)) },
    };
    if let Some(to) = moved_to(answer, new_len).filter(|_| heap::far().is_none()) {
        advised::moved(&from, &to);
    }
    answer
}

/// Returns the addresses of a mapping of `len` bytes after an `mremap` with this answer, if it succeeded.
fn moved_to(answer: Answer, len: usize) -> Option<Range<usize>> {
    if is_error(answer) { None } else { range(with_exposed_provenance_mut(answer.cast_unsigned()), len) }
}

/// Returns whether any of the addresses `at` is far memory, or becomes far.
fn is_ours(at: &Range<usize>) -> bool {
    !near_mappings::inside(at).is_empty()
        || far_range(with_exposed_provenance_mut(at.start), at.len()).is_some()
}

/// Returns whether the program has a mapping of ours at all of the addresses `at`.
fn is_mapped(at: &Range<usize>) -> bool {
    near_mappings::with(at, |near| near.is_mapped(at))
        .or_else(|| heap::far().map(|far| quietly(|| far.is_mapped(at))))
        .unwrap_or(false)
}

/// Calls `by_kernel`, which moves memory that is not ours to the addresses `to`, which include some of ours.
fn move_over(to: &Range<usize>, by_kernel: impl Fn() -> Answer) -> Answer {
    let near = near_mappings::with(to, |near| {
        let answer = by_kernel();
        if !is_error(answer) {
            near.leave_near(to);
        }
        answer
    });
    match (near, heap::far()) {
        (Some(answer), _) => answer,
        (None, Some(far)) => quietly(|| far.leave_out(to, by_kernel)).unwrap_or(refused(libc::ENOMEM)),
        (None, None) => by_kernel(),
    }
}

/// Makes a mapping of ours longer where it is. Returns `None` if the addresses that follow are not free.
fn extend(from: &Range<usize>, to_len: usize, allowed: c_int) -> Option<Answer> {
    if let Some(extended) = near_mappings::with(from, |near| near.extend(from, to_len, allowed)) {
        return extended;
    }
    let far = heap::far()?;
    let done = quietly(|| {
        far.use_reserved(from, || ()).map_err(NoMapping::Refused)?;
        far.extend(from, to_len - from.len())
    });
    match done {
        Ok(()) => {
            if allowed != READ_WRITE {
                let more = with_exposed_provenance_mut(from.end);
                // SAFETY: the new part has the protection of the mapping.
                unsafe { largesse_pages::raw_mprotect(more, to_len - from.len(), allowed) };
            }
            Some(from.start.cast_signed())
        }
        Err(NoMapping::Refused(_)) => Some(super::no_room(to_len)),
        Err(NoMapping::NoAddresses) => None,
    }
}

/// Moves a mapping of ours, all of whose pages have the protection `allowed`, to `target` or to a new address. It has
/// `to_len` bytes there.
///
/// # Safety
/// The contents of the target are no longer used.
unsafe fn move_to(from: &Range<usize>, to_len: usize, allowed: c_int, target: Option<*mut c_void>) -> Answer {
    let to = match target {
        // SAFETY: the caller's promise.
        Some(target) => unsafe { super::map_at(target, to_len) },
        None => new_mapping(to_len),
    };
    if is_error(to) {
        return to;
    }
    let to_start = to.cast_unsigned();
    let moved = from.start..from.start + from.len().min(to_len);
    let answer = near_mappings::with(&moved, |near| near.move_pages(&moved, to_start));
    let answer = answer.unwrap_or_else(|| match heap::far() {
        // SAFETY: the target is a new mapping of `to_len` bytes.
        Some(far) => unsafe { copy(far, &moved, to_start, allowed) },
        None => refused(libc::EFAULT),
    });
    if is_error(answer) {
        // SAFETY: the target was mapped just now.
        unsafe { unmap_addresses(&(to_start..to_start + to_len)) };
        return answer;
    }
    let rest = moved.end..from.end;
    if !rest.is_empty() {
        // SAFETY: the program gives up what was not moved.
        unsafe { unmap_addresses(&rest) };
    }
    if allowed != READ_WRITE {
        // SAFETY: the moved range keeps the protection that the program gave it.
        unsafe { largesse_pages::raw_mprotect(with_exposed_provenance_mut(to_start), to_len, allowed) };
    }
    to
}

/// Copies far pages to a new mapping at `to`, and unmaps them.
///
/// # Safety
/// The target is readable and writable, and the program does not use it yet.
unsafe fn copy(far: &Far, from: &Range<usize>, to: usize, allowed: c_int) -> Answer {
    let (old, target) =
        (with_exposed_provenance_mut::<u8>(from.start), with_exposed_provenance_mut::<u8>(to));
    if quietly(|| far.use_reserved(from, || ())).is_err() {
        return super::no_room(from.len());
    }
    if allowed & libc::PROT_READ == 0 {
        // SAFETY: the program gives this range up, so that making it readable for a moment is harmless.
        unsafe { largesse_pages::raw_mprotect(old.cast(), from.len(), libc::PROT_READ) };
    }
    // SAFETY: both are the program's, readable and writable; `to` is new, so that they do not overlap.
    unsafe { target.copy_from_nonoverlapping(old, from.len()) };
    unmap_far(far, from);
    to.cast_signed()
}

/// Maps `len` bytes at a new address: far, or near until they become far.
fn new_mapping(len: usize) -> Answer {
    if let Some(at) = near_mappings::map(len, 0, Purpose::Use { large: false, protection: READ_WRITE }) {
        return at.cast_signed();
    }
    let Some(far) = heap::far() else { return refused(libc::ENOMEM) };
    quietly(|| far.map(len, 0)).map_or_else(|_| super::no_room(len), usize::cast_signed)
}

/// Unmaps the addresses `at`.
///
/// # Safety
/// They are no longer used.
unsafe fn unmap_addresses(at: &Range<usize>) -> Answer {
    // SAFETY: the caller's promise.
    unsafe { unmap(with_exposed_provenance_mut(at.start), at.len()) }
}
