//! Analyses calls: to local functions, to the function itself, and to builtins that are inlined.

use super::{Analysis, Done, ScopeEntry};
use crate::compile::tree::{Op, TreeNode};
use crate::value::{ObjectKind, Value as Word, symbol};
use cranelift_codegen::ir::condcodes::IntCC;
use std::rc::Rc;

impl Analysis<'_> {
    /// Analyses a call of a local function or macro, if the name denotes one.
    pub(super) fn local_call(&mut self, form: Word) -> Done<Option<TreeNode>> {
        let head = form.get(0);
        let found = self.scope.iter().rev().find_map(|entry| match entry {
            ScopeEntry::Function(name, variable, number, arity) if *name == head => {
                Some(Ok((Rc::clone(variable), *number, *arity)))
            }
            ScopeEntry::Macro(name, definition) if *name == head => Some(Err(*definition)),
            _ => None,
        });
        match found {
            None => Ok(None),
            Some(Err(definition)) => {
                let expansion = self.expand(form, definition)?;
                self.form(expansion).map(Some)
            }
            Some(Ok((variable, function, arity))) => {
                let closure = self.local(&variable);
                let arguments = self.arguments(form)?;
                if arity == Some(arguments.len()) {
                    return Ok(Some(TreeNode::Direct { function, closure: Some(variable), arguments }));
                }
                Ok(Some(TreeNode::Apply { form: self.hold(form)?, function: Box::new(closure), arguments }))
            }
        }
    }

    /// Creates a call by name with analysed arguments.
    pub(super) fn call(&mut self, form: Word, head: Word, arguments: Vec<TreeNode>) -> Done<TreeNode> {
        let (form, head) = (self.hold(form)?, self.hold(head)?);
        if head == self.name && !head.is_nil() && self.arity == Some(arguments.len()) {
            return Ok(TreeNode::Direct { function: 0, closure: None, arguments });
        }
        let function = head.get(symbol::FUNCTION);
        if function.is(ObjectKind::Builtin)
            && let Some(op) = inlined(function, arguments.len())
        {
            return Ok(TreeNode::Inline { op, form, head, arguments });
        }
        let known = function != Word::UNBOUND && function.as_special_form().is_none();
        Ok(TreeNode::Call { form, head, known, arguments })
    }

    /// Creates a call of a function of the package LISP.
    pub(super) fn call_lisp(&mut self, name: &str, arguments: Vec<TreeNode>) -> Done<TreeNode> {
        let head = self.cx.installed_name(name)?;
        self.call(Word::NIL, head, arguments)
    }
}

fn inlined(builtin: Word, count: usize) -> Option<Op> {
    let name = builtin.get(1 + crate::builtin::slot::NAME).get(symbol::NAME);
    Some(match (&*name.text(), count) {
        ("CAR" | "FIRST", 1) => Op::Car,
        ("CDR" | "REST", 1) => Op::Cdr,
        ("RPLACA", 2) => Op::Rplaca,
        ("RPLACD", 2) => Op::Rplacd,
        ("CONS", 2) => Op::Cons,
        ("+", 2) => Op::Add,
        ("-", 2) => Op::Subtract,
        ("1+", 1) => Op::Step(1),
        ("1-", 1) => Op::Step(-1),
        ("CONSP", 1) => Op::Consp,
        ("NOT" | "NULL", 1) => Op::Not,
        ("EQ" | "EQL", 2) => Op::Eq,
        ("<", 2) => Op::Compare(IntCC::SignedLessThan),
        (">", 2) => Op::Compare(IntCC::SignedGreaterThan),
        ("<=", 2) => Op::Compare(IntCC::SignedLessThanOrEqual),
        (">=", 2) => Op::Compare(IntCC::SignedGreaterThanOrEqual),
        ("=", 2) => Op::Compare(IntCC::Equal),
        _ => return None,
    })
}
