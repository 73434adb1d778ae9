//! Implements the package UNIX: functions that correspond to system calls.
//!
//! As in EusLisp, a call that the kernel refuses returns the negative number of the error, and one without a result
//! returns t. File descriptors are those of streams, 0, 1, 2 and the numbers of `descriptors.rs`: another one could be
//! one of the runtime's own.

mod descriptors;
mod files;
mod identity;
mod messages;
mod outcome;
mod priorities;
mod process;
pub(super) mod queue;
mod signals;
mod sockets;
mod terminal;
mod time;
mod timers;

use crate::builtin::Builtin;

pub(super) use descriptors::{find as find_descriptor, held};
pub(super) use messages::patiently;
pub(super) use signals::variables;

pub(super) const TABLES: [&[Builtin]; 10] = [
    files::BUILTINS,
    identity::BUILTINS,
    messages::BUILTINS,
    priorities::BUILTINS,
    process::BUILTINS,
    signals::BUILTINS,
    sockets::BUILTINS,
    terminal::BUILTINS,
    time::BUILTINS,
    timers::BUILTINS,
];
