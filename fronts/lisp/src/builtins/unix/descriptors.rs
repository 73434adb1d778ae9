//! Numbers the descriptors that a program holds without a stream: sockets and duplicates.
//!
//! The numbers begin at [`FIRST`], as smaller ones could be those of the runtime's own descriptors.

use crate::context::Context;
use crate::error::Exit;
use crate::value::Value;
use crate::world::Native;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Number of the first descriptor.
const FIRST: i64 = 1000;

/// Returns the descriptor of a number.
pub(crate) fn find(cx: &Context, value: Value) -> Option<Arc<OwnedFd>> {
    let number = value.as_fixnum().filter(|number| *number >= FIRST)?;
    match cx.world.tables.native(Value::fixnum(number - FIRST)) {
        Some(Native::Socket(descriptor)) => Some(descriptor),
        _ => None,
    }
}

/// Returns the descriptor of a socket.
pub(crate) fn held(cx: &mut Context, value: Value) -> Result<Arc<OwnedFd>, Exit> {
    match find(cx, value) {
        Some(descriptor) => Ok(descriptor),
        None => cx.type_error("socket", value),
    }
}

/// Returns the number of a new descriptor.
pub(super) fn hold(cx: &mut Context, descriptor: OwnedFd) -> Value {
    let index = cx.world.tables.hold(Native::Socket(Arc::new(descriptor)));
    Value::fixnum(FIRST + index.as_fixnum().unwrap_or(0))
}

/// Closes the descriptor of a number.
pub(super) fn release(cx: &mut Context, value: Value) -> Result<(), Exit> {
    held(cx, value)?;
    let index = value.as_fixnum().unwrap_or(FIRST) - FIRST;
    cx.world.tables.drop_native(Value::fixnum(index));
    Ok(())
}
