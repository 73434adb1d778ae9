//! Generates a function's prologue and epilogue, and its slots on both stacks.

use super::{Generator, Pad};
use crate::compile::runtime::{self, Helper};
use crate::compile::tree::Function;
use crate::context::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder as _, StackSlotData, StackSlotKind, Value, types};
use std::mem::offset_of;

impl Generator<'_, '_> {
    /// Generates a function with parameters in registers, or with arguments read from the root stack.
    pub(super) fn whole(&mut self, function: &Function, given: &[Value]) {
        self.gc = self.load(self.context, Context::GC_OFFSET);
        self.frame = self.load(self.gc, largesse_gc::Context::ROOTS_TOP);
        let (enter, body, gone) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().jump(enter, &[]);
        self.b.switch_to_block(body);
        self.pads.push(Pad { block: Some(gone), passed: None });
        let mut kept = Vec::new();
        let mut arguments = given[1..].iter();
        if function.range.is_some() {
            self.closure = Some(given[1]);
            self.given = Some((given[2], given[3]));
        } else {
            if !function.captures.is_empty() {
                self.closure = arguments.next().copied();
            }
            // The caller need not keep the arguments alive.
            for value in arguments {
                let root = self.root();
                kept.push((*value, root));
                self.keep(*value, root);
            }
        }
        match function.range {
            Some((least, most)) => self.check_count(function, least, most),
            None => self.poll(),
        }
        for (variable, (value, root)) in function.required.iter().zip(kept) {
            self.bind_kept(variable, value, root);
        }
        let answer = self.node(&function.body);
        let word = self.word(answer);
        self.leave(word);
        self.end_pad();
        self.fill_pads();
        self.b.switch_to_block(gone);
        let none = self.number(runtime::GONE);
        self.leave(none);
        self.b.switch_to_block(enter);
        self.enter(body);
    }

    /// Checks both stacks, polls if the caller keeps the arguments alive, and sets the function's roots to nil.
    fn enter(&mut self, body: Block) {
        let stack = self.b.ins().get_stack_pointer(types::I64);
        let limit = self.load(self.context, offset_of!(Context, stack_limit));
        let low = self.b.ins().icmp(IntCC::UnsignedLessThan, stack, limit);
        let limit = self.load(self.gc, largesse_gc::Context::ROOTS_LIMIT);
        let top = self.b.ins().iadd_imm_s(self.frame, self.most_roots as i64 * 8);
        let reserved = self.b.ins().iadd_imm_s(top, Context::RESERVE as i64 * 8);
        let high = self.b.ins().icmp(IntCC::UnsignedGreaterThan, reserved, limit);
        let (full, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(full);
        let mut rare = self.b.ins().bor(low, high);
        if self.given.is_some() {
            let asked = self.asked();
            let asked = self.b.ins().icmp_imm_s(IntCC::NotEqual, asked, 0);
            rare = self.b.ins().bor(rare, asked);
        }
        self.b.ins().brif(rare, full, &[], on, &[]);
        self.b.switch_to_block(full);
        let roots = self.number(self.most_roots as u64);
        let word = self.import(Helper::Enter, &[roots]);
        let none = self.b.ins().icmp_imm_s(IntCC::Equal, word, runtime::GONE.cast_signed());
        let out = self.b.create_block();
        self.b.set_cold_block(out);
        self.b.ins().brif(none, out, &[], on, &[]);
        self.b.switch_to_block(out);
        self.b.ins().return_(&[word]);
        self.b.switch_to_block(on);
        let nil = self.number(0);
        for root in 0..self.most_roots {
            self.store(nil, self.frame, root * 8);
        }
        self.store(top, self.gc, largesse_gc::Context::ROOTS_TOP);
        self.b.ins().jump(body, &[]);
    }

    pub(super) fn leave(&mut self, word: Value) {
        self.store(self.frame, self.gc, largesse_gc::Context::ROOTS_TOP);
        self.b.ins().return_(&[word]);
    }

    /// Allocates a root and returns its number.
    pub(super) fn root(&mut self) -> usize {
        self.roots += 1;
        self.most_roots = self.most_roots.max(self.roots);
        self.roots - 1
    }

    pub(super) fn keep(&mut self, value: Value, root: usize) {
        self.store(value, self.frame, root * 8);
    }

    /// Returns the address of a root.
    pub(super) fn place(&mut self, root: usize) -> Value {
        self.b.ins().iadd_imm_s(self.frame, root as i64 * 8)
    }

    /// Allocates a slot of the machine frame in which a helper saves the thread's state.
    pub(super) fn frame_place(&mut self) -> Value {
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, runtime::FRAME_BYTES as u32, 4);
        let slot = self.b.create_sized_stack_slot(data);
        self.b.ins().stack_addr(types::I64, slot, 0)
    }
}
