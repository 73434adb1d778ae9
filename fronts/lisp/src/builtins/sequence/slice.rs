//! Goes over the elements of a vector at once: decides by the vector's kind first, then runs along its storage.

use crate::builtins::compare::eql;
use crate::builtins::number::as_float;
use crate::builtins::vector::{
    Shape, copy_bits, count_bits, element, fill_bits, find_bit, reverse_bits, set_element,
};
use crate::context::Context;
use crate::error::Exit;
use crate::value::{ObjectKind, Value, copy_words};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Consecutive elements of a vector, which may be those of an array.
#[derive(Clone, Debug)]
pub(crate) struct VectorSlice {
    pub(crate) vector: Value,
    pub(crate) range: Range<usize>,
}

impl VectorSlice {
    /// Returns the elements of a vector, or of a one-dimensional array up to its fill pointer.
    pub(crate) fn of(cx: &mut Context, sequence: Value) -> Result<VectorSlice, Exit> {
        match sequence.kind() {
            Some(
                ObjectKind::Vector
                | ObjectKind::String
                | ObjectKind::FloatVector
                | ObjectKind::IntegerVector
                | ObjectKind::BitVector,
            ) => Ok(VectorSlice { vector: sequence, range: 0..sequence.length() }),
            Some(ObjectKind::Array) => match Shape::of(sequence) {
                Some(shape) if shape.dimensions.len() == 1 => {
                    Ok(VectorSlice { vector: shape.entity, range: shape.offset..shape.offset + shape.filled })
                }
                _ => cx.type_error("sequence", sequence),
            },
            _ => cx.type_error("sequence", sequence),
        }
    }

    /// Returns the part of the slice in `range`, which must lie within it.
    pub(crate) fn part(&self, range: Range<usize>) -> VectorSlice {
        assert!(range.start <= range.end && range.end <= self.range.len());
        let start = self.range.start;
        VectorSlice { vector: self.vector, range: start + range.start..start + range.end }
    }

    pub(crate) fn kind(&self) -> ObjectKind {
        self.vector.header().kind()
    }

    /// Returns the slots of a vector of values.
    fn slots(&self) -> impl DoubleEndedIterator<Item = Value> + ExactSizeIterator {
        assert!(self.vector.is(ObjectKind::Vector) && self.range.end <= self.vector.length());
        let vector = self.vector;
        self.range.clone().map(move |index| vector.get(index + 1))
    }

    /// Pushes the elements.
    pub(crate) fn push_all(&self, cx: &mut Context) -> Result<(), Exit> {
        match self.kind() {
            ObjectKind::Vector => self.slots().try_for_each(|value| cx.push(value)),
            ObjectKind::String => self.vector.bytes()[self.range.clone()]
                .iter()
                .try_for_each(|byte| cx.push(Value::fixnum(i64::from(*byte)))),
            ObjectKind::FloatVector => {
                self.vector.floats()[self.range.clone()].iter().try_for_each(|number| {
                    let value = cx.float(*number)?;
                    cx.push(value)
                })
            }
            ObjectKind::IntegerVector => {
                self.vector.integers()[self.range.clone()].iter().try_for_each(|number| {
                    let value = cx.integer_from(*number)?;
                    cx.push(value)
                })
            }
            _ => self.range.clone().try_for_each(|index| {
                let value = element(cx, self.vector, index)?;
                cx.push(value)
            }),
        }
    }

    /// Writes one value to every element.
    pub(crate) fn fill(&self, cx: &mut Context, value: Value) -> Result<(), Exit> {
        let range = self.range.clone();
        if range.is_empty() {
            return Ok(());
        }
        // The first element is written as by `setf` of `aref`, which refuses a value of the wrong type.
        set_element(cx, self.vector, range.start, value)?;
        match self.kind() {
            ObjectKind::String => {
                let bytes = self.vector.bytes_mut();
                let byte = bytes[range.start];
                bytes[range].fill(byte);
            }
            ObjectKind::FloatVector => {
                let floats = self.vector.floats_mut();
                let number = floats[range.start];
                floats[range].fill(number);
            }
            ObjectKind::IntegerVector => {
                let integers = self.vector.integers_mut();
                let number = integers[range.start];
                integers[range].fill(number);
            }
            ObjectKind::BitVector => fill_bits(self.vector, range, value == Value::fixnum(1)),
            _ => range.for_each(|index| self.vector.set(index + 1, value)),
        }
        Ok(())
    }

    /// Copies the elements to a slice of the same length and kind, which may overlap this one.
    pub(crate) fn copy_to(&self, to: &VectorSlice) {
        assert!(self.kind() == to.kind() && self.range.len() == to.range.len());
        let (from, same, at) = (self.range.clone(), self.vector == to.vector, to.range.start);
        match self.kind() {
            ObjectKind::String if same => to.vector.bytes_mut().copy_within(from, at),
            ObjectKind::String => {
                to.vector.bytes_mut()[to.range.clone()].copy_from_slice(&self.vector.bytes()[from]);
            }
            ObjectKind::FloatVector if same => to.vector.floats_mut().copy_within(from, at),
            ObjectKind::FloatVector => {
                to.vector.floats_mut()[to.range.clone()].copy_from_slice(&self.vector.floats()[from]);
            }
            ObjectKind::IntegerVector if same => to.vector.integers_mut().copy_within(from, at),
            ObjectKind::IntegerVector => {
                to.vector.integers_mut()[to.range.clone()].copy_from_slice(&self.vector.integers()[from]);
            }
            ObjectKind::BitVector => copy_bits(self.vector, from, to.vector, at),
            _ => {
                let (from, to) = (&self.vector.elements()[from], &to.vector.elements()[to.range.clone()]);
                // Copying upwards within one vector begins at the end, as `copy_within` does.
                if same && at > self.range.start {
                    // Relaxed: threads that share a vector must synchronise.
                    let copy = |(from, to): (&AtomicU64, &AtomicU64)| {
                        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
                    };
                    from.iter().zip(to).rev().for_each(copy);
                } else {
                    copy_words(from, to);
                }
            }
        }
    }

    /// Reverses the elements in place.
    pub(crate) fn reverse(&self) {
        let range = self.range.clone();
        match self.kind() {
            ObjectKind::String => self.vector.bytes_mut()[range].reverse(),
            ObjectKind::FloatVector => self.vector.floats_mut()[range].reverse(),
            ObjectKind::IntegerVector => self.vector.integers_mut()[range].reverse(),
            ObjectKind::BitVector => reverse_bits(self.vector, range),
            _ => {
                let words = &self.vector.elements()[range];
                let (low, high) = words.split_at(words.len() / 2);
                // Relaxed: threads that share a vector must synchronise.
                for (low, high) in low.iter().zip(high.iter().rev()) {
                    let (a, b) = (low.load(Ordering::Relaxed), high.load(Ordering::Relaxed));
                    low.store(b, Ordering::Relaxed);
                    high.store(a, Ordering::Relaxed);
                }
            }
        }
    }

    /// Returns the element that an `eql` search must find in the storage.
    fn wanted(&self, value: Value) -> Wanted {
        let small = |most: i64| value.as_fixnum().filter(|number| (0..=most).contains(number));
        let found = match self.kind() {
            ObjectKind::String => small(255).map(|code| Wanted::Byte(code as u8)),
            ObjectKind::FloatVector => as_float(value).map(|number| Wanted::Float(number.to_bits())),
            ObjectKind::IntegerVector => match value.as_fixnum() {
                Some(number) => Some(Wanted::Integer(number)),
                // An integer that is no fixnum may be one of 64 bits.
                None if value.is(ObjectKind::Bignum) => return Wanted::Wide(value),
                None => None,
            },
            ObjectKind::BitVector => small(1).map(|bit| Wanted::Bit(bit == 1)),
            _ => Some(Wanted::Value(value)),
        };
        found.unwrap_or(Wanted::Absent)
    }

    /// Returns the position of the first element that is `eql` to a value, or of the last one.
    pub(crate) fn position(&self, value: Value, last: bool) -> Option<usize> {
        fn within<T>(items: &[T], last: bool, is: impl Fn(&T) -> bool) -> Option<usize> {
            if last { items.iter().rposition(is) } else { items.iter().position(is) }
        }
        let range = self.range.clone();
        match self.wanted(value) {
            Wanted::Absent => None,
            Wanted::Byte(byte) => within(&self.vector.bytes()[range], last, |it| *it == byte),
            Wanted::Float(bits) => within(&self.vector.floats()[range], last, |it| it.to_bits() == bits),
            Wanted::Integer(number) => within(&self.vector.integers()[range], last, |it| *it == number),
            Wanted::Wide(value) => within(&self.vector.integers()[range], last, |it| is_integer(value, *it)),
            Wanted::Bit(on) => {
                let start = range.start;
                find_bit(self.vector, range, on, last).map(|index| index - start)
            }
            Wanted::Value(value) if last => self.slots().rposition(|it| eql(value, it)),
            Wanted::Value(value) => self.slots().position(|it| eql(value, it)),
        }
    }

    /// Returns the number of elements that are `eql` to a value.
    pub(crate) fn count(&self, value: Value) -> usize {
        let range = self.range.clone();
        match self.wanted(value) {
            Wanted::Absent => 0,
            Wanted::Byte(byte) => self.vector.bytes()[range].iter().filter(|it| **it == byte).count(),
            Wanted::Float(bits) => {
                self.vector.floats()[range].iter().filter(|it| it.to_bits() == bits).count()
            }
            Wanted::Integer(number) => {
                self.vector.integers()[range].iter().filter(|it| **it == number).count()
            }
            Wanted::Wide(value) => {
                self.vector.integers()[range].iter().filter(|it| is_integer(value, **it)).count()
            }
            Wanted::Bit(on) => count_bits(self.vector, range, on),
            Wanted::Value(value) => self.slots().filter(|it| eql(value, *it)).count(),
        }
    }
}

/// The representation that an element `eql` to a value has in the storage.
enum Wanted {
    /// No element of this kind of vector can be equal to the value.
    Absent,
    Byte(u8),
    Float(u64),
    Integer(i64),
    Wide(Value),
    Bit(bool),
    Value(Value),
}

/// Returns whether a bignum is a number of 64 bits.
fn is_integer(bignum: Value, number: i64) -> bool {
    let digits = bignum.integers();
    let negative = bignum.has_flag(crate::value::flag::NEGATIVE);
    digits.len() == 1 && digits[0].cast_unsigned() == number.unsigned_abs() && negative == (number < 0)
}
