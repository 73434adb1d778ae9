//! Generates accesses to variables, and tracks their known width.

use super::{Generator, LocalVariable, Type, Typed, key};
use crate::compile::runtime::Helper;
use crate::compile::tree::{Argument, Op, TreeNode, Var};
use crate::compile::{slot, tree};
use crate::value::{Value as Word, flag, symbol};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder as _, Value, types};

/// Number of bits of a fixnum.
pub(super) const FIXNUM: u32 = 62;

impl Generator<'_, '_> {
    /// Returns the number of bits that suffice for a node's value, if it is an untagged number.
    pub(super) fn width(&self, node: &TreeNode) -> Option<u32> {
        match node {
            TreeNode::Constant(value) => {
                value.as_fixnum().map(|number| 65 - (number ^ (number >> 63)).leading_zeros())
            }
            TreeNode::Local(variable) if variable.owner == self.number => variable.width.get(),
            TreeNode::Assign(variable, _) if variable.owner == self.number => variable.width.get(),
            TreeNode::Plain(_) | TreeNode::Count(_) => Some(FIXNUM),
            TreeNode::Inline { op, arguments, .. } => self.width_of(*op, arguments),
            TreeNode::Sequence(nodes) => self.width(nodes.last()?),
            TreeNode::If(_, yes, no) => Some(self.width(yes)?.max(self.width(no)?)),
            TreeNode::At(_, node) => self.width(node),
            _ => None,
        }
    }

    /// Returns the number of bits that suffice for the result of an operation, if its operands are untagged numbers.
    pub(super) fn width_of(&self, op: Op, arguments: &[TreeNode]) -> Option<u32> {
        let (first, rest) = arguments.split_first()?;
        let own = |op| matches!(op, Op::Add | Op::Subtract | Op::Multiply | Op::Step(_) | Op::Absolute);
        let mut bits = self.width(first).filter(|_| own(op))?;
        if matches!(op, Op::Step(_) | Op::Absolute) || op == Op::Subtract && rest.is_empty() {
            bits += 1;
        }
        for argument in rest {
            let more = self.width(argument)?;
            bits = if op == Op::Multiply { bits + more } else { bits.max(more) + 1 };
        }
        (bits < 64).then_some(bits)
    }

    pub(super) fn type_of(&self, node: &TreeNode) -> Type {
        if self.width(node).is_some() { Type::Fixnum } else { Type::Any }
    }

    /// Returns the captured word of a variable: its cell, or its value.
    pub(super) fn shared(&mut self, variable: &Var) -> Value {
        if variable.owner == self.number {
            if !variable.is_cell() {
                let typed = self.read(variable);
                return self.word(typed);
            }
            let register = self.locals[&key(variable)].register;
            return self.b.use_var(register);
        }
        let place = self.function().captures.iter().position(|own| key(own) == key(variable));
        let (Some(place), Some(closure)) = (place, self.closure) else {
            unreachable!("a variable of an outer function is captured")
        };
        // The tag of an object equals the size of its header.
        self.load(closure, (slot::CAPTURED + place) * 8)
    }

    pub(super) fn read(&mut self, variable: &Var) -> Typed {
        if variable.is_cell() {
            let cell = self.shared(variable);
            return Typed::any(self.part(cell, 0));
        }
        if variable.owner != self.number {
            return Typed::any(self.shared(variable));
        }
        let LocalVariable { register, .. } = self.locals[&key(variable)];
        let of = if variable.width.get().is_some() { Type::Fixnum } else { Type::Any };
        Typed { value: self.b.use_var(register), of }
    }

    pub(super) fn assign(&mut self, variable: &Var, value: &TreeNode) -> Typed {
        let typed = self.node(value);
        if variable.is_cell() {
            let value = self.word(typed);
            let cell = self.shared(variable);
            self.set_part(cell, 0, value);
            return Typed::any(value);
        }
        let LocalVariable { register, root } = self.locals[&key(variable)];
        let of = if root.is_some() { Type::Any } else { Type::Fixnum };
        let value = if root.is_some() { self.word(typed) } else { self.plain(typed) };
        self.b.def_var(register, value);
        if let Some(root) = root {
            self.keep(value, root);
        }
        Typed { value, of }
    }

    /// Generates a byte that is not zero if a symbol never had a thread-local binding.
    fn is_shared(&mut self, symbol: Value) -> Value {
        let number = self.load(symbol, symbol::BINDING * 8);
        self.b.ins().icmp_imm_s(IntCC::Equal, number, Word::NIL.0.cast_signed())
    }

    /// Reads a global variable: inline if it is bound and has no thread-local binding.
    pub(super) fn global(&mut self, name: Word) -> Typed {
        let symbol = self.number(name.address() as u64);
        let shared = self.is_shared(symbol);
        let value = self.load(symbol, symbol::VALUE * 8);
        let bound = self.b.ins().icmp_imm_s(IntCC::NotEqual, value, Word::UNBOUND.0.cast_signed());
        let quick = self.b.ins().band(shared, bound);
        let word = self.number(name.0);
        self.either(quick, |_| Typed::any(value), |it| Typed::any(it.import_checked(Helper::Global, &[word])))
    }

    /// Assigns a global variable: inline if it is no constant and has no thread-local binding.
    pub(super) fn set_global(&mut self, name: Word, value: &TreeNode) -> Typed {
        let value = self.word_of(value);
        let root = self.root();
        self.keep(value, root);
        let symbol = self.number(name.address() as u64);
        let shared = self.is_shared(symbol);
        let header = self.load(symbol, 0);
        let flags = self.b.ins().band_imm_s(header, i64::from(flag::CONSTANT) << 8);
        let assignable = self.b.ins().icmp_imm_s(IntCC::Equal, flags, 0);
        let quick = self.b.ins().band(shared, assignable);
        let word = self.number(name.0);
        self.either(
            quick,
            |it| {
                it.store(value, symbol, symbol::VALUE * 8);
                Typed::any(value)
            },
            |it| Typed::any(it.import_checked(Helper::SetGlobal, &[word, value])),
        )
    }

    /// Binds variables in parallel around a body.
    pub(super) fn bind(&mut self, bindings: &[(Var, TreeNode)], body: &TreeNode) -> Typed {
        let mut found = Vec::new();
        for (variable, node) in bindings {
            let width = self.width(node);
            let typed = self.node(node);
            if variable.is_cell() || (variable.assigned.get() || width.is_none()) && !variable.fixnum {
                let (value, root) = (self.word(typed), self.root());
                self.keep(value, root);
                found.push((value, Some(root), None));
            } else {
                let width = if variable.fixnum { FIXNUM } else { width.unwrap_or(FIXNUM) };
                found.push((self.plain(typed), None, Some(width)));
            }
        }
        for ((variable, _), (value, root, width)) in bindings.iter().zip(found) {
            match root {
                Some(root) => self.bind_word(variable, value, root),
                None => {
                    variable.width.set(width);
                    self.define(variable, value, None);
                }
            }
        }
        self.node(body)
    }

    /// Binds a parameter whose word is in a root.
    pub(super) fn bind_kept(&mut self, variable: &Var, value: Value, root: usize) {
        if variable.fixnum && !variable.is_cell() {
            variable.width.set(Some(FIXNUM));
            let value = self.plain(Typed::any(value));
            self.define(variable, value, None);
        } else {
            self.bind_word(variable, value, root);
        }
    }

    /// Binds a variable to a word that is in a root.
    pub(super) fn bind_word(&mut self, variable: &Var, value: Value, root: usize) {
        let mut value = value;
        if variable.is_cell() {
            let nil = self.number(0);
            value = self.new_cons(value, nil);
            self.keep(value, root);
        }
        self.define(variable, value, Some(root));
    }

    fn define(&mut self, variable: &Var, value: Value, root: Option<usize>) {
        let register = self.b.declare_var(types::I64);
        self.b.def_var(register, value);
        self.locals.insert(key(variable), LocalVariable { register, root });
    }

    /// Returns an argument that the body reads from the root stack.
    pub(super) fn argument(&mut self, argument: Argument) -> Typed {
        let Some((first, count)) = self.given else {
            unreachable!("the function reads its arguments from the root stack")
        };
        let least = self.function().range.map_or(0, |(least, _)| least);
        Typed::any(match argument {
            Argument::At(index) if index < least => self.load(first, index * 8),
            Argument::At(index) => {
                let there = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, count, index as i64);
                let typed = self.either(
                    there,
                    |it| Typed::any(it.load(first, index * 8)),
                    |it| Typed::any(it.number(Word::MISSING.0)),
                );
                typed.value
            }
            Argument::Rest(from) => {
                let from = self.number(from as u64);
                self.import_checked(Helper::Rest, &[first, from, count])
            }
            Argument::Key(name, from) => {
                let (from, name) = (self.number(from as u64), self.number(name.0));
                self.import_checked(Helper::Key, &[first, from, count, name])
            }
        })
    }

    pub(super) fn check_keys(&mut self, from: usize) -> Typed {
        let Some((first, count)) = self.given else {
            unreachable!("the function reads its arguments from the root stack")
        };
        let parameters = self.function().parameters.0;
        let (from, parameters) = (self.number(from as u64), self.number(parameters));
        self.import_checked(Helper::CheckKeys, &[first, from, count, parameters]);
        self.nil()
    }

    pub(super) fn check_count(&mut self, function: &tree::Function, least: usize, most: Option<usize>) {
        let Some((_, count)) = self.given else {
            unreachable!("the function reads its arguments from the root stack")
        };
        let few = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, count, least as i64);
        let wrong = match most {
            Some(most) => {
                let many = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, count, most as i64);
                self.b.ins().bor(few, many)
            }
            None => few,
        };
        self.wrong_count(wrong, function, count);
    }

    /// Signals a wrong number of arguments when `wrong` is not zero.
    pub(super) fn wrong_count(&mut self, wrong: Value, function: &tree::Function, count: Value) {
        let (rare, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(rare);
        self.b.ins().brif(wrong, rare, &[], on, &[]);
        self.b.switch_to_block(rare);
        let parameters = self.number(function.parameters.0);
        let count = self.b.ins().iadd_imm_s(count, -(function.hidden as i64));
        self.import_checked(Helper::Arity, &[parameters, count]);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }
}
