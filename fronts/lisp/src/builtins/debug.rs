//! Implements the functions that look at a running program: its bindings and catchers, a loop inside it, and a hook for
//! each form.

use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::reader::{Reader, Source};
use crate::value::{ObjectKind, Value, symbol};
use std::collections::HashMap;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("EVALHOOK", 2, 3, |cx, args| cx.evalhook(args)),
    builtin("BREAK", 0, 1, break_loop),
    builtin("SYSTEM:LIST-ALL-CATCHERS", 0, 0, |cx, _| {
        let tags: Vec<Value> = cx.catches.iter().rev().copied().collect();
        cx.list(&tags)
    }),
    builtin("SYSTEM:LIST-ALL-BINDINGS", 0, 0, lexical_bindings),
    builtin("SYSTEM:LIST-ALL-SPECIAL-BINDINGS", 0, 0, special_bindings),
];

/// Returns `(variable . value)` for each lexical variable of the interpreted caller, innermost first.
fn lexical_bindings(cx: &mut Context, _: Args<'_>) -> Answer {
    let mut found = Vec::new();
    cx.entries(|name, value| {
        if name.is_symbol_object() {
            found.push((name, value));
        }
        false
    });
    pairs(cx, &found)
}

/// Returns `(variable . outer value)` for each dynamic binding of this thread, innermost first. A variable without an outer
/// value has nil.
fn special_bindings(cx: &mut Context, _: Args<'_>) -> Answer {
    let mut names = HashMap::new();
    for package in cx.packages() {
        for (name, _) in package.symbols() {
            let name = cx.world.symbol_object(name);
            names.insert(name.get(symbol::BINDING), name);
        }
    }
    let mut found = Vec::new();
    for (number, outer) in cx.bound_specials() {
        let Some(name) = names.get(&number) else { continue };
        let outer = if outer == Value::UNBOUND { name.get(symbol::VALUE) } else { outer };
        found.push((*name, if outer == Value::UNBOUND { Value::NIL } else { outer }));
    }
    pairs(cx, &found)
}

/// Returns a list of pairs of values that the caller's frames keep alive.
fn pairs(cx: &mut Context, found: &[(Value, Value)]) -> Answer {
    let mark = cx.mark();
    for (name, value) in found {
        let pair = cx.cons(*name, *value)?;
        cx.push(pair)?;
    }
    cx.stacked(mark)
}

/// Implements `(break [prompt])`: reads, evaluates and prints forms, to which the interpreted caller's variables are
/// visible, until `:q`, `:continue` or the end of input. A comma before a form is passed over, as EusLisp has it there.
fn break_loop(cx: &mut Context, args: Args<'_>) -> Answer {
    let prompt = match args.given(0) {
        Some(text) if text.is(ObjectKind::String) => text.bytes().to_vec(),
        _ => b":: ".to_vec(),
    };
    let names = cx.world.names;
    loop {
        let saved = cx.save();
        let catches = cx.catches.len();
        let output = cx.global_value(names.standard_output);
        cx.write_bytes(output, &prompt)?;
        super::stream::flush(cx, output)?;
        match break_step(cx, output) {
            Ok(true) => {}
            Ok(false) => return Ok(Value::NIL),
            Err(Exit::Error) => {
                cx.restore(&saved);
                let report = cx.error_report() + "\n";
                let errors = cx.global_value(names.error_output);
                cx.write_bytes(errors, report.as_bytes())?;
            }
            Err(other) => return Err(other),
        }
        cx.catches.truncate(catches);
        cx.restore(&saved);
    }
}

/// Evaluates one form of a break loop; returns whether the loop goes on.
fn break_step(cx: &mut Context, output: Value) -> Result<bool, Exit> {
    let input = cx.input(cx.global_value(cx.world.names.standard_input))?;
    cx.push(input)?;
    while cx.peek_byte(input)?.is_some_and(|byte| byte == b',' || byte.is_ascii_whitespace()) {
        cx.read_byte(input)?;
    }
    let Some(form) = Reader::new(Source::Stream(input)).read(cx)? else { return Ok(false) };
    if form.is_symbol_object()
        && matches!(form.get(symbol::NAME).bytes(), b"Q" | b"CONTINUE" | b"C")
        && form.get(symbol::PACKAGE) == cx.package_numbered(crate::world::KEYWORD).object
    {
        return Ok(false);
    }
    cx.push(form)?;
    let value = cx.eval(form)?;
    cx.push(value)?;
    let text = cx.show(value)? + "\n";
    cx.write_bytes(output, text.as_bytes())?;
    Ok(true)
}
