//! Analyses definitions inside a function, new objects, and messages to the superclass.

use super::names::VariableLocation;
use super::{Analysis, Called, Done, ScopeEntry, refuse};
use crate::compile::runtime::Helper;
use crate::compile::tree::TreeNode;
use crate::value::{Value as Word, symbol};
use crate::world::class;

impl Analysis<'_> {
    /// Analyses an inner `defun`: it still defines the function at run time, but compiled.
    pub(super) fn defun(&mut self, form: Word) -> Done<TreeNode> {
        let (name, lambda) = (form.cadr(), form.cddr());
        let whole = name.is_symbol_object()
            && lambda.car().is_list()
            && lambda.is_cons()
            && name.get(symbol::FUNCTION).as_special_form().is_none();
        if !whole {
            return self.malformed(form);
        }
        let lambda = self.with_block(name, lambda)?;
        let function = TreeNode::Closure(self.function(name, lambda, Word::NIL, Called::Elsewhere)?);
        Ok(TreeNode::Runtime(Helper::Define, vec![self.constant(form)?, function]))
    }

    /// Analyses another definition, which the evaluator runs. No local variable may occur in `parts`, the evaluated parts
    /// of the form.
    pub(super) fn definition(&mut self, form: Word, parts: Word) -> Done<TreeNode> {
        let names: Vec<Word> = self
            .scope
            .iter()
            .flat_map(|entry| match entry {
                ScopeEntry::Variable(name, _)
                | ScopeEntry::Function(name, ..)
                | ScopeEntry::Macro(name, _) => vec![*name],
                ScopeEntry::Slots(_, names) => names.clone(),
                _ => Vec::new(),
            })
            .collect();
        if mentions(parts, &names, 0) {
            return refuse(format!("{} uses local names", self.shown(form)));
        }
        Ok(TreeNode::Runtime(Helper::Eval, vec![self.constant(form)?]))
    }

    pub(super) fn send_super(&mut self, rest: Word, helper: Helper) -> Done<TreeNode> {
        let names = self.cx.world.names;
        let (Some(VariableLocation::Variable(object)), Some(VariableLocation::Variable(class))) =
            (self.lexical(names.self_), self.lexical(names.class))
        else {
            return refuse("send-super outside of a method");
        };
        let mut arguments = vec![self.local(&object), self.local(&class)];
        arguments.extend(self.forms(rest)?);
        if rest.is_cons() {
            Ok(TreeNode::Spread(helper, arguments))
        } else {
            refuse("send-super without a message")
        }
    }

    pub(super) fn instance(&mut self, rest: Word) -> Done<TreeNode> {
        let class = match rest.car() {
            form if form.is_nil() => {
                let object = self.cx.world.class_object(class::OBJECT);
                self.constant(object)?
            }
            form => self.form(form)?,
        };
        let made = TreeNode::Runtime(Helper::Instance, vec![class]);
        if !rest.cdr().is_cons() {
            return Ok(made);
        }
        let object = self.temporary();
        let mut message = vec![self.local(&object)];
        message.extend(self.forms(rest.cdr())?);
        let body = TreeNode::Sequence(vec![TreeNode::Spread(Helper::Send, message), self.local(&object)]);
        Ok(TreeNode::Bind(vec![(object, made)], Box::new(body)))
    }
}

/// Returns whether a tree contains one of the symbols.
fn mentions(tree: Word, names: &[Word], depth: usize) -> bool {
    let end = tree.end().unwrap_or(Word::NIL);
    !end.is_nil() && names.contains(&end)
        || tree.iter().any(|part| depth > 200 || mentions(part, names, depth + 1))
}
