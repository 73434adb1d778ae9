//! Serves `munmap` and `mremap` on far memory. Each page has a fixed place in the store, so moved pages are copied.

use super::{Answer, far_range, is_error, protection, quietly, refused};
use crate::backing::Far;
use crate::message::warn;
use crate::plain::READ_WRITE;
use crate::{causes, shortage};
use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::ptr::with_exposed_provenance_mut;
use largesse_pager::NoMapping;
use largesse_report::Cause;
use std::sync::Once;

/// Ensures that the message why far memory was not moved is printed only once.
static UNREAD: Once = Once::new();

/// Unmaps a range that includes far pages.
pub(super) fn unmap(far: &Far, at: &Range<usize>) -> Answer {
    let done = quietly(|| far.unmap(at));
    let mut answer = if done.is_ok() { 0 } else { refused(libc::ENOMEM) };
    for part in quietly(|| far.near_parts(at)) {
        let start = with_exposed_provenance_mut(part.start);
        // SAFETY: the program asked for it, and none of the range is ours.
        answer = answer.min(unsafe { largesse_pages::raw_munmap(start, part.len()) });
    }
    answer
}

/// Serves `mremap`.
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
    let over = if fixed { far_range(new, new_len) } else { None };
    let Some((far, from)) = far_range(old, old_len) else {
        // SAFETY: the caller's promise.
        let moved = || unsafe { largesse_pages::raw_mremap(old, old_len, new_len, flags, new) };
        return match over {
            None => moved(),
            Some((far, to)) => quietly(|| far.leave_out(&to, moved)).unwrap_or(refused(libc::ENOMEM)),
        };
    };
    let Some(to_len) = new_len.checked_next_multiple_of(largesse_pages::base_page()) else {
        return refused(libc::EINVAL);
    };
    if to_len == 0 || !quietly(|| far.is_mapped(&from)) || flags & libc::MREMAP_DONTUNMAP != 0 {
        causes::note(Cause::FarAdvice);
        return refused(libc::EINVAL);
    }
    if !fixed {
        if to_len <= from.len() {
            let rest = from.start + to_len..from.end;
            return if rest.is_empty() || unmap(far, &rest) == 0 {
                from.start.cast_signed()
            } else {
                refused(libc::ENOMEM)
            };
        }
        match quietly(|| far.extend(&from, to_len - from.len())) {
            Ok(()) => return from.start.cast_signed(),
            Err(NoMapping::Refused(_)) => return out_of_memory(to_len),
            Err(NoMapping::NoAddresses) if flags & libc::MREMAP_MAYMOVE == 0 => return refused(libc::ENOMEM),
            Err(NoMapping::NoAddresses) => {}
        }
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
    let to = if fixed {
        // SAFETY: the caller promises that the old contents of the target are no longer used.
        unsafe { super::map_at(new, to_len) }
    } else {
        quietly(|| far.map(to_len)).map_or_else(|_| out_of_memory(to_len), usize::cast_signed)
    };
    if is_error(to) {
        return to;
    }
    let target = with_exposed_provenance_mut::<u8>(to.cast_unsigned());
    if allowed & libc::PROT_READ == 0 {
        // SAFETY: the program gives this range up, so that making it readable for a moment is harmless.
        unsafe { largesse_pages::raw_mprotect(old, from.len(), libc::PROT_READ) };
    }
    // SAFETY: both are the program's, readable and writable; `to` is new, so that they do not overlap.
    unsafe { target.copy_from_nonoverlapping(old.cast(), from.len().min(to_len)) };
    unmap(far, &from);
    if allowed != READ_WRITE {
        // SAFETY: the moved range keeps the protection that the program gave it.
        unsafe { largesse_pages::raw_mprotect(target.cast(), to_len, allowed) };
    }
    to
}

fn out_of_memory(len: usize) -> Answer {
    causes::note(Cause::OutOfMemory);
    shortage::explain(len);
    refused(libc::ENOMEM)
}
