//! Turns the results of system calls into values, and arguments into numbers for them.

use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::Value;
use std::cell::Cell;
use std::io;

thread_local! {
    /// Number of the last error of a call, for `unix:errno`.
    pub(super) static LAST_ERROR: Cell<i32> = const { Cell::new(0) };
}

/// Records the error of a refused call, and returns its negative number.
pub(super) fn refused(cause: &io::Error) -> Value {
    let number = cause.raw_os_error().unwrap_or(0);
    LAST_ERROR.set(number);
    Value::fixnum(-i64::from(number))
}

/// Returns t, or the negative number of the error.
pub(super) fn done<E: Into<io::Error>>(cx: &Context, result: Result<(), E>) -> Answer {
    Ok(match result {
        Ok(()) => cx.truth(true),
        Err(cause) => refused(&cause.into()),
    })
}

/// Returns an argument that is a number of 32 bits, or `otherwise` if it was not given.
pub(super) fn int_or(cx: &mut Context, args: Args<'_>, index: usize, otherwise: i32) -> Result<i32, Exit> {
    match args.given(index) {
        None => Ok(otherwise),
        Some(value) => match value.as_fixnum().and_then(|number| i32::try_from(number).ok()) {
            Some(number) => Ok(number),
            None => cx.type_error("integer of 32 bits", value),
        },
    }
}
