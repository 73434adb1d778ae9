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
    if !args[1].is_list() {
        return cx.type_error("list", args[1]);
    }
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

/// Returns the items of the first list that are in the second (`inside`) or not; a union or an exclusive or adds the
/// items that are only in the second.
pub(super) fn sets(cx: &mut Context, args: Args<'_>, inside: bool, union: bool, exclusive: bool) -> Answer {
    let matcher = Matcher::of(cx, args.from(2))?;
    let (first, second) = (cx.alive(args[0])?, cx.alive(args[1])?);
    let mark = cx.mark();
    let keep_first = |found: bool| union || found == inside;
    for item in &first {
        if keep_first(contains(cx, &matcher, *item, &second)?) {
            cx.push(*item)?;
        }
    }
    if union || exclusive {
        for item in &second {
            if !contains(cx, &matcher, *item, &first)? {
                cx.push(*item)?;
            }
        }
    }
    cx.stacked(mark)
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
