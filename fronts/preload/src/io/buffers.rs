//! Makes system calls whose buffers exceed the memory that can be resident at a time.
//!
//! ```text
//!   files, devices        one piece after another, until all bytes are transferred or a piece is short
//!   pipes, streams        the same for writes; a read ends after the first piece, as the kernel's may
//!   messages, appends     one call with a copy in ordinary memory: a second call would send a second message
//! ```

use super::raw;
use crate::in_progress::{CallResource, Holder};
use crate::own_stacks::OwnStacks;
use crate::pinned::{IoVec, PinnedPages};
use crate::user_memory::{MOST_BYTES, copy};
use core::ptr::NonNull;
use libc::{c_int, c_long};

/// The longest append in bytes that is made in one call, so that no other process can append in between: 16 MiB.
const LONGEST_APPEND: usize = 16 << 20;
/// Number of bytes of the program's buffers that are pinned and copied at a time.
const COPIED: usize = 64 << 10;

/// Describes the program's buffers that a call uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffers<'a> {
    pub(super) parts: &'a [IoVec],
    /// Whether the kernel writes to them.
    pub(super) written: bool,
    /// The calling thread's stacks that are pinned already.
    pub(super) own: &'a OwnStacks,
}

/// In how many system calls the bytes of a transfer pass through a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// One call, which transfers all bytes or none.
    Message,
    /// Several calls, until all bytes are transferred or the other end has no more.
    All,
    /// One call, which may transfer fewer bytes than asked for.
    First,
    /// One call, which the kernel refuses because the message is longer than the send buffer.
    Refused,
}

impl Buffers<'_> {
    /// Returns the total size in bytes; `None` if a buffer ends above `isize::MAX`, which the kernel refuses.
    pub(super) fn bytes(&self) -> Option<usize> {
        let fits = |part: &IoVec| part.len <= isize::MAX.cast_unsigned().saturating_sub(part.at);
        self.parts
            .iter()
            .all(fits)
            .then(|| self.parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.len)))
    }

    /// Makes a system call, in pieces where necessary, so that few pages are resident at a time. `call` transfers a
    /// piece, which consists of the given buffers; its second argument is the number of bytes before that piece.
    pub(super) fn transfer(
        &self,
        number: c_long,
        arguments: &[usize; 6],
        call: &mut dyn FnMut(&[IoVec], usize) -> isize,
    ) -> isize {
        let total = self.bytes().unwrap_or(0).min(MOST_BYTES);
        match flow(number, arguments, self.written, total) {
            Flow::Message => self.copied(total, call),
            Flow::All => self.in_pieces(total, true, call),
            Flow::First => self.in_pieces(total, false, call),
            Flow::Refused => call(self.parts, 0),
        }
    }

    fn in_pieces(&self, total: usize, all: bool, call: &mut dyn FnMut(&[IoVec], usize) -> isize) -> isize {
        let mut done = 0;
        loop {
            let mut pinned = PinnedPages::new(self.own);
            let piece = pinned.first(self.parts, done, total - done, self.written);
            let len: usize = piece.iter().map(|part| part.len).sum();
            let answer = call(&piece, done);
            let Ok(bytes) = usize::try_from(answer) else {
                return if done > 0 { done.cast_signed() } else { answer };
            };
            done += bytes;
            if !all || bytes < len || done >= total {
                return done.cast_signed();
            }
        }
    }

    /// Makes one call with a copy of the buffers in memory that is not far. If the buffers are inaccessible the call
    /// fails with `EFAULT`; a message that was received already is lost, as it is without the library.
    fn copied(&self, total: usize, call: &mut dyn FnMut(&[IoVec], usize) -> isize) -> isize {
        let Some(room) = BounceBuffer::new(total, self.own) else { return -(libc::ENOMEM as isize) };
        if !self.written && !self.exchange(&room, total) {
            return call(self.parts, 0);
        }
        let answer = call(&[IoVec { at: room.start.as_ptr().addr(), len: total }], 0);
        // With `MSG_TRUNC` the answer is the length of the message, which may have been truncated.
        let got = usize::try_from(answer).unwrap_or(0).min(total);
        if self.written && !self.exchange(&room, got) {
            return -(libc::EFAULT as isize);
        }
        answer
    }

    /// Copies the first `bytes` bytes between the program's buffers and `room`, towards the buffers if `written`.
    /// Returns `false` if some of them are inaccessible.
    fn exchange(&self, room: &BounceBuffer<'_>, bytes: usize) -> bool {
        let mut done = 0;
        while done < bytes {
            let mut pinned = PinnedPages::new(self.own);
            for part in pinned.first(self.parts, done, COPIED.min(bytes - done), self.written) {
                let ours = room.start.as_ptr().addr() + done;
                let which =
                    if self.written { libc::SYS_process_vm_writev } else { libc::SYS_process_vm_readv };
                // SAFETY: the copy has at least `bytes` bytes, and `done` plus this part's length is at most that.
                if unsafe { copy(which, ours, part) } < part.len {
                    return false;
                }
                done += part.len;
            }
        }
        true
    }
}

/// Holds a copy of buffers in memory that is not far.
struct BounceBuffer<'a> {
    start: NonNull<u8>,
    _holder: Holder<'a>,
}

impl BounceBuffer<'_> {
    /// Maps `len` bytes, at least 1; pages that are never touched take no memory. Returns `None` if the kernel refuses.
    fn new(len: usize, own: &OwnStacks) -> Option<BounceBuffer<'_>> {
        let len = len.max(1);
        let start = largesse_pages::mapping_at(len)?;
        let mut holder = Holder::new(own);
        holder.begin();
        holder.add(CallResource::Mapping(start, len));
        Some(BounceBuffer { start, _holder: holder })
    }
}

/// Returns how a call transfers its `total` bytes through its descriptor. `written` says whether the kernel writes to
/// the buffers.
fn flow(number: c_long, arguments: &[usize; 6], written: bool, total: usize) -> Flow {
    match number {
        libc::SYS_getrandom => return Flow::All,
        libc::SYS_getdents64 | libc::SYS_vmsplice => return Flow::First,
        _ => {}
    }
    let fd = arguments[0];
    let flags = ask(libc::SYS_fcntl, [fd, libc::F_GETFL as usize, 0, 0, 0, 0]).unwrap_or(0);
    // SAFETY: all zero bytes are a valid `stat`.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    let known = ask(libc::SYS_fstat, [fd, (&raw mut about).addr(), 0, 0, 0, 0]).is_some();
    let stream = if written { Flow::First } else { Flow::All };
    match about.st_mode & libc::S_IFMT {
        libc::S_IFREG if !written && flags & libc::O_APPEND as usize != 0 && total <= LONGEST_APPEND => {
            Flow::Message
        }
        libc::S_IFREG | libc::S_IFBLK | libc::S_IFCHR => Flow::All,
        libc::S_IFIFO if flags & libc::O_DIRECT as usize == 0 => stream,
        libc::S_IFSOCK if kind_of_socket(fd) == libc::SOCK_STREAM => {
            let flags = match number {
                libc::SYS_recvfrom => arguments[3],
                libc::SYS_recvmsg => arguments[2],
                _ => 0,
            };
            if flags & libc::MSG_WAITALL as usize != 0 { Flow::All } else { stream }
        }
        // The kernel answers `EMSGSIZE` before it reads the buffers.
        libc::S_IFSOCK if !written && total > room_of_socket(fd) => Flow::Refused,
        _ if known => Flow::Message,
        _ => Flow::First,
    }
}

fn kind_of_socket(fd: usize) -> c_int {
    option_of_socket(fd, libc::SO_TYPE)
}

fn room_of_socket(fd: usize) -> usize {
    usize::try_from(option_of_socket(fd, libc::SO_SNDBUF)).unwrap_or(0)
}

fn option_of_socket(fd: usize, option: c_int) -> c_int {
    let (mut value, mut len) = (0, size_of::<c_int>() as libc::socklen_t);
    let (value_at, len_at) = ((&raw mut value).addr(), (&raw mut len).addr());
    ask(libc::SYS_getsockopt, [fd, libc::SOL_SOCKET as usize, option as usize, value_at, len_at, 0]);
    value
}

/// Asks the kernel about a descriptor by a call with pointers to our own memory. Returns `None` if the kernel refuses
/// it.
fn ask(number: c_long, arguments: [usize; 6]) -> Option<usize> {
    // SAFETY: callers hand in room for the answer, which lives until the call ends.
    usize::try_from(unsafe { raw::call(number, arguments) }).ok()
}
