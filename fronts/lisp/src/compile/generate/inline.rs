//! Generates inlined operations: fixnum arithmetic, comparisons, conses.

use super::{Generator, Type, Typed};
use crate::compile::runtime::Helper;
use crate::compile::tree::{Op, TreeNode};
use crate::value::Value as Word;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder as _, Value, types};
use largesse_gc::{Bump, Layout};

const CONS: i64 = 0b0100;
const OBJECT: i64 = 0b1000;

impl Op {
    /// Returns whether the operation returns t or nil.
    pub(super) fn is_test(self) -> bool {
        matches!(self, Op::Consp | Op::Not | Op::Eq | Op::Compare(_))
    }
}

impl Generator<'_, '_> {
    fn has_tag(&mut self, value: Value, tag: i64) -> Value {
        let own = self.b.ins().band_imm_s(value, 15);
        self.b.ins().icmp_imm_s(IntCC::Equal, own, tag)
    }

    /// Loads a word of a cons.
    pub(super) fn part(&mut self, cons: Value, index: usize) -> Value {
        self.b.ins().load(types::I64, Self::TRUSTED, cons, index as i32 * 8 - CONS as i32)
    }

    pub(super) fn set_part(&mut self, cons: Value, index: usize, value: Value) {
        self.b.ins().store(Self::TRUSTED, value, cons, index as i32 * 8 - CONS as i32);
    }

    pub(super) fn part_or_nil(&mut self, list: &TreeNode, index: usize) -> Typed {
        let value = self.word_of(list);
        let whole = self.has_tag(value, CONS);
        self.either(whole, |it| Typed::any(it.part(value, index)), |it| it.nil())
    }

    fn is_fixnum(&mut self, value: Value) -> Value {
        let tag = self.b.ins().band_imm_s(value, 3);
        self.b.ins().icmp_imm_s(IntCC::Equal, tag, 1)
    }

    fn both_fixnums(&mut self, a: Value, b: Value) -> Value {
        let (ta, tb) = (self.b.ins().band_imm_s(a, 3), self.b.ins().band_imm_s(b, 3));
        let (ta, tb) = (self.b.ins().bxor_imm_s(ta, 1), self.b.ins().bxor_imm_s(tb, 1));
        let either = self.b.ins().bor(ta, tb);
        self.b.ins().icmp_imm_s(IntCC::Equal, either, 0)
    }

    /// Evaluates the count of a `dotimes`; what is no number is an error.
    pub(super) fn count(&mut self, node: &TreeNode) -> Typed {
        let mut typed = self.node(node);
        if typed.of == Type::Any {
            let fixnum = self.is_fixnum(typed.value);
            let turns = |it: &mut Self| Typed::any(it.import_checked(Helper::Turns, &[typed.value]));
            typed = self.either(fixnum, |_| typed, turns);
        }
        Typed { value: self.plain(typed), of: Type::Fixnum }
    }

    /// Evaluates a list; any other value is an error.
    pub(super) fn list(&mut self, node: &TreeNode) -> Typed {
        let value = self.word_of(node);
        let (cons, nil) = (self.has_tag(value, CONS), self.b.ins().icmp_imm_s(IntCC::Equal, value, 0));
        let list = self.b.ins().bor(cons, nil);
        self.unless(list, |it| {
            let form = it.number(0);
            it.import_checked(Helper::NotAList, &[form, value]);
        });
        Typed::any(value)
    }

    fn unless(&mut self, condition: Value, otherwise: impl FnOnce(&mut Self)) {
        let (rare, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(rare);
        self.b.ins().brif(condition, on, &[], rare, &[]);
        self.b.switch_to_block(rare);
        otherwise(self);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    /// Evaluates a test as a byte.
    pub(super) fn test(&mut self, op: Op, form: Word, head: Word, arguments: &[TreeNode]) -> Value {
        match op {
            Op::Consp => {
                let value = self.word_of(&arguments[0]);
                self.has_tag(value, CONS)
            }
            Op::Eq => {
                let values = self.operands(arguments);
                self.same(values[0], values[1])
            }
            Op::Compare(code) => self.compare(code, form, head, arguments),
            _ => {
                let value = self.word_of(&arguments[0]);
                self.b.ins().icmp_imm_s(IntCC::Equal, value, 0)
            }
        }
    }

    /// Compares two words for `eql`; the runtime compares numbers stored as objects.
    fn same(&mut self, a: Value, b: Value) -> Value {
        let (after, look) = (self.b.create_block(), self.b.create_block());
        let answer = self.b.append_block_param(after, types::I8);
        let same = self.b.ins().icmp(IntCC::Equal, a, b);
        let (ta, tb) = (self.has_tag(a, OBJECT), self.has_tag(b, OBJECT));
        let objects = self.b.ins().band(ta, tb);
        let known = self.b.ins().bxor_imm_s(objects, 1);
        let known = self.b.ins().bor(known, same);
        self.b.ins().brif(known, after, &[same.into()], look, &[]);
        self.b.switch_to_block(look);
        let word = self.import_checked(Helper::Eql, &[a, b]);
        let equal = self.b.ins().icmp_imm_s(IntCC::NotEqual, word, 0);
        self.b.ins().jump(after, &[equal.into()]);
        self.b.switch_to_block(after);
        answer
    }

    fn compare(&mut self, code: IntCC, form: Word, head: Word, arguments: &[TreeNode]) -> Value {
        if arguments.iter().all(|argument| self.width(argument).is_some()) {
            let (a, b) = self.plain_operands(arguments);
            return self.b.ins().icmp(code, a, b);
        }
        let values = self.operands(arguments);
        let (fast, slow, after) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let answer = self.b.append_block_param(after, types::I8);
        let quick = self.both_fixnums(values[0], values[1]);
        self.b.ins().brif(quick, fast, &[], slow, &[]);
        self.b.switch_to_block(fast);
        let holds = self.b.ins().icmp(code, values[0], values[1]);
        self.b.ins().jump(after, &[holds.into()]);
        self.b.switch_to_block(slow);
        let word = self.call_builtin(form, head, &values);
        let holds = self.b.ins().icmp_imm_s(IntCC::NotEqual, word, 0);
        self.b.ins().jump(after, &[holds.into()]);
        self.b.switch_to_block(after);
        answer
    }

    fn plain_operands(&mut self, arguments: &[TreeNode]) -> (Value, Value) {
        let a = self.node(&arguments[0]);
        let a = self.plain(a);
        let b = self.node(&arguments[1]);
        (a, self.plain(b))
    }

    pub(super) fn inline(&mut self, op: Op, form: Word, head: Word, arguments: &[TreeNode]) -> Typed {
        match op {
            Op::Car => self.list_part(form, &arguments[0], 0),
            Op::Cdr => self.list_part(form, &arguments[0], 1),
            Op::Rplaca => self.replace(form, head, arguments, 0),
            Op::Rplacd => self.replace(form, head, arguments, 1),
            Op::Cons => {
                let values = self.operands(arguments);
                Typed::any(self.new_cons(values[0], values[1]))
            }
            Op::Add | Op::Subtract => self.sum(op == Op::Add, form, head, arguments),
            Op::Step(by) => self.step(by, form, head, arguments),
            Op::Consp | Op::Not | Op::Eq | Op::Compare(_) => {
                let holds = self.test(op, form, head, arguments);
                let (t, nil) = (self.number(self.unit.t.0), self.number(0));
                Typed::any(self.b.ins().select(holds, t, nil))
            }
        }
    }

    fn is_plain(&self, arguments: &[TreeNode]) -> bool {
        // The result needs one bit more.
        arguments.iter().all(|argument| self.width(argument).is_some_and(|width| width < 63))
    }

    fn sum(&mut self, add: bool, form: Word, head: Word, arguments: &[TreeNode]) -> Typed {
        if self.is_plain(arguments) {
            let (a, b) = self.plain_operands(arguments);
            let value = if add { self.b.ins().iadd(a, b) } else { self.b.ins().isub(a, b) };
            return Typed { value, of: Type::Fixnum };
        }
        let values = self.operands(arguments);
        let quick = self.both_fixnums(values[0], values[1]);
        self.quick_sum(quick, form, head, &values, |it| {
            // The sum of two tagged words has one tag too many, the difference one too few.
            let b = it.b.ins().iadd_imm_s(values[1], -1);
            if add { it.b.ins().sadd_overflow(values[0], b) } else { it.b.ins().ssub_overflow(values[0], b) }
        })
    }

    fn step(&mut self, by: i64, form: Word, head: Word, arguments: &[TreeNode]) -> Typed {
        if self.is_plain(arguments) {
            let typed = self.node(&arguments[0]);
            let value = self.plain(typed);
            return Typed { value: self.b.ins().iadd_imm_s(value, by), of: Type::Fixnum };
        }
        let values = self.operands(arguments);
        let quick = self.is_fixnum(values[0]);
        self.quick_sum(quick, form, head, &values, |it| {
            let by = it.number((by * 4).cast_unsigned());
            it.b.ins().sadd_overflow(values[0], by)
        })
    }

    /// Returns the sum of tagged words, or the builtin's result on overflow.
    fn quick_sum(
        &mut self,
        quick: Value,
        form: Word,
        head: Word,
        values: &[Value],
        sum: impl FnOnce(&mut Self) -> (Value, Value),
    ) -> Typed {
        let (fast, slow, after) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let answer = self.b.append_block_param(after, types::I64);
        self.b.ins().brif(quick, fast, &[], slow, &[]);
        self.b.switch_to_block(fast);
        let (value, over) = sum(self);
        self.b.ins().brif(over, slow, &[], after, &[value.into()]);
        self.b.switch_to_block(slow);
        let called = self.call_builtin(form, head, values);
        self.b.ins().jump(after, &[called.into()]);
        self.b.switch_to_block(after);
        Typed::any(answer)
    }

    /// Generates `car` or `cdr`; of nil they are nil.
    fn list_part(&mut self, form: Word, node: &TreeNode, index: usize) -> Typed {
        let value = self.word_of(node);
        let whole = self.has_tag(value, CONS);
        self.either(
            whole,
            |it| Typed::any(it.part(value, index)),
            |it| {
                let nil = it.b.ins().icmp_imm_s(IntCC::Equal, value, 0);
                it.either(nil, Self::nil, |it| {
                    let (form, index) = (it.number(form.0), it.number(index as u64));
                    Typed::any(it.import_checked(Helper::ListPart, &[form, value, index]))
                })
            },
        )
    }

    fn replace(&mut self, form: Word, head: Word, arguments: &[TreeNode], index: usize) -> Typed {
        let values = self.operands(arguments);
        let whole = self.has_tag(values[0], CONS);
        self.either(
            whole,
            |it| {
                it.set_part(values[0], index, values[1]);
                Typed::any(values[0])
            },
            |it| Typed::any(it.call_builtin(form, head, &values)),
        )
    }

    /// Allocates a cons inline by its bump: cursor, limit, store; calls the runtime when the run is used up. The
    /// words are alive.
    pub(super) fn new_cons(&mut self, car: Value, cdr: Value) -> Value {
        let Some((lane, bytes)) = largesse_gc::Context::bump(Layout::Slots, 2) else {
            return self.import_checked(Helper::Cons, &[car, cdr]);
        };
        let gc = self.gc;
        let cursor = self.load(gc, lane + Bump::CURSOR);
        let limit = self.load(gc, lane + Bump::LIMIT);
        let next = self.b.ins().iadd_imm_s(cursor, bytes as i64);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, next, limit);
        let typed = self.either(
            fits,
            |it| {
                it.store(next, gc, lane + Bump::CURSOR);
                it.store(car, cursor, 0);
                it.store(cdr, cursor, 8);
                Typed::any(it.b.ins().iadd_imm_s(cursor, CONS))
            },
            |it| Typed::any(it.import_checked(Helper::Cons, &[car, cdr])),
        );
        typed.value
    }
}
