//! Copies and concatenates lists.

use super::walk::{circular, proper_length};
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{Circle, Value};

pub(super) fn butlast(cx: &mut Context, args: Args<'_>) -> Answer {
    let count = if args.len() > 1 { args.size(cx, 1)? } else { 1 };
    let keep = proper_length(cx, args[0])?.saturating_sub(count);
    let mark = cx.mark();
    for item in args[0].iter().take(keep) {
        cx.push(item)?;
    }
    cx.stacked(mark)
}

/// Copies the conses of a nonempty list; returns the first and the last copy, and the end of the list.
fn copy_conses(cx: &mut Context, list: Value) -> Result<(Value, Value, Value), Exit> {
    let first = cx.cons(list.get(0), Value::NIL)?;
    cx.push(first)?;
    let keep = cx.mark();
    cx.push(list)?;
    let (mut last, mut rest, mut circle) = (first, list.get(1), Circle::new());
    while rest.is_cons() {
        if circle.closes_at(rest) {
            return circular(cx);
        }
        // Other threads may modify the list during the allocation.
        cx.put_root(keep, rest);
        let next = cx.blank_cons()?;
        next.set(0, rest.get(0));
        last.set(1, next);
        last = next;
        rest = rest.get(1);
    }
    Ok((first, last, rest))
}

/// Copies a list in front of a tail. The caller keeps both alive.
pub(crate) fn copy_onto(cx: &mut Context, list: Value, tail: Value) -> Answer {
    if !list.is_cons() {
        return Ok(tail);
    }
    let (first, last, _) = copy_conses(cx, list)?;
    last.set(1, tail);
    Ok(first)
}

/// Copies a list; the copy shares the value after a dot.
pub(crate) fn copy(cx: &mut Context, list: Value) -> Answer {
    if !list.is_list() {
        return cx.type_error("list", list);
    }
    if list.is_nil() {
        return Ok(list);
    }
    let (first, last, rest) = copy_conses(cx, list)?;
    last.set(1, rest);
    Ok(first)
}

pub(super) fn copy_tree(cx: &mut Context, tree: Value) -> Answer {
    cx.check_stack()?;
    if !tree.is_cons() {
        return Ok(tree);
    }
    let mark = cx.mark();
    cx.push(tree)?;
    let mut rest = tree;
    while rest.is_cons() {
        cx.put_root(mark, rest);
        let part = copy_tree(cx, rest.get(0))?;
        cx.push(part)?;
        rest = rest.get(1);
    }
    cx.put_root(mark, rest);
    let list = cx.list_of_roots(mark, 1..cx.above(mark), rest)?;
    cx.release(mark);
    Ok(list)
}

pub(super) fn copy_alist(cx: &mut Context, args: Args<'_>) -> Answer {
    let mark = cx.mark();
    for (index, pair) in cx.alive(args[0])?.into_iter().enumerate() {
        if pair.is_cons() {
            let copied = cx.cons(pair.get(0), pair.get(1))?;
            cx.set_root(mark, index, copied);
        }
    }
    cx.stacked(mark)
}

pub(super) fn append(cx: &mut Context, args: Args<'_>) -> Answer {
    let Some((last, lists)) = args.split_last() else { return Ok(Value::NIL) };
    let mut tail = *last;
    for list in lists.iter().rev() {
        if !list.is_list() {
            return cx.type_error("list", *list);
        }
        tail = copy_onto(cx, *list, tail)?;
        cx.push(tail)?;
    }
    Ok(tail)
}

pub(super) fn nconc(cx: &mut Context, args: Args<'_>) -> Answer {
    let mut all = Value::NIL;
    let mut end = Value::NIL;
    for list in args.iter() {
        if end.is_nil() {
            all = *list;
        } else {
            end.set(1, *list);
        }
        if !list.is_list() && list != &args[args.len() - 1] {
            return cx.type_error("list", *list);
        }
        if list.is_cons() {
            proper_length(cx, *list)?;
            end = *list;
            while end.get(1).is_cons() {
                end = end.get(1);
            }
        }
    }
    Ok(all)
}

pub(crate) fn reverse_onto(cx: &mut Context, list: Value, tail: Value) -> Answer {
    proper_length(cx, list)?;
    let mut reversed = tail;
    let mut rest = list;
    let keep = cx.mark();
    cx.push(list)?;
    while rest.is_cons() {
        cx.put_root(keep, rest);
        reversed = cx.cons(rest.get(0), reversed)?;
        rest = rest.get(1);
    }
    Ok(reversed)
}
