//! Represents operands of arithmetic in registers, and converts them.
//!
//! Operands that may have any type are first tested for fixnums, then for floats. The result of one operation is the
//! operand of the next without being boxed: it may be in two registers, a float and a word, of which only one counts.

use super::variables::FIXNUM;
use super::{Generator, Typed};
use crate::compile::runtime::{self, Helper};
use crate::compile::tree::TreeNode;
use crate::value::{NEGATIVE_ZERO, SHIFT, Value as Word, ZERO};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder as _, MemFlagsData, Value, types};

const UNBOXED: u64 = runtime::UNBOXED.0;

/// The bit in which the words of the two zeros differ.
const SIGN: i64 = (NEGATIVE_ZERO.0 - ZERO.0).cast_signed();
/// Distance from that bit to the sign of a float.
const SIGN_SHIFT: i64 = 59;
const _: () = assert!(SIGN << SIGN_SHIFT == i64::MIN);

/// An operand in registers.
#[derive(Clone, Copy)]
pub(super) enum Operand {
    Word(Value),
    /// An untagged fixnum.
    Fixnum(Value),
    /// An untagged fixnum that is known at compilation.
    Constant(i64),
    Float(Value),
    /// The float counts if the word is [`UNBOXED`], and the word otherwise.
    Either {
        float: Value,
        word: Value,
    },
}

/// Tells which representation of a result the caller uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Word,
    /// A float or a word: the caller is an operation on numbers.
    Unboxed,
}

/// Names the form, and the builtin that computes what machine code does not, with its arguments.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) form: Word,
    pub(super) function: Word,
    pub(super) arguments: &'a [Operand],
}

/// The block after an operation, in which the result is in the registers of the operand.
pub(super) struct Join {
    block: Block,
    result: Operand,
}

impl Generator<'_, '_> {
    /// Evaluates a node whose value is an operand of arithmetic.
    pub(super) fn operand(&mut self, node: &TreeNode) -> Operand {
        let before = self.roots;
        let number = match (self.width(node), node) {
            (_, TreeNode::Constant(value)) => match (value.as_fixnum(), value.word_float()) {
                (Some(number), _) => Operand::Constant(number),
                (_, Some(number)) => Operand::Float(self.b.ins().f64const(number)),
                _ => Operand::Word(self.word_of(node)),
            },
            (Some(width), _) => {
                let typed = self.node(node);
                if width <= FIXNUM {
                    Operand::Fixnum(self.plain(typed))
                } else {
                    Operand::Word(self.word(typed))
                }
            }
            (_, TreeNode::At(form, node)) => self.on_behalf(*form, |it| it.operand(node)),
            (_, TreeNode::Inline { op, form, function, arguments }) if op.is_arithmetic() => {
                self.arithmetic(*op, *form, *function, arguments, Wanted::Unboxed)
            }
            _ => Operand::Word(self.word_of(node)),
        };
        self.roots = before;
        number
    }

    /// Evaluates operands of arithmetic. Their words stay in roots while later ones are evaluated, and beyond if there
    /// are more than two.
    pub(super) fn number_operands(&mut self, nodes: &[TreeNode]) -> Vec<Operand> {
        let mut numbers = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let number = self.operand(node);
            let kept = nodes.len() > 2 || nodes[index + 1..].iter().any(|later| !self.is_quiet(later));
            if let Operand::Word(word) | Operand::Either { word, .. } = number
                && kept
                && !matches!(node, TreeNode::Constant(_))
            {
                let root = self.root();
                self.keep(word, root);
            }
            numbers.push(number);
        }
        numbers
    }

    /// Returns an operand as a word. May allocate.
    pub(super) fn boxed(&mut self, number: Operand) -> Value {
        match number {
            Operand::Word(word) => word,
            Operand::Fixnum(_) | Operand::Constant(_) => self.tagged(number),
            Operand::Float(float) => self.box_float(float),
            Operand::Either { float, word } => {
                let unboxed = self.b.ins().icmp_imm_s(IntCC::Equal, word, UNBOXED.cast_signed());
                let typed = self.either(unboxed, |it| Typed::any(it.box_float(float)), |_| Typed::any(word));
                typed.value
            }
        }
    }

    /// Returns the tagged word of an operand, which is arbitrary if it is no fixnum.
    pub(super) fn tagged(&mut self, number: Operand) -> Value {
        match number {
            Operand::Word(word) | Operand::Either { word, .. } => word,
            Operand::Constant(number) => self.number(Word::fixnum(number).0),
            Operand::Fixnum(value) => {
                let shifted = self.b.ins().ishl_imm_u(value, 2);
                self.b.ins().bor_imm_s(shifted, 1)
            }
            Operand::Float(_) => self.number(UNBOXED),
        }
    }

    /// Returns the untagged number of an operand that is a fixnum.
    pub(super) fn untagged(&mut self, number: Operand) -> Value {
        match number {
            Operand::Fixnum(value) => value,
            Operand::Constant(number) => self.number(number.cast_unsigned()),
            _ => {
                let word = self.tagged(number);
                self.b.ins().sshr_imm_u(word, 2)
            }
        }
    }

    /// Returns the word of a float: rotated if it fits, otherwise by the runtime.
    fn box_float(&mut self, float: Value) -> Value {
        let bits = self.b.ins().bitcast(types::I64, MemFlagsData::new(), float);
        let moved = self.b.ins().iadd_imm_s(bits, SHIFT.cast_signed());
        let word = self.b.ins().rotl_imm_u(moved, 3);
        let tag = self.b.ins().band_imm_s(word, 3);
        let fits = self.b.ins().icmp_imm_s(IntCC::Equal, tag, 2);
        let rare = self.b.create_block();
        self.b.set_cold_block(rare);
        let (on, answer) = self.joint();
        self.b.ins().brif(fits, on, &[word.into()], rare, &[]);
        self.b.switch_to_block(rare);
        // The words of the two zeros differ in a bit, to which the sign is moved.
        let sign = self.b.ins().ushr_imm_u(bits, SIGN_SHIFT);
        let zero = self.b.ins().iadd_imm_s(sign, ZERO.0.cast_signed());
        let magnitude = self.b.ins().ishl_imm_u(bits, 1);
        let large = self.b.create_block();
        self.b.set_cold_block(large);
        self.b.ins().brif(magnitude, large, &[], on, &[zero.into()]);
        self.b.switch_to_block(large);
        let made = self.import_checked(Helper::Float, &[bits]);
        self.b.ins().jump(on, &[made.into()]);
        self.b.switch_to_block(on);
        answer
    }

    /// Returns an operand as a float. Jumps to `other` unless it is a float that fits in a word, or known to be a fixnum.
    pub(super) fn float_or(&mut self, number: Operand, other: Block) -> Value {
        match number {
            Operand::Float(float) => float,
            Operand::Constant(number) => self.b.ins().f64const(number as f64),
            Operand::Fixnum(value) => self.b.ins().fcvt_from_sint(types::F64, value),
            Operand::Word(word) => {
                let on = self.b.create_block();
                let float = self.b.append_block_param(on, types::F64);
                self.decode(word, on, other);
                self.b.switch_to_block(on);
                float
            }
            Operand::Either { float, word } => {
                let (on, look) = (self.b.create_block(), self.b.create_block());
                let answer = self.b.append_block_param(on, types::F64);
                let unboxed = self.b.ins().icmp_imm_s(IntCC::Equal, word, UNBOXED.cast_signed());
                self.b.ins().brif(unboxed, on, &[float.into()], look, &[]);
                self.b.switch_to_block(look);
                self.decode(word, on, other);
                self.b.switch_to_block(on);
                answer
            }
        }
    }

    /// Jumps to `on` with the float in a word, or to `other` if there is none. Calls nothing, so that floats in registers
    /// stay there.
    fn decode(&mut self, word: Value, on: Block, other: Block) {
        let (quick, rare) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(rare);
        let tag = self.b.ins().band_imm_s(word, 3);
        let plain = self.b.ins().icmp_imm_s(IntCC::Equal, tag, 2);
        self.b.ins().brif(plain, quick, &[], rare, &[]);
        self.b.switch_to_block(quick);
        let moved = self.b.ins().rotr_imm_u(word, 3);
        let bits = self.b.ins().iadd_imm_s(moved, SHIFT.cast_signed().wrapping_neg());
        let float = self.b.ins().bitcast(types::F64, MemFlagsData::new(), bits);
        self.b.ins().jump(on, &[float.into()]);
        self.b.switch_to_block(rare);
        let sign = self.b.ins().iadd_imm_s(word, -ZERO.0.cast_signed());
        let rest = self.b.ins().band_imm_s(sign, !SIGN);
        let bits = self.b.ins().ishl_imm_u(sign, SIGN_SHIFT);
        let zero = self.b.ins().bitcast(types::F64, MemFlagsData::new(), bits);
        self.b.ins().brif(rest, other, &[], on, &[zero.into()]);
    }

    /// Returns the float that a builtin returned for an operand that is a float.
    pub(super) fn unboxed(&mut self, word: Value) -> Value {
        let on = self.b.create_block();
        let answer = self.b.append_block_param(on, types::F64);
        let object = self.b.create_block();
        self.b.set_cold_block(object);
        self.decode(word, on, object);
        self.b.switch_to_block(object);
        // The tag of an object equals the size of its header.
        let float = self.b.ins().load(types::F64, Self::TRUSTED, word, 0);
        self.b.ins().jump(on, &[float.into()]);
        self.b.switch_to_block(on);
        answer
    }

    /// Calls the builtin of an operation.
    pub(super) fn call_site(&mut self, site: Site<'_>) -> Value {
        let first = self.roots;
        for _ in site.arguments {
            self.root();
        }
        // Boxing a float may collect: the words of all operands come first.
        for (index, number) in site.arguments.iter().enumerate() {
            if let Operand::Word(word) | Operand::Either { word, .. } = number {
                self.keep(*word, first + index);
            }
        }
        for (index, number) in site.arguments.iter().enumerate() {
            let word = match *number {
                Operand::Word(_) => continue,
                Operand::Float(float) => {
                    let bits = self.b.ins().bitcast(types::I64, MemFlagsData::new(), float);
                    self.import_checked(Helper::Float, &[bits])
                }
                Operand::Either { float, word } => {
                    let bits = self.b.ins().bitcast(types::I64, MemFlagsData::new(), float);
                    self.import_checked(Helper::Box, &[word, bits])
                }
                _ => self.tagged(*number),
            };
            self.keep(word, first + index);
        }
        let function = self.number(site.function.0);
        self.called(site.form, function, first, site.arguments.len())
    }

    pub(super) fn join(&mut self, wanted: Wanted) -> Join {
        let block = self.b.create_block();
        let result = match wanted {
            Wanted::Word => Operand::Word(self.b.append_block_param(block, types::I64)),
            Wanted::Unboxed => {
                let float = self.b.append_block_param(block, types::F64);
                Operand::Either { float, word: self.b.append_block_param(block, types::I64) }
            }
        };
        Join { block, result }
    }

    pub(super) fn join_word(&mut self, join: &Join, word: Value) {
        let none = match join.result {
            Operand::Either { .. } => Some(self.b.ins().f64const(0.0)),
            _ => None,
        };
        let words: Vec<_> = none.into_iter().chain([word]).map(Into::into).collect();
        self.b.ins().jump(join.block, &words);
    }

    pub(super) fn join_float(&mut self, join: &Join, float: Value) {
        match join.result {
            Operand::Either { .. } => {
                let none = self.number(UNBOXED);
                self.b.ins().jump(join.block, &[float.into(), none.into()]);
            }
            _ => {
                let word = self.box_float(float);
                self.b.ins().jump(join.block, &[word.into()]);
            }
        }
    }

    pub(super) fn joined(&mut self, join: &Join) -> Operand {
        self.b.switch_to_block(join.block);
        join.result
    }

    /// Generates a byte that is not zero if all operands are fixnums; none if this is known.
    pub(super) fn are_fixnums(&mut self, operands: &[Operand]) -> Option<Value> {
        let mut wrong = None;
        for number in operands {
            if let Operand::Word(word) | Operand::Either { word, .. } = number {
                let tag = self.b.ins().iadd_imm_s(*word, -1);
                wrong = Some(match wrong {
                    Some(other) => self.b.ins().bor(other, tag),
                    None => tag,
                });
            }
        }
        let wrong = wrong?;
        let tags = self.b.ins().band_imm_s(wrong, 3);
        Some(self.b.ins().icmp_imm_s(IntCC::Equal, tags, 0))
    }
}
