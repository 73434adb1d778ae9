//! Defines the status codes that the control calls return (`include/largesse.h`).

use core::ffi::c_int;

/// The call was carried out.
pub(crate) const OK: c_int = 0;
/// An argument is wrong.
pub(crate) const BAD_ARGUMENT: c_int = -1;
/// The call is not possible in this process or on this machine.
pub(crate) const NOT_SUPPORTED: c_int = -2;
