//! Allocates objects. Each function keeps its own arguments alive.

use super::{Answer, Context, RootMark};
use crate::error::ErrorClass;
use crate::error::Exit;
use crate::value::{Header, ObjectKind, Value, flag, symbol};
use crate::world::class;
use largesse_gc::Layout;
use std::ops::Range;

/// Returns the words of a string of `bytes` bytes: a header, the text, and a zero byte after it.
fn words_of_bytes(bytes: usize) -> usize {
    1 + bytes / 8 + 1
}

/// Largest number of elements of a vector: the header has 32 bits for it.
const LONGEST: usize = u32::MAX as usize;

impl Context {
    fn allocate(&mut self, layout: Layout, words: usize) -> Result<usize, Exit> {
        match self.mutator.allocate(layout, words) {
            Ok(object) => Ok(object.as_ptr().expose_provenance()),
            Err(_) => self.out_of_memory(words),
        }
    }

    #[cold]
    pub(crate) fn out_of_memory<T>(&mut self, words: usize) -> Result<T, Exit> {
        let limit = crate::report::size(self.world.heap.statistics().limit_bytes);
        let asked = crate::report::size(words.saturating_mul(8));
        self.error(
            ErrorClass::Memory,
            format!("out of memory: {asked} requested, the heap's limit is {limit}"),
        )
    }

    /// Allocates an object of `length` slots or elements, which occupy `words` words after the header.
    fn object(
        &mut self,
        layout: Layout,
        kind: ObjectKind,
        class: u16,
        length: usize,
        words: usize,
    ) -> Answer {
        if length > LONGEST {
            let most = format!("a vector holds at most {LONGEST} elements, not {length}");
            return self.fail(ErrorClass::Memory, format!("out of memory: {most}"));
        }
        let object = Value::object_at(self.allocate(layout, words + 1)?);
        object.set(0, Header::new(kind, class, length).word());
        Ok(object)
    }

    /// Allocates an object whose every word is a slot.
    pub(crate) fn new_slots(&mut self, kind: ObjectKind, class: u16, length: usize) -> Answer {
        self.object(Layout::Slots, kind, class, length, length)
    }

    #[inline]
    pub(crate) fn cons(&mut self, car: Value, cdr: Value) -> Answer {
        let mark = self.mark();
        self.push(car)?;
        self.push(cdr)?;
        let cons = self.blank_cons()?;
        self.release(mark);
        cons.set(0, car);
        cons.set(1, cdr);
        Ok(cons)
    }

    /// Allocates a cons of two nils.
    #[inline]
    pub(crate) fn blank_cons(&mut self) -> Answer {
        Ok(Value::cons_at(self.allocate(Layout::Slots, 2)?))
    }

    /// Allocates a list of values.
    pub(crate) fn list(&mut self, values: &[Value]) -> Answer {
        self.list_star(values, Value::NIL)
    }

    /// Allocates a list of values that ends in `tail`.
    pub(crate) fn list_star(&mut self, values: &[Value], tail: Value) -> Answer {
        let mark = self.mark();
        for value in values {
            self.push(*value)?;
        }
        let mut list = tail;
        for value in values.iter().rev() {
            list = self.cons(*value, list)?;
        }
        self.release(mark);
        Ok(list)
    }

    /// Allocates a list of the roots above a mark.
    pub(crate) fn stacked(&mut self, mark: RootMark) -> Answer {
        self.list_of_roots(mark, 0..self.above(mark), Value::NIL)
    }

    /// Allocates a list, ending in `tail`, of the roots above a mark whose indices are in `range`.
    pub(crate) fn list_of_roots(&mut self, mark: RootMark, range: Range<usize>, tail: Value) -> Answer {
        let mut list = tail;
        for index in range.rev() {
            list = self.cons(self.root(mark, index), list)?;
        }
        Ok(list)
    }

    /// Allocates a general vector of nils.
    pub(crate) fn new_vector(&mut self, length: usize) -> Answer {
        self.new_slots(ObjectKind::Vector, class::VECTOR, length)
    }

    pub(crate) fn vector_from(&mut self, values: &[Value]) -> Answer {
        let mark = self.mark();
        for value in values {
            self.push(*value)?;
        }
        let vector = self.new_vector(values.len())?;
        self.release(mark);
        for (index, value) in values.iter().enumerate() {
            vector.set_slot(index, *value);
        }
        Ok(vector)
    }

    /// Allocates a float-vector of zeros.
    pub(crate) fn new_floats(&mut self, length: usize) -> Answer {
        self.object(Layout::Opaque, ObjectKind::FloatVector, class::FLOAT_VECTOR, length, length)
    }

    pub(crate) fn floats_from(&mut self, values: &[f64]) -> Answer {
        let vector = self.new_floats(values.len())?;
        vector.floats_mut().copy_from_slice(values);
        Ok(vector)
    }

    /// Allocates an integer-vector of zeros.
    pub(crate) fn new_integers(&mut self, length: usize) -> Answer {
        self.object(Layout::Opaque, ObjectKind::IntegerVector, class::INTEGER_VECTOR, length, length)
    }

    /// Allocates a bit-vector of zeros.
    pub(crate) fn new_bits(&mut self, length: usize) -> Answer {
        self.object(Layout::Opaque, ObjectKind::BitVector, class::BIT_VECTOR, length, length.div_ceil(64))
    }

    /// Allocates a string of `length` zero bytes.
    pub(crate) fn new_string(&mut self, length: usize) -> Answer {
        self.object(Layout::Opaque, ObjectKind::String, class::STRING, length, words_of_bytes(length) - 1)
    }

    pub(crate) fn string_from(&mut self, bytes: &[u8]) -> Answer {
        let string = self.new_string(bytes.len())?;
        string.bytes_mut().copy_from_slice(bytes);
        Ok(string)
    }

    pub(crate) fn string(&mut self, text: &str) -> Answer {
        self.string_from(text.as_bytes())
    }

    #[inline]
    pub(crate) fn float(&mut self, number: f64) -> Answer {
        match Value::float_word(number) {
            Some(word) => Ok(word),
            None => self.boxed_float(number),
        }
    }

    #[cold]
    fn boxed_float(&mut self, number: f64) -> Answer {
        let object = self.object(Layout::Opaque, ObjectKind::Float, class::OBJECT, 1, 1)?;
        object.set(1, Value(number.to_bits()));
        Ok(object)
    }

    /// Allocates a bignum of 64-bit digits, least significant first.
    pub(crate) fn bignum(&mut self, negative: bool, digits: &[u64]) -> Answer {
        let object =
            self.object(Layout::Opaque, ObjectKind::Bignum, class::BIGNUM, digits.len(), digits.len())?;
        for (index, digit) in digits.iter().enumerate() {
            object.set(index + 1, Value(*digit));
        }
        if negative {
            object.add_flag(flag::NEGATIVE);
        }
        Ok(object)
    }

    /// Allocates a symbol without a package. `name` is a string that the caller keeps alive.
    pub(crate) fn new_symbol(&mut self, name: Value) -> Answer {
        let mark = self.mark();
        self.push(name)?;
        let symbol = Value::symbol_at(self.allocate(Layout::Slots, symbol::WORDS)?);
        self.release(mark);
        symbol.set(0, Header::new(ObjectKind::Symbol, class::SYMBOL, symbol::WORDS - 1).word());
        symbol.set(symbol::VALUE, Value::UNBOUND);
        symbol.set(symbol::FUNCTION, Value::UNBOUND);
        symbol.set(symbol::NAME, name);
        Ok(symbol)
    }

    /// Allocates a heap entry of the environment: name, value, link.
    pub(crate) fn new_entry(&mut self, name: Value, value: Value) -> Answer {
        let mark = self.mark();
        self.push(value)?;
        let entry = Value::shared_at(self.allocate(Layout::Slots, 3)?);
        self.release(mark);
        entry.set(0, name);
        entry.set(1, value);
        Ok(entry)
    }

    /// Allocates an instance of a class with all slots nil.
    pub(crate) fn new_instance(&mut self, class: Value) -> Answer {
        let number = class::number(class);
        let slots = class.slot(class::slot::VARIABLES).length();
        self.new_slots(ObjectKind::Instance, number, slots)
    }
}
