//! Makes the system calls of userfaultfd, with the structures of `linux/userfaultfd.h`.

#![expect(clippy::disallowed_methods, reason = "this folder is where the ban points to")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of the kernel's interface"
)]

use super::call::raw_call;
use super::files::Descriptor;
use super::linux::errno;
use crate::fault::{OpenMethod, PageFault};
use core::ffi::{c_int, c_long, c_ulong};

/// `UFFD_USER_MODE_ONLY`: faults inside system calls are not reported.
const USER_MODE_ONLY: c_int = 1;
const API: u64 = 0xaa;
/// The common part of the numbers of the requests `UFFDIO_*`, which consist of direction, size of the structure,
/// `0xaa`, and an index.
const IOC_NEW: c_ulong = 0xaa00;
const IOC_API: c_ulong = 0xc018_aa3f;
const IOC_REGISTER: c_ulong = 0xc020_aa00;
const IOC_UNREGISTER: c_ulong = 0x8010_aa01;
const IOC_WAKE: c_ulong = 0x8010_aa02;
const IOC_COPY: c_ulong = 0xc028_aa03;
const IOC_MOVE: c_ulong = 0xc028_aa05;
const IOC_WRITEPROTECT: c_ulong = 0xc018_aa06;
/// The mode `UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP`, which reports accesses to missing pages and
/// writes to protected ones.
const MISSING_AND_PROTECTED: u64 = 3;
/// `UFFDIO_COPY_MODE_DONTWAKE`: threads that are blocked in faults on the filled pages are not woken.
const COPY_MODE_DONTWAKE: u64 = 1;
const COPY_MODE_WP: u64 = 2;
const MOVE_MODE_DONTWAKE: u64 = 1;
const WRITEPROTECT_MODE_DONTWAKE: u64 = 2;
const EVENT_PAGEFAULT: u8 = 0x12;
const FLAG_WRITE: u64 = 1;
const FLAG_WP: u64 = 2;
/// Size of `struct uffd_msg` in bytes.
pub(crate) const MESSAGE: usize = 32;

pub(crate) fn open(method: OpenMethod) -> Result<Descriptor, i32> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    let fd = match method {
        OpenMethod::Device => {
            let how = libc::O_RDWR | libc::O_CLOEXEC;
            // SAFETY: the path is a C string.
            let device = Descriptor::made(unsafe { libc::open(c"/dev/userfaultfd".as_ptr(), how) })?;
            // SAFETY: our own descriptor; the request takes flags by value.
            return Descriptor::made(unsafe { libc::ioctl(device.0, IOC_NEW, c_long::from(flags)) });
        }
        // SAFETY: the call takes flags by value.
        OpenMethod::Call => unsafe { libc::syscall(libc::SYS_userfaultfd, flags) },
        // SAFETY: as above.
        OpenMethod::UserModeOnly => unsafe { libc::syscall(libc::SYS_userfaultfd, flags | USER_MODE_ONLY) },
    };
    Descriptor::made(fd as c_int)
}

/// Duplicates the descriptor to a number of at least `least`, or returns `None` if the limit on descriptors is lower
/// than that.
pub(crate) fn duplicate_above(fd: c_int, least: c_int) -> Option<Descriptor> {
    // SAFETY: numbers only.
    Descriptor::made(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, least) }).ok()
}

/// Gives a descriptor the number `number`. A descriptor that has that number is closed first. If the kernel refuses,
/// `fd` is closed.
pub(crate) fn renumber(fd: Descriptor, number: c_int) -> Result<Descriptor, i32> {
    if fd.0 == number {
        return Ok(fd);
    }
    // SAFETY: numbers only.
    Descriptor::made(unsafe { libc::dup3(fd.0, number, libc::O_CLOEXEC) })
}

/// `UFFD_FEATURE_MOVE`: the kernel can move pages from one mapping to another (Linux 6.8).
pub(crate) const FEATURE_MOVE: u64 = 1 << 16;

/// Negotiates features: write protection of anonymous memory (Linux 5.7), and `SIGBUS` or else thread numbers in
/// messages (Linux 4.14). Returns all features that the kernel has.
pub(crate) fn handshake(fd: c_int, by_signal: bool) -> Result<u64, i32> {
    const FEATURE_PAGEFAULT_FLAG_WP: u64 = 1;
    const FEATURE_SIGBUS: u64 = 1 << 7;
    const FEATURE_THREAD_ID: u64 = 1 << 8;
    let features = FEATURE_PAGEFAULT_FLAG_WP | if by_signal { FEATURE_SIGBUS } else { FEATURE_THREAD_ID };
    let mut words = [API, features, 0];
    // SAFETY: the request takes three words, and the second one is the answer, too.
    unsafe { request(fd, IOC_API, &mut words) }.map(|()| words[1])
}

/// Mirrors `struct iocb` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Default)]
struct AioRequest {
    data: u64,
    key_and_flags: u64,
    operation: u16,
    priority: i16,
    fd: c_int,
    events: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    more: u64,
}

/// Keeps the file of descriptor `fd` open until the kernel frees the address space. This is done by an asynchronous
/// poll for no event, which holds the file and which the kernel ends only then.
pub(crate) fn outlive_threads(fd: c_int) -> Result<(), i32> {
    const POLL: u16 = 5;
    let mut requests: c_ulong = 0;
    // SAFETY: room for one request and for the number of its context.
    if unsafe { libc::syscall(libc::SYS_io_setup, 1, &raw mut requests) } != 0 {
        return Err(errno());
    }
    let request = AioRequest { operation: POLL, fd, ..AioRequest::default() };
    let list = [&raw const request];
    // SAFETY: one request, which the kernel copies; it writes to no memory when the request ends.
    let rc = unsafe { libc::syscall(libc::SYS_io_submit, requests, 1, list.as_ptr()) };
    if rc == 1 { Ok(()) } else { Err(errno()) }
}

pub(crate) fn register(fd: c_int, at: usize, len: usize) -> Result<(), i32> {
    // SAFETY: range, mode and space for the answer.
    unsafe { request(fd, IOC_REGISTER, &mut [at as u64, len as u64, MISSING_AND_PROTECTED, 0]) }
}

pub(crate) fn unregister(fd: c_int, at: usize, len: usize) -> Result<(), i32> {
    // SAFETY: the request takes a range.
    unsafe { request(fd, IOC_UNREGISTER, &mut [at as u64, len as u64]) }
}

pub(crate) fn wake(fd: c_int, at: usize, len: usize) -> Result<(), i32> {
    // SAFETY: the request takes a range.
    unsafe { request(fd, IOC_WAKE, &mut [at as u64, len as u64]) }
}

/// Fills missing pages with `len` bytes. Returns the number of bytes filled, and the errno if these are fewer than
/// `len`.
pub(crate) fn copy(fd: c_int, at: usize, from: *const u8, len: usize, protect: bool) -> (usize, i32) {
    let mode = COPY_MODE_DONTWAKE | if protect { COPY_MODE_WP } else { 0 };
    let mut words = [at as u64, from.expose_provenance() as u64, len as u64, mode, 0];
    // SAFETY: target, source, length, mode and space for the answer. The kernel copies into missing pages of a
    // registered range only; callers pass a source of `len` bytes.
    let error = unsafe { request(fd, IOC_COPY, &mut words) }.err().unwrap_or(0);
    done(words[4].cast_signed(), error)
}

/// Moves `len` bytes of present pages to a registered range where they are missing. Returns the number of bytes moved,
/// and the errno if these are fewer than `len`.
pub(crate) fn take(fd: c_int, from: usize, to: usize, len: usize) -> (usize, i32) {
    let mut words = [to as u64, from as u64, len as u64, MOVE_MODE_DONTWAKE, 0];
    // SAFETY: target, source, length, mode and space for the answer. Threads that use the source fault from then on;
    // callers own the target.
    let error = unsafe { request(fd, IOC_MOVE, &mut words) }.err().unwrap_or(0);
    done(words[4].cast_signed(), error)
}

pub(crate) fn protect(fd: c_int, at: usize, len: usize, on: bool) -> Result<(), i32> {
    let mode = if on { 1 } else { WRITEPROTECT_MODE_DONTWAKE };
    // SAFETY: range and mode.
    unsafe { request(fd, IOC_WRITEPROTECT, &mut [at as u64, len as u64, mode]) }
}

/// Decodes the answer of a request that may have been carried out in part: the number of bytes done, and the errno.
fn done(answer: i64, error: i32) -> (usize, i32) {
    match usize::try_from(answer) {
        Ok(bytes) => (bytes, error),
        Err(_) => (0, error),
    }
}

/// Makes the `ioctl` request `which`, and returns its errno if it fails.
///
/// # Safety
/// `words` is the structure that the request expects.
unsafe fn request(fd: c_int, which: c_ulong, words: &mut [u64]) -> Result<(), i32> {
    let arguments = [fd as usize, which as usize, words.as_mut_ptr().expose_provenance(), 0, 0, 0];
    // A handler's stack may be far memory, and so `words`.
    // SAFETY: the caller's promise; the array is writable.
    match unsafe { raw_call(libc::SYS_ioctl, arguments) } {
        0 => Ok(()),
        answer => Err(-answer as i32),
    }
}

/// Waits for at most `timeout_ms` until `fd`, or the descriptor `or` if there is one, is readable. Returns whether one
/// is.
pub(crate) fn poll(fd: c_int, or: Option<c_int>, timeout_ms: c_int) -> bool {
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // The kernel skips negative descriptors.
    let mut entries = [entry(fd), entry(or.unwrap_or(-1))];
    // SAFETY: two entries.
    unsafe { libc::poll(entries.as_mut_ptr(), 2, timeout_ms) > 0 }
}

/// Reads messages without blocking, and returns the number of messages.
pub(crate) fn read(fd: c_int, into: &mut [[u8; MESSAGE]]) -> usize {
    let bytes = size_of_val(into);
    // SAFETY: the buffer has `bytes` bytes.
    let got = unsafe { libc::read(fd, into.as_mut_ptr().cast(), bytes) };
    usize::try_from(got).unwrap_or(0) / MESSAGE
}

/// Decodes a message; returns `None` if it reports no page fault.
pub(crate) fn fault(message: &[u8; MESSAGE]) -> Option<PageFault> {
    if message[0] != EVENT_PAGEFAULT {
        return None;
    }
    let word = |at: usize| u64::from_ne_bytes(message[at..at + 8].try_into().unwrap_or_default());
    let (flags, address, thread) = (word(8), word(16) as usize, word(24) as u32);
    Some(PageFault { address, write: flags & FLAG_WRITE != 0, protected: flags & FLAG_WP != 0, thread })
}
