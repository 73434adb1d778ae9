//! Generates calls of the runtime, and pads for calls that return no word.

use super::{FormPad, Generator, Pad, Typed};
use crate::compile::jit::words;
use crate::compile::runtime::{self, Helper};
use crate::value::Value as Word;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, FuncRef, InstBuilder as _, SigRef, Value, types};
use cranelift_module::{FuncId, Module as _};

impl Generator<'_, '_> {
    pub(super) fn reference(&mut self, id: FuncId) -> FuncRef {
        let (compiler, func) = (&mut *self.compiler, &mut *self.b.func);
        *self.referred.entry(id).or_insert_with(|| compiler.module.declare_func_in_func(id, func))
    }

    /// Returns the signature of the entry of a compiled function.
    pub(super) fn entry_signature(&mut self) -> SigRef {
        let (compiler, func) = (&*self.compiler, &mut *self.b.func);
        *self.entry_signature.get_or_insert_with(|| func.import_signature(words(&compiler.module, 4)))
    }

    pub(super) fn call_code(&mut self, code: FuncRef, arguments: &[Value]) -> Value {
        let call = self.b.ins().call(code, arguments);
        self.b.inst_results(call)[0]
    }

    /// Calls a helper and returns its word, without a jump to the pad if there is none.
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

    fn cold_block(&mut self) -> Block {
        let block = self.b.create_block();
        self.b.set_cold_block(block);
        block
    }

    /// Returns the block to which code of the innermost form or construct jumps when a call returns by an exit or an
    /// error.
    pub(super) fn pad(&mut self) -> Block {
        if let Some(FormPad { block, .. }) = self.form_pads.last() {
            return block.unwrap_or_else(|| self.form_pad());
        }
        let block = match self.pads.last() {
            Some(Pad { block: Some(block), .. }) => return *block,
            _ => self.cold_block(),
        };
        self.innermost().block = Some(block);
        block
    }

    /// Creates the pad of the innermost form.
    fn form_pad(&mut self) -> Block {
        let (block, passed) = (self.cold_block(), self.passed_block());
        let mut forms = std::ptr::null();
        for pad in &mut self.form_pads {
            let outer = forms;
            forms = *pad.forms.get_or_insert_with(|| self.compiler.passed_form(pad.form, outer));
        }
        if let Some(pad) = self.form_pads.last_mut() {
            pad.block = Some(block);
        }
        self.pending.push((block, forms, passed));
        block
    }

    fn innermost(&mut self) -> &mut Pad {
        let Some(last) = self.pads.last_mut() else { unreachable!("a function begins with a pad") };
        last
    }

    /// Returns the block that adds forms to the backtrace, and continues at the innermost construct's pad.
    fn passed_block(&mut self) -> Block {
        if let Some(block) = self.innermost().passed {
            return block;
        }
        let block = self.cold_block();
        self.innermost().passed = Some(block);
        block
    }

    /// Runs `inside` with a pad of its own; returns the pad if it was used.
    pub(super) fn with_pad<R>(&mut self, inside: impl FnOnce(&mut Self) -> R) -> (R, Option<Block>) {
        self.pads.push(Pad { block: None, passed: None });
        let outer = std::mem::take(&mut self.form_pads);
        let done = inside(self);
        self.form_pads = outer;
        (done, self.end_pad())
    }

    /// Ends the innermost pad, and returns its block if it was used.
    pub(super) fn end_pad(&mut self) -> Option<Block> {
        let Pad { block, passed } = self.pads.pop()?;
        let Some(passed) = passed else { return block };
        let block = block.unwrap_or_else(|| self.cold_block());
        self.passing.push((passed, block));
        Some(block)
    }

    /// Runs `inside` for a form, which is added to the backtrace of an error that passes.
    pub(super) fn on_behalf<R>(&mut self, form: Word, inside: impl FnOnce(&mut Self) -> R) -> R {
        self.form_pads.push(FormPad { form, forms: None, block: None });
        let done = inside(self);
        self.form_pads.pop();
        done
    }

    pub(super) fn fill_pads(&mut self) {
        for (pad, forms, passed) in std::mem::take(&mut self.pending) {
            self.b.switch_to_block(pad);
            let forms = self.number(forms.expose_provenance() as u64);
            self.b.ins().jump(passed, &[forms.into()]);
        }
        for (passed, pad) in std::mem::take(&mut self.passing) {
            let forms = self.b.append_block_param(passed, types::I64);
            self.b.switch_to_block(passed);
            self.import(Helper::Passed, &[forms]);
            self.b.ins().jump(pad, &[]);
        }
    }

    /// Starts a block of unreachable code.
    pub(super) fn dead(&mut self) -> Typed {
        let block = self.b.create_block();
        self.b.switch_to_block(block);
        self.nil()
    }

    /// Loads a number that is not zero if the thread is to poll.
    pub(super) fn asked(&mut self) -> Value {
        self.b.ins().load(types::I32, Self::TRUSTED, self.gc, largesse_gc::Context::POLL as i32)
    }

    pub(super) fn poll(&mut self) {
        let asked = self.asked();
        let (rare, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(rare);
        self.b.ins().brif(asked, rare, &[], on, &[]);
        self.b.switch_to_block(rare);
        self.import_checked(Helper::Poll, &[]);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }
}
