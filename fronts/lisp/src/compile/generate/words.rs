//! Generates loads, stores and conversions of words.

use super::{Generator, Type, Typed};
use crate::compile::runtime::Helper;
use crate::value::Value as Word;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder as _, Value, types};

impl Generator<'_, '_> {
    pub(super) fn load(&mut self, at: Value, offset: usize) -> Value {
        self.b.ins().load(types::I64, Self::TRUSTED, at, offset as i32)
    }

    pub(super) fn store(&mut self, value: Value, at: Value, offset: usize) {
        self.b.ins().store(Self::TRUSTED, value, at, offset as i32);
    }

    pub(super) fn number(&mut self, number: u64) -> Value {
        self.b.ins().iconst(types::I64, number.cast_signed())
    }

    pub(super) fn nil(&mut self) -> Typed {
        Typed::any(self.number(0))
    }

    /// Returns a value as a word of Lisp; allocates a number that is not a fixnum.
    pub(super) fn word(&mut self, typed: Typed) -> Value {
        if typed.of == Type::Any {
            return typed.value;
        }
        let shifted = self.b.ins().ishl_imm_u(typed.value, 2);
        let back = self.b.ins().sshr_imm_u(shifted, 2);
        let tagged = self.b.ins().bor_imm_s(shifted, 1);
        let fits = self.b.ins().icmp(IntCC::Equal, back, typed.value);
        let (large, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(large);
        let word = self.b.append_block_param(on, types::I64);
        self.b.ins().brif(fits, on, &[tagged.into()], large, &[]);
        self.b.switch_to_block(large);
        let made = self.import_checked(Helper::Integer, &[typed.value]);
        self.b.ins().jump(on, &[made.into()]);
        self.b.switch_to_block(on);
        word
    }

    /// Returns a value as an untagged number. The program declares it a fixnum: for any other value the number is
    /// arbitrary.
    pub(super) fn plain(&mut self, typed: Typed) -> Value {
        match typed.of {
            Type::Fixnum => typed.value,
            Type::Any => self.b.ins().sshr_imm_u(typed.value, 2),
        }
    }

    pub(super) fn constant(&mut self, value: Word) -> Typed {
        match value.as_fixnum() {
            Some(number) => Typed { value: self.number(number.cast_unsigned()), of: Type::Fixnum },
            None => Typed::any(self.number(value.0)),
        }
    }
}
