//! Makes Linux's calls that map memory and set its properties, and reads the sizes of the machine's pages.
#![expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "numbers of the kernel's interface"
)]

use super::call::{raw_call, system_call};
use crate::PageKind;
use core::ffi::{c_int, c_void};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};

pub(super) const ANONYMOUS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
pub(super) const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;
const MADV_POPULATE_WRITE: c_int = 23;
const MADV_DONTNEED_LOCKED: c_int = 24;
const MLOCK_ONFAULT: usize = 1;

pub(crate) fn errno() -> i32 {
    // SAFETY: `__errno_location` has no preconditions and returns this thread's valid slot.
    unsafe { *libc::__errno_location() }
}

/// Makes the system call `mmap` directly, because a front end may export its own functions in place of the C library's.
///
/// # Safety
/// The requirements are those of `mmap(2)`.
pub(super) unsafe fn system_mmap(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let got = unsafe {
        let [protection, flags, fd] = [protection, flags, fd].map(|it| it as usize);
        system_call(libc::SYS_mmap, [at.expose_provenance(), len, protection, flags, fd, offset as usize])
    };
    core::ptr::with_exposed_provenance_mut(got as usize)
}

/// Makes the system call `munmap` directly, for the reason given at [`system_mmap`].
///
/// # Safety
/// The requirements are those of `munmap(2)`.
pub(super) unsafe fn system_munmap(at: *mut c_void, len: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { system_call(libc::SYS_munmap, [at.addr(), len, 0, 0, 0, 0]) as c_int }
}

/// Makes the system call `madvise` directly, for the reason given at [`system_mmap`].
///
/// # Safety
/// The requirements are those of `madvise(2)`.
pub(super) unsafe fn system_madvise(at: *mut c_void, len: usize, advice: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { system_call(libc::SYS_madvise, [at.addr(), len, advice as usize, 0, 0, 0]) as c_int }
}

/// Makes the system call `mprotect` directly, for the reason given at [`system_mmap`].
///
/// # Safety
/// The requirements are those of `mprotect(2)`.
pub(super) unsafe fn system_mprotect(at: *mut c_void, len: usize, protection: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { system_call(libc::SYS_mprotect, [at.addr(), len, protection as usize, 0, 0, 0]) as c_int }
}

/// Makes the system call `mremap` directly, for the reason given at [`system_mmap`].
///
/// # Safety
/// The requirements are those of `mremap(2)`.
pub(super) unsafe fn system_mremap<T>(
    at: *mut c_void,
    old_len: usize,
    new_len: usize,
    flags: c_int,
    to: *mut T,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let got =
        unsafe { system_call(libc::SYS_mremap, [at.addr(), old_len, new_len, flags as usize, to.addr(), 0]) };
    core::ptr::with_exposed_provenance_mut(got as usize)
}

pub(super) fn checked(rc: c_int) -> Result<(), i32> {
    if rc == 0 { Ok(()) } else { Err(errno()) }
}

/// Maps fresh anonymous memory at an address that the kernel chooses.
pub(super) fn map(len: usize, protection: c_int, flags: c_int) -> Result<NonNull<u8>, i32> {
    // SAFETY: without MAP_FIXED a new mapping touches no existing memory.
    let at = unsafe { system_mmap(null_mut(), len, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(errno()) } else { NonNull::new(at.cast()).ok_or(libc::ENOMEM) }
}

/// Maps fresh memory over a part of a range that this crate has reserved.
pub(super) fn map_over(at: NonNull<u8>, len: usize, protection: c_int, flags: c_int) -> Result<(), i32> {
    // SAFETY: `at..at+len` lies inside a `Reserved` (callers check), so that the fixed mapping
    // replaces nothing but our own address space.
    let got = unsafe { system_mmap(at.as_ptr().cast(), len, protection, flags | libc::MAP_FIXED, -1, 0) };
    if got == libc::MAP_FAILED { Err(errno()) } else { Ok(()) }
}

/// Unmaps both ends of `[at, at + len + align)`, and returns the aligned range of `len` bytes that is left.
fn trim(at: NonNull<u8>, len: usize, align: usize) -> NonNull<u8> {
    let skip = at.as_ptr().align_offset(align);
    // SAFETY: `skip < align`, and the mapping has `len + align` bytes.
    let start = unsafe { at.add(skip) };
    release(at, skip);
    // SAFETY: the end of the wanted part is inside the mapping, as `skip + len <= len + align`.
    release(unsafe { start.add(len) }, align - skip);
    start
}

pub(crate) fn reserve(len: usize, align: usize) -> Result<NonNull<u8>, i32> {
    let total = len.checked_add(align).ok_or(libc::ENOMEM)?;
    Ok(trim(map(total, libc::PROT_NONE, ANONYMOUS | libc::MAP_NORESERVE)?, len, align))
}

pub(crate) fn release(at: NonNull<u8>, len: usize) {
    if len > 0 {
        // SAFETY: callers own the range: it is (a cut-off end of) a mapping made in this file.
        unsafe { system_munmap(at.as_ptr().cast(), len) };
    }
}

pub(crate) fn map_aligned(len: usize, align: usize, protection: c_int, flags: c_int) -> Option<*mut c_void> {
    let at = map(len.checked_add(align)?, protection, flags | ANONYMOUS).ok()?;
    Some(trim(at, len, align).as_ptr().cast())
}

pub(crate) fn map_metadata(len: usize) -> Option<NonNull<u8>> {
    map(len, READ_WRITE, ANONYMOUS | libc::MAP_NORESERVE).ok()
}

pub(crate) fn commit(at: NonNull<u8>, len: usize, kind: PageKind) -> Result<(), i32> {
    let pool = match kind {
        PageKind::Hugetlb => Some(libc::MAP_HUGE_2MB),
        PageKind::Hugetlb1G => Some(libc::MAP_HUGE_1GB),
        _ => None,
    };
    if let Some(size) = pool {
        return commit_pool(at, len, ANONYMOUS | libc::MAP_HUGETLB | size);
    }
    // PROT_NONE memory is not charged; this is where the kernel may say ENOMEM.
    // SAFETY: the range lies inside a `Reserved`, so its protection is ours to change.
    checked(unsafe { system_mprotect(at.as_ptr().cast(), len, READ_WRITE) })?;
    // A kernel without THP answers EINVAL; callers report that once.
    let _ = advise(at, len, kind);
    Ok(())
}

/// Commits pages of a hugetlb pool. They are mapped elsewhere first and then moved in, because a refused mapping at a
/// fixed address would leave a hole in the reservation, in which the kernel could place a foreign mapping.
fn commit_pool(at: NonNull<u8>, len: usize, flags: c_int) -> Result<(), i32> {
    let pages = map(len, READ_WRITE, flags)?;
    let over = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the source was mapped just now; the target is a part of our own reservation.
    let got = unsafe { system_mremap(pages.as_ptr().cast(), len, len, over, at.as_ptr()) };
    if got != libc::MAP_FAILED {
        return Ok(());
    }
    // Before Linux 5.16 hugetlb mappings cannot be moved. The pool had the pages: release them and map them in place;
    // if another process took them in between, close the hole at once.
    release(pages, len);
    map_over(at, len, READ_WRITE, flags).inspect_err(|_| _ = decommit(at, len))
}

pub(crate) fn guard(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: the range lies inside a `Reserved`, so its protection is ours to change.
    checked(unsafe { system_mprotect(at.as_ptr().cast(), len, libc::PROT_NONE) })
}

pub(crate) fn decommit(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    map_over(at, len, libc::PROT_NONE, ANONYMOUS | libc::MAP_NORESERVE)
}

pub(crate) fn advise(at: NonNull<u8>, len: usize, kind: PageKind) -> Result<(), i32> {
    let advice = match kind {
        PageKind::Thp | PageKind::Medium => libc::MADV_HUGEPAGE,
        PageKind::Small => libc::MADV_NOHUGEPAGE,
        PageKind::Hugetlb | PageKind::Hugetlb1G => return Ok(()),
    };
    // SAFETY: advice about page sizes changes no contents.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, advice) })
}

/// Makes a span large that is on small pages (6.1). The kernel copies its contents in one step for all threads.
pub(crate) fn collapse(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    const MADV_COLLAPSE: c_int = 25;
    // SAFETY: the kernel keeps all contents; missing pages read as zero before and after.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, MADV_COLLAPSE) })
}

pub(crate) fn purge(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: the range is ours, and the caller of `Reserved::purge` promised that its contents are unused.
    if unsafe { system_madvise(at.as_ptr().cast(), len, libc::MADV_DONTNEED) } == 0 {
        return Ok(());
    }
    // Locked pages refuse MADV_DONTNEED (EINVAL); kernel 5.18 has a variant for them.
    // SAFETY: as above.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, MADV_DONTNEED_LOCKED) })
}

pub(crate) fn offer(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: the range is ours, and the caller of `Reserved::offer` promised that its contents are unused.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, libc::MADV_FREE) })
}

/// Does what [`purge`] does for several ranges, each given by address and length. Returns `false` if some pages may be
/// left.
pub(crate) fn purge_all(ranges: &[(usize, usize)]) -> bool {
    /// `PIDFD_SELF_THREAD` (Linux 6.14): a number that stands for the calling thread, without a descriptor. (The
    /// number that stands for the process changed with 6.16.)
    const SELF: usize = (-10_000_isize).cast_unsigned();
    const MAX_RANGES: usize = 64;
    ranges.chunks(MAX_RANGES).all(|part| {
        let mut vector = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 }; MAX_RANGES];
        for (entry, &(at, len)) in vector.iter_mut().zip(part) {
            *entry = libc::iovec { iov_base: core::ptr::with_exposed_provenance_mut(at), iov_len: len };
        }
        let at = vector.as_ptr().expose_provenance();
        let arguments = [SELF, at, part.len(), libc::MADV_DONTNEED as usize, 0, 0];
        // SAFETY: the vector has as many entries as given; the ranges are the caller's, as for `purge`.
        let done = unsafe { raw_call(libc::SYS_process_madvise, arguments) };
        done == part.iter().map(|&(_, len)| len).sum::<usize>().cast_signed()
    })
}

pub(crate) fn inherited(at: NonNull<u8>, len: usize, yes: bool) -> Result<(), i32> {
    let advice = if yes { libc::MADV_DOFORK } else { libc::MADV_DONTFORK };
    // SAFETY: advice about children changes no contents here.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, advice) })
}

/// Has the kernel forget that pages were used.
pub(crate) fn forget_use(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    const MADV_COLD: c_int = 20;
    // SAFETY: the advice changes no contents.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, MADV_COLD) })
}

/// Makes a range a mapping of its own, or joins it with its neighbours: the kernel joins only mappings of equal advice.
/// Advice about the order of reads means nothing for anonymous memory.
pub(crate) fn set_apart(at: NonNull<u8>, len: usize, apart: bool) -> Result<(), i32> {
    let advice = if apart { libc::MADV_RANDOM } else { libc::MADV_NORMAL };
    // SAFETY: the advice changes no contents.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, advice) })
}

pub(crate) fn populate(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: populating changes no contents.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, MADV_POPULATE_WRITE) })
}

/// Makes the kernel handle a write fault on the present page at `at`, without writing to it.
pub(crate) fn write_fault(at: usize) {
    if let Some(at) = NonNull::new(core::ptr::with_exposed_provenance_mut(at)) {
        let _ = populate(at, base_page());
    }
}

pub(crate) fn lock(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: locking our own range changes no contents.
    let rc = unsafe { system_call(libc::SYS_mlock2, [at.addr().get(), len, MLOCK_ONFAULT, 0, 0, 0]) };
    checked(rc as c_int)
}

/// Makes the pages of a range writable, or read-only.
///
/// # Safety
/// The range belongs to the data of a loaded object.
pub(crate) unsafe fn protect(address: usize, len: usize, writable: bool) -> Result<(), i32> {
    let page = base_page();
    let start = address & !(page - 1);
    let end = (address + len).next_multiple_of(page);
    let protection = if writable { READ_WRITE } else { libc::PROT_READ };
    let at = core::ptr::with_exposed_provenance_mut::<c_void>(start);
    // SAFETY: the caller's promise; the pages stay readable.
    checked(unsafe { system_mprotect(at, end - start, protection) })
}

pub(crate) fn base_page() -> usize {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: a constant of the machine; at worst it is read again.
    let known = KNOWN.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    KNOWN.store(page, Ordering::Relaxed);
    page
}

pub(crate) fn physical_memory() -> usize {
    // SAFETY: no preconditions.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    usize::try_from(pages).unwrap_or(0).saturating_mul(base_page())
}

pub(crate) fn thp_disabled() -> bool {
    // 1: disabled; 3 (kernel 6.18): disabled except where advised, which this crate does.
    // SAFETY: PR_GET_THP_DISABLE takes no pointer.
    unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1 }
}
