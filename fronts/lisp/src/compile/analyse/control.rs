//! Analysis of conditionals, blocks, loops and exits.

use super::{Analysis, Done, Entry};
use crate::compile::runtime::Helper;
use crate::compile::tree::{Exit, Node, Op, Var};
use crate::value::Value as Word;
use cranelift_codegen::ir::condcodes::IntCC;
use std::cell::Cell;
use std::rc::Rc;

fn has_tags(body: Word) -> bool {
    body.iter().any(|statement| !statement.is_cons())
}

impl Analysis<'_> {
    fn nil() -> Node {
        Node::Constant(Word::NIL)
    }

    pub(super) fn if_form(&mut self, form: Word) -> Done<Node> {
        let rest = form.get(1);
        if !rest.cdr().is_cons() {
            return self.malformed(form);
        }
        let (test, yes) = (self.form(rest.car())?, self.form(rest.cadr())?);
        Ok(Node::If(Box::new(test), Box::new(yes), Box::new(self.progn(rest.cddr())?)))
    }

    pub(super) fn choose(&mut self, test: Word, yes: Word, no: Word) -> Done<Node> {
        let test = self.form(test)?;
        Ok(Node::If(Box::new(test), Box::new(self.progn(yes)?), Box::new(self.progn(no)?)))
    }

    pub(super) fn cond(&mut self, form: Word, clauses: Word) -> Done<Node> {
        if !clauses.is_cons() {
            return Ok(Self::nil());
        }
        let clause = clauses.get(0);
        if !clause.is_cons() {
            return self.malformed(form);
        }
        let test = Box::new(self.form(clause.get(0))?);
        if !clause.get(1).is_cons() {
            return Ok(Node::Or(test, Box::new(self.deeper(|it| it.cond(form, clauses.get(1)))?)));
        }
        let yes = self.progn(clause.get(1))?;
        Ok(Node::If(test, Box::new(yes), Box::new(self.deeper(|it| it.cond(form, clauses.get(1)))?)))
    }

    pub(super) fn and(&mut self, forms: Word) -> Done<Node> {
        if !forms.is_cons() {
            let t = self.cx.world.names.t;
            return self.constant(t);
        }
        let first = self.form(forms.get(0))?;
        if !forms.get(1).is_cons() {
            return Ok(first);
        }
        let others = self.deeper(|it| it.and(forms.get(1)))?;
        Ok(Node::If(Box::new(first), Box::new(others), Box::new(Self::nil())))
    }

    pub(super) fn or(&mut self, forms: Word) -> Done<Node> {
        if !forms.is_cons() {
            return Ok(Self::nil());
        }
        let first = self.form(forms.get(0))?;
        if !forms.get(1).is_cons() {
            return Ok(first);
        }
        Ok(Node::Or(Box::new(first), Box::new(self.deeper(|it| it.or(forms.get(1)))?)))
    }

    pub(super) fn case(&mut self, rest: Word) -> Done<Node> {
        let (key, value) = (self.temporary(), self.form(rest.car())?);
        let body = self.clauses(&key, rest.cdr())?;
        Ok(Node::Bind(vec![(key, value)], Box::new(body)))
    }

    fn clauses(&mut self, key: &Var, clauses: Word) -> Done<Node> {
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
        for one in keys.into_iter().rev().filter(|one| wanted.is_cons() || !one.is_nil()) {
            let key = self.local(key);
            // Numbers stored as objects are compared by value.
            let same = if one.is_object() {
                Node::Runtime(Helper::Eql, vec![key, self.constant(one)?])
            } else {
                Node::Same(Box::new(key), self.hold(one)?)
            };
            test = Some(match test {
                Some(more) => Node::Or(Box::new(same), Box::new(more)),
                None => same,
            });
        }
        let others = self.deeper(|it| it.clauses(key, clauses.get(1)))?;
        Ok(match test {
            Some(test) => Node::If(Box::new(test), Box::new(body), Box::new(others)),
            None => others,
        })
    }

    fn new_exit(&mut self) -> Rc<Exit> {
        Rc::new(Exit { target: self.temporary(), caught: Cell::new(false), used: Cell::new(false) })
    }

    pub(super) fn block(&mut self, name: Word, inside: impl FnOnce(&mut Self) -> Done<Node>) -> Done<Node> {
        let exit = self.new_exit();
        let body = self.inside(vec![Entry::Block(name, Rc::clone(&exit))], inside)?;
        Ok(if exit.used.get() { Node::Block(exit, Box::new(body)) } else { body })
    }

    /// Returns the innermost exit that `find` accepts, and marks it as used; also as caught, unless a jump reaches
    /// it.
    fn exit<R>(&self, find: impl Fn(&Entry) -> Option<(Rc<Exit>, R)>) -> Option<(Rc<Exit>, R)> {
        let mut near = true;
        for entry in self.scope.iter().rev() {
            if let Some((exit, more)) = find(entry) {
                exit.used.set(true);
                if !near {
                    exit.caught.set(true);
                }
                return Some((exit, more));
            }
            near &= !matches!(entry, Entry::Boundary | Entry::Guard);
        }
        None
    }

    fn is_near(&self, exit: &Rc<Exit>) -> bool {
        let same = |entry: &Entry| match entry {
            Entry::Block(_, own) | Entry::Tags(_, own) => Rc::ptr_eq(own, exit),
            _ => false,
        };
        !self
            .scope
            .iter()
            .rev()
            .take_while(|entry| !same(entry))
            .any(|entry| matches!(entry, Entry::Boundary | Entry::Guard))
    }

    pub(super) fn leave(&mut self, name: Word, form: Word) -> Done<Node> {
        let value = self.form(form)?;
        let found = self.exit(|entry| match entry {
            Entry::Block(own, exit) if *own == name => Some((Rc::clone(exit), ())),
            _ => None,
        });
        let Some((exit, ())) = found else {
            let error = Node::Runtime(Helper::NoBlock, vec![self.constant(name)?]);
            return Ok(Node::Sequence(vec![value, error]));
        };
        self.leave_exit(&exit, value)
    }

    fn leave_exit(&mut self, exit: &Rc<Exit>, value: Node) -> Done<Node> {
        if self.is_near(exit) {
            return Ok(Node::Leave(Rc::clone(exit), Box::new(value)));
        }
        let target = self.local(&exit.target);
        Ok(Node::Runtime(Helper::Leave, vec![target, value]))
    }

    pub(super) fn tagbody(&mut self, statements: Word) -> Done<Node> {
        let exit = self.new_exit();
        let tags: Vec<Word> = statements.iter().filter(|statement| !statement.is_cons()).collect();
        let entry = Entry::Tags(tags.clone(), Rc::clone(&exit));
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
        let mut parts: Vec<Node> = parts.into_iter().map(Node::Sequence).collect();
        if !exit.used.get() {
            parts.push(Self::nil());
            return Ok(Node::Sequence(parts));
        }
        Ok(Node::Tags(exit, parts))
    }

    pub(super) fn go(&mut self, tag: Word) -> Done<Node> {
        let found = self.exit(|entry| match entry {
            Entry::Tags(tags, exit) => {
                let at = tags.iter().position(|own| crate::builtins::compare::eql(*own, tag))?;
                Some((Rc::clone(exit), at))
            }
            _ => None,
        });
        let Some((exit, index)) = found else {
            return Ok(Node::Runtime(Helper::NoTag, vec![self.constant(tag)?]));
        };
        if self.is_near(&exit) {
            return Ok(Node::Go(exit, index));
        }
        let target = self.local(&exit.target);
        Ok(Node::Runtime(Helper::Go, vec![target, Node::Constant(Word::fixnum(index as i64))]))
    }

    pub(super) fn catch(&mut self, rest: Word) -> Done<Node> {
        let tag = self.form(rest.car())?;
        let body = self.inside(vec![Entry::Guard], |it| it.progn(rest.cdr()))?;
        Ok(Node::Catch(Box::new(tag), Box::new(body)))
    }

    /// Guards the cleanup, too, as it may exit while another exit is under way.
    pub(super) fn unwind_protect(&mut self, rest: Word) -> Done<Node> {
        let form = self.inside(vec![Entry::Guard], |it| it.form(rest.car()))?;
        let cleanup = self.inside(vec![Entry::Guard], |it| it.progn(rest.cdr()))?;
        Ok(Node::Protect(Box::new(form), Box::new(cleanup)))
    }

    pub(super) fn handler_case(&mut self, form: Word) -> Done<Node> {
        let protected = self.inside(vec![Entry::Guard], |it| it.form(form.cadr()))?;
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
        Ok(Node::Handle(Box::new(protected), clauses))
    }

    /// Analyses the statements of a loop, whose atoms are tags.
    fn statements(&mut self, body: Word) -> Done<Node> {
        if has_tags(body) { self.tagbody(body) } else { self.progn(body) }
    }

    /// Creates a loop that runs `body` while the test has the value `holds`, and then exits with `result`. `test` may
    /// exit from the enclosing block.
    fn repeat(test: Node, holds: bool, body: Vec<Node>, exit: &Rc<Exit>, result: Node) -> Node {
        exit.used.set(true);
        let leave = Box::new(Node::Leave(Rc::clone(exit), Box::new(result)));
        let (on, test) = (Box::new(Self::nil()), Box::new(test));
        let end = if holds { Node::If(test, on, leave) } else { Node::If(test, leave, on) };
        let mut steps = vec![end];
        steps.extend(body);
        let repeated = Node::Loop(Box::new(Node::Sequence(steps)));
        Node::Block(Rc::clone(exit), Box::new(repeated))
    }

    pub(super) fn while_form(&mut self, rest: Word, until: bool) -> Done<Node> {
        self.block(Word::NIL, |it| {
            let (test, body) = (it.form(rest.car())?, it.progn(rest.cdr())?);
            let exit = it.new_exit();
            Ok(Self::repeat(test, !until, vec![body], &exit, Self::nil()))
        })
    }

    /// Analyses `dotimes`. The program's variable is a new one in each iteration, separate from the loop counter.
    pub(super) fn dotimes(&mut self, spec: Word, body: Word) -> Done<Node> {
        self.block(Word::NIL, |it| {
            let name = spec.car();
            let (count, index) = (it.new_variable(true), it.new_variable(true));
            index.assigned.set(true);
            let limit = Node::Count(Box::new(it.form(spec.cadr())?));
            let now = it.local(&index);
            let turn = it.with_variable(name, body, now, |it| it.statements(body))?;
            let plus = Node::Inline {
                op: Op::Step(1),
                form: Word::NIL,
                head: Word::NIL,
                arguments: vec![it.local(&index)],
            };
            let test = Node::Inline {
                op: Op::Compare(IntCC::SignedLessThan),
                form: Word::NIL,
                head: Word::NIL,
                arguments: vec![it.local(&index), it.local(&count)],
            };
            let result = match spec.cddr() {
                forms if forms.is_cons() => {
                    let now = it.local(&index);
                    it.with_variable(name, body, now, |it| it.form(forms.get(0)))?
                }
                _ => Self::nil(),
            };
            let steps = vec![turn, Node::Assign(index.clone(), Box::new(plus))];
            let exit = it.new_exit();
            let counted = Self::repeat(test, true, steps, &exit, Self::nil());
            let all = Node::Sequence(vec![counted, result]);
            let start = Node::Bind(vec![(index, Node::Constant(Word::fixnum(0)))], Box::new(all));
            Ok(Node::Bind(vec![(count, limit)], Box::new(start)))
        })
    }

    pub(super) fn dolist(&mut self, spec: Word, body: Word) -> Done<Node> {
        self.block(Word::NIL, |it| {
            let name = spec.car();
            let list = it.temporary();
            list.assigned.set(true);
            let whole = Node::List(Box::new(it.form(spec.cadr())?));
            let first = Node::Part(0, Box::new(it.local(&list)));
            let turn = it.with_variable(name, body, first, |it| it.statements(body))?;
            let next = Node::Part(1, Box::new(it.local(&list)));
            let arguments = vec![it.local(&list)];
            let test = Node::Inline { op: Op::Consp, form: Word::NIL, head: Word::NIL, arguments };
            let result = match spec.cddr() {
                forms if forms.is_cons() => {
                    it.with_variable(name, body, Self::nil(), |it| it.form(forms.get(0)))?
                }
                _ => Self::nil(),
            };
            let steps = vec![turn, Node::Assign(list.clone(), Box::new(next))];
            let exit = it.new_exit();
            let all = Node::Sequence(vec![Self::repeat(test, true, steps, &exit, Self::nil()), result]);
            Ok(Node::Bind(vec![(list, whole)], Box::new(all)))
        })
    }

    /// Analyses `(do ((variable start step) ...) (test . results) . body)`; `in_turn` selects `do*`.
    pub(super) fn do_form(&mut self, form: Word, in_turn: bool) -> Done<Node> {
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

    fn do_in_turn(&mut self, items: Word, form: Word) -> Done<Node> {
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

    fn do_loop(&mut self, form: Word, in_turn: bool) -> Done<Node> {
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
        Ok(Node::Sequence(vec![repeated, results]))
    }
}
