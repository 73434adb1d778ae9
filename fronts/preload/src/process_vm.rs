//! Exports `process_vm_readv` and `process_vm_writev`, by which the kernel copies memory of one process to another.
//!
//! ```text
//!   remote part in this process ─► its far pages are pinned in the pager, piece by piece ─► kernel
//!   remote part in another      ─► a write is refused before Linux 6.8                   ─► kernel
//!   local part                  ─► as in this process: the kernel may be unable to wait for far pages
//! ```
//! The kernel takes references to up to 1024 remote pages at a time and then copies, without a lock, as fast as the
//! local pages can be read. Before Linux 6.8 an eviction does not see the references, and bytes copied after it are
//! lost. So the pages must not be evicted during the call. This library cannot keep another process from evicting.

use crate::answer::{Answer, refused};
use crate::backing::Far;
use crate::guard::Inside;
use crate::own_stacks::OwnStacks;
use crate::pinned::{IoVec, PinnedPages, slice};
use crate::ranges::calls::told;
use crate::user_memory::{MOST_BYTES, read_parts};
use crate::{causes, heap};
use core::ffi::c_int;
use largesse_pages::raw_call;
use largesse_report::Cause;
use libc::{c_long, iovec};

/// Number of bytes whose far pages are pinned at a time. Half of the smallest local memory has room for twice as many.
const PIECE: usize = 256 << 10;

/// Implements `process_vm_readv(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn process_vm_readv(
    process: c_int,
    local: *const iovec,
    locals: usize,
    remote: *const iovec,
    remotes: usize,
    flags: usize,
) -> isize {
    serve(libc::SYS_process_vm_readv, process, (local.addr(), locals), (remote.addr(), remotes), flags)
}

/// Implements `process_vm_writev(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn process_vm_writev(
    process: c_int,
    local: *const iovec,
    locals: usize,
    remote: *const iovec,
    remotes: usize,
    flags: usize,
) -> isize {
    serve(libc::SYS_process_vm_writev, process, (local.addr(), locals), (remote.addr(), remotes), flags)
}

/// Address and length of an array of buffers.
type Array = (usize, usize);

fn serve(number: c_long, process: c_int, local: Array, remote: Array, flags: usize) -> isize {
    let call = Call { number, process: process.cast_unsigned() as usize, flags };
    told(match heap::far() {
        Some(far) => call.serve(far, local, remote),
        None => call.make(local, remote),
    })
}

/// One of the two calls, without its buffers.
#[derive(Clone, Copy, Debug)]
struct Call {
    number: c_long,
    process: usize,
    flags: usize,
}

impl Call {
    fn make(&self, local: Array, remote: Array) -> Answer {
        let arguments = [self.process, local.0, local.1, remote.0, remote.1, self.flags];
        // SAFETY: the program made this very call, or one of which this is a part. The kernel checks every address.
        unsafe { raw_call(self.number, arguments) }
    }

    /// Makes the call with a few far pages resident at a time. Where an array is unreadable, or the kernel refuses a
    /// length, the call is made unchanged, so that the kernel reports the error.
    fn serve(&self, far: &Far, local: Array, remote: Array) -> Answer {
        let writes = self.number == libc::SYS_process_vm_writev;
        let here = is_this_process(self.process);
        let kernel = far.pager().kernel();
        if writes && !here && !kernel.sees_references() {
            causes::note(Cause::DirectInputRefused);
            return refused(libc::EPERM);
        }
        let _inside = Inside::enter();
        let mut arrays = PinnedPages::new(&OwnStacks::NONE);
        let mut parts = |(at, count): Array| read_parts(at, count, &mut arrays);
        let (Some(ours), Some(theirs)) = (parts(local), parts(remote)) else {
            return self.make(local, remote);
        };
        let is_far = |part: &IoVec| kernel.touches(&(part.at..part.at.saturating_add(part.len)));
        let any_far = ours.iter().any(is_far) || here && theirs.iter().any(is_far);
        let total = bytes(&ours).zip(bytes(&theirs)).map_or(0, |(ours, theirs)| ours.min(theirs));
        if !any_far || total == 0 {
            return self.make(local, remote);
        }
        let mut done = 0;
        loop {
            let mut pinned = PinnedPages::new(&OwnStacks::NONE);
            let most = PIECE.min(total - done);
            let theirs =
                if here { pinned.first(&theirs, done, most, writes) } else { slice(&theirs, done, most) };
            let ours = pinned.first(&ours, done, theirs.iter().map(|part| part.len).sum(), !writes);
            let piece: usize = ours.iter().map(|part| part.len).sum();
            let array = |parts: &[IoVec]| (parts.as_ptr().addr(), parts.len());
            let answer = self.make(array(&ours), array(&theirs));
            let Ok(copied) = usize::try_from(answer) else {
                return if done > 0 { done.cast_signed() } else { answer };
            };
            done += copied;
            if copied < piece || done == total {
                return done.cast_signed();
            }
        }
    }
}

/// Returns the size in bytes of buffers, at most what the kernel transfers in one call; `None` if the kernel refuses
/// the length of one.
fn bytes(parts: &[IoVec]) -> Option<usize> {
    let accepted = parts.iter().all(|part| isize::try_from(part.len).is_ok());
    let sum = parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.len));
    accepted.then_some(sum.min(MOST_BYTES))
}

/// Returns whether a process number, as the kernel accepts it, is that of this process or of one of its threads.
fn is_this_process(process: usize) -> bool {
    // SAFETY: numbers only; signal 0 is never sent.
    unsafe {
        let own = raw_call(libc::SYS_getpid, [0; 6]).cast_unsigned();
        process == own || raw_call(libc::SYS_tgkill, [own, process, 0, 0, 0, 0]) == 0
    }
}
