//! Walks along lists, which may be circular or change during the walk.

use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{Circle, Value};

/// Returns the tail of a list after `index` elements, or its end when it has fewer: nil, or the value after a dot. The
/// caller keeps the list alive.
pub(crate) fn nth_tail(cx: &mut Context, index: usize, list: Value) -> Answer {
    if !list.is_list() {
        return cx.type_error("list", list);
    }
    let mark = cx.mark();
    cx.push(list)?;
    let mut rest = list;
    for step in 1..=index {
        if !rest.is_cons() {
            cx.release(mark);
            return Ok(rest);
        }
        rest = rest.get(1);
        // A circular list never ends.
        if step % (1 << 16) == 0 {
            cx.put_root(mark, rest);
            cx.poll()?;
        }
    }
    cx.release(mark);
    Ok(rest)
}

/// Signals that a list is circular.
pub(crate) fn circular<T>(cx: &mut Context) -> Result<T, Exit> {
    cx.error(ErrorClass::Type, "the list is circular".to_owned())
}

/// Returns the length of a list, which must not be circular.
pub(crate) fn proper_length(cx: &mut Context, list: Value) -> Result<usize, Exit> {
    let (mut rest, mut count, mut circle) = (list, 0, Circle::new());
    while rest.is_cons() {
        if circle.closes_at(rest) {
            return circular(cx);
        }
        rest = rest.get(1);
        count += 1;
    }
    Ok(count)
}

/// Calls `each` with every tail of a list until it returns a result. The current tail is on the root stack, as the
/// code that `each` calls, and other threads, may modify the list.
pub(crate) fn along<T>(
    cx: &mut Context,
    list: Value,
    mut each: impl FnMut(&mut Context, Value) -> Result<Option<T>, Exit>,
) -> Result<Option<T>, Exit> {
    let keep = cx.mark();
    cx.push(list)?;
    let (mut rest, mut circle) = (list, Circle::new());
    while rest.is_cons() && !circle.closes_at(rest) {
        cx.put_root(keep, rest);
        if let Some(found) = each(cx, rest)? {
            return Ok(Some(found));
        }
        rest = rest.get(1);
    }
    Ok(None)
}
