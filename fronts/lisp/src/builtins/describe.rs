//! Inspects objects at the prompt.

use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::value::{ObjectKind, Value, symbol};
use crate::world::class;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("DESCRIBE", 1, 2, describe),
    builtin("DOCUMENTATION", 1, 2, |cx, args| {
        let names = cx.world.names;
        let key = match args.given(1) {
            Some(sort) if sort.is_symbol() && cx.show_name(sort).contains("variable") => {
                names.variable_documentation
            }
            _ => names.function_documentation,
        };
        let text = cx.property(args[0], key);
        Ok(if text.is_nil() { cx.property(args[0], names.documentation) } else { text })
    }),
];

fn describe(cx: &mut Context, args: Args<'_>) -> Answer {
    let value = args[0];
    let mut text = format!("{}\n", cx.show_short(value));
    if value.is_symbol() {
        let object = cx.world.symbol_object(value);
        let global = cx.global_value(object);
        if global != Value::UNBOUND {
            text += &format!("  value: {}\n", cx.show_short(global));
        }
        let function = object.get(symbol::FUNCTION);
        if function.as_special_form().is_some() {
            text += "  a special form\n";
        } else if function != Value::UNBOUND {
            text += &format!("  function: {}\n", cx.show_short(function));
        }
        for pair in object.get(symbol::PLIST).iter() {
            text += &format!("  {}: {}\n", cx.show_short(pair.car()), cx.show_short(pair.cdr()));
        }
    } else if value.is(ObjectKind::Instance) || value.is(ObjectKind::Array) {
        let variables = cx.world.class_of(value).slot(class::slot::VARIABLES);
        for index in 0..value.length().min(variables.length()) {
            text +=
                &format!("  {}: {}\n", cx.show_name(variables.slot(index)), cx.show_short(value.slot(index)));
        }
    } else {
        let of = cx.world.class_of(value);
        if !of.is_nil() {
            text += &format!("  of class {}\n", cx.show_name(of.slot(class::slot::NAME)));
        }
    }
    cx.write_bytes(args.or_nil(1), text.as_bytes())?;
    Ok(Value::NIL)
}
