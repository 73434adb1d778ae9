//! Translates a tree to Cranelift's intermediate representation.
//!
//! Variables are in registers. Those that may hold references also have a root, which is written at each assignment:
//! objects never move, so the register's word stays valid. Numbers known to be fixnums are untagged.
//!
//! # Exits
//! A call that returns no word jumps to the innermost *pad*. The pad of a form passes a list, of the form and those around
//! it, to a call that adds them to the backtrace; the pad of a `catch` or similar form checks whether the exit has
//! arrived, and continues at the enclosing pad. The last one returns from the function.

mod arithmetic;
mod calls;
mod control;
mod element;
mod frame;
mod inline;
mod number;
mod pads;
mod variables;
mod words;

use super::jit::{Compiler, EntryPoints};
use super::made::Listing;
use super::passed::PassedForm;
use super::tree::{ExitPoint, Function, TreeNode, Unit, Var, Variable};
use crate::value::Value as Word;
use cranelift_codegen::ir::{Block, FuncRef, MemFlagsData, SigRef, Value};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable as Register};
use cranelift_module::{FuncId, Module as _};
use std::collections::HashMap;
use std::rc::Rc;

/// Tag of a reference to a cons.
const CONS: i64 = 0b0100;
/// Tag of a reference to an object.
const OBJECT: i64 = 0b1000;

/// Tells how a value is represented in its register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    /// The register holds a word of Lisp.
    Any,
    /// The register holds an untagged number.
    Fixnum,
}

#[derive(Clone, Copy)]
struct Typed {
    value: Value,
    of: Type,
}

impl Typed {
    fn any(value: Value) -> Typed {
        Typed { value, of: Type::Any }
    }
}

/// Tells where a variable of this function is stored.
#[derive(Clone, Copy)]
struct LocalVariable {
    register: Register,
    /// Number of its root; none for untagged numbers.
    root: Option<usize>,
}

/// Holds the continuation of a block or tagbody.
struct ExitTarget {
    after: Block,
    tags: Vec<Block>,
}

/// The pad of a function, or of a construct such as `catch` that can end an exit.
struct Pad {
    /// Created at its first use.
    block: Option<Block>,
    /// The block that adds forms to the backtrace of an error before it continues at the pad.
    passed: Option<Block>,
}

/// The pad of a form; it continues at the pad of the innermost construct.
struct FormPad {
    form: Word,
    /// The form and the forms around it up to the construct, created when the pad of this form or of one in it is used.
    forms: Option<*const PassedForm>,
    block: Option<Block>,
}

struct Generator<'a, 'b> {
    b: FunctionBuilder<'b>,
    compiler: &'a mut Compiler,
    unit: &'a Unit,
    entry_points: &'a [EntryPoints],
    number: usize,
    referred: HashMap<FuncId, FuncRef>,
    /// The signature of the entry of every compiled function, once it is used.
    entry_signature: Option<SigRef>,
    context: Value,
    gc: Value,
    /// The top of the root stack at entry to the function.
    frame: Value,
    /// The closure, if there are captured variables.
    closure: Option<Value>,
    /// Address and number of the arguments on the root stack, if the body reads them there.
    given: Option<(Value, Value)>,
    roots: usize,
    most_roots: usize,
    locals: HashMap<*const Variable, LocalVariable>,
    exits: HashMap<*const ExitPoint, ExitTarget>,
    /// Pads of the function and of its constructs that look at exits, innermost last.
    pads: Vec<Pad>,
    /// Pads of the forms inside the innermost construct, innermost last.
    form_pads: Vec<FormPad>,
    /// Pads of forms to be generated at the end: pad, forms, and block that adds them to the backtrace.
    pending: Vec<(Block, *const PassedForm, Block)>,
    /// Blocks that add forms to the backtrace, to be generated at the end, each with the pad that follows.
    passing: Vec<(Block, Block)>,
}

/// Generates a function's code and returns its text.
pub(super) fn function(
    compiler: &mut Compiler,
    unit: &Unit,
    entry_points: &[EntryPoints],
    number: usize,
    listing: Listing,
) -> Result<String, String> {
    let function = &unit.functions[number];
    let mut text = format!("; {}\n", function.text);
    let EntryPoints { entry, direct } = entry_points[number];
    let mut define = |id, fill: Fill| define(compiler, unit, entry_points, number, id, listing, fill);
    if let Some(direct) = direct {
        text += &define(direct, |it, own, given| it.whole(own, given))?;
        text += "; from the root stack\n";
        text += &define(entry, |it, own, given| it.hand_over(own, given))?;
    } else {
        text += &define(entry, |it, own, given| it.whole(own, given))?;
    }
    Ok(text)
}

/// Generates the code of a function from its parameters.
type Fill = fn(&mut Generator<'_, '_>, &Function, &[Value]);

fn define(
    compiler: &mut Compiler,
    unit: &Unit,
    entry_points: &[EntryPoints],
    number: usize,
    id: FuncId,
    listing: Listing,
    fill: Fill,
) -> Result<String, String> {
    let mut context = compiler.module.make_context();
    context.func.signature = compiler.module.declarations().get_function_decl(id).signature.clone();
    let mut shared = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut shared);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let given: Vec<Value> = b.block_params(entry).to_vec();
    let mut it = Generator {
        b,
        compiler,
        unit,
        entry_points,
        number,
        referred: HashMap::new(),
        entry_signature: None,
        context: given[0],
        gc: given[0],
        frame: given[0],
        closure: None,
        given: None,
        roots: 0,
        most_roots: 0,
        locals: HashMap::new(),
        exits: HashMap::new(),
        pads: Vec::new(),
        form_pads: Vec::new(),
        pending: Vec::new(),
        passing: Vec::new(),
    };
    fill(&mut it, &unit.functions[number], &given);
    let Generator { mut b, compiler, .. } = it;
    b.seal_all_blocks();
    b.finalize(compiler.module.target_config());
    context.set_disasm(listing == Listing::Text);
    compiler.module.define_function(id, &mut context).map_err(|cause| format!("{cause:?}"))?;
    Ok(context.compiled_code().and_then(|code| code.vcode.clone()).unwrap_or_default())
}

impl Generator<'_, '_> {
    const TRUSTED: MemFlagsData = MemFlagsData::trusted();

    /// Evaluates a node and frees the roots that it used.
    fn node(&mut self, node: &TreeNode) -> Typed {
        let before = self.roots;
        let typed = self.node_on(node);
        self.roots = before;
        typed
    }

    fn word_of(&mut self, node: &TreeNode) -> Value {
        if let TreeNode::Constant(value) = node {
            return self.number(value.0);
        }
        if let TreeNode::At(form, node) = node {
            return self.on_behalf(*form, |it| it.word_of(node));
        }
        let typed = self.node(node);
        self.word(typed)
    }

    fn node_on(&mut self, node: &TreeNode) -> Typed {
        match node {
            TreeNode::Constant(value) => self.constant(*value),
            TreeNode::Local(variable) => self.read(variable),
            TreeNode::Assign(variable, value) => self.assign(variable, value),
            TreeNode::Slot(object, index) => {
                let object = self.word_of(object);
                Typed::any(self.load(object, 8 * index))
            }
            TreeNode::AssignSlot(object, index, value) => {
                let value = self.word_of(value);
                let object = self.word_of(object);
                self.store(value, object, 8 * index);
                Typed::any(value)
            }
            TreeNode::Part(index, list) => self.part_or_nil(list, *index),
            TreeNode::Plain(node) => {
                let typed = self.node(node);
                Typed { value: self.plain(typed), of: Type::Fixnum }
            }
            TreeNode::Count(node) => self.count(node),
            TreeNode::List(node) => self.list(node),
            TreeNode::Sequence(nodes) => {
                let mut last = None;
                for node in nodes {
                    last = Some(self.node(node));
                }
                last.unwrap_or_else(|| self.nil())
            }
            TreeNode::If(test, yes, no) => self.choose(test, yes, no, self.type_of(node)),
            TreeNode::Or(first, others) => self.or(first, others),
            TreeNode::Bind(bindings, body) => self.bind(bindings, body),
            TreeNode::Scope(body) => self.scope(body),
            TreeNode::Block(exit, body) => self.block(exit, body),
            TreeNode::Leave(exit, value) => self.leave_block(exit, value),
            TreeNode::Loop(body) => self.repeat(body),
            TreeNode::Tags(exit, parts) => self.tags(exit, parts),
            TreeNode::Go(exit, index) => self.go(exit, *index),
            TreeNode::Catch(tag, body) => self.catch(tag, body),
            TreeNode::Protect(form, cleanup) => self.protect(form, cleanup),
            TreeNode::Handle(form, clauses) => self.handle(form, clauses),
            TreeNode::Closure(number) => self.closure_of(*number, &[]),
            TreeNode::Functions(functions, body) => self.functions(functions, body),
            TreeNode::Argument(argument) => self.argument(*argument),
            TreeNode::CheckKeys(from) => self.check_keys(*from),
            TreeNode::Inline { op, form, function, arguments } => {
                self.inline(*op, *form, *function, arguments)
            }
            TreeNode::Call { form, head, callee, arguments } => self.call(*form, *head, *callee, arguments),
            TreeNode::Apply { form, function, arguments } => self.apply(*form, function, arguments),
            TreeNode::Direct { function, closure, arguments } => {
                self.direct(*function, closure.as_ref(), arguments)
            }
            TreeNode::Runtime(helper, arguments) => self.runtime(*helper, arguments),
            TreeNode::Spread(helper, arguments) => self.spread(*helper, arguments),
            TreeNode::At(form, node) => self.on_behalf(*form, |it| it.node(node)),
            TreeNode::Same(..) => self.truth_of(node),
        }
    }

    fn function(&self) -> &Function {
        &self.unit.functions[self.number]
    }
}

/// Returns the variable's address as a key.
fn key(variable: &Var) -> *const Variable {
    Rc::as_ptr(variable)
}
