//! A trapped call, made with its memory resident.

use super::buffers::Buffers;
use super::calls::{Call, Extent, LONGEST, Pointer};
use super::pinned::{Part, Stays, make};
use super::program::{self, read, read_array};
use super::raw;
use core::ops::Range;
use libc::{c_int, c_long, mmsghdr, msghdr};

/// The longest path.
const PATH: usize = 4096;
/// The longest array of buffers, and of messages (`UIO_MAXIOV`).
const MOST_PARTS: usize = 1024;
/// The longest address of a socket (`sockaddr_storage`).
const ADDRESS: usize = 128;
/// The longest control data of a message that any kernel takes unless told otherwise (`net.core.optmem_max`).
const CONTROL_DATA: usize = 128 << 10;

/// A trapped call: what the program asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) number: c_long,
    pub(super) arguments: [usize; 6],
    /// The signals that the program has blocked.
    pub(super) blocked: u64,
    /// The stack for signals, which is resident anyway (see [`Stays`]).
    pub(super) own: &'a Range<usize>,
}

/// Makes the call and returns the kernel's answer. Where a structure of the program cannot be read the call is made
/// as it is, and the kernel says what is wrong with it.
pub(super) fn serve(call: &Call, asked: Asked<'_>) -> isize {
    let arguments = asked.arguments;
    let mut stays = Stays::new(asked.own);
    let mut buffers = None;
    for pointer in call.pointers {
        let at = arguments[pointer.argument];
        let len = match pointer.extent {
            Extent::Bytes(len) => len,
            Extent::Text => program::text(at, &mut stays),
            Extent::Path(count) => arguments[count].min(PATH),
            Extent::Request(request) => request_size(arguments[request]),
            Extent::Command(command) => 32 * usize::from(takes_structure(arguments[command])),
            Extent::Deadline(operation) => 16 * usize::from(waits(arguments[operation])),
            Extent::Times(count, unit) => (number(arguments[count]) * unit).min(LONGEST),
            Extent::Polled(count) => polled(arguments[count]) * size_of::<libc::pollfd>(),
            Extent::Descriptors(count) => number(arguments[count]).min(descriptors()).div_ceil(64) * 8,
            Extent::Mask => {
                if let Some([set, len]) = read(at, &mut stays) {
                    stays.all(set, len.min(size_of::<u64>()), false);
                }
                0
            }
            Extent::Buffer(_) | Extent::Vector(_) | Extent::Message | Extent::Messages(_) => {
                buffers = Some(pointer);
                0
            }
        };
        stays.all(at, len, pointer.written);
    }
    match buffers.map(|pointer| (pointer, pointer.extent)) {
        Some((pointer, Extent::Buffer(count))) => buffer(asked, pointer, count),
        Some((pointer, Extent::Vector(count))) => vector(asked, pointer, count),
        Some((pointer, Extent::Message)) => message(asked, arguments[pointer.argument], pointer.written),
        Some((pointer, Extent::Messages(count))) => messages(asked, pointer, count),
        _ => asked.make(),
    }
}

/// A count that the kernel takes for an `int` or an `unsigned`. It refuses negative ones, wherever the memory is.
const fn number(count: usize) -> usize {
    count as u32 as usize
}

/// Descriptors that the kernel polls: none where there are more than it allows.
fn polled(count: usize) -> usize {
    let count = number(count);
    if count <= descriptors() { count } else { 0 }
}

/// How many descriptors the process may have.
fn descriptors() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let arguments = [0, libc::RLIMIT_NOFILE as usize, 0, (&raw mut limit).addr(), 0, 0];
    // SAFETY: the structure is ours, and lives until the call ends.
    unsafe { raw::call(libc::SYS_prlimit64, arguments) };
    limit.rlim_cur as usize
}

impl Asked<'_> {
    /// Makes the call as the program asked for it.
    fn make(&self) -> isize {
        make(self.number, self.arguments, self.blocked)
    }

    /// Makes buffers resident for as long as `stays` lives. `false`: they are more than may be.
    fn holds(&self, parts: &[Part], written: bool, stays: &mut Stays<'_>) -> bool {
        let buffers = Buffers { parts, written, own: self.own };
        // The kernel refuses what is no length.
        buffers.bytes().is_none_or(|bytes| {
            let first = stays.first(parts, 0, bytes, written);
            first.iter().map(|part| part.len).sum::<usize>() == bytes
        })
    }
}

/// A call with one buffer.
fn buffer(asked: Asked<'_>, pointer: &Pointer, count: usize) -> isize {
    let Asked { number, mut arguments, blocked, own } = asked;
    let parts = [Part { at: arguments[pointer.argument], len: arguments[count] }];
    let mut stays = Stays::new(own);
    if asked.holds(&parts, pointer.written, &mut stays) {
        return asked.make();
    }
    drop(stays);
    let buffers = Buffers { parts: &parts, written: pointer.written, own };
    buffers.carry(number, &asked.arguments, &mut |parts, done| {
        let part = parts.first().copied().unwrap_or_default();
        (arguments[pointer.argument], arguments[count]) = (part.at, part.len);
        if matches!(number, libc::SYS_pread64 | libc::SYS_pwrite64) {
            arguments[3] = asked.arguments[3].wrapping_add(done);
        }
        make(number, arguments, blocked)
    })
}

/// A call with an array of buffers.
fn vector(asked: Asked<'_>, pointer: &Pointer, count: usize) -> isize {
    let Asked { number, mut arguments, blocked, own } = asked;
    let mut stays = Stays::new(own);
    let Some(parts) = parts(arguments[pointer.argument], arguments[count], &mut stays) else {
        return asked.make();
    };
    if asked.holds(&parts, pointer.written, &mut stays) {
        return asked.make();
    }
    drop(stays);
    let buffers = Buffers { parts: &parts, written: pointer.written, own };
    buffers.carry(number, &asked.arguments, &mut |parts, done| {
        (arguments[pointer.argument], arguments[count]) = (parts.as_ptr().addr(), parts.len());
        let at = asked.arguments[3];
        arguments[3] = match number {
            libc::SYS_preadv | libc::SYS_pwritev => at.wrapping_add(done),
            // -1 stands for where the file is.
            libc::SYS_preadv2 | libc::SYS_pwritev2 if at != usize::MAX => at.wrapping_add(done),
            _ => at,
        };
        make(number, arguments, blocked)
    })
}

/// The buffers of an array; `None` where it cannot be read, or is longer than the kernel takes.
fn parts(at: usize, count: usize, stays: &mut Stays<'_>) -> Option<Vec<Part>> {
    let array = (count <= MOST_PARTS).then(|| read_array::<2>(at, count, stays))??;
    Some(array.into_iter().map(|[at, len]| Part { at, len }).collect())
}

/// A call with a message: `sendmsg`, `recvmsg`.
fn message(asked: Asked<'_>, at: usize, written: bool) -> isize {
    let Asked { number, mut arguments, blocked, own } = asked;
    let mut stays = Stays::new(own);
    let Some((header, parts)) = header(at, written, &mut stays) else { return asked.make() };
    if asked.holds(&parts, written, &mut stays) {
        return asked.make();
    }
    drop(stays);
    let buffers = Buffers { parts: &parts, written, own };
    let mut first = None;
    let answer = buffers.carry(number, &asked.arguments, &mut |parts, done| {
        let mut stays = Stays::new(own);
        let mut now = header;
        (now[IOV], now[IOV_LEN]) = (parts.as_ptr().addr(), parts.len());
        if done == 0 {
            around(&now, written, &mut stays);
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
        // The kernel writes to these alone.
        for (field, value) in [(NAME_LEN, name_len), (CONTROL_LEN, control_len), (FLAGS, flags)] {
            if !program::write(at + field * size_of::<usize>(), &[value], &mut Stays::new(own)) {
                return -(libc::EFAULT as isize);
            }
        }
    }
    answer
}

/// The words of a `msghdr`.
const NAME: usize = 0;
const NAME_LEN: usize = 1;
const IOV: usize = 2;
const IOV_LEN: usize = 3;
const CONTROL: usize = 4;
const CONTROL_LEN: usize = 5;
const FLAGS: usize = 6;
const HEADER: usize = size_of::<msghdr>() / size_of::<usize>();

/// A `msghdr` and its buffers, with all but these resident; `None` where it cannot be read, or the kernel refuses it.
fn header(at: usize, written: bool, stays: &mut Stays<'_>) -> Option<([usize; HEADER], Vec<Part>)> {
    stays.all(at, size_of::<msghdr>(), written);
    let header = read::<HEADER>(at, stays)?;
    around(&header, written, stays);
    let parts = parts(header[IOV], header[IOV_LEN], stays)?;
    Some((header, parts))
}

/// Makes the address and the control data of a message resident.
fn around(header: &[usize; HEADER], written: bool, stays: &mut Stays<'_>) {
    stays.all(header[NAME], number(header[NAME_LEN]).min(ADDRESS), written);
    stays.all(header[CONTROL], header[CONTROL_LEN].min(CONTROL_DATA), written);
}

/// A call with many messages: `sendmmsg`, `recvmmsg`. Where all cannot be resident together they are sent or received one by one.
fn messages(asked: Asked<'_>, pointer: &Pointer, count: usize) -> isize {
    const MESSAGE: usize = size_of::<mmsghdr>();
    let (at, written, own) = (asked.arguments[pointer.argument], pointer.written, asked.own);
    let many = number(asked.arguments[count]).min(MOST_PARTS);
    let mut stays = Stays::new(own);
    stays.all(at, many * MESSAGE, true);
    let headers = (0..many).map(|one| at.wrapping_add(one * MESSAGE));
    let together: Option<Vec<Part>> = headers
        .clone()
        .map(|at| header(at, written, &mut stays).map(|(_, parts)| parts))
        .try_fold(Vec::new(), |mut all, parts| {
            all.extend(parts?);
            Some(all)
        });
    // Where a header cannot be read, the messages before it are sent or received all the same: one by one.
    if together.is_some_and(|parts| asked.holds(&parts, written, &mut stays)) {
        let mut now = asked;
        now.arguments[count] = many;
        return now.make();
    }
    drop(stays);
    let (one_by_one, flags) = if written {
        (libc::SYS_recvmsg, asked.arguments[3])
    } else {
        (libc::SYS_sendmsg, asked.arguments[3])
    };
    let (mut flags, once) =
        (flags & !(libc::MSG_WAITFORONE as usize), flags & libc::MSG_WAITFORONE as usize != 0);
    let mut done = 0;
    for header in headers {
        let one =
            Asked { number: one_by_one, arguments: [asked.arguments[0], header, flags, 0, 0, 0], ..asked };
        let answer = message(one, header, written);
        if answer < 0 {
            return if done > 0 { done } else { answer };
        }
        let len_at = header + core::mem::offset_of!(mmsghdr, msg_len);
        if !program::write(len_at, &[answer.cast_unsigned()], &mut Stays::new(own)) {
            return if done > 0 { done } else { -(libc::EFAULT as isize) };
        }
        done += 1;
        if once {
            flags |= libc::MSG_DONTWAIT as usize;
        }
        // With a time limit fewer may be received.
        if written && asked.arguments[4] != 0 {
            break;
        }
    }
    done
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

/// The stack for signals stays for good: the kernel writes to it when it pleases.
pub(super) fn signal_stack(asked: Asked<'_>) -> isize {
    let [new, old, ..] = asked.arguments;
    let mut stays = Stays::new(asked.own);
    stays.all(old, size_of::<libc::stack_t>(), true);
    let stack = read::<3>(new, &mut stays);
    let answer = asked.make();
    if answer == 0
        && let Some([at, flags, len]) = stack
        && flags as c_int & libc::SS_DISABLE == 0
    {
        let used = raw::used_of_stack(at, len);
        let mut stack = Stays::new(asked.own);
        stack.all(used.start, used.len(), true);
        stack.forever();
    }
    answer
}
