//! Implements functions that change classes: the runtime reads a class's slots unchecked, so only builtins write them.

use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::value::Value;
use crate::world::class;

pub(super) const BUILTINS: &[Builtin] = &[builtin("DELETE-METHOD", 2, 2, delete_method)];

/// Removes a class's own method; returns whether there was one.
fn delete_method(cx: &mut Context, args: Args<'_>) -> Answer {
    if !cx.is_class(args[0]) {
        return cx.type_error("class", args[0]);
    }
    let methods = args[0].slot(class::slot::METHODS);
    let mark = cx.mark();
    let mut found = false;
    for method in methods.iter() {
        if method.car() == args[1] {
            found = true;
        } else {
            cx.push(method)?;
        }
    }
    let rest = cx.stacked(mark)?;
    args[0].set_slot(class::slot::METHODS, rest);
    cx.methods_changed();
    Ok(if found { cx.truth(true) } else { Value::NIL })
}
