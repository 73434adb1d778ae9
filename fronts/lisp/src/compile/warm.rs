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

    /// Returns the machine code of a definition that this thread calls, if there is any, or the index of a slot that it only
    /// reads. Generates the code of a definition of the library in which the thread evaluated much.
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
        // At the first call. The epoch is read before the definition, which may change at any time.
        let epoch = self.world.warm.epoch.load(Ordering::Acquire);
        if evaluated == 0
            && method.is_none()
            && !self.stepping
            && let Some(index) = self.reader(lambda)
            && lock(&self.world.warm.state).known.contains(&definition)
        {
            called(&mut self.called, definition, epoch).function = index.0;
            return Ok(Some(index));
        }
        let limit = self.global_value(self.world.names.compile_after).as_fixnum();
        if self.stepping || limit.is_none_or(|limit| i64::from(evaluated) < limit) {
            return Ok(None);
        }
        let (epoch, known, made) = {
            let state = lock(&self.world.warm.state);
            let epoch = self.world.warm.epoch.load(Ordering::Acquire);
            (epoch, state.known.contains(&definition), state.compiled.get(&definition).copied())
        };
        let outcome = match made {
            Some(function) => Warmed::Code(function),
            None if known => self.compile_warm(definition, lambda, method, epoch)?,
            None => Warmed::Interpreted,
        };
        let entry = called(&mut self.called, definition, epoch);
        Ok(match outcome {
            Warmed::Code(function) => {
                entry.function = function.0;
                Some(function)
            }
            Warmed::Interpreted => {
                entry.due = NEVER;
                None
            }
            Warmed::Outdated => None,
        })
    }

    /// Generates the machine code of a definition. The program's error handler is not called for errors in the expansion of
    /// macros, as these may be in branches that are never taken. Its functions for signals and the like are called
    /// afterwards, since their exits are the program's, unlike those of macros.
    fn compile_warm(
        &mut self,
        definition: Value,
        lambda: Value,
        method: Option<(Value, Value)>,
        epoch: u64,
    ) -> Result<Warmed, Exit> {
        let began = Instant::now();
        let saved = self.save();
        let (form, error) = (self.fixed(Fixed::Form), self.fixed(Fixed::Error));
        self.push(form)?;
        self.push(error)?;
        // Without a name, a function calls itself through its symbol, as in interpreted code.
        let (class, name) = method.unwrap_or((Value::NIL, Value::NIL));
        let handling = std::mem::replace(&mut self.handling, true);
        let deferring = std::mem::replace(&mut self.deferring, true);
        let made = make(self, FunctionSource { name, lambda, class }, Effort::Low, Listing::None);
        (self.handling, self.deferring) = (handling, deferring);
        let function = match made {
            Ok(Made { code, constants, .. }) => {
                let template = self.cons(name, lambda)?;
                self.push(template)?;
                Some(runtime::new_function(self, code, template, constants, 0)?)
            }
            Err(Refused::Exit(Exit::Interrupt)) => return Err(Exit::Interrupt),
            // The evaluator signals the error, or exits, where the form is evaluated, if it is.
            Err(Refused::Form(_) | Refused::Exit(_)) => None,
        };
        let outcome = match function {
            Some(function) => {
                self.push(function)?;
                if self.install_warm(definition, function, method, epoch, began)? {
                    self.world.tables.pin(function);
                    Warmed::Code(function)
                } else {
                    Warmed::Outdated
                }
            }
            None => Warmed::Interpreted,
        };
        self.set_fixed(Fixed::Form, form);
        self.set_fixed(Fixed::Error, error);
        self.restore(&saved);
        self.attend()?;
        Ok(outcome)
    }

    /// Enters machine code in the table, and in the place of a method's list if the class still has that. Returns false if
    /// a definition was changed since the epoch in which the compilation began.
    fn install_warm(
        &mut self,
        definition: Value,
        function: Value,
        method: Option<(Value, Value)>,
        epoch: u64,
        began: Instant,
    ) -> Result<bool, Exit> {
        loop {
            let mark = self.mark();
            let changed = match method {
                Some((class, name)) => {
                    let changed = self.changed_methods(class, name, Some(function))?;
                    (changed.former(name) == Some(definition)).then_some(changed)
                }
                None => None,
            };
            let installed = {
                let mut state = lock(&self.world.warm.state);
                if self.world.warm.epoch.load(Ordering::Acquire) != epoch {
                    Some(false)
                } else if changed.is_some_and(|changed| !self.store_methods(&changed)) {
                    None
                } else {
                    state.compiled.insert(definition, function);
                    state.count += 1;
                    state.time += began.elapsed();
                    Some(true)
                }
            };
            self.release(mark);
            if let Some(installed) = installed {
                return Ok(installed);
            }
        }
    }
}

/// The outcome of the compilation of a definition of the library.
enum Warmed {
    /// Its machine code.
    Code(Value),
    /// The definition stays interpreted.
    Interpreted,
    /// The code was discarded because a definition was changed since the compilation began.
    Outdated,
}

/// Implements `(library-method class selector)`: returns `(parameters . body)` of a method of the library, which is
/// interpreted afterwards; nil for a method of the program. The list may be changed: machine code of all lists is
/// forgotten.
fn library_method(cx: &mut Context, args: Args<'_>) -> Answer {
    if !cx.is_class(args[0]) {
        return cx.type_error("class", args[0]);
    }
    let Some(list) = own_definition(args).map(interpreted) else { return Ok(Value::NIL) };
    {
        let mut state = lock(&cx.world.warm.state);
        state.compiled.clear();
        if !state.own_methods.contains(&list) {
            return Ok(Value::NIL);
        }
        // While the state is locked, so that code of the list before its change is not installed afterwards.
        cx.world.warm.changed();
    }
    if let Some(code) =
        own_definition(args).filter(|current| *current != list && interpreted(*current) == list)
    {
        cx.replace_method(args[0], args[1], code, list)?;
    }
    Ok(list)
}

/// Returns whether a class defines a method for a selector, by the definition with which the library starts.
pub(crate) fn is_own_method(cx: &Context, of: Value, selector: Value) -> bool {
    let method = of.slot(class::slot::METHODS).iter().find(|method| method.car() == selector);
    let Some(list) = method.map(|method| interpreted(method.cdr())) else { return false };
    lock(&cx.world.warm.state).own_methods.contains(&list)
}

/// Returns the definition that a class has for a selector.
fn own_definition(args: Args<'_>) -> Option<Value> {
    args[0].slot(class::slot::METHODS).iter().find(|method| method.car() == args[1]).map(Value::cdr)
}

/// Returns the list from which a definition was compiled, or the definition if it is a list.
fn interpreted(definition: Value) -> Value {
    if definition.is(ObjectKind::Compiled) { slot::source(definition) } else { definition }
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
