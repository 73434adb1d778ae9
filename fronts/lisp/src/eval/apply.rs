//! Calls function values.

use super::lambda::closure;
use crate::context::{Answer, Context, RootMark};
use crate::error::ErrorClass;
use crate::value::{ObjectKind, Value, symbol};
use crate::world::class;

impl Context {
    /// Calls a function object with arguments on the stack.
    #[inline]
    pub(crate) fn call_object(&mut self, function: Value, first: RootMark, count: usize) -> Answer {
        match function.header().kind() {
            ObjectKind::Builtin => {
                let arguments = self.arguments(first, count);
                self.call_builtin(function, arguments)
            }
            ObjectKind::Closure => self.call_lambda(
                function.slot(closure::PARAMETERS),
                function.slot(closure::BODY),
                function.slot(closure::ENVIRONMENT),
                !function.slot(closure::LOCAL_FUNCTIONS).is_nil(),
                first,
                count,
            ),
            ObjectKind::Compiled => self.call_compiled(function, first, count),
            ObjectKind::Instance if function.header().class() == class::FOREIGN_CODE => {
                let arguments = self.arguments(first, count);
                self.call_foreign(function, arguments)
            }
            _ => self.not_a_function(function),
        }
    }

    /// Calls `(lambda parameters . body)`, or a closure that is a list.
    #[inline]
    pub(crate) fn call_list(&mut self, function: Value, first: RootMark, count: usize) -> Answer {
        match self.lambda_of(function) {
            Some(lambda) => {
                match self.warmed(function, lambda, None)? {
                    Some(compiled) if compiled.is_object() => {
                        return self.call_compiled(compiled, first, count);
                    }
                    Some(index) if count == 1 => {
                        if let Some(value) = self.read_for(lambda, index, self.root(first, 0)) {
                            return Ok(value);
                        }
                    }
                    _ => {}
                }
                self.counted(function, |it| {
                    it.call_lambda(lambda.car(), lambda.cdr(), Value::NIL, false, first, count)
                })
            }
            None => self.not_a_function(function),
        }
    }

    /// Returns `(parameters . body)` of a function that is a list: `(lambda parameters . body)`, or
    /// `(lambda-closure name 0 0 parameters . body)`.
    #[inline]
    pub(crate) fn lambda_of(&self, function: Value) -> Option<Value> {
        let head = function.car();
        if head == self.world.names.lambda {
            Some(function.cdr())
        } else if head == self.world.names.lambda_closure {
            Some(function.cddr().cddr())
        } else {
            None
        }
    }

    #[cold]
    fn not_a_function(&mut self, value: Value) -> Answer {
        let shown = self.show_short(value);
        self.error_about(ErrorClass::Undefined, format!("{shown} is not a function"), value)
    }

    /// Calls any function with arguments on the stack.
    pub(crate) fn call(&mut self, function: Value, first: RootMark, count: usize) -> Answer {
        let mut function = function;
        if function.is_symbol_object() {
            let name = function;
            function = name.get(symbol::FUNCTION);
            if function == Value::UNBOUND {
                let shown = self.show_short(name);
                return self.error_about(ErrorClass::Undefined, format!("undefined function {shown}"), name);
            }
        }
        self.push(function)?;
        if function.is_object() {
            return self.call_object(function, first, count);
        }
        if function.is_cons() {
            return self.call_list(function, first, count);
        }
        self.not_a_function(function)
    }

    /// Calls any function with arguments that the caller keeps alive.
    pub(crate) fn apply(&mut self, function: Value, arguments: &[Value]) -> Answer {
        let mark = self.mark();
        self.push(function)?;
        let first = self.mark();
        for argument in arguments {
            self.push(*argument)?;
        }
        let value = self.call(function, first, arguments.len())?;
        self.release(mark);
        Ok(value)
    }
}
