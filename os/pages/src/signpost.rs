//! A named mapping that other processes find in `/proc/PID/maps`.

use crate::{MapError, MapOp, sys};
use core::{ffi::CStr, ptr::NonNull};

/// Put `bytes` into a memory file called `name` and keep it mapped, read-only, for good. The
/// descriptor is closed again: nothing is left behind when the process ends.
pub fn publish(name: &CStr, bytes: &[u8]) -> Result<NonNull<u8>, MapError> {
    sys::publish(name, bytes).map_err(|errno| MapError { op: MapOp::Publish, len: bytes.len(), errno })
}

/// Makes the file `path` of `len` bytes of zeros, and maps it, readable and writable, for good. The descriptor is
/// closed again. The file has its room: a write through the mapping cannot fail for lack of it.
pub fn share_file(path: &CStr, len: usize) -> Result<NonNull<u8>, MapError> {
    sys::share_file(path, len).map_err(|errno| MapError { op: MapOp::Publish, len, errno })
}

#[cfg(all(test, not(miri)))]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn a_published_name_is_found_in_maps() {
        let at = publish(c"largesse-test", b"hello").unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.contains("/memfd:largesse-test")).unwrap();
        assert!(line.starts_with(&std::format!("{:x}-", at.as_ptr() as usize)), "{line}");
        // SAFETY: the mapping has a whole page, of which five bytes were written.
        assert_eq!(unsafe { core::slice::from_raw_parts(at.as_ptr(), 5) }, b"hello");
    }
}
