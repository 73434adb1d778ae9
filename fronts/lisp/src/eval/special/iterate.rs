//! Evaluates loops. Each polls once per iteration, for collections and Ctrl-C.

use super::control::{in_block, statements};
use super::malformed::malformed;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::Value;

pub(super) fn while_(cx: &mut Context, form: Value) -> Answer {
    in_block(cx, Value::NIL, |cx| {
        let (test, body) = (form.cadr(), form.cddr());
        cx.push(test)?;
        cx.push(body)?;
        while !cx.eval(test)?.is_nil() {
            cx.progn(body)?;
            cx.poll()?;
        }
        Ok(Value::NIL)
    })
}

pub(super) fn until(cx: &mut Context, form: Value) -> Answer {
    in_block(cx, Value::NIL, |cx| {
        let (test, body) = (form.cadr(), form.cddr());
        cx.push(test)?;
        cx.push(body)?;
        while cx.eval(test)?.is_nil() {
            cx.progn(body)?;
            cx.poll()?;
        }
        Ok(Value::NIL)
    })
}

pub(super) fn loop_(cx: &mut Context, form: Value) -> Answer {
    in_block(cx, Value::NIL, |cx| {
        let body = form.get(1);
        cx.push(body)?;
        loop {
            cx.progn(body)?;
            cx.poll()?;
        }
    })
}

/// Evaluates a body, whose atoms are tags if `tags` is set.
fn run(cx: &mut Context, body: Value, tags: bool) -> Result<(), Exit> {
    if tags { statements(cx, body) } else { cx.progn(body) }.map(|_| ())
}

/// Returns whether a body contains tags.
fn has_tags(body: Value) -> bool {
    body.iter().any(|statement| !statement.is_cons())
}

/// More turns than any program makes; a fixnum.
const MOST_TURNS: f64 = (1_u64 << 60) as f64;

impl Context {
    /// Returns how often `dotimes` runs its body for a count: the least number of turns that is not below the count.
    /// A count that is no fixnum is at most [`MOST_TURNS`], which is never reached.
    pub(crate) fn turns(&mut self, count: Value) -> Result<i64, Exit> {
        match count.as_fixnum() {
            Some(count) => Ok(count),
            None => Ok(self.number(count)?.ceil().clamp(-MOST_TURNS, MOST_TURNS) as i64),
        }
    }
}

/// Evaluates `(dotimes (variable count result) . body)`.
pub(super) fn dotimes(cx: &mut Context, form: Value) -> Answer {
    in_block(cx, Value::NIL, |cx| {
        let (spec, body) = (form.cadr(), form.cddr());
        let name = spec.car();
        cx.push(body)?;
        cx.push(spec)?;
        let count = cx.eval(spec.cadr())?;
        let count = cx.turns(count)?;
        let tags = has_tags(body);
        let saved = cx.save();
        let mut index = 0;
        while index < count {
            cx.bind_variable(name, Value::fixnum(index), body)?;
            run(cx, body, tags)?;
            cx.restore(&saved);
            cx.poll()?;
            index += 1;
        }
        let result = spec.cddr();
        if !result.is_cons() {
            return Ok(Value::NIL);
        }
        cx.bind_variable(name, Value::fixnum(index), body)?;
        let value = cx.eval(result.get(0))?;
        cx.restore(&saved);
        Ok(value)
    })
}

/// Evaluates `(dolist (variable list result) . body)`.
pub(super) fn dolist(cx: &mut Context, form: Value) -> Answer {
    in_block(cx, Value::NIL, |cx| {
        let (spec, body) = (form.cadr(), form.cddr());
        let name = spec.car();
        cx.push(body)?;
        cx.push(spec)?;
        let list = cx.eval(spec.cadr())?;
        if !list.is_list() {
            return cx.type_error("list", list);
        }
        let keep = cx.mark();
        cx.push(list)?;
        let tags = has_tags(body);
        let saved = cx.save();
        let mut rest = list;
        while rest.is_cons() {
            cx.set_root(keep, 0, rest);
            cx.bind_variable(name, rest.get(0), body)?;
            run(cx, body, tags)?;
            cx.restore(&saved);
            cx.poll()?;
            rest = rest.get(1);
        }
        if !rest.is_nil() {
            return cx.type_error("list", rest);
        }
        let result = spec.cddr();
        if !result.is_cons() {
            return Ok(Value::NIL);
        }
        cx.bind_variable(name, Value::NIL, body)?;
        let value = cx.eval(result.get(0))?;
        cx.restore(&saved);
        Ok(value)
    })
}

pub(super) fn do_(cx: &mut Context, form: Value) -> Answer {
    do_loop(cx, form, false)
}

pub(super) fn do_star(cx: &mut Context, form: Value) -> Answer {
    do_loop(cx, form, true)
}

/// Evaluates `(do ((variable start step) ...) (test . results) . body)`; `in_turn` selects `do*`.
fn do_loop(cx: &mut Context, form: Value, in_turn: bool) -> Answer {
    in_block(cx, Value::NIL, |cx| {
        let before = cx.save();
        let (items, end, body) = (form.cadr(), form.caddr(), form.cddr().cdr());
        if !end.is_cons() {
            return malformed(cx, form);
        }
        for part in [end, body] {
            cx.push(part)?;
        }
        let items = cx.alive(items)?;
        let first = cx.mark();
        for item in items.iter().copied() {
            let start = if item.is_cons() { item.cadr() } else { Value::NIL };
            let value = cx.eval(start)?;
            if in_turn {
                cx.bind_variable(if item.is_cons() { item.get(0) } else { item }, value, body)?;
            } else {
                cx.push(value)?;
            }
        }
        if !in_turn {
            for (index, item) in items.iter().copied().enumerate() {
                cx.bind_variable(
                    if item.is_cons() { item.get(0) } else { item },
                    cx.root(first, index),
                    body,
                )?;
            }
        }
        let stepped: Vec<Value> = items.into_iter().filter(|item| item.cddr().is_cons()).collect();
        let tags = has_tags(body);
        let turn = cx.mark();
        while cx.eval(end.get(0))?.is_nil() {
            run(cx, body, tags)?;
            for item in &stepped {
                let value = cx.eval(item.caddr())?;
                if in_turn {
                    cx.assign(item.get(0), value)?;
                } else {
                    cx.push(value)?;
                }
            }
            if !in_turn {
                for (index, item) in stepped.iter().enumerate() {
                    cx.assign(item.get(0), cx.root(turn, index))?;
                }
            }
            cx.release(turn);
            cx.poll()?;
        }
        let value = cx.progn(end.get(1))?;
        cx.restore(&before);
        Ok(value)
    })
}
