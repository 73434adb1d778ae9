//! Compiles functions and methods of the library in which a program evaluates much.
//!
//! The library is interpreted, since most programs use few of its functions and a start should be short. A definition
//! of the library, or of jskeus after `load-irteus`, becomes machine code at its next call after one thread has
//! evaluated `sys:*compile-after*` forms in it. With the default limit, their evaluation took about as long as the
//! compilation takes. The program's own definitions are compiled by `compile` only, which fixes the meaning of their
//! macros.
//!
//! A symbol keeps the list of its function, so that programs see no difference: each thread finds the machine code of a
//! list in a table. A method's machine code takes the place of its list in the class.

use super::analyse::FunctionSource;
use super::jit::Effort;
use super::made::{Listing, Made, make};
use super::refused::Refused;
use super::{runtime, slot};
use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context, Fixed};
use crate::error::Exit;
use crate::threads::lock;
use crate::value::{ObjectKind, Value, symbol};
use crate::world::class;
use crate::world::library::{NEVER, called};
use std::sync::atomic::Ordering;
use std::time::Instant;

pub(crate) const BUILTINS: &[Builtin] = &[
    builtin("LARGESSE:LIBRARY-METHOD", 2, 2, library_method),
    builtin("LARGESSE:NOTE-LIBRARY", 1, 1, note_library),
    builtin("LARGESSE:RENAME-OPERATOR", 3, 3, rename_operator),
    builtin("SYSTEM:COMPILED-LIBRARY", 0, 0, compiled_library),
];

/// Number of forms evaluated in a definition from one comparison with the limit to the next.
const STEP: u32 = 64;

impl Context {
    /// Returns the interpreted definitions of all methods.
    fn method_lists(&self) -> Vec<Value> {
        let classes: Vec<Value> = self.world.tables.all_classes().collect();
        let methods = classes.iter().flat_map(|of| of.slot(class::slot::METHODS).iter());
        methods.map(Value::cdr).filter(|definition| definition.is_cons()).collect()
    }

    /// Returns the lists that are functions of symbols.
    fn function_lists(&self) -> Vec<Value> {
        let symbols = self.packages().into_iter().flat_map(|package| package.symbols());
        let functions = symbols.filter(|(name, _)| name.is_symbol_object());
        let functions = functions.map(|(name, _)| name.get(symbol::FUNCTION));
        functions.filter(|function| function.car() == self.world.names.lambda).collect()
    }

    /// Notes all definitions, except those from before, as those of the library.
    pub(crate) fn note_library(&self, at_start: bool) {
        let (methods, functions) = (self.method_lists(), self.function_lists());
        let mut state = lock(&self.world.warm.state);
        let before = std::mem::take(&mut state.before);
        for definition in methods.iter().chain(&functions).filter(|list| !before.contains(list)) {
            if state.known.insert(*definition) {
                self.world.tables.pin(*definition);
            }
        }
        if at_start {
            state.own_methods = methods.into_iter().collect();
        }
        drop(state);
        self.world.warm.changed();
    }

    /// Returns the machine code of a definition that this thread calls, if there is any. Generates the code of a
    /// definition of the library in which the thread evaluated much.
    #[inline]
    pub(crate) fn warmed(
        &mut self,
        definition: Value,
        lambda: Value,
        method: Option<(Value, Value)>,
    ) -> Result<Option<Value>, Exit> {
        let epoch = self.world.warm.epoch.load(Ordering::Acquire);
        let entry = called(&mut self.called, definition, epoch);
        if entry.function != Value::NIL.0 {
            return Ok((!self.stepping).then_some(Value(entry.function)));
        }
        if entry.evaluated < entry.due {
            return Ok(None);
        }
        entry.due = entry.evaluated + STEP;
        let evaluated = entry.evaluated;
        self.evaluated_much(definition, lambda, method, evaluated)
    }

    /// Runs an interpreted definition, and counts the forms that are evaluated in it.
    #[inline]
    pub(crate) fn counted(&mut self, definition: Value, run: impl FnOnce(&mut Self) -> Answer) -> Answer {
        let outer = std::mem::replace(&mut self.evaluated, 0);
        let answer = run(self);
        let own = std::mem::replace(&mut self.evaluated, outer);
        let epoch = self.world.warm.epoch.load(Ordering::Acquire);
        let entry = called(&mut self.called, definition, epoch);
        entry.evaluated = entry.evaluated.saturating_add(own).min(NEVER - STEP - 1);
        answer
    }

    #[cold]
    fn evaluated_much(
        &mut self,
        definition: Value,
        lambda: Value,
        method: Option<(Value, Value)>,
        evaluated: u32,
    ) -> Result<Option<Value>, Exit> {
        let limit = self.global_value(self.world.names.compile_after).as_fixnum();
        if self.stepping || limit.is_none_or(|limit| i64::from(evaluated) < limit) {
            return Ok(None);
        }
        let (known, made) = {
            let state = lock(&self.world.warm.state);
            (state.known.contains(&definition), state.compiled.get(&definition).copied())
        };
        let function = match made {
            None if known => self.compile_warm(definition, lambda, method)?,
            made => made,
        };
        let epoch = self.world.warm.epoch.load(Ordering::Acquire);
        let entry = called(&mut self.called, definition, epoch);
        match function {
            Some(function) => entry.function = function.0,
            None => entry.due = NEVER,
        }
        Ok(function)
    }

    /// Generates the machine code of a definition; returns none if it stays interpreted.
    fn compile_warm(
        &mut self,
        definition: Value,
        lambda: Value,
        method: Option<(Value, Value)>,
    ) -> Result<Option<Value>, Exit> {
        let began = Instant::now();
        let saved = self.save();
        let form = self.fixed(Fixed::Form);
        self.push(form)?;
        // Without a name, a function calls itself through its symbol, as in interpreted code.
        let (class, name) = method.unwrap_or((Value::NIL, Value::NIL));
        let function = match make(self, FunctionSource { name, lambda, class }, Effort::Low, Listing::None) {
            Ok(Made { code, constants, .. }) => {
                let template = self.cons(name, lambda)?;
                self.push(template)?;
                Some(runtime::new_function(self, code, template, constants, 0)?)
            }
            // The evaluator signals the error where it occurs, if it does.
            Err(Refused::Form(_) | Refused::Exit(Exit::Error)) => None,
            Err(Refused::Exit(exit)) => return Err(exit),
        };
        if let Some(function) = function {
            self.push(function)?;
            self.world.tables.pin(function);
            {
                let mut state = lock(&self.world.warm.state);
                state.compiled.insert(definition, function);
                state.count += 1;
                state.time += began.elapsed();
            }
            if !class.is_nil() {
                let current = class.slot(class::slot::METHODS).iter().find(|method| method.car() == name);
                if current.is_some_and(|method| method.cdr() == definition) {
                    self.add_method(class, name, function)?;
                }
            }
        }
        self.set_fixed(Fixed::Form, form);
        self.restore(&saved);
        Ok(function)
    }
}

/// Implements `(library-method class selector)`: returns `(parameters . body)` of a method of the library, which is
/// interpreted afterwards; nil for a method of the program. The list may be changed: machine code of all lists is
/// forgotten.
fn library_method(cx: &mut Context, args: Args<'_>) -> Answer {
    if !cx.is_class(args[0]) {
        return cx.type_error("class", args[0]);
    }
    let methods = args[0].slot(class::slot::METHODS);
    let Some(method) = methods.iter().find(|method| method.car() == args[1]) else { return Ok(Value::NIL) };
    let definition = method.cdr();
    let list = if definition.is(ObjectKind::Compiled) { slot::source(definition) } else { definition };
    {
        let mut state = lock(&cx.world.warm.state);
        state.compiled.clear();
        if !state.own_methods.contains(&list) {
            return Ok(Value::NIL);
        }
    }
    cx.world.warm.changed();
    if list != definition {
        cx.add_method(args[0], args[1], list)?;
    }
    Ok(list)
}

/// Implements `(rename-operator old new forms)`: writes `new` for `old` where it is called in a list of forms, or named by
/// `#'`.
fn rename_operator(cx: &mut Context, args: Args<'_>) -> Answer {
    let [old, new] = [args[0], args[1]];
    let mut lists = vec![args[2]];
    while let Some(mut list) = lists.pop() {
        while list.is_cons() {
            let form = list.car();
            if form.is_cons() {
                let is_named = form.car() == cx.world.names.function && form.cdr().is_cons();
                if form.car() == old {
                    form.set(0, new);
                } else if is_named && form.cadr() == old {
                    form.cdr().set(0, new);
                }
                lists.push(form);
            }
            list = list.cdr();
        }
    }
    Ok(Value::NIL)
}

/// Implements `(note-library done)`: what is defined between a call with nil and one with t belongs to the library.
fn note_library(cx: &mut Context, args: Args<'_>) -> Answer {
    if args[0].is_nil() {
        let lists = cx.method_lists().into_iter().chain(cx.function_lists()).collect();
        lock(&cx.world.warm.state).before = lists;
    } else {
        cx.note_library(false);
    }
    Ok(args[0])
}

/// Implements `(sys:compiled-library)`: returns the number of definitions of the library that became machine code, and the
/// microseconds that this took.
fn compiled_library(cx: &mut Context, _: Args<'_>) -> Answer {
    let (count, time) = {
        let state = lock(&cx.world.warm.state);
        (state.count, state.time)
    };
    cx.list(&[Value::fixnum(count), Value::fixnum(time.as_micros() as i64)])
}
