//! Signals errors: creates their Lisp objects and calls the program's error handler.

use crate::context::{Context, Fixed};
use crate::error::{Answer, ErrorClass, Exit, slot};
use crate::value::{Header, Value};
use crate::world::class;

/// Number of bytes of the message that an out-of-memory error can have: no string can be allocated for it.
pub(crate) const SPARE_MESSAGE: usize = 160;

/// Replaces the text of a string that was made with [`SPARE_MESSAGE`] bytes, and shortens its length to the new one.
fn rewrite(string: Value, text: &str) {
    let length = text.len().min(SPARE_MESSAGE);
    let header = string.header();
    string.set(0, Header::new(header.kind(), header.class(), SPARE_MESSAGE).word());
    string.bytes_mut()[..length].copy_from_slice(&text.as_bytes()[..length]);
    string.set(0, Header::new(header.kind(), header.class(), length).word());
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

    /// Signals an error about an object.
    #[cold]
    pub(crate) fn error_about<T>(
        &mut self,
        class: ErrorClass,
        message: String,
        object: Value,
    ) -> Result<T, Exit> {
        let mark = self.mark();
        // Many callers hold the object in a local variable only.
        self.push(object)?;
        self.depth = 0;
        self.failed_at = None;
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
            // A program may have given the error another message.
            let text = self.world.names.spare_message;
            spare.set_slot(slot::MESSAGE, text);
            rewrite(text, message);
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
