//! Analyses variables and local functions.

use super::{Analysis, Called, Done, ScopeEntry, refuse};
use crate::compile::runtime::Helper;
use crate::compile::tree::{TreeNode, Var};
use crate::value::{Value as Word, flag};

/// Splits `name` or `(name form)`.
fn name_and_form(item: Word) -> (Word, Word) {
    if item.is_cons() { (item.get(0), item.cadr()) } else { (item, Word::NIL) }
}

impl Analysis<'_> {
    /// Returns whether a binding of the name is dynamic.
    pub(super) fn is_dynamic(&mut self, name: Word, body: Word) -> Done<bool> {
        if !name.is_symbol_object() || name.has_flag(flag::CONSTANT | flag::LAMBDA_KEYWORD) {
            return refuse(format!("a binding of {}", self.shown(name)));
        }
        Ok(name.has_flag(flag::SPECIAL) || self.cx.is_declared(body, name))
    }

    /// Returns whether declarations in a body say that a variable is a fixnum.
    pub(super) fn is_fixnum(&self, body: Word, name: Word) -> bool {
        let declare = self.cx.world.names.declare;
        let says = |item: Word| {
            let head = item.car();
            let (kind, names) = if head.is_symbol() && self.cx.show_name(head) == "type" {
                (item.cadr(), item.cddr())
            } else {
                (head, item.cdr())
            };
            kind.is_symbol() && self.cx.show_name(kind) == "fixnum" && names.iter().any(|own| own == name)
        };
        body.iter().filter(|form| form.car() == declare).flat_map(|form| form.cdr().iter()).any(says)
    }

    /// Binds one variable around the node that `inside` creates. `declared` is the body that may declare it.
    pub(super) fn with_variable(
        &mut self,
        name: Word,
        declared: Word,
        value: TreeNode,
        inside: impl FnOnce(&mut Self) -> Done<TreeNode>,
    ) -> Done<TreeNode> {
        self.with_variables(vec![(name, value)], declared, inside)
    }

    /// Binds variables in parallel around the node that `inside` creates.
    pub(super) fn with_variables(
        &mut self,
        values: Vec<(Word, TreeNode)>,
        declared: Word,
        inside: impl FnOnce(&mut Self) -> Done<TreeNode>,
    ) -> Done<TreeNode> {
        let (mut bindings, mut entries, mut dynamic) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in values {
            let special = self.is_dynamic(name, declared)?;
            let variable = self.new_variable(!special && self.is_fixnum(declared, name));
            if special {
                dynamic.push((name, variable.clone()));
            } else {
                entries.push(ScopeEntry::Variable(name, variable.clone()));
            }
            bindings.push((variable, value));
        }
        if dynamic.is_empty() {
            let body = self.inside(entries, inside)?;
            return Ok(TreeNode::Bind(bindings, Box::new(body)));
        }
        entries.push(ScopeEntry::Guard);
        let mut steps = Vec::new();
        for (name, variable) in dynamic {
            let (name, value) = (self.constant(name)?, self.local(&variable));
            steps.push(TreeNode::Runtime(Helper::BindSpecial, vec![name, value]));
        }
        steps.push(self.inside(entries, inside)?);
        let scope = TreeNode::Scope(Box::new(TreeNode::Sequence(steps)));
        Ok(TreeNode::Bind(bindings, Box::new(scope)))
    }

    pub(super) fn let_form(&mut self, items: Word, body: Word) -> Done<TreeNode> {
        let mut values = Vec::new();
        for item in items.iter() {
            let (name, form) = name_and_form(item);
            values.push((name, self.form(form)?));
        }
        self.with_variables(values, body, |it| it.progn(body))
    }

    pub(super) fn let_in_turn(&mut self, items: Word, body: Word) -> Done<TreeNode> {
        if !items.is_cons() {
            return self.progn(body);
        }
        let (name, form) = name_and_form(items.get(0));
        let value = self.form(form)?;
        self.with_variable(name, body, value, |it| it.deeper(|it| it.let_in_turn(items.get(1), body)))
    }

    pub(super) fn multiple_value_bind(&mut self, rest: Word) -> Done<TreeNode> {
        let list = self.temporary();
        let value = TreeNode::Runtime(Helper::AsList, vec![self.form(rest.cadr())?]);
        let mut values = Vec::new();
        for (index, name) in rest.car().iter().enumerate() {
            let tail = (0..index).fold(self.local(&list), |node, _| TreeNode::Part(1, Box::new(node)));
            values.push((name, TreeNode::Part(0, Box::new(tail))));
        }
        let body = rest.cddr();
        let inner = self.with_variables(values, body, |it| it.progn(body))?;
        Ok(TreeNode::Bind(vec![(list, value)], Box::new(inner)))
    }

    pub(super) fn progv(&mut self, rest: Word) -> Done<TreeNode> {
        let names = vec![self.form(rest.car())?, self.form(rest.cadr())?];
        let body = self.inside(vec![ScopeEntry::Guard], |it| it.progn(rest.cddr()))?;
        let steps = vec![TreeNode::Runtime(Helper::Progv, names), body];
        Ok(TreeNode::Scope(Box::new(TreeNode::Sequence(steps))))
    }

    pub(super) fn setq(&mut self, form: Word) -> Done<TreeNode> {
        let mut steps = Vec::new();
        let mut rest = form.get(1);
        while rest.is_cons() {
            if !rest.get(1).is_cons() {
                return self.malformed(form);
            }
            // As in EusLisp, `(object . slot)` can be set too.
            steps.push(if rest.get(0).is_cons() {
                self.set_place(rest.get(0), rest.cadr())?
            } else {
                let value = self.form(rest.cadr())?;
                self.assign(rest.get(0), value)?
            });
            rest = rest.cddr();
        }
        Ok(match steps.len() {
            1 => steps.swap_remove(0),
            _ => TreeNode::Sequence(steps),
        })
    }

    pub(super) fn psetq(&mut self, form: Word) -> Done<TreeNode> {
        let pairs: Vec<Word> = form.get(1).iter().collect();
        if pairs.len() % 2 == 1 {
            return self.malformed(form);
        }
        let mut steps = Vec::new();
        for pair in pairs.chunks_exact(2) {
            steps.push((pair[0], self.form(pair[1])?));
        }
        let assigned = self.assign_together(steps)?;
        let nil = self.constant(Word::NIL)?;
        Ok(TreeNode::Sequence(vec![assigned, nil]))
    }

    /// Assigns variables in parallel.
    pub(super) fn assign_together(&mut self, pairs: Vec<(Word, TreeNode)>) -> Done<TreeNode> {
        let (mut bindings, mut steps): (Vec<(Var, TreeNode)>, Vec<TreeNode>) = (Vec::new(), Vec::new());
        for (name, value) in pairs {
            let variable = self.temporary();
            let new = self.local(&variable);
            steps.push(self.assign(name, new)?);
            bindings.push((variable, value));
        }
        Ok(TreeNode::Bind(bindings, Box::new(TreeNode::Sequence(steps))))
    }

    /// Analyses local functions, each of which is closed over the outer environment.
    pub(super) fn flet(&mut self, form: Word) -> Done<TreeNode> {
        let (mut functions, mut entries) = (Vec::new(), Vec::new());
        for item in form.cadr().iter() {
            let lambda = self.local_lambda(form, item)?;
            let number = self.function(item.get(0), lambda, Word::NIL, Called::Directly)?;
            let variable = self.temporary();
            entries.push(ScopeEntry::Function(
                item.get(0),
                variable.clone(),
                number,
                Self::takes(lambda.get(0)),
            ));
            functions.push((variable, number));
        }
        let body = self.inside(entries, |it| it.progn(form.cddr()))?;
        Ok(TreeNode::Functions(functions, Box::new(body)))
    }

    /// Analyses local functions, each of which is closed over all of them.
    pub(super) fn labels(&mut self, form: Word) -> Done<TreeNode> {
        let before = self.scope.len();
        let mut items = Vec::new();
        for item in form.cadr().iter() {
            let lambda = self.local_lambda(form, item)?;
            let variable = self.temporary();
            items.push((item.get(0), lambda, variable));
        }
        let mut functions = Vec::new();
        for (name, lambda, variable) in &items {
            let number = self.done.len();
            self.done.push(None);
            functions.push((variable.clone(), number));
            let takes = Self::takes(lambda.get(0));
            self.scope.push(ScopeEntry::Function(*name, variable.clone(), number, takes));
        }
        for ((name, lambda, _), (_, number)) in items.iter().zip(&functions) {
            self.function_numbered(*number, *name, *lambda, Word::NIL, Called::Directly)?;
        }
        let body = self.progn(form.cddr())?;
        self.scope.truncate(before);
        Ok(TreeNode::Functions(functions, Box::new(body)))
    }

    /// Returns `(parameters . body)` of `(name parameters . body)`, with the body in a block of that name.
    fn local_lambda(&mut self, form: Word, item: Word) -> Done<Word> {
        if !item.car().is_symbol_object() || !item.cdr().is_cons() {
            return self.malformed(form);
        }
        self.with_block(item.get(0), item.get(1))
    }

    pub(super) fn macrolet(&mut self, form: Word) -> Done<TreeNode> {
        let mut entries = Vec::new();
        for item in form.cadr().iter() {
            if !item.car().is_symbol_object() {
                return self.malformed(form);
            }
            let macro_ = self.cx.world.names.macro_;
            let definition = self.cx.cons(macro_, item.get(1))?;
            entries.push(ScopeEntry::Macro(item.get(0), self.hold(definition)?));
        }
        self.inside(entries, |it| it.progn(form.cddr()))
    }
}
