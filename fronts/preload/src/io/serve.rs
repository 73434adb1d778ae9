//! Makes trapped system calls once the memory that they use is resident.

use super::buffers::Buffers;
use super::calls::{Extent, LONGEST, Pointer, Syscall};
use super::program::{self, read};
use super::raw::{self, make};
use super::structures;
use crate::own_stacks::OwnStacks;
use crate::pinned::{IoVec, PinnedPages};
use crate::user_memory::{MOST_BYTES, MOST_PARTS, read_parts};
use core::ops::Range;
use libc::{c_int, c_long, mmsghdr, msghdr};

/// Most bytes in a path, with its NUL (`PATH_MAX`).
const PATH: usize = 4096;
/// Most bytes in the address of a socket (`sockaddr_storage`).
const ADDRESS: usize = 128;
/// Most bytes of control data in a message that a kernel accepts by default (`net.core.optmem_max`).
const CONTROL_DATA: usize = 128 << 10;

/// A trapped call with the arguments that the program passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallRequest<'a> {
    pub(super) number: c_long,
    pub(super) arguments: [usize; 6],
    /// Bit set of the signals that the program has blocked.
    pub(super) blocked: u64,
    /// The calling thread's stacks that are pinned already.
    pub(super) own: &'a OwnStacks,
}

/// Makes the call and returns the kernel's result. Where a structure of the program is unreadable the call is made
/// unchanged, so that the kernel reports the error.
pub(super) fn serve(call: &Syscall, asked: CallRequest<'_>) -> isize {
    let arguments = asked.arguments;
    let mut pinned = PinnedPages::new(asked.own);
    let mut buffers = None;
    for pointer in call.pointers {
        match pointer.extent {
            Extent::Buffer(_) | Extent::Vector(_) | Extent::Message | Extent::Messages(_) => {
                buffers = Some(pointer);
            }
            extent => {
                let len = len_of(extent, arguments[pointer.argument], &arguments, &mut pinned);
                pinned.all(arguments[pointer.argument], len, pointer.written);
            }
        }
    }
    match buffers.map(|pointer| (pointer, pointer.extent)) {
        Some((pointer, Extent::Buffer(count))) => buffer(asked, pointer, count),
        Some((pointer, Extent::Vector(count))) => vector(asked, pointer, count),
        Some((pointer, Extent::Message)) => message(asked, arguments[pointer.argument], pointer.written),
        Some((pointer, Extent::Messages(count))) => messages(asked, pointer, count),
        _ => asked.make(),
    }
}

/// Returns how many bytes from the address `at` on the kernel uses, except of buffers, and pins what they point to.
fn len_of(extent: Extent, at: usize, arguments: &[usize; 6], pinned: &mut PinnedPages<'_>) -> usize {
    match extent {
        Extent::Bytes(len) => len,
        Extent::Text => program::text(at, pinned),
        Extent::Path(count) => arguments[count].min(PATH),
        Extent::Request(request) => structures::of_request(arguments[request] as u32, at, pinned),
        Extent::SocketOption(size) => {
            let len = number(arguments[size]).min(LONGEST);
            structures::pin_nested(at, len, false, pinned);
            len
        }
        Extent::SizedAt(len) => {
            let [_, level, option, ..] = arguments.map(|argument| argument as c_int);
            // The length of a filter is a number of instructions.
            let is_filter = level == libc::SOL_SOCKET && option == libc::SO_GET_FILTER;
            let unit = if is_filter { size_of::<libc::sock_filter>() } else { 1 };
            (program::read_number(arguments[len], pinned).unwrap_or(0) * unit).min(LONGEST)
        }
        Extent::Command(command) => 32 * usize::from(takes_structure(arguments[command])),
        Extent::Deadline(operation) => 16 * usize::from(waits(arguments[operation])),
        Extent::SecondWord(operation) => 4 * usize::from(uses_second_word(arguments[operation])),
        Extent::Times(count, unit) => (number(arguments[count]) * unit).min(LONGEST),
        Extent::Sized(before, size) => before + arguments[size].min(LONGEST),
        Extent::Polled(count) => polled(arguments[count]) * size_of::<libc::pollfd>(),
        Extent::Descriptors(count) => number(arguments[count]).min(descriptors()).div_ceil(64) * 8,
        Extent::Mask => {
            if let Some([set, len]) = read(at, pinned) {
                pinned.all(set, len.min(size_of::<u64>()), false);
            }
            0
        }
        Extent::Buffer(_) | Extent::Vector(_) | Extent::Message | Extent::Messages(_) => 0,
    }
}

/// Truncates a count to 32 bits, as the kernel does for an `int` or `unsigned`. The kernel itself refuses negative
/// counts.
const fn number(count: usize) -> usize {
    count as u32 as usize
}

/// Returns the number of `pollfd` that the kernel reads: 0 if there are more than the process may have descriptors.
fn polled(count: usize) -> usize {
    let count = number(count);
    if count <= descriptors() { count } else { 0 }
}

/// Returns the number of descriptors that the process may have.
fn descriptors() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let arguments = [0, libc::RLIMIT_NOFILE as usize, 0, (&raw mut limit).addr(), 0, 0];
    // SAFETY: the structure is ours and lives until the call ends.
    unsafe { raw::call(libc::SYS_prlimit64, arguments) };
    limit.rlim_cur as usize
}

impl CallRequest<'_> {
    /// Makes the call unchanged.
    fn make(&self) -> isize {
        make(self.number, self.arguments, self.blocked)
    }

    /// Makes buffers resident while `pinned` lives. Returns `false` if they exceed the pages that may be pinned.
    fn holds(&self, parts: &[IoVec], written: bool, pinned: &mut PinnedPages<'_>) -> bool {
        let buffers = Buffers { parts, written, own: self.own };
        let Some(bytes) = buffers.bytes() else {
            // The kernel refuses such a length, or takes it for a shorter one (`recvfrom`), as it takes any length
            // above `MOST_BYTES`. The message then lies in the first pages.
            pinned.first(parts, 0, MOST_BYTES, written);
            return true;
        };
        let first = pinned.first(parts, 0, bytes, written);
        first.iter().map(|part| part.len).sum::<usize>() == bytes
    }
}

/// Serves a call with one buffer.
fn buffer(asked: CallRequest<'_>, pointer: &Pointer, count: usize) -> isize {
    let CallRequest { number, mut arguments, blocked, own } = asked;
    let parts = [IoVec { at: arguments[pointer.argument], len: arguments[count] }];
    let mut pinned = PinnedPages::new(own);
    if asked.holds(&parts, pointer.written, &mut pinned) {
        return asked.make();
    }
    drop(pinned);
    let buffers = Buffers { parts: &parts, written: pointer.written, own };
    buffers.transfer(number, &asked.arguments, &mut |parts, done| {
        let part = parts.first().copied().unwrap_or_default();
        (arguments[pointer.argument], arguments[count]) = (part.at, part.len);
        if matches!(number, libc::SYS_pread64 | libc::SYS_pwrite64) {
            arguments[3] = asked.arguments[3].wrapping_add(done);
        }
        make(number, arguments, blocked)
    })
}

/// Serves a call with an array of buffers.
fn vector(asked: CallRequest<'_>, pointer: &Pointer, count: usize) -> isize {
    let CallRequest { number, mut arguments, blocked, own } = asked;
    let mut pinned = PinnedPages::new(own);
    let Some(parts) = read_parts(arguments[pointer.argument], arguments[count], &mut pinned) else {
        return asked.make();
    };
    if asked.holds(&parts, pointer.written, &mut pinned) {
        return asked.make();
    }
    drop(pinned);
    let buffers = Buffers { parts: &parts, written: pointer.written, own };
    buffers.transfer(number, &asked.arguments, &mut |parts, done| {
        (arguments[pointer.argument], arguments[count]) = (parts.as_ptr().addr(), parts.len());
        let at = asked.arguments[3];
        arguments[3] = match number {
            libc::SYS_preadv | libc::SYS_pwritev => at.wrapping_add(done),
            // -1 stands for the present offset of the file.
            libc::SYS_preadv2 | libc::SYS_pwritev2 if at != usize::MAX => at.wrapping_add(done),
            _ => at,
        };
        make(number, arguments, blocked)
    })
}

/// Serves a call with one message: `sendmsg`, `recvmsg`.
fn message(asked: CallRequest<'_>, at: usize, written: bool) -> isize {
    let CallRequest { number, mut arguments, blocked, own } = asked;
    let mut pinned = PinnedPages::new(own);
    let Some((header, parts)) = header(at, written, &mut pinned) else { return asked.make() };
    if asked.holds(&parts, written, &mut pinned) {
        return asked.make();
    }
    drop(pinned);
    let buffers = Buffers { parts: &parts, written, own };
    let mut first = None;
    let answer = buffers.transfer(number, &asked.arguments, &mut |parts, done| {
        let mut pinned = PinnedPages::new(own);
        let mut now = header;
        (now[IOV], now[IOV_LEN]) = (parts.as_ptr().addr(), parts.len());
        if done == 0 {
            around(&now, written, &mut pinned);
        } else {
            // Address and control data belong to the first byte of a message.
            (now[NAME], now[NAME_LEN], now[CONTROL], now[CONTROL_LEN]) = (0, 0, 0, 0);
        }
        arguments[1] = now.as_mut_ptr().addr();
        let answer = make(number, arguments, blocked);
        first.get_or_insert(now);
        answer
    });
    if let Some([_, name_len, _, _, _, control_len, flags]) = first
        && written
        && answer >= 0
    {
        // The kernel writes to these fields only.
        for (field, value) in [(NAME_LEN, name_len), (CONTROL_LEN, control_len), (FLAGS, flags)] {
            if !program::write(at + field * size_of::<usize>(), &[value], &mut PinnedPages::new(own)) {
                return -(libc::EFAULT as isize);
            }
        }
    }
    answer
}

// Indices of the fields of a `msghdr`, in words.
const NAME: usize = 0;
const NAME_LEN: usize = 1;
const IOV: usize = 2;
const IOV_LEN: usize = 3;
const CONTROL: usize = 4;
const CONTROL_LEN: usize = 5;
const FLAGS: usize = 6;
const HEADER: usize = size_of::<msghdr>() / size_of::<usize>();

/// Reads a `msghdr` and its array of buffers, and makes all but the buffers resident. Returns `None` if it is
/// unreadable or the kernel refuses it.
fn header(at: usize, written: bool, pinned: &mut PinnedPages<'_>) -> Option<([usize; HEADER], Vec<IoVec>)> {
    pinned.all(at, size_of::<msghdr>(), written);
    let header = read::<HEADER>(at, pinned)?;
    around(&header, written, pinned);
    let parts = read_parts(header[IOV], header[IOV_LEN], pinned)?;
    Some((header, parts))
}

/// Makes the address and the control data of a message resident.
fn around(header: &[usize; HEADER], written: bool, pinned: &mut PinnedPages<'_>) {
    pinned.all(header[NAME], number(header[NAME_LEN]).min(ADDRESS), written);
    pinned.all(header[CONTROL], header[CONTROL_LEN].min(CONTROL_DATA), written);
}

/// Serves a call with several messages (`sendmmsg`, `recvmmsg`). If they cannot all be resident at once, they are sent
/// or received one by one.
fn messages(asked: CallRequest<'_>, pointer: &Pointer, count: usize) -> isize {
    const MESSAGE: usize = size_of::<mmsghdr>();
    let (at, written, own) = (asked.arguments[pointer.argument], pointer.written, asked.own);
    let many = number(asked.arguments[count]).min(MOST_PARTS);
    let mut pinned = PinnedPages::new(own);
    pinned.all(at, many * MESSAGE, true);
    let headers = (0..many).map(|one| at.wrapping_add(one * MESSAGE));
    let together: Option<Vec<IoVec>> = headers
        .clone()
        .map(|at| header(at, written, &mut pinned).map(|(_, parts)| parts))
        .try_fold(Vec::new(), |mut all, parts| {
            all.extend(parts?);
            Some(all)
        });
    // If a header is unreadable, the messages before it are still sent or received, one by one.
    if together.is_some_and(|parts| asked.holds(&parts, written, &mut pinned)) {
        let mut now = asked;
        now.arguments[count] = many;
        return now.make();
    }
    drop(pinned);
    let (one_by_one, flags) = if written {
        (libc::SYS_recvmsg, asked.arguments[3])
    } else {
        (libc::SYS_sendmsg, asked.arguments[3])
    };
    let (mut flags, once) =
        (flags & !(libc::MSG_WAITFORONE as usize), flags & libc::MSG_WAITFORONE as usize != 0);
    let mut done = 0;
    for header in headers {
        let one = CallRequest {
            number: one_by_one,
            arguments: [asked.arguments[0], header, flags, 0, 0, 0],
            ..asked
        };
        let answer = message(one, header, written);
        if answer < 0 {
            return if done > 0 { done } else { answer };
        }
        let len_at = header + core::mem::offset_of!(mmsghdr, msg_len);
        if !program::write(len_at, &[answer.cast_unsigned()], &mut PinnedPages::new(own)) {
            return if done > 0 { done } else { -(libc::EFAULT as isize) };
        }
        done += 1;
        if once {
            flags |= libc::MSG_DONTWAIT as usize;
        }
        // With a timeout, fewer messages than asked for may be received.
        if written && asked.arguments[4] != 0 {
            break;
        }
    }
    done
}

fn takes_structure(command: usize) -> bool {
    // The first and the last command about hints of a write's lifetime (`F_GET_RW_HINT` to `F_SET_FILE_RW_HINT`).
    const HINTS: core::ops::RangeInclusive<c_int> = 1035..=1038;
    // The first and the last command about owners of signals (`F_SETOWN_EX` to `F_GETOWNER_UIDS`).
    const OWNERS: core::ops::RangeInclusive<c_int> = 15..=17;
    let command = command as c_int;
    if HINTS.contains(&command) || OWNERS.contains(&command) {
        return true;
    }
    matches!(
        command,
        libc::F_GETLK
            | libc::F_SETLK
            | libc::F_SETLKW
            | libc::F_OFD_GETLK
            | libc::F_OFD_SETLK
            | libc::F_OFD_SETLKW
    )
}

fn waits(operation: usize) -> bool {
    let operation = operation as c_int & libc::FUTEX_CMD_MASK;
    matches!(
        operation,
        libc::FUTEX_WAIT
            | libc::FUTEX_WAIT_BITSET
            | libc::FUTEX_LOCK_PI
            | libc::FUTEX_LOCK_PI2
            | libc::FUTEX_WAIT_REQUEUE_PI
    )
}

fn uses_second_word(operation: usize) -> bool {
    let operation = operation as c_int & libc::FUTEX_CMD_MASK;
    matches!(
        operation,
        libc::FUTEX_REQUEUE
            | libc::FUTEX_CMP_REQUEUE
            | libc::FUTEX_WAKE_OP
            | libc::FUTEX_WAIT_REQUEUE_PI
            | libc::FUTEX_CMP_REQUEUE_PI
    )
}

/// Implements `sigaltstack`. The new stack is pinned for good, since the kernel may write to it at any time.
pub(super) fn signal_stack(asked: CallRequest<'_>) -> isize {
    let [new, old, ..] = asked.arguments;
    let mut pinned = PinnedPages::new(asked.own);
    pinned.all(old, size_of::<libc::stack_t>(), true);
    let stack = read::<3>(new, &mut pinned);
    let answer = asked.make();
    if answer == 0
        && let Some([at, flags, len]) = stack
        && flags as c_int & libc::SS_DISABLE == 0
    {
        keep_stack(&raw::used_of_stack(at, len), asked.own);
    }
    answer
}

/// Pins the signal stack that the calling thread has at present for good.
pub(super) fn keep_present_signal_stack() {
    // SAFETY: all zero bytes are a valid structure.
    let mut stack: libc::stack_t = unsafe { core::mem::zeroed() };
    let arguments = [0, (&raw mut stack).addr(), 0, 0, 0, 0];
    // SAFETY: the structure is ours and lives until the call ends.
    let asked = unsafe { raw::call(libc::SYS_sigaltstack, arguments) };
    if asked == 0 && stack.ss_flags & libc::SS_DISABLE == 0 {
        keep_stack(&raw::used_of_stack(stack.ss_sp.addr(), stack.ss_size), &OwnStacks::NONE);
    }
}

fn keep_stack(used: &Range<usize>, own: &OwnStacks) {
    let mut stack = PinnedPages::new(own);
    stack.all(used.start, used.len(), true);
    stack.forever();
}
