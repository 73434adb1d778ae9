//! Dynamic bindings: each thread has its own value of a bound special variable.
//!
//! A symbol gets a number when it is first bound. The thread's values are in a vector, indexed by number; each
//! previous value is on the root stack, as an entry (number, old value, link to the previous entry).

use super::{Context, Fixed};
use crate::error::Exit;
use crate::threads::lock;
use crate::value::{ObjectKind, Value, symbol};

impl Context {
    /// Returns a variable's value outside of the lexical environment, or `UNBOUND`.
    #[inline]
    pub(crate) fn global_value(&self, name: Value) -> Value {
        let number = name.get(symbol::BINDING);
        if number != Value::NIL {
            let own = self.own_binding(number);
            if own != Value::UNBOUND {
                return own;
            }
        }
        name.get(symbol::VALUE)
    }

    fn own_binding(&self, number: Value) -> Value {
        let bindings = self.fixed(Fixed::Bindings);
        let index = number.as_fixnum().unwrap_or(0).cast_unsigned() as usize;
        if bindings.is(ObjectKind::Vector) && index < bindings.length() {
            bindings.slot(index)
        } else {
            Value::UNBOUND
        }
    }

    /// Assigns the thread's own binding if there is one, otherwise the shared value.
    pub(crate) fn set_global(&mut self, name: Value, value: Value) {
        let number = name.get(symbol::BINDING);
        if number != Value::NIL && self.own_binding(number) != Value::UNBOUND {
            let index = number.as_fixnum().unwrap_or(0).cast_unsigned() as usize;
            self.fixed(Fixed::Bindings).set_slot(index, value);
        } else {
            name.set(symbol::VALUE, value);
        }
    }

    /// Binds a special variable until [`Context::unbind`] is called with the earlier `specials`.
    pub(crate) fn bind_special(&mut self, name: Value, value: Value) -> Result<(), Exit> {
        self.push(value)?;
        let number = self.binding_number(name);
        let index = number.as_fixnum().unwrap_or(0).cast_unsigned() as usize;
        self.room_for_binding(index)?;
        let bindings = self.fixed(Fixed::Bindings);
        let entry = self.mark();
        self.push(number)?;
        self.push(bindings.slot(index))?;
        self.push(Value(self.specials as u64 | 3))?;
        self.specials = Context::place(entry).addr();
        bindings.set_slot(index, value);
        Ok(())
    }

    pub(crate) fn specials(&self) -> usize {
        self.specials
    }

    /// Undoes the bindings made since `specials` was `before`.
    #[inline]
    pub(crate) fn unbind(&mut self, before: usize) {
        while self.specials != before {
            let entry = std::ptr::with_exposed_provenance::<[Value; 3]>(self.specials);
            // SAFETY: `bind_special` wrote the entry, and its frame is still on the stack.
            let [number, old, link] = unsafe { *entry };
            let index = number.as_fixnum().unwrap_or(0).cast_unsigned() as usize;
            self.fixed(Fixed::Bindings).set_slot(index, old);
            self.specials = (link.0 & !3) as usize;
        }
    }

    /// Returns the number and the outer value of each dynamic binding of this thread, innermost first.
    pub(crate) fn bound_specials(&self) -> Vec<(Value, Value)> {
        let mut found = Vec::new();
        let mut at = self.specials;
        while at != 0 {
            let entry = std::ptr::with_exposed_provenance::<[Value; 3]>(at);
            // SAFETY: as in `unbind`.
            let [number, old, link] = unsafe { *entry };
            found.push((number, old));
            at = (link.0 & !3) as usize;
        }
        found
    }

    fn binding_number(&mut self, name: Value) -> Value {
        let number = name.get(symbol::BINDING);
        if number != Value::NIL {
            return number;
        }
        let mut given = lock(&self.world.bindings);
        let number = name.get(symbol::BINDING);
        if number != Value::NIL {
            return number;
        }
        let number = Value::fixnum(i64::from(*given));
        *given += 1;
        name.set(symbol::BINDING, number);
        number
    }

    fn room_for_binding(&mut self, index: usize) -> Result<(), Exit> {
        let old = self.fixed(Fixed::Bindings);
        let have = if old.is(ObjectKind::Vector) { old.length() } else { 0 };
        if index < have {
            return Ok(());
        }
        let new = self.new_vector(index * 2 + 16)?;
        for slot in 0..new.length() {
            new.set_slot(slot, if slot < have { old.slot(slot) } else { Value::UNBOUND });
        }
        self.set_fixed(Fixed::Bindings, new);
        Ok(())
    }

    /// Copies the thread's bindings, for a thread that it starts.
    pub(crate) fn copy_bindings(&mut self) -> super::Answer {
        let old = self.fixed(Fixed::Bindings);
        if !old.is(ObjectKind::Vector) {
            return Ok(Value::NIL);
        }
        let new = self.new_vector(old.length())?;
        for slot in 0..old.length() {
            new.set_slot(slot, old.slot(slot));
        }
        Ok(new)
    }
}
