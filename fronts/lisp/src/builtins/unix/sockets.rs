//! Implements sockets of the internet and of this machine.
//!
//! A socket is a number of `descriptors.rs`, which is none of the process's descriptors. A socket address is a string in
//! C's layout: family (2 bytes), then port (2, high byte first) and host (4), or a path.

use super::descriptors::{held, hold, release};
use super::outcome::{done, int_or, refused};
use crate::builtin::{Args, Builtin, builtin};
use crate::builtins::stream::pipe_stream;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType,
    accept_with, acceptfrom_with, bind, connect, listen, recvfrom, sendto, socket_with, sockopt,
};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddrV4, ToSocketAddrs as _};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("UNIX:SOCKET", 2, 3, socket),
    builtin("UNIX:BIND", 2, 2, |cx, args| {
        let (socket, address) = (held(cx, args[0])?, address(cx, args[1])?);
        // A server that starts again may use its port at once.
        let _ = sockopt::set_socket_reuseaddr(&socket, true);
        succeeded(cx, bind(&socket, &address))
    }),
    builtin("UNIX:LISTEN", 1, 2, |cx, args| {
        let socket = held(cx, args[0])?;
        let backlog = int_or(cx, args, 1, 3)?;
        succeeded(cx, listen(&socket, backlog))
    }),
    builtin("UNIX:CONNECT", 2, 3, connect_to),
    builtin("UNIX:ACCEPT", 1, 1, accept),
    builtin("UNIX:SENDTO", 3, 5, send_to),
    builtin("UNIX:RECVFROM", 1, 4, receive_from),
    builtin("UNIX:UCLOSE", 1, 1, |cx, args| {
        release(cx, args[0])?;
        done(cx, Ok::<(), Errno>(()))
    }),
    builtin("LARGESSE:SOCKET-ENDS", 1, 1, |cx, args| {
        let socket = held(cx, args[0])?;
        let copies = socket.try_clone().and_then(|reader| Ok((reader, socket.try_clone()?)));
        let (reader, writer) = cx.io(copies, "socket")?;
        pipe_stream(cx, File::from(reader), File::from(writer))
    }),
    builtin("UNIX:GETHOSTBYNAME", 1, 1, host_by_name),
    builtin("UNIX:GETSERVBYNAME", 1, 2, service_by_name),
];

/// Time between two looks at Ctrl-C while a call waits.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Returns t or 0, as EusLisp's calls on sockets do, or the negative number of the error.
fn succeeded(_: &mut Context, result: Result<(), Errno>) -> Answer {
    Ok(match result {
        Ok(()) => Value::fixnum(0),
        Err(cause) => refused(&cause.into()),
    })
}

/// Decodes a socket address.
fn address(cx: &mut Context, value: Value) -> Result<SocketAddrAny, Exit> {
    if value.is(ObjectKind::String) && value.length() >= 3 {
        let bytes = value.bytes();
        let family = u16::from_le_bytes([bytes[0], bytes[1]]);
        if family == AddressFamily::INET.as_raw() && bytes.len() >= 8 {
            let host = Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7]);
            return Ok(SocketAddrV4::new(host, u16::from_be_bytes([bytes[2], bytes[3]])).into());
        }
        let path = bytes[2..].split(|byte| *byte == 0).next().unwrap_or_default();
        if family == AddressFamily::UNIX.as_raw()
            && let Ok(address) = SocketAddrUnix::new(path)
        {
            return Ok(address.into());
        }
    }
    cx.type_error("socket address", value)
}

/// Waits until a socket can be read, or written to with `PollFlags::OUT`. Returns whether it can before `limit`.
fn wait(cx: &mut Context, socket: &OwnedFd, what: PollFlags, limit: Option<Duration>) -> Result<bool, Exit> {
    let start = Instant::now();
    loop {
        let ready =
            cx.blocked(|| poll(&mut [PollFd::new(socket, what)], Some(&PAUSE)).is_ok_and(|count| count > 0));
        if ready {
            return Ok(true);
        }
        if limit.is_some_and(|limit| start.elapsed() >= limit) {
            return Ok(false);
        }
        cx.poll()?;
    }
}

/// Implements `(unix:socket domain type [protocol])`: returns the number of a new socket.
fn socket(cx: &mut Context, args: Args<'_>) -> Answer {
    let (domain, kind) = (int_or(cx, args, 0, 0)?, int_or(cx, args, 1, 0)?);
    let (Ok(domain), Ok(kind)) = (u16::try_from(domain), u32::try_from(kind)) else {
        return Ok(refused(&Errno::INVAL.into()));
    };
    let protocol = NonZeroU32::new(int_or(cx, args, 2, 0)?.cast_unsigned()).map(Protocol::from_raw);
    let (domain, kind) = (AddressFamily::from_raw(domain), SocketType::from_raw(kind));
    Ok(match socket_with(domain, kind, SocketFlags::CLOEXEC, protocol) {
        Ok(socket) => hold(cx, socket),
        Err(cause) => refused(&cause.into()),
    })
}

/// Implements `(unix:connect socket address [seconds])`. Without an answer in time, the error is ETIMEDOUT.
fn connect_to(cx: &mut Context, args: Args<'_>) -> Answer {
    let (socket, address) = (held(cx, args[0])?, address(cx, args[1])?);
    let limit = match args.given(2) {
        Some(seconds) if !seconds.is_nil() => {
            Some(Duration::try_from_secs_f64(args.float(cx, 2)?).unwrap_or_default())
        }
        _ => None,
    };
    let started = rustix::io::ioctl_fionbio(&socket, true).and_then(|()| connect(&socket, &address));
    let result = match started {
        Err(Errno::INPROGRESS) => {
            if wait(cx, &socket, PollFlags::OUT, limit)? {
                sockopt::socket_error(&socket).and_then(|state| state)
            } else {
                Err(Errno::TIMEDOUT)
            }
        }
        result => result,
    };
    let blocking = rustix::io::ioctl_fionbio(&socket, false);
    succeeded(cx, result.and(blocking))
}

/// Waits for a client of a socket that listens; returns `(socket address)`.
fn accept(cx: &mut Context, args: Args<'_>) -> Answer {
    let socket = held(cx, args[0])?;
    wait(cx, &socket, PollFlags::IN, None)?;
    let accepted = match cx.blocked(|| acceptfrom_with(&socket, SocketFlags::CLOEXEC)) {
        Ok((client, from)) => Ok((client, from.and_then(|from| SocketAddrV4::try_from(from).ok()))),
        Err(Errno::OPNOTSUPP) => {
            cx.blocked(|| accept_with(&socket, SocketFlags::CLOEXEC)).map(|client| (client, None))
        }
        Err(cause) => Err(cause),
    };
    match accepted {
        Ok((client, from)) => {
            let client = hold(cx, client);
            let from = cx.string_from(&encoded(from))?;
            cx.list(&[client, from])
        }
        Err(cause) => Ok(refused(&cause.into())),
    }
}

/// Returns an address in C's layout, that of no host without one.
fn encoded(address: Option<SocketAddrV4>) -> [u8; 16] {
    let mut bytes = [0; 16];
    if let Some(address) = address {
        bytes[..2].copy_from_slice(&AddressFamily::INET.as_raw().to_le_bytes());
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        bytes[4..8].copy_from_slice(&address.ip().octets());
    }
    bytes
}

/// Implements `(unix:sendto socket address text [length flags])`: returns the number of bytes sent.
fn send_to(cx: &mut Context, args: Args<'_>) -> Answer {
    let (socket, address) = (held(cx, args[0])?, address(cx, args[1])?);
    let mut text = crate::builtins::string::bytes(cx, args[2])?;
    if args.given(3).is_some_and(|length| !length.is_nil()) {
        text.truncate(args.size(cx, 3)?);
    }
    let flags = SendFlags::from_bits_truncate(int_or(cx, args, 4, 0)?.cast_unsigned());
    wait(cx, &socket, PollFlags::OUT, None)?;
    Ok(match cx.blocked(|| sendto(&socket, &text, flags, &address)) {
        Ok(count) => Value::fixnum(count as i64),
        Err(cause) => refused(&cause.into()),
    })
}

/// Implements `(unix:recvfrom socket [text from flags])`: returns the message, or the number of its bytes if there is a
/// string `text` for them. The sender's address is written to the string `from`.
fn receive_from(cx: &mut Context, args: Args<'_>) -> Answer {
    /// Longest message that is received without a string for it.
    const LONGEST: usize = 65536;
    let socket = held(cx, args[0])?;
    let text = args.or_nil(1);
    let room = if text.is(ObjectKind::String) { text.length() } else { LONGEST };
    let flags = RecvFlags::from_bits_truncate(int_or(cx, args, 3, 0)?.cast_unsigned());
    wait(cx, &socket, PollFlags::IN, None)?;
    let mut bytes = vec![0; room];
    let (count, from) = match cx.blocked(|| recvfrom(&socket, bytes.as_mut_slice(), flags)) {
        Ok((count, _, from)) => (count, from),
        Err(cause) => return Ok(refused(&cause.into())),
    };
    if args.or_nil(2).is(ObjectKind::String) && args[2].length() >= 16 {
        let from = from.and_then(|from| SocketAddrV4::try_from(from).ok());
        args[2].bytes_mut()[..16].copy_from_slice(&encoded(from));
    }
    if text.is(ObjectKind::String) {
        text.bytes_mut()[..count].copy_from_slice(&bytes[..count]);
        return Ok(Value::fixnum(count as i64));
    }
    cx.string_from(&bytes[..count])
}

/// Implements `(unix:gethostbyname name)`: returns `(bytes-of-the-address family)`, or 0 for an unknown host.
fn host_by_name(cx: &mut Context, args: Args<'_>) -> Answer {
    let name = crate::builtins::stream::path_of(cx, args[0])?;
    let found = cx.blocked(|| (name.as_str(), 0).to_socket_addrs().map(Iterator::collect::<Vec<_>>));
    let host = found.unwrap_or_default().into_iter().find_map(|address| match address {
        std::net::SocketAddr::V4(address) => Some(*address.ip()),
        std::net::SocketAddr::V6(_) => None,
    });
    let Some(host) = host else { return Ok(Value::fixnum(0)) };
    let bytes = cx.string_from(&host.octets())?;
    cx.list(&[bytes, Value::fixnum(i64::from(AddressFamily::INET.as_raw()))])
}

/// Implements `(unix:getservbyname name [protocol])`: returns `(port protocol)`, or 0 for an unknown service.
fn service_by_name(cx: &mut Context, args: Args<'_>) -> Answer {
    let name = crate::builtins::stream::path_of(cx, args[0])?;
    let wanted = match args.given(1) {
        Some(protocol) if !protocol.is_nil() => Some(crate::builtins::stream::path_of(cx, protocol)?),
        _ => None,
    };
    let read = cx.blocked(|| std::fs::read_to_string("/etc/services"));
    let services = match read {
        Ok(services) => services,
        Err(cause) => return cx.error(ErrorClass::Io, format!("/etc/services: {cause}")),
    };
    for line in services.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let (Some(first), Some(place)) = (words.next(), words.next()) else { continue };
        let Some((port, protocol)) = place.split_once('/') else { continue };
        let known = first == name || words.any(|alias| alias == name);
        if known
            && wanted.as_deref().is_none_or(|wanted| wanted == protocol)
            && let Ok(port) = port.parse::<u16>()
        {
            let protocol = cx.string(protocol)?;
            return cx.list(&[Value::fixnum(i64::from(port)), protocol]);
        }
    }
    Ok(Value::fixnum(0))
}
