//! Signals errors, and gives access to the last one.

use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context, Fixed};
use crate::error::{ErrorClass, Exit, slot};
use crate::value::{ObjectKind, Value};
use crate::world::class;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("ERROR", 1, MANY, error),
    builtin("SIGNALS", 1, MANY, error),
    builtin("WARN", 1, MANY, |cx, args| {
        let text = super::format::formatted(cx, args[0], args.from(1))?;
        let stream = cx.global_value(cx.world.names.error_output);
        cx.write_bytes(stream, &text)?;
        Ok(Value::NIL)
    }),
    builtin("INSTALL-ERROR-HANDLER", 1, 1, |cx, args| {
        cx.set_global(cx.world.names.error_handler, args[0]);
        Ok(args[0])
    }),
    builtin("ERROR-MESSAGE", 1, 1, |cx, args| part(cx, args[0], slot::MESSAGE)),
    builtin("ERROR-FORM", 1, 1, |cx, args| part(cx, args[0], slot::FORM)),
    builtin("ERROR-OBJECT", 1, 1, |cx, args| part(cx, args[0], slot::OBJECT)),
    builtin("BACKTRACE", 0, 0, |cx, _| {
        let calls = cx.backtrace();
        cx.list(&calls)
    }),
];

/// Implements `(error "format" . arguments)` and `(error class "format" . arguments)`, and signals error objects
/// again.
fn error(cx: &mut Context, args: Args<'_>) -> Answer {
    if cx.is_error(args[0]) {
        cx.set_fixed(Fixed::Error, args[0]);
        cx.depth = 0;
        cx.failed_at = None;
        // The error keeps the form that it named first.
        cx.passed(args[0].slot(slot::FORM));
        return Err(Exit::Error);
    }
    let (of, format, rest) = if cx.is_class(args[0]) && cx.derives(args[0], class::ERROR) && args.len() > 1 {
        (args[0], args[1], args.from(2))
    } else {
        (Value::NIL, args[0], args.from(1))
    };
    let text = if format.is(ObjectKind::String) {
        String::from_utf8_lossy(&super::format::formatted(cx, format, rest)?).into_owned()
    } else {
        let shown: Vec<String> = args.iter().map(|value| cx.show_short(*value)).collect();
        shown.join(" ")
    };
    let out: Result<Value, Exit> = cx.error(ErrorClass::Simple, text);
    if !of.is_nil() && out == Err(Exit::Error) {
        let error = cx.fixed(Fixed::Error);
        let number = class::number(of);
        let length = of.slot(class::slot::VARIABLES).length();
        if length == error.length() {
            error.set(0, crate::value::Header::new(ObjectKind::Instance, number, length).word());
        }
    }
    out
}

impl Context {
    pub(crate) fn is_error(&self, value: Value) -> bool {
        value.is(ObjectKind::Instance) && self.derives(self.world.class_of(value), class::ERROR)
    }
}

fn part(cx: &mut Context, error: Value, slot: usize) -> Answer {
    if cx.is_error(error) { Ok(error.slot(slot)) } else { cx.type_error("error", error) }
}
