//! Evaluates and writes places, the targets of `setf` and similar forms. Forms inside a place are evaluated once.

use crate::context::{Answer, Context, RootMark};
use crate::error::{ErrorClass, Exit};
use crate::value::{KeySort, Value, symbol};

/// A place whose inner forms have been evaluated. Their values are on the root stack.
enum EvaluatedPlace {
    Variable(Value),
    /// The place is a slot, written as `(object . slot)`.
    Slot {
        object: Value,
        name: Value,
    },
    /// The place is a call of an accessor; `update` writes it.
    Call {
        head: Value,
        update: Update,
        first: RootMark,
        count: usize,
    },
}

#[derive(Clone, Copy)]
enum Update {
    /// The function is called with the arguments and the new value.
    Function(Value),
    /// The function is called with quoted arguments and the quoted new value, and returns a form.
    Expander(Value),
}

fn open(cx: &mut Context, place: Value) -> Result<EvaluatedPlace, Exit> {
    if place.is_symbol_object() {
        return Ok(EvaluatedPlace::Variable(place));
    }
    // Forms inside the place may modify it, and the definition of its accessor.
    cx.push(place)?;
    let head = place.car();
    if place.is_cons() && place.get(1).is_symbol_object() {
        let name = place.get(1);
        cx.push(name)?;
        let object = cx.eval(head)?;
        cx.push(object)?;
        return Ok(EvaluatedPlace::Slot { object, name });
    }
    if !head.is_symbol_object() {
        return cx.type_error("place", place);
    }
    let names = cx.world.names;
    if head == names.the {
        let typed = place.caddr();
        cx.push(typed)?;
        return open(cx, typed);
    }
    let update = match cx.property(head, names.setf_update) {
        function if !function.is_nil() => Some(Update::Function(function)),
        _ => match cx.property(head, names.setf_method) {
            expander if !expander.is_nil() => Some(Update::Expander(expander)),
            _ => None,
        },
    };
    let Some(update) = update else {
        let local = if cx.local_functions { cx.entry(head.key(KeySort::Macro)) } else { None };
        let function = local.unwrap_or(head.get(symbol::FUNCTION));
        if function.is_cons() && function.get(0) == names.macro_ {
            cx.push(function)?;
            let expansion = cx.expand_pushed(place, function)?;
            cx.push(expansion)?;
            return open(cx, expansion);
        }
        let shown = cx.show_short(place);
        return cx.error_about(ErrorClass::Type, format!("setf cannot assign to {shown}"), place);
    };
    cx.push(head)?;
    match update {
        Update::Function(function) | Update::Expander(function) => cx.push(function)?,
    }
    let forms = cx.alive(place.get(1))?;
    let first = cx.mark();
    for form in forms {
        let value = cx.eval(form)?;
        cx.push(value)?;
    }
    let count = cx.above(first);
    Ok(EvaluatedPlace::Call { head, update, first, count })
}

fn fetch(cx: &mut Context, place: &EvaluatedPlace) -> Answer {
    match *place {
        EvaluatedPlace::Variable(name) => cx.variable(name),
        EvaluatedPlace::Slot { object, name } => cx.slot_named(object, name),
        EvaluatedPlace::Call { head, first, count, .. } => {
            let mark = cx.mark();
            for index in 0..count {
                cx.push(cx.root(first, index))?;
            }
            let value = cx.call(head, mark, count)?;
            cx.release(mark);
            Ok(value)
        }
    }
}

/// Writes a value, which must be on the root stack, to a place.
fn write(cx: &mut Context, place: &EvaluatedPlace, value: Value) -> Result<(), Exit> {
    match *place {
        EvaluatedPlace::Variable(name) => cx.assign(name, value),
        EvaluatedPlace::Slot { object, name } => cx.set_slot_named(object, name, value),
        EvaluatedPlace::Call { update: Update::Function(function), first, count, .. } => {
            let mark = cx.mark();
            for index in 0..count {
                cx.push(cx.root(first, index))?;
            }
            cx.push(value)?;
            cx.call(function, mark, count + 1)?;
            cx.release(mark);
            Ok(())
        }
        EvaluatedPlace::Call { update: Update::Expander(expander), first, count, .. } => {
            let quote = cx.world.names.quote;
            let mark = cx.mark();
            for index in 0..count {
                let quoted = cx.list(&[quote, cx.root(first, index)])?;
                cx.push(quoted)?;
            }
            let quoted = cx.list(&[quote, value])?;
            cx.push(quoted)?;
            let form = cx.call(expander, mark, count + 1)?;
            cx.push(form)?;
            cx.eval(form)?;
            cx.release(mark);
            Ok(())
        }
    }
}

impl Context {
    /// Writes the slot of an object that `(object . name)` denotes.
    pub(crate) fn set_slot_named(&mut self, object: Value, name: Value, value: Value) -> Result<(), Exit> {
        self.slot_named(object, name)?;
        let class = self.world.class_of(object);
        match self.slot_index(class, name) {
            Some(index) if self.is_of_runtime(object, index) => self.not_assigned(name),
            Some(index) => {
                object.set_slot(index, value);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

pub(super) fn setf(cx: &mut Context, form: Value) -> Answer {
    let mut value = Value::NIL;
    let mut rest = form.get(1);
    while rest.is_cons() {
        let more = rest.get(1);
        if !more.is_cons() {
            return cx.error_about(
                ErrorClass::Arguments,
                "setf takes places and values in pairs".to_owned(),
                form,
            );
        }
        cx.push(more)?;
        value = set_place(cx, rest.get(0), more.get(0))?;
        rest = more.get(1);
    }
    Ok(value)
}

/// Sets a place to the value of a form, and returns the value.
pub(crate) fn set_place(cx: &mut Context, place: Value, form: Value) -> Answer {
    cx.push(place)?;
    cx.push(form)?;
    let place = open(cx, place)?;
    let value = cx.eval(form)?;
    cx.push(value)?;
    write(cx, &place, value)?;
    Ok(value)
}

pub(super) fn push(cx: &mut Context, form: Value) -> Answer {
    let value = cx.eval(form.cadr())?;
    cx.push(value)?;
    let place = open(cx, form.caddr())?;
    let old = fetch(cx, &place)?;
    let new = cx.cons(value, old)?;
    cx.push(new)?;
    write(cx, &place, new)?;
    Ok(new)
}

pub(super) fn pushnew(cx: &mut Context, form: Value) -> Answer {
    let value = cx.eval(form.cadr())?;
    let first = cx.mark();
    cx.push(value)?;
    let place = open(cx, form.caddr())?;
    let old = fetch(cx, &place)?;
    cx.push(old)?;
    let options = cx.alive(form.cddr().cdr())?;
    let arguments = cx.mark();
    cx.push(cx.root(first, 0))?;
    cx.push(old)?;
    for option in options {
        let option = cx.eval(option)?;
        cx.push(option)?;
    }
    let count = cx.above(arguments);
    let new = cx.call(cx.world.names.adjoin, arguments, count)?;
    cx.push(new)?;
    write(cx, &place, new)?;
    Ok(new)
}

pub(super) fn pop(cx: &mut Context, form: Value) -> Answer {
    let place = open(cx, form.cadr())?;
    let old = fetch(cx, &place)?;
    if !old.is_list() {
        return cx.type_error("list", old);
    }
    cx.push(old)?;
    write(cx, &place, old.cdr())?;
    Ok(old.car())
}

pub(super) fn incf(cx: &mut Context, form: Value) -> Answer {
    step(cx, form, cx.world.names.plus, 1)
}

pub(super) fn decf(cx: &mut Context, form: Value) -> Answer {
    step(cx, form, cx.world.names.minus, -1)
}

fn step(cx: &mut Context, form: Value, function: Value, sign: i64) -> Answer {
    let place = open(cx, form.cadr())?;
    let by = if form.cddr().is_cons() { cx.eval(form.caddr())? } else { Value::fixnum(1) };
    cx.push(by)?;
    let old = fetch(cx, &place)?;
    let quick = old.as_fixnum().zip(by.as_fixnum()).map(|(old, by)| old + sign * by);
    let new = match quick {
        Some(number) if Value::fits_fixnum(number) => Value::fixnum(number),
        _ => cx.apply(function, &[old, by])?,
    };
    cx.push(new)?;
    write(cx, &place, new)?;
    Ok(new)
}
