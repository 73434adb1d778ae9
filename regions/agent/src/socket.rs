//! The moment of getting to know each other: a socket with a name that no file has, which is closed again
//! once both sides have the memory they share.

use core::ffi::c_int;
use core::mem::{MaybeUninit, zeroed};
use core::ptr::{from_mut, from_ref, null_mut};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

/// Descriptors in one message.
pub(crate) const MOST: usize = 64;
/// Control messages of one message: descriptors and credentials, each with its header.
const CONTROL: usize = 512;

/// Where an agent can be reached: unguessable, and of this machine's network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// A name nobody has.
    pub fn new() -> Result<Name> {
        let mut random = [0_u8; 16];
        // SAFETY: the buffer has the length given.
        if unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) } != 16 {
            return Err(Error::last_os_error());
        }
        Ok(Name(random.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// As `new` made it, from somebody who was told.
    #[must_use]
    pub fn parse(text: &str) -> Option<Name> {
        let known = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        known.then(|| Name(text.to_owned()))
    }

    fn address(&self) -> (libc::sockaddr_un, libc::socklen_t) {
        // SAFETY: zero bytes are an address.
        let mut address: libc::sockaddr_un = unsafe { zeroed() };
        address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or_default();
        let name = format!("\0largesse-{}", self.0);
        for (to, from) in address.sun_path.iter_mut().zip(name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        let len = core::mem::offset_of!(libc::sockaddr_un, sun_path) + name.len();
        (address, libc::socklen_t::try_from(len).unwrap_or_default())
    }
}

impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

fn socket() -> Result<OwnedFd> {
    // SAFETY: numbers only.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) };
    owned(fd)
}

fn owned(fd: c_int) -> Result<OwnedFd> {
    // SAFETY: a descriptor that the kernel just made for us.
    if fd < 0 { Err(Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

fn checked(rc: c_int) -> Result<()> {
    if rc < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

fn flag(socket: &OwnedFd, option: c_int) -> Result<()> {
    let (on, len) = (1_i32, libc::socklen_t::try_from(size_of::<i32>()).unwrap_or_default());
    // SAFETY: our own descriptor and a number that outlives the call.
    checked(unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, from_ref(&on).cast(), len)
    })
}

pub(crate) fn listen(name: &Name) -> Result<OwnedFd> {
    let socket = socket()?;
    let (address, len) = name.address();
    // SAFETY: our own descriptor; the address outlives the call.
    checked(unsafe { libc::bind(socket.as_raw_fd(), from_ref(&address).cast(), len) })?;
    // SAFETY: our own descriptor.
    checked(unsafe { libc::listen(socket.as_raw_fd(), 64) })?;
    Ok(socket)
}

/// Somebody who knocks; their messages come with who sent them.
pub(crate) fn accept(listener: &OwnedFd) -> Result<OwnedFd> {
    // SAFETY: our own descriptor; no address is asked for.
    let socket =
        owned(unsafe { libc::accept4(listener.as_raw_fd(), null_mut(), null_mut(), libc::SOCK_CLOEXEC) })?;
    flag(&socket, libc::SO_PASSCRED)?;
    Ok(socket)
}

/// To the agent of that name; it must be of this very user, or of root.
pub(crate) fn connect(name: &Name) -> Result<OwnedFd> {
    let socket = socket()?;
    // What is sent says who sent it, even if the other side has not come to ask for it.
    flag(&socket, libc::SO_PASSCRED)?;
    let (address, len) = name.address();
    // SAFETY: our own descriptor; the address outlives the call.
    checked(unsafe { libc::connect(socket.as_raw_fd(), from_ref(&address).cast(), len) })?;
    if !trusted(peer(&socket)?.uid) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    Ok(socket)
}

/// Who is at the other end.
pub(crate) fn peer(socket: &OwnedFd) -> Result<libc::ucred> {
    // SAFETY: zero bytes are credentials.
    let mut who: libc::ucred = unsafe { zeroed() };
    let mut len = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or_default();
    // SAFETY: our own descriptor; a structure of the length given.
    checked(unsafe {
        let into = from_mut(&mut who).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, into, &raw mut len)
    })?;
    Ok(who)
}

/// This process's own user, or root.
pub(crate) fn trusted(uid: libc::uid_t) -> bool {
    // SAFETY: no preconditions.
    uid == 0 || uid == unsafe { libc::geteuid() }
}

/// One message, with descriptors.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8], descriptors: &[RawFd]) -> Result<()> {
    let mut control = MaybeUninit::<[u64; CONTROL / 8]>::zeroed();
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: zero bytes are an empty message.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let len = u32::try_from(size_of_val(descriptors)).unwrap_or(u32::MAX);
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: the control buffer is aligned, zeroed and longer than one header with `MOST` numbers.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(len) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(len) as _;
            let to = libc::CMSG_DATA(header).cast::<RawFd>();
            to.copy_from_nonoverlapping(descriptors.as_ptr(), descriptors.len().min(MOST));
        }
    }
    // SAFETY: the message points to locals that outlive the call.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// What came: bytes, descriptors, and the process that sent them, if the socket asks for it.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) len: usize,
    pub(crate) descriptors: Vec<OwnedFd>,
    pub(crate) pid: i32,
}

/// One message; none bytes when the other side has closed.
pub(crate) fn receive(socket: &OwnedFd, into: &mut [u8]) -> Result<Received> {
    let mut control = MaybeUninit::<[u64; CONTROL / 8]>::zeroed();
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: zero bytes are an empty message.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    let got = loop {
        // SAFETY: the message points to locals that outlive the call.
        let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        match usize::try_from(got) {
            Ok(got) => break got,
            Err(_) => {
                let error = Error::last_os_error();
                if error.kind() != ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    };
    let mut received = Received { len: got, descriptors: Vec::with_capacity(MOST), pid: 0 };
    // SAFETY: the kernel wrote whole control messages into the buffer and says how long they are.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            let data = libc::CMSG_DATA(header);
            let len = ((*header).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            match ((*header).cmsg_level, (*header).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                    for number in 0..len / size_of::<RawFd>() {
                        let fd = data.cast::<RawFd>().add(number).read_unaligned();
                        received.descriptors.push(OwnedFd::from_raw_fd(fd));
                    }
                }
                (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) => {
                    received.pid = data.cast::<libc::ucred>().read_unaligned().pid;
                }
                _ => {}
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok(received)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_carry_descriptors_and_who_sent_them() {
        let name = Name::new().unwrap();
        let listener = listen(&name).unwrap();
        let here = connect(&Name::parse(&name.to_string()).unwrap()).unwrap();
        send(&here, b"hello", &[0, 1]).unwrap();
        let there = accept(&listener).unwrap();
        let mut buffer = [0; 16];
        let got = receive(&there, &mut buffer).unwrap();
        assert_eq!((&buffer[..got.len], got.descriptors.len()), (&b"hello"[..], 2));
        assert_eq!(got.pid, i32::try_from(std::process::id()).unwrap());
        drop(here);
        assert_eq!(receive(&there, &mut buffer).unwrap().len, 0);
    }

    #[test]
    fn only_names_are_names() {
        for wrong in ["", "0", "/tmp/x", &"g".repeat(32), &"A".repeat(32), &"0".repeat(33)] {
            assert_eq!(Name::parse(wrong), None, "{wrong}");
        }
        assert!(connect(&Name::new().unwrap()).is_err());
    }
}
