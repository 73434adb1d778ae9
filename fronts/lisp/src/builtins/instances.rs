//! Lists the objects of a class, and counts the words of an object with all that it refers to.

use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::value::{ObjectKind, Value};
use crate::world::class;
use std::collections::HashSet;
use std::ops::Range;

pub(super) const BUILTINS: &[Builtin] =
    &[builtin("SYSTEM:LIST-ALL-INSTANCES", 1, 2, instances), builtin("SYSTEM:OBJECT-SIZE", 1, 1, size)];

/// Returns the words of an object that may be references.
fn references(object: Value) -> Range<usize> {
    if object.is_cons() {
        return 0..2;
    }
    if object.is_shared() {
        return 1..3;
    }
    match object.kind() {
        Some(ObjectKind::Symbol) => symbol_words(),
        Some(
            ObjectKind::Instance
            | ObjectKind::Vector
            | ObjectKind::Array
            | ObjectKind::Closure
            | ObjectKind::Ratio,
        ) => 1..object.length() + 1,
        _ => 0..0,
    }
}

fn symbol_words() -> Range<usize> {
    crate::value::symbol::VALUE..crate::value::symbol::PACKAGE + 1
}

/// Visits every object that is reached from `ahead`, each once.
fn reach(mut ahead: Vec<Value>, mut visit: impl FnMut(Value) -> bool) {
    let mut seen = HashSet::new();
    while let Some(object) = ahead.pop() {
        if object.is_reference() && seen.insert(object) && visit(object) {
            ahead.extend(references(object).map(|word| object.get(word)));
        }
    }
}

/// Implements `(sys:list-all-instances class [with-subclasses])`. The list has the objects that the program can reach:
/// from a symbol, a class, or a variable of this thread.
fn instances(cx: &mut Context, args: Args<'_>) -> Answer {
    if !cx.is_class(args[0]) {
        return cx.type_error("class", args[0]);
    }
    let number = class::number(args[0]);
    let below = !args.or_nil(1).is_nil();
    let mut ahead = Vec::new();
    cx.world.tables.roots(|value| ahead.push(value));
    ahead.extend(cx.mutator.roots().iter().map(|word| Value(word.0)));
    let mut found = Vec::new();
    reach(ahead, |object| {
        let of = if object.is_shared() { Value::NIL } else { cx.world.class_of(object) };
        if !of.is_nil() && (of == args[0] || below && cx.derives(of, number)) {
            found.push(object);
        }
        true
    });
    cx.list(&found)
}

/// Implements `(sys:object-size value)`: returns the number of objects that the value consists of, of their elements, and of
/// the words that they take. Symbols, packages, classes and functions do not count.
fn size(cx: &mut Context, args: Args<'_>) -> Answer {
    let (mut objects, mut elements, mut words) = (0, 0, 0);
    reach(vec![args[0]], |object| {
        let (holds, takes) = match object.kind() {
            None => (2, 2),
            Some(ObjectKind::String) => (object.length().div_ceil(8), 1 + (object.length() + 1).div_ceil(8)),
            Some(ObjectKind::BitVector) => (object.length().div_ceil(64), 1 + object.length().div_ceil(64)),
            Some(ObjectKind::Float) => (1, 2),
            Some(
                ObjectKind::Symbol
                | ObjectKind::Closure
                | ObjectKind::Builtin
                | ObjectKind::Compiled
                | ObjectKind::Native,
            ) => return false,
            Some(_) if cx.is_class(object) || cx.package_of_object(object).is_some() => return false,
            Some(_) => (object.length(), 1 + object.length()),
        };
        objects += 1;
        elements += holds;
        words += takes;
        true
    });
    cx.list(&[objects, elements, words].map(|count| Value::fixnum(count as i64)))
}
