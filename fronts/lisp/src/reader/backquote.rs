//! Implements backquote: translates a template to the form that builds it.

use crate::context::{Answer, Context};
use crate::value::{ObjectKind, Value};
use std::collections::HashSet;

/// Returns the form that builds a template, which the caller keeps alive.
pub(super) fn expand(cx: &mut Context, template: Value) -> Answer {
    cx.check_stack()?;
    let names = cx.world.names;
    if template.is(ObjectKind::Vector) {
        let items: Vec<Value> = (0..template.length()).map(|index| template.slot(index)).collect();
        let list = cx.list(&items)?;
        cx.push(list)?;
        let form = expand(cx, list)?;
        cx.push(form)?;
        let vector = cx.list(&[names.function, names.vector])?;
        return cx.list(&[names.apply, vector, form]);
    }
    if !template.is_cons() {
        let itself = !template.is_symbol_object() || template == names.t;
        return if itself { Ok(template) } else { cx.list(&[names.quote, template]) };
    }
    if !mentions(template, [names.unquote, names.splice]) {
        return cx.list(&[names.quote, template]);
    }
    let head = template.get(0);
    if head == names.unquote {
        return Ok(template.cadr());
    }
    let tail = expand(cx, template.get(1))?;
    cx.push(tail)?;
    if head.car() == names.splice && head.is_cons() {
        return cx.list(&[names.append, head.cadr(), tail]);
    }
    let first = expand(cx, head)?;
    cx.push(first)?;
    cx.list(&[names.cons, first, tail])
}

/// Returns whether a tree, which may be circular, contains one of the markers.
fn mentions(tree: Value, markers: [Value; 2]) -> bool {
    let mut seen = HashSet::new();
    let mut ahead = vec![tree];
    while let Some(at) = ahead.pop() {
        if markers.contains(&at) {
            return true;
        }
        if at.is_cons() && seen.insert(at) {
            ahead.extend([at.get(0), at.get(1)]);
        } else if at.is(ObjectKind::Vector) && seen.insert(at) {
            ahead.extend((0..at.length()).map(|index| at.slot(index)));
        }
    }
    false
}
