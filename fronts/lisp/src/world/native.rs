//! Holds native objects that Lisp objects refer to: files, locks, threads.

use super::tables::Tables;
use crate::threads::{Semaphore, Worker};
use crate::value::Value;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::sync::{Arc, Mutex};

/// An open file has a reader, a writer, or both.
#[derive(Default)]
pub(crate) struct OpenFile {
    pub(crate) reader: Option<BufReader<File>>,
    pub(crate) writer: Option<BufWriter<File>>,
    /// A byte pushed back by the reader.
    pub(crate) unread: Option<u8>,
}

/// A clone of a native object refers to the same one.
#[derive(Clone)]
pub(crate) enum Native {
    File(Arc<Mutex<OpenFile>>),
    Mutex(Arc<crate::threads::LispMutex>),
    Condition(Arc<crate::threads::Condition>),
    Semaphore(Arc<Semaphore>),
    Worker(Arc<Worker>),
}

impl Native {
    pub(super) fn roots(&self, visit: &mut impl FnMut(Value)) {
        if let Native::Worker(worker) = self {
            worker.roots(visit);
        }
    }
}

impl Tables {
    /// Registers a native object and returns its number for a Lisp object.
    pub(crate) fn hold(&self, native: Native) -> Value {
        let mut natives = self.natives();
        let index = match natives.iter().position(Option::is_none) {
            Some(index) => index,
            None => {
                natives.push(None);
                natives.len() - 1
            }
        };
        natives[index] = Some(native);
        Value::fixnum(index as i64)
    }

    /// Returns the native object with a number.
    pub(crate) fn native(&self, number: Value) -> Option<Native> {
        let index = usize::try_from(number.as_fixnum()?).ok()?;
        self.natives().get(index)?.clone()
    }

    /// Removes the native object with a number.
    pub(crate) fn drop_native(&self, number: Value) -> Option<Native> {
        let index = usize::try_from(number.as_fixnum()?).ok()?;
        self.natives().get_mut(index)?.take()
    }
}
