//! Recognizes functions that only read a slot, as `defclass` defines them, and reads the slot without a call.
//!
//! ```text
//!   (lambda (object) (slot object coordinates 'rot))
//! ```
//! The class is the value of its name at each call, and the slot's index is checked against the class's slots. A call for
//! any other object is left to the evaluator, which signals the error.

use crate::context::Context;
use crate::value::{ObjectKind, Value, flag, symbol};
use crate::world::class;

/// Returns the name of the class and that of the slot in a reader's body.
fn names(lambda: Value) -> (Value, Value) {
    let operands = lambda.cdr().car().cddr();
    (operands.car(), operands.cadr().cadr())
}

impl Context {
    /// Returns the index of the slot, as a fixnum, if a definition only reads a slot.
    pub(super) fn reader(&self, lambda: Value) -> Option<Value> {
        let (parameter, form) = (lambda.car().car(), lambda.cdr().car());
        let builtin = form.car();
        let quoted = form.cddr().cadr();
        let is_reader = lambda.car().cdr().is_nil()
            && parameter.is_symbol_object()
            && !parameter.has_flag(flag::LAMBDA_KEYWORD | flag::SPECIAL | flag::CONSTANT)
            && lambda.cddr().is_nil()
            && builtin == self.world.names.slot
            && builtin.get(symbol::FUNCTION).is(ObjectKind::Builtin)
            && form.cadr() == parameter
            && form.cddr().cddr().is_nil()
            && quoted.car() == self.world.names.quote
            && quoted.cddr().is_nil();
        let (name, slot) = names(lambda);
        if !is_reader || !name.is_symbol_object() || name == parameter {
            return None;
        }
        let class = self.global_value(name);
        let index = if self.is_class(class) { self.slot_index(class, slot) } else { None };
        index.map(|index| Value::fixnum(index as i64))
    }

    /// Returns the value of the slot, or `None` if the object is not of the class, the slot has another index now, or the
    /// program has defined another function `slot`.
    #[inline]
    pub(crate) fn read_for(&self, lambda: Value, index: Value, object: Value) -> Option<Value> {
        let (name, slot) = names(lambda);
        let index = usize::try_from(index.as_fixnum()?).ok()?;
        let is_builtin = self.world.names.slot.get(symbol::FUNCTION).is(ObjectKind::Builtin);
        if !is_builtin
            || !name.is_symbol_object()
            || !(object.is(ObjectKind::Instance) || object.is(ObjectKind::Array))
        {
            return None;
        }
        let class = self.global_value(name);
        // A value that is no class has no subclass.
        if !self.is_subclass(self.world.class_of(object), class) {
            return None;
        }
        let variables = class.slot(class::slot::VARIABLES);
        let is_there = index < variables.length() && index < object.length() && variables.slot(index) == slot;
        is_there.then(|| object.slot(index))
    }
}
