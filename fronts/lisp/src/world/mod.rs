//! Holds the state that all threads share: packages, classes, symbols known to the runtime, and native objects.
//!
//! # Invariant
//! No thread allocates, polls or evaluates while it holds a lock of this module: the collector reads the tables while all
//! threads are stopped, and takes the same locks.

mod boot;
pub(crate) mod class;
mod classes;
pub(crate) mod library;
mod method;
mod method_cache;
mod names;
mod native;
pub(crate) mod package;
mod packages;
mod signals;
mod tables;

pub(crate) use method_cache::{CACHED_METHODS, CachedMethod};
pub(crate) use names::Names;
pub(crate) use native::{Native, OpenFile, QueueStream};
pub(crate) use package::{KEYWORD, LISP, Package, USER};
pub(crate) use signals::PendingSignals;
pub(crate) use tables::Tables;

use crate::heap::Lisp;
use crate::value::Value;
use largesse_gc::Heap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};

/// The world is the part of a running Lisp that its threads share.
pub(crate) struct LispWorld {
    pub(crate) heap: Heap<Lisp>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) names: Names,
    /// Number of interrupts. Each thread remembers the number at which its evaluation ended or began.
    pub(crate) interrupts: AtomicU32,
    /// Signals for which the program has functions.
    pub(crate) signals: PendingSignals,
    /// Number of collections reported to `*gc-hook*`.
    pub(crate) collections_told: AtomicU64,
    /// Number of calls of the program's functions for signals.
    pub(crate) signals_handled: AtomicU64,
    /// Epoch that every definition of a method increments: caches of an older epoch are stale.
    pub(crate) method_epoch: AtomicU64,
    /// Whether threads add the methods that they look up to their caches.
    pub(crate) caches_methods: AtomicBool,
    /// Number of special variables that have a binding number; locked while one is assigned.
    pub(crate) bindings: Mutex<u32>,
    /// Locked while a class's list of methods is compared with the one that a change began with, and replaced.
    pub(crate) methods: Mutex<()>,
    pub(crate) gensyms: AtomicU64,
    pub(crate) pool: crate::threads::ThreadPool,
    /// The kernel's number of the thread that started this Lisp.
    pub(crate) first_thread: i32,
    /// The compiler for `compile`, created at its first use.
    pub(crate) compiler: Mutex<Option<crate::compile::Compiler>>,
    /// The compiler for definitions of the library in which much is evaluated.
    pub(crate) warm_compiler: Mutex<Option<crate::compile::Compiler>>,
    /// The machine code that calls functions of C and is called by them, created at its first use.
    pub(crate) bridges: Mutex<Option<crate::foreign::Bridges>>,
    /// Definitions of the library, and the machine code of those in which much was evaluated.
    pub(crate) warm: library::WarmLibrary,
    pub(crate) started: std::time::Instant,
    /// The files on the command line and the program's arguments, for `*argv*`.
    pub(crate) arguments: Vec<String>,
    /// Formats the memory report of the heap's backing.
    pub(crate) backing_report: std::sync::OnceLock<Box<dyn Fn() -> String + Send + Sync>>,
}

impl std::fmt::Debug for LispWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LispWorld").finish_non_exhaustive()
    }
}

impl LispWorld {
    /// Returns the class with a number.
    pub(crate) fn class_object(&self, number: u16) -> Value {
        self.tables.class(number)
    }

    /// Returns the class of an object. As in EusLisp, the class of a number that is not an object (a fixnum or a float)
    /// is nil.
    pub(crate) fn class_of(&self, value: Value) -> Value {
        if value.is_cons() {
            self.class_object(class::CONS)
        } else if value.is_nil() {
            self.class_object(class::SYMBOL)
        } else if value.is_symbol_object() || value.is_object() {
            self.class_object(value.header().class())
        } else {
            Value::NIL
        }
    }

    /// Returns the object of a symbol, including that of nil.
    pub(crate) fn symbol_object(&self, symbol: Value) -> Value {
        if symbol.is_nil() { self.names.nil } else { symbol }
    }
}
