//! A trapped call, made with its memory here.

use super::calls::{Call, Extent, Pointer};
use super::stay::{Stay, make, word};
use core::ops::Range;
use libc::{c_int, c_long, iovec, mmsghdr, msghdr};

/// The longest path.
const PATH: usize = 4096;
/// Entries of an `iovec` array that one call gets; it then says that it did less.
const MOST_PARTS: usize = 64;

/// The longest datagram over a network. Cut, it would be two: buffers of up to this length are used as a whole.
const DATAGRAM: usize = 1 << 16;

/// Makes the call and returns the kernel's answer. `blocked`: signals of the program; `here`: addresses that stay
/// anyway. A handler of ours that runs there, on a stack for signals, makes calls itself (where the clock is one),
/// perhaps with the pager's lock held: nobody may ask the pager then.
pub(super) fn serve(call: &Call, arguments: [usize; 6], blocked: u64, here: &Range<usize>) -> isize {
    let mut stays = Vec::new();
    let mut cut = None;
    for pointer in call.pointers {
        let at = arguments[pointer.argument];
        if at == 0 {
            continue;
        }
        let mut all = |len| {
            if !(here.contains(&at) && len <= here.end - at) {
                Stay::all(at, len, pointer.written, &mut stays);
            }
        };
        match pointer.extent {
            Extent::Bytes(len) => all(len),
            Extent::Text => all(text(at)),
            Extent::Request(request) => all(request_size(arguments[request])),
            Extent::Command(command) => all(if takes_structure(arguments[command]) { 32 } else { 0 }),
            Extent::Deadline(operation) => all(if waits(arguments[operation]) { 16 } else { 0 }),
            Extent::Buffer(count) if arguments[count] <= DATAGRAM => all(arguments[count]),
            Extent::Buffer(count) => cut = Some((pointer, count)),
            Extent::Times(count, unit) => all(arguments[count].saturating_mul(unit)),
            Extent::Vector(count) => {
                all(arguments[count].saturating_mul(size_of::<iovec>()));
                return with_vector(call, pointer, arguments, blocked);
            }
            Extent::Message => {
                all(size_of::<msghdr>());
                message(at, pointer.written, &mut stays);
            }
            Extent::Messages(count) => {
                all(arguments[count].saturating_mul(size_of::<mmsghdr>()));
                for number in 0..arguments[count] {
                    message(at + number * size_of::<mmsghdr>(), pointer.written, &mut stays);
                }
            }
        }
    }
    match cut {
        Some((pointer, count)) => in_pieces(call.number, arguments, pointer, count, blocked),
        None => make(call.number, arguments, blocked),
    }
}

/// The bytes of a C string, so far as a path goes; what lies behind it may not be there.
fn text(at: usize) -> usize {
    // SAFETY: the program says that there is a C string.
    let byte = |at| unsafe { core::ptr::with_exposed_provenance::<u8>(at).read() };
    (0..PATH).find(|&len| byte(at + len) == 0).map_or(PATH, |len| len + 1)
}

/// Bytes that a request of `ioctl` uses. Where it uses none, anything may stand in the argument.
fn request_size(request: usize) -> usize {
    const TERMINALS: usize = 0x54;
    match request >> 16 & 0x3fff {
        0 if request >> 8 & 0xff == TERMINALS => 64,
        size => size,
    }
}

fn takes_structure(command: usize) -> bool {
    matches!(
        command as c_int,
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
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI | libc::FUTEX_LOCK_PI2
    )
}

/// More than can stay is used piece by piece. Programs take it for granted that a file gives and takes
/// all; whoever reads from elsewhere must take what there is, since more may never come.
fn in_pieces(
    number: c_long,
    mut arguments: [usize; 6],
    pointer: &Pointer,
    count: usize,
    blocked: u64,
) -> isize {
    let (start, len) = (arguments[pointer.argument], arguments[count]);
    let mut done = 0;
    loop {
        let stay = Stay::some(start + done, len - done, pointer.written);
        (arguments[pointer.argument], arguments[count]) = (start + done, stay.bytes);
        let answer = make(number, arguments, blocked);
        let bytes = usize::try_from(answer).unwrap_or(0);
        if answer < 0 && done > 0 {
            return done.cast_signed();
        }
        done += bytes;
        if matches!(number, libc::SYS_pread64 | libc::SYS_pwrite64) {
            arguments[3] += bytes;
        }
        let goes_on = !pointer.written || number == libc::SYS_pread64 || is_file(number, arguments[0]);
        if answer < 0 || bytes < stay.bytes || done == len || !goes_on {
            return if answer < 0 { answer } else { done.cast_signed() };
        }
    }
}

fn is_file(number: c_long, fd: usize) -> bool {
    // SAFETY: all zero bytes are a valid `stat`.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: the structure is ours; the kernel checks the descriptor. Not the C library's name: it is
    // filtered, and needs no looking at.
    let answer = unsafe { super::raw::call(libc::SYS_fstat, [fd, (&raw mut about).addr(), 0, 0, 0, 0]) };
    number == libc::SYS_read && answer == 0 && about.st_mode & libc::S_IFMT == libc::S_IFREG
}

/// A call with an array of buffers: with as many of them as can stay.
fn with_vector(call: &Call, pointer: &Pointer, mut arguments: [usize; 6], blocked: u64) -> isize {
    let Extent::Vector(count) = pointer.extent else { return -(libc::EINVAL as isize) };
    let mut parts = [(0, 0); MOST_PARTS];
    let (array, mut stays, mut used) = (arguments[pointer.argument], Vec::new(), 0);
    for (number, place) in parts.iter_mut().enumerate().take(arguments[count]) {
        let (at, len) = part(array + number * size_of::<iovec>());
        let stay = Stay::some(at, len, pointer.written);
        *place = (at, stay.bytes);
        used = number + 1;
        let whole = stay.bytes == len;
        stays.push(stay);
        if !whole {
            break;
        }
    }
    (arguments[pointer.argument], arguments[count]) = (parts.as_ptr().addr(), used);
    make(call.number, arguments, blocked)
}

/// What an `iovec` points to.
fn part(iovec: usize) -> (usize, usize) {
    // SAFETY: the program says that there is an `iovec`, which is two words.
    unsafe { (word(iovec), word(iovec + size_of::<usize>())) }
}

/// Has what a `msghdr` points to here.
fn message(at: usize, written: bool, stays: &mut Vec<Stay>) {
    let field = |offset: usize| {
        // SAFETY: the program says that there is a `msghdr`.
        unsafe { word(at + offset) }
    };
    let name_len = field(core::mem::offset_of!(msghdr, msg_namelen)) & u32::MAX as usize;
    let iov = field(core::mem::offset_of!(msghdr, msg_iov));
    let iov_len = field(core::mem::offset_of!(msghdr, msg_iovlen));
    let mut all = |at: usize, len| {
        if at != 0 && len != 0 {
            Stay::all(at, len, written, stays);
        }
    };
    all(field(core::mem::offset_of!(msghdr, msg_name)), name_len);
    all(
        field(core::mem::offset_of!(msghdr, msg_control)),
        field(core::mem::offset_of!(msghdr, msg_controllen)),
    );
    all(iov, iov_len.saturating_mul(size_of::<iovec>()));
    for number in 0..iov_len {
        let (at, len) = part(iov + number * size_of::<iovec>());
        all(at, len);
    }
}

/// The stack for signals stays for good: the kernel writes to it when it pleases.
pub(super) fn signal_stack(arguments: [usize; 6], blocked: u64) -> isize {
    const STACK: usize = size_of::<libc::stack_t>();
    let mut stays = Vec::new();
    for (argument, written) in [(0, false), (1, true)] {
        if arguments[argument] != 0 {
            Stay::all(arguments[argument], STACK, written, &mut stays);
        }
    }
    let answer = make(libc::SYS_sigaltstack, arguments, blocked);
    if answer == 0 && arguments[0] != 0 {
        let mut stack = Vec::new();
        // SAFETY: the kernel has read a `stack_t` there: its first word and its last one.
        let (at, len) = unsafe {
            (
                word(arguments[0] + core::mem::offset_of!(libc::stack_t, ss_sp)),
                word(arguments[0] + core::mem::offset_of!(libc::stack_t, ss_size)),
            )
        };
        if at != 0 {
            Stay::all(at, len, true, &mut stack);
        }
        stack.into_iter().for_each(Stay::forever);
    }
    answer
}
