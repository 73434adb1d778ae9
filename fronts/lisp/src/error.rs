//! Defines exits from an evaluation, and the classes of errors.

use crate::value::Value;

/// The reason why an evaluation ended without a value. Its details are in the context.
///
/// An exit has the size of a value, so that an answer is returned in two registers: through memory it costs the
/// evaluator a third of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Exit {
    /// An error was signalled; its object is the fixed root `Error`.
    Error,
    /// A `throw` exits to the innermost catch with the tag in the fixed root `Tag`.
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

/// A function returns a value, or an exit whose details are in the context.
pub(crate) type Answer = Result<Value, Exit>;

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

/// Returns the name of a file as a message shows it: control characters become escapes such as `\n` and `\u{1b}`.
pub(crate) fn on_one_line(name: &str) -> String {
    let mut line = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_control() { line.extend(letter.escape_debug()) } else { line.push(letter) }
    }
    line
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
