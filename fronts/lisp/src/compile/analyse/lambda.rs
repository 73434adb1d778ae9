//! Analyses functions: their parameters, and the binding of arguments to variables.

use super::{Analysis, Called, Done, Open, ScopeEntry, refuse};
use crate::compile::runtime::Helper;
use crate::compile::tree::{Argument, Function, TreeNode, Var};
use crate::eval::special;
use crate::value::{Value as Word, flag, symbol};
use crate::world::class as classes;

/// A step of a prologue runs before a function's body.
enum PrologueStep {
    Bind(Var, TreeNode),
    Do(TreeNode),
}

/// Wraps steps around the body that follows them.
fn around(steps: Vec<PrologueStep>, body: TreeNode) -> TreeNode {
    steps.into_iter().rev().fold(body, |body, step| match step {
        PrologueStep::Bind(variable, value) => TreeNode::Bind(vec![(variable, value)], Box::new(body)),
        PrologueStep::Do(node) => TreeNode::Sequence(vec![node, body]),
    })
}

impl Analysis<'_> {
    /// Wraps the body in a block with a name, as `defun` does.
    pub(super) fn with_block(&mut self, name: Word, lambda: Word) -> Done<Word> {
        let lambda = special::with_block(self.cx, name, lambda)?;
        self.hold(lambda)
    }

    /// Analyses `(parameters . body)` and returns its number. `called` tells whether the function also has an entry with
    /// its arguments in registers.
    pub(super) fn function(&mut self, name: Word, lambda: Word, class: Word, called: Called) -> Done<usize> {
        let number = self.done.len();
        self.done.push(None);
        self.function_numbered(number, name, lambda, class, called)?;
        Ok(number)
    }

    /// Analyses `(parameters . body)` as a function whose number is reserved.
    pub(super) fn function_numbered(
        &mut self,
        number: usize,
        name: Word,
        lambda: Word,
        class: Word,
        called: Called,
    ) -> Done<()> {
        if !lambda.is_cons() || !lambda.get(0).is_list() {
            return refuse(format!("{} has no list of parameters", self.shown(lambda)));
        }
        let template = self.cx.cons(name, lambda)?;
        self.hold(template)?;
        self.open.push(Open { number, captures: Vec::new() });
        let before = self.scope.len();
        self.scope.push(ScopeEntry::Boundary);
        let mut function = self.parts(number, lambda, class, called)?;
        self.scope.truncate(before);
        function.captures = self.open.pop().map(|open| open.captures).unwrap_or_default();
        function.template = template;
        function.text = match number {
            0 => self.shown(name),
            _ if name.is_nil() => format!("(lambda {} ...)", self.shown(lambda.get(0))),
            _ => format!("{} inside", self.shown(name)),
        };
        self.done[number] = Some(function);
        Ok(())
    }

    /// Returns the number of arguments that the parameters take, if it is fixed.
    pub(super) fn takes(parameters: Word) -> Option<usize> {
        let plain = |name: Word| name.is_symbol_object() && !name.has_flag(flag::LAMBDA_KEYWORD);
        let so_many = parameters.iter().all(plain) && parameters.end() == Some(Word::NIL);
        so_many.then(|| parameters.iter().count())
    }

    fn parts(&mut self, number: usize, lambda: Word, class: Word, called: Called) -> Done<Function> {
        let (parameters, body) = (lambda.get(0), lambda.get(1));
        let arity = Self::takes(parameters).filter(|_| called == Called::Directly);
        if number == 0 && class.is_nil() {
            self.arity = arity;
        }
        let mut required = Vec::new();
        let hidden = if class.is_nil() { 0 } else { 2 };
        let mut steps = Vec::new();
        let mut dynamic = false;
        if !class.is_nil() {
            let names = self.cx.world.names;
            let slots = class.slot(classes::slot::VARIABLES);
            // Assignments to slots of the runtime are checked at run time.
            let plain = self.cx.runtime_slots(class).is_empty();
            let slots: Vec<Word> =
                (0..slots.length()).filter(|_| plain).map(|index| slots.slot(index)).collect();
            let (object, of, own) = (self.temporary(), self.temporary(), self.new_variable(false));
            self.scope.push(ScopeEntry::Slots(object.clone(), slots));
            self.scope.push(ScopeEntry::Variable(names.class, of.clone()));
            self.scope.push(ScopeEntry::Variable(names.self_, own.clone()));
            steps.push(PrologueStep::Bind(own, TreeNode::Local(object.clone())));
            required = vec![object, of];
        }
        let mut range = None;
        if arity.is_some() {
            for name in parameters.iter() {
                if self.is_dynamic(name, body)? {
                    let given = self.temporary();
                    required.push(given.clone());
                    dynamic |= self.parameter(name, TreeNode::Local(given), body, &mut steps)?;
                } else {
                    let variable = self.new_variable(self.is_fixnum(body, name));
                    required.push(variable.clone());
                    self.scope.push(ScopeEntry::Variable(name, variable));
                }
            }
        } else {
            let first: Vec<Var> = std::mem::take(&mut required);
            for (index, variable) in first.into_iter().enumerate() {
                steps.insert(index, PrologueStep::Bind(variable, TreeNode::Argument(Argument::At(index))));
            }
            let (least, most, special) = self.lambda_list(hidden, parameters, body, &mut steps)?;
            dynamic = special;
            range = Some((least, most));
        }
        let inner = self.progn(body)?;
        let whole = around(steps, inner);
        let body = if dynamic { TreeNode::Scope(Box::new(whole)) } else { whole };
        let (text, template) = (String::new(), Word::NIL);
        Ok(Function {
            text,
            template,
            parameters: self.hold(parameters)?,
            required,
            range,
            hidden,
            captures: Vec::new(),
            body,
        })
    }

    /// Binds a parameter; returns whether the binding is dynamic, so that it must be undone.
    fn parameter(
        &mut self,
        name: Word,
        value: TreeNode,
        body: Word,
        steps: &mut Vec<PrologueStep>,
    ) -> Done<bool> {
        if self.is_dynamic(name, body)? {
            if !self
                .scope
                .iter()
                .rev()
                .take_while(|e| !matches!(e, ScopeEntry::Boundary))
                .any(|e| matches!(e, ScopeEntry::Guard))
            {
                self.scope.push(ScopeEntry::Guard);
            }
            let name = self.constant(name)?;
            steps.push(PrologueStep::Do(TreeNode::Runtime(Helper::BindSpecial, vec![name, value])));
            return Ok(true);
        }
        let variable = self.new_variable(self.is_fixnum(body, name));
        self.scope.push(ScopeEntry::Variable(name, variable.clone()));
        steps.push(PrologueStep::Bind(variable, value));
        Ok(false)
    }

    /// Analyses parameters with lambda-list keywords. Returns the least and the largest number of arguments, and
    /// whether a parameter is special.
    fn lambda_list(
        &mut self,
        hidden: usize,
        parameters: Word,
        body: Word,
        steps: &mut Vec<PrologueStep>,
    ) -> Done<(usize, Option<usize>, bool)> {
        let names = self.cx.world.names;
        let (mut least, mut index) = (hidden, hidden);
        let (mut mode, mut many, mut keys, mut dynamic) = (Word::NIL, false, false, false);
        let mut rest = parameters;
        while rest.is_cons() {
            let item = rest.get(0);
            rest = rest.get(1);
            if item.is_symbol_object() && item.has_flag(flag::LAMBDA_KEYWORD) {
                if item != names.allow_other_keys {
                    mode = if item == names.body { names.rest } else { item };
                    keys |= mode == names.key;
                }
            } else if mode.is_nil() {
                if item.is_cons() {
                    return refuse("a destructuring parameter");
                }
                dynamic |= self.parameter(item, TreeNode::Argument(Argument::At(index)), body, steps)?;
                index += 1;
                least = index;
            } else if mode == names.optional {
                let argument = TreeNode::Argument(Argument::At(index));
                dynamic |= self.with_default(item, argument, body, steps)?;
                index += 1;
            } else if mode == names.rest {
                dynamic |= self.parameter(item, TreeNode::Argument(Argument::Rest(index)), body, steps)?;
                many = true;
            } else if mode == names.key {
                let variable = if item.is_cons() { item.get(0) } else { item };
                let (name, key) = if variable.is_cons() {
                    (variable.cadr(), variable.get(0))
                } else {
                    (variable, self.keyword_of(variable)?)
                };
                let argument = TreeNode::Argument(Argument::Key(self.hold(key)?, index));
                let spec = if item.is_cons() {
                    let spec = self.cx.cons(name, item.get(1))?;
                    self.hold(spec)?
                } else {
                    item
                };
                dynamic |= self.with_default(spec, argument, body, steps)?;
            } else {
                let none = self.constant(Word::MISSING)?;
                dynamic |= self.with_default(item, none, body, steps)?;
            }
        }
        if !rest.is_nil() {
            dynamic |= self.parameter(rest, TreeNode::Argument(Argument::Rest(index)), body, steps)?;
            many = true;
        }
        if keys {
            steps.push(PrologueStep::Do(TreeNode::CheckKeys(index)));
        }
        Ok((least, (!many && !keys).then_some(index), dynamic))
    }

    /// Binds `name`, `(name default)` or `(name default given-p)` to an argument that may be missing.
    fn with_default(
        &mut self,
        item: Word,
        argument: TreeNode,
        body: Word,
        steps: &mut Vec<PrologueStep>,
    ) -> Done<bool> {
        let given = self.temporary();
        steps.push(PrologueStep::Bind(given.clone(), argument));
        let missing = |it: &mut Self| TreeNode::Same(Box::new(it.local(&given)), Word::MISSING);
        let (name, default) = if item.is_cons() { (item.get(0), item.cadr()) } else { (item, Word::NIL) };
        let test = missing(self);
        let default = self.form(default)?;
        let value = TreeNode::If(Box::new(test), Box::new(default), Box::new(self.local(&given)));
        let supplied = item.cddr();
        let mut dynamic = false;
        if supplied.is_cons() {
            let held = self.temporary();
            steps.push(PrologueStep::Bind(held.clone(), value));
            let test = missing(self);
            let (no, yes) = (self.constant(Word::NIL)?, self.constant(self.cx.world.names.t)?);
            let told = TreeNode::If(Box::new(test), Box::new(no), Box::new(yes));
            dynamic |= self.parameter(supplied.get(0), told, body, steps)?;
            let value = self.local(&held);
            return Ok(self.parameter(name, value, body, steps)? || dynamic);
        }
        Ok(self.parameter(name, value, body, steps)? || dynamic)
    }

    fn keyword_of(&mut self, name: Word) -> Done<Word> {
        if !name.is_symbol_object() {
            return refuse(format!("{} is not a variable", self.shown(name)));
        }
        let text = name.get(symbol::NAME).text().into_owned();
        Ok(self.cx.keyword(&text)?)
    }
}
