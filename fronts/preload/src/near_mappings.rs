//! Serves the program's mappings under a limit until blocks become far memory for the first time.
//!
//! ```text
//!   mmap ─► a part of a reserved range, near memory ──change-over──► far memory, in place (`ranges/`)
//!             │ mprotect, munmap, mremap, madvise
//!             └─► the kernel, under the lock of this file: a change-over sees each of them before it begins, or not yet
//! ```
//! Contents and protections are the kernel's alone. This file knows which parts of the range the program has, and which it
//! could ever use: the others have no contents that would become far.

use crate::answer::{Answer, is_error, refused};
use crate::guard::Inside;
use crate::heap;
use crate::limit_state;
use crate::limited::LimitedMemory;
use core::ffi::c_int;
use core::ops::Range;
use core::ptr::with_exposed_provenance_mut;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use largesse_pager::MappedParts;
use largesse_pages::residency::{Answer as Seen, Inspector};
use largesse_pages::{PageKind, Reserved};
use largesse_store::{Ranges, bytes, offsets};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// First address of the range, and its length in bytes: 0 before its first use. Both stay when it has become far.
static START: AtomicUsize = AtomicUsize::new(0);
static LEN: AtomicUsize = AtomicUsize::new(0);

/// Whether the program has had memory in the range from which it may run code.
static IS_EXECUTABLE: AtomicBool = AtomicBool::new(false);

/// The mappings; `None` before the first one, and once they are far.
static MAPPINGS: Mutex<Option<NearMappings>> = Mutex::new(None);

/// The range in which the program maps memory, while it is near.
#[derive(Debug)]
pub(crate) struct NearMappings {
    range: Reserved,
    parts: MappedParts,
    /// Addresses that cannot become far: the program mapped files there, or locked them. They count as mapped parts, too.
    left_out: Ranges,
}

/// The purpose of a new mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The program uses it at once, with this protection. `large`: on large pages, as far as the kernel has some.
    Use { large: bool, protection: c_int },
    /// The program reserves it, and makes parts of it usable later.
    Reserve,
}

/// Locks the mappings. The caller blocks signals. A thread that holds the lock takes those of far memory only for a
/// change-over, with the heap's lock and that of `near_calls.rs` held: a fork takes them in the same order.
pub(crate) fn lock() -> MutexGuard<'static, Option<NearMappings>> {
    MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the part of the addresses `at` that lies in the range of mappings, near or far. Takes no lock.
pub(crate) fn inside(at: &Range<usize>) -> Range<usize> {
    // Relaxed: a thread has an address of the range only from a call that saw it.
    let (start, len) = (START.load(Ordering::Relaxed), LEN.load(Ordering::Relaxed));
    at.start.clamp(start, start + len)..at.end.clamp(start, start + len)
}

/// Runs `work` if any of the addresses `at` lies in the range, and it is near; otherwise returns `None`.
pub(crate) fn with<R>(at: &Range<usize>, work: impl FnOnce(&mut NearMappings) -> R) -> Option<R> {
    if inside(at).is_empty() {
        return None;
    }
    let _inside = Inside::enter();
    lock().as_mut().map(work)
}

/// Maps or reserves `len` bytes for the program, at the address `hint` if that is possible. Returns `None` if there is no
/// limit, if mappings are far, or if there is no room.
pub(crate) fn map(len: usize, hint: usize, purpose: Purpose) -> Option<usize> {
    if !limit_state::is_watched() || heap::far().is_some() {
        return None;
    }
    let memory = heap::backing()?.limited()?;
    let _inside = Inside::enter();
    let mut mappings = lock();
    // Again, under the lock: a change-over publishes far memory while it holds it.
    if heap::far().is_some() {
        return None;
    }
    if mappings.is_none() {
        *mappings = Some(begin(memory)?);
    }
    mappings.as_mut()?.map(len, hint, purpose)
}

fn begin(memory: &LimitedMemory) -> Option<NearMappings> {
    let range = memory.range_for_mappings()?;
    START.store(range.start().as_ptr().addr(), Ordering::Relaxed); // Relaxed: as in `inside`
    LEN.store(range.len(), Ordering::Relaxed);
    Some(NearMappings { range, parts: MappedParts::new(), left_out: Ranges::new() })
}

/// Returns the number of bytes that the program has mapped, near.
pub(crate) fn mapped_bytes() -> usize {
    if LEN.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    let _inside = Inside::enter();
    let bytes = lock().as_ref().map_or(0, |near| near.parts.taken_bytes());
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns the number of resident bytes of near mappings that can become far; 0 before Linux 6.7, whose kernel cannot
/// tell. For a service thread, whose descriptor table is its own.
pub(crate) fn resident_bytes() -> u64 {
    let Ok(pages) = Inspector::open(None) else { return 0 };
    let guard = lock();
    let Some(near) = guard.as_ref() else { return 0 };
    let resident = |part: Range<usize>| match pages.ask(part.start as u64, part.len() as u64) {
        Seen::Exact(seen) => seen.resident,
        Seen::NotPerAddress => 0,
    };
    near.mapped().into_iter().map(resident).sum()
}

/// Returns whether an address lies in the range, and the program has no near mapping there: none, or one that is far.
pub(crate) fn has_no_near(address: usize) -> bool {
    let at = address..address + 1;
    with(&at, |near| near.parts.is_free(&near.offsets(&at))).unwrap_or(!inside(&at).is_empty())
}

/// Notes that the program gives memory in the range a protection.
fn note_executable(protection: c_int) {
    if protection & libc::PROT_EXEC != 0 {
        // Relaxed: read with the lock of the mappings held, as it is here.
        IS_EXECUTABLE.store(true, Ordering::Relaxed);
    }
}

/// Returns whether the program may run code in the range. The caller holds the lock of the mappings.
pub(crate) fn are_executable() -> bool {
    IS_EXECUTABLE.load(Ordering::Relaxed)
}

/// Runs a change-over with the mappings, if there are some. They are far once it has succeeded. The caller has blocked
/// signals.
pub(crate) fn hand_over<R, E>(
    change_over: impl FnOnce(Option<&NearMappings>) -> Result<R, E>,
) -> Result<R, E> {
    let mut mappings = lock();
    let done = change_over(mappings.as_ref())?;
    *mappings = None;
    Ok(done)
}

/// Populates the pages `at` of the range, as [`LimitedMemory::populate`].
pub(crate) fn populate(near: Option<&NearMappings>, at: &Range<usize>) {
    let inside = inside(at);
    if let Some(near) = near.filter(|_| !inside.is_empty()) {
        let part = near.offsets(&inside);
        let _ = near.range.populate(part.start, part.len());
    }
}

impl NearMappings {
    /// Returns which parts of the range the program has.
    pub(crate) fn parts(&self) -> &MappedParts {
        &self.parts
    }

    /// Returns the addresses that cannot become far.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = Range<usize>> {
        self.left_out.iter().map(|part| offsets(&part))
    }

    fn start(&self) -> usize {
        self.range.start().as_ptr().addr()
    }

    /// Returns the part of the addresses `at` that lies in the range, as offsets from its start.
    fn offsets(&self, at: &Range<usize>) -> Range<usize> {
        let (start, len) = (self.start(), self.range.len());
        at.start.clamp(start, start + len) - start..at.end.clamp(start, start + len) - start
    }

    fn addresses(&self, part: &Range<usize>) -> Range<usize> {
        self.start() + part.start..self.start() + part.end
    }

    /// Returns the mapped addresses that can become far.
    fn mapped(&self) -> Vec<Range<usize>> {
        let mapped = self.parts.taken_in(&(0..self.range.len()));
        let can = |part: Range<usize>| self.left_out.missing(&bytes(&self.addresses(&part)));
        mapped
            .into_iter()
            .flat_map(|part| can(part).iter().map(|it| offsets(&it)).collect::<Vec<_>>())
            .collect()
    }

    fn map(&mut self, len: usize, hint: usize, purpose: Purpose) -> Option<usize> {
        let part = self.parts.place(len, hint, (self.start(), self.range.len()))?;
        let at = self.addresses(&part);
        let Purpose::Use { large, protection } = purpose else {
            self.parts.reserve(&part);
            return Some(at.start);
        };
        if is_error(protect(&at, protection)) {
            return None;
        }
        if large {
            // A hint: the kernel may have no large pages.
            let _ = largesse_pages::advise_mapping(with_exposed_provenance_mut(at.start), len, PageKind::Thp);
        }
        self.parts.take(&part);
        Some(at.start)
    }

    /// Unmaps the addresses `at`, of which some may lie outside of the range.
    pub(crate) fn unmap(&mut self, at: &Range<usize>) -> Answer {
        let part = self.offsets(at);
        let here = self.addresses(&part);
        // SAFETY: the program gives these addresses up. The range stays reserved, so that no other mapping gets in.
        if unsafe { self.range.decommit(part.start, part.len()) }.is_err() {
            return refused(libc::ENOMEM);
        }
        self.parts.release(&part);
        self.left_out.remove(&bytes(&here));
        let outside = [at.start..here.start, here.end..at.end];
        outside.into_iter().filter(|rest| !rest.is_empty()).fold(0, |answer, rest| {
            let start = with_exposed_provenance_mut(rest.start);
            // SAFETY: the program asked for it, and none of the rest is ours.
            answer.min(unsafe { largesse_pages::raw_munmap(start, rest.len()) })
        })
    }

    /// Maps something new over the addresses `at`.
    ///
    /// # Safety
    /// As `mmap(2)` with `MAP_FIXED`.
    pub(crate) unsafe fn map_over(
        &mut self,
        at: &Range<usize>,
        protection: c_int,
        flags: c_int,
        file: (c_int, i64),
        can_be_far: bool,
    ) -> Answer {
        let start = with_exposed_provenance_mut(at.start);
        // SAFETY: the caller's promise.
        let got = unsafe { largesse_pages::raw_mmap(start, at.len(), protection, flags, file.0, file.1) };
        if is_error(got) {
            return got;
        }
        note_executable(protection);
        let part = self.offsets(at);
        if can_be_far && protection == libc::PROT_NONE {
            self.parts.reserve(&part);
        } else {
            self.parts.take(&part);
        }
        if can_be_far {
            self.left_out.remove(&bytes(&self.addresses(&part)));
        } else {
            self.leave_near(at);
        }
        got
    }

    /// Excludes the addresses `at` from far memory.
    pub(crate) fn leave_near(&mut self, at: &Range<usize>) {
        let part = self.offsets(at);
        self.parts.take(&part);
        self.left_out.add(bytes(&self.addresses(&part)));
    }

    /// Excludes the addresses `at` from far memory if `lock` locks them.
    pub(crate) fn lock_pages(&mut self, at: &Range<usize>, lock: impl FnOnce() -> Answer) -> Answer {
        let answer = lock();
        if !is_error(answer) {
            self.leave_near(at);
        }
        answer
    }

    /// Returns the number of bytes of the addresses `at` that are reserved.
    pub(crate) fn reserved_bytes(&self, at: &Range<usize>) -> usize {
        self.parts.reserved_bytes(&self.offsets(at))
    }

    /// Changes the protection of the addresses `at`, which the program may use if it can read or write them.
    pub(crate) fn protect(&mut self, at: &Range<usize>, protection: c_int) -> Answer {
        if protection != libc::PROT_NONE {
            for part in self.parts.reserved_in(&self.offsets(at)) {
                self.parts.take(&part);
            }
        }
        protect(at, protection)
    }

    /// Follows an advice about the addresses `at`. Refuses what far memory refuses: a child inherits it as it is.
    pub(crate) fn advise(&mut self, at: &Range<usize>, advice: c_int) -> Answer {
        if matches!(advice, libc::MADV_DONTFORK | libc::MADV_WIPEONFORK | libc::MADV_MERGEABLE) {
            return refused(libc::EINVAL);
        }
        // The kernel drops pages that are free to be dropped at any time, and far memory would not know which. Memory
        // counts until then, too.
        let advice = if advice == libc::MADV_FREE { libc::MADV_DONTNEED } else { advice };
        let start = with_exposed_provenance_mut(at.start);
        // SAFETY: the program asked for it.
        unsafe { largesse_pages::raw_madvise(start, at.len(), advice) }
    }

    /// Returns whether the program has all of the addresses `at`.
    pub(crate) fn is_mapped(&self, at: &Range<usize>) -> bool {
        self.parts.known_bytes(&self.offsets(at)) == at.len()
    }

    /// Makes the mapping `from`, whose pages have the protection `allowed`, `to_len` bytes long where it is. Returns `None`
    /// if the addresses that follow are not free.
    pub(crate) fn extend(&mut self, from: &Range<usize>, to_len: usize, allowed: c_int) -> Option<Answer> {
        let more = self.offsets(from).end;
        let more = more..more.checked_add(to_len - from.len())?;
        if more.end > self.range.len() || !self.parts.is_free(&more) {
            return None;
        }
        let answer = protect(&self.addresses(&more), allowed);
        if is_error(answer) {
            return Some(answer);
        }
        self.parts.take(&more);
        Some(from.start.cast_signed())
    }

    /// Moves the pages `from` of the range to the addresses from `to` on, at which the program has a mapping of at least as
    /// many bytes, and unmaps `from`.
    pub(crate) fn move_pages(&mut self, from: &Range<usize>, to: usize) -> Answer {
        let got = move_each(from, to, &mut move_mapping);
        if is_error(got) {
            return got;
        }
        let left_out: Vec<_> = self.left_out.within(&bytes(from)).map(|part| offsets(&part)).collect();
        self.unmap(from);
        for part in left_out {
            let moved = |address: usize| address - from.start + to;
            let moved = moved(part.start)..moved(part.end);
            if !inside(&moved).is_empty() {
                self.leave_near(&moved);
            }
        }
        got
    }
}

/// Moves the pages `from` to the addresses from `to` on, which `move_pages` does for pages of one mapping of the kernel.
/// Older kernels move no more at a time, and `from` can be several: a mapping that grew where it is has large pages in
/// its first part only.
fn move_each(
    from: &Range<usize>,
    to: usize,
    move_pages: &mut impl FnMut(&Range<usize>, usize) -> Answer,
) -> Answer {
    let answer = move_pages(from, to);
    let page = largesse_pages::base_page();
    if answer != refused(libc::EFAULT) || from.len() <= page {
        return answer;
    }
    let half = (from.len() / 2).next_multiple_of(page);
    let first = from.start..from.start + half;
    let moved = move_each(&first, to, move_pages);
    if is_error(moved) {
        return moved;
    }
    let rest = move_each(&(first.end..from.end), to + half, move_pages);
    if is_error(rest) {
        let _ = move_each(&(to..to + half), first.start, move_pages);
        return rest;
    }
    moved
}

/// Moves the pages of one mapping of the kernel. The old addresses stay mapped, so that no other mapping gets in before
/// they are ours again.
fn move_mapping(from: &Range<usize>, to: usize) -> Answer {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    let (old, new) = (with_exposed_provenance_mut(from.start), with_exposed_provenance_mut(to));
    // SAFETY: the program asked to move its mapping; the target is its own, too, and is given up for it.
    unsafe { largesse_pages::raw_mremap(old, from.len(), from.len(), flags, new) }
}

fn protect(at: &Range<usize>, protection: c_int) -> Answer {
    note_executable(protection);
    // SAFETY: the program asked for this protection of its own memory, or has got the memory just now.
    unsafe { largesse_pages::raw_mprotect(with_exposed_provenance_mut(at.start), at.len(), protection) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that moves pages of one mapping at a time, of which a second one begins at `border`.
    fn moves(pages: usize, border: usize, refuses: usize) -> (Answer, Vec<(usize, usize, usize)>) {
        let page = largesse_pages::base_page();
        let mut done = Vec::new();
        let (from, to) = (10 * page..(10 + pages) * page, 1000 * page);
        let answer = move_each(&from, to, &mut |part, to| {
            let (first, end, to) = (part.start / page, part.end / page, to / page);
            if first < 10 + border && 10 + border < end {
                return refused(libc::EFAULT);
            }
            if (first..end).contains(&(10 + refuses)) {
                return refused(libc::ENOMEM);
            }
            done.push((first, end, to));
            to.cast_signed()
        });
        (answer, done)
    }

    #[test]
    fn several_mappings_are_moved_one_by_one() {
        for pages in [1, 2, 7, 16] {
            for border in 0..pages {
                let (answer, mut done) = moves(pages, border, usize::MAX - 10);
                assert_eq!(answer, 1000, "{pages} pages, {border}");
                done.sort_unstable();
                let mut next = 10;
                for (first, end, to) in done {
                    assert_eq!((first, to), (next, next + 990), "{pages} pages, {border}");
                    next = end;
                }
                assert_eq!(next, 10 + pages, "{pages} pages, {border}");
            }
        }
    }

    #[test]
    fn refused_move_is_undone() {
        let (answer, done) = moves(8, 4, 6);
        assert_eq!(answer, refused(libc::ENOMEM));
        assert_eq!(done, [(10, 14, 1000), (1000, 1004, 10)]);
    }
}
