//! Defines exits from an evaluation, and errors as Lisp objects.

use crate::context::{Answer, Context, Fixed};
use crate::value::Value;
use crate::world::class;

/// The reason why an evaluation ended without a value. Its details are in the context.
///
/// An exit has the size of a value, so that an answer is returned in two registers: through memory it costs the
/// evaluator a third of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Exit {
    /// An error was signalled; its object is the fixed root `Error`.
    Error,
    /// A `throw` exits to the catch whose number is the context's target.
    Throw,
    /// A `return-from` exits to the block whose number is the context's target.
    Block,
    /// A `go` exits into the tagbody whose number is the context's target.
    Go,
    /// Ctrl-C interrupted the evaluation.
    Interrupt,
    /// The program called `exit`; its status is the fixed root `Exit`.
    Quit,
}

/// Each error has one of these Lisp classes below `error`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ErrorClass {
    Simple,
    Unbound,
    Undefined,
    Arguments,
    Type,
    Range,
    Arithmetic,
    Reader,
    Stack,
    Memory,
    Io,
    Control,
    Thread,
}

impl ErrorClass {
    pub(crate) const ALL: [ErrorClass; 13] = [
        ErrorClass::Simple,
        ErrorClass::Unbound,
        ErrorClass::Undefined,
        ErrorClass::Arguments,
        ErrorClass::Type,
        ErrorClass::Range,
        ErrorClass::Arithmetic,
        ErrorClass::Reader,
        ErrorClass::Stack,
        ErrorClass::Memory,
        ErrorClass::Io,
        ErrorClass::Control,
        ErrorClass::Thread,
    ];

    /// Returns the name of the Lisp class.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ErrorClass::Simple => "SIMPLE-ERROR",
            ErrorClass::Unbound => "UNBOUND-VARIABLE",
            ErrorClass::Undefined => "UNDEFINED-FUNCTION",
            ErrorClass::Arguments => "ARGUMENT-ERROR",
            ErrorClass::Type => "TYPE-ERROR",
            ErrorClass::Range => "RANGE-ERROR",
            ErrorClass::Arithmetic => "ARITHMETIC-ERROR",
            ErrorClass::Reader => "READER-ERROR",
            ErrorClass::Stack => "STACK-OVERFLOW",
            ErrorClass::Memory => "OUT-OF-MEMORY",
            ErrorClass::Io => "IO-ERROR",
            ErrorClass::Control => "CONTROL-ERROR",
            ErrorClass::Thread => "THREAD-ERROR",
        }
    }

    /// Returns the number that EusLisp passes to error handlers for it.
    pub(crate) fn code(self) -> i64 {
        match self {
            ErrorClass::Stack => 1,
            ErrorClass::Memory => 2,
            ErrorClass::Unbound => 12,
            ErrorClass::Undefined => 13,
            ErrorClass::Arguments => 14,
            ErrorClass::Type | ErrorClass::Arithmetic => 17,
            ErrorClass::Range => 30,
            ErrorClass::Io => 41,
            ErrorClass::Reader => 44,
            ErrorClass::Simple | ErrorClass::Control | ErrorClass::Thread => 60,
        }
    }
}

/// Indices of the slots of an error object.
pub(crate) mod slot {
    pub(crate) const CODE: usize = 1;
    pub(crate) const MESSAGE: usize = 2;
    pub(crate) const FORM: usize = 3;
    pub(crate) const OBJECT: usize = 4;
}

impl Context {
    /// Signals an error and returns its exit as a result of any type.
    #[cold]
    pub(crate) fn error<T>(&mut self, class: ErrorClass, message: String) -> Result<T, Exit> {
        self.error_about(class, message, Value::NIL)
    }

    /// Signals an error.
    #[cold]
    pub(crate) fn fail(&mut self, class: ErrorClass, message: String) -> Answer {
        self.error(class, message)
    }

    /// Signals an error about an object, which the caller keeps alive.
    #[cold]
    pub(crate) fn error_about<T>(
        &mut self,
        class: ErrorClass,
        message: String,
        object: Value,
    ) -> Result<T, Exit> {
        let mark = self.mark();
        self.depth = 0;
        match self.error_object(class, &message, object) {
            Ok(error) => self.set_fixed(Fixed::Error, error),
            // Creating the object failed for lack of memory or stack: that error replaces this one.
            Err(exit) => return Err(exit),
        }
        let out = self.call_handler();
        self.release(mark);
        match out {
            Ok(_) => Err(Exit::Error),
            Err(exit) => Err(exit),
        }
    }

    fn error_object(&mut self, class: ErrorClass, message: &str, object: Value) -> Answer {
        if class == ErrorClass::Memory {
            let spare = self.world.names.spare_error;
            spare.set_slot(slot::FORM, self.fixed(Fixed::Form));
            return Ok(spare);
        }
        let class_object = self.world.class_object(class::ERRORS + class as u16);
        let error = self.new_instance(class_object)?;
        self.push(error)?;
        let text = self.string(message)?;
        error.set_slot(slot::CODE, Value::fixnum(class.code()));
        error.set_slot(slot::MESSAGE, text);
        error.set_slot(slot::FORM, self.fixed(Fixed::Form));
        error.set_slot(slot::OBJECT, object);
        Ok(error)
    }

    /// Calls the program's error handler, if there is one; it may throw.
    fn call_handler(&mut self) -> Answer {
        let handler = self.global_value(self.world.names.error_handler);
        if handler.is_nil() || handler == Value::UNBOUND || self.handling {
            return Ok(Value::NIL);
        }
        let error = self.fixed(Fixed::Error);
        let arguments = [
            error.slot(slot::CODE),
            error.slot(slot::MESSAGE),
            error.slot(slot::FORM),
            error.slot(slot::OBJECT),
        ];
        self.handling = true;
        let out = self.apply(handler, &arguments);
        self.handling = false;
        self.set_fixed(Fixed::Error, error);
        self.depth = 0;
        out
    }

    /// Signals a type error with the expected type and the actual value.
    #[cold]
    pub(crate) fn type_error<T>(&mut self, wanted: &str, value: Value) -> Result<T, Exit> {
        let shown = self.show_short(value);
        self.error_about(ErrorClass::Type, format!("{wanted} expected, not {shown}"), value)
    }

    /// Signals that an index is out of range.
    #[cold]
    pub(crate) fn range_error<T>(&mut self, index: Value, length: usize) -> Result<T, Exit> {
        let shown = self.show_short(index);
        self.error_about(
            ErrorClass::Range,
            format!("index {shown} is out of range of {length} elements"),
            index,
        )
    }
}
