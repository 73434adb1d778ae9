//! Binds variables, local functions and macros.

use super::define::with_block;
use super::malformed::malformed;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::eval::Saved;
use crate::eval::environment::store;
use crate::value::{KeySort, Value, flag};

/// Evaluates the body of a binding form and undoes the bindings.
fn body(cx: &mut Context, forms: Value, saved: &Saved) -> Answer {
    let value = cx.progn(forms)?;
    cx.restore_bindings(saved);
    Ok(value)
}

/// Splits `name` or `(name form)`.
fn name_and_form(item: Value) -> (Value, Value) {
    if item.is_cons() { (item.get(0), item.cadr()) } else { (item, Value::NIL) }
}

pub(super) fn let_(cx: &mut Context, form: Value) -> Answer {
    let before = cx.save();
    let (items, forms) = (form.cadr(), form.cddr());
    cx.push(forms)?;
    cx.push(items)?;
    let first = cx.mark();
    let mut rest = items;
    while rest.is_cons() {
        let (name, form) = name_and_form(rest.get(0));
        let mark = cx.mark();
        cx.push(name)?;
        cx.push(rest)?;
        let value = cx.eval(form)?;
        cx.set_root(mark, 1, value);
        rest = rest.get(1);
    }
    for index in 0..cx.above(first) / 2 {
        let (name, value) = (cx.root(first, index * 2), cx.root(first, index * 2 + 1));
        cx.bind_variable(name, value, forms)?;
    }
    body(cx, forms, &before)
}

pub(super) fn let_star(cx: &mut Context, form: Value) -> Answer {
    let before = cx.save();
    let (items, forms) = (form.cadr(), form.cddr());
    cx.push(forms)?;
    let keep = cx.mark();
    cx.push(items)?;
    let mut rest = items;
    while rest.is_cons() {
        cx.set_root(keep, 0, rest);
        let value = cx.eval(name_and_form(rest.get(0)).1)?;
        cx.bind_variable(name_and_form(rest.get(0)).0, value, forms)?;
        rest = rest.get(1);
    }
    body(cx, forms, &before)
}

/// Binds dynamic variables whose names are computed.
pub(super) fn progv(cx: &mut Context, form: Value) -> Answer {
    let before = cx.save();
    let forms = form.cddr().cdr();
    cx.push(forms)?;
    let names = cx.eval(form.cadr())?;
    cx.push(names)?;
    let values = cx.eval(form.caddr())?;
    cx.push(values)?;
    cx.progv(names, values)?;
    body(cx, forms, &before)
}

impl Context {
    /// Binds each of a list of variables; those without a value to nil.
    pub(crate) fn progv(&mut self, names: Value, values: Value) -> Result<(), Exit> {
        let mut values = self.alive(values)?.into_iter();
        for name in self.alive(names)? {
            if !name.is_symbol_object() {
                return self.type_error("variable", name);
            }
            if name.has_flag(flag::CONSTANT) {
                return self.is_constant(name);
            }
            self.bind_special(name, values.next().unwrap_or(Value::NIL))?;
        }
        Ok(())
    }
}

/// Binds local functions, each of which is closed over the outer environment.
pub(super) fn flet(cx: &mut Context, form: Value) -> Answer {
    let before = cx.save();
    let (items, forms) = (form.cadr(), form.cddr());
    cx.push(forms)?;
    let items = cx.alive(items)?;
    let first = cx.mark();
    for item in &items {
        let function = local(cx, *item)?;
        cx.push(function)?;
    }
    for (index, item) in items.into_iter().enumerate() {
        cx.bind(item.car().key(KeySort::Function), cx.root(first, index))?;
    }
    cx.local_functions = true;
    body(cx, forms, &before)
}

/// Binds local functions, each of which is closed over all of them.
pub(super) fn labels(cx: &mut Context, form: Value) -> Answer {
    let before = cx.save();
    let (items, forms) = (form.cadr(), form.cddr());
    cx.push(forms)?;
    let items = cx.alive(items)?;
    for item in &items {
        if !item.car().is_symbol_object() {
            return malformed(cx, form);
        }
        cx.bind(item.car().key(KeySort::Function), Value::NIL)?;
    }
    cx.local_functions = true;
    for item in items {
        let function = local(cx, item)?;
        set_entry(cx, item.get(0).key(KeySort::Function), function)?;
    }
    body(cx, forms, &before)
}

/// Creates a closure of `(name parameters . body)`, whose body is a block of that name.
fn local(cx: &mut Context, item: Value) -> Answer {
    if !item.is_cons() || !item.get(0).is_symbol_object() || !item.get(1).is_cons() {
        return malformed(cx, item);
    }
    let mark = cx.mark();
    let lambda = with_block(cx, item.get(0), item.get(1))?;
    cx.push(lambda)?;
    let function = cx.close(item.get(0), lambda)?;
    cx.release(mark);
    Ok(function)
}

fn set_entry(cx: &mut Context, key: Value, value: Value) -> Result<(), Exit> {
    let place = cx.lexical(key);
    if place != 0 {
        store(place, value);
    }
    Ok(())
}

pub(super) fn macrolet(cx: &mut Context, form: Value) -> Answer {
    let before = cx.save();
    let forms = form.cddr();
    cx.push(forms)?;
    for item in cx.alive(form.cadr())? {
        if !item.is_cons() || !item.get(0).is_symbol_object() {
            return malformed(cx, form);
        }
        let definition = cx.cons(cx.world.names.macro_, item.get(1))?;
        cx.push(definition)?;
        cx.bind(item.get(0).key(KeySort::Macro), definition)?;
    }
    cx.local_functions = true;
    body(cx, forms, &before)
}

/// Binds variables to the elements of a list, which is the result of `values`.
pub(super) fn multiple_value_bind(cx: &mut Context, form: Value) -> Answer {
    let before = cx.save();
    let (names, forms) = (form.cadr(), form.cddr().cdr());
    cx.push(forms)?;
    cx.push(names)?;
    let mut values = cx.eval(form.caddr())?;
    if !values.is_list() {
        values = cx.list(&[values])?;
    }
    let mut values = cx.alive(values)?.into_iter();
    for name in cx.alive(names)? {
        cx.bind_variable(name, values.next().unwrap_or(Value::NIL), forms)?;
    }
    body(cx, forms, &before)
}
