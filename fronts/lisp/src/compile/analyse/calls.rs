//! Analyses calls: to local functions, to the function itself, and to builtins that are inlined.

use super::{Analysis, Done, ScopeEntry};
use crate::compile::tree::{Callee, Op, TreeNode};
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
    pub(super) fn call(&mut self, form: Word, head: Word, mut arguments: Vec<TreeNode>) -> Done<TreeNode> {
        let (form, head) = (self.hold(form)?, self.hold(head)?);
        if head == self.name && !head.is_nil() && self.arity == Some(arguments.len()) {
            return Ok(TreeNode::Direct { function: 0, closure: None, arguments });
        }
        let function = head.get(symbol::FUNCTION);
        if !function.is(ObjectKind::Builtin) {
            let defined = function != Word::UNBOUND && function.as_special_form().is_none();
            let callee = if defined { Callee::Program } else { Callee::Undefined };
            return Ok(TreeNode::Call { form, head, callee, arguments });
        }
        let name = function.get(1 + crate::builtin::slot::NAME).get(symbol::NAME);
        let name = name.text();
        if let (Some(steps), 1) = (path(&name), arguments.len()) {
            let function = self.hold(function)?;
            let part = |value, step: &u8| {
                let op = if *step == b'A' { Op::Car } else { Op::Cdr };
                TreeNode::Inline { op, form, function, arguments: vec![value] }
            };
            let value = arguments.swap_remove(0);
            return Ok(steps.iter().rev().fold(value, part));
        }
        if let Some(op) = inlined(&name, arguments.len()) {
            let function = self.hold(function)?;
            return Ok(TreeNode::Inline { op, form, function, arguments });
        }
        Ok(TreeNode::Call { form, head, callee: Callee::Builtin, arguments })
    }

    /// Creates a call of a function of the package LISP.
    pub(super) fn call_lisp(&mut self, name: &str, arguments: Vec<TreeNode>) -> Done<TreeNode> {
        let head = self.cx.installed_name(name)?;
        self.call(Word::NIL, head, arguments)
    }
}

/// Returns the steps, `A` for car and `D` for cdr, of a function that follows a path from a cons, last step first.
fn path(name: &str) -> Option<&[u8]> {
    Some(match name {
        "FIRST" => b"A",
        "REST" => b"D",
        "SECOND" => b"AD",
        "THIRD" => b"ADD",
        "FOURTH" => b"ADDD",
        _ => {
            let steps = name.strip_prefix('C')?.strip_suffix('R')?;
            let known = !steps.is_empty() && steps.bytes().all(|step| matches!(step, b'A' | b'D'));
            return known.then_some(steps.as_bytes());
        }
    })
}

/// Returns the operation of a builtin that is inlined for `count` arguments.
fn inlined(name: &str, count: usize) -> Option<Op> {
    Some(match (name, count) {
        ("RPLACA", 2) => Op::Rplaca,
        ("RPLACD", 2) => Op::Rplacd,
        ("CONS", 2) => Op::Cons,
        ("+", 1..) => Op::Add,
        ("-", 1..) => Op::Subtract,
        ("*", 1..) => Op::Multiply,
        ("/", 1..) => Op::Divide,
        ("1+", 1) => Op::Step(1),
        ("1-", 1) => Op::Step(-1),
        ("ABS", 1) => Op::Absolute,
        ("FLOAT", 1) => Op::Float,
        ("CONSP", 1) => Op::Consp,
        ("NOT" | "NULL", 1) => Op::Not,
        ("EQ" | "EQL", 2) => Op::Eq,
        ("<", 2) => Op::Compare(IntCC::SignedLessThan),
        (">", 2) => Op::Compare(IntCC::SignedGreaterThan),
        ("<=", 2) => Op::Compare(IntCC::SignedLessThanOrEqual),
        (">=", 2) => Op::Compare(IntCC::SignedGreaterThanOrEqual),
        ("=", 2) => Op::Compare(IntCC::Equal),
        ("/=", 2) => Op::Compare(IntCC::NotEqual),
        ("ZEROP", 1) => Op::Sign(IntCC::Equal),
        ("PLUSP", 1) => Op::Sign(IntCC::SignedGreaterThan),
        ("MINUSP", 1) => Op::Sign(IntCC::SignedLessThan),
        ("AREF", 3) => Op::Element,
        ("ASET" | "SET-AREF", 4) => Op::SetElement,
        ("AREF" | "SVREF" | "VREF" | "CHAR" | "SCHAR" | "BIT" | "SBIT", 2) => Op::Element,
        ("ASET" | "SET-AREF" | "SVSET" | "SETCHAR" | "SETBIT", 3) => Op::SetElement,
        _ => return None,
    })
}
