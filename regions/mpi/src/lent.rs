//! Maps the memory that a server on this machine lends into the process of rank 0.

use crate::message::Hello;
use crate::serve::{LEAD, MARK, NAME};
use core::ffi::c_int;
use largesse_pages::SPAN;
use largesse_pages::shared::{MemoryFile, SharedMapping};
use std::fs::File;
use std::os::fd::IntoRawFd as _;

/// The memory of a server, mapped into this process.
#[derive(Debug)]
pub(crate) struct Lent {
    file: MemoryFile,
    mapping: SharedMapping,
}

impl Lent {
    /// Maps the memory file that a server announced. Returns `None` if this process cannot: on another machine, in
    /// another container, or where processes of one user may not see each other.
    pub(crate) fn find(hello: Hello) -> Option<Lent> {
        let (process, fd) = hello.file;
        let path = format!("/proc/{process}/fd/{fd}");
        // On another machine the descriptor may name anything, such as a device that must not be opened.
        let name = std::fs::read_link(&path).ok()?;
        let of_server = name.to_str()?.strip_prefix("/memfd:")?.starts_with(NAME.to_str().ok()?);
        if !of_server {
            return None;
        }
        let file = File::options().read(true).write(true).open(path).ok()?;
        let file = MemoryFile::received(file.into_raw_fd()).ok()?;
        if file.len() != LEAD + hello.stripes as usize * SPAN {
            return None;
        }
        let mapping = file.map(true).ok()?;
        // SAFETY: inside the mapping; the server wrote it before its message, and no process does afterwards.
        let mark = unsafe { mapping.start().add(MARK).cast::<u32>().read() };
        (mark == hello.mark).then_some(Lent { file, mapping })
    }

    /// Returns the memory file's descriptor, with which other processes can map it as well.
    pub(crate) const fn descriptor(&self) -> c_int {
        self.file.descriptor()
    }

    /// Returns the address of the `len` bytes from offset `at` on. Panics if they are outside of the mapping.
    pub(crate) fn at(&self, at: u64, len: usize) -> *mut u8 {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        assert!(at <= self.mapping.len() && len <= self.mapping.len() - at, "outside of what is lent");
        // SAFETY: inside the mapping, as was just checked.
        unsafe { self.mapping.start().as_ptr().add(at) }
    }
}
