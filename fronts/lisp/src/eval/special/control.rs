//! Evaluates blocks, throws, tags, and cleanup.

use super::malformed::malformed;
use crate::context::{Answer, Context, Fixed};
use crate::error::{ErrorClass, Exit};
use crate::value::{KeySort, Value};

/// Runs `inner` in a block with a name.
pub(super) fn in_block(cx: &mut Context, name: Value, inner: impl FnOnce(&mut Context) -> Answer) -> Answer {
    let saved = cx.save();
    let target = cx.new_target();
    cx.bind(block_key(cx, name), Value::fixnum(target))?;
    let answer = inner(cx);
    match answer {
        Err(Exit::Block) if cx.target == target => {
            cx.restore(&saved);
            Ok(cx.fixed(Fixed::Exit))
        }
        Ok(value) => {
            cx.environment = saved.environment();
            Ok(value)
        }
        other => other,
    }
}

fn block_key(cx: &Context, name: Value) -> Value {
    cx.world.symbol_object(name).key(KeySort::Block)
}

pub(super) fn block(cx: &mut Context, form: Value) -> Answer {
    let name = form.cadr();
    if !name.is_symbol() {
        return malformed(cx, form);
    }
    in_block(cx, name, |cx| cx.progn(form.cddr()))
}

fn leave(cx: &mut Context, name: Value, value: Value) -> Answer {
    let Some(target) = cx.entry(block_key(cx, name)).and_then(Value::as_fixnum) else {
        return cx.no_block(name);
    };
    cx.target = target;
    cx.set_fixed(Fixed::Exit, value);
    Err(Exit::Block)
}

pub(super) fn return_(cx: &mut Context, form: Value) -> Answer {
    let value = cx.eval(form.cadr())?;
    leave(cx, Value::NIL, value)
}

pub(super) fn return_from(cx: &mut Context, form: Value) -> Answer {
    let name = form.cadr();
    cx.push(name)?;
    let value = cx.eval(form.caddr())?;
    leave(cx, name, value)
}

pub(super) fn catch(cx: &mut Context, form: Value) -> Answer {
    let body = form.cddr();
    cx.push(body)?;
    let tag = cx.eval(form.cadr())?;
    cx.push(tag)?;
    let saved = cx.save();
    cx.catches.push(tag);
    let answer = cx.progn(body);
    cx.catches.pop();
    match answer {
        Err(Exit::Throw) if cx.fixed(Fixed::Tag) == tag => {
            cx.restore(&saved);
            Ok(cx.fixed(Fixed::Exit))
        }
        other => other,
    }
}

pub(super) fn throw(cx: &mut Context, form: Value) -> Answer {
    let value_form = form.caddr();
    cx.push(value_form)?;
    let tag = cx.eval(form.cadr())?;
    cx.push(tag)?;
    let value = cx.eval(value_form)?;
    cx.throw(tag, value)
}

impl Context {
    pub(crate) fn no_block(&mut self, name: Value) -> Answer {
        let shown = self.show_short(name);
        self.error_about(ErrorClass::Control, format!("no block {shown} around return-from"), name)
    }

    pub(crate) fn no_tag(&mut self, tag: Value) -> Answer {
        let shown = self.show_short(tag);
        self.error_about(ErrorClass::Control, format!("no tag {shown} around go"), tag)
    }

    /// Exits to the catch with a tag, if there is one.
    pub(crate) fn throw(&mut self, tag: Value, value: Value) -> Answer {
        if !self.catches.contains(&tag) {
            let shown = self.show_short(tag);
            return self.error_about(ErrorClass::Control, format!("no catch {shown} around throw"), tag);
        }
        self.set_fixed(Fixed::Tag, tag);
        self.set_fixed(Fixed::Exit, value);
        Err(Exit::Throw)
    }
}

pub(super) fn unwind_protect(cx: &mut Context, form: Value) -> Answer {
    let cleanup = form.cddr();
    cx.push(cleanup)?;
    let saved = cx.save();
    let answer = cx.eval(form.cadr());
    match answer {
        Ok(value) => {
            cx.push(value)?;
            cx.progn(cleanup)?;
            Ok(value)
        }
        Err(exit) => {
            cx.restore(&saved);
            // The cleanup forms may overwrite the details of the exit.
            let target = cx.target;
            for which in [Fixed::Exit, Fixed::Tag, Fixed::Error] {
                cx.push(cx.fixed(which))?;
            }
            let calls = cx.backtrace();
            for call in &calls {
                cx.push(*call)?;
            }
            cx.progn(cleanup)?;
            cx.target = target;
            for (index, which) in [Fixed::Exit, Fixed::Tag, Fixed::Error].into_iter().enumerate() {
                cx.set_fixed(which, cx.root(saved.mark(), index));
            }
            cx.depth = 0;
            for call in calls {
                cx.passed(call);
            }
            Err(exit)
        }
    }
}

/// Returns the statements of a tagbody after a tag.
fn after(statements: Value, tag: Value) -> Option<Value> {
    let is_tag = |statement: Value| !statement.is_cons() && crate::builtins::compare::eql(statement, tag);
    statements.tails().find(|tail| is_tag(tail.get(0))).map(|tail| tail.get(1))
}

/// Runs the statements of a tagbody and handles `go`. The environment has one entry for the whole tagbody, whose
/// value is (number . statements).
pub(super) fn statements(cx: &mut Context, list: Value) -> Answer {
    let keep = cx.mark();
    cx.push(list)?;
    let target = cx.new_target();
    let value = cx.cons(Value::fixnum(target), list)?;
    let outer = cx.environment;
    cx.bind(Value::TAGS_KEY, value)?;
    let saved = cx.save();
    let mut rest = list;
    while rest.is_cons() {
        cx.set_root(keep, 0, rest);
        cx.poll()?;
        let statement = rest.get(0);
        match if statement.is_cons() { cx.eval(statement) } else { Ok(statement) } {
            Ok(_) => rest = rest.get(1),
            Err(Exit::Go) if cx.target == target => {
                cx.restore(&saved);
                rest = cx.fixed(Fixed::Exit);
            }
            Err(exit) => return Err(exit),
        }
    }
    cx.environment = outer;
    cx.release(keep);
    Ok(Value::NIL)
}

pub(super) fn tagbody(cx: &mut Context, form: Value) -> Answer {
    statements(cx, form.get(1))
}

pub(super) fn go(cx: &mut Context, form: Value) -> Answer {
    let tag = form.cadr();
    let mut found = None;
    cx.entries(|key, value| {
        if key == Value::TAGS_KEY
            && let Some(rest) = after(value.cdr(), tag)
        {
            found = Some((value.car(), rest));
        }
        found.is_some()
    });
    let Some((target, rest)) = found else {
        return cx.no_tag(tag);
    };
    cx.target = target.as_fixnum().unwrap_or(0);
    cx.set_fixed(Fixed::Exit, rest);
    Err(Exit::Go)
}

/// Evaluates `(handler-case form (class (variable) . body) ...)`: runs the first clause whose class is the error's or
/// a superclass of it.
pub(super) fn handler_case(cx: &mut Context, form: Value) -> Answer {
    let clauses = form.cddr();
    cx.push(clauses)?;
    let saved = cx.save();
    let answer = cx.eval(form.cadr());
    if answer != Err(Exit::Error) {
        return answer;
    }
    let error = cx.fixed(Fixed::Error);
    for clause in clauses.iter() {
        let class = clause.car();
        if !class.is_symbol_object() {
            return malformed(cx, form);
        }
        let class = cx.global_value(class);
        if class == Value::UNBOUND || !cx.is_subclass(cx.world.class_of(error), class) {
            continue;
        }
        cx.restore(&saved);
        cx.push(error)?;
        let variables = clause.cadr();
        if variables.is_cons() {
            cx.bind_variable(variables.get(0), error, clause.cddr())?;
        }
        let value = cx.progn(clause.cddr())?;
        cx.restore(&saved);
        return Ok(value);
    }
    Err(Exit::Error)
}
