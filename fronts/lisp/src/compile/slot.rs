//! Numbers the slots of a compiled function. Captured variables follow.

use crate::value::Value;

pub(super) const CODE: usize = 0;
pub(super) const NAME: usize = 1;
pub(super) const SOURCE: usize = 2;
pub(super) const CONSTANTS: usize = 3;
pub(super) const CAPTURED: usize = 4;

/// Returns `(parameters . body)` of a compiled function.
pub(crate) fn source(function: Value) -> Value {
    function.slot(SOURCE)
}
