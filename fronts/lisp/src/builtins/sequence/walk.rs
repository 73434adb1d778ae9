//! Implements functions over the elements of sequences.

use super::build::{build_type, result_type};
use super::change::bounds;
use super::elements::items;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::value::Value;

pub(super) fn reduce(cx: &mut Context, args: Args<'_>) -> Answer {
    let names = cx.world.names;
    let known = [names.start, names.end, names.from_end, names.initial_value, names.key_key];
    let [start, end, from_end, initial, key] = cx.keywords(args.from(2), known)?;
    let first = cx.mark();
    let count = items(cx, args[1])?;
    let (start, end) = bounds(cx, start, end, count)?;
    let turned = !from_end.given_or_nil().is_nil();
    let mut order: Vec<usize> = (start..end).collect();
    if turned {
        order.reverse();
    }
    let mut sum = initial.given();
    for index in order {
        let mark = cx.mark();
        let mut item = cx.root(first, index);
        if !key.given_or_nil().is_nil() {
            item = cx.apply(key, &[item])?;
        }
        sum = Some(match sum {
            None => item,
            Some(sum) if turned => cx.apply(args[0], &[item, sum])?,
            Some(sum) => cx.apply(args[0], &[sum, item])?,
        });
        cx.release(mark);
        if let Some(sum) = sum {
            // Every partial result uses the same root, so that the stack does not grow.
            cx.set_root(first, index, sum);
        }
    }
    match sum {
        Some(sum) => Ok(sum),
        None => cx.apply(args[0], &[]),
    }
}

/// Calls the function with the first items, then the second items, and so on. Returns the first result that `stop`
/// accepts (or nil, without `give_it`), and `all` as a truth value if there is none.
pub(super) fn quantify(
    cx: &mut Context,
    args: Args<'_>,
    stop: fn(Value) -> bool,
    give_it: bool,
    all: bool,
) -> Answer {
    let mut counts = Vec::new();
    let first = cx.mark();
    for sequence in &args[1..] {
        counts.push((cx.above(first), items(cx, *sequence)?));
    }
    let count = counts.iter().map(|(_, count)| *count).min().unwrap_or(0);
    for index in 0..count {
        let mark = cx.mark();
        for (start, _) in &counts {
            cx.push(cx.root(first, start + index))?;
        }
        let answer = cx.call(args[0], mark, counts.len())?;
        cx.release(mark);
        if stop(answer) {
            return Ok(if give_it { answer } else { Value::NIL });
        }
    }
    Ok(cx.truth(all))
}

/// Implements `(map type function sequence ...)`.
pub(super) fn map(cx: &mut Context, args: Args<'_>) -> Answer {
    let wanted = if args[0].is_nil() { None } else { Some(result_type(cx, args[0])?) };
    let mut counts = Vec::new();
    let first = cx.mark();
    for sequence in &args[2..] {
        counts.push((cx.above(first), items(cx, *sequence)?));
    }
    let count = counts.iter().map(|(_, count)| *count).min().unwrap_or(0);
    let results = cx.mark();
    for index in 0..count {
        let mark = cx.mark();
        for (start, _) in &counts {
            cx.push(cx.root(first, start + index))?;
        }
        let answer = cx.call(args[1], mark, counts.len())?;
        cx.release(mark);
        cx.push(answer)?;
    }
    match wanted {
        None => Ok(Value::NIL),
        Some(wanted) => build_type(cx, wanted, results, count),
    }
}
