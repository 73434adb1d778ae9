//! What all threads share: packages, classes, names the runtime knows, what the system holds for us.
//!
//! # Invariant
//! Nobody allocates, polls or evaluates while holding a lock of this module: the collector reads the
//! tables while every thread stands still, and takes the same locks.

mod boot;
pub(crate) mod class;
mod method;
mod names;
mod native;
pub(crate) mod package;
mod tables;

pub(crate) use method::{CACHED_METHODS, CachedMethod};
pub(crate) use names::Names;
pub(crate) use native::{Native, OpenFile};
pub(crate) use package::{KEYWORD, LISP, Package, USER};
pub(crate) use tables::Tables;

use crate::heap::Lisp;
use crate::value::Value;
use largesse_gc::Heap;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};

/// The part of a running Lisp that its threads share.
pub(crate) struct World {
    pub(crate) heap: Heap<Lisp>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) names: Names,
    /// How often Ctrl-C came. Each thread remembers how many of them its evaluation is over or began after.
    pub(crate) interrupts: AtomicU32,
    /// Collections that `*gc-hook*` was told of.
    pub(crate) collections_told: AtomicU64,
    /// Grows with every definition of a method: caches of an older number are stale.
    pub(crate) method_epoch: AtomicU64,
    /// Numbers given to special variables so far; held while one is given.
    pub(crate) bindings: Mutex<u32>,
    pub(crate) gensyms: AtomicU64,
    pub(crate) pool: crate::threads::Pool,
    /// Made when it is first needed.
    pub(crate) compiler: Mutex<Option<crate::compile::Compiler>>,
    pub(crate) started: std::time::Instant,
    /// The files on the command line, for `*argv*`.
    pub(crate) arguments: Vec<String>,
    /// What the heap's ground says about itself, in the memory report.
    pub(crate) ground: std::sync::OnceLock<Box<dyn Fn() -> String + Send + Sync>>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

impl World {
    /// The class of a number.
    pub(crate) fn class_object(&self, number: u16) -> Value {
        self.tables.class(number)
    }

    /// The class of a value; nil of numbers in a word, as EusLisp has it.
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

    /// The object behind a symbol, nil's too.
    pub(crate) fn symbol_object(&self, symbol: Value) -> Value {
        if symbol.is_nil() { self.names.nil } else { symbol }
    }
}
