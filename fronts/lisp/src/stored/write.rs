//! Encodes values as bytes.

use super::tag::Tag;
use crate::builtins::number::big;
use crate::context::Context;
use crate::error::Exit;
use crate::value::{ObjectKind, Value, symbol};
use crate::world::class;
use std::collections::HashMap;

pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// The numbers of the objects written before, by their words.
    known: HashMap<u64, u64>,
}

impl Writer<'_> {
    pub(super) fn new(out: &mut Vec<u8>) -> Writer<'_> {
        Writer { out, known: HashMap::new() }
    }

    /// Writes a value, which the caller keeps alive; evaluates no Lisp.
    pub(super) fn value(&mut self, cx: &mut Context, value: Value) -> Result<(), Exit> {
        cx.check_stack()?;
        let mut value = value;
        loop {
            if let Some(number) = self.known.get(&value.0).copied() {
                self.tag(Tag::Again);
                self.number(number);
                return Ok(());
            }
            if !value.is_cons() {
                return self.atom(cx, value);
            }
            self.meet(value);
            self.tag(Tag::Cons);
            self.value(cx, value.get(0))?;
            value = value.get(1);
        }
    }

    fn atom(&mut self, cx: &mut Context, value: Value) -> Result<(), Exit> {
        if value.is_nil() {
            self.tag(Tag::Nil);
            return Ok(());
        }
        if let Some(number) = value.as_fixnum() {
            self.tag(Tag::Fixnum);
            self.word(number.cast_unsigned());
            return Ok(());
        }
        if let Some(number) = value.word_float() {
            self.tag(Tag::Float);
            self.word(number.to_bits());
            return Ok(());
        }
        let Some(kind) = value.kind() else { return cx.not_stored(value) };
        self.meet(value);
        let of = value.header().class();
        match (kind, of) {
            (ObjectKind::Symbol, _) => self.symbol(cx, value),
            (ObjectKind::Float, _) => {
                self.tag(Tag::Float);
                self.word(value.get(1).0);
            }
            (ObjectKind::String, class::STRING) => {
                self.tag(Tag::String);
                self.text(value.bytes());
            }
            (ObjectKind::FloatVector, class::FLOAT_VECTOR) => {
                self.tag(Tag::Floats);
                self.number(value.length() as u64);
                value.floats().iter().for_each(|it| self.word(it.to_bits()));
            }
            (ObjectKind::IntegerVector, class::INTEGER_VECTOR) => {
                self.tag(Tag::Integers);
                self.number(value.length() as u64);
                value.integers().iter().for_each(|it| self.word(it.cast_unsigned()));
            }
            (ObjectKind::BitVector, class::BIT_VECTOR) => {
                self.tag(Tag::Bits);
                self.number(value.length() as u64);
                (0..value.length().div_ceil(64)).for_each(|at| self.word(value.get(1 + at).0));
            }
            (ObjectKind::Vector, class::VECTOR) => self.slots(cx, Tag::Vector, value)?,
            (ObjectKind::Array, class::ARRAY) => self.slots(cx, Tag::Array, value)?,
            (ObjectKind::Bignum, _) => {
                self.tag(Tag::Bignum);
                self.text(big(value).to_str_radix(10).as_bytes());
            }
            (ObjectKind::Ratio, _) => {
                self.tag(Tag::Ratio);
                self.value(cx, value.slot(0))?;
                self.value(cx, value.slot(1))?;
            }
            _ => return cx.not_stored(value),
        }
        Ok(())
    }

    fn slots(&mut self, cx: &mut Context, tag: Tag, value: Value) -> Result<(), Exit> {
        self.tag(tag);
        self.number(value.length() as u64);
        (0..value.length()).try_for_each(|index| self.value(cx, value.slot(index)))
    }

    fn symbol(&mut self, cx: &Context, value: Value) {
        match cx.package_of_object(value.get(symbol::PACKAGE)) {
            Some(package) => {
                self.tag(Tag::Symbol);
                self.text(package.name().as_bytes());
            }
            None => self.tag(Tag::Uninterned),
        }
        self.text(value.get(symbol::NAME).bytes());
    }

    fn meet(&mut self, value: Value) {
        let number = self.known.len() as u64;
        self.known.insert(value.0, number);
    }

    fn tag(&mut self, tag: Tag) {
        self.out.push(tag as u8);
    }

    fn word(&mut self, word: u64) {
        self.out.extend(word.to_le_bytes());
    }

    fn number(&mut self, number: u64) {
        let mut rest = number;
        while rest >= 0x80 {
            self.out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.out.push(rest as u8);
    }

    fn text(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.out.extend(bytes);
    }
}
