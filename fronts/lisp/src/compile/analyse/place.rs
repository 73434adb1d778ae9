//! Analyses the targets of `setf` and similar forms. Forms inside a place are evaluated once.

use super::{Analysis, Done, ScopeEntry, refuse};
use crate::compile::runtime::Helper;
use crate::compile::tree::{TreeNode, Var};
use crate::value::{Value as Word, symbol};

/// The values of the place's inner forms are in variables.
enum AnalysedPlace {
    Variable(Word),
    /// A slot is written `(object . slot)`.
    Slot(Var, Word),
    Call {
        head: Word,
        update: Update,
        arguments: Vec<Argument>,
    },
}

enum Argument {
    Constant(Word),
    Variable(Var),
}

#[derive(Clone, Copy)]
enum Update {
    /// A call of this function with the arguments and the new value sets the place.
    Function(Word),
    /// A call of this function with forms for the arguments and the new value returns the form that sets the place.
    Expander(Word),
}

type Bindings = Vec<(Var, TreeNode)>;

/// Wraps sequential bindings around a body.
fn around(bindings: Bindings, body: TreeNode) -> TreeNode {
    bindings.into_iter().rev().fold(body, |body, binding| TreeNode::Bind(vec![binding], Box::new(body)))
}

impl Analysis<'_> {
    /// Binds a new variable to a value.
    fn named(&mut self, value: TreeNode, bindings: &mut Bindings) -> Var {
        let variable = self.temporary();
        bindings.push((variable.clone(), value));
        variable
    }

    fn open_place(&mut self, place: Word, bindings: &mut Bindings) -> Done<AnalysedPlace> {
        if place.is_symbol_object() {
            return Ok(AnalysedPlace::Variable(place));
        }
        let head = place.car();
        if place.is_cons() && place.get(1).is_symbol_object() {
            let object = self.form(head)?;
            return Ok(AnalysedPlace::Slot(self.named(object, bindings), self.hold(place.get(1))?));
        }
        if !head.is_symbol_object() {
            return refuse(format!("{} is not a place", self.shown(place)));
        }
        let names = self.cx.world.names;
        if head == names.the {
            return self.open_place(place.caddr(), bindings);
        }
        let function = self.cx.property(head, names.setf_update);
        let expander = self.cx.property(head, names.setf_method);
        let update = if !function.is_nil() {
            Update::Function(self.hold(function)?)
        } else if !expander.is_nil() {
            Update::Expander(self.hold(expander)?)
        } else {
            let local = self.scope.iter().rev().find_map(|entry| match entry {
                ScopeEntry::Macro(name, definition) if *name == head => Some(*definition),
                _ => None,
            });
            let function = local.unwrap_or(head.get(symbol::FUNCTION));
            if function.car() == names.macro_ {
                let expansion = self.expand(place, function)?;
                return self.open_place(expansion, bindings);
            }
            return refuse(format!("setf cannot assign to {}", self.shown(place)));
        };
        let mut arguments = Vec::new();
        for form in place.get(1).iter() {
            arguments.push(match self.form(form)? {
                TreeNode::Constant(value) => Argument::Constant(value),
                node => Argument::Variable(self.named(node, bindings)),
            });
        }
        Ok(AnalysedPlace::Call { head, update, arguments })
    }

    fn arguments_of(&mut self, arguments: &[Argument]) -> Vec<TreeNode> {
        let mut nodes = Vec::new();
        for argument in arguments {
            nodes.push(match argument {
                Argument::Constant(value) => TreeNode::Constant(*value),
                Argument::Variable(variable) => self.local(variable),
            });
        }
        nodes
    }

    fn fetch(&mut self, place: &AnalysedPlace) -> Done<TreeNode> {
        match place {
            AnalysedPlace::Variable(name) => self.variable(*name),
            AnalysedPlace::Slot(object, name) => {
                let object = self.local(object);
                Ok(TreeNode::Runtime(Helper::SlotNamed, vec![object, TreeNode::Constant(*name)]))
            }
            AnalysedPlace::Call { head, arguments, .. } => {
                let arguments = self.arguments_of(arguments);
                self.call(Word::NIL, *head, arguments)
            }
        }
    }

    /// Writes the value of a variable to a place.
    fn write(&mut self, place: &AnalysedPlace, value: &Var) -> Done<TreeNode> {
        let new = self.local(value);
        match place {
            AnalysedPlace::Variable(name) => self.assign(*name, new),
            AnalysedPlace::Slot(object, name) => {
                let object = self.local(object);
                Ok(TreeNode::Runtime(Helper::SetSlotNamed, vec![object, TreeNode::Constant(*name), new]))
            }
            AnalysedPlace::Call { update: Update::Function(function), arguments, .. } => {
                let mut arguments = self.arguments_of(arguments);
                arguments.push(new);
                if function.is_symbol_object() {
                    return self.call(Word::NIL, *function, arguments);
                }
                let function = Box::new(TreeNode::Constant(*function));
                Ok(TreeNode::Apply { form: Word::NIL, function, arguments })
            }
            AnalysedPlace::Call { update: Update::Expander(expander), arguments, .. } => {
                let mut entries = Vec::new();
                let first = self.cx.mark();
                for argument in arguments {
                    let form = match argument {
                        Argument::Constant(value) => {
                            let quote = self.cx.world.names.quote;
                            self.cx.list(&[quote, *value])?
                        }
                        Argument::Variable(variable) => self.named_symbol(variable, &mut entries)?,
                    };
                    self.cx.push(form)?;
                }
                let form = self.named_symbol(value, &mut entries)?;
                self.cx.push(form)?;
                let count = self.cx.above(first);
                let form = self.cx.call(*expander, first, count)?;
                self.hold(form)?;
                self.keep(form)?;
                self.cx.release(first);
                self.inside(entries, |it| it.form(form))
            }
        }
    }

    /// Returns a new symbol that denotes a variable, for a constructed form.
    fn named_symbol(&mut self, variable: &Var, entries: &mut Vec<ScopeEntry>) -> Done<Word> {
        let name = self.cx.string("value")?;
        let symbol = self.cx.new_symbol(name)?;
        self.hold(symbol)?;
        entries.push(ScopeEntry::Variable(symbol, variable.clone()));
        Ok(symbol)
    }

    /// Assigns a value to a place; the value is also the form's.
    fn set(&mut self, place: &AnalysedPlace, value: TreeNode, mut bindings: Bindings) -> Done<TreeNode> {
        if let AnalysedPlace::Variable(name) = place {
            let assigned = self.assign(*name, value)?;
            return Ok(around(bindings, assigned));
        }
        let new = self.named(value, &mut bindings);
        let written = self.write(place, &new)?;
        let value = self.local(&new);
        Ok(around(bindings, TreeNode::Sequence(vec![written, value])))
    }

    /// Assigns the value of a form to a place.
    pub(super) fn set_place(&mut self, place: Word, form: Word) -> Done<TreeNode> {
        let mut bindings = Vec::new();
        let place = self.open_place(place, &mut bindings)?;
        let value = self.form(form)?;
        self.set(&place, value, bindings)
    }

    pub(super) fn setf(&mut self, form: Word) -> Done<TreeNode> {
        let mut steps = Vec::new();
        let mut rest = form.get(1);
        while rest.is_cons() {
            if !rest.get(1).is_cons() {
                return self.malformed(form);
            }
            steps.push(self.set_place(rest.get(0), rest.cadr())?);
            rest = rest.cddr();
        }
        Ok(match steps.len() {
            1 => steps.swap_remove(0),
            _ => TreeNode::Sequence(steps),
        })
    }

    pub(super) fn push_form(&mut self, rest: Word) -> Done<TreeNode> {
        let value = self.form(rest.car())?;
        let mut bindings = Vec::new();
        let value = self.named(value, &mut bindings);
        let place = self.open_place(rest.cadr(), &mut bindings)?;
        let parts = vec![self.local(&value), self.fetch(&place)?];
        let new = self.call_lisp("CONS", parts)?;
        self.set(&place, new, bindings)
    }

    pub(super) fn pushnew(&mut self, rest: Word) -> Done<TreeNode> {
        let value = self.form(rest.car())?;
        let mut bindings = Vec::new();
        let value = self.named(value, &mut bindings);
        let place = self.open_place(rest.cadr(), &mut bindings)?;
        let mut parts = vec![self.local(&value), self.fetch(&place)?];
        parts.extend(self.forms(rest.cddr())?);
        let new = self.call_lisp("ADJOIN", parts)?;
        self.set(&place, new, bindings)
    }

    pub(super) fn pop(&mut self, form: Word) -> Done<TreeNode> {
        let mut bindings = Vec::new();
        let place = self.open_place(form, &mut bindings)?;
        let old = TreeNode::List(Box::new(self.fetch(&place)?));
        let old = self.named(old, &mut bindings);
        let less = TreeNode::Part(1, Box::new(self.local(&old)));
        let less = self.named(less, &mut bindings);
        let written = self.write(&place, &less)?;
        let first = TreeNode::Part(0, Box::new(self.local(&old)));
        Ok(around(bindings, TreeNode::Sequence(vec![written, first])))
    }

    pub(super) fn step(&mut self, rest: Word, function: &str) -> Done<TreeNode> {
        let mut bindings = Vec::new();
        let place = self.open_place(rest.car(), &mut bindings)?;
        let by =
            if rest.cdr().is_cons() { self.form(rest.cadr())? } else { TreeNode::Constant(Word::fixnum(1)) };
        let by = match by {
            TreeNode::Constant(_) => by,
            by => {
                let by = self.named(by, &mut bindings);
                self.local(&by)
            }
        };
        let old = self.fetch(&place)?;
        let new = self.call_lisp(function, vec![old, by])?;
        self.set(&place, new, bindings)
    }
}
