//! Treats lists as trees.

use super::walk::along;
use crate::builtins::search::Matcher;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::Value;

pub(super) fn subst(cx: &mut Context, matcher: &Matcher, new: Value, old: Value, tree: Value) -> Answer {
    cx.check_stack()?;
    let mark = cx.mark();
    cx.push(tree)?;
    if matcher.matches(cx, old, tree)? {
        cx.release(mark);
        return Ok(new);
    }
    if !tree.is_cons() {
        cx.release(mark);
        return Ok(tree);
    }
    let car = subst(cx, matcher, new, old, tree.get(0))?;
    cx.push(car)?;
    let cdr = subst(cx, matcher, new, old, tree.get(1))?;
    cx.release(mark);
    if car == tree.get(0) && cdr == tree.get(1) { Ok(tree) } else { cx.cons(car, cdr) }
}

pub(super) fn sublis(cx: &mut Context, matcher: &Matcher, pairs: Value, tree: Value) -> Answer {
    cx.check_stack()?;
    let mark = cx.mark();
    cx.push(tree)?;
    let found = along(cx, pairs, |cx, tail| {
        let pair = tail.get(0);
        Ok((pair.is_cons() && matcher.matches(cx, pair.get(0), tree)?).then_some(pair))
    })?;
    if found.is_some() || !tree.is_cons() {
        cx.release(mark);
        return Ok(found.map_or(tree, Value::cdr));
    }
    let car = sublis(cx, matcher, pairs, tree.get(0))?;
    cx.push(car)?;
    let cdr = sublis(cx, matcher, pairs, tree.get(1))?;
    cx.release(mark);
    cx.cons(car, cdr)
}

pub(super) fn flatten(cx: &mut Context, tree: Value) -> Result<(), Exit> {
    cx.check_stack()?;
    let mut end = Value::NIL;
    for tail in tree.tails() {
        let item = tail.get(0);
        if item.is_cons() {
            flatten(cx, item)?;
        } else if !item.is_nil() {
            cx.push(item)?;
        }
        end = tail.get(1);
    }
    // The value after a dot is one of the atoms.
    if !end.is_nil() && !end.is_cons() {
        cx.push(end)?;
    }
    Ok(())
}
