//! Generates closures, and calls by name, of values, of functions compiled together, and of the runtime.

use super::{Generator, OBJECT, Pad, Type, Typed, key};
use crate::compile::jit::{Effort, EntryPoints};
use crate::compile::runtime::{self, Helper};
use crate::compile::slot;
use crate::compile::tree::{Callee, Function, Op, TreeNode, Var};
use crate::context::{Context, Fixed};
use crate::value::{ObjectKind, Value as Word, symbol};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder as _, Value, types};

/// Returns whether a node's value needs no call and stays alive as long as the function runs or its variable exists.
fn is_at_hand(node: &TreeNode, of: Type) -> bool {
    match node {
        TreeNode::Constant(_) => true,
        TreeNode::Local(variable) => of == Type::Any && !variable.assigned.get(),
        _ => false,
    }
}

impl Generator<'_, '_> {
    /// Generates a function's entry, for callers that have its arguments on the root stack.
    pub(super) fn hand_over(&mut self, function: &Function, given: &[Value]) {
        let EntryPoints { direct: Some(direct), .. } = self.entry_points[self.number] else {
            unreachable!("the function has two entry points")
        };
        let gone = self.b.create_block();
        self.pads.push(Pad { block: Some(gone), passed: None });
        let (closure, first, count) = (given[1], given[2], given[3]);
        let wrong = self.b.ins().icmp_imm_s(IntCC::NotEqual, count, function.required.len() as i64);
        self.wrong_count(wrong, function, count);
        let mut words = vec![self.context];
        if !function.captures.is_empty() {
            words.push(closure);
        }
        for index in 0..function.required.len() {
            let word = self.load(first, index * 8);
            words.push(word);
        }
        let direct = self.reference(direct);
        let answer = self.call_code(direct, &words);
        self.b.ins().return_(&[answer]);
        self.b.switch_to_block(gone);
        let none = self.number(runtime::GONE);
        self.b.ins().return_(&[none]);
    }

    /// Evaluates arguments into adjacent roots; returns the number of the first root, and the words.
    pub(super) fn arguments(&mut self, nodes: &[TreeNode]) -> (usize, Vec<Value>) {
        let first = self.roots;
        for _ in nodes {
            self.root();
        }
        let mut values = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let value = self.word_of(node);
            self.keep(value, first + index);
            values.push(value);
        }
        (first, values)
    }

    /// Calls a function, a value or a symbol, with arguments in the roots.
    pub(super) fn called(&mut self, form: Word, function: Value, first: usize, count: usize) -> Value {
        let (place, form, count) = (self.place(first), self.number(form.0), self.number(count as u64));
        self.import_checked(Helper::Call, &[form, function, place, count])
    }

    pub(super) fn call(&mut self, form: Word, head: Word, callee: Callee, arguments: &[TreeNode]) -> Typed {
        if callee == Callee::Undefined {
            self.look_at(form, head);
        }
        let (first, _) = self.arguments(arguments);
        // Warm code mostly calls functions that are lists, for which `called_compiled` would only be more code.
        if callee == Callee::Builtin || self.compiler.effort == Effort::Low {
            let function = self.number(head.0);
            return Typed::any(self.called(form, function, first, arguments.len()));
        }
        self.called_compiled(form, head, first, arguments.len())
    }

    /// Calls a function by name with arguments in the roots: its machine code, if it is compiled, without the runtime.
    fn called_compiled(&mut self, form: Word, head: Word, first: usize, count: usize) -> Typed {
        let root = self.root();
        let symbol = self.number(head.address() as u64);
        let function = self.load(symbol, symbol::FUNCTION * 8);
        let (look, quick, slow) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let (after, answer) = self.joint();
        let object = self.has_tag(function, OBJECT);
        self.b.ins().brif(object, look, &[], slow, &[]);
        self.b.switch_to_block(look);
        let compiled = self.is_kind(function, ObjectKind::Compiled);
        self.b.ins().brif(compiled, quick, &[], slow, &[]);
        self.b.switch_to_block(quick);
        // The caller keeps the function alive, and names the form in errors.
        self.keep(function, root);
        let roots = self.load(self.context, Context::ROOTS_OFFSET);
        let named = self.number(form.0);
        self.store(named, roots, Fixed::Form as usize * 8);
        let code = self.load(function, slot::CODE * 8);
        let code = self.b.ins().ushr_imm_u(code, 4);
        let (place, given) = (self.place(first), self.number(count as u64));
        let signature = self.entry_signature();
        let call = self.b.ins().call_indirect(signature, code, &[self.context, function, place, given]);
        let word = self.b.inst_results(call)[0];
        self.check(word);
        self.b.ins().jump(after, &[word.into()]);
        self.b.switch_to_block(slow);
        let name = self.number(head.0);
        let word = self.called(form, name, first, count);
        self.b.ins().jump(after, &[word.into()]);
        self.b.switch_to_block(after);
        Typed::any(answer)
    }

    /// Signals an undefined function before its arguments are evaluated.
    fn look_at(&mut self, form: Word, head: Word) {
        let symbol = self.number(head.address() as u64);
        let function = self.load(symbol, symbol::FUNCTION * 8);
        let object = self.has_tag(function, OBJECT);
        let (rare, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(rare);
        self.b.ins().brif(object, on, &[], rare, &[]);
        self.b.switch_to_block(rare);
        let (form, head) = (self.number(form.0), self.number(head.0));
        self.import_checked(Helper::Known, &[form, head]);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    pub(super) fn apply(&mut self, form: Word, function: &TreeNode, arguments: &[TreeNode]) -> Typed {
        let function = self.word_of(function);
        let root = self.root();
        self.keep(function, root);
        let (first, _) = self.arguments(arguments);
        Typed::any(self.called(form, function, first, arguments.len()))
    }

    /// Evaluates operands that are used before the next safepoint. An operand needs a root only while later ones are
    /// evaluated.
    pub(super) fn operands(&mut self, nodes: &[TreeNode]) -> Vec<Value> {
        let mut values = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let value = self.word_of(node);
            if nodes[index + 1..].iter().any(|later| !self.is_quiet(later)) {
                let root = self.root();
                self.keep(value, root);
            }
            values.push(value);
        }
        values
    }

    /// Returns whether a node is evaluated without a safepoint or side effect.
    pub(super) fn is_quiet(&self, node: &TreeNode) -> bool {
        match node {
            TreeNode::Constant(_) => true,
            TreeNode::Local(_) => self.width(node).is_none(),
            TreeNode::At(_, node) | TreeNode::Part(_, node) | TreeNode::Same(node, _) => self.is_quiet(node),
            TreeNode::Inline { op: Op::Car | Op::Cdr | Op::Consp | Op::Not, arguments, .. } => {
                arguments.iter().all(|argument| self.is_quiet(argument))
            }
            _ => false,
        }
    }

    /// Calls a builtin with words in registers.
    pub(super) fn call_builtin(&mut self, form: Word, function: Word, values: &[Value]) -> Value {
        let first = self.roots;
        for value in values {
            let root = self.root();
            self.keep(*value, root);
        }
        let function = self.number(function.0);
        self.called(form, function, first, values.len())
    }

    /// Calls a compiled function directly; the callee keeps its arguments alive.
    pub(super) fn direct(&mut self, function: usize, closure: Option<&Var>, arguments: &[TreeNode]) -> Typed {
        let mut words = vec![self.context];
        if let Some(closure) = closure.filter(|_| !self.unit.functions[function].captures.is_empty()) {
            let closure = self.read(closure);
            words.push(closure.value);
        }
        words.extend(self.operands(arguments));
        let EntryPoints { direct: Some(code), .. } = self.entry_points[function] else {
            unreachable!("a function with a fixed number of arguments has two entry points")
        };
        let code = self.reference(code);
        let word = self.call_code(code, &words);
        self.check(word);
        Typed::any(word)
    }

    pub(super) fn runtime(&mut self, helper: Helper, arguments: &[TreeNode]) -> Typed {
        match (helper, arguments) {
            (Helper::Global, &[TreeNode::Constant(name)]) if name.is_symbol_object() => {
                return self.global(name);
            }
            (Helper::SetGlobal, [TreeNode::Constant(name), value]) if name.is_symbol_object() => {
                return self.set_global(*name, value);
            }
            _ => {}
        }
        let mut words = Vec::new();
        for node in arguments {
            let value = self.word_of(node);
            if !is_at_hand(node, self.type_of(node)) {
                let root = self.root();
                self.keep(value, root);
            }
            words.push(value);
        }
        Typed::any(self.import_checked(helper, &words))
    }

    pub(super) fn spread(&mut self, helper: Helper, arguments: &[TreeNode]) -> Typed {
        let (first, values) = self.arguments(arguments);
        let (place, count) = (self.place(first), self.number(values.len() as u64));
        Typed::any(self.import_checked(helper, &[place, count]))
    }

    /// Creates a closure. Its captured variables in `later` are filled in afterwards.
    pub(super) fn closure_of(&mut self, number: usize, later: &[Var]) -> Typed {
        let unit = self.unit;
        let function = &unit.functions[number];
        let first = self.roots;
        for _ in &function.captures {
            self.root();
        }
        for (index, variable) in function.captures.iter().enumerate() {
            let value = if later.iter().any(|own| key(own) == key(variable)) {
                self.number(0)
            } else {
                self.shared(variable)
            };
            self.keep(value, first + index);
        }
        let code = self.reference(self.entry_points[number].entry);
        let code = self.b.ins().func_addr(types::I64, code);
        let (template, constants) = (self.number(function.template.0), self.number(unit.constants.0));
        let (place, count) = (self.place(first), self.number(function.captures.len() as u64));
        Typed::any(self.import_checked(Helper::Close, &[code, template, constants, place, count]))
    }

    /// Creates local functions, and then fills in their references to each other.
    pub(super) fn functions(&mut self, functions: &[(Var, usize)], body: &TreeNode) -> Typed {
        let unit = self.unit;
        let variables: Vec<Var> = functions.iter().map(|(variable, _)| variable.clone()).collect();
        for (index, (variable, number)) in functions.iter().enumerate() {
            let root = self.root();
            let before = self.roots;
            let closure = self.closure_of(*number, &variables[index..]);
            self.roots = before;
            self.keep(closure.value, root);
            self.bind_word(variable, closure.value, root);
        }
        for (index, (variable, number)) in functions.iter().enumerate() {
            let captures = &unit.functions[*number].captures;
            for (place, captured) in captures.iter().enumerate() {
                if variables[index..].iter().any(|own| key(own) == key(captured)) {
                    let closure = self.read(variable);
                    let value = self.shared(captured);
                    self.store(value, closure.value, (slot::CAPTURED + place) * 8);
                }
            }
        }
        self.node(body)
    }
}
