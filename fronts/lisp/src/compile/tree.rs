//! A function between its source list and machine code: macros expanded, names resolved, special forms few.

use super::runtime::Helper;
use crate::value::Value as Word;
use cranelift_codegen::ir::condcodes::IntCC;
use std::cell::Cell;
use std::rc::Rc;

/// A lexical variable. One that closures capture and somebody assigns lives in a cell of the heap, which they share;
/// of any other a closure has a copy.
pub(super) struct Variable {
    /// Declared to be a fixnum: a plain number, whatever is assigned.
    pub(super) fixnum: bool,
    pub(super) assigned: Cell<bool>,
    pub(super) captured: Cell<bool>,
    /// The function that binds it.
    pub(super) owner: usize,
    /// Bits of the plain number it is kept as, once it is bound; none of a word of Lisp.
    pub(super) width: Cell<Option<u32>>,
}

impl Variable {
    pub(super) fn is_cell(&self) -> bool {
        self.captured.get() && self.assigned.get()
    }
}

pub(super) type Var = Rc<Variable>;

/// A block or tagbody.
pub(super) struct Exit {
    /// Its number, for those who come from elsewhere.
    pub(super) target: Var,
    /// Somebody leaves from a closure, or through something that must be put back.
    pub(super) caught: Cell<bool>,
    pub(super) used: Cell<bool>,
}

/// What becomes a few instructions. Each has a builtin that does the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Car,
    Cdr,
    Rplaca,
    Rplacd,
    Cons,
    Add,
    Subtract,
    /// `1+` and `1-`.
    Step(i64),
    Consp,
    Not,
    Eq,
    Compare(IntCC),
}

/// What a function was called with.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    /// The one of that number.
    At(usize),
    /// A list of all from that number.
    Rest(usize),
    /// The one after that key, from that number.
    Key(Word, usize),
}

pub(super) enum Node {
    Constant(Word),
    Local(Var),
    Assign(Var, Box<Node>),
    /// A slot of an instance.
    Slot(Box<Node>, usize),
    AssignSlot(Box<Node>, usize, Box<Node>),
    /// `car` (0) or `cdr` (1), nil of what is no cons.
    Part(usize, Box<Node>),
    /// The program says that this is a fixnum.
    Plain(Box<Node>),
    /// A fixnum, or an error.
    Count(Box<Node>),
    /// A list, or an error.
    List(Box<Node>),
    /// The same word.
    Same(Box<Node>, Word),
    Sequence(Vec<Node>),
    If(Box<Node>, Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    /// New variables of values that are found first.
    Bind(Vec<(Var, Node)>, Box<Node>),
    /// Dynamic bindings made inside end here.
    Scope(Box<Node>),
    Block(Rc<Exit>, Box<Node>),
    Leave(Rc<Exit>, Box<Node>),
    /// For ever.
    Loop(Box<Node>),
    /// What comes before the first tag, and what comes after each.
    Tags(Rc<Exit>, Vec<Node>),
    Go(Rc<Exit>, usize),
    Catch(Box<Node>, Box<Node>),
    /// A form, and what runs after it in any case.
    Protect(Box<Node>, Box<Node>),
    /// A form, and clauses: class, variable, body.
    Handle(Box<Node>, Vec<(Word, Var, Node)>),
    /// A closure of the function of that number.
    Closure(usize),
    /// Local functions; they may see each other.
    Functions(Vec<(Var, usize)>, Box<Node>),
    Argument(Argument),
    /// Keys that were given and are not known are an error.
    CheckKeys(usize),
    Inline {
        op: Op,
        form: Word,
        head: Word,
        arguments: Vec<Node>,
    },
    /// A call by name. One that had no function when this was compiled is looked at before the arguments are.
    Call {
        form: Word,
        head: Word,
        known: bool,
        arguments: Vec<Node>,
    },
    /// A call of a function that is a value.
    Apply {
        form: Word,
        function: Box<Node>,
        arguments: Vec<Node>,
    },
    /// The function compiled here of that number, and its closure, if any; with as many arguments as it takes.
    Direct {
        function: usize,
        closure: Option<Var>,
        arguments: Vec<Node>,
    },
    /// A helper of the runtime with these words.
    Runtime(Helper, Vec<Node>),
    /// A helper of the runtime with these words on the root stack.
    Spread(Helper, Vec<Node>),
    /// A form that is a cons, for the list of calls an error came through.
    At(Word, Box<Node>),
}

/// One function of machine code.
pub(super) struct Function {
    /// What `disassemble` calls it.
    pub(super) text: String,
    /// Name and source, kept by the constants.
    pub(super) template: Word,
    pub(super) parameters: Word,
    /// The variables of parameters that must be there, and not more may be.
    pub(super) required: Vec<Var>,
    /// Of parameters that take the arguments as they come: how few and how many there may be. The body takes them.
    pub(super) range: Option<(usize, Option<usize>)>,
    /// Arguments in front that the caller does not count: a method's object and class.
    pub(super) hidden: usize,
    /// Variables of functions around, in the order a closure keeps them.
    pub(super) captures: Vec<Var>,
    pub(super) body: Node,
}

/// A function, those inside of it, and a list of what its code refers to.
pub(super) struct Unit {
    /// The first is the function itself.
    pub(super) functions: Vec<Function>,
    /// A cons whose rest is the list.
    pub(super) constants: Word,
    pub(super) t: Word,
}
