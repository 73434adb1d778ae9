//! Inspects objects at the prompt.

use crate::builtin::{Args, Builtin, builtin, builtin_arity};
use crate::compile::source;
use crate::context::{Answer, Context};
use crate::eval::closure;
use crate::library::HELP;
use crate::value::{ObjectKind, Value, symbol};
use crate::world::class;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("DESCRIBE", 1, 2, describe),
    builtin("LARGESSE:HELP-LINE", 1, 1, |cx, args| {
        let name = cx.show_name(args[0]);
        match help_line(&name) {
            Some(line) => cx.string(line),
            None => Ok(Value::NIL),
        }
    }),
    builtin("LARGESSE:ARITY", 1, 1, |cx, args| {
        if !args[0].is_symbol() {
            return cx.type_error("symbol", args[0]);
        }
        let object = cx.world.symbol_object(args[0]);
        match arity(cx, object.get(symbol::FUNCTION)) {
            Some(text) => cx.string(&text),
            None => Ok(Value::NIL),
        }
    }),
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

/// Returns the line of the help text about a name in lower case, which may have a package's prefix there.
fn help_line(name: &str) -> Option<&'static str> {
    HELP.lines().find(|line| {
        let head = line[1..].split([' ', ')']).next().unwrap_or("");
        head == name || head.strip_prefix("sys:").is_some_and(|head| head == name)
    })
}

/// Tells in a few words what a function takes; none for what is no function.
fn arity(cx: &mut Context, function: Value) -> Option<String> {
    match function.kind()? {
        ObjectKind::Builtin => Some(format!("{} arguments", builtin_arity(function))),
        ObjectKind::Closure => {
            Some(format!("the parameters {}", cx.show_short(function.slot(closure::PARAMETERS))))
        }
        ObjectKind::Compiled => Some(format!("the parameters {}", cx.show_short(source(function).car()))),
        _ => None,
    }
}

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
                &format!("{}={}\n", cx.show_name(variables.slot(index)), cx.show_short(value.slot(index)));
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
