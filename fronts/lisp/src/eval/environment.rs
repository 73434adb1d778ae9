//! Implements lexical environments as chains of entries (name, value, link), on the stack until a closure captures
//! them, then in the heap.
//!
//! A closure copies the chain to the heap, and each stack entry's value becomes a reference to its copy, so that the
//! frame and the closure continue to share the variable.

use crate::context::{Answer, Context, Fixed};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value, flag};
use crate::world::class;
use std::sync::atomic::{AtomicU64, Ordering};

const NAME: usize = 0;
const VALUE: usize = 1;
const LINK: usize = 2;

/// Returns word `index` of the entry at an address.
fn word(entry: usize, index: usize) -> &'static AtomicU64 {
    let at = std::ptr::with_exposed_provenance::<AtomicU64>(entry + index * 8);
    // SAFETY: entries on the stack lie below its top while they are linked (invariant 2 of `context`), entries in the
    // heap are reached from a live closure; both are accessed as atomic words.
    unsafe { &*at }
}

fn get(entry: usize, index: usize) -> Value {
    Value(word(entry, index).load(Ordering::Relaxed))
}

/// Returns the address of the entry that a link refers to; the low bits of a link tell stack and heap apart.
#[inline]
fn target(link: Value) -> usize {
    (link.0 & !3) as usize
}

/// Returns the next outer entry.
#[inline]
fn next(entry: usize) -> usize {
    target(get(entry, LINK))
}

/// Returns the object whose slots are the variables of a [`Value::SELF_KEY`] entry.
fn own_object(entry: usize) -> Value {
    let object = get(entry, VALUE);
    if object.is_shared() { object.get(VALUE) } else { object }
}

/// Returns a link to an entry on the stack.
fn stack_link(entry: usize) -> Value {
    Value(entry as u64 | 3)
}

impl Context {
    /// Pushes an entry as the innermost one.
    #[inline]
    pub(crate) fn bind(&mut self, name: Value, value: Value) -> Result<(), Exit> {
        let entry = self.push_entry(name, value, self.environment)?;
        self.environment = stack_link(entry);
        Ok(())
    }

    /// Returns the address of a lexical variable's value, or 0 when no entry has the name.
    #[inline]
    pub(crate) fn lexical(&self, name: Value) -> usize {
        let mut at = target(self.environment);
        while at != 0 {
            let key = get(at, NAME);
            if key == name {
                let value = get(at, VALUE);
                return if value.is_shared() { value.address() + 8 } else { at + 8 };
            }
            if key == Value::SELF_KEY {
                let place = self.slot_place(own_object(at), name);
                if place != 0 {
                    return place;
                }
            }
            at = next(at);
        }
        0
    }

    /// Returns the address of a slot, by name, in the object whose method runs, or 0 without such a slot.
    fn slot_place(&self, object: Value, name: Value) -> usize {
        if !object.is_object() || !matches!(object.header().kind(), ObjectKind::Instance | ObjectKind::Array)
        {
            return 0;
        }
        let variables = self.world.class_object(object.header().class()).slot(class::slot::VARIABLES);
        for index in 0..variables.length() {
            if variables.get(index + 1) == name {
                return object.address() + (index + 1) * 8;
            }
        }
        0
    }

    /// Returns the value of a slot, by name, in the object whose method runs.
    pub(crate) fn own_value(&self, object: Value, name: Value) -> Option<Value> {
        let place = self.slot_place(object, name);
        (place != 0).then(|| get(place, 0))
    }

    /// Assigns a slot, by name, in the object whose method runs; returns false without such a slot.
    pub(crate) fn set_own_value(&mut self, object: Value, name: Value, value: Value) -> Result<bool, Exit> {
        let place = self.slot_place(object, name);
        if place == 0 {
            return Ok(false);
        }
        if self.is_of_runtime(object, (place - object.address()) / 8 - 1) {
            return self.not_assigned(name);
        }
        store(place, value);
        Ok(true)
    }

    /// Signals an assignment to a slot that only the runtime assigns.
    #[cold]
    pub(crate) fn not_assigned<T>(&mut self, name: Value) -> Result<T, Exit> {
        let shown = self.show_short(name);
        self.error_about(
            ErrorClass::Type,
            format!("slot {shown} is of the runtime and is not assigned"),
            name,
        )
    }

    /// Returns the value of a variable.
    #[inline]
    pub(crate) fn variable(&mut self, name: Value) -> Answer {
        let place = self.lexical(name);
        if place != 0 {
            return Ok(get(place, 0));
        }
        self.global_or_error(name)
    }

    /// Returns the value of a variable outside of the lexical environment.
    pub(crate) fn global_or_error(&mut self, name: Value) -> Answer {
        let value = self.global_value(name);
        if value == Value::UNBOUND {
            return self.unbound(name);
        }
        Ok(value)
    }

    #[cold]
    fn unbound(&mut self, name: Value) -> Answer {
        self.set_fixed(Fixed::Form, name);
        let shown = self.show_short(name);
        self.error_about(ErrorClass::Unbound, format!("unbound variable {shown}"), name)
    }

    /// Assigns a lexical or global variable.
    pub(crate) fn assign(&mut self, name: Value, value: Value) -> Result<(), Exit> {
        if !name.is_symbol_object() {
            return self.type_error("variable", name).map(|_: Value| ());
        }
        let mut at = target(self.environment);
        while at != 0 {
            let key = get(at, NAME);
            if key == name {
                let shared = get(at, VALUE);
                store(if shared.is_shared() { shared.address() + 8 } else { at + 8 }, value);
                return Ok(());
            }
            if key == Value::SELF_KEY && self.set_own_value(own_object(at), name, value)? {
                return Ok(());
            }
            at = next(at);
        }
        self.assign_global(name, value)
    }

    /// Assigns a variable outside of the lexical environment.
    pub(crate) fn assign_global(&mut self, name: Value, value: Value) -> Result<(), Exit> {
        if name.has_flag(flag::CONSTANT) {
            return self.is_constant(name);
        }
        self.set_global(name, value);
        Ok(())
    }

    /// Passes key and value of each entry to `stop`, innermost first, until it returns true.
    pub(crate) fn entries(&self, mut stop: impl FnMut(Value, Value) -> bool) {
        let mut at = target(self.environment);
        while at != 0 {
            let mut value = get(at, VALUE);
            if value.is_shared() {
                value = value.get(VALUE);
            }
            if stop(get(at, NAME), value) {
                return;
            }
            at = next(at);
        }
    }

    /// Returns the value of the innermost entry with a key.
    pub(crate) fn entry(&self, key: Value) -> Option<Value> {
        let mut found = None;
        self.entries(|own, value| {
            let hit = own == key;
            if hit {
                found = Some(value);
            }
            hit
        });
        found
    }

    /// Copies the environment to the heap as a chain, which shares its variables with the frames.
    pub(crate) fn capture(&mut self) -> Answer {
        let mut link = self.environment;
        let first = self.mark();
        let mut last = Value::NIL;
        while !link.is_nil() {
            let at = target(link);
            let on_stack = link.0 & 3 == 3;
            let value = get(at, VALUE);
            let (copy, done) = if !on_stack {
                (Value::shared_at(at), true)
            } else if value.is_shared() {
                (value, true)
            } else {
                (self.new_entry(get(at, NAME), value)?, false)
            };
            if last.is_nil() {
                self.push(copy)?;
            } else {
                last.set(LINK, copy);
            }
            if done {
                break;
            }
            word(at, VALUE).store(copy.0, Ordering::Relaxed);
            last = copy;
            link = get(at, LINK);
        }
        let chain = if self.above(first) == 0 { Value::NIL } else { self.root(first, 0) };
        self.release(first);
        Ok(chain)
    }
}

/// Writes the value at an address returned by [`Context::lexical`].
pub(super) fn store(place: usize, value: Value) {
    word(place, 0).store(value.0, Ordering::Relaxed);
}

impl Context {
    /// Returns the value of a lexical variable.
    pub(crate) fn lexical_value(&self, name: Value) -> Option<Value> {
        let place = self.lexical(name);
        (place != 0).then(|| get(place, 0))
    }
}
