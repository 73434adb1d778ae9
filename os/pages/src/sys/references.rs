//! Makes the system calls that return pages to the kernel unless something refers to them (`crate::references`).
#![expect(clippy::cast_possible_wrap, reason = "numbers of the kernel's interface")]

use super::files::{Descriptor, open};
use super::linux::{base_page, checked, system_madvise};
use super::raw_call;
use core::ffi::c_int;
use core::ptr::NonNull;

/// This process's memory and page tables, as files.
#[derive(Debug)]
pub(crate) struct OwnTables {
    memory: Descriptor,
    pagemap: Descriptor,
}

impl OwnTables {
    pub(crate) fn open() -> Result<OwnTables, i32> {
        Ok(OwnTables {
            memory: open(c"/proc/thread-self/mem")?,
            pagemap: open(c"/proc/thread-self/pagemap")?,
        })
    }

    /// Reads present pages from address `at` on, and returns the number of bytes before the first missing page. It
    /// never waits for a userfaultfd.
    pub(crate) fn read(&self, at: usize, into: &mut [u8]) -> usize {
        // SAFETY: the buffer has the length given; the kernel checks what is read.
        let got = unsafe { libc::pread(self.memory.0, into.as_mut_ptr().cast(), into.len(), at as i64) };
        usize::try_from(got).unwrap_or(0)
    }

    /// Reads the entries of `pagemap` for the pages from address `at` on.
    pub(crate) fn entries(&self, at: usize, into: &mut [u64]) -> Result<(), i32> {
        let (place, len) = (at / base_page() * size_of::<u64>(), size_of_val(into));
        // SAFETY: as above.
        let got = unsafe { libc::pread(self.pagemap.0, into.as_mut_ptr().cast(), len, place as i64) };
        if usize::try_from(got) == Ok(len) { Ok(()) } else { Err(libc::EIO) }
    }
}

/// Makes the kernel reclaim the pages of a range that were offered to it.
pub(crate) fn reclaim(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    const MADV_PAGEOUT: c_int = 21;
    // SAFETY: reclaim drops only pages that were offered; others keep their contents.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, MADV_PAGEOUT) })
}

/// Makes the kernel write the word at `at` with the value that it has, in one atomic step. Returns `false` if the word
/// may not be written or its page is missing, because it never waits for a userfaultfd.
pub(crate) fn rewrite(at: usize) -> bool {
    // The words of linux/futex.h: the operation OR with 0, and a comparison (with 1) whose outcome does not matter.
    const OR_NOTHING: usize = 2 << 28 | 1;
    let nobody = 0_u32;
    let operation = (libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG).cast_unsigned() as usize;
    // SAFETY: no thread waits at `nobody`, none is woken at `at`, and the word there keeps its value.
    (unsafe { raw_call(libc::SYS_futex, [(&raw const nobody).addr(), operation, 0, 0, at, OR_NOTHING]) }) >= 0
}

/// A pipe that holds a reference to a page.
#[derive(Debug)]
pub(crate) struct PageInPipe {
    out: Descriptor,
    _in: Descriptor,
}

impl PageInPipe {
    /// Creates a pipe with a reference to the page at address `at`.
    pub(crate) fn new(at: usize) -> Result<PageInPipe, i32> {
        let mut ends = [0; 2];
        // SAFETY: the array has room for two descriptors.
        checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
        let pipe = PageInPipe { out: Descriptor(ends[0]), _in: Descriptor(ends[1]) };
        let page = libc::iovec { iov_base: core::ptr::with_exposed_provenance_mut(at), iov_len: base_page() };
        // SAFETY: the kernel checks the address, and takes a reference.
        let put = unsafe { libc::vmsplice(ends[1], &raw const page, 1, 0) };
        if usize::try_from(put) == Ok(base_page()) { Ok(pipe) } else { Err(libc::EFAULT) }
    }

    /// Reads the first byte of the page to which the pipe refers.
    pub(crate) fn first_byte(&self) -> Option<u8> {
        let mut byte = 0_u8;
        // SAFETY: the byte is ours.
        let got = unsafe { libc::read(self.out.0, (&raw mut byte).cast(), 1) };
        (got == 1).then_some(byte)
    }
}
