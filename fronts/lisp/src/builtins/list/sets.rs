//! Treats lists as sets and as association lists.

use super::walk::along;
use crate::builtin::Args;
use crate::builtins::search::Matcher;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::Value;

pub(super) fn assoc(cx: &mut Context, args: Args<'_>, part: fn(Value) -> Value) -> Answer {
    if args.len() == 2 {
        let found =
            args[1].iter().find(|pair| pair.is_cons() && crate::builtins::compare::eql(part(*pair), args[0]));
        return Ok(found.unwrap_or(Value::NIL));
    }
    let matcher = Matcher::of(cx, args.from(2))?;
    let found = along(cx, args[1], |cx, tail| {
        let pair = tail.get(0);
        Ok((pair.is_cons() && matcher.matches(cx, args[0], part(pair))?).then_some(pair))
    });
    found.map(|found| found.unwrap_or(Value::NIL))
}

pub(super) fn assoc_if(cx: &mut Context, args: Args<'_>, part: fn(Value) -> Value) -> Answer {
    let found = along(cx, args[1], |cx, tail| {
        let pair = tail.get(0);
        Ok((pair.is_cons() && !cx.apply(args[0], &[part(pair)])?.is_nil()).then_some(pair))
    });
    found.map(|found| found.unwrap_or(Value::NIL))
}

pub(super) fn member(cx: &mut Context, args: Args<'_>) -> Answer {
    let matcher = Matcher::of(cx, args.from(2))?;
    // A value that is no list has no members, as in EusLisp.
    let found = along(cx, args[1], |cx, tail| Ok(matcher.matches(cx, args[0], tail.get(0))?.then_some(tail)));
    found.map(|found| found.unwrap_or(Value::NIL))
}

pub(super) fn member_if(cx: &mut Context, args: Args<'_>) -> Answer {
    let matcher = Matcher::of(cx, args.from(2))?;
    let found =
        along(cx, args[1], |cx, tail| Ok(matcher.satisfies(cx, args[0], tail.get(0))?.then_some(tail)));
    found.map(|found| found.unwrap_or(Value::NIL))
}

pub(super) fn adjoin(cx: &mut Context, args: Args<'_>) -> Answer {
    let matcher = Matcher::of(cx, args.from(2))?;
    let wanted = matcher.key(cx, args[0])?;
    cx.push(wanted)?;
    let found = along(cx, args[1], |cx, tail| Ok(matcher.matches(cx, wanted, tail.get(0))?.then_some(())))?;
    if found.is_some() { Ok(args[1]) } else { cx.cons(args[0], args[1]) }
}

/// Implements `(union list list)`: each item once, in the order of the first list and then of the second.
pub(super) fn union(cx: &mut Context, args: Args<'_>) -> Answer {
    let matcher = Matcher::of(cx, args.from(2))?;
    let (first, second) = (cx.alive(args[0])?, cx.alive(args[1])?);
    let mark = cx.mark();
    let mut kept = Vec::new();
    for item in first.into_iter().chain(second) {
        if !contains(cx, &matcher, item, &kept)? {
            cx.push(item)?;
            kept.push(item);
        }
    }
    cx.stacked(mark)
}

/// Implements `(intersection list list)`: the items of the first list that are in the second, the last one first, as in
/// EusLisp.
pub(super) fn intersection(cx: &mut Context, args: Args<'_>) -> Answer {
    let matcher = Matcher::of(cx, args.from(2))?;
    let (first, second) = (cx.alive(args[0])?, cx.alive(args[1])?);
    let mark = cx.mark();
    push_if(cx, &matcher, first.into_iter().rev(), &second, true)?;
    cx.stacked(mark)
}

/// Implements `(set-difference list list)`: the items of the first list that are not in the second.
pub(super) fn difference(cx: &mut Context, args: Args<'_>) -> Answer {
    let matcher = Matcher::of(cx, args.from(2))?;
    let (first, second) = (cx.alive(args[0])?, cx.alive(args[1])?);
    let mark = cx.mark();
    push_if(cx, &matcher, first.into_iter(), &second, false)?;
    cx.stacked(mark)
}

/// Implements `(set-exclusive-or list list)`: the items that are in one list only, of each list the last one first, as
/// in EusLisp.
pub(super) fn exclusive_or(cx: &mut Context, args: Args<'_>) -> Answer {
    let matcher = Matcher::of(cx, args.from(2))?;
    let (first, second) = (cx.alive(args[0])?, cx.alive(args[1])?);
    let mark = cx.mark();
    push_if(cx, &matcher, first.iter().rev().copied(), &second, false)?;
    push_if(cx, &matcher, second.iter().rev().copied(), &first, false)?;
    cx.stacked(mark)
}

/// Pushes the items that are among others (`inside`), or those that are not. The caller keeps all alive.
fn push_if(
    cx: &mut Context,
    matcher: &Matcher,
    items: impl Iterator<Item = Value>,
    others: &[Value],
    inside: bool,
) -> Result<(), Exit> {
    for item in items {
        if contains(cx, matcher, item, others)? == inside {
            cx.push(item)?;
        }
    }
    Ok(())
}

/// Returns whether an item is among others; the caller keeps all alive.
fn contains(cx: &mut Context, matcher: &Matcher, item: Value, others: &[Value]) -> Result<bool, Exit> {
    let mark = cx.mark();
    let key = matcher.key(cx, item)?;
    cx.push(key)?;
    for other in others {
        if matcher.matches(cx, key, *other)? {
            cx.release(mark);
            return Ok(true);
        }
    }
    cx.release(mark);
    Ok(false)
}

pub(super) fn subsetp(cx: &mut Context, args: Args<'_>) -> Answer {
    let matcher = Matcher::of(cx, args.from(2))?;
    let (first, second) = (cx.alive(args[0])?, cx.alive(args[1])?);
    for item in first {
        if !contains(cx, &matcher, item, &second)? {
            return Ok(Value::NIL);
        }
    }
    Ok(cx.truth(true))
}
