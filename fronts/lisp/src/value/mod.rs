//! Represents values as tagged words of 64 bits.
//!
//! # Picture
//! ```text
//!   ...00 0000  all zero: nil; else a shared variable of a closure, invisible to programs
//!        0100   cons: two words, no header          1000  object: a header word first
//!        1100   symbol: a header word first
//!   ......01    fixnum, 62 bits
//!   ......10    float, rotated: exact for magnitudes from about 1e-77 to 1e77
//!   ......11    constants (unbound, 0.0, ...), headers, keys and links of environment frames
//! ```
//! # Invariants
//! 1. A value with a pointer's tag refers to a live object: code that holds one across an allocation keeps it on the
//!    root stack. Objects never move, so the word itself stays valid.
//! 2. Slots are read and written as relaxed atomics: threads may race, but words never tear.
//!    With debug assertions, a heap that poisons dead objects detects violations of the first.

mod circle;
mod number;
mod object;

pub(crate) use circle::Circle;
pub(crate) use number::{MOST_POSITIVE, NEGATIVE_ZERO, SHIFT, ZERO};
pub(crate) use object::{Header, ObjectKind, copy_words, flag};

use largesse_gc::POISON;
use std::sync::atomic::{AtomicU64, Ordering};

/// A Lisp value is one tagged word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub(crate) struct Value(pub(crate) u64);

pub(crate) const CONS: u64 = 0b0100;
const OBJECT: u64 = 0b1000;
const SYMBOL: u64 = 0b1100;

/// Indices of the slots of a symbol.
pub(crate) mod symbol {
    pub(crate) const VALUE: usize = 1;
    pub(crate) const FUNCTION: usize = 2;
    pub(crate) const PLIST: usize = 3;
    pub(crate) const NAME: usize = 4;
    pub(crate) const PACKAGE: usize = 5;
    /// Number of the thread-local binding, or 0 for a symbol that never had one.
    pub(crate) const BINDING: usize = 6;
    pub(crate) const WORDS: usize = 8;
}

impl Value {
    pub(crate) const NIL: Value = Value(0);
    /// An empty value or function slot of a symbol contains this word.
    pub(crate) const UNBOUND: Value = Value(0x13);
    /// Machine code uses this word where there is no value. It is never stored in the heap, so no program reads it.
    pub(crate) const ABSENT: Value = Value(0xa3);
    /// An empty entry of a hash table has this key.
    pub(crate) const EMPTY: Value = Value(0xb3);
    /// A removed entry of a hash table has this key.
    pub(crate) const REMOVED: Value = Value(0x53);
    /// This is the key of the environment entry whose value is `self`, and whose slots are variables.
    pub(crate) const SELF_KEY: Value = Value(0x63);
    /// This is the key of the environment entry whose value is a tagbody's (number . statements).
    pub(crate) const TAGS_KEY: Value = Value(0x93);
    /// An optional argument that was not given has this value.
    pub(crate) const MISSING: Value = Value(0x73);

    pub(crate) fn is_nil(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn is_cons(self) -> bool {
        self.0 & 15 == CONS
    }

    /// Returns whether the value is a symbol other than nil; `LispWorld::symbol_object` returns the object of nil.
    pub(crate) fn is_symbol_object(self) -> bool {
        self.0 & 15 == SYMBOL
    }

    pub(crate) fn is_symbol(self) -> bool {
        self.is_nil() || self.is_symbol_object()
    }

    pub(crate) fn is_list(self) -> bool {
        self.is_nil() || self.is_cons()
    }

    pub(crate) fn is_object(self) -> bool {
        self.0 & 15 == OBJECT
    }

    /// Returns whether the word is a reference of any type.
    pub(crate) fn is_reference(self) -> bool {
        self.0 & 3 == 0 && self.0 != 0
    }

    /// Returns whether the word is the heap entry of a variable that a closure shares.
    pub(crate) fn is_shared(self) -> bool {
        self.0 & 15 == 0 && self.0 != 0
    }

    /// Returns the address in a reference.
    pub(crate) fn address(self) -> usize {
        (self.0 & !15) as usize
    }

    pub(crate) fn cons_at(address: usize) -> Value {
        Value(address as u64 | CONS)
    }

    pub(crate) fn object_at(address: usize) -> Value {
        Value(address as u64 | OBJECT)
    }

    pub(crate) fn symbol_at(address: usize) -> Value {
        Value(address as u64 | SYMBOL)
    }

    pub(crate) fn shared_at(address: usize) -> Value {
        Value(address as u64)
    }

    fn word(self, index: usize) -> &'static AtomicU64 {
        let at = std::ptr::with_exposed_provenance::<AtomicU64>(self.address() + index * 8);
        // SAFETY: callers have tested the tag (and the length, for objects), and by invariant 1 the object is alive;
        // all access to its slots is atomic (invariant 2).
        unsafe { &*at }
    }

    /// Returns word `index` of an object, cons or shared variable; the header of an object is word 0.
    pub(crate) fn get(self, index: usize) -> Value {
        debug_assert!(self.is_reference());
        let value = Value(self.word(index).load(Ordering::Relaxed));
        debug_assert!(value.0 != POISON, "a dead object is read");
        value
    }

    /// Writes word `index`.
    pub(crate) fn set(self, index: usize, value: Value) {
        debug_assert!(self.is_reference());
        debug_assert!(self.word(index).load(Ordering::Relaxed) != POISON, "a dead object is written to");
        self.word(index).store(value.0, Ordering::Relaxed);
    }

    /// Writes word `index` if it still has the value `old`; returns whether it had. The caller keeps `old` alive, so that
    /// no new object has its address.
    pub(crate) fn replace(self, index: usize, old: Value, new: Value) -> bool {
        debug_assert!(self.is_reference());
        self.word(index).compare_exchange(old.0, new.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns the first element of a cons, or nil for any other value.
    pub(crate) fn car(self) -> Value {
        if self.is_cons() { self.get(0) } else { Value::NIL }
    }

    /// Returns the rest of a cons, or nil for any other value.
    pub(crate) fn cdr(self) -> Value {
        if self.is_cons() { self.get(1) } else { Value::NIL }
    }

    pub(crate) fn cadr(self) -> Value {
        self.cdr().car()
    }

    pub(crate) fn cddr(self) -> Value {
        self.cdr().cdr()
    }

    pub(crate) fn caddr(self) -> Value {
        self.cddr().car()
    }

    /// Returns a symbol's key in environment frames: a non-reference that compares by identity.
    pub(crate) fn key(self, sort: KeySort) -> Value {
        Value((self.0 & !15) | sort as u64)
    }
}

/// Tells what an environment entry binds that is not a variable.
#[derive(Clone, Copy)]
pub(crate) enum KeySort {
    Block = 0b0011,
    Function = 0b0111,
    Macro = 0b1011,
}
