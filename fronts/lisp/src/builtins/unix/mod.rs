//! Implements the package UNIX: functions that correspond to system calls.
//!
//! As in EusLisp, a call that the kernel refuses returns the negative number of the error, and one without a result
//! returns t. File descriptors are those of streams: a number other than 0, 1 and 2 could be one of the runtime's own.

mod files;
mod identity;
mod messages;
mod outcome;
mod process;
mod signals;
mod sockets;
mod terminal;
mod time;
mod timers;

use crate::builtin::Builtin;

pub(super) use signals::variables;
pub(super) use sockets::held;

pub(super) const TABLES: [&[Builtin]; 9] = [
    files::BUILTINS,
    identity::BUILTINS,
    messages::BUILTINS,
    process::BUILTINS,
    signals::BUILTINS,
    sockets::BUILTINS,
    terminal::BUILTINS,
    time::BUILTINS,
    timers::BUILTINS,
];
