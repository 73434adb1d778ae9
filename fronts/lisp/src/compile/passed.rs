//! Defines a form that machine code adds to the backtrace of an error.

use crate::value::Value;

/// A form to be added to the backtrace when an error passes through it. The constants of the code keep the form alive.
pub(super) struct PassedForm {
    pub(super) form: Value,
    /// The enclosing form of the same construct, to be added next, or null.
    pub(super) outer: *const PassedForm,
}

// SAFETY: neither field changes; `outer` points into the same compiler, which frees nothing; and the code's constants
// keep the form alive.
unsafe impl Send for PassedForm {}
