//! Generates arithmetic and comparisons of numbers: of fixnums and floats inline, of others by the builtins.

use super::number::{Operand, Site, Wanted};
use super::{Generator, Type, Typed};
use crate::compile::tree::{Op, TreeNode};
use crate::value::Value as Word;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{Block, InstBuilder as _, Value, types};

/// Returns the condition for floats, which also holds if an operand is no number, unless it is for equality.
fn unordered_or(code: IntCC) -> FloatCC {
    match code {
        IntCC::Equal => FloatCC::Equal,
        IntCC::NotEqual => FloatCC::NotEqual,
        IntCC::SignedLessThan => FloatCC::UnorderedOrLessThan,
        IntCC::SignedLessThanOrEqual => FloatCC::UnorderedOrLessThanOrEqual,
        IntCC::SignedGreaterThan => FloatCC::UnorderedOrGreaterThan,
        _ => FloatCC::UnorderedOrGreaterThanOrEqual,
    }
}

/// Returns whether a sum steps or counts: one operand is a fixnum in the program, and the other comes from a variable or
/// a call. Floats are then left to the builtin, so that loops have less code.
fn counts(pair: [Operand; 2]) -> bool {
    matches!(pair, [Operand::Constant(_), Operand::Word(_)] | [Operand::Word(_), Operand::Constant(_)])
}

impl Generator<'_, '_> {
    /// Generates an operation on numbers: `on_fixnums` gets a block for overflow and returns a tagged word;
    /// `on_floats` is none if floats are left to the builtin.
    fn operation(
        &mut self,
        site: Site<'_>,
        operands: &[Operand],
        wanted: Wanted,
        on_fixnums: impl FnOnce(&mut Self, Block) -> Value,
        on_floats: Option<impl FnOnce(&mut Self, &[Value]) -> Value>,
    ) -> Operand {
        let slow = self.b.create_block();
        self.b.set_cold_block(slow);
        if operands.iter().any(|number| matches!(number, Operand::Float(_)))
            && let Some(on_floats) = on_floats
        {
            let floats: Vec<Value> = operands.iter().map(|number| self.float_or(*number, slow)).collect();
            let result = on_floats(self, &floats);
            let on = self.b.create_block();
            let answer = self.b.append_block_param(on, types::F64);
            self.b.ins().jump(on, &[result.into()]);
            self.b.switch_to_block(slow);
            let word = self.call_site(site);
            let float = self.unboxed(word);
            self.b.ins().jump(on, &[float.into()]);
            self.b.switch_to_block(on);
            return Operand::Float(answer);
        }
        let join = self.join(wanted);
        if let Some(fixnums) = self.are_fixnums(operands) {
            let quick = self.b.create_block();
            if let Some(on_floats) = on_floats {
                let other = self.b.create_block();
                self.b.ins().brif(fixnums, quick, &[], other, &[]);
                self.b.switch_to_block(other);
                let floats: Vec<Value> = operands.iter().map(|number| self.float_or(*number, slow)).collect();
                let result = on_floats(self, &floats);
                self.join_float(&join, result);
            } else {
                self.b.ins().brif(fixnums, quick, &[], slow, &[]);
            }
            self.b.switch_to_block(quick);
        }
        let word = on_fixnums(self, slow);
        self.join_word(&join, word);
        self.b.switch_to_block(slow);
        let word = self.call_site(site);
        self.join_word(&join, word);
        self.joined(&join)
    }

    /// Jumps to `slow` if a condition holds.
    fn slow_if(&mut self, condition: Value, slow: Block) {
        let on = self.b.create_block();
        self.b.ins().brif(condition, slow, &[], on, &[]);
        self.b.switch_to_block(on);
    }

    fn sum_of(
        &mut self,
        add: bool,
        site: Site<'_>,
        pair: [Operand; 2],
        from_zero: bool,
        wanted: Wanted,
    ) -> Operand {
        self.operation(
            site,
            &pair,
            wanted,
            |it, slow| {
                let [a, b] = pair.map(|number| it.tagged(number));
                // The sum of two tagged words has one tag too many, the difference one too few.
                let b = it.b.ins().iadd_imm_s(b, -1);
                let (value, over) =
                    if add { it.b.ins().sadd_overflow(a, b) } else { it.b.ins().ssub_overflow(a, b) };
                it.slow_if(over, slow);
                value
            },
            (!counts(pair)).then_some(|it: &mut Self, floats: &[Value]| {
                if !add {
                    return it.b.ins().fsub(floats[0], floats[1]);
                }
                let mut first = floats[0];
                if from_zero {
                    // The builtin adds to 0, which changes -0.0.
                    let zero = it.b.ins().f64const(0.0);
                    first = it.b.ins().fadd(zero, first);
                }
                it.b.ins().fadd(first, floats[1])
            }),
        )
    }

    fn product(&mut self, site: Site<'_>, pair: [Operand; 2], wanted: Wanted) -> Operand {
        self.operation(
            site,
            &pair,
            wanted,
            |it, slow| {
                let (a, b) = (it.untagged(pair[0]), it.tagged(pair[1]));
                let b = it.b.ins().iadd_imm_s(b, -1);
                let (value, over) = it.b.ins().smul_overflow(a, b);
                it.slow_if(over, slow);
                it.b.ins().iadd_imm_s(value, 1)
            },
            Some(|it: &mut Self, floats: &[Value]| it.b.ins().fmul(floats[0], floats[1])),
        )
    }

    fn quotient(&mut self, site: Site<'_>, pair: [Operand; 2], wanted: Wanted) -> Operand {
        self.operation(
            site,
            &pair,
            wanted,
            |it, slow| {
                let (a, b) = (it.untagged(pair[0]), it.untagged(pair[1]));
                if !matches!(pair[1], Operand::Constant(by) if by != 0 && by != -1) {
                    // Division by zero is an error, and the quotient by -1 may be no fixnum.
                    let next = it.b.ins().iadd_imm_s(b, 1);
                    let rare = it.b.ins().icmp_imm_s(IntCC::UnsignedLessThanOrEqual, next, 1);
                    it.slow_if(rare, slow);
                }
                let value = it.b.ins().sdiv(a, b);
                it.tagged(Operand::Fixnum(value))
            },
            Some(|it: &mut Self, floats: &[Value]| it.b.ins().fdiv(floats[0], floats[1])),
        )
    }

    fn absolute(&mut self, site: Site<'_>, operand: Operand, wanted: Wanted) -> Operand {
        self.operation(
            site,
            &[operand],
            wanted,
            |it, slow| {
                let value = it.untagged(operand);
                let value = it.b.ins().iabs(value);
                let word = it.tagged(Operand::Fixnum(value));
                let large = it.b.ins().icmp_imm_s(IntCC::SignedLessThan, word, 0);
                it.slow_if(large, slow);
                word
            },
            Some(|it: &mut Self, floats: &[Value]| it.b.ins().fabs(floats[0])),
        )
    }

    fn negated(&mut self, site: Site<'_>, operand: Operand, wanted: Wanted) -> Operand {
        self.operation(
            site,
            &[operand],
            wanted,
            |it, slow| {
                // The tags of 0 and the operand cancel each other.
                let (two, word) = (it.number(2), it.tagged(operand));
                let (value, over) = it.b.ins().ssub_overflow(two, word);
                it.slow_if(over, slow);
                value
            },
            Some(|it: &mut Self, floats: &[Value]| {
                let zero = it.b.ins().f64const(-0.0);
                it.b.ins().fsub(zero, floats[0])
            }),
        )
    }

    fn converted(&mut self, site: Site<'_>, operand: Operand) -> Operand {
        let slow = self.b.create_block();
        self.b.set_cold_block(slow);
        let on = self.b.create_block();
        let answer = self.b.append_block_param(on, types::F64);
        let float = self.float_or(operand, slow);
        self.b.ins().jump(on, &[float.into()]);
        self.b.switch_to_block(slow);
        let word = self.call_site(site);
        let float = self.unboxed(word);
        self.b.ins().jump(on, &[float.into()]);
        self.b.switch_to_block(on);
        Operand::Float(answer)
    }

    /// Generates an operation whose result is a number, or an element of a vector.
    pub(super) fn arithmetic(
        &mut self,
        op: Op,
        form: Word,
        function: Word,
        nodes: &[TreeNode],
        wanted: Wanted,
    ) -> Operand {
        let numbers = self.number_operands(nodes);
        let site = Site { form, function, arguments: &numbers };
        match (op, numbers.as_slice()) {
            (Op::Step(by), &[a]) => self.sum_of(true, site, [a, Operand::Constant(by)], false, wanted),
            (Op::Absolute, &[a]) => self.absolute(site, a, wanted),
            (Op::Float, &[a]) => self.converted(site, a),
            (Op::Subtract, &[a]) => self.negated(site, a, wanted),
            (Op::Add, &[a]) => self.sum_of(true, site, [Operand::Constant(0), a], false, wanted),
            (Op::Multiply | Op::Divide, &[a]) => {
                self.paired(op, form, function, [Operand::Constant(1), a], false, wanted)
            }
            (Op::Element, _) => self.element(site, wanted),
            (Op::SetElement, _) => self.set_element(site),
            _ => {
                let (mut sum, rest) = (numbers[0], &numbers[1..]);
                for (index, next) in rest.iter().enumerate() {
                    let from_zero = index == 0 && rest.len() > 1;
                    let wanted = if index + 1 == rest.len() { wanted } else { Wanted::Unboxed };
                    sum = self.paired(op, form, function, [sum, *next], from_zero, wanted);
                }
                sum
            }
        }
    }

    fn paired(
        &mut self,
        op: Op,
        form: Word,
        function: Word,
        pair: [Operand; 2],
        from_zero: bool,
        wanted: Wanted,
    ) -> Operand {
        let site = Site { form, function, arguments: &pair };
        match op {
            Op::Multiply => self.product(site, pair, wanted),
            Op::Divide => self.quotient(site, pair, wanted),
            _ => self.sum_of(op == Op::Add, site, pair, from_zero, wanted),
        }
    }

    /// Generates a byte that is not zero if a comparison holds; one with a value that is no number holds unless it
    /// is for equality.
    pub(super) fn compared(&mut self, code: IntCC, site: Site<'_>, pair: [Operand; 2]) -> Value {
        let (slow, after) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(slow);
        let answer = self.b.append_block_param(after, types::I8);
        let on_floats = |it: &mut Self| {
            let [a, b] = pair.map(|number| it.float_or(number, slow));
            let holds = it.b.ins().fcmp(unordered_or(code), a, b);
            it.b.ins().jump(after, &[holds.into()]);
        };
        if pair.iter().any(|number| matches!(number, Operand::Float(_))) {
            on_floats(self);
        } else {
            if let Some(fixnums) = self.are_fixnums(&pair) {
                let (quick, other) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(fixnums, quick, &[], other, &[]);
                self.b.switch_to_block(other);
                on_floats(self);
                self.b.switch_to_block(quick);
            }
            let [a, b] = pair.map(|number| self.tagged(number));
            let holds = self.b.ins().icmp(code, a, b);
            self.b.ins().jump(after, &[holds.into()]);
        }
        self.b.switch_to_block(slow);
        let word = self.call_site(site);
        let holds = self.b.ins().icmp_imm_s(IntCC::NotEqual, word, 0);
        self.b.ins().jump(after, &[holds.into()]);
        self.b.switch_to_block(after);
        answer
    }

    /// Evaluates arithmetic on numbers whose width is known.
    pub(super) fn plain_arithmetic(&mut self, op: Op, nodes: &[TreeNode]) -> Typed {
        let mut values = Vec::new();
        for node in nodes {
            let typed = self.node(node);
            values.push(self.plain(typed));
        }
        let value = match (op, values.as_slice()) {
            (Op::Step(by), &[a]) => self.b.ins().iadd_imm_s(a, by),
            (Op::Absolute, &[a]) => self.b.ins().iabs(a),
            (Op::Subtract, &[a]) => self.b.ins().ineg(a),
            (_, values) => {
                let mut sum = values[0];
                for next in &values[1..] {
                    sum = match op {
                        Op::Add => self.b.ins().iadd(sum, *next),
                        Op::Subtract => self.b.ins().isub(sum, *next),
                        _ => self.b.ins().imul(sum, *next),
                    };
                }
                sum
            }
        };
        Typed { value, of: Type::Fixnum }
    }
}
