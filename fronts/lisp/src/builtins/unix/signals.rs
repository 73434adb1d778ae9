//! Implements signals: a program's functions run at the next safepoint after a signal arrived.
//!
//! The Lisp thread that first polls takes the signal from the world's queue. Ctrl-C arrives as an interrupt of the
//! evaluation, which calls the function of SIGINT instead of ending the evaluation if there is one.

use super::outcome::int_or;
use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};
use signal_hook::consts as signal;
use std::sync::atomic::Ordering;

pub(super) const BUILTINS: &[Builtin] = &[builtin("UNIX:SIGNAL", 1, 3, set_handler)];

/// Names and numbers of the signals that a program may name.
const SIGNALS: [(&str, i32); 20] = [
    ("SIGHUP", signal::SIGHUP),
    ("SIGINT", signal::SIGINT),
    ("SIGQUIT", signal::SIGQUIT),
    ("SIGILL", signal::SIGILL),
    ("SIGTRAP", signal::SIGTRAP),
    ("SIGABRT", signal::SIGABRT),
    ("SIGBUS", signal::SIGBUS),
    ("SIGFPE", signal::SIGFPE),
    ("SIGKILL", signal::SIGKILL),
    ("SIGUSR1", signal::SIGUSR1),
    ("SIGSEGV", signal::SIGSEGV),
    ("SIGUSR2", signal::SIGUSR2),
    ("SIGPIPE", signal::SIGPIPE),
    ("SIGALRM", signal::SIGALRM),
    ("SIGTERM", signal::SIGTERM),
    ("SIGCHLD", signal::SIGCHLD),
    ("SIGCONT", signal::SIGCONT),
    ("SIGSTOP", signal::SIGSTOP),
    ("SIGTSTP", signal::SIGTSTP),
    ("SIGIO", signal::SIGIO),
];

/// Signals whose functions a program may set. The runtime needs the others: its pager handles SIGSEGV and SIGBUS.
const CATCHABLE: [i32; 9] = [
    signal::SIGHUP,
    signal::SIGQUIT,
    signal::SIGUSR1,
    signal::SIGUSR2,
    signal::SIGPIPE,
    signal::SIGALRM,
    signal::SIGTERM,
    signal::SIGCHLD,
    signal::SIGIO,
];
/// Number of entries of `*signal-handlers*`.
const HANDLERS: usize = 65;

/// Defines the names of the signals, and the table of the program's functions.
pub(crate) fn variables(cx: &mut Context) -> Result<(), Exit> {
    let table = cx.new_vector(HANDLERS)?;
    cx.set_global(cx.world.names.signal_handlers, table);
    for (name, number) in SIGNALS {
        let symbol = cx.installed_name(&format!("UNIX:{name}"))?;
        cx.define_special(symbol, Value::fixnum(i64::from(number)));
    }
    Ok(())
}

/// Implements `(unix:signal number function)`: returns the function before. Without a function only that; nil restores
/// the signal's own effect.
fn set_handler(cx: &mut Context, args: Args<'_>) -> Answer {
    let number = int_or(cx, args, 0, 0)?;
    let known = number == signal::SIGINT || CATCHABLE.contains(&number);
    let old = handler(cx, number);
    let Some(new) = args.given(1) else { return Ok(old) };
    if !known {
        return cx.type_error("signal that a program may handle", args[0]);
    }
    let index = number.cast_unsigned() as usize;
    table_with(cx, index)?.set_slot(index, new);
    if number != signal::SIGINT {
        let heap = cx.world.heap.clone();
        if let Err(cause) = cx.world.signals.receive(number, move || heap.call_attention()) {
            return cx.error(ErrorClass::Io, format!("no function for signal {number}: {cause}"));
        }
    }
    Ok(old)
}

/// Returns the table of the program's functions. Replaces a table without an entry `index`, which the program made, by one
/// with the same functions. Another thread may replace the table at any time, so the variable is read once.
fn table_with(cx: &mut Context, index: usize) -> Answer {
    let name = cx.world.names.signal_handlers;
    let table = cx.global_value(name);
    let length = if table.is(ObjectKind::Vector) { table.length() } else { 0 };
    if index < length {
        return Ok(table);
    }
    cx.push(table)?;
    let new = cx.new_vector(HANDLERS)?;
    for entry in 0..length.min(HANDLERS) {
        new.set_slot(entry, table.slot(entry));
    }
    cx.set_global(name, new);
    Ok(new)
}

fn handler(cx: &Context, number: i32) -> Value {
    let table = cx.global_value(cx.world.names.signal_handlers);
    let index = usize::try_from(number).unwrap_or(0);
    if table.is(ObjectKind::Vector) && index < table.length() { table.slot(index) } else { Value::NIL }
}

impl Context {
    /// Calls the program's functions for the signals that arrived.
    pub(crate) fn handle_signals(&mut self) -> Result<(), Exit> {
        while let Some(number) = self.world.signals.next() {
            if !self.call_signal_handler(number)? {
                // The program gave the function up, so that the signal has its own effect again; most end the process.
                let _ = signal_hook::low_level::emulate_default_handler(number);
            }
        }
        Ok(())
    }

    /// Returns whether the program has a function for interrupts.
    pub(crate) fn handles_interrupts(&self) -> bool {
        !handler(self, signal::SIGINT).is_nil()
    }

    /// Calls the program's function for an interrupt. Returns whether there is one.
    pub(crate) fn handle_interrupt(&mut self) -> Result<bool, Exit> {
        self.call_signal_handler(signal::SIGINT)
    }

    fn call_signal_handler(&mut self, number: i32) -> Result<bool, Exit> {
        let function = handler(self, number);
        if function.is_nil() {
            return Ok(false);
        }
        let mark = self.mark();
        let number = Value::fixnum(i64::from(number));
        self.apply(function, &[number, Value::fixnum(0)])?;
        // Release: a thread that waits for the call sees its writes.
        self.world.signals_handled.fetch_add(1, Ordering::Release);
        self.release(mark);
        Ok(true)
    }
}
