//! Resolution of variable names, from any function.

use super::{Analysis, Done, Entry, refuse};
use crate::compile::runtime::Helper;
use crate::compile::tree::{Node, Var, Variable};
use crate::value::{Value as Word, flag, symbol};
use std::cell::Cell;
use std::rc::Rc;

/// The location of a lexical variable.
pub(super) enum Place {
    Variable(Var),
    /// A slot of the object whose method is compiled.
    Slot(Var, usize),
    /// A variable outside, or a slot that only the object's own class has: decided at run time.
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
    pub(super) fn local(&mut self, variable: &Var) -> Node {
        for open in self.open.iter_mut().rev() {
            if open.number == variable.owner {
                break;
            }
            variable.captured.set(true);
            if !open.captures.iter().any(|own| Rc::ptr_eq(own, variable)) {
                open.captures.push(Rc::clone(variable));
            }
        }
        Node::Local(Rc::clone(variable))
    }

    /// Runs `inside` with additional scope entries.
    pub(super) fn inside<R>(
        &mut self,
        entries: Vec<Entry>,
        inside: impl FnOnce(&mut Self) -> Done<R>,
    ) -> Done<R> {
        let before = self.scope.len();
        self.scope.extend(entries);
        let done = inside(self);
        self.scope.truncate(before);
        done
    }

    pub(super) fn variable(&mut self, name: Word) -> Done<Node> {
        match self.lexical(name) {
            Some(Place::Variable(variable)) => Ok(self.local(&variable)),
            Some(Place::Slot(object, index)) => Ok(Node::Slot(Box::new(self.local(&object)), index)),
            Some(Place::Object(object)) if !name.has_flag(flag::CONSTANT) => {
                let (object, name) = (self.local(&object), self.constant(name)?);
                Ok(Node::Runtime(Helper::Own, vec![object, name]))
            }
            _ if name.has_flag(flag::CONSTANT) => self.constant(name.get(symbol::VALUE)),
            _ => Ok(Node::Runtime(Helper::Global, vec![self.constant(name)?])),
        }
    }

    pub(super) fn lexical(&self, name: Word) -> Option<Place> {
        self.scope.iter().rev().find_map(|entry| match entry {
            Entry::Variable(own, variable) if *own == name => Some(Place::Variable(Rc::clone(variable))),
            Entry::Slots(object, names) => Some(match names.iter().position(|own| *own == name) {
                Some(index) => Place::Slot(Rc::clone(object), index),
                None => Place::Object(Rc::clone(object)),
            }),
            _ => None,
        })
    }

    pub(super) fn assign(&mut self, name: Word, value: Node) -> Done<Node> {
        if !name.is_symbol_object() {
            return refuse(format!("{} is no variable", self.shown(name)));
        }
        Ok(match self.lexical(name) {
            Some(Place::Variable(variable)) => {
                variable.assigned.set(true);
                self.local(&variable);
                Node::Assign(variable, Box::new(value))
            }
            Some(Place::Slot(object, index)) => {
                Node::AssignSlot(Box::new(self.local(&object)), index, Box::new(value))
            }
            Some(Place::Object(object)) => {
                let (object, name) = (self.local(&object), self.constant(name)?);
                Node::Runtime(Helper::SetOwn, vec![object, name, value])
            }
            None => Node::Runtime(Helper::SetGlobal, vec![self.constant(name)?, value]),
        })
    }
}
