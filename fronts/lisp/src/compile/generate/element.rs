//! Generates accesses to elements of vectors.

use super::number::{Operand, Site, Wanted};
use super::{Generator, OBJECT};
use crate::builtins::vector::slot as shape;
use crate::value::{Header, ObjectKind, Value as Word};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder as _, Value, types};

/// Mask of the bits of a header that tell the kind.
const KIND: i64 = 0xff;

/// The place of an element that was found in a vector.
struct ElementPlace {
    /// The vector that holds the element: the array itself if it has one axis.
    vector: Value,
    /// The kind's bits in the vector's header.
    kind: Value,
    /// The address of the element if each takes a word.
    address: Value,
}

impl Generator<'_, '_> {
    /// Finds an element of a vector or of an array of two axes. Jumps to `slow` for other values and for indices out of
    /// range.
    fn element_place(&mut self, array: Operand, indices: &[Operand], slow: Block) -> Option<ElementPlace> {
        let (Operand::Word(array) | Operand::Either { word: array, .. }) = array else { return None };
        if indices.iter().any(|index| matches!(index, Operand::Float(_))) {
            return None;
        }
        let mut good = self.has_tag(array, OBJECT);
        if let Some(fixnums) = self.are_fixnums(indices) {
            good = self.b.ins().band(good, fixnums);
        }
        self.go_on_if(good, slow);
        let (vector, index) = match *indices {
            [index] => (array, self.untagged(index)),
            [row, column] => self.plane_place(array, row, column, slow),
            _ => return None,
        };
        let header = self.header(vector);
        if indices.len() == 1 {
            let length = self.b.ins().ushr_imm_u(header, 32);
            let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, index, length);
            self.go_on_if(inside, slow);
        }
        let offset = self.b.ins().ishl_imm_u(index, 3);
        let kind = self.b.ins().band_imm_s(header, KIND);
        Some(ElementPlace { vector, kind, address: self.b.ins().iadd(vector, offset) })
    }

    /// Returns the vector of an array of two axes, and the index of an element in it. Checks all that
    /// [`Shape::of`](crate::builtins::vector::Shape::of) checks, as programs may write to the slots of arrays.
    fn plane_place(&mut self, array: Value, row: Operand, column: Operand, slow: Block) -> (Value, Value) {
        let plane = self.is_kind(array, ObjectKind::Array);
        self.go_on_if(plane, slow);
        let rank = self.load(array, shape::RANK * 8);
        let mut good = self.b.ins().icmp_imm_s(IntCC::Equal, rank, Word::fixnum(2).0.cast_signed());
        let slots = [shape::FIRST_AXIS, shape::FIRST_AXIS + 1, shape::OFFSET];
        let words = slots.map(|slot| self.load(array, slot * 8));
        if let Some(fixnums) = self.are_fixnums(&words.map(Operand::Word)) {
            good = self.b.ins().band(good, fixnums);
        }
        // Three numbers below 2^31, so that no sum of products overflows.
        let most = self.b.ins().bor(words[0], words[1]);
        let most = self.b.ins().bor(most, words[2]);
        let most = self.b.ins().ushr_imm_u(most, 33);
        let small = self.b.ins().icmp_imm_s(IntCC::Equal, most, 0);
        good = self.b.ins().band(good, small);
        let [rows, columns, offset] = words.map(|word| self.untagged(Operand::Word(word)));
        let (row, column) = (self.untagged(row), self.untagged(column));
        for (index, size) in [(row, rows), (column, columns)] {
            let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, index, size);
            good = self.b.ins().band(good, inside);
        }
        let vector = self.load(array, shape::ENTITY * 8);
        let object = self.has_tag(vector, OBJECT);
        good = self.b.ins().band(good, object);
        self.go_on_if(good, slow);
        let header = self.header(vector);
        let length = self.b.ins().ushr_imm_u(header, 32);
        let whole = self.b.ins().imul(rows, columns);
        let whole = self.b.ins().iadd(whole, offset);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, whole, length);
        self.go_on_if(fits, slow);
        let index = self.b.ins().imul(row, columns);
        let index = self.b.ins().iadd(index, column);
        (vector, self.b.ins().iadd(index, offset))
    }

    fn go_on_if(&mut self, condition: Value, other: Block) {
        let on = self.b.create_block();
        self.b.ins().brif(condition, on, &[], other, &[]);
        self.b.switch_to_block(on);
    }

    /// Branches on the kind of a vector: to the first block for a vector of values, to the second for a float-vector.
    fn by_kind(&mut self, kind: Value, slow: Block) -> (Block, Block) {
        let (values, floats) = (self.b.create_block(), self.b.create_block());
        let bits = |kind| (Header::new(kind, 0, 0).word().0).cast_signed();
        let plain = self.b.ins().icmp_imm_s(IntCC::Equal, kind, bits(ObjectKind::Vector));
        let next = self.b.create_block();
        self.b.ins().brif(plain, values, &[], next, &[]);
        self.b.switch_to_block(next);
        let float = self.b.ins().icmp_imm_s(IntCC::Equal, kind, bits(ObjectKind::FloatVector));
        self.b.ins().brif(float, floats, &[], slow, &[]);
        (values, floats)
    }

    /// Generates a read of an element: inline from a vector of values or a float-vector.
    pub(super) fn element(&mut self, site: Site<'_>, wanted: Wanted) -> Operand {
        let slow = self.b.create_block();
        let join = self.join(wanted);
        if let Some(place) = self.element_place(site.arguments[0], &site.arguments[1..], slow) {
            let (values, floats) = self.by_kind(place.kind, slow);
            self.b.switch_to_block(values);
            let word = self.load(place.address, 0);
            self.join_word(&join, word);
            self.b.switch_to_block(floats);
            let float = self.b.ins().load(types::F64, Self::TRUSTED, place.address, 0);
            self.join_float(&join, float);
        } else {
            self.b.ins().jump(slow, &[]);
        }
        self.b.switch_to_block(slow);
        let word = self.call_site(site);
        self.join_word(&join, word);
        self.joined(&join)
    }

    /// Generates a write to an element: inline to a vector of values or a float-vector. Returns the new value.
    pub(super) fn set_element(&mut self, site: Site<'_>) -> Operand {
        let (slow, on) = (self.b.create_block(), self.b.create_block());
        let last = site.arguments.len() - 1;
        let value = site.arguments[last];
        if let Some(place) = self.element_place(site.arguments[0], &site.arguments[1..last], slow) {
            let (values, floats) = self.by_kind(place.kind, slow);
            self.b.switch_to_block(values);
            // Boxing a float may collect, and the array keeps the vector alive only until another thread gives it a new
            // one. No test covers this, as that has to happen between two instructions of this function.
            if matches!(value, Operand::Float(_) | Operand::Either { .. }) {
                let root = self.root();
                self.keep(place.vector, root);
            }
            let word = self.boxed(value);
            self.store(word, place.address, 0);
            self.b.ins().jump(on, &[]);
            self.b.switch_to_block(floats);
            let float = self.float_or(value, slow);
            self.store(float, place.address, 0);
            self.b.ins().jump(on, &[]);
        } else {
            self.b.ins().jump(slow, &[]);
        }
        self.b.switch_to_block(slow);
        self.call_site(site);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
        value
    }
}
