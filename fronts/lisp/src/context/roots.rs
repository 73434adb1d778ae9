//! Lays out the root stack: roots at fixed positions, the reserve above a frame, and marks of heights.

use crate::value::Value;

/// Number of words that are free above every frame, for the roots of builtins.
pub(super) const RESERVE: usize = 1024;

/// Names the roots at fixed positions at the bottom of the stack.
#[derive(Clone, Copy)]
pub(crate) enum Fixed {
    /// Holds the value of an exit.
    Exit,
    /// Holds the tag of a throw.
    Tag,
    /// Holds the form whose function is being called.
    Form,
    /// Holds the thread's own values of special variables.
    Bindings,
    /// Holds the thread object.
    Thread,
    /// Holds the error that is being signalled.
    Error,
    /// Holds the first of the calls in the backtrace of an error.
    Backtrace,
}

/// Largest number of calls in a backtrace.
pub(super) const BACKTRACE: usize = 20;
/// Number of the roots at fixed positions.
pub(super) const FIXED: usize = Fixed::Backtrace as usize + BACKTRACE;

/// Marks a height of the root stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RootMark(pub(super) *mut Value);
