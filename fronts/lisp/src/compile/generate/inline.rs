//! Generates inlined operations: fixnum arithmetic, comparisons, conses.

use super::number::{Operand, Site, Wanted};
use super::{CONS, Generator, OBJECT, Type, Typed};
use crate::compile::runtime::Helper;
use crate::compile::tree::{Op, TreeNode};
use crate::value::{Header, ObjectKind, Value as Word};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder as _, Value, types};
use largesse_gc::{Bump, Layout};

impl Op {
    /// Returns whether the operation returns t or nil.
    pub(super) fn is_test(self) -> bool {
        matches!(self, Op::Consp | Op::Not | Op::Eq | Op::Compare(_) | Op::Sign(_))
    }

    /// Returns whether the operands are numbers, or the result is one or an element of a vector.
    pub(super) fn is_arithmetic(self) -> bool {
        matches!(
            self,
            Op::Add
                | Op::Subtract
                | Op::Multiply
                | Op::Divide
                | Op::Step(_)
                | Op::Absolute
                | Op::Float
                | Op::Element
                | Op::SetElement
        )
    }
}

impl Generator<'_, '_> {
    pub(super) fn has_tag(&mut self, value: Value, tag: i64) -> Value {
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

    pub(super) fn is_fixnum(&mut self, value: Value) -> Value {
        let tag = self.b.ins().band_imm_s(value, 3);
        self.b.ins().icmp_imm_s(IntCC::Equal, tag, 1)
    }

    pub(super) fn header(&mut self, object: Value) -> Value {
        // The tag of an object equals the size of its header.
        self.b.ins().load(types::I64, Self::TRUSTED, object, -8)
    }

    /// Returns whether an object is of a kind, as a byte.
    pub(super) fn is_kind(&mut self, object: Value, kind: ObjectKind) -> Value {
        let header = self.header(object);
        let bits = self.b.ins().band_imm_s(header, 0xff);
        self.b.ins().icmp_imm_s(IntCC::Equal, bits, Header::new(kind, 0, 0).word().0.cast_signed())
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
    pub(super) fn test(&mut self, op: Op, form: Word, function: Word, arguments: &[TreeNode]) -> Value {
        match op {
            Op::Consp => {
                let value = self.word_of(&arguments[0]);
                self.has_tag(value, CONS)
            }
            Op::Eq => {
                let values = self.operands(arguments);
                self.same(values[0], values[1])
            }
            Op::Compare(code) => self.compare(code, form, function, arguments),
            Op::Sign(code) => {
                let numbers = self.number_operands(arguments);
                let site = Site { form, function, arguments: &numbers };
                self.compared(code, site, [numbers[0], Operand::Constant(0)])
            }
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

    fn compare(&mut self, code: IntCC, form: Word, function: Word, arguments: &[TreeNode]) -> Value {
        if arguments.iter().all(|argument| self.width(argument).is_some()) {
            let (a, b) = self.plain_operands(arguments);
            return self.b.ins().icmp(code, a, b);
        }
        let numbers = self.number_operands(arguments);
        let site = Site { form, function, arguments: &numbers };
        self.compared(code, site, [numbers[0], numbers[1]])
    }

    fn plain_operands(&mut self, arguments: &[TreeNode]) -> (Value, Value) {
        let a = self.node(&arguments[0]);
        let a = self.plain(a);
        let b = self.node(&arguments[1]);
        (a, self.plain(b))
    }

    pub(super) fn inline(&mut self, op: Op, form: Word, function: Word, arguments: &[TreeNode]) -> Typed {
        match op {
            Op::Car => self.list_part(form, &arguments[0], 0),
            Op::Cdr => self.list_part(form, &arguments[0], 1),
            Op::Rplaca => self.replace(form, function, arguments, 0),
            Op::Rplacd => self.replace(form, function, arguments, 1),
            Op::Cons => {
                let values = self.operands(arguments);
                Typed::any(self.new_cons(values[0], values[1]))
            }
            Op::Consp | Op::Not | Op::Eq | Op::Compare(_) | Op::Sign(_) => {
                let holds = self.test(op, form, function, arguments);
                let (t, nil) = (self.number(self.unit.t.0), self.number(0));
                Typed::any(self.b.ins().select(holds, t, nil))
            }
            _ if self.width_of(op, arguments).is_some() => self.plain_arithmetic(op, arguments),
            _ => {
                let number = self.arithmetic(op, form, function, arguments, Wanted::Word);
                Typed::any(self.boxed(number))
            }
        }
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

    fn replace(&mut self, form: Word, function: Word, arguments: &[TreeNode], index: usize) -> Typed {
        let values = self.operands(arguments);
        let whole = self.has_tag(values[0], CONS);
        self.either(
            whole,
            |it| {
                it.set_part(values[0], index, values[1]);
                Typed::any(values[0])
            },
            |it| Typed::any(it.call_builtin(form, function, &values)),
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
