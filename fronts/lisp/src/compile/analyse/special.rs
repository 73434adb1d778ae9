//! Analyses special forms, by name.

use super::{Analysis, Called, Done, ScopeEntry, refuse};
use crate::compile::runtime::Helper;
use crate::compile::tree::TreeNode;
use crate::eval::special;
use crate::value::Value as Word;
use std::rc::Rc;

impl Analysis<'_> {
    pub(super) fn special(&mut self, name: &str, form: Word) -> Done<TreeNode> {
        let rest = form.get(1);
        match name {
            "QUOTE" => self.constant(form.cadr()),
            "FUNCTION" => self.function_form(form),
            "PROGN" => self.progn(rest),
            "PROG1" => self.first_of(rest.car(), rest.cdr()),
            "PROG2" => {
                let (first, second) = (self.form(rest.car())?, self.first_of(rest.cadr(), rest.cddr())?);
                Ok(TreeNode::Sequence(vec![first, second]))
            }
            "SETQ" => self.setq(form),
            "PSETQ" => self.psetq(form),
            "IF" => self.if_form(form),
            "COND" => self.cond(form, rest),
            "AND" => self.and(rest),
            "OR" => self.or(rest),
            "WHEN" => self.choose(rest.car(), rest.cdr(), Word::NIL),
            "UNLESS" => self.choose(rest.car(), Word::NIL, rest.cdr()),
            "CASE" => self.case(rest),
            "THE" => {
                let node = self.form(form.caddr())?;
                let plain = form.cadr().is_symbol() && self.cx.show_name(form.cadr()) == "fixnum";
                Ok(if plain { TreeNode::Plain(Box::new(node)) } else { node })
            }
            "DECLARE" => self.constant(Word::NIL),
            "EVAL-WHEN" => self.eval_when(form),
            "LET" => self.let_form(rest.car(), rest.cdr()),
            "LET*" => self.let_in_turn(rest.car(), rest.cdr()),
            "PROGV" => self.progv(rest),
            "FLET" => self.flet(form),
            "LABELS" => self.labels(form),
            "MACROLET" => self.macrolet(form),
            "MULTIPLE-VALUE-BIND" => self.multiple_value_bind(rest),
            "BLOCK" if form.cadr().is_symbol() => self.block(rest.car(), |it| it.progn(rest.cdr())),
            "RETURN" => self.leave(Word::NIL, rest.car()),
            "RETURN-FROM" => self.leave(rest.car(), rest.cadr()),
            "CATCH" => self.catch(rest),
            "THROW" => {
                let arguments = vec![self.form(rest.car())?, self.form(rest.cadr())?];
                Ok(TreeNode::Runtime(Helper::Throw, arguments))
            }
            "UNWIND-PROTECT" => self.unwind_protect(rest),
            "TAGBODY" => self.tagbody(rest),
            "GO" => self.go(rest.car()),
            "HANDLER-CASE" => self.handler_case(form),
            "WHILE" => self.while_form(rest, false),
            "UNTIL" => self.while_form(rest, true),
            "LOOP" => self.block(Word::NIL, |it| Ok(TreeNode::Loop(Box::new(it.progn(rest)?)))),
            "DOTIMES" => self.dotimes(rest.car(), rest.cdr()),
            "DOLIST" => self.dolist(rest.car(), rest.cdr()),
            "DO" => self.do_form(form, false),
            "DO*" => self.do_form(form, true),
            "SETF" => self.setf(form),
            "PUSH" => self.push_form(rest),
            "PUSHNEW" => self.pushnew(rest),
            "POP" => self.pop(rest.car()),
            "INCF" => self.step(rest, "+"),
            "DECF" => self.step(rest, "-"),
            "DEFUN" => self.defun(form),
            "DEFMACRO" | "DEFVAR" | "DEFPARAMETER" | "DEFCONSTANT" | "DEFCLASS" => {
                self.definition(form, form.cddr())
            }
            // The class is the value of a variable.
            "DEFMETHOD" => self.definition(form, form.get(1)),
            "SEND-SUPER" => self.send_super(rest, Helper::SendSuper),
            "SEND-SUPER*" => self.send_super(rest, Helper::SendSuperAll),
            "INSTANCE" => self.instance(rest),
            _ => self.malformed(form),
        }
    }

    pub(super) fn malformed<T>(&mut self, form: Word) -> Done<T> {
        refuse(format!("malformed {}", self.shown(form)))
    }

    pub(super) fn function_form(&mut self, form: Word) -> Done<TreeNode> {
        let what = form.cadr();
        if what.car() == self.cx.world.names.lambda {
            return Ok(TreeNode::Closure(self.function(
                Word::NIL,
                what.cdr(),
                Word::NIL,
                Called::Elsewhere,
            )?));
        }
        if !what.is_symbol_object() {
            return if what.is_object() { self.constant(what) } else { self.malformed(form) };
        }
        let found = self.scope.iter().rev().find_map(|entry| match entry {
            ScopeEntry::Function(name, variable, ..) if *name == what => Some(Rc::clone(variable)),
            _ => None,
        });
        match found {
            Some(variable) => Ok(self.local(&variable)),
            None => Ok(TreeNode::Runtime(Helper::Function, vec![self.constant(what)?])),
        }
    }

    /// Evaluates the first form, then the others, and returns the value of the first.
    pub(super) fn first_of(&mut self, first: Word, others: Word) -> Done<TreeNode> {
        let (variable, first) = (self.temporary(), self.form(first)?);
        let others = self.progn(others)?;
        let value = self.local(&variable);
        Ok(TreeNode::Bind(vec![(variable, first)], Box::new(TreeNode::Sequence(vec![others, value]))))
    }

    /// Analyses `eval-when` for run time; nothing is evaluated during compilation.
    pub(super) fn eval_when(&mut self, form: Word) -> Done<TreeNode> {
        if special::runs_now(form) { self.progn(form.cddr()) } else { self.constant(Word::NIL) }
    }
}
