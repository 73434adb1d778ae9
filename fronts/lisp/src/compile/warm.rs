//! Compiles methods of the library that a program calls often.
//!
//! The library is interpreted, since most programs use few of its methods and a start should be short. A method that one
//! thread called [`OFTEN`] times through one entry of its cache becomes machine code. Programs' own methods are compiled by
//! `compile` only, which fixes the meaning of their macros.

use super::analyse::FunctionSource;
use super::made::{Made, make};
use super::refused::Refused;
use super::{runtime, slot};
use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context, Fixed};
use crate::value::{ObjectKind, Value};
use crate::world::class;

pub(super) const BUILTIN: Builtin = builtin("LARGESSE:LIBRARY-METHOD", 2, 2, library_method);

/// Calls of a method after which it is compiled.
const OFTEN: u32 = 300;

impl Context {
    /// Notes all methods as those of the library.
    pub(crate) fn note_library_methods(&self) {
        let classes: Vec<Value> = self.world.tables.all_classes().collect();
        let methods = classes.iter().flat_map(|of| of.slot(class::slot::METHODS).iter());
        let lists = methods.map(Value::cdr).filter(|definition| definition.is_cons());
        let known = lists.inspect(|list| self.world.tables.pin(*list)).collect();
        // The library is loaded once.
        let _ = self.world.library_methods.set(known);
    }

    fn is_of_library(&self, definition: Value) -> bool {
        self.world.library_methods.get().is_some_and(|known| known.contains(&definition))
    }

    /// Counts a call of an interpreted method that `find_method` found for `class`; returns the definition to call.
    #[inline]
    pub(crate) fn warmed(&mut self, class: Value, selector: Value, found: (Value, Value)) -> Answer {
        if self.count_call(class, selector) == OFTEN {
            self.compile_warm(selector, found)
        } else {
            Ok(found.1)
        }
    }

    #[cold]
    fn compile_warm(&mut self, selector: Value, (owner, definition): (Value, Value)) -> Answer {
        if !self.is_of_library(definition) || self.stepping {
            return Ok(definition);
        }
        let saved = self.save();
        let form = self.fixed(Fixed::Form);
        self.push(form)?;
        let source = FunctionSource { name: selector, lambda: definition, class: owner };
        let function = match make(self, source) {
            Ok(Made { code, constants, .. }) => {
                let template = self.cons(selector, definition)?;
                self.push(template)?;
                runtime::new_function(self, code, template, constants, 0)?
            }
            Err(Refused::Exit(exit)) => return Err(exit),
            Err(Refused::Form(_)) => definition,
        };
        self.push(function)?;
        let current = owner.slot(class::slot::METHODS).iter().find(|method| method.car() == selector);
        if function != definition && current.is_some_and(|method| method.cdr() == definition) {
            self.add_method(owner, selector, function)?;
        }
        self.set_fixed(Fixed::Form, form);
        self.restore(&saved);
        Ok(function)
    }
}

/// Implements `(library-method class selector)`: returns `(parameters . body)` of a method of the library, which is
/// interpreted afterwards; nil for a method of the program.
fn library_method(cx: &mut Context, args: Args<'_>) -> Answer {
    if !cx.is_class(args[0]) {
        return cx.type_error("class", args[0]);
    }
    let methods = args[0].slot(class::slot::METHODS);
    let Some(method) = methods.iter().find(|method| method.car() == args[1]) else { return Ok(Value::NIL) };
    let definition = method.cdr();
    let list = if definition.is(ObjectKind::Compiled) { slot::source(definition) } else { definition };
    if !cx.is_of_library(list) {
        return Ok(Value::NIL);
    }
    if list != definition {
        cx.add_method(args[0], args[1], list)?;
    }
    Ok(list)
}
