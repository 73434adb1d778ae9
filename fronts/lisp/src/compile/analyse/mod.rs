//! From a source list to a tree: macros expanded, names resolved.
//!
//! What the evaluator decides when a form runs is decided here, once: what a name means, which variables are
//! special, what a macro or `setf` expands to. Errors that a malformed form would be when it runs refuse it.

mod bind;
mod calls;
mod control;
mod define;
mod lambda;
mod names;
mod place;
mod special;

use super::Refused;
use super::runtime::Helper;
use super::tree::{Exit, Function, Node, Unit, Var};
use crate::context::Context;
use crate::eval::special::FORMS;
use crate::value::{Value as Word, symbol};
use std::collections::HashSet;
use std::rc::Rc;

type Done<T> = Result<T, Refused>;

fn refuse<T>(why: impl Into<String>) -> Done<T> {
    Err(Refused::Form(why.into()))
}

/// Bytes of the machine's stack that the generator needs for a form inside of another, at most.
const STACK_OF_A_FORM: usize = 8 << 10;

/// What a name means from here on inwards.
enum Entry {
    Variable(Word, Var),
    Block(Word, Rc<Exit>),
    Tags(Vec<Word>, Rc<Exit>),
    /// Name, variable that holds the closure, number of the function, how many arguments it takes if it takes so many.
    Function(Word, Var, usize, Option<usize>),
    /// Name, and `(macro parameters . body)`.
    Macro(Word, Word),
    /// The object whose slots are variables, and their names.
    Slots(Var, Vec<Word>),
    /// A function begins: what is outside is captured.
    Boundary,
    /// Who leaves from inside leaves something that must be put back.
    Guard,
}

/// A function that is being analysed.
#[derive(Default)]
struct Open {
    number: usize,
    captures: Vec<Var>,
}

struct Analysis<'a> {
    cx: &'a mut Context,
    /// A cons on the root stack; its rest is the list of constants.
    constants: Word,
    held: HashSet<u64>,
    scope: Vec<Entry>,
    open: Vec<Open>,
    done: Vec<Option<Function>>,
    /// How many forms are around, and how many were at most.
    depth: usize,
    deepest: usize,
    /// The name of the function itself, and how many arguments it takes, if it takes so many.
    name: Word,
    arity: Option<usize>,
}

/// What is to be compiled.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub(super) name: Word,
    /// `(parameters . body)`
    pub(super) lambda: Word,
    /// The class of a method.
    pub(super) class: Word,
}

/// The tree of a function. Its constants stay on the root stack.
pub(super) fn analyse(cx: &mut Context, source: Source) -> Done<Unit> {
    let constants = cx.cons(Word::NIL, Word::NIL)?;
    cx.push(constants)?;
    let t = cx.world.names.t;
    let mut it = Analysis {
        cx,
        constants,
        held: HashSet::new(),
        scope: Vec::new(),
        open: Vec::new(),
        done: Vec::new(),
        depth: 0,
        deepest: 0,
        name: source.name,
        arity: None,
    };
    it.hold(source.lambda)?;
    it.function(source.name, source.lambda, source.class)?;
    if it.cx.machine_stack_left() < it.deepest * STACK_OF_A_FORM {
        it.cx.stack_overflow()?;
    }
    let functions = it.done.into_iter().flatten().collect();
    Ok(Unit { functions, constants, t })
}

impl Analysis<'_> {
    /// Keeps a value alive for as long as the code.
    fn hold(&mut self, value: Word) -> Done<Word> {
        if value.is_reference() && self.held.insert(value.0) {
            let list = self.cx.cons(value, self.constants.get(1))?;
            self.constants.set(1, list);
        }
        Ok(value)
    }

    fn constant(&mut self, value: Word) -> Done<Node> {
        Ok(Node::Constant(self.hold(value)?))
    }

    fn shown(&mut self, value: Word) -> String {
        self.cx.show_short(value)
    }

    fn progn(&mut self, body: Word) -> Done<Node> {
        if body.is_cons() && body.get(1).is_nil() {
            return self.form(body.get(0));
        }
        Ok(Node::Sequence(self.forms(body)?))
    }

    fn forms(&mut self, list: Word) -> Done<Vec<Node>> {
        let forms: Vec<Word> = list.iter().collect();
        forms.into_iter().map(|form| self.form(form)).collect()
    }

    /// Goes one form further in.
    fn deeper(&mut self, inside: impl FnOnce(&mut Self) -> Done<Node>) -> Done<Node> {
        self.cx.check_stack()?;
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let done = inside(self);
        self.depth -= 1;
        done
    }

    fn form(&mut self, form: Word) -> Done<Node> {
        if form.is_symbol_object() {
            return self.variable(form);
        }
        if !form.is_cons() {
            return self.constant(form);
        }
        let node = self.deeper(|it| it.compound(form))?;
        if matches!(node, Node::Constant(_) | Node::Local(_)) {
            return Ok(node);
        }
        Ok(Node::At(self.hold(form)?, Box::new(node)))
    }

    fn compound(&mut self, form: Word) -> Done<Node> {
        let (head, rest) = (form.get(0), form.get(1));
        if !head.is_symbol_object() {
            return self.odd_head(form);
        }
        if let Some(node) = self.local_call(form)? {
            return Ok(node);
        }
        let function = head.get(symbol::FUNCTION);
        if let Some(number) = function.as_special_form() {
            return self.special(FORMS[number].0, form);
        }
        if function.car() == self.cx.world.names.macro_ {
            let expansion = self.expand(form, function)?;
            return self.form(expansion);
        }
        if rest.is_symbol_object() && function == Word::UNBOUND {
            let (object, name) = (self.variable(head)?, self.constant(rest)?);
            return Ok(Node::Runtime(Helper::SlotNamed, vec![object, name]));
        }
        let arguments = self.arguments(form)?;
        self.call(form, head, arguments)
    }

    fn arguments(&mut self, form: Word) -> Done<Vec<Node>> {
        if form.get(1).end() != Some(Word::NIL) {
            return refuse(format!("{} ends in a dot, or not at all", self.shown(form)));
        }
        self.forms(form.get(1))
    }

    /// The expansion of a macro's call, kept.
    fn expand(&mut self, form: Word, function: Word) -> Done<Word> {
        let mark = self.cx.mark();
        self.cx.push(form)?;
        self.cx.push(function)?;
        let expansion = self.cx.expand_pushed(form, function)?;
        self.hold(expansion)?;
        self.cx.release(mark);
        Ok(expansion)
    }

    fn odd_head(&mut self, form: Word) -> Done<Node> {
        let (head, rest) = (form.get(0), form.get(1));
        if head.car() == self.cx.world.names.lambda {
            let function = Node::Closure(self.function(Word::NIL, head.cdr(), Word::NIL)?);
            let arguments = self.arguments(form)?;
            return Ok(Node::Apply { form: self.hold(form)?, function: Box::new(function), arguments });
        }
        if !head.is_cons() && rest.is_symbol_object() {
            let (object, name) = (self.constant(head)?, self.constant(rest)?);
            return Ok(Node::Runtime(Helper::SlotNamed, vec![object, name]));
        }
        refuse(format!("{} is no function", self.shown(head)))
    }
}
