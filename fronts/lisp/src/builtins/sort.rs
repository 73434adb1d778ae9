//! Sorts and merges by a stable merge sort on the root stack.

use super::sequence::{build_like, items, set_elt};
use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context, RootMark};
use crate::error::Exit;
use crate::value::Value;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("SORT", 2, 4, sort),
    builtin("STABLE-SORT", 2, 4, sort),
    builtin("MERGE", 4, MANY, merge),
    builtin("MERGE-LIST", 3, 4, |cx, args| {
        let key = args.or_nil(3);
        let first = cx.mark();
        let (a, b) = (items(cx, args[0])?, items(cx, args[1])?);
        let out = merged(cx, args[2], key, first, (0, a), (a, a + b))?;
        let count = cx.above(out);
        build_like(cx, Value::NIL, out, count)
    }),
];

fn key_of(cx: &mut Context, key: Value, item: Value) -> Answer {
    if key.is_nil() { Ok(item) } else { cx.apply(key, &[item]) }
}

/// Returns whether `b` must precede `a`.
fn before(cx: &mut Context, test: Value, key: Value, b: Value, a: Value) -> Result<bool, Exit> {
    let mark = cx.mark();
    let b = key_of(cx, key, b)?;
    cx.push(b)?;
    let a = key_of(cx, key, a)?;
    cx.push(a)?;
    let answer = cx.apply(test, &[b, a])?;
    cx.release(mark);
    Ok(!answer.is_nil())
}

/// Merges two sorted runs above `first` and pushes the result.
fn merged(
    cx: &mut Context,
    test: Value,
    key: Value,
    first: RootMark,
    a: (usize, usize),
    b: (usize, usize),
) -> Result<RootMark, Exit> {
    let out = cx.mark();
    let (mut i, mut j) = (a.0, b.0);
    while i < a.1 || j < b.1 {
        let second = j < b.1 && (i == a.1 || before(cx, test, key, cx.root(first, j), cx.root(first, i))?);
        let from = if second { &mut j } else { &mut i };
        let item = cx.root(first, *from);
        *from += 1;
        cx.push(item)?;
    }
    Ok(out)
}

fn sort_roots(
    cx: &mut Context,
    test: Value,
    key: Value,
    first: RootMark,
    start: usize,
    end: usize,
) -> Result<(), Exit> {
    if end - start < 2 {
        return Ok(());
    }
    let middle = start + (end - start) / 2;
    sort_roots(cx, test, key, first, start, middle)?;
    sort_roots(cx, test, key, first, middle, end)?;
    let out = merged(cx, test, key, first, (start, middle), (middle, end))?;
    for index in 0..end - start {
        cx.set_root(first, start + index, cx.root(out, index));
    }
    cx.release(out);
    Ok(())
}

/// Sorts in place: the conses or the vector keep their identity.
fn sort(cx: &mut Context, args: Args<'_>) -> Answer {
    let key = if args.or_nil(2) == cx.world.names.key_key { args.or_nil(3) } else { args.or_nil(2) };
    let first = cx.mark();
    let count = items(cx, args[0])?;
    sort_roots(cx, args[1], key, first, 0, count)?;
    // The test may have shortened the list.
    if args[0].is_list() {
        for (index, tail) in args[0].tails().take(count).enumerate() {
            tail.set(0, cx.root(first, index));
        }
    } else {
        for index in 0..count {
            set_elt(cx, args[0], index, cx.root(first, index))?;
        }
    }
    Ok(args[0])
}

/// Implements `(merge type sequence sequence test :key key)`.
fn merge(cx: &mut Context, args: Args<'_>) -> Answer {
    let key = if args.or_nil(4) == cx.world.names.key_key { args.or_nil(5) } else { Value::NIL };
    let first = cx.mark();
    let (a, b) = (items(cx, args[1])?, items(cx, args[2])?);
    let out = merged(cx, args[3], key, first, (0, a), (a, a + b))?;
    let count = cx.above(out);
    let list = build_like(cx, Value::NIL, out, count)?;
    cx.push(list)?;
    let coerce = cx.installed_function("COERCE")?;
    cx.apply(coerce, &[list, args[0]])
}
