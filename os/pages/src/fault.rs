//! Page faults of a range, served by this process instead of the kernel (`userfaultfd(2)`).

use crate::sys::{self, Descriptor};

/// How the descriptor was had, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `/dev/userfaultfd` (kernel 6.1).
    Device,
    /// The system call, with `CAP_SYS_PTRACE` or `vm.unprivileged_userfaultfd=1`.
    Call,
    /// The system call every user has: a system call that touches a missing page fails with `EFAULT`.
    UserModeOnly,
}

/// Every way, the best first.
pub const WAYS: [Way; 3] = [Way::Device, Way::Call, Way::UserModeOnly];

/// One fault that a thread waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub address: usize,
    /// The thread wants to write.
    pub write: bool,
    /// The page is there, and protected against writing.
    pub protected: bool,
    /// The kernel's number of the thread.
    pub thread: u32,
}

/// A request on a range was refused, with the kernel's `errno`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultError(pub i32);

/// A descriptor that tells of faults in the ranges registered with it.
#[derive(Debug)]
pub struct Userfault {
    fd: Descriptor,
    way: Way,
    by_signal: bool,
}

/// Why pages could not be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// A device may be writing to the page: it is pinned.
    Pinned,
    /// The program may not write there, or pages of two mappings were asked for at once.
    Guarded,
    /// There is no page.
    Missing,
    /// There is one already where it was to go.
    Occupied,
    /// The kernel's answer.
    Refused(FaultError),
}

impl Userfault {
    /// Opens one in the best way this process is allowed; the error is that of the last try.
    pub fn open(ways: &[Way]) -> Result<Userfault, FaultError> {
        Userfault::open_as(ways, false)
    }

    /// One that sends `SIGBUS` to the thread that meets a fault, and tells nobody else. A system call
    /// fails with `EFAULT`, however it was opened.
    pub fn open_by_signal(ways: &[Way]) -> Result<Userfault, FaultError> {
        let mut open = Userfault::open_as(ways, true)?;
        // Programs use low numbers.
        if let Some(high) = sys::userfault::duplicate_above(open.fd.0, 900) {
            open.fd = high;
        }
        Ok(open)
    }

    fn open_as(ways: &[Way], by_signal: bool) -> Result<Userfault, FaultError> {
        let mut last = FaultError(libc::ENOSYS);
        for &way in ways {
            match sys::userfault::open(way) {
                Ok(fd) => match sys::userfault::handshake(fd.0, by_signal) {
                    Ok(()) => return Ok(Userfault { fd, way, by_signal }),
                    Err(errno) => last = FaultError(errno),
                },
                Err(errno) => last = FaultError(errno),
            }
        }
        Err(last)
    }

    /// How it was opened.
    #[must_use]
    pub const fn way(&self) -> Way {
        self.way
    }

    /// Keeps its ranges until the last thread of the process is out of memory. A process that ends
    /// closes descriptors thread by thread: where another one is in the middle of a `write`, what is
    /// missing would read as zeros, and be written.
    pub fn outlive_threads(&self) -> Result<(), FaultError> {
        sys::userfault::outlive_threads(self.fd.0).map_err(FaultError)
    }

    /// Whether the thread that meets a fault gets a signal.
    #[must_use]
    pub const fn by_signal(&self) -> bool {
        self.by_signal
    }

    /// Has the number of this descriptor mean it in the table of the calling thread, too. It is one of
    /// the first thread of the process.
    pub fn known_here(&self) -> Result<(), FaultError> {
        let here = sys::descriptors::of_first_thread(self.fd.0);
        let here = here.and_then(|here| sys::userfault::renumber(here, self.fd.0)).map_err(FaultError)?;
        here.into_number(); // it stays open for as long as the table is there
        Ok(())
    }

    /// Takes the place of another one, under its number.
    pub fn replace(self, before: &Userfault) -> Result<Userfault, FaultError> {
        let fd = sys::userfault::renumber(self.fd, before.fd.0).map_err(FaultError)?;
        Ok(Userfault { fd, ..self })
    }

    /// Be told of missing pages and of writes to protected ones in a range of private memory.
    pub fn register(&self, at: usize, len: usize) -> Result<(), FaultError> {
        sys::userfault::register(self.fd.0, at, len).map_err(FaultError)
    }

    /// Fill missing pages at `at` with `bytes`, protected against writing if asked. Pages that are there already are left as
    /// they are. Who waits for them goes on waiting until it is [woken](Userfault::wake).
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
                // The kernel fills no two mappings at once: then page by page.
                libc::ENOENT if rest.len() > page => most = page,
                libc::EEXIST => done += page,
                errno => return Err(FaultError(errno)),
            }
        }
        Ok(())
    }

    /// Writes to pages that are there stop and are told (`on`), or go on, for those who waited once they are
    /// [woken](Userfault::wake).
    pub fn protect(&self, at: usize, len: usize, on: bool) -> Result<(), FaultError> {
        let page = crate::base_page();
        let (mut done, mut most) = (0, len);
        while done < len {
            let part = most.min(len - done);
            match sys::userfault::protect(self.fd.0, at + done, part, on) {
                Ok(()) => done += part,
                Err(libc::EAGAIN) => {}
                // Kernels before 6.4 protect no two mappings at once: then page by page.
                Err(libc::ENOENT) if part > page => most = page,
                Err(errno) => return Err(FaultError(errno)),
            }
        }
        Ok(())
    }

    /// Move the pages at `from` to `to`, a registered range where they are missing, in one step for
    /// whoever uses them: a touch is a fault from then on. Returns the bytes that were moved, and why not all.
    pub fn take(&self, from: usize, to: usize, len: usize) -> (usize, Option<Stays>) {
        let (mut moved, mut written) = (0, None);
        while moved < len {
            let (more, errno) = sys::userfault::take(self.fd.0, from + moved, to + moved, len - moved);
            moved += more;
            match errno {
                0 | libc::EAGAIN => {}
                // Perhaps not pinned, but shared with a child since a fork: then a write has it copied.
                libc::EBUSY if written != Some(moved) => {
                    sys::write_fault(from + moved);
                    written = Some(moved);
                }
                errno => return (moved, Some(Stays::from(errno))),
            }
        }
        (moved, None)
    }

    /// Who waits in the range tries again.
    pub fn wake(&self, at: usize, len: usize) -> Result<(), FaultError> {
        sys::userfault::wake(self.fd.0, at, len).map_err(FaultError)
    }

    /// Faults that are waiting now, into `faults`; returns their number.
    pub fn read(&self, faults: &mut [Fault]) -> usize {
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

    /// Sleep until there is a fault, at most so many milliseconds. `false`: there is none.
    #[must_use]
    pub fn wait(&self, milliseconds: u16) -> bool {
        sys::userfault::poll(self.fd.0, milliseconds.into())
    }
}

/// From now on devices do not write to this process's memory past the processor (`O_DIRECT`, io_uring), nor to
/// that of programs it starts: such requests are answered as where there is no such thing.
pub fn refuse_direct_input() -> Result<(), FaultError> {
    sys::seccomp::refuse_direct_input().map_err(FaultError)
}

/// Copies memory of this process, whatever its protection is. `false`: not all of it could be read.
#[must_use]
pub fn read_guarded(at: usize, into: &mut [u8]) -> bool {
    sys::read_guarded(at, into)
}

impl From<i32> for Stays {
    fn from(errno: i32) -> Stays {
        match errno {
            libc::EBUSY => Stays::Pinned,
            libc::EINVAL => Stays::Guarded,
            libc::ENOENT => Stays::Missing,
            libc::EEXIST => Stays::Occupied,
            errno => Stays::Refused(FaultError(errno)),
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::{PageKind, Reserved, SPAN, base_page};

    /// What a thread reads and writes in a range whose faults another thread serves.
    #[test]
    fn missing_pages_are_filled_and_writes_to_protected_ones_are_told() {
        extern crate std;
        let Ok(faults) = Userfault::open(&WAYS) else {
            #[expect(clippy::disallowed_macros, reason = "absent features are printed as skipped")]
            {
                std::println!("skipped: no userfaultfd here");
            }
            return;
        };
        let page = base_page();
        let range = Reserved::new(SPAN, SPAN).unwrap();
        range.commit(0, SPAN, PageKind::Small).unwrap();
        let at = range.start().as_ptr().addr();
        faults.register(at, SPAN).unwrap();
        let served = std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let mut seen = std::vec::Vec::new();
                while seen.len() < 2 {
                    let mut some = [Fault { address: 0, write: false, protected: false, thread: 0 }; 4];
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
            server.join().unwrap()
        });
        assert_eq!(served[0].address / page, at / page + 1);
        assert!(!served[0].write && !served[0].protected);
        assert!(served[1].write && served[1].protected);
        assert_eq!([served[0].thread, served[1].thread], [crate::thread_id(); 2]);
    }
}
