//! Linux: the only file in the workspace that calls `mmap` and its family.
#![expect(clippy::disallowed_methods, reason = "this file is where the ban points to")]
#![expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "numbers of the kernel's interface"
)]

use crate::{PageKind, Placement, SPAN};
use core::ffi::{CStr, c_int, c_long, c_void};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const ANONYMOUS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;
const MADV_POPULATE_WRITE: c_int = 23;
const MADV_DONTNEED_LOCKED: c_int = 24;
const MLOCK_ONFAULT: c_long = 1;

pub(crate) fn errno() -> i32 {
    // SAFETY: `__errno_location` has no preconditions and returns this thread's valid slot.
    unsafe { *libc::__errno_location() }
}

/// The system call and never the C library's name for it, which a front may export.
///
/// # Safety
/// As `mmap(2)`.
pub(super) unsafe fn system_mmap(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let got = unsafe { libc::syscall(libc::SYS_mmap, at, len, protection, flags, fd, offset) };
    core::ptr::with_exposed_provenance_mut(got as usize)
}

/// As [`system_mmap`].
///
/// # Safety
/// As `munmap(2)`.
unsafe fn system_munmap(at: *mut c_void, len: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_munmap, at, len) as c_int }
}

/// As [`system_mmap`].
///
/// # Safety
/// As `madvise(2)`.
pub(super) unsafe fn system_madvise(at: *mut c_void, len: usize, advice: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_madvise, at, len, advice) as c_int }
}

/// As [`system_mmap`].
///
/// # Safety
/// As `mremap(2)`.
unsafe fn system_mremap<T>(
    at: *mut c_void,
    old_len: usize,
    new_len: usize,
    flags: c_int,
    to: *mut T,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let got = unsafe { libc::syscall(libc::SYS_mremap, at, old_len, new_len, flags, to) };
    core::ptr::with_exposed_provenance_mut(got as usize)
}

pub(super) fn checked(rc: c_int) -> Result<(), i32> {
    if rc == 0 { Ok(()) } else { Err(errno()) }
}

/// `mmap` of fresh anonymous memory at an address of the kernel's choice.
fn map(len: usize, protection: c_int, flags: c_int) -> Result<NonNull<u8>, i32> {
    // SAFETY: without MAP_FIXED a new mapping touches no existing memory.
    let at = unsafe { system_mmap(null_mut(), len, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(errno()) } else { NonNull::new(at.cast()).ok_or(libc::ENOMEM) }
}

/// `mmap` that replaces a part of our own reservation.
fn map_over(at: NonNull<u8>, len: usize, protection: c_int, flags: c_int) -> Result<(), i32> {
    // SAFETY: `at..at+len` lies inside a `Reserved` (callers check), so that the fixed mapping
    // replaces nothing but our own address space.
    let got = unsafe { system_mmap(at.as_ptr().cast(), len, protection, flags | libc::MAP_FIXED, -1, 0) };
    if got == libc::MAP_FAILED { Err(errno()) } else { Ok(()) }
}

/// Cut `[at, at + len + align)` down to an aligned `len`.
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
    checked(unsafe { libc::mprotect(at.as_ptr().cast(), len, READ_WRITE) })?;
    // A kernel without THP answers EINVAL; what that means is the caller's to say, once.
    let _ = advise(at, len, kind);
    Ok(())
}

/// Take pages of a pool elsewhere first, then move them in: a refused fixed mapping would leave a
/// hole in the reservation, in which the kernel places somebody else's next mapping.
fn commit_pool(at: NonNull<u8>, len: usize, flags: c_int) -> Result<(), i32> {
    let pages = map(len, READ_WRITE, flags)?;
    let over = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the source was mapped just now; the target is a part of our own reservation.
    let got = unsafe { system_mremap(pages.as_ptr().cast(), len, len, over, at.as_ptr()) };
    if got != libc::MAP_FAILED {
        return Ok(());
    }
    // Before Linux 5.16 hugetlb mappings cannot be moved. The pool had the pages: give them back
    // and take them in place; should another process have been faster, close the hole at once.
    release(pages, len);
    map_over(at, len, READ_WRITE, flags).inspect_err(|_| _ = decommit(at, len))
}

pub(crate) fn guard(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: the range lies inside a `Reserved`, so its protection is ours to change.
    checked(unsafe { libc::mprotect(at.as_ptr().cast(), len, libc::PROT_NONE) })
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

pub(crate) fn purge(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: the range is ours and the caller of `Reserved::purge` promised that nobody uses it.
    if unsafe { system_madvise(at.as_ptr().cast(), len, libc::MADV_DONTNEED) } == 0 {
        return Ok(());
    }
    // Locked pages refuse MADV_DONTNEED (EINVAL); kernel 5.18 has a variant for them.
    // SAFETY: as above.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, MADV_DONTNEED_LOCKED) })
}

pub(crate) fn inherited(at: NonNull<u8>, len: usize, yes: bool) -> Result<(), i32> {
    let advice = if yes { libc::MADV_DOFORK } else { libc::MADV_DONTFORK };
    // SAFETY: advice about children changes no contents here.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, advice) })
}

pub(crate) fn populate(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: populating changes no contents.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, MADV_POPULATE_WRITE) })
}

/// What a write to a page that is there makes the kernel do, without the write.
pub(crate) fn write_fault(at: usize) {
    if let Some(at) = NonNull::new(core::ptr::with_exposed_provenance_mut(at)) {
        let _ = populate(at, base_page());
    }
}

/// Copies memory of this process whatever its protection is. `false`: not all of it could be read.
pub(crate) fn read_guarded(at: usize, into: &mut [u8]) -> bool {
    let Ok(memory) = open(c"/proc/self/mem") else { return false };
    // SAFETY: the buffer has the length given; the kernel checks what is read.
    let got = unsafe { libc::pread(memory.0, into.as_mut_ptr().cast(), into.len(), at as i64) };
    usize::try_from(got) == Ok(into.len())
}

pub(crate) fn lock(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: locking our own range changes no contents.
    let rc = unsafe { libc::syscall(libc::SYS_mlock2, at.as_ptr(), len, MLOCK_ONFAULT) };
    checked(rc as c_int)
}

/// Locked pages are not removed: they are unlocked first.
pub(crate) fn remove(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: changes no contents.
    unsafe { libc::munlock(at.as_ptr().cast(), len) };
    // SAFETY: the caller of `Lent::remove` promised that nobody uses what the range holds.
    checked(unsafe { libc::madvise(at.as_ptr().cast(), len, libc::MADV_REMOVE) })
}

pub(crate) fn relocate(from: NonNull<u8>, to: NonNull<u8>, len: usize) -> Result<(), i32> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    // SAFETY: both ranges are ours, do not overlap, and the caller of `Reserved::relocate`
    // promised that the target's contents are not used.
    let got = unsafe { system_mremap(from.as_ptr().cast(), len, len, flags, to.as_ptr()) };
    if got == libc::MAP_FAILED { Err(errno()) } else { Ok(()) }
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

fn memory_file(name: &CStr) -> Result<Descriptor, i32> {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 { Err(errno()) } else { Ok(Descriptor(fd)) }
}

/// # Safety
/// As `mmap(2)`.
pub(crate) unsafe fn raw_mmap(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> isize {
    // SAFETY: the caller's promise.
    let got = unsafe { system_mmap(at, len, protection, flags, fd, offset) };
    if got == libc::MAP_FAILED { -(errno() as isize) } else { got.expose_provenance().cast_signed() }
}

fn answer(rc: c_int) -> isize {
    if rc == -1 { -(errno() as isize) } else { rc as isize }
}

/// # Safety
/// As `munmap(2)`.
pub(crate) unsafe fn raw_munmap(at: *mut c_void, len: usize) -> isize {
    // SAFETY: the caller's promise.
    answer(unsafe { system_munmap(at, len) })
}

/// # Safety
/// As `madvise(2)`.
pub(crate) unsafe fn raw_madvise(at: *mut c_void, len: usize, advice: c_int) -> isize {
    // SAFETY: the caller's promise.
    answer(unsafe { system_madvise(at, len, advice) })
}

/// # Safety
/// As `mprotect(2)`.
pub(crate) unsafe fn raw_mprotect(at: *mut c_void, len: usize, protection: c_int) -> isize {
    // SAFETY: the caller's promise.
    answer(unsafe { libc::mprotect(at, len, protection) })
}

/// # Safety
/// As `mremap(2)`.
pub(crate) unsafe fn raw_mremap(
    at: *mut c_void,
    old_len: usize,
    new_len: usize,
    flags: c_int,
    to: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    let got = unsafe { system_mremap(at, old_len, new_len, flags, to) };
    if got == libc::MAP_FAILED { -(errno() as isize) } else { got.expose_provenance().cast_signed() }
}

/// `flags` of `mlock2`; `None` is `mlockall`, of all memory with these flags.
pub(crate) fn raw_mlock(range: Option<(*const c_void, usize)>, flags: c_int) -> isize {
    let (call, [first, second, third]) = match range {
        Some((at, len)) if flags == 0 => (libc::SYS_mlock, [at.addr(), len, 0]),
        Some((at, len)) => (libc::SYS_mlock2, [at.addr(), len, flags as usize]),
        None => (libc::SYS_mlockall, [flags as usize, 0, 0]),
    };
    // SAFETY: locking changes no contents.
    answer(unsafe { libc::syscall(call, first, second, third) } as c_int)
}

/// # Safety
/// The range belongs to a loaded object's data.
pub(crate) unsafe fn protect(address: usize, len: usize, writable: bool) -> Result<(), i32> {
    let page = base_page();
    let start = address & !(page - 1);
    let end = (address + len).next_multiple_of(page);
    let protection = if writable { READ_WRITE } else { libc::PROT_READ };
    let at = core::ptr::with_exposed_provenance_mut::<c_void>(start);
    // SAFETY: the caller's promise; the pages stay readable.
    checked(unsafe { libc::mprotect(at, end - start, protection) })
}

pub(crate) fn place(at: NonNull<u8>, len: usize, placement: Placement) -> Result<(), i32> {
    const MPOL_BIND: c_long = 2;
    const MPOL_INTERLEAVE: c_long = 3;
    const WORDS: usize = 16;
    let mut mask = [0_u64; WORDS];
    let mode = match placement {
        Placement::FirstTouch => return Ok(()),
        Placement::Node(node) => {
            *mask.get_mut(node as usize / 64).ok_or(libc::EINVAL)? |= 1 << (node % 64);
            MPOL_BIND
        }
        Placement::Interleave => {
            nodes_with_memory(&mut mask);
            MPOL_INTERLEAVE
        }
    };
    // The kernel decrements its `maxnode`, hence one more than there are bits.
    let bits = WORDS * 64 + 1;
    // SAFETY: the mask has `bits - 1` bits, and placing changes no contents.
    let rc = unsafe { libc::syscall(libc::SYS_mbind, at.as_ptr(), len, mode, mask.as_ptr(), bits, 0) };
    checked(rc as c_int)
}

/// Set the bits of a list such as `0-1,3`.
fn nodes_with_memory(mask: &mut [u64]) {
    let mut text = [0; 256];
    let list = read_file(c"/sys/devices/system/node/has_memory", &mut text).unwrap_or(b"0");
    let mut number = 0_usize;
    let mut first = None;
    for &byte in list.iter().chain(b",") {
        match byte {
            b'0'..=b'9' => number = number.saturating_mul(10) + usize::from(byte - b'0'),
            b'-' => first = Some(core::mem::take(&mut number)),
            b',' => {
                let last = core::mem::take(&mut number);
                for node in first.take().unwrap_or(last)..=last {
                    if let Some(word) = mask.get_mut(node / 64) {
                        *word |= 1 << (node % 64);
                    }
                }
            }
            _ => {}
        }
    }
}

pub(crate) fn any_resident(at: NonNull<u8>, len: usize) -> bool {
    let mut any = false;
    each_resident(at, len, &mut |_| any = true);
    any
}

pub(crate) fn each_resident(at: NonNull<u8>, len: usize, f: &mut dyn FnMut(usize)) {
    let page = base_page();
    let mut seen = [0_u8; 512];
    for offset in (0..len).step_by(seen.len() * page) {
        let part = (seen.len() * page).min(len - offset);
        // SAFETY: `offset < len`, inside the caller's range.
        let from = unsafe { at.add(offset) };
        // SAFETY: `seen` has one byte for each page of the part.
        if unsafe { libc::mincore(from.as_ptr().cast(), part, seen.as_mut_ptr()) } != 0 {
            // Unknown: assume touched, which costs time but loses nothing.
            seen.fill(1);
        }
        let here = seen[..part.div_ceil(page)].iter().enumerate().filter(|(_, byte)| **byte & 1 != 0);
        here.for_each(|(number, _)| f(offset + number * page));
    }
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

pub(crate) fn publish(name: &CStr, bytes: &[u8]) -> Result<NonNull<u8>, i32> {
    let file = memory_file(name)?;
    let len = base_page();
    // SAFETY: `bytes` is readable for its length.
    if unsafe { libc::write(file.0, bytes.as_ptr().cast(), bytes.len()) } != bytes.len() as isize {
        return Err(errno());
    }
    // SAFETY: the descriptor is open.
    checked(unsafe { libc::ftruncate(file.0, len as i64) })?;
    // SAFETY: a new mapping of our own file.
    let at = unsafe { system_mmap(null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.0, 0) };
    if at == libc::MAP_FAILED { Err(errno()) } else { NonNull::new(at.cast()).ok_or(libc::ENOMEM) }
}

/// A file descriptor that is closed when dropped.
#[derive(Debug)]
pub(crate) struct Descriptor(c_int);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and open.
        unsafe { libc::close(self.0) };
    }
}

fn open(path: &CStr) -> Result<Descriptor, i32> {
    // SAFETY: the path is a C string.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 { Err(errno()) } else { Ok(Descriptor(fd)) }
}

/// The start of a small file; `None` when it cannot be read.
pub(crate) fn read_file<'a>(path: &CStr, into: &'a mut [u8]) -> Option<&'a [u8]> {
    let file = open(path).ok()?;
    // SAFETY: the buffer has the length given.
    let got = unsafe { libc::read(file.0, into.as_mut_ptr().cast(), into.len()) };
    into.get(..usize::try_from(got).ok()?)
}

pub(crate) fn open_pagemap(pid: Option<u32>) -> Result<Descriptor, i32> {
    let Some(pid) = pid else { return open(c"/proc/self/pagemap") };
    let mut path = *b"/proc/0000000000/pagemap\0";
    let mut rest = pid;
    // Leading zeros are not a pid: write the digits, then close the gap.
    let mut digits = [0_u8; 10];
    let mut count = 0;
    while rest > 0 || count == 0 {
        digits[count] = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
    }
    for (i, digit) in digits[..count].iter().rev().enumerate() {
        path[6 + i] = *digit;
    }
    path[6 + count..6 + count + 9].copy_from_slice(b"/pagemap\0");
    open(CStr::from_bytes_until_nul(&path).map_err(|_| libc::ENOENT)?)
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ScannedRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg` of linux/fs.h (kernel 6.7).
#[repr(C)]
struct ScanRequest {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// Resident bytes, bytes on large pages and the first resident address of `[start, end)`.
pub(crate) fn scan(file: &Descriptor, start: u64, end: u64) -> Result<(u64, u64, Option<u64>), i32> {
    const PAGEMAP_SCAN: u64 = 0xC060_6610;
    const PRESENT: u64 = 1 << 3;
    const ZERO_PAGE: u64 = 1 << 5;
    const HUGE: u64 = 1 << 6;
    let mut regions = [ScannedRegion::default(); 64];
    let (mut resident, mut large, mut first) = (0, 0, None);
    let mut request = ScanRequest {
        size: size_of::<ScanRequest>() as u64,
        flags: 0,
        start,
        end,
        walk_end: 0,
        vec: regions.as_mut_ptr() as u64,
        vec_len: regions.len() as u64,
        max_pages: 0,
        category_inverted: ZERO_PAGE,
        category_mask: PRESENT | ZERO_PAGE,
        category_anyof_mask: 0,
        return_mask: PRESENT | HUGE,
    };
    while request.start < end {
        // SAFETY: the request has the layout the kernel documents, and names a live vector.
        let count = unsafe { libc::ioctl(file.0, PAGEMAP_SCAN as _, &raw mut request) };
        if count < 0 {
            return Err(errno());
        }
        for region in &regions[..count as usize] {
            resident += region.end - region.start;
            if region.categories & HUGE != 0 {
                large += region.end - region.start;
            }
            first = first.or(Some(region.start));
        }
        if request.walk_end <= request.start {
            break;
        }
        request.start = request.walk_end;
    }
    Ok((resident, large, first))
}

/// The NUMA node of one resident page.
pub(crate) fn node_of(pid: i32, address: u64) -> Option<u32> {
    let pages = [address];
    let mut status = [-1_i32];
    let none = core::ptr::null::<c_int>();
    // SAFETY: without target nodes `move_pages` only reports; both arrays have one element.
    let rc =
        unsafe { libc::syscall(libc::SYS_move_pages, pid, 1, pages.as_ptr(), none, status.as_mut_ptr(), 0) };
    if rc == 0 { u32::try_from(status[0]).ok() } else { None }
}

pub(crate) fn futex_wait(word: &AtomicU32, value: u32, seconds: Option<u32>) {
    let timeout = seconds.map(|seconds| libc::timespec { tv_sec: seconds.into(), tv_nsec: 0 });
    // SAFETY: the word and the timeout outlive the call; a spurious return is allowed.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            timeout.as_ref().map_or(core::ptr::null(), core::ptr::from_ref),
        )
    };
}

pub(crate) fn futex_wake_one(word: &AtomicU32) {
    // SAFETY: waking reads nothing but the address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
}

pub(crate) fn now_seconds() -> u32 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    now.tv_sec as u32
}

pub(crate) fn thread_handle() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as usize }
}

pub(crate) fn thread_id() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

pub(crate) fn base_page() -> usize {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: a constant of the machine, read again at worst.
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
    // 1: disabled; 3 (kernel 6.18): disabled except where advised, which is what we do.
    // SAFETY: PR_GET_THP_DISABLE takes no pointer.
    unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1 }
}
