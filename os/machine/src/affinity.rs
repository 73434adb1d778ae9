//! Calls the kernel to read and to set the processors on which a thread may run.
#![expect(clippy::disallowed_methods, reason = "this file is where the ban points to")]

/// Number of 64-bit words in a [`Mask`]: for 2^13 processors, the most that Linux for x86-64 is built for.
pub(crate) const WORDS: usize = 128;

/// A set of processors in the kernel's format: words of 64 processors each, the lowest first.
pub type Mask = [u64; WORDS];

/// The thread number by which system calls mean the calling thread.
pub(crate) const ME: i32 = 0;

/// Returns the affinity of a thread, or the `errno` of the refusal. It allocates nothing.
pub(crate) fn get(thread: i32) -> Result<Mask, i32> {
    let mut words = [0_u64; WORDS];
    // SAFETY: the mask has as many bytes as the kernel is given.
    let rc = unsafe { libc::sched_getaffinity(thread, size_of_val(&words), words.as_mut_ptr().cast()) };
    checked(rc).map(|()| words)
}

/// Sets the affinity of a thread, or returns the `errno` of the refusal. The kernel leaves out processors that a cpuset
/// forbids.
pub(crate) fn set(thread: i32, mask: &Mask) -> Result<(), i32> {
    // SAFETY: the mask has as many bytes as the kernel is given.
    checked(unsafe { libc::sched_setaffinity(thread, size_of_val(mask), mask.as_ptr().cast()) })
}

fn checked(rc: i32) -> Result<(), i32> {
    let errno = || std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    if rc == 0 { Ok(()) } else { Err(errno()) }
}
