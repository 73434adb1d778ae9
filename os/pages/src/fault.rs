//! Lets this process handle the page faults of a range instead of the kernel (`userfaultfd(2)`).
//!
//! A page of such a range is *missing* until it is filled, and *present* from then on. Missing pages have no contents.

use crate::sys::{self, Descriptor};

/// The way in which a userfaultfd descriptor is opened, from most to least capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMethod {
    /// Opens `/dev/userfaultfd` (kernel 6.1).
    Device,
    /// Makes the system call, with `CAP_SYS_PTRACE` or `vm.unprivileged_userfaultfd=1`.
    Call,
    /// Makes the system call as every user may. A system call that touches a missing page then fails with `EFAULT`.
    UserModeOnly,
}

/// Lists every method, from most to least capable.
pub const OPEN_METHODS: [OpenMethod; 3] = [OpenMethod::Device, OpenMethod::Call, OpenMethod::UserModeOnly];

/// A page fault, in which a thread is blocked until it is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFault {
    /// Address whose access faulted.
    pub address: usize,
    /// Whether the access is a write.
    pub write: bool,
    /// Whether the page is present and write-protected.
    pub protected: bool,
    /// Number of the faulting thread, as `gettid` returns it.
    pub thread: u32,
}

/// The `errno` with which the kernel refused a request on a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultError(pub i32);

impl From<crate::MapError> for FaultError {
    fn from(error: crate::MapError) -> FaultError {
        FaultError(error.errno)
    }
}

/// A userfaultfd descriptor, which reports faults in the ranges registered with it.
#[derive(Debug)]
pub struct Userfault {
    fd: Descriptor,
    method: OpenMethod,
    by_signal: bool,
    /// Features that the kernel has, as `UFFD_FEATURE_*` bits.
    features: u64,
}

/// The reason for which pages could not be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveError {
    /// The page is pinned: a device may be writing to it.
    Pinned,
    /// The program may not write to the page, or the request covers parts of two mappings.
    Guarded,
    /// No page is present at the source.
    Missing,
    /// A page is already present at the target.
    Occupied,
    /// The kernel gave another error.
    Refused(FaultError),
}

impl Userfault {
    /// Opens a descriptor by the first of `methods` that this process is allowed. The error is that of the last
    /// attempt.
    pub fn open(methods: &[OpenMethod]) -> Result<Userfault, FaultError> {
        Userfault::open_as(methods, false)
    }

    /// Opens a descriptor that sends `SIGBUS` to the faulting thread and queues no message. Whatever the method, a
    /// system call that touches a missing page fails with `EFAULT`.
    pub fn open_by_signal(methods: &[OpenMethod]) -> Result<Userfault, FaultError> {
        let mut open = Userfault::open_as(methods, true)?;
        // Programs expect low descriptor numbers to be their own.
        if let Some(high) = sys::userfault::duplicate_above(open.fd.0, 900) {
            open.fd = high;
        }
        Ok(open)
    }

    fn open_as(methods: &[OpenMethod], by_signal: bool) -> Result<Userfault, FaultError> {
        let mut last = FaultError(libc::ENOSYS);
        for &method in methods {
            match sys::userfault::open(method) {
                Ok(fd) => match sys::userfault::handshake(fd.0, by_signal) {
                    Ok(features) => return Ok(Userfault { fd, method, by_signal, features }),
                    Err(errno) => last = FaultError(errno),
                },
                Err(errno) => last = FaultError(errno),
            }
        }
        Err(last)
    }

    /// Returns the method by which this descriptor was opened.
    #[must_use]
    pub const fn method(&self) -> OpenMethod {
        self.method
    }

    /// Keeps the ranges registered until the last thread of the process has ended. Otherwise the kernel, which ends
    /// the threads of a process one by one, would close the descriptor while a `write` of another thread may still
    /// run: that call would read missing pages as zeros, and write these.
    pub fn outlive_threads(&self) -> Result<(), FaultError> {
        sys::userfault::outlive_threads(self.fd.0).map_err(FaultError)
    }

    /// Returns whether the faulting thread gets `SIGBUS` instead of waiting.
    #[must_use]
    pub const fn by_signal(&self) -> bool {
        self.by_signal
    }

    /// Returns whether the kernel can move pages, which [`take`](Userfault::take) needs (Linux 6.8).
    #[must_use]
    pub const fn can_move(&self) -> bool {
        self.features & sys::userfault::FEATURE_MOVE != 0
    }

    /// Duplicates this descriptor, which the first thread of the process has open, into the calling thread's descriptor
    /// table under the same number.
    pub fn duplicate_here(&self) -> Result<(), FaultError> {
        let here = sys::descriptors::of_first_thread(self.fd.0);
        let here = here.and_then(|here| sys::userfault::renumber(here, self.fd.0)).map_err(FaultError)?;
        here.into_number(); // stays open for as long as the table exists
        Ok(())
    }

    /// Replaces the descriptor `before`, which is closed, and takes over its number.
    pub fn replace(self, before: &Userfault) -> Result<Userfault, FaultError> {
        let fd = sys::userfault::renumber(self.fd, before.fd.0).map_err(FaultError)?;
        Ok(Userfault { fd, ..self })
    }

    /// Registers a range of private memory. From now on, accesses to missing pages and writes to protected pages are
    /// reported.
    pub fn register(&self, at: usize, len: usize) -> Result<(), FaultError> {
        sys::userfault::register(self.fd.0, at, len).map_err(FaultError)
    }

    /// Leaves the faults of a range to the kernel again, and lifts its write protection. From now on, missing pages
    /// read as zero, and threads that wait for a missing page continue.
    pub fn unregister(&self, at: usize, len: usize) -> Result<(), FaultError> {
        sys::userfault::unregister(self.fd.0, at, len).map_err(FaultError)
    }

    /// Fills missing pages from address `at` on with `bytes`, write-protected if `protect`. Pages that are already
    /// present are left as they are. Threads that faulted there stay blocked until they are [woken](Userfault::wake).
    pub fn fill(&self, at: usize, bytes: &[u8], protect: bool) -> Result<(), FaultError> {
        let page = crate::base_page();
        let (mut done, mut most) = (0, bytes.len());
        while done < bytes.len() {
            let rest = &bytes[done..];
            let rest = &rest[..rest.len().min(most)];
            let (put, errno) = sys::userfault::copy(self.fd.0, at + done, rest.as_ptr(), rest.len(), protect);
            done += put;
            match errno {
                0 | libc::EAGAIN => {}
                // The kernel fills one mapping at a time: continue page by page.
                libc::ENOENT if rest.len() > page => most = page,
                libc::EEXIST => done += page,
                errno => return Err(FaultError(errno)),
            }
        }
        Ok(())
    }

    /// Write-protects present pages if `on`, so that writes are reported, or lifts the protection. Blocked threads
    /// continue once they are [woken](Userfault::wake).
    pub fn protect(&self, at: usize, len: usize, on: bool) -> Result<(), FaultError> {
        let page = crate::base_page();
        let (mut done, mut most) = (0, len);
        while done < len {
            let part = most.min(len - done);
            match sys::userfault::protect(self.fd.0, at + done, part, on) {
                Ok(()) => done += part,
                Err(libc::EAGAIN) => {}
                // Kernels before 6.4 protect one mapping at a time: continue page by page.
                Err(libc::ENOENT) if part > page => most = page,
                Err(errno) => return Err(FaultError(errno)),
            }
        }
        Ok(())
    }

    /// Moves pages from address `from` to address `to`, where they must be missing and the range registered, by
    /// changing page tables. The move is atomic: an access to the source is a fault from then on. Returns the number
    /// of bytes moved, and the reason if these are fewer than `len`.
    pub fn take(&self, from: usize, to: usize, len: usize) -> (usize, Option<MoveError>) {
        let (mut moved, mut written) = (0, None);
        while moved < len {
            let (more, errno) = sys::userfault::take(self.fd.0, from + moved, to + moved, len - moved);
            moved += more;
            match errno {
                0 | libc::EAGAIN => {}
                // Perhaps not pinned, but shared with a child since a fork: a write fault gives this process its own
                // copy.
                libc::EBUSY if written != Some(moved) => {
                    sys::write_fault(from + moved);
                    written = Some(moved);
                }
                errno => return (moved, Some(MoveError::from(errno))),
            }
        }
        (moved, None)
    }

    /// Wakes the threads that faulted in the range, which then repeat the access.
    pub fn wake(&self, at: usize, len: usize) -> Result<(), FaultError> {
        sys::userfault::wake(self.fd.0, at, len).map_err(FaultError)
    }

    /// Reads the pending faults into `faults` without blocking, 16 at most, and returns their number.
    pub fn read(&self, faults: &mut [PageFault]) -> usize {
        let mut messages = [[0; sys::userfault::MESSAGE]; 16];
        let room = faults.len().min(messages.len());
        let got = sys::userfault::read(self.fd.0, &mut messages[..room]);
        let mut count = 0;
        for message in &messages[..got] {
            if let Some(fault) = sys::userfault::fault(message) {
                faults[count] = fault;
                count += 1;
            }
        }
        count
    }

    /// Waits for a fault for at most `milliseconds`. Returns whether one is pending.
    #[must_use]
    pub fn wait(&self, milliseconds: u16) -> bool {
        sys::userfault::poll(self.fd.0, None, milliseconds.into())
    }

    /// Waits for at most `milliseconds` until a fault is pending or the descriptor `other` is readable. Returns
    /// whether either is so.
    #[must_use]
    pub fn wait_or(&self, other: core::ffi::c_int, milliseconds: u16) -> bool {
        sys::userfault::poll(self.fd.0, Some(other), milliseconds.into())
    }
}

/// Prevents devices from writing to this process's memory without a page fault (`O_DIRECT`, io_uring). This lasts for
/// good, also in programs that the process starts. Such requests fail as if the file system or the kernel did not
/// support them.
pub fn refuse_direct_input() -> Result<(), FaultError> {
    sys::seccomp::refuse_direct_input().map_err(FaultError)
}

/// Copies memory of this process from address `at`, whatever its protection. Returns whether all of it could be read.
#[must_use]
pub fn read_guarded(at: usize, into: &mut [u8]) -> bool {
    sys::read_guarded(at, into)
}

impl From<i32> for MoveError {
    fn from(errno: i32) -> MoveError {
        match errno {
            libc::EBUSY => MoveError::Pinned,
            libc::EINVAL => MoveError::Guarded,
            libc::ENOENT => MoveError::Missing,
            libc::EEXIST => MoveError::Occupied,
            errno => MoveError::Refused(FaultError(errno)),
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::{PageKind, Reserved, SPAN, base_page};

    /// Checks the faults of a thread that first reads and then writes in a range. Another thread handles them.
    #[test]
    fn missing_and_protected_pages_report_faults() {
        extern crate std;
        let Ok(faults) = Userfault::open(&OPEN_METHODS) else {
            #[expect(clippy::disallowed_macros, reason = "absent features are printed as skipped")]
            {
                std::println!("skipped: this process may not open a userfaultfd");
            }
            return;
        };
        let page = base_page();
        let range = Reserved::new(SPAN, SPAN).unwrap();
        range.commit(0, SPAN, PageKind::Small).unwrap();
        let at = range.start().as_ptr().addr();
        faults.register(at, SPAN).unwrap();
        let handled = std::thread::scope(|scope| {
            let handler = scope.spawn(|| {
                let mut seen = std::vec::Vec::new();
                while seen.len() < 2 {
                    let mut some = [PageFault { address: 0, write: false, protected: false, thread: 0 }; 4];
                    if !faults.wait(60_000) {
                        break;
                    }
                    let count = faults.read(&mut some);
                    for fault in &some[..count] {
                        let start = fault.address / page * page;
                        if fault.protected {
                            faults.protect(start, page, false).unwrap();
                        } else {
                            faults.fill(start, &std::vec![7; page], true).unwrap();
                        }
                        faults.wake(start, page).unwrap();
                        seen.push(*fault);
                    }
                }
                seen
            });
            // SAFETY: the span is committed; the other thread fills it.
            unsafe {
                assert_eq!(range.start().add(page + 5).read_volatile(), 7);
                range.start().add(page + 5).write_volatile(8);
                assert_eq!(range.start().add(page + 5).read_volatile(), 8);
            }
            handler.join().unwrap()
        });
        assert_eq!(handled[0].address / page, at / page + 1);
        assert!(!handled[0].write && !handled[0].protected);
        assert!(handled[1].write && handled[1].protected);
        assert_eq!([handled[0].thread, handled[1].thread], [crate::thread_id(); 2]);
    }

    #[test]
    fn unregistered_range_is_the_kernels() {
        let Ok(faults) = Userfault::open(&OPEN_METHODS) else { return };
        let range = Reserved::new(SPAN, SPAN).unwrap();
        range.commit(0, SPAN, PageKind::Small).unwrap();
        // SAFETY: the span is committed and only this test uses it.
        unsafe { range.start().write(7) };
        let at = range.start().as_ptr().addr();
        faults.register(at, SPAN).unwrap();
        faults.protect(at, base_page(), true).unwrap();
        faults.unregister(at, SPAN).unwrap();
        // SAFETY: as above. Nothing handles faults here, so that this would not end in a registered range.
        unsafe {
            range.start().write(8);
            assert_eq!(range.start().add(base_page()).read(), 0);
        }
    }
}
