//! Generates calls of the runtime, and pads for calls that return no word.

use super::{Generator, Typed};
use crate::compile::runtime::{self, Helper};
use crate::value::Value as Word;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, FuncRef, InstBuilder as _, Value, types};
use cranelift_module::{FuncId, Module as _};

impl Generator<'_, '_> {
    pub(super) fn reference(&mut self, id: FuncId) -> FuncRef {
        let (compiler, func) = (&mut *self.compiler, &mut *self.b.func);
        *self.referred.entry(id).or_insert_with(|| compiler.module.declare_func_in_func(id, func))
    }

    pub(super) fn call_code(&mut self, code: FuncRef, arguments: &[Value]) -> Value {
        let call = self.b.ins().call(code, arguments);
        self.b.inst_results(call)[0]
    }

    /// Calls a helper and ignores its result.
    pub(super) fn import(&mut self, helper: Helper, arguments: &[Value]) -> Value {
        debug_assert_eq!(Helper::ALL[helper as usize].2, arguments.len());
        let code = self.reference(self.compiler.helpers[helper as usize]);
        let words: Vec<Value> = std::iter::once(self.context).chain(arguments.iter().copied()).collect();
        self.call_code(code, &words)
    }

    /// Calls a helper that returns a word; jumps to the pad without one.
    pub(super) fn import_checked(&mut self, helper: Helper, arguments: &[Value]) -> Value {
        let word = self.import(helper, arguments);
        self.check(word);
        word
    }

    pub(super) fn check(&mut self, word: Value) {
        let none = self.b.ins().icmp_imm_s(IntCC::Equal, word, runtime::GONE.cast_signed());
        let (pad, on) = (self.pad(), self.b.create_block());
        self.b.ins().brif(none, pad, &[], on, &[]);
        self.b.switch_to_block(on);
    }

    /// Returns the block to which code of the innermost construct jumps when a call returns by an exit or an error.
    pub(super) fn pad(&mut self) -> Block {
        let Some(last) = self.pads.last_mut() else { unreachable!("a function begins with a pad") };
        *last.get_or_insert_with(|| {
            let block = self.b.create_block();
            self.b.set_cold_block(block);
            block
        })
    }

    /// Runs `inside` with a pad of its own; returns the pad if it was used.
    pub(super) fn with_pad<R>(&mut self, inside: impl FnOnce(&mut Self) -> R) -> (R, Option<Block>) {
        self.pads.push(None);
        let done = inside(self);
        (done, self.pads.pop().flatten())
    }

    /// Runs `inside` for a form, which is added to the backtrace of an error that passes.
    pub(super) fn on_behalf<R>(&mut self, form: Word, inside: impl FnOnce(&mut Self) -> R) -> R {
        let (done, pad) = self.with_pad(inside);
        if let Some(pad) = pad {
            let outer = self.pad();
            self.pending.push((pad, form, outer));
        }
        done
    }

    pub(super) fn fill_pads(&mut self) {
        for (pad, form, outer) in std::mem::take(&mut self.pending) {
            self.b.switch_to_block(pad);
            let form = self.number(form.0);
            self.import(Helper::Passed, &[form]);
            self.b.ins().jump(outer, &[]);
        }
    }

    /// Starts a block of unreachable code.
    pub(super) fn dead(&mut self) -> Typed {
        let block = self.b.create_block();
        self.b.switch_to_block(block);
        self.nil()
    }

    pub(super) fn poll(&mut self) {
        let asked = self.b.ins().load(types::I32, Self::TRUSTED, self.gc, largesse_gc::Context::POLL as i32);
        let (rare, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(rare);
        self.b.ins().brif(asked, rare, &[], on, &[]);
        self.b.switch_to_block(rare);
        self.import_checked(Helper::Poll, &[]);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }
}
