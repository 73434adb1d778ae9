//! Resolves variable names, from any function.

use super::{Analysis, Done, ScopeEntry, refuse};
use crate::compile::runtime::Helper;
use crate::compile::tree::{TreeNode, Var, Variable};
use crate::value::{Value as Word, flag, symbol};
use std::cell::Cell;
use std::rc::Rc;

/// Tells where a lexical variable is stored.
pub(super) enum VariableLocation {
    Variable(Var),
    /// A slot of the object whose method is compiled.
    Slot(Var, usize),
    /// The name is a variable outside, or a slot of the object's own class: this is decided at run time.
    Object(Var),
}

impl Analysis<'_> {
    pub(super) fn new_variable(&mut self, fixnum: bool) -> Var {
        Rc::new(Variable {
            fixnum,
            assigned: Cell::new(false),
            captured: Cell::new(false),
            owner: self.open.last().map_or(0, |open| open.number),
            width: Cell::new(None),
        })
    }

    /// Creates a variable that is invisible to the program.
    pub(super) fn temporary(&mut self) -> Var {
        self.new_variable(false)
    }

    /// Refers to a variable from the current function, and captures it if an outer function owns it.
    pub(super) fn local(&mut self, variable: &Var) -> TreeNode {
        for open in self.open.iter_mut().rev() {
            if open.number == variable.owner {
                break;
            }
            variable.captured.set(true);
            if !open.captures.iter().any(|own| Rc::ptr_eq(own, variable)) {
                open.captures.push(Rc::clone(variable));
            }
        }
        TreeNode::Local(Rc::clone(variable))
    }

    /// Runs `inside` with additional scope entries.
    pub(super) fn inside<R>(
        &mut self,
        entries: Vec<ScopeEntry>,
        inside: impl FnOnce(&mut Self) -> Done<R>,
    ) -> Done<R> {
        let before = self.scope.len();
        self.scope.extend(entries);
        let done = inside(self);
        self.scope.truncate(before);
        done
    }

    pub(super) fn variable(&mut self, name: Word) -> Done<TreeNode> {
        match self.lexical(name) {
            Some(VariableLocation::Variable(variable)) => Ok(self.local(&variable)),
            Some(VariableLocation::Slot(object, index)) => {
                Ok(TreeNode::Slot(Box::new(self.local(&object)), index))
            }
            Some(VariableLocation::Object(object)) if !name.has_flag(flag::CONSTANT) => {
                let (object, name) = (self.local(&object), self.constant(name)?);
                Ok(TreeNode::Runtime(Helper::Own, vec![object, name]))
            }
            _ if name.has_flag(flag::CONSTANT) => self.constant(name.get(symbol::VALUE)),
            _ => Ok(TreeNode::Runtime(Helper::Global, vec![self.constant(name)?])),
        }
    }

    pub(super) fn lexical(&self, name: Word) -> Option<VariableLocation> {
        self.scope.iter().rev().find_map(|entry| match entry {
            ScopeEntry::Variable(own, variable) if *own == name => {
                Some(VariableLocation::Variable(Rc::clone(variable)))
            }
            ScopeEntry::Slots(object, names) => Some(match names.iter().position(|own| *own == name) {
                Some(index) => VariableLocation::Slot(Rc::clone(object), index),
                None => VariableLocation::Object(Rc::clone(object)),
            }),
            _ => None,
        })
    }

    pub(super) fn assign(&mut self, name: Word, value: TreeNode) -> Done<TreeNode> {
        if !name.is_symbol_object() {
            return refuse(format!("{} is not a variable", self.shown(name)));
        }
        Ok(match self.lexical(name) {
            Some(VariableLocation::Variable(variable)) => {
                variable.assigned.set(true);
                self.local(&variable);
                TreeNode::Assign(variable, Box::new(value))
            }
            Some(VariableLocation::Slot(object, index)) => {
                TreeNode::AssignSlot(Box::new(self.local(&object)), index, Box::new(value))
            }
            Some(VariableLocation::Object(object)) => {
                let (object, name) = (self.local(&object), self.constant(name)?);
                TreeNode::Runtime(Helper::SetOwn, vec![object, name, value])
            }
            None => TreeNode::Runtime(Helper::SetGlobal, vec![self.constant(name)?, value]),
        })
    }
}
