//! Generates conditionals, blocks, loops and exits.

use super::{ExitTarget, Generator, Type, Typed};
use crate::compile::runtime::{self, Helper};
use crate::compile::tree::{ExitPoint, Op, TreeNode, Var};
use crate::value::Value as Word;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder as _, Value, types};
use std::rc::Rc;

impl Generator<'_, '_> {
    /// Generates a branch on the value of a node.
    fn branch(&mut self, test: &TreeNode, yes: Block, no: Block) {
        match test {
            TreeNode::Constant(value) => {
                self.b.ins().jump(if value.is_nil() { no } else { yes }, &[]);
            }
            TreeNode::At(form, node) => self.on_behalf(*form, |it| it.branch(node, yes, no)),
            TreeNode::Inline { op: Op::Not, arguments, .. } => self.branch(&arguments[0], no, yes),
            TreeNode::If(test, then, otherwise) => {
                let (first, second) = (self.b.create_block(), self.b.create_block());
                self.branch(test, first, second);
                self.b.switch_to_block(first);
                self.branch(then, yes, no);
                self.b.switch_to_block(second);
                self.branch(otherwise, yes, no);
            }
            TreeNode::Or(first, others) => {
                let on = self.b.create_block();
                self.branch(first, yes, on);
                self.b.switch_to_block(on);
                self.branch(others, yes, no);
            }
            _ => {
                let before = self.roots;
                let holds = self.condition(test);
                self.roots = before;
                self.b.ins().brif(holds, yes, &[], no, &[]);
            }
        }
    }

    /// Generates a byte that is zero if the value of a node is nil.
    pub(super) fn condition(&mut self, node: &TreeNode) -> Value {
        match node {
            TreeNode::Same(value, word) => {
                let value = self.word_of(value);
                self.b.ins().icmp_imm_s(IntCC::Equal, value, word.0.cast_signed())
            }
            TreeNode::Inline { op, form, function, arguments } if op.is_test() => {
                self.test(*op, *form, *function, arguments)
            }
            node => {
                let typed = self.node(node);
                match typed.of {
                    Type::Fixnum => self.b.ins().iconst(types::I8, 1),
                    Type::Any => self.b.ins().icmp_imm_s(IntCC::NotEqual, typed.value, 0),
                }
            }
        }
    }

    /// Generates t if the value of a node is not nil, and nil otherwise.
    pub(super) fn truth_of(&mut self, node: &TreeNode) -> Typed {
        let holds = self.condition(node);
        let (t, nil) = (self.number(self.unit.t.0), self.number(0));
        Typed::any(self.b.ins().select(holds, t, nil))
    }

    fn go_on(&mut self, after: Block, typed: Typed, of: Type) {
        let value = match of {
            Type::Fixnum => self.plain(typed),
            Type::Any => self.word(typed),
        };
        self.b.ins().jump(after, &[value.into()]);
    }

    /// Creates a block with a word as its parameter.
    pub(super) fn joint(&mut self) -> (Block, Value) {
        let block = self.b.create_block();
        let word = self.b.append_block_param(block, types::I64);
        (block, word)
    }

    /// Generates a word whose value is computed in one of two branches.
    pub(super) fn either(
        &mut self,
        condition: Value,
        yes: impl FnOnce(&mut Self) -> Typed,
        no: impl FnOnce(&mut Self) -> Typed,
    ) -> Typed {
        let (then, otherwise, (after, word)) = (self.b.create_block(), self.b.create_block(), self.joint());
        self.b.ins().brif(condition, then, &[], otherwise, &[]);
        self.b.switch_to_block(then);
        let typed = yes(self);
        self.go_on(after, typed, Type::Any);
        self.b.switch_to_block(otherwise);
        let typed = no(self);
        self.go_on(after, typed, Type::Any);
        self.b.switch_to_block(after);
        Typed::any(word)
    }

    pub(super) fn choose(&mut self, test: &TreeNode, yes: &TreeNode, no: &TreeNode, of: Type) -> Typed {
        let (then, otherwise, (after, value)) = (self.b.create_block(), self.b.create_block(), self.joint());
        self.branch(test, then, otherwise);
        for (block, node) in [(then, yes), (otherwise, no)] {
            self.b.switch_to_block(block);
            let typed = self.node(node);
            self.go_on(after, typed, of);
        }
        self.b.switch_to_block(after);
        Typed { value, of }
    }

    /// Generates the value of `first`, or that of `others` if the first one is nil.
    pub(super) fn or(&mut self, first: &TreeNode, others: &TreeNode) -> Typed {
        let value = self.word_of(first);
        let holds = self.b.ins().icmp_imm_s(IntCC::NotEqual, value, 0);
        self.either(holds, |_| Typed::any(value), |it| it.node(others))
    }

    /// Generates code that saves the thread's state in a new slot of the machine frame.
    fn saved(&mut self) -> Value {
        let saved = self.frame_place();
        self.import(Helper::Save, &[saved]);
        saved
    }

    pub(super) fn scope(&mut self, body: &TreeNode) -> Typed {
        let saved = self.saved();
        let value = self.word_of(body);
        self.import(Helper::Restore, &[saved]);
        Typed::any(value)
    }

    /// Generates a new number, by which the runtime finds the block or tagbody of an exit.
    fn number_of(&mut self, exit: &ExitPoint) -> Value {
        let target = self.import(Helper::Target, &[]);
        let root = self.root();
        self.keep(target, root);
        self.bind_word(&exit.target, target, root);
        target
    }

    pub(super) fn block(&mut self, exit: &Rc<ExitPoint>, body: &TreeNode) -> Typed {
        let (after, word) = self.joint();
        self.exits.insert(Rc::as_ptr(exit), ExitTarget { after, tags: Vec::new() });
        if !exit.caught.get() {
            let typed = self.node(body);
            self.go_on(after, typed, Type::Any);
            self.b.switch_to_block(after);
            return Typed::any(word);
        }
        let target = self.number_of(exit);
        let saved = self.saved();
        let (typed, pad) = self.with_pad(|it| it.node(body));
        self.go_on(after, typed, Type::Any);
        if let Some(pad) = pad {
            self.b.switch_to_block(pad);
            let came = self.import_checked(Helper::Arrived, &[saved, target]);
            self.b.ins().jump(after, &[came.into()]);
        }
        self.b.switch_to_block(after);
        Typed::any(word)
    }

    pub(super) fn leave_block(&mut self, exit: &Rc<ExitPoint>, value: &TreeNode) -> Typed {
        let typed = self.node(value);
        let after = self.exits[&Rc::as_ptr(exit)].after;
        self.go_on(after, typed, Type::Any);
        self.dead()
    }

    pub(super) fn repeat(&mut self, body: &TreeNode) -> Typed {
        let head = self.b.create_block();
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        self.node(body);
        self.poll();
        self.b.ins().jump(head, &[]);
        self.dead()
    }

    pub(super) fn tags(&mut self, exit: &Rc<ExitPoint>, parts: &[TreeNode]) -> Typed {
        let tags: Vec<Block> = parts[1..].iter().map(|_| self.b.create_block()).collect();
        let after = self.b.create_block();
        self.exits.insert(Rc::as_ptr(exit), ExitTarget { after, tags: tags.clone() });
        let arrival = exit.caught.get().then(|| (self.number_of(exit), self.saved()));
        let ((), pad) = self.with_pad(|it| {
            for (index, part) in parts.iter().enumerate() {
                it.node(part);
                let next = tags.get(index).copied().unwrap_or(after);
                it.b.ins().jump(next, &[]);
                it.b.switch_to_block(next);
            }
        });
        if let Some(pad) = pad {
            let done = self.b.create_block();
            self.b.ins().jump(done, &[]);
            self.b.switch_to_block(pad);
            if let Some((target, saved)) = arrival {
                let came = self.import_checked(Helper::Arrived, &[saved, target]);
                self.poll();
                for (index, tag) in tags.iter().enumerate() {
                    let index = Word::fixnum(index as i64).0.cast_signed();
                    let here = self.b.ins().icmp_imm_s(IntCC::Equal, came, index);
                    let other = self.b.create_block();
                    self.b.ins().brif(here, *tag, &[], other, &[]);
                    self.b.switch_to_block(other);
                }
                self.b.ins().jump(done, &[]);
            } else {
                let outer = self.pad();
                self.b.ins().jump(outer, &[]);
            }
            self.b.switch_to_block(done);
        }
        self.nil()
    }

    pub(super) fn go(&mut self, exit: &Rc<ExitPoint>, index: usize) -> Typed {
        self.poll();
        let tag = self.exits[&Rc::as_ptr(exit)].tags[index];
        self.b.ins().jump(tag, &[]);
        self.dead()
    }

    pub(super) fn catch(&mut self, tag: &TreeNode, body: &TreeNode) -> Typed {
        let tag = self.word_of(tag);
        let root = self.root();
        self.keep(tag, root);
        let saved = self.frame_place();
        self.import(Helper::Catch, &[saved, tag]);
        let (value, pad) = self.with_pad(|it| it.word_of(body));
        self.import(Helper::EndCatch, &[]);
        let Some(pad) = pad else { return Typed::any(value) };
        let (after, word) = self.joint();
        self.b.ins().jump(after, &[value.into()]);
        self.b.switch_to_block(pad);
        let came = self.import_checked(Helper::Caught, &[saved, tag]);
        self.b.ins().jump(after, &[came.into()]);
        self.b.switch_to_block(after);
        Typed::any(word)
    }

    /// Generates a form with its cleanup. The code of the cleanup exists only once: if the form has returned a word,
    /// execution continues after the cleanup, otherwise the exit continues.
    pub(super) fn protect(&mut self, form: &TreeNode, cleanup: &TreeNode) -> Typed {
        let root = self.root();
        let aside = self.saved();
        let (value, pad) = self.with_pad(|it| it.word_of(form));
        let Some(pad) = pad else {
            self.keep(value, root);
            self.node(cleanup);
            return Typed::any(value);
        };
        let (clean, word) = self.joint();
        self.b.ins().jump(clean, &[value.into()]);
        self.b.switch_to_block(pad);
        self.import_checked(Helper::Unwind, &[aside]);
        let none = self.number(runtime::GONE);
        self.b.ins().jump(clean, &[none.into()]);
        self.b.switch_to_block(clean);
        self.keep(word, root);
        self.node(cleanup);
        let none = self.b.ins().icmp_imm_s(IntCC::Equal, word, runtime::GONE.cast_signed());
        let (out, on) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(none, out, &[], on, &[]);
        self.b.switch_to_block(out);
        self.import(Helper::Resume, &[aside]);
        let outer = self.pad();
        self.b.ins().jump(outer, &[]);
        self.b.switch_to_block(on);
        Typed::any(word)
    }

    pub(super) fn handle(&mut self, form: &TreeNode, clauses: &[(Word, Var, TreeNode)]) -> Typed {
        let saved = self.saved();
        let (value, pad) = self.with_pad(|it| it.word_of(form));
        let Some(pad) = pad else { return Typed::any(value) };
        let (after, word) = self.joint();
        self.b.ins().jump(after, &[value.into()]);
        self.b.switch_to_block(pad);
        for (class, variable, body) in clauses {
            let class = self.number(class.0);
            let error = self.import(Helper::Handles, &[saved, class]);
            let none = self.b.ins().icmp_imm_s(IntCC::Equal, error, runtime::GONE.cast_signed());
            let (ours, next) = (self.b.create_block(), self.b.create_block());
            self.b.ins().brif(none, next, &[], ours, &[]);
            self.b.switch_to_block(ours);
            let before = self.roots;
            let root = self.root();
            self.keep(error, root);
            self.bind_word(variable, error, root);
            let value = self.word_of(body);
            self.roots = before;
            self.b.ins().jump(after, &[value.into()]);
            self.b.switch_to_block(next);
        }
        let outer = self.pad();
        self.b.ins().jump(outer, &[]);
        self.b.switch_to_block(after);
        Typed::any(word)
    }
}
