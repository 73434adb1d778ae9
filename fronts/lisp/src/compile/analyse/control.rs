//! Analyses conditionals, blocks, loops and exits.

use super::{Analysis, Done, ScopeEntry};
use crate::compile::runtime::Helper;
use crate::compile::tree::{ExitPoint, Op, TreeNode, Var};
use crate::value::Value as Word;
use cranelift_codegen::ir::condcodes::IntCC;
use std::cell::Cell;
use std::rc::Rc;

fn has_tags(body: Word) -> bool {
    body.iter().any(|statement| !statement.is_cons())
}

impl Analysis<'_> {
    fn nil() -> TreeNode {
        TreeNode::Constant(Word::NIL)
    }

    pub(super) fn if_form(&mut self, form: Word) -> Done<TreeNode> {
        let rest = form.get(1);
        if !rest.cdr().is_cons() {
            return self.malformed(form);
        }
        let (test, yes) = (self.form(rest.car())?, self.form(rest.cadr())?);
        Ok(TreeNode::If(Box::new(test), Box::new(yes), Box::new(self.progn(rest.cddr())?)))
    }

    pub(super) fn choose(&mut self, test: Word, yes: Word, no: Word) -> Done<TreeNode> {
        let test = self.form(test)?;
        Ok(TreeNode::If(Box::new(test), Box::new(self.progn(yes)?), Box::new(self.progn(no)?)))
    }

    pub(super) fn cond(&mut self, form: Word, clauses: Word) -> Done<TreeNode> {
        if !clauses.is_cons() {
            return Ok(Self::nil());
        }
        let clause = clauses.get(0);
        if !clause.is_cons() {
            return self.malformed(form);
        }
        let test = Box::new(self.form(clause.get(0))?);
        if !clause.get(1).is_cons() {
            return Ok(TreeNode::Or(test, Box::new(self.deeper(|it| it.cond(form, clauses.get(1)))?)));
        }
        let yes = self.progn(clause.get(1))?;
        Ok(TreeNode::If(test, Box::new(yes), Box::new(self.deeper(|it| it.cond(form, clauses.get(1)))?)))
    }

    pub(super) fn and(&mut self, forms: Word) -> Done<TreeNode> {
        if !forms.is_cons() {
            let t = self.cx.world.names.t;
            return self.constant(t);
        }
        let first = self.form(forms.get(0))?;
        if !forms.get(1).is_cons() {
            return Ok(first);
        }
        let others = self.deeper(|it| it.and(forms.get(1)))?;
        Ok(TreeNode::If(Box::new(first), Box::new(others), Box::new(Self::nil())))
    }

    pub(super) fn or(&mut self, forms: Word) -> Done<TreeNode> {
        if !forms.is_cons() {
            return Ok(Self::nil());
        }
        let first = self.form(forms.get(0))?;
        if !forms.get(1).is_cons() {
            return Ok(first);
        }
        Ok(TreeNode::Or(Box::new(first), Box::new(self.deeper(|it| it.or(forms.get(1)))?)))
    }

    pub(super) fn case(&mut self, rest: Word) -> Done<TreeNode> {
        let (key, value) = (self.temporary(), self.form(rest.car())?);
        let body = self.clauses(&key, rest.cdr())?;
        Ok(TreeNode::Bind(vec![(key, value)], Box::new(body)))
    }

    fn clauses(&mut self, key: &Var, clauses: Word) -> Done<TreeNode> {
        if !clauses.is_cons() {
            return Ok(Self::nil());
        }
        let names = self.cx.world.names;
        let clause = clauses.get(0);
        let (wanted, body) = (clause.car(), self.progn(clause.cdr())?);
        if wanted == names.t || wanted == names.otherwise {
            return Ok(body);
        }
        let keys: Vec<Word> = if wanted.is_cons() { wanted.iter().collect() } else { vec![wanted] };
        self.deepest = self.deepest.max(self.depth + keys.len());
        let mut test = None;
        for one in keys.into_iter().rev() {
            let key = self.local(key);
            // Numbers stored as objects are compared by value.
            let same = if one.is_object() {
                TreeNode::Runtime(Helper::Eql, vec![key, self.constant(one)?])
            } else {
                TreeNode::Same(Box::new(key), self.hold(one)?)
            };
            test = Some(match test {
                Some(more) => TreeNode::Or(Box::new(same), Box::new(more)),
                None => same,
            });
        }
        let others = self.deeper(|it| it.clauses(key, clauses.get(1)))?;
        Ok(match test {
            Some(test) => TreeNode::If(Box::new(test), Box::new(body), Box::new(others)),
            None => others,
        })
    }

    fn new_exit(&mut self) -> Rc<ExitPoint> {
        Rc::new(ExitPoint { target: self.temporary(), caught: Cell::new(false), used: Cell::new(false) })
    }

    pub(super) fn block(
        &mut self,
        name: Word,
        inside: impl FnOnce(&mut Self) -> Done<TreeNode>,
    ) -> Done<TreeNode> {
        let exit = self.new_exit();
        let body = self.inside(vec![ScopeEntry::Block(name, Rc::clone(&exit))], inside)?;
        Ok(if exit.used.get() { TreeNode::Block(exit, Box::new(body)) } else { body })
    }

    /// Returns the innermost exit that `find` accepts, and marks it as used; also as caught, unless a jump reaches
    /// it.
    fn exit<R>(
        &self,
        find: impl Fn(&ScopeEntry) -> Option<(Rc<ExitPoint>, R)>,
    ) -> Option<(Rc<ExitPoint>, R)> {
        let mut near = true;
        for entry in self.scope.iter().rev() {
            if let Some((exit, more)) = find(entry) {
                exit.used.set(true);
                if !near {
                    exit.caught.set(true);
                }
                return Some((exit, more));
            }
            near &= !matches!(entry, ScopeEntry::Boundary | ScopeEntry::Guard);
        }
        None
    }

    fn is_near(&self, exit: &Rc<ExitPoint>) -> bool {
        let same = |entry: &ScopeEntry| match entry {
            ScopeEntry::Block(_, own) | ScopeEntry::Tags(_, own) => Rc::ptr_eq(own, exit),
            _ => false,
        };
        !self
            .scope
            .iter()
            .rev()
            .take_while(|entry| !same(entry))
            .any(|entry| matches!(entry, ScopeEntry::Boundary | ScopeEntry::Guard))
    }

    pub(super) fn leave(&mut self, name: Word, form: Word) -> Done<TreeNode> {
        let value = self.form(form)?;
        let found = self.exit(|entry| match entry {
            ScopeEntry::Block(own, exit) if *own == name => Some((Rc::clone(exit), ())),
            _ => None,
        });
        let Some((exit, ())) = found else {
            let error = TreeNode::Runtime(Helper::NoBlock, vec![self.constant(name)?]);
            return Ok(TreeNode::Sequence(vec![value, error]));
        };
        self.leave_exit(&exit, value)
    }

    fn leave_exit(&mut self, exit: &Rc<ExitPoint>, value: TreeNode) -> Done<TreeNode> {
        if self.is_near(exit) {
            return Ok(TreeNode::Leave(Rc::clone(exit), Box::new(value)));
        }
        let target = self.local(&exit.target);
        Ok(TreeNode::Runtime(Helper::Leave, vec![target, value]))
    }

    pub(super) fn tagbody(&mut self, statements: Word) -> Done<TreeNode> {
        let exit = self.new_exit();
        let tags: Vec<Word> = statements.iter().filter(|statement| !statement.is_cons()).collect();
        let entry = ScopeEntry::Tags(tags.clone(), Rc::clone(&exit));
        let parts = self.inside(vec![entry], |it| {
            let mut parts = vec![Vec::new()];
            for statement in statements.iter() {
                if statement.is_cons() {
                    let node = it.form(statement)?;
                    if let Some(part) = parts.last_mut() {
                        part.push(node);
                    }
                } else {
                    parts.push(Vec::new());
                }
            }
            Ok(parts)
        })?;
        let mut parts: Vec<TreeNode> = parts.into_iter().map(TreeNode::Sequence).collect();
        if !exit.used.get() {
            parts.push(Self::nil());
            return Ok(TreeNode::Sequence(parts));
        }
        Ok(TreeNode::Tags(exit, parts))
    }

    pub(super) fn go(&mut self, tag: Word) -> Done<TreeNode> {
        let found = self.exit(|entry| match entry {
            ScopeEntry::Tags(tags, exit) => {
                let at = tags.iter().position(|own| crate::builtins::compare::eql(*own, tag))?;
                Some((Rc::clone(exit), at))
            }
            _ => None,
        });
        let Some((exit, index)) = found else {
            return Ok(TreeNode::Runtime(Helper::NoTag, vec![self.constant(tag)?]));
        };
        if self.is_near(&exit) {
            return Ok(TreeNode::Go(exit, index));
        }
        let target = self.local(&exit.target);
        Ok(TreeNode::Runtime(Helper::Go, vec![target, TreeNode::Constant(Word::fixnum(index as i64))]))
    }

    pub(super) fn catch(&mut self, rest: Word) -> Done<TreeNode> {
        let tag = self.form(rest.car())?;
        let body = self.inside(vec![ScopeEntry::Guard], |it| it.progn(rest.cdr()))?;
        Ok(TreeNode::Catch(Box::new(tag), Box::new(body)))
    }

    /// Analyses `(unwind-protect form cleanup…)`. The cleanup is guarded, too: an exit out of it may have to undo another
    /// exit, which is under way while the cleanup runs.
    pub(super) fn unwind_protect(&mut self, rest: Word) -> Done<TreeNode> {
        let form = self.inside(vec![ScopeEntry::Guard], |it| it.form(rest.car()))?;
        let cleanup = self.inside(vec![ScopeEntry::Guard], |it| it.progn(rest.cdr()))?;
        Ok(TreeNode::Protect(Box::new(form), Box::new(cleanup)))
    }

    pub(super) fn handler_case(&mut self, form: Word) -> Done<TreeNode> {
        let protected = self.inside(vec![ScopeEntry::Guard], |it| it.form(form.cadr()))?;
        let mut clauses = Vec::new();
        for clause in form.cddr().iter() {
            if !clause.car().is_symbol_object() {
                return self.malformed(form);
            }
            let class = self.hold(clause.get(0))?;
            let (error, body) = (self.temporary(), clause.cddr());
            let node = match clause.cadr() {
                names if names.is_cons() => {
                    let value = self.local(&error);
                    self.with_variable(names.get(0), body, value, |it| it.progn(body))?
                }
                _ => self.progn(body)?,
            };
            clauses.push((class, error, node));
        }
        Ok(TreeNode::Handle(Box::new(protected), clauses))
    }

    /// Analyses the statements of a loop, whose atoms are tags.
    fn statements(&mut self, body: Word) -> Done<TreeNode> {
        if has_tags(body) { self.tagbody(body) } else { self.progn(body) }
    }

    /// Creates a loop that runs `body` while the test has the value `holds`, and then exits with `result`. `test` may
    /// exit from the enclosing block.
    fn repeat(
        test: TreeNode,
        holds: bool,
        body: Vec<TreeNode>,
        exit: &Rc<ExitPoint>,
        result: TreeNode,
    ) -> TreeNode {
        exit.used.set(true);
        let leave = Box::new(TreeNode::Leave(Rc::clone(exit), Box::new(result)));
        let (on, test) = (Box::new(Self::nil()), Box::new(test));
        let end = if holds { TreeNode::If(test, on, leave) } else { TreeNode::If(test, leave, on) };
        let mut steps = vec![end];
        steps.extend(body);
        let repeated = TreeNode::Loop(Box::new(TreeNode::Sequence(steps)));
        TreeNode::Block(Rc::clone(exit), Box::new(repeated))
    }

    pub(super) fn while_form(&mut self, rest: Word, until: bool) -> Done<TreeNode> {
        self.block(Word::NIL, |it| {
            let (test, body) = (it.form(rest.car())?, it.progn(rest.cdr())?);
            let exit = it.new_exit();
            Ok(Self::repeat(test, !until, vec![body], &exit, Self::nil()))
        })
    }

    /// Analyses `dotimes`. The program's variable is a new one in each iteration, separate from the loop counter.
    pub(super) fn dotimes(&mut self, spec: Word, body: Word) -> Done<TreeNode> {
        self.block(Word::NIL, |it| {
            let name = spec.car();
            let (count, index) = (it.new_variable(true), it.new_variable(true));
            index.assigned.set(true);
            let limit = TreeNode::Count(Box::new(it.form(spec.cadr())?));
            let now = it.local(&index);
            let turn = it.with_variable(name, body, now, |it| it.statements(body))?;
            let plus = TreeNode::Inline {
                op: Op::Step(1),
                form: Word::NIL,
                function: Word::NIL,
                arguments: vec![it.local(&index)],
            };
            let test = TreeNode::Inline {
                op: Op::Compare(IntCC::SignedLessThan),
                form: Word::NIL,
                function: Word::NIL,
                arguments: vec![it.local(&index), it.local(&count)],
            };
            let result = match spec.cddr() {
                forms if forms.is_cons() => {
                    let now = it.local(&index);
                    it.with_variable(name, body, now, |it| it.form(forms.get(0)))?
                }
                _ => Self::nil(),
            };
            let steps = vec![turn, TreeNode::Assign(index.clone(), Box::new(plus))];
            let exit = it.new_exit();
            let counted = Self::repeat(test, true, steps, &exit, Self::nil());
            let all = TreeNode::Sequence(vec![counted, result]);
            let start = TreeNode::Bind(vec![(index, TreeNode::Constant(Word::fixnum(0)))], Box::new(all));
            Ok(TreeNode::Bind(vec![(count, limit)], Box::new(start)))
        })
    }

    pub(super) fn dolist(&mut self, spec: Word, body: Word) -> Done<TreeNode> {
        self.block(Word::NIL, |it| {
            let name = spec.car();
            let list = it.temporary();
            list.assigned.set(true);
            let whole = TreeNode::List(Box::new(it.form(spec.cadr())?));
            let first = TreeNode::Part(0, Box::new(it.local(&list)));
            let turn = it.with_variable(name, body, first, |it| it.statements(body))?;
            let next = TreeNode::Part(1, Box::new(it.local(&list)));
            let arguments = vec![it.local(&list)];
            let test = TreeNode::Inline { op: Op::Consp, form: Word::NIL, function: Word::NIL, arguments };
            let result = match spec.cddr() {
                forms if forms.is_cons() => {
                    it.with_variable(name, body, Self::nil(), |it| it.form(forms.get(0)))?
                }
                _ => Self::nil(),
            };
            let steps = vec![turn, TreeNode::Assign(list.clone(), Box::new(next))];
            let exit = it.new_exit();
            // An atom after a dot is no list, either.
            let end = TreeNode::List(Box::new(it.local(&list)));
            let all =
                TreeNode::Sequence(vec![Self::repeat(test, true, steps, &exit, Self::nil()), end, result]);
            Ok(TreeNode::Bind(vec![(list, whole)], Box::new(all)))
        })
    }

    /// Analyses `(do ((variable start step) ...) (test . results) . body)`; `in_turn` selects `do*`.
    pub(super) fn do_form(&mut self, form: Word, in_turn: bool) -> Done<TreeNode> {
        let (items, end) = (form.cadr(), form.caddr());
        if !end.is_cons() {
            return self.malformed(form);
        }
        self.block(Word::NIL, |it| {
            if in_turn {
                return it.do_in_turn(items, form);
            }
            let mut values = Vec::new();
            for item in items.iter() {
                let name = if item.is_cons() { item.get(0) } else { item };
                values.push((name, it.form(item.cdr().car())?));
            }
            it.with_variables(values, form.cddr().cdr(), |it| it.do_loop(form, false))
        })
    }

    fn do_in_turn(&mut self, items: Word, form: Word) -> Done<TreeNode> {
        if !items.is_cons() {
            return self.do_loop(form, true);
        }
        let item = items.get(0);
        let name = if item.is_cons() { item.get(0) } else { item };
        let value = self.form(item.cdr().car())?;
        self.with_variable(name, form.cddr().cdr(), value, |it| {
            it.deeper(|it| it.do_in_turn(items.get(1), form))
        })
    }

    fn do_loop(&mut self, form: Word, in_turn: bool) -> Done<TreeNode> {
        let (end, body) = (form.caddr(), form.cddr().cdr());
        let test = self.form(end.get(0))?;
        let mut steps = vec![self.statements(body)?];
        let mut together = Vec::new();
        for item in form.cadr().iter().filter(|item| item.cddr().is_cons()) {
            let value = self.form(item.caddr())?;
            if in_turn {
                steps.push(self.assign(item.get(0), value)?);
            } else {
                together.push((item.get(0), value));
            }
        }
        if !together.is_empty() {
            steps.push(self.assign_together(together)?);
        }
        let results = self.progn(end.get(1))?;
        let exit = self.new_exit();
        let repeated = Self::repeat(test, false, steps, &exit, Self::nil());
        Ok(TreeNode::Sequence(vec![repeated, results]))
    }
}
