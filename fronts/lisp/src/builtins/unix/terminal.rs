//! Implements the modes of terminals, and the flags of open files and descriptors.
//!
//! The modes of a terminal are a string in the kernel's layout: the flags of input, output, control and local modes of
//! four bytes each, the line discipline, and 19 special characters.

use super::outcome::{int_or, refused};
use crate::builtin::{Args, Builtin, builtin};
use crate::builtins::stream::with_file;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value};
use rustix::fd::BorrowedFd;
use rustix::fs::OFlags;
use rustix::io::{Errno, FdFlags};
use rustix::process::Pid;
use rustix::termios::{
    self, ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, QueueSelector,
    SpecialCodeIndex, Termios,
};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("UNIX:TCGETS", 1, 2, modes),
    builtin("UNIX:TCGETA", 1, 2, modes),
    builtin("UNIX:TCGETATTR", 1, 2, modes),
    builtin("UNIX:TCSETS", 2, 2, |cx, args| set_modes(cx, args, 1, OptionalActions::Now)),
    builtin("UNIX:TCSETA", 2, 2, |cx, args| set_modes(cx, args, 1, OptionalActions::Now)),
    builtin("UNIX:TCSETSW", 2, 2, |cx, args| set_modes(cx, args, 1, OptionalActions::Drain)),
    builtin("UNIX:TCSETAW", 2, 2, |cx, args| set_modes(cx, args, 1, OptionalActions::Drain)),
    builtin("UNIX:TCSETSF", 2, 2, |cx, args| set_modes(cx, args, 1, OptionalActions::Flush)),
    builtin("UNIX:TCSETAF", 2, 2, |cx, args| set_modes(cx, args, 1, OptionalActions::Flush)),
    builtin("UNIX:TCSETATTR", 2, 3, |cx, args| {
        let action = match args.given(2).and(args[1].as_fixnum()) {
            Some(1) => OptionalActions::Drain,
            Some(2) => OptionalActions::Flush,
            _ => OptionalActions::Now,
        };
        set_modes(cx, args, args.len() - 1, action)
    }),
    builtin("UNIX:FCNTL", 3, 3, fcntl),
    builtin("UNIX:IOCTL", 2, 3, |cx, args| {
        let command = int_or(cx, args, 1, 0)?;
        ioctl(cx, args, command, 2)
    }),
    builtin("UNIX:IOCTL_", 3, 3, numbered_ioctl),
    builtin("UNIX:IOCTL_R", 4, 5, numbered_ioctl),
    builtin("UNIX:IOCTL_W", 4, 5, numbered_ioctl),
    builtin("UNIX:IOCTL_WR", 4, 5, numbered_ioctl),
];

/// The special characters in the order of the kernel.
const CODES: [SpecialCodeIndex; 17] = [
    SpecialCodeIndex::VINTR,
    SpecialCodeIndex::VQUIT,
    SpecialCodeIndex::VERASE,
    SpecialCodeIndex::VKILL,
    SpecialCodeIndex::VEOF,
    SpecialCodeIndex::VTIME,
    SpecialCodeIndex::VMIN,
    SpecialCodeIndex::VSWTC,
    SpecialCodeIndex::VSTART,
    SpecialCodeIndex::VSTOP,
    SpecialCodeIndex::VSUSP,
    SpecialCodeIndex::VEOL,
    SpecialCodeIndex::VREPRINT,
    SpecialCodeIndex::VDISCARD,
    SpecialCodeIndex::VWERASE,
    SpecialCodeIndex::VLNEXT,
    SpecialCodeIndex::VEOL2,
];
/// Bytes of the modes before the special characters.
const CODES_FROM: usize = 17;
/// Bytes of the modes.
const MODES: usize = 36;

/// Applies a call to the descriptor of a stream. A stream without a descriptor refuses it as a closed one does.
fn on_descriptor<R>(
    cx: &mut Context,
    stream: Value,
    call: impl FnOnce(BorrowedFd<'_>) -> Result<R, Errno>,
) -> Result<Result<R, Errno>, Exit> {
    Ok(with_file(cx, stream, |descriptor| Ok(call(descriptor)))?.unwrap_or(Err(Errno::BADF)))
}

fn number_or_refused(result: Result<i64, Errno>) -> Value {
    match result {
        Ok(number) => Value::fixnum(number),
        Err(cause) => refused(&cause.into()),
    }
}

fn encoded(modes: &Termios) -> [u8; MODES] {
    let mut bytes = [0; MODES];
    let flags = [
        modes.input_modes.bits(),
        modes.output_modes.bits(),
        modes.control_modes.bits(),
        modes.local_modes.bits(),
    ];
    for (index, flags) in flags.into_iter().enumerate() {
        bytes[index * 4..][..4].copy_from_slice(&flags.to_ne_bytes());
    }
    bytes[CODES_FROM - 1] = modes.line_discipline;
    for (index, code) in CODES.into_iter().enumerate() {
        bytes[CODES_FROM + index] = modes.special_codes[code];
    }
    bytes
}

/// Changes modes to those of a string of at least [`MODES`] bytes; the speed stays.
fn decode(bytes: &[u8], modes: &mut Termios) {
    let flags = |index: usize| u32::from_ne_bytes(std::array::from_fn(|at| bytes[index * 4 + at]));
    modes.input_modes = InputModes::from_bits_retain(flags(0));
    modes.output_modes = OutputModes::from_bits_retain(flags(1));
    modes.control_modes = ControlModes::from_bits_retain(flags(2));
    modes.local_modes = LocalModes::from_bits_retain(flags(3));
    modes.line_discipline = bytes[CODES_FROM - 1];
    for (index, code) in CODES.into_iter().enumerate() {
        modes.special_codes[code] = bytes[CODES_FROM + index];
    }
}

/// Returns a string of the modes of a terminal, the given one if it is long enough, or the negative number of the error.
fn modes(cx: &mut Context, args: Args<'_>) -> Answer {
    let modes = match on_descriptor(cx, args[0], |descriptor| termios::tcgetattr(descriptor))? {
        Ok(modes) => encoded(&modes),
        Err(cause) => return Ok(refused(&cause.into())),
    };
    match args.given(1) {
        Some(buffer) if buffer.is(ObjectKind::String) && buffer.length() >= MODES => {
            buffer.bytes_mut()[..MODES].copy_from_slice(&modes);
            Ok(buffer)
        }
        Some(buffer) if !buffer.is_nil() => {
            cx.type_error(&format!("string of {MODES} characters or more"), buffer)
        }
        _ => cx.string_from(&modes),
    }
}

fn set_modes(cx: &mut Context, args: Args<'_>, index: usize, action: OptionalActions) -> Answer {
    let wanted = args.string(cx, index)?.bytes().to_vec();
    if wanted.len() < MODES {
        return cx.type_error(&format!("string of {MODES} characters or more"), args[index]);
    }
    let done = on_descriptor(cx, args[0], |descriptor| {
        let mut modes = termios::tcgetattr(descriptor)?;
        decode(&wanted, &mut modes);
        termios::tcsetattr(descriptor, action, &modes)
    })?;
    Ok(number_or_refused(done.map(|()| 0)))
}

/// Reads or changes the flags of a descriptor (commands 1 and 2) or of an open file (3 and 4).
fn fcntl(cx: &mut Context, args: Args<'_>) -> Answer {
    let (command, argument) = (int_or(cx, args, 1, 0)?, int_or(cx, args, 2, 0)?.cast_unsigned());
    let done = on_descriptor(cx, args[0], |descriptor| match command {
        libc::F_GETFD => Ok(i64::from(rustix::io::fcntl_getfd(descriptor)?.bits())),
        libc::F_SETFD => rustix::io::fcntl_setfd(descriptor, FdFlags::from_bits_retain(argument)).map(|()| 0),
        libc::F_GETFL => Ok(i64::from(rustix::fs::fcntl_getfl(descriptor)?.bits())),
        libc::F_SETFL => rustix::fs::fcntl_setfl(descriptor, OFlags::from_bits_retain(argument)).map(|()| 0),
        _ => Err(Errno::INVAL),
    })?;
    Ok(number_or_refused(done))
}

/// Implements `(unix:ioctl_ stream group number)` and its like with a buffer: the command has a group and a number.
fn numbered_ioctl(cx: &mut Context, args: Args<'_>) -> Answer {
    let command = (int_or(cx, args, 1, 0)? & 0xff) << 8 | int_or(cx, args, 2, 0)? & 0xff;
    ioctl(cx, args, command, 3)
}

/// Applies one of the commands for terminals and pipes; the kernel's others are refused, since they write to memory of
/// which only the driver knows the size. Numbers are the first four bytes of the buffer, or the buffer itself.
fn ioctl(cx: &mut Context, args: Args<'_>, command: i32, buffer: usize) -> Answer {
    let command = command.cast_unsigned();
    let buffer = args.or_nil(buffer);
    let number = match buffer.as_fixnum() {
        Some(number) => number as i32,
        None if buffer.is(ObjectKind::String) && buffer.length() >= 4 => {
            i32::from_ne_bytes(std::array::from_fn(|at| buffer.bytes()[at]))
        }
        None => 0,
    };
    let mut told: Vec<u8> = Vec::new();
    let known = |wanted: libc::Ioctl| command == wanted as u32;
    let done = on_descriptor(cx, args[0], |descriptor| {
        if known(libc::TCGETS) {
            told.extend(encoded(&termios::tcgetattr(descriptor)?));
        } else if known(libc::FIONREAD) {
            told.extend((rustix::io::ioctl_fionread(descriptor)? as u32).to_ne_bytes());
        } else if known(libc::FIONBIO) {
            rustix::io::ioctl_fionbio(descriptor, number != 0)?;
        } else if known(libc::TIOCGWINSZ) {
            let size = termios::tcgetwinsize(descriptor)?;
            told.extend(
                [size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel]
                    .map(u16::to_ne_bytes)
                    .as_flattened(),
            );
        } else if known(libc::TIOCGPGRP) {
            told.extend(termios::tcgetpgrp(descriptor)?.as_raw_pid().to_ne_bytes());
        } else if known(libc::TIOCSPGRP) {
            termios::tcsetpgrp(descriptor, Pid::from_raw(number).ok_or(Errno::INVAL)?)?;
        } else if known(libc::TCFLSH) {
            let queue = [QueueSelector::IFlush, QueueSelector::OFlush, QueueSelector::IOFlush];
            let queue = queue.into_iter().nth(number.cast_unsigned() as usize).ok_or(Errno::INVAL)?;
            termios::tcflush(descriptor, queue)?;
        } else {
            return Err(Errno::INVAL);
        }
        Ok(0)
    })?;
    if buffer.is(ObjectKind::String) {
        let count = told.len().min(buffer.length());
        buffer.bytes_mut()[..count].copy_from_slice(&told[..count]);
    }
    Ok(number_or_refused(done))
}
