//! What Lisp objects stand for outside of the heap: files, locks, threads.

use super::tables::Tables;
use crate::threads::{Semaphore, Worker};
use crate::value::Value;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::sync::{Arc, Mutex};

/// An open file: one of both, or both.
#[derive(Default)]
pub(crate) struct OpenFile {
    pub(crate) reader: Option<BufReader<File>>,
    pub(crate) writer: Option<BufWriter<File>>,
    /// A character pushed back by the reader.
    pub(crate) unread: Option<u8>,
}

/// One such thing. Cloning makes another handle of the same.
#[derive(Clone)]
pub(crate) enum Native {
    File(Arc<Mutex<OpenFile>>),
    Mutex(Arc<crate::threads::Lock>),
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
    /// Enters a thing; its number goes into a Lisp object.
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

    /// The thing of a number.
    pub(crate) fn native(&self, number: Value) -> Option<Native> {
        let index = usize::try_from(number.as_fixnum()?).ok()?;
        self.natives().get(index)?.clone()
    }

    /// Forgets the thing of a number.
    pub(crate) fn drop_native(&self, number: Value) -> Option<Native> {
        let index = usize::try_from(number.as_fixnum()?).ok()?;
        self.natives().get_mut(index)?.take()
    }
}
