//! Analysis of definitions inside a function, of new objects, and of messages to the superclass.

use super::names::Place;
use super::{Analysis, Done, Entry, refuse};
use crate::compile::runtime::Helper;
use crate::compile::tree::Node;
use crate::value::{Value as Word, symbol};
use crate::world::class;

impl Analysis<'_> {
    /// Analyses an inner `defun`: it still defines the function at run time, but compiled.
    pub(super) fn defun(&mut self, form: Word) -> Done<Node> {
        let (name, lambda) = (form.cadr(), form.cddr());
        let whole = name.is_symbol_object()
            && lambda.car().is_list()
            && lambda.is_cons()
            && name.get(symbol::FUNCTION).as_special_form().is_none();
        if !whole {
            return self.malformed(form);
        }
        let lambda = self.with_block(name, lambda)?;
        let function = Node::Closure(self.function(name, lambda, Word::NIL)?);
        Ok(Node::Runtime(Helper::Define, vec![self.constant(form)?, function]))
    }

    /// Analyses another definition, which the evaluator runs; it must not use local variables.
    pub(super) fn definition(&mut self, form: Word) -> Done<Node> {
        let names: Vec<Word> = self
            .scope
            .iter()
            .flat_map(|entry| match entry {
                Entry::Variable(name, _) | Entry::Function(name, ..) | Entry::Macro(name, _) => vec![*name],
                Entry::Slots(_, names) => names.clone(),
                _ => Vec::new(),
            })
            .collect();
        if mentions(form.cddr(), &names, 0) {
            return refuse(format!("{} uses what is local", self.shown(form)));
        }
        Ok(Node::Runtime(Helper::Eval, vec![self.constant(form)?]))
    }

    pub(super) fn send_super(&mut self, rest: Word, helper: Helper) -> Done<Node> {
        let names = self.cx.world.names;
        let (Some(Place::Variable(object)), Some(Place::Variable(class))) =
            (self.lexical(names.self_), self.lexical(names.class))
        else {
            return refuse("send-super outside of a method");
        };
        let mut arguments = vec![self.local(&object), self.local(&class)];
        arguments.extend(self.forms(rest)?);
        if rest.is_cons() {
            Ok(Node::Spread(helper, arguments))
        } else {
            refuse("send-super without a message")
        }
    }

    pub(super) fn instance(&mut self, rest: Word) -> Done<Node> {
        let class = match rest.car() {
            form if form.is_nil() => {
                let object = self.cx.world.class_object(class::OBJECT);
                self.constant(object)?
            }
            form => self.form(form)?,
        };
        let made = Node::Runtime(Helper::Instance, vec![class]);
        if !rest.cdr().is_cons() {
            return Ok(made);
        }
        let object = self.temporary();
        let mut message = vec![self.local(&object)];
        message.extend(self.forms(rest.cdr())?);
        let body = Node::Sequence(vec![Node::Spread(Helper::Send, message), self.local(&object)]);
        Ok(Node::Bind(vec![(object, made)], Box::new(body)))
    }
}

/// Returns whether a tree contains one of the symbols.
fn mentions(tree: Word, names: &[Word], depth: usize) -> bool {
    let end = tree.end().unwrap_or(Word::NIL);
    !end.is_nil() && names.contains(&end)
        || tree.iter().any(|part| depth > 200 || mentions(part, names, depth + 1))
}
