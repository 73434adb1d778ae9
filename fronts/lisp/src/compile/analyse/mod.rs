//! Translates a source list to a tree: expands macros and resolves names.
//!
//! Decisions of the evaluator at run time are made once here: the meaning of names, which variables are special, and
//! the expansion of macros and `setf`. A malformed form is not compiled, as it would be an error at run time.

mod bind;
mod calls;
mod control;
mod define;
mod lambda;
mod names;
mod place;
mod special;

use super::refused::Refused;
use super::runtime::Helper;
use super::tree::{ExitPoint, Function, TreeNode, Unit, Var};
use crate::context::Context;
use crate::eval::special::FORMS;
use crate::value::{Value as Word, symbol};
use std::collections::HashSet;
use std::rc::Rc;

type Done<T> = Result<T, Refused>;

fn refuse<T>(why: impl Into<String>) -> Done<T> {
    Err(Refused::Form(why.into()))
}

/// Largest number of bytes of the machine stack that the generator needs per nested form.
const STACK_OF_A_FORM: usize = 8 << 10;

/// Tells the meaning of a name in the current scope.
enum ScopeEntry {
    Variable(Word, Var),
    Block(Word, Rc<ExitPoint>),
    Tags(Vec<Word>, Rc<ExitPoint>),
    /// A local function has a name, the variable that holds the closure, its number, and its number of arguments if
    /// fixed.
    Function(Word, Var, usize, Option<usize>),
    /// A local macro has a name and `(macro parameters . body)`.
    Macro(Word, Word),
    /// The slots of an object are variables with these names.
    Slots(Var, Vec<Word>),
    /// A function starts here: it captures variables from outside.
    Boundary,
    /// An exit from inside must undo this construct.
    Guard,
}

/// Holds the state of a function under analysis.
#[derive(Default)]
struct Open {
    number: usize,
    captures: Vec<Var>,
}

struct Analysis<'a> {
    cx: &'a mut Context,
    /// A cons on the root stack whose rest is the list of constants, and whose first part is a list of vectors with the
    /// source and the expansions during the analysis.
    constants: Word,
    held: HashSet<u64>,
    /// The values in these vectors.
    kept: HashSet<u64>,
    scope: Vec<ScopeEntry>,
    open: Vec<Open>,
    done: Vec<Option<Function>>,
    /// Current depth of nested forms; `deepest` is its maximum.
    depth: usize,
    deepest: usize,
    /// The name of the compiled function; `arity` is its number of arguments, if fixed.
    name: Word,
    arity: Option<usize>,
}

/// Describes the function to compile.
#[derive(Clone, Copy)]
pub(super) struct FunctionSource {
    pub(super) name: Word,
    /// The source `(parameters . body)`.
    pub(super) lambda: Word,
    /// The class of a method.
    pub(super) class: Word,
}

/// How a function gets its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    /// In registers, from calls by its name inside the same compiled function; a second entry serves other callers.
    Directly,
    /// From the root stack only.
    Elsewhere,
}

/// Analyses a function. Its constants stay on the root stack.
pub(super) fn analyse(cx: &mut Context, source: FunctionSource) -> Done<Unit> {
    let constants = cx.cons(Word::NIL, Word::NIL)?;
    cx.push(constants)?;
    let t = cx.world.names.t;
    let mut it = Analysis {
        cx,
        constants,
        held: HashSet::new(),
        kept: HashSet::new(),
        scope: Vec::new(),
        open: Vec::new(),
        done: Vec::new(),
        depth: 0,
        deepest: 0,
        name: source.name,
        arity: None,
    };
    it.hold(source.lambda)?;
    it.keep(source.lambda)?;
    let calls_itself_directly = source.class.is_nil() && !source.name.is_nil();
    let called = if calls_itself_directly { Called::Directly } else { Called::Elsewhere };
    it.function(source.name, source.lambda, source.class, called)?;
    if it.cx.machine_stack_left() < it.deepest * STACK_OF_A_FORM {
        it.cx.stack_overflow()?;
    }
    constants.set(0, Word::NIL);
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

    /// Keeps a tree of forms alive during the analysis, whatever macros do to it.
    fn keep(&mut self, tree: Word) -> Done<()> {
        /// Number of values in a vector: the root stack holds them while it is allocated.
        const MOST: usize = 1 << 14;
        let (mut all, mut left) = (Vec::new(), vec![tree]);
        while let Some(part) = left.pop() {
            if part.is_reference() && self.kept.insert(part.0) {
                all.push(part);
                if part.is_cons() {
                    left.extend([part.get(1), part.get(0)]);
                }
            }
        }
        for some in all.chunks(MOST) {
            let vector = self.cx.vector_from(some)?;
            let list = self.cx.cons(vector, self.constants.get(0))?;
            self.constants.set(0, list);
        }
        Ok(())
    }

    fn constant(&mut self, value: Word) -> Done<TreeNode> {
        Ok(TreeNode::Constant(self.hold(value)?))
    }

    fn shown(&mut self, value: Word) -> String {
        self.cx.show_short(value)
    }

    fn progn(&mut self, body: Word) -> Done<TreeNode> {
        if body.is_cons() && body.get(1).is_nil() {
            return self.form(body.get(0));
        }
        Ok(TreeNode::Sequence(self.forms(body)?))
    }

    fn forms(&mut self, list: Word) -> Done<Vec<TreeNode>> {
        let forms: Vec<Word> = list.iter().collect();
        forms.into_iter().map(|form| self.form(form)).collect()
    }

    /// Analyses a nested form and counts its depth.
    fn deeper(&mut self, inside: impl FnOnce(&mut Self) -> Done<TreeNode>) -> Done<TreeNode> {
        self.cx.check_stack()?;
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let done = inside(self);
        self.depth -= 1;
        done
    }

    fn form(&mut self, form: Word) -> Done<TreeNode> {
        if form.is_symbol_object() {
            return self.variable(form);
        }
        if !form.is_cons() {
            return self.constant(form);
        }
        let node = self.deeper(|it| it.compound(form))?;
        if matches!(node, TreeNode::Constant(_) | TreeNode::Local(_)) {
            return Ok(node);
        }
        Ok(TreeNode::At(self.hold(form)?, Box::new(node)))
    }

    fn compound(&mut self, form: Word) -> Done<TreeNode> {
        let (head, rest) = (form.get(0), form.get(1));
        if rest.is_symbol_object() {
            let (object, name) = (self.form(head)?, self.constant(rest)?);
            return Ok(TreeNode::Runtime(Helper::SlotNamed, vec![object, name]));
        }
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
        let arguments = self.arguments(form)?;
        self.call(form, head, arguments)
    }

    fn arguments(&mut self, form: Word) -> Done<Vec<TreeNode>> {
        if form.get(1).end() != Some(Word::NIL) {
            return refuse(format!("{} is a dotted or circular list", self.shown(form)));
        }
        self.forms(form.get(1))
    }

    /// Expands a macro call and keeps the expansion alive.
    fn expand(&mut self, form: Word, function: Word) -> Done<Word> {
        let mark = self.cx.mark();
        self.cx.push(form)?;
        self.cx.push(function)?;
        let expansion = self.cx.expand_pushed(form, function)?;
        self.hold(expansion)?;
        self.keep(expansion)?;
        self.cx.release(mark);
        Ok(expansion)
    }

    fn odd_head(&mut self, form: Word) -> Done<TreeNode> {
        let head = form.get(0);
        if head.car() == self.cx.world.names.lambda {
            let function =
                TreeNode::Closure(self.function(Word::NIL, head.cdr(), Word::NIL, Called::Elsewhere)?);
            let arguments = self.arguments(form)?;
            return Ok(TreeNode::Apply { form: self.hold(form)?, function: Box::new(function), arguments });
        }
        refuse(format!("{} is not a function", self.shown(head)))
    }
}
