//! The heap's view of Lisp: which words are references, and where the roots are.

use crate::value::Value;
use crate::world::Tables;
use core::ptr::NonNull;
use largesse_gc::{Language, Tracer, Word};
use std::sync::Arc;

/// Implements [`Language`] for the collector.
pub(crate) struct Lisp {
    pub(crate) tables: Arc<Tables>,
}

impl std::fmt::Debug for Lisp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lisp")
    }
}

// SAFETY: a word with a pointer's tag was made from an address that the heap allocated (`Value`'s first invariant),
// and headers, keys and links have the tag of a non-reference; no object has `Layout::Custom`; `Tables::roots` shows
// every table, and threads keep all other values on their root stacks.
unsafe impl Language for Lisp {
    #[inline]
    fn reference(word: Word) -> Option<NonNull<u64>> {
        let value = Value(word.0);
        if !value.is_reference() {
            return None;
        }
        NonNull::new(std::ptr::with_exposed_provenance_mut(value.address()))
    }

    unsafe fn trace(&self, _object: NonNull<u64>, _tracer: &mut Tracer<'_, Self>) {}

    fn roots(&self, tracer: &mut Tracer<'_, Self>) {
        self.tables.roots(|value| tracer.word(Word(value.0)));
    }
}
