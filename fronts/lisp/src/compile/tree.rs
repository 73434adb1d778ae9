//! The tree of a function, between its source list and machine code: macros are expanded and names resolved.

use super::runtime::Helper;
use crate::value::Value as Word;
use cranelift_codegen::ir::condcodes::IntCC;
use std::cell::Cell;
use std::rc::Rc;

/// A lexical variable. One that is captured and assigned is stored in a cell of the heap, which closures share; any
/// other is copied into closures.
pub(super) struct Variable {
    /// Whether it is declared a fixnum, so that every assigned value is an untagged number.
    pub(super) fixnum: bool,
    pub(super) assigned: Cell<bool>,
    pub(super) captured: Cell<bool>,
    /// Number of the function that binds it.
    pub(super) owner: usize,
    /// Number of bits of the untagged number it holds, once it is bound; none for a word of Lisp.
    pub(super) width: Cell<Option<u32>>,
}

impl Variable {
    pub(super) fn is_cell(&self) -> bool {
        self.captured.get() && self.assigned.get()
    }
}

pub(super) type Var = Rc<Variable>;

/// An exit point is a block or tagbody.
pub(super) struct ExitPoint {
    /// The variable that holds its number, for exits that are not jumps.
    pub(super) target: Var,
    /// Whether it is exited from a closure, or through a construct that must be undone.
    pub(super) caught: Cell<bool>,
    pub(super) used: Cell<bool>,
}

/// An inlined operation. Each has a builtin with the same effect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Car,
    Cdr,
    Rplaca,
    Rplacd,
    Cons,
    Add,
    Subtract,
    /// The functions `1+` and `1-`.
    Step(i64),
    Consp,
    Not,
    Eq,
    Compare(IntCC),
}

/// Selects an argument of the function.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    /// The argument with an index.
    At(usize),
    /// The list of all arguments from an index.
    Rest(usize),
    /// The argument after a key, searched from an index.
    Key(Word, usize),
}

pub(super) enum TreeNode {
    Constant(Word),
    Local(Var),
    Assign(Var, Box<TreeNode>),
    /// A slot of an instance.
    Slot(Box<TreeNode>, usize),
    AssignSlot(Box<TreeNode>, usize, Box<TreeNode>),
    /// The `car` (0) or `cdr` (1), or nil for a value that is not a cons.
    Part(usize, Box<TreeNode>),
    /// A value that the program declares a fixnum.
    Plain(Box<TreeNode>),
    /// A fixnum; any other value is an error.
    Count(Box<TreeNode>),
    /// A list; any other value is an error.
    List(Box<TreeNode>),
    /// A comparison with a word for identity.
    Same(Box<TreeNode>, Word),
    Sequence(Vec<TreeNode>),
    If(Box<TreeNode>, Box<TreeNode>, Box<TreeNode>),
    Or(Box<TreeNode>, Box<TreeNode>),
    /// New variables, bound in parallel.
    Bind(Vec<(Var, TreeNode)>, Box<TreeNode>),
    /// A scope that undoes its dynamic bindings at the end.
    Scope(Box<TreeNode>),
    Block(Rc<ExitPoint>, Box<TreeNode>),
    Leave(Rc<ExitPoint>, Box<TreeNode>),
    /// An endless loop.
    Loop(Box<TreeNode>),
    /// The statements before the first tag and after each tag.
    Tags(Rc<ExitPoint>, Vec<TreeNode>),
    Go(Rc<ExitPoint>, usize),
    Catch(Box<TreeNode>, Box<TreeNode>),
    /// A form, and its cleanup.
    Protect(Box<TreeNode>, Box<TreeNode>),
    /// A form, and handler clauses: class, variable, body.
    Handle(Box<TreeNode>, Vec<(Word, Var, TreeNode)>),
    /// A closure of the function with a number.
    Closure(usize),
    /// Local functions, which may refer to each other.
    Functions(Vec<(Var, usize)>, Box<TreeNode>),
    Argument(Argument),
    /// A check that all given keys are known.
    CheckKeys(usize),
    Inline {
        op: Op,
        form: Word,
        head: Word,
        arguments: Vec<TreeNode>,
    },
    /// A call by name. `known` is false when the function was undefined at compilation: it is checked before the
    /// arguments.
    Call {
        form: Word,
        head: Word,
        known: bool,
        arguments: Vec<TreeNode>,
    },
    /// A call of a function value.
    Apply {
        form: Word,
        function: Box<TreeNode>,
        arguments: Vec<TreeNode>,
    },
    /// A direct call of a function compiled together, by number, with its closure, if any, and its exact number of
    /// arguments.
    Direct {
        function: usize,
        closure: Option<Var>,
        arguments: Vec<TreeNode>,
    },
    /// A call of a runtime helper with words.
    Runtime(Helper, Vec<TreeNode>),
    /// A call of a runtime helper with words on the root stack.
    Spread(Helper, Vec<TreeNode>),
    /// A form that is a cons, for the backtrace.
    At(Word, Box<TreeNode>),
}

/// Describes a function of machine code.
pub(super) struct Function {
    /// Its name in the output of `disassemble`.
    pub(super) text: String,
    /// Name and source, kept alive by the constants.
    pub(super) template: Word,
    pub(super) parameters: Word,
    /// The variables of the parameters, when the number of arguments is fixed.
    pub(super) required: Vec<Var>,
    /// The least and largest number of arguments, when the body reads them from the root stack.
    pub(super) range: Option<(usize, Option<usize>)>,
    /// Number of leading arguments that the caller does not count: a method's object and class.
    pub(super) hidden: usize,
    /// Captured variables of outer functions, in the order of the closure's slots.
    pub(super) captures: Vec<Var>,
    pub(super) body: TreeNode,
}

/// Holds a function, those inside it, and the constants of its code.
pub(super) struct Unit {
    /// The functions; the first is the compiled one.
    pub(super) functions: Vec<Function>,
    /// A cons whose rest is the list of constants.
    pub(super) constants: Word,
    pub(super) t: Word,
}
