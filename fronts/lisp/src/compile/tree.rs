//! Defines the tree of a function, the form between its source list and machine code, in which macros are expanded and
//! names resolved.

use super::runtime::Helper;
use crate::value::Value as Word;
use cranelift_codegen::ir::condcodes::IntCC;
use std::cell::Cell;
use std::rc::Rc;

/// A lexical variable that is captured and assigned is stored in a cell of the heap, which closures share; any other
/// is copied into closures.
pub(super) struct Variable {
    /// Whether it is declared a fixnum, so that every assigned value is an untagged number.
    pub(super) fixnum: bool,
    pub(super) assigned: Cell<bool>,
    pub(super) captured: Cell<bool>,
    /// Number of the function that binds it.
    pub(super) owner: usize,
    /// Number of bits of the untagged number that the variable holds, once it is bound; `None` if it holds a word of
    /// Lisp.
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

/// An inlined operation has the same effect as a builtin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Car,
    Cdr,
    Rplaca,
    Rplacd,
    Cons,
    Add,
    Subtract,
    Multiply,
    Divide,
    /// Adds a constant, as the functions `1+` and `1-` do.
    Step(i64),
    Absolute,
    /// Converts a number to a float.
    Float,
    Consp,
    Not,
    Eq,
    Compare(IntCC),
    /// Compares a number with zero.
    Sign(IntCC),
    /// Reads an element of a vector or array.
    Element,
    /// Writes an element of a vector or array, and returns the new value.
    SetElement,
}

/// Tells which function a name denotes at compilation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Callee {
    /// The name has no function: each call checks it before the arguments.
    Undefined,
    Builtin,
    /// The function is written in Lisp.
    Program,
}

/// Selects an argument of the function.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    /// Selects the argument with an index.
    At(usize),
    /// Selects the list of all arguments from an index.
    Rest(usize),
    /// Selects the argument after a key, searched from an index.
    Key(Word, usize),
}

pub(super) enum TreeNode {
    Constant(Word),
    Local(Var),
    Assign(Var, Box<TreeNode>),
    /// Reads a slot of an instance.
    Slot(Box<TreeNode>, usize),
    AssignSlot(Box<TreeNode>, usize, Box<TreeNode>),
    /// Reads the `car` (0) or `cdr` (1), or nil for a value that is not a cons.
    Part(usize, Box<TreeNode>),
    /// Evaluates a form that the program declares a fixnum.
    Plain(Box<TreeNode>),
    /// Evaluates a node to a fixnum, and signals an error for any other value.
    Count(Box<TreeNode>),
    /// Evaluates a node to a list, and signals an error for any other value.
    List(Box<TreeNode>),
    /// Compares the value with a word for identity.
    Same(Box<TreeNode>, Word),
    Sequence(Vec<TreeNode>),
    If(Box<TreeNode>, Box<TreeNode>, Box<TreeNode>),
    Or(Box<TreeNode>, Box<TreeNode>),
    /// Binds new variables in parallel.
    Bind(Vec<(Var, TreeNode)>, Box<TreeNode>),
    /// Undoes the dynamic bindings of its body at the end.
    Scope(Box<TreeNode>),
    Block(Rc<ExitPoint>, Box<TreeNode>),
    Leave(Rc<ExitPoint>, Box<TreeNode>),
    /// Repeats its body endlessly.
    Loop(Box<TreeNode>),
    /// Runs the statements before the first tag and after each tag.
    Tags(Rc<ExitPoint>, Vec<TreeNode>),
    Go(Rc<ExitPoint>, usize),
    Catch(Box<TreeNode>, Box<TreeNode>),
    /// Evaluates a form, and then its cleanup.
    Protect(Box<TreeNode>, Box<TreeNode>),
    /// Evaluates a form with handler clauses: class, variable, body.
    Handle(Box<TreeNode>, Vec<(Word, Var, TreeNode)>),
    /// Creates a closure of the function with this number.
    Closure(usize),
    /// Binds local functions, which may refer to each other.
    Functions(Vec<(Var, usize)>, Box<TreeNode>),
    Argument(Argument),
    /// Checks that all given keys are known.
    CheckKeys(usize),
    /// Evaluates an inlined operation, or calls `function`, a builtin, for operands that machine code does not handle.
    Inline {
        op: Op,
        form: Word,
        function: Word,
        arguments: Vec<TreeNode>,
    },
    /// Calls a function by name.
    Call {
        form: Word,
        head: Word,
        callee: Callee,
        arguments: Vec<TreeNode>,
    },
    /// Calls a function value.
    Apply {
        form: Word,
        function: Box<TreeNode>,
        arguments: Vec<TreeNode>,
    },
    /// Calls a function of the same compilation by its number, with its closure, if it has one, and exactly the
    /// arguments that it expects.
    Direct {
        function: usize,
        closure: Option<Var>,
        arguments: Vec<TreeNode>,
    },
    /// Calls a function of the runtime, which gets the values of the nodes as its arguments.
    Runtime(Helper, Vec<TreeNode>),
    /// Calls a function of the runtime, which finds the values of the nodes on the root stack.
    Spread(Helper, Vec<TreeNode>),
    /// Evaluates a node. An error in it has this form, a cons, in its backtrace.
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
