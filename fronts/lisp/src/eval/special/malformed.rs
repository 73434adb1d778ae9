//! Signals malformed forms.

use crate::context::{Answer, Context};
use crate::error::ErrorClass;
use crate::value::Value;

/// Signals a malformed form.
#[cold]
pub(super) fn malformed(cx: &mut Context, form: Value) -> Answer {
    let shown = cx.show_short(form);
    cx.error_about(ErrorClass::Arguments, format!("malformed {shown}"), form)
}
