//! Interprets the source list.
//!
//! # Picture
//! ```text
//!   (f a b)   ->  | form | rest | function | a's value | b's value | entry ... entry |   on the root stack
//!                                          `---- arguments ----'    `- environment -'
//! ```
//! # Invariants
//! 1. A form is on the root stack while it runs, and so is the unevaluated rest of an argument list or body:
//!    a program may modify its running source.
//! 2. Code that catches an [`Exit`] restores stack, environment and dynamic bindings ([`Saved`]).

mod apply;
pub(crate) mod arguments;
mod environment;
mod lambda;
pub(crate) mod place;
mod saved;
pub(crate) mod special;
mod stepping;

pub(crate) use lambda::closure;
pub(crate) use saved::Saved;

use crate::builtin::Args;
use crate::context::{Answer, Context, Fixed, RootMark};
use crate::error::{ErrorClass, Exit, slot};
use crate::value::{KeySort, ObjectKind, Value, symbol};

/// Low byte of a word in a function slot that denotes a special form.
const SPECIAL_FORM: u64 = 0x83;

impl Value {
    pub(crate) fn special_form(number: usize) -> Value {
        Value((number as u64) << 8 | SPECIAL_FORM)
    }

    pub(crate) fn as_special_form(self) -> Option<usize> {
        (self.0 & 0xff == SPECIAL_FORM).then_some((self.0 >> 8) as usize)
    }
}

impl Context {
    /// Evaluates a form, which the caller keeps alive.
    #[inline]
    pub(crate) fn eval(&mut self, form: Value) -> Answer {
        if form.is_symbol_object() {
            return self.variable(form);
        }
        if form.is_cons() {
            return self.eval_cons(form);
        }
        Ok(form)
    }

    fn eval_cons(&mut self, form: Value) -> Answer {
        let mark = self.mark();
        self.push(form)?;
        let answer = if self.stepping { self.eval_hooked(form) } else { self.eval_pushed(form) };
        if answer.is_ok() {
            self.release(mark);
        } else if answer == Err(Exit::Error) {
            self.failed_in(form);
        }
        answer
    }

    /// Adds a form to the backtrace of an error. The innermost form is the one that the error names, unless it names a
    /// variable: special forms signal errors without naming theirs.
    #[cold]
    pub(crate) fn failed_in(&mut self, form: Value) {
        if self.depth == 0 && !form.is_nil() {
            let error = self.fixed(Fixed::Error);
            if self.is_error(error) && error.slot(slot::FORM).is_list() {
                error.set_slot(slot::FORM, form);
            }
        }
        self.passed(form);
    }

    fn eval_pushed(&mut self, form: Value) -> Answer {
        self.evaluated = self.evaluated.wrapping_add(1);
        let head = form.get(0);
        if form.get(1).is_symbol_object() {
            return self.dotted_slot(form);
        }
        let function = if head.is_symbol_object() {
            if self.local_functions
                && let Some(found) = self.local_function(head)
            {
                found
            } else {
                head.get(symbol::FUNCTION)
            }
        } else {
            return self.eval_odd_head(form, head);
        };
        if let Some(number) = function.as_special_form() {
            return special::FORMS[number].1(self, form);
        }
        if !function.is_object() && self.lambda_of(function).is_none() {
            return self.eval_rare(form, head, function);
        }
        let keep = self.mark();
        self.push(Value::NIL)?;
        self.push(function)?;
        let first = self.mark();
        self.eval_arguments(form.get(1), keep)?;
        let count = self.above(first);
        self.set_fixed(Fixed::Form, form);
        if function.is_object() {
            self.call_object(function, first, count)
        } else {
            self.call_list(function, first, count)
        }
    }

    /// Evaluates a macro call, or signals an undefined function.
    #[inline(never)]
    fn eval_rare(&mut self, form: Value, head: Value, function: Value) -> Answer {
        if function.is_cons() && function.get(0) == self.world.names.macro_ {
            self.push(function)?;
            let expansion = self.expand_pushed(form, function)?;
            self.push(expansion)?;
            return self.eval(expansion);
        }
        self.set_fixed(Fixed::Form, form);
        let name = self.show_short(head);
        self.error_about(ErrorClass::Undefined, format!("undefined function {name}"), head)
    }

    /// Evaluates a list of forms onto the stack. The root at `keep` holds the rest of the list.
    #[inline]
    fn eval_arguments(&mut self, list: Value, keep: RootMark) -> Result<(), Exit> {
        let mut rest = list;
        while rest.is_cons() {
            let form = rest.get(0);
            let value = if form.is_cons() {
                self.put_root(keep, rest);
                self.eval_cons(form)?
            } else {
                self.eval(form)?
            };
            self.push(value)?;
            rest = rest.get(1);
        }
        if !rest.is_nil() {
            return self.error(ErrorClass::Reader, "a form ends in a dot".to_owned());
        }
        Ok(())
    }

    /// Evaluates `((lambda ...) ...)`, or signals that the head is not a function.
    #[inline(never)]
    fn eval_odd_head(&mut self, form: Value, head: Value) -> Answer {
        self.set_fixed(Fixed::Form, form);
        if head.is_cons() && head.get(0) == self.world.names.lambda {
            let keep = self.mark();
            self.push(form)?;
            let function = self.close(Value::NIL, head.get(1))?;
            self.push(function)?;
            let first = self.mark();
            self.eval_arguments(form.get(1), keep)?;
            let count = self.above(first);
            return self.call_object(function, first, count);
        }
        let shown = self.show_short(head);
        self.error_about(ErrorClass::Undefined, format!("{shown} is not a function"), head)
    }

    /// Evaluates `(object . slot)`, EusLisp's short form of slot access. The object may be any form.
    #[inline(never)]
    fn dotted_slot(&mut self, form: Value) -> Answer {
        self.set_fixed(Fixed::Form, form);
        let object = self.eval(form.get(0))?;
        self.slot_named(object, form.get(1))
    }

    pub(crate) fn slot_named(&mut self, object: Value, name: Value) -> Answer {
        if object.is(ObjectKind::Instance) || object.is(ObjectKind::Array) {
            let class = self.world.class_of(object);
            if let Some(index) = self.slot_index(class, name) {
                return Ok(object.slot(index));
            }
        }
        if let Some(package) = self.package_of_object(object)
            && let Some(value) = self.package_view(&package, name)?
        {
            return Ok(value);
        }
        self.push(object)?;
        let (shown, slot) = (self.show_short(object), self.show_short(name));
        self.error_about(ErrorClass::Type, format!("{shown} has no slot {slot}"), object)
    }

    /// Evaluates the forms of a body in order and returns the value of the last.
    pub(crate) fn progn(&mut self, body: Value) -> Answer {
        if !body.is_cons() {
            return Ok(Value::NIL);
        }
        if !body.get(1).is_cons() {
            return self.eval(body.get(0));
        }
        let mark = self.mark();
        self.push(body)?;
        let mut rest = body;
        let mut value = Value::NIL;
        while rest.is_cons() {
            self.put_root(mark, rest);
            self.poll()?;
            value = self.eval(rest.get(0))?;
            rest = rest.get(1);
        }
        self.release(mark);
        Ok(value)
    }

    /// Expands a macro call; both arguments are on the stack.
    pub(crate) fn expand_pushed(&mut self, form: Value, function: Value) -> Answer {
        let first = self.mark();
        let mut rest = form.get(1);
        while rest.is_cons() {
            self.push(rest.get(0))?;
            rest = rest.get(1);
        }
        let count = self.above(first);
        self.set_fixed(Fixed::Form, form);
        let (parameters, body) = (function.cadr(), function.cddr());
        self.call_lambda(parameters, body, Value::NIL, false, first, count)
    }

    /// Returns the `count` arguments from `first` on.
    pub(crate) fn arguments<'a>(&self, first: RootMark, count: usize) -> Args<'a> {
        debug_assert!(count <= self.above(first));
        // SAFETY: the words from `first` to the top were pushed; they are unchanged until the call ends, as callees
        // only push above them.
        Args::new(unsafe { std::slice::from_raw_parts(Context::place(first), count) })
    }

    /// Returns the function or macro bound to a name by an enclosing `flet`, `labels` or `macrolet`.
    #[inline(never)]
    fn local_function(&mut self, name: Value) -> Option<Value> {
        let (function, macro_) = (name.key(KeySort::Function), name.key(KeySort::Macro));
        let mut found = None;
        self.entries(|key, value| {
            let hit = key == function || key == macro_;
            if hit {
                found = Some(value);
            }
            hit
        });
        found
    }
}
