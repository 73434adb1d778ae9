//! Evaluates sequencing, conditionals, assignment.

use super::malformed::malformed;
use crate::context::{Answer, Context};
use crate::error::ErrorClass;
use crate::value::{KeySort, Value, symbol};

pub(super) fn quote(_: &mut Context, form: Value) -> Answer {
    Ok(form.cadr())
}

/// Evaluates `#'name` or `#'(lambda ...)`. A function without a lexical environment is the list
/// `(lambda-closure nil 0 0 parameters . body)`, in which programs of EusLisp look for the parameters.
pub(super) fn function(cx: &mut Context, form: Value) -> Answer {
    let what = form.cadr();
    if what.is_cons() && what.get(0) == cx.world.names.lambda {
        if cx.environment.is_nil() && !cx.local_functions && what.cadr().is_list() {
            let zero = Value::fixnum(0);
            return cx.list_star(&[cx.world.names.lambda_closure, Value::NIL, zero, zero], what.get(1));
        }
        return cx.close(Value::NIL, what.get(1));
    }
    if !what.is_symbol_object() {
        return if what.is_object() { Ok(what) } else { malformed(cx, form) };
    }
    if cx.local_functions
        && let Some(local) = cx.entry(what.key(KeySort::Function))
    {
        return Ok(local);
    }
    cx.function_named(what)
}

impl Context {
    /// Returns the function of a symbol.
    pub(crate) fn function_named(&mut self, name: Value) -> Answer {
        let function = name.get(symbol::FUNCTION);
        if function == Value::UNBOUND || function.as_special_form().is_some() {
            let shown = self.show_short(name);
            return self.error_about(ErrorClass::Undefined, format!("undefined function {shown}"), name);
        }
        Ok(function)
    }
}

pub(super) fn progn(cx: &mut Context, form: Value) -> Answer {
    cx.progn(form.get(1))
}

pub(super) fn prog1(cx: &mut Context, form: Value) -> Answer {
    first_of(cx, form.get(1))
}

pub(super) fn prog2(cx: &mut Context, form: Value) -> Answer {
    let rest = form.cddr();
    cx.push(rest)?;
    cx.eval(form.cadr())?;
    first_of(cx, rest)
}

/// Evaluates all forms and returns the value of the first.
fn first_of(cx: &mut Context, forms: Value) -> Answer {
    let body = forms.cdr();
    cx.push(body)?;
    let value = cx.eval(forms.car())?;
    cx.push(value)?;
    cx.progn(body)?;
    Ok(value)
}

pub(super) fn setq(cx: &mut Context, form: Value) -> Answer {
    let mut rest = form.get(1);
    let mut value = Value::NIL;
    let keep = cx.mark();
    cx.push(rest)?;
    while rest.is_cons() {
        let more = rest.get(1);
        if !more.is_cons() {
            return malformed(cx, form);
        }
        cx.set_root(keep, 0, rest);
        cx.poll()?;
        if rest.get(0).is_cons() {
            // As in EusLisp, `(object . slot)` can be set too.
            value = crate::eval::place::set_place(cx, rest.get(0), more.get(0))?;
        } else {
            value = cx.eval(more.get(0))?;
            cx.assign(rest.get(0), value)?;
        }
        rest = rest.cdr().cdr();
    }
    Ok(value)
}

pub(super) fn psetq(cx: &mut Context, form: Value) -> Answer {
    let pairs: Vec<Value> = form.get(1).iter().collect();
    if pairs.len() % 2 == 1 {
        return malformed(cx, form);
    }
    for item in &pairs {
        cx.push(*item)?;
    }
    let values = cx.mark();
    for pair in pairs.chunks_exact(2) {
        let value = cx.eval(pair[1])?;
        cx.push(value)?;
    }
    for (index, pair) in pairs.chunks_exact(2).enumerate() {
        cx.assign(pair[0], cx.root(values, index))?;
    }
    Ok(Value::NIL)
}

pub(super) fn if_(cx: &mut Context, form: Value) -> Answer {
    let rest = form.get(1);
    let branches = rest.cdr();
    if !branches.is_cons() {
        return malformed(cx, form);
    }
    let test = rest.get(0);
    let test = if test.is_cons() {
        cx.push(branches)?;
        cx.eval(test)?
    } else {
        cx.eval(test)?
    };
    if !test.is_nil() {
        return cx.eval(branches.get(0));
    }
    let mut rest = branches.get(1);
    if rest.cdr().is_cons() {
        return cx.progn(rest);
    }
    rest = rest.car();
    cx.eval(rest)
}

pub(super) fn cond(cx: &mut Context, form: Value) -> Answer {
    let mut clauses = form.get(1);
    let keep = cx.mark();
    cx.push(clauses)?;
    cx.push(clauses)?;
    while clauses.is_cons() {
        let clause = clauses.get(0);
        if !clause.is_cons() {
            return malformed(cx, clause);
        }
        cx.set_root(keep, 0, clauses);
        cx.set_root(keep, 1, clause);
        cx.poll()?;
        let value = cx.eval(clause.get(0))?;
        if !value.is_nil() {
            let body = clause.get(1);
            return if body.is_cons() { cx.progn(body) } else { Ok(value) };
        }
        clauses = clauses.get(1);
    }
    Ok(Value::NIL)
}

pub(super) fn and(cx: &mut Context, form: Value) -> Answer {
    let mut value = cx.truth(true);
    let mut rest = form.get(1);
    let keep = cx.mark();
    cx.push(rest)?;
    while rest.is_cons() {
        cx.set_root(keep, 0, rest);
        cx.poll()?;
        value = cx.eval(rest.get(0))?;
        if value.is_nil() {
            return Ok(value);
        }
        rest = rest.get(1);
    }
    Ok(value)
}

pub(super) fn or(cx: &mut Context, form: Value) -> Answer {
    let mut rest = form.get(1);
    let keep = cx.mark();
    cx.push(rest)?;
    while rest.is_cons() {
        cx.set_root(keep, 0, rest);
        cx.poll()?;
        let value = cx.eval(rest.get(0))?;
        if !value.is_nil() {
            return Ok(value);
        }
        rest = rest.get(1);
    }
    Ok(Value::NIL)
}

pub(super) fn when(cx: &mut Context, form: Value) -> Answer {
    let body = form.cddr();
    cx.push(body)?;
    if cx.eval(form.cadr())?.is_nil() {
        return Ok(Value::NIL);
    }
    cx.progn(body)
}

pub(super) fn unless(cx: &mut Context, form: Value) -> Answer {
    let body = form.cddr();
    cx.push(body)?;
    if cx.eval(form.cadr())?.is_nil() {
        return cx.progn(body);
    }
    Ok(Value::NIL)
}

pub(super) fn case(cx: &mut Context, form: Value) -> Answer {
    let clauses = form.cddr();
    cx.push(clauses)?;
    let key = cx.eval(form.cadr())?;
    let names = cx.world.names;
    for clause in clauses.iter() {
        let wanted = clause.car();
        let hit = wanted == names.t
            || wanted == names.otherwise
            || if wanted.is_cons() {
                wanted.iter().any(|one| crate::builtins::compare::eql(one, key))
            } else {
                // As in EusLisp, a single key may be nil.
                crate::builtins::compare::eql(wanted, key)
            };
        if hit {
            return cx.progn(clause.cdr());
        }
    }
    Ok(Value::NIL)
}

pub(super) fn the(cx: &mut Context, form: Value) -> Answer {
    cx.eval(form.caddr())
}

/// Ignores types; the forms that bind variables read the declarations of special ones.
pub(super) fn declare(_: &mut Context, _: Value) -> Answer {
    Ok(Value::NIL)
}

/// Returns whether an `eval-when` form applies to evaluation.
pub(crate) fn runs_now(form: Value) -> bool {
    form.cadr().iter().any(|when| {
        when.is_symbol_object()
            && matches!(when.get(symbol::NAME).bytes(), b"EVAL" | b"LOAD" | b"EXECUTE" | b"LOAD-TOPLEVEL")
    })
}

pub(super) fn eval_when(cx: &mut Context, form: Value) -> Answer {
    if runs_now(form) { cx.progn(form.cddr()) } else { Ok(Value::NIL) }
}
