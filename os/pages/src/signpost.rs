//! Creates named mappings that other processes find in `/proc/PID/maps`.

use crate::{MapError, MapOp, sys};
use core::{ffi::CStr, ptr::NonNull};

/// Writes `bytes` to a memory file called `name` and keeps it mapped, read-only, until the process ends. The
/// descriptor is closed, so that the kernel frees the file then.
pub fn publish(name: &CStr, bytes: &[u8]) -> Result<NonNull<u8>, MapError> {
    sys::publish(name, bytes).map_err(|errno| MapError { op: MapOp::Publish, len: bytes.len(), errno })
}

/// Creates the file `path` with `len` zero bytes and maps it, readable and writable, until the process ends. Disk
/// space is allocated, so that a write through the mapping cannot fail for lack of it. The descriptor is closed.
pub fn share_file(path: &CStr, len: usize) -> Result<NonNull<u8>, MapError> {
    sys::share_file(path, len).map_err(|errno| MapError { op: MapOp::Publish, len, errno })
}

#[cfg(all(test, not(miri)))]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn published_name_appears_in_maps() {
        let at = publish(c"largesse-test", b"hello").unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.contains("/memfd:largesse-test")).unwrap();
        assert!(line.starts_with(&std::format!("{:x}-", at.as_ptr() as usize)), "{line}");
        // SAFETY: the mapping has a whole page, of which five bytes were written.
        assert_eq!(unsafe { core::slice::from_raw_parts(at.as_ptr(), 5) }, b"hello");
    }
}
