//! The sockets over which a program and its agent exchange shared memory, and their names. Both sides close them
//! afterwards.

use core::ffi::c_int;
use core::mem::{MaybeUninit, zeroed};
use core::ptr::{from_mut, from_ref, null_mut};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::path::Path;

/// Largest number of descriptors in one message.
pub(crate) const MOST: usize = 64;
/// Largest number of pending connections at each socket of an agent.
pub(crate) const BACKLOG: c_int = 64;
/// Size in bytes of the control messages of one message: descriptors and credentials, each with its header.
const CONTROL: usize = 512;
/// Number of hexadecimal digits of the key in an agent's name.
const DIGITS: usize = 32;
/// Path of the socket, relative to its folder.
const SOCKET: &str = "/agent";
/// Prefix of the name of an agent's folder, and of the name of an abstract socket.
const PREFIX: &str = "largesse-";

/// The address of an agent: a random key, usually at the end of the path of the folder that holds its socket. The key
/// alone names the fallback, an abstract socket in this network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

/// A socket's address and its length in bytes.
type Address = (libc::sockaddr_un, libc::socklen_t);

impl Name {
    /// Returns a new name with a random key, and without a folder.
    pub fn new() -> Result<Name> {
        let mut random = [0_u8; DIGITS / 2];
        // SAFETY: the buffer has the length given.
        if unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) } != 16 {
            return Err(Error::last_os_error());
        }
        Ok(Name(random.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Returns the same key with a folder directly below `base`. Returns `None` if `base` is not an absolute path in
    /// UTF-8, or if the socket's path would be longer than 107 bytes.
    pub(crate) fn below(&self, base: &Path) -> Option<Name> {
        Name::parse(base.join(format!("{PREFIX}{}", self.key())).to_str()?)
    }

    /// Parses a name printed by `Display`: a key, or the absolute path of a folder that ends in one. Returns `None` for
    /// any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Name> {
        let (before, key) = text.split_at_checked(text.len().checked_sub(DIGITS)?)?;
        let is_key = key.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_folder = before.starts_with('/')
            && before.strip_suffix(PREFIX).is_some_and(|base| base.ends_with('/'))
            && address(&[text, SOCKET]).is_some();
        (is_key && (before.is_empty() || is_folder)).then(|| Name(text.to_owned()))
    }

    /// Removes the socket and its folder from the file system. Can be called in a signal handler and before `_exit`.
    pub fn withdraw(&self) {
        let Some(folder) = self.folder() else { return };
        let path = |parts: &[&str]| address(parts).map(|(address, _)| address.sun_path);
        if let (Some(socket), Some(folder)) = (path(&[folder, SOCKET]), path(&[folder])) {
            // SAFETY: both paths end with a zero byte and outlive the calls.
            unsafe {
                libc::unlink(socket.as_ptr());
                libc::rmdir(folder.as_ptr());
            }
        }
    }

    /// Returns the path of the folder that holds the socket, if the name has one.
    pub(crate) fn folder(&self) -> Option<&str> {
        (self.0.len() > DIGITS).then_some(&self.0)
    }

    /// Returns the address of the socket in the folder, if the name has a folder.
    pub(crate) fn in_folder(&self) -> Option<Address> {
        address(&[self.folder()?, SOCKET])
    }

    /// Returns the address of the abstract socket, which needs no file system.
    pub(crate) fn fallback(&self) -> Option<Address> {
        address(&["\0", PREFIX, self.key()])
    }

    fn key(&self) -> &str {
        &self.0[self.0.len() - DIGITS..]
    }
}

/// Returns the address made of the joined `parts`; `None` if they leave no room for a final zero. Allocates nothing.
fn address(parts: &[&str]) -> Option<Address> {
    // SAFETY: all-zero bytes are a valid address.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).ok()?;
    let used: usize = parts.iter().map(|part| part.len()).sum();
    let bytes = parts.iter().flat_map(|part| part.bytes());
    address.sun_path.iter_mut().zip(bytes).for_each(|(to, from)| *to = libc::c_char::from_ne_bytes([from]));
    let len = core::mem::offset_of!(libc::sockaddr_un, sun_path) + used;
    (used < address.sun_path.len()).then_some((address, libc::socklen_t::try_from(len).ok()?))
}

impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

fn socket(flags: c_int) -> Result<OwnedFd> {
    // SAFETY: the call takes only numbers.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | flags, 0) };
    owned(fd)
}

fn owned(fd: c_int) -> Result<OwnedFd> {
    // SAFETY: the kernel has just created the descriptor for this process.
    if fd < 0 { Err(Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

fn checked(rc: c_int) -> Result<()> {
    if rc < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

fn flag(socket: &OwnedFd, option: c_int) -> Result<()> {
    let (on, len) = (1_i32, libc::socklen_t::try_from(size_of::<i32>()).unwrap_or_default());
    // SAFETY: the descriptor is open, and the number outlives the call.
    checked(unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, from_ref(&on).cast(), len)
    })
}

/// Listens at this address. [`accept`] does not block on the result.
pub(crate) fn listen((address, len): Address) -> Result<OwnedFd> {
    let socket = socket(libc::SOCK_NONBLOCK)?;
    // SAFETY: the descriptor is open, and the address outlives the call.
    checked(unsafe { libc::bind(socket.as_raw_fd(), from_ref(&address).cast(), len) })?;
    // SAFETY: the descriptor is open.
    checked(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
    Ok(socket)
}

/// Accepts the oldest pending connection. Returns an error if there is none.
pub(crate) fn accept(listener: &OwnedFd) -> Result<OwnedFd> {
    // SAFETY: the descriptor is open, and no address is requested.
    owned(unsafe { libc::accept4(listener.as_raw_fd(), null_mut(), null_mut(), libc::SOCK_CLOEXEC) })
}

/// Connects to the agent of the given name, which must belong to this user or to root. Tries the abstract socket if the
/// folder cannot be reached, as in a chroot or another mount namespace.
pub(crate) fn connect(name: &Name) -> Result<OwnedFd> {
    if let Some(Ok(socket)) = name.in_folder().map(connect_to) {
        return Ok(socket);
    }
    connect_to(name.fallback().ok_or(ErrorKind::InvalidInput)?)
}

fn connect_to((address, len): Address) -> Result<OwnedFd> {
    let socket = socket(0)?;
    // Messages carry their sender's credentials only if this is set before they are sent.
    with_senders(&socket)?;
    // SAFETY: the descriptor is open, and the address outlives the call.
    checked(unsafe { libc::connect(socket.as_raw_fd(), from_ref(&address).cast(), len) })?;
    if !trusted(peer(&socket)?.uid) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    Ok(socket)
}

/// Makes later messages on this socket arrive with the credentials of the sending process.
pub(crate) fn with_senders(socket: &OwnedFd) -> Result<()> {
    flag(socket, libc::SO_PASSCRED)
}

/// Returns the credentials of the process at the other end.
pub(crate) fn peer(socket: &OwnedFd) -> Result<libc::ucred> {
    // SAFETY: all-zero bytes are valid credentials.
    let mut who: libc::ucred = unsafe { zeroed() };
    let mut len = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or_default();
    // SAFETY: the descriptor is open, and the structure has the length given.
    checked(unsafe {
        let into = from_mut(&mut who).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, into, &raw mut len)
    })?;
    Ok(who)
}

/// Returns whether the user is this process's user, or root.
pub(crate) fn trusted(uid: libc::uid_t) -> bool {
    // SAFETY: the call has no preconditions.
    uid == 0 || uid == unsafe { libc::geteuid() }
}

/// Sends one message, with at most [`MOST`] descriptors.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8], descriptors: &[RawFd]) -> Result<()> {
    let mut control = MaybeUninit::<[u64; CONTROL / 8]>::zeroed();
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all-zero bytes are an empty message.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let len = u32::try_from(size_of_val(descriptors)).unwrap_or(u32::MAX);
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: the control buffer is aligned, zeroed, and longer than a header with `MOST` descriptors.
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

/// A received message: its length in bytes, its descriptors, and the process number of its sender (0 if unknown).
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) len: usize,
    pub(crate) descriptors: Vec<OwnedFd>,
    pub(crate) pid: i32,
}

/// Receives one message into `into`. Its length is 0 if the other side has closed the connection.
pub(crate) fn receive(socket: &OwnedFd, into: &mut [u8]) -> Result<Received> {
    let mut control = MaybeUninit::<[u64; CONTROL / 8]>::zeroed();
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all-zero bytes are an empty message.
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
    // SAFETY: the kernel wrote whole control messages into the buffer, and their lengths.
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
    fn messages_carry_descriptors_and_sender() {
        let name = Name::new().unwrap();
        let listener = listen(name.fallback().unwrap()).unwrap();
        let here = connect(&Name::parse(&name.to_string()).unwrap()).unwrap();
        send(&here, b"hello", &[0, 1]).unwrap();
        let there = accept(&listener).unwrap();
        with_senders(&there).unwrap();
        assert_eq!(accept(&listener).unwrap_err().kind(), ErrorKind::WouldBlock);
        let mut buffer = [0; 16];
        let got = receive(&there, &mut buffer).unwrap();
        assert_eq!((&buffer[..got.len], got.descriptors.len()), (&b"hello"[..], 2));
        assert_eq!(got.pid, i32::try_from(std::process::id()).unwrap());
        drop(here);
        assert_eq!(receive(&there, &mut buffer).unwrap().len, 0);
    }

    #[test]
    fn malformed_names_are_refused() {
        let key = "0123456789abcdef".repeat(2);
        let fits = format!("/{}/largesse-{key}", "x".repeat(107 - 1 - 1 - 9 - 32 - 6));
        for right in [key.clone(), format!("/largesse-{key}"), format!("/a b/ä/largesse-{key}"), fits.clone()]
        {
            assert_eq!(Name::parse(&right).map(|name| name.to_string()), Some(right));
        }
        for wrong in [
            String::new(),
            "0".to_owned(),
            "/tmp/x".to_owned(),
            "g".repeat(32),
            "A".repeat(32),
            "0".repeat(33),
            "ä".repeat(16) + "0",
            format!("/{key}"),
            format!("largesse-{key}"),
            format!("tmp/largesse-{key}"),
            format!("/tmp/xlargesse-{key}"),
            format!("/x{fits}"),
        ] {
            assert_eq!(Name::parse(&wrong), None, "{wrong}");
        }
        assert!(connect(&Name::new().unwrap()).is_err());
    }

    #[test]
    fn too_long_folders_are_refused() {
        let name = Name::new().unwrap();
        assert_eq!(name.below(Path::new("/tmp")).unwrap().to_string(), format!("/tmp/largesse-{name}"));
        let longest = format!("/{}", "x".repeat(107 - 1 - 1 - 9 - 32 - 6));
        assert!(name.below(longest.as_ref()).is_some());
        assert_eq!(name.below(format!("{longest}x").as_ref()), None);
        assert_eq!(name.below("relative".as_ref()), None);
    }
}
