//! Numbers the predefined classes, and the slots of class objects.

use crate::value::Value;

/// Indices of the slots of a class.
pub(crate) mod slot {
    pub(crate) const NAME: usize = 1;
    pub(crate) const SUPER: usize = 2;
    pub(crate) const NUMBER: usize = 3;
    /// This slot holds a vector of the names of the instances' slots, those of the superclass first.
    pub(crate) const VARIABLES: usize = 4;
    pub(crate) const TYPES: usize = 5;
    /// This slot holds a list of (selector . definition).
    pub(crate) const METHODS: usize = 7;
    /// This slot holds the element type of a vector class: `:float`, `:integer`, `:bit`, `:character`, or t.
    pub(crate) const ELEMENTS: usize = 8;
    /// This slot of a vector class holds the length of the instances that `instantiate` makes without a length, or nil.
    pub(crate) const SIZE: usize = 9;
}

pub(crate) const OBJECT: u16 = 0;
pub(crate) const CONS: u16 = 1;
pub(crate) const PROPERTIED: u16 = 2;
pub(crate) const SYMBOL: u16 = 3;
pub(crate) const PACKAGE: u16 = 4;
pub(crate) const METACLASS: u16 = 5;
pub(crate) const VECTORCLASS: u16 = 6;
pub(crate) const VECTOR: u16 = 7;
pub(crate) const STRING: u16 = 8;
pub(crate) const FLOAT_VECTOR: u16 = 9;
pub(crate) const INTEGER_VECTOR: u16 = 10;
pub(crate) const BIT_VECTOR: u16 = 11;
pub(crate) const ARRAY: u16 = 12;
pub(crate) const STREAM: u16 = 13;
pub(crate) const FILE_STREAM: u16 = 14;
pub(crate) const IO_STREAM: u16 = 15;
pub(crate) const STRING_STREAM: u16 = 16;
pub(crate) const HASH_TABLE: u16 = 17;
pub(crate) const COMPILED_CODE: u16 = 18;
pub(crate) const CLOSURE: u16 = 19;
pub(crate) const RATIO: u16 = 21;
pub(crate) const BIGNUM: u16 = 22;
pub(crate) const THREAD: u16 = 23;
pub(crate) const MUTEX: u16 = 24;
pub(crate) const CONDITION: u16 = 25;
pub(crate) const SEMAPHORE: u16 = 26;
pub(crate) const BROADCAST_STREAM: u16 = 27;
pub(crate) const FOREIGN_CODE: u16 = 28;
pub(crate) const FOREIGN_POD: u16 = 29;
pub(crate) const FOREIGN_STRING: u16 = 30;
pub(crate) const SOCKET_PORT: u16 = 31;
pub(crate) const ERROR: u16 = 32;
/// Number of the first class below `error`; they are in the order of
/// [`ErrorClass::ALL`](crate::error::ErrorClass::ALL).
pub(crate) const ERRORS: u16 = 33;

/// Returns the number of a class, for headers.
pub(crate) fn number(class: Value) -> u16 {
    class.slot(slot::NUMBER).as_fixnum().unwrap_or(0).cast_unsigned() as u16
}
