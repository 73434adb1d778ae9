//! Represents objects with a header: kind, class and number of elements.
//!
//! The header's low bits are those of a non-reference, so that the collector may read it as a slot.

use super::Value;
use std::sync::atomic::AtomicU64;

/// Tells the representation of an object. Its class is independent of it, as programs may derive classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum ObjectKind {
    /// An instance has the slots of its class.
    Instance,
    Symbol,
    /// A vector holds values.
    Vector,
    /// A string holds bytes, with space for a zero byte after them.
    String,
    FloatVector,
    IntegerVector,
    BitVector,
    /// An array has entity, fill pointer, offset and dimensions.
    Array,
    /// The float does not fit in a word.
    Float,
    /// A bignum has 64-bit digits, least significant first; a flag holds the sign.
    Bignum,
    Ratio,
    /// A closure has name, environment, parameters and body.
    Closure,
    /// A builtin has code and name.
    Builtin,
    /// A compiled function has code, name, constants and source.
    Compiled,
    /// A native object holds the index of a value of Rust or the operating system: a file, a lock or a thread.
    Native,
}

const KINDS: [ObjectKind; 15] = [
    ObjectKind::Instance,
    ObjectKind::Symbol,
    ObjectKind::Vector,
    ObjectKind::String,
    ObjectKind::FloatVector,
    ObjectKind::IntegerVector,
    ObjectKind::BitVector,
    ObjectKind::Array,
    ObjectKind::Float,
    ObjectKind::Bignum,
    ObjectKind::Ratio,
    ObjectKind::Closure,
    ObjectKind::Builtin,
    ObjectKind::Compiled,
    ObjectKind::Native,
];

/// Flags of a header.
pub(crate) mod flag {
    /// Marks a symbol that cannot be assigned.
    pub(crate) const CONSTANT: u8 = 1;
    /// Marks a symbol whose bindings are dynamic.
    pub(crate) const SPECIAL: u8 = 2;
    /// Marks a lambda-list keyword, such as `&optional`.
    pub(crate) const LAMBDA_KEYWORD: u8 = 4;
    /// Marks a symbol whose function is one of the library that is written in Lisp.
    pub(crate) const LIBRARY: u8 = 8;
    /// Marks a bignum below zero.
    pub(crate) const NEGATIVE: u8 = 1;
}

/// A header is packed as `length:32 class:16 flags:8 kind:6 11`.
#[derive(Clone, Copy)]
pub(crate) struct Header(u64);

impl Header {
    pub(crate) fn new(kind: ObjectKind, class: u16, length: usize) -> Header {
        debug_assert!(u32::try_from(length).is_ok());
        Header((length as u64) << 32 | u64::from(class) << 16 | (kind as u64) << 2 | 3)
    }

    pub(crate) fn with_flags(self, flags: u8) -> Header {
        Header(self.0 & !0xff00 | u64::from(flags) << 8)
    }

    pub(crate) fn word(self) -> Value {
        Value(self.0)
    }

    pub(crate) fn kind(self) -> ObjectKind {
        KINDS[(self.0 >> 2 & 15) as usize]
    }

    pub(crate) fn flags(self) -> u8 {
        (self.0 >> 8) as u8
    }

    pub(crate) fn class(self) -> u16 {
        (self.0 >> 16) as u16
    }

    pub(crate) fn length(self) -> usize {
        (self.0 >> 32) as usize
    }
}

impl Value {
    pub(crate) fn header(self) -> Header {
        Header(self.get(0).0)
    }

    /// Returns the kind of an object, or none for immediate values and conses.
    pub(crate) fn kind(self) -> Option<ObjectKind> {
        match self.0 & 15 {
            super::OBJECT => Some(self.header().kind()),
            super::SYMBOL => Some(ObjectKind::Symbol),
            _ => None,
        }
    }

    pub(crate) fn is(self, kind: ObjectKind) -> bool {
        self.is_object() && self.header().kind() == kind
    }

    /// Returns the number of elements of a vector, bytes of a string, or slots of an instance.
    pub(crate) fn length(self) -> usize {
        self.header().length()
    }

    pub(crate) fn has_flag(self, flag: u8) -> bool {
        self.header().flags() & flag != 0
    }

    pub(crate) fn add_flag(self, flag: u8) {
        let header = self.header();
        self.set(0, header.with_flags(header.flags() | flag).word());
    }

    /// Returns slot or element `index` of an instance or general vector.
    pub(crate) fn slot(self, index: usize) -> Value {
        assert!(index < self.length(), "slot {index} of {}", self.length());
        self.get(index + 1)
    }

    pub(crate) fn set_slot(self, index: usize, value: Value) {
        assert!(index < self.length(), "slot {index} of {}", self.length());
        self.set(index + 1, value);
    }

    /// Returns the elements of a general vector, each of which is read and written atomically.
    pub(crate) fn elements(&self) -> &[AtomicU64] {
        assert!(self.is(ObjectKind::Vector));
        let start = std::ptr::with_exposed_provenance(self.address() + 8);
        // SAFETY: a vector of `length` elements was allocated with as many words, and all access to them is atomic.
        unsafe { std::slice::from_raw_parts(start, self.length()) }
    }

    /// Returns the bytes of a string.
    pub(crate) fn bytes(&self) -> &[u8] {
        assert!(self.is(ObjectKind::String));
        let start = std::ptr::with_exposed_provenance(self.address() + 8);
        // SAFETY: a string of `length` bytes was allocated with at least as many after its header.
        unsafe { std::slice::from_raw_parts(start, self.length()) }
    }

    /// Returns the bytes of a string for writing. Threads that share the string must synchronise.
    #[expect(clippy::mut_from_ref, reason = "the value is a reference to shared memory")]
    pub(crate) fn bytes_mut(&self) -> &mut [u8] {
        assert!(self.is(ObjectKind::String));
        let start = std::ptr::with_exposed_provenance_mut(self.address() + 8);
        // SAFETY: as in `bytes`; this crate never holds two slices of one string at the same time.
        unsafe { std::slice::from_raw_parts_mut(start, self.length()) }
    }

    /// Returns the elements of a float-vector.
    pub(crate) fn floats(&self) -> &[f64] {
        assert!(self.is(ObjectKind::FloatVector));
        let start = std::ptr::with_exposed_provenance(self.address() + 8);
        // SAFETY: a float-vector of `length` elements was allocated with as many words.
        unsafe { std::slice::from_raw_parts(start, self.length()) }
    }

    /// Returns the elements of a float-vector for writing.
    #[expect(clippy::mut_from_ref, reason = "the value is a reference to shared memory")]
    pub(crate) fn floats_mut(&self) -> &mut [f64] {
        assert!(self.is(ObjectKind::FloatVector));
        let start = std::ptr::with_exposed_provenance_mut(self.address() + 8);
        // SAFETY: as in `floats`.
        unsafe { std::slice::from_raw_parts_mut(start, self.length()) }
    }

    /// Returns the words of an integer-vector, or the digits of a bignum.
    pub(crate) fn integers(&self) -> &[i64] {
        assert!(self.is(ObjectKind::IntegerVector) || self.is(ObjectKind::Bignum));
        let start = std::ptr::with_exposed_provenance(self.address() + 8);
        // SAFETY: as in `floats`.
        unsafe { std::slice::from_raw_parts(start, self.length()) }
    }

    /// Returns the words of an integer-vector, or the digits of a bignum, for writing.
    #[expect(clippy::mut_from_ref, reason = "the value is a reference to shared memory")]
    pub(crate) fn integers_mut(&self) -> &mut [i64] {
        assert!(self.is(ObjectKind::IntegerVector) || self.is(ObjectKind::Bignum));
        let start = std::ptr::with_exposed_provenance_mut(self.address() + 8);
        // SAFETY: as in `floats`.
        unsafe { std::slice::from_raw_parts_mut(start, self.length()) }
    }

    /// Returns the text of a string, with replacement characters for bytes that are not UTF-8.
    pub(crate) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.bytes())
    }
}

/// Copies words in order, each of them atomically, as relaxed loads and stores do. The lengths are equal.
pub(crate) fn copy_words(from: &[AtomicU64], to: &[AtomicU64]) {
    assert_eq!(from.len(), to.len());
    #[cfg(target_arch = "x86_64")]
    // SAFETY: both slices have `rcx` words, which may be written while others read them, and the direction flag is
    // clear. The processor moves whole words or aligned groups of them, so that no reader sees a part of one.
    unsafe {
        core::arch::asm!(
            "rep movsq",
            inout("rcx") from.len() => _,
            inout("rsi") from.as_ptr() => _,
            inout("rdi") to.as_ptr() => _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (from, to) in from.iter().zip(to) {
        to.store(from.load(std::sync::atomic::Ordering::Relaxed), std::sync::atomic::Ordering::Relaxed);
    }
}
