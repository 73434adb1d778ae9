//! Implements the package UNIX: functions that correspond to system calls.
//!
//! As in EusLisp, a call that the kernel refuses returns the negative number of the error, and one without a result
//! returns t. File descriptors are those of streams: a number other than 0, 1 and 2 could be one of the runtime's own.

mod files;
mod identity;
mod outcome;
mod process;
mod signals;
mod time;

use crate::builtin::Builtin;

pub(super) use signals::variables;

pub(super) const TABLES: [&[Builtin]; 5] =
    [files::BUILTINS, identity::BUILTINS, process::BUILTINS, signals::BUILTINS, time::BUILTINS];
