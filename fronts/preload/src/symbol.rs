//! Looks up symbols of the process.

use crate::guard::outside;
use core::ffi::{CStr, c_void};

/// Returns the address of `name` in the default search order; null if no object has it. The dynamic linker then
/// allocates an error text, so that the look-up runs in [`outside`].
pub(crate) fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string.
    outside(|| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}
