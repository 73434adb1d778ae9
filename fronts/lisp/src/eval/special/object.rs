//! Evaluates classes, methods, and messages to the superclass.

use super::define::with_block;
use super::malformed::malformed;
use crate::context::{Answer, Context, RootMark};
use crate::error::{ErrorClass, Exit};
use crate::threads::lock;
use crate::value::{ObjectKind, Value};
use crate::world::class;
use std::sync::atomic::{Ordering, fence};

/// Evaluates `(defclass name :super class :slots (slot (slot :type type :forward (selector ...)) ...))`.
pub(super) fn defclass(cx: &mut Context, form: Value) -> Answer {
    let name = form.cadr();
    if !name.is_symbol_object() {
        return malformed(cx, form);
    }
    let mut above = cx.world.class_object(class::OBJECT);
    let mut meta = Value::NIL;
    let mut elements = Value::NIL;
    let mut slots = Value::NIL;
    let mut rest = form.cddr();
    let keep = cx.mark();
    cx.push(rest)?;
    while rest.is_cons() {
        cx.put_root(keep, rest);
        let (key, value) = (rest.get(0), rest.cadr());
        if !key.is_symbol_object() || !rest.get(1).is_cons() {
            return malformed(cx, form);
        }
        match key.get(crate::value::symbol::NAME).bytes() {
            b"SUPER" => above = class_of_form(cx, value)?,
            b"SLOTS" => slots = value,
            b"METACLASS" => meta = class_of_form(cx, value)?,
            b"ELEMENT-TYPE" => elements = value,
            b"SIZE" | b"TYPE" => {}
            b"DOCUMENTATION" | b"DOC" => {
                let key = cx.world.names.documentation;
                cx.put_property(name, key, value)?;
            }
            _ => {
                let shown = cx.show_short(key);
                return cx.error_about(
                    ErrorClass::Arguments,
                    format!("unknown defclass option {shown}"),
                    key,
                );
            }
        }
        rest = rest.cddr();
    }
    let same = cx.world.class_of(above);
    let meta = if meta.is_nil() { same } else { meta };
    if !cx.is_subclass(meta, same) {
        return cx.type_error("metaclass compatible with that of the superclass", meta);
    }
    let mut names = Vec::new();
    for item in slots.iter() {
        let slot = if item.is_cons() { item.get(0) } else { item };
        if !slot.is_symbol_object() {
            return malformed(cx, form);
        }
        names.push(slot);
    }
    let class = cx.make_class(name, above, meta, &names, elements)?;
    cx.push(class)?;
    cx.define_accessors(name, class)?;
    for item in slots.iter() {
        cx.define_forwards(class, item)?;
    }
    Ok(name)
}

fn class_of_form(cx: &mut Context, form: Value) -> Result<Value, Exit> {
    if form.is_nil() {
        return Ok(cx.world.class_object(class::OBJECT));
    }
    let class = cx.eval(form)?;
    if cx.is_class(class) {
        return Ok(class);
    }
    cx.type_error("class", class)
}

/// Evaluates `(defmethod class (:selector parameters . body) ...)`.
pub(super) fn defmethod(cx: &mut Context, form: Value) -> Answer {
    let class = class_of_form(cx, form.cadr())?;
    for method in cx.alive(form.cddr())? {
        if !method.is_cons() || !method.get(0).is_symbol_object() || !method.cadr().is_list() {
            return malformed(cx, method);
        }
        let mark = cx.mark();
        let definition = with_block(cx, method.get(0), method.get(1))?;
        cx.push(definition)?;
        cx.add_method(class, method.get(0), definition)?;
        cx.release(mark);
    }
    Ok(form.cadr())
}

/// A list of methods that is to replace that of a class. Both lists are on the root stack.
pub(crate) struct ChangedMethods {
    class: Value,
    old: Value,
    new: Value,
}

impl ChangedMethods {
    /// Returns the definition that the class had for a selector.
    pub(crate) fn former(&self, selector: Value) -> Option<Value> {
        self.old.iter().find(|method| method.car() == selector).map(Value::cdr)
    }
}

impl Context {
    /// Defines or replaces a method. `definition` is `(parameters . body)`.
    pub(crate) fn add_method(
        &mut self,
        class: Value,
        selector: Value,
        definition: Value,
    ) -> Result<(), Exit> {
        self.change_method(class, selector, Some(definition), |_| true).map(|_| ())
    }

    /// Replaces a method unless its definition is no longer `former`.
    pub(crate) fn replace_method(
        &mut self,
        class: Value,
        selector: Value,
        former: Value,
        definition: Value,
    ) -> Result<(), Exit> {
        self.change_method(class, selector, Some(definition), |it| it == Some(former)).map(|_| ())
    }

    /// Removes a class's own method; returns whether there was one.
    pub(crate) fn remove_method(&mut self, class: Value, selector: Value) -> Result<bool, Exit> {
        self.change_method(class, selector, None, |former| former.is_some())
    }

    /// Changes a method if `wanted` returns true for its former definition; returns whether it did.
    fn change_method(
        &mut self,
        class: Value,
        selector: Value,
        definition: Option<Value>,
        wanted: impl Fn(Option<Value>) -> bool,
    ) -> Result<bool, Exit> {
        loop {
            let mark = self.mark();
            let changed = self.changed_methods(class, selector, definition)?;
            let is_wanted = wanted(changed.former(selector));
            let is_stored = is_wanted && self.store_methods(&changed);
            self.release(mark);
            if is_stored || !is_wanted {
                return Ok(is_stored);
            }
        }
    }

    /// Allocates the list of a class's methods with a new definition for a selector, or without the selector. It is a
    /// copy, so that other threads read either the old list or the new one.
    pub(crate) fn changed_methods(
        &mut self,
        class: Value,
        selector: Value,
        definition: Option<Value>,
    ) -> Result<ChangedMethods, Exit> {
        let old = class.slot(class::slot::METHODS);
        self.push(old)?;
        let method = match definition {
            Some(definition) => Some(self.cons(selector, definition)?),
            None => None,
        };
        self.push(method.unwrap_or(Value::NIL))?;
        let others = old.iter().filter(|method| method.car() != selector);
        let all: Vec<Value> = method.into_iter().chain(others).collect();
        let new = self.list(&all)?;
        self.push(new)?;
        Ok(ChangedMethods { class, old, new })
    }

    /// Stores a list of methods unless another thread has changed the class's methods since it was allocated; returns
    /// whether it was stored. The lock is taken without an allocation, for which other threads might wait.
    pub(crate) fn store_methods(&self, changed: &ChangedMethods) -> bool {
        let is_current = {
            let _changing = lock(&self.world.methods);
            let is_current = changed.class.slot(class::slot::METHODS) == changed.old;
            if is_current {
                // Release: a thread that reads the list by its address sees the conses and the methods in it.
                fence(Ordering::Release);
                changed.class.set_slot(class::slot::METHODS, changed.new);
            }
            is_current
        };
        if is_current {
            self.methods_changed();
        }
        is_current
    }

    /// Runs a method with arguments on the stack.
    pub(crate) fn call_method(
        &mut self,
        owner: Value,
        definition: Value,
        object: Value,
        first: RootMark,
        count: usize,
    ) -> Answer {
        let mark = self.mark();
        self.push(definition)?;
        let mut definition = definition;
        if definition.is(ObjectKind::Compiled) {
            if self.has_slots_of(object, owner) {
                let all = self.mark();
                self.push(object)?;
                self.push(owner)?;
                for index in 0..count {
                    self.push(self.root(first, index))?;
                }
                let value = self.call_compiled(definition, all, count + 2)?;
                self.release(mark);
                return Ok(value);
            }
            // Compiled code has fixed slot indices, which this object does not have.
            definition = crate::compile::source(definition);
        }
        let outer = self.environment;
        self.environment = Value::NIL;
        let names = self.world.names;
        self.bind(Value::SELF_KEY, object)?;
        self.bind(names.class, owner)?;
        self.bind(names.self_, object)?;
        let environment = self.environment;
        self.environment = outer;
        let value = self.call_lambda(definition.car(), definition.cdr(), environment, false, first, count)?;
        self.release(mark);
        Ok(value)
    }

    /// Returns whether an object begins with the slots of a class's instances.
    #[inline]
    pub(crate) fn has_slots_of(&self, object: Value, class: Value) -> bool {
        (object.is(ObjectKind::Instance) || object.is(ObjectKind::Array))
            && self.is_subclass(self.world.class_of(object), class)
    }

    /// Sends a message whose arguments are on the stack.
    pub(crate) fn send_pushed(
        &mut self,
        object: Value,
        selector: Value,
        first: RootMark,
        count: usize,
    ) -> Answer {
        let class = self.world.class_of(object);
        self.send_as(class, object, selector, first, count)
    }

    /// Implements `(send-message object class selector . arguments)`: looks up the method in `class`.
    pub(crate) fn send_as(
        &mut self,
        class: Value,
        object: Value,
        selector: Value,
        first: RootMark,
        count: usize,
    ) -> Answer {
        if !class.is_nil()
            && let Some((owner, definition)) = self.find_method(class, selector)
        {
            if !definition.is_cons() {
                return self.call_method(owner, definition, object, first, count);
            }
            return match self.warmed(definition, definition, Some((owner, selector)))? {
                Some(compiled) => self.call_method(owner, compiled, object, first, count),
                None => {
                    self.counted(definition, |it| it.call_method(owner, definition, object, first, count))
                }
            };
        }
        let nomethod = self.world.names.nomethod;
        if !class.is_nil()
            && let Some((owner, definition)) = self.find_method(class, nomethod)
        {
            let all = self.mark();
            self.push(selector)?;
            for index in 0..count {
                self.push(self.root(first, index))?;
            }
            return self.call_method(owner, definition, object, all, count + 1);
        }
        let (shown, to) = (self.show_short(selector), self.show_short(object));
        self.error_about(ErrorClass::Undefined, format!("no method {shown} for {to}"), object)
    }

    /// Sends a message with arguments that the caller keeps alive.
    pub(crate) fn send(&mut self, object: Value, selector: Value, arguments: &[Value]) -> Answer {
        let mark = self.mark();
        self.push(object)?;
        let first = self.mark();
        for argument in arguments {
            self.push(*argument)?;
        }
        let value = self.send_pushed(object, selector, first, arguments.len())?;
        self.release(mark);
        Ok(value)
    }

    fn around_method(&mut self) -> Result<(Value, Value), Exit> {
        let names = self.world.names;
        let (object, class) = (self.lexical_value(names.self_), self.lexical_value(names.class));
        match (object, class) {
            (Some(object), Some(class)) if self.is_class(class) => {
                Ok((object, class.slot(class::slot::SUPER)))
            }
            _ => self.error(ErrorClass::Control, "send-super outside of a method".to_owned()),
        }
    }
}

pub(super) fn send_super(cx: &mut Context, form: Value) -> Answer {
    let (object, above) = cx.around_method()?;
    let arguments = cx.alive(form.cddr())?;
    let selector = cx.eval(form.cadr())?;
    cx.push(selector)?;
    let first = cx.mark();
    for argument in arguments {
        let value = cx.eval(argument)?;
        cx.push(value)?;
    }
    let count = cx.above(first);
    cx.send_as(above, object, selector, first, count)
}

/// Sends to the superclass; the last argument is a list of further arguments.
pub(super) fn send_super_star(cx: &mut Context, form: Value) -> Answer {
    let (object, above) = cx.around_method()?;
    let arguments = cx.alive(form.cddr())?;
    let selector = cx.eval(form.cadr())?;
    cx.push(selector)?;
    let mut values = Vec::new();
    for argument in arguments {
        let value = cx.eval(argument)?;
        cx.push(value)?;
        values.push(value);
    }
    let last = values.pop().unwrap_or(Value::NIL);
    let first = cx.mark();
    for value in values.into_iter().chain(last.iter()) {
        cx.push(value)?;
    }
    let count = cx.above(first);
    cx.send_as(above, object, selector, first, count)
}

/// Evaluates `(instance class . message)`: creates an instance and sends it the message.
pub(super) fn instance(cx: &mut Context, form: Value) -> Answer {
    let message = form.cddr();
    cx.push(message)?;
    let class = class_of_form(cx, form.cadr())?;
    let object = cx.instantiate(class, None)?;
    cx.push(object)?;
    if message.is_cons() {
        let arguments = cx.alive(message.get(1))?;
        let selector = cx.eval(message.get(0))?;
        cx.push(selector)?;
        let first = cx.mark();
        for argument in arguments {
            let value = cx.eval(argument)?;
            cx.push(value)?;
        }
        let count = cx.above(first);
        cx.send_pushed(object, selector, first, count)?;
    }
    Ok(object)
}

impl Context {
    /// Creates an instance; one of a vector class has `length` elements.
    pub(crate) fn instantiate(&mut self, class: Value, length: Option<usize>) -> Answer {
        if !self.is_class(class) {
            return self.type_error("class", class);
        }
        let number = class::number(class);
        if self.is_vector_class(class) {
            // A class of structures in C's layout has a size.
            let size = || {
                let size = if class.length() > class::slot::SIZE {
                    class.slot(class::slot::SIZE)
                } else {
                    Value::NIL
                };
                size.as_fixnum().and_then(|size| usize::try_from(size).ok()).unwrap_or(0)
            };
            let length = length.unwrap_or_else(size);
            return self.new_vector_of(class, number, length);
        }
        let kind = if self.derives(class, class::ARRAY) { ObjectKind::Array } else { ObjectKind::Instance };
        let slots = class.slot(class::slot::VARIABLES).length();
        if number == class::CONS {
            return self.cons(Value::NIL, Value::NIL);
        }
        if number == class::RATIO {
            return self.zero_ratio();
        }
        if self.derives(class, class::SYMBOL) || self.derives(class, class::METACLASS) {
            return self.type_error("class whose instances instantiate makes", class);
        }
        self.new_slots(kind, number, slots)
    }

    fn new_vector_of(&mut self, class: Value, number: u16, length: usize) -> Answer {
        let vector = match class.slot(class::slot::ELEMENTS) {
            elements if elements == self.world.names.float_key => self.new_floats(length)?,
            elements if elements == self.world.names.integer_key => self.new_integers(length)?,
            elements if elements == self.world.names.bit_key => self.new_bits(length)?,
            elements if elements == self.world.names.character_key => self.new_string(length)?,
            _ => self.new_vector(length)?,
        };
        let header = vector.header();
        vector.set(0, crate::value::Header::new(header.kind(), number, length).word());
        Ok(vector)
    }
}
