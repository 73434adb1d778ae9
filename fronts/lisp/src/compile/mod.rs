//! Implements `compile`: generates machine code for functions and methods, from the source list that the evaluator
//! interprets.
//!
//! # Picture
//! ```text
//!   (lambda parameters . body) ──analyse──► tree ──generate──► Cranelift's IR ──jit──► entry(context, function, arguments, count) -> word
//!                                 macros     few                                           │
//!                                 names      nodes                                         └──calls──► runtime
//! ```
//! The tree has few kinds of nodes: a form that gains nothing from inlining is a call of the runtime, which uses the
//! evaluator's own functions. Errors, their classes and the backtrace are those of the evaluator. The meaning of a
//! name is fixed at compilation: macros, special variables, and inlined functions of LISP. A function that is compiled by
//! its name calls itself directly, so that its redefinition does not affect calls under way; definitions of the library
//! (`warm.rs`) call themselves through their symbol.
//!
//! # Invariants
//! 1. A value that machine code needs after a safepoint is on the root stack; objects never move.
//! 2. A function keeps the list of its constants alive, and a caller keeps the function alive.
//! 3. No Lisp is evaluated during code generation: the thread is in state native.

mod analyse;
mod generate;
mod jit;
mod made;
mod passed;
mod reader;
mod refused;
mod runtime;
mod slot;
mod translate;
mod tree;
mod warm;

pub(crate) use jit::{Compiler, Effort, new_module};
pub(crate) use slot::source;

use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context, RootMark};
use crate::error::{ErrorClass, Exit};
use crate::eval::closure;
use crate::value::{ObjectKind, Value, symbol};
use crate::world::class;
use analyse::FunctionSource;
use made::{Listing, Made, make};
use refused::Refused;

pub(crate) const BUILTINS: &[Builtin] =
    &[builtin("COMPILE", 1, 2, compile), builtin("DISASSEMBLE", 1, 2, disassemble)];
pub(crate) use warm::{BUILTINS as LIBRARY_BUILTINS, is_own_method};

/// Returns the source of an interpreted or compiled function.
fn function_source(cx: &mut Context, name: Value, function: Value) -> Result<FunctionSource, Exit> {
    let lambda = if let Some(lambda) = cx.lambda_of(function) {
        lambda
    } else if function.is(ObjectKind::Compiled) {
        source(function)
    } else if function.is(ObjectKind::Closure) && function.slot(closure::ENVIRONMENT).is_nil() {
        cx.cons(function.slot(closure::PARAMETERS), function.slot(closure::BODY))?
    } else {
        return cx.type_error("interpreted function without a lexical environment", function);
    };
    cx.push(lambda)?;
    Ok(FunctionSource { name, lambda, class: Value::NIL })
}

/// Returns the definition of a method that a class defines, and pushes it.
fn method_definition(cx: &mut Context, class: Value, selector: Value) -> Answer {
    let methods = class.slot(class::slot::METHODS);
    let found = methods.iter().find(|method| method.car() == selector);
    let Some(method) = found else {
        let shown = cx.show_short(selector);
        return cx.error_about(
            ErrorClass::Undefined,
            format!("the class defines no method {shown}"),
            selector,
        );
    };
    let definition = method.cdr();
    cx.push(definition)?;
    Ok(definition)
}

/// Returns the source of the definition of a method.
fn method_source(class: Value, selector: Value, definition: Value) -> FunctionSource {
    let lambda = if definition.is(ObjectKind::Compiled) { source(definition) } else { definition };
    FunctionSource { name: selector, lambda, class }
}

fn say(cx: &mut Context, name: Value, why: &str) -> Result<(), Exit> {
    let stream = cx.global_value(cx.world.names.error_output);
    let text = format!("; {} stays interpreted: {why}\n", cx.show_short(name));
    cx.write_bytes(stream, text.as_bytes())
}

/// Compiles a function; prints the reason and returns none when it stays interpreted.
fn compiled(cx: &mut Context, source: FunctionSource) -> Result<Option<Value>, Exit> {
    match make(cx, source, Effort::High, Listing::None) {
        Ok(Made { code, constants, .. }) => {
            let template = cx.cons(source.name, source.lambda)?;
            cx.push(template)?;
            let function = runtime::new_function(cx, code, template, constants, 0)?;
            cx.push(function)?;
            Ok(Some(function))
        }
        Err(Refused::Exit(exit)) => Err(exit),
        Err(Refused::Form(why)) => {
            say(cx, source.name, &why)?;
            Ok(None)
        }
    }
}

/// Implements `(compile name)` and `(compile name lambda)`, which return the name (or the function, when the name is
/// nil), and `(compile class)` and `(compile class selector)`, which return the list of compiled methods. Functions
/// that stay interpreted give nil, or are not in the list.
fn compile(cx: &mut Context, args: Args<'_>) -> Answer {
    let name = args[0];
    if cx.is_class(name) {
        return compile_methods(cx, name, args.given(1));
    }
    let function = match args.given(1) {
        Some(function) => function,
        None if name.is_symbol_object() => return compile_named(cx, name),
        None => name,
    };
    let source = function_source(cx, if name.is_symbol() { name } else { Value::NIL }, function)?;
    let Some(function) = compiled(cx, source)? else { return Ok(Value::NIL) };
    if name.is_symbol_object() {
        cx.prepare_definition(name)?;
        name.set(symbol::FUNCTION, function);
        return Ok(name);
    }
    Ok(function)
}

/// Compiles a symbol's function; returns the name, or nil when the function stays interpreted. A function that another
/// thread, or the expansion of a macro, gave the symbol in the meantime is kept.
fn compile_named(cx: &mut Context, name: Value) -> Answer {
    let former = cx.function_named(name)?;
    if matches!(former.kind(), Some(ObjectKind::Compiled | ObjectKind::Builtin)) {
        return Ok(name);
    }
    cx.push(former)?;
    let source = function_source(cx, name, former)?;
    let Some(function) = compiled(cx, source)? else { return Ok(Value::NIL) };
    name.replace(symbol::FUNCTION, former, function);
    Ok(name)
}

/// Compiles a method that a class defines; returns whether it succeeded.
fn compile_method(cx: &mut Context, class: Value, selector: Value) -> Result<bool, Exit> {
    let former = method_definition(cx, class, selector)?;
    let source = method_source(class, selector, former);
    let Some(function) = compiled(cx, source)? else { return Ok(false) };
    // Another thread may have defined the method again in the meantime.
    cx.replace_method(class, selector, former, function)?;
    Ok(true)
}

fn compile_methods(cx: &mut Context, class: Value, selector: Option<Value>) -> Answer {
    let selectors = match selector {
        Some(selector) => vec![selector],
        None => class.slot(class::slot::METHODS).iter().map(Value::car).collect(),
    };
    let mut done = Value::NIL;
    for selector in selectors.into_iter().rev() {
        let mark = cx.mark();
        cx.push(done)?;
        if compile_method(cx, class, selector)? {
            done = cx.cons(selector, done)?;
        }
        cx.release(mark);
    }
    Ok(done)
}

/// Prints the machine code of a function, `(disassemble name)`, or of a method, `(disassemble class selector)`.
fn disassemble(cx: &mut Context, args: Args<'_>) -> Answer {
    let name = args[0];
    let source = match args.given(1) {
        Some(selector) if cx.is_class(name) => {
            let definition = method_definition(cx, name, selector)?;
            method_source(name, selector, definition)
        }
        _ => {
            let function = if name.is_symbol_object() { cx.function_named(name)? } else { name };
            function_source(cx, if name.is_symbol() { name } else { Value::NIL }, function)?
        }
    };
    match make(cx, source, Effort::High, Listing::Text) {
        Ok(Made { text, .. }) => {
            cx.write_bytes(Value::NIL, text.as_bytes())?;
            Ok(Value::NIL)
        }
        Err(Refused::Exit(exit)) => Err(exit),
        Err(Refused::Form(why)) => cx.error_about(ErrorClass::Control, why, name),
    }
}

/// A compiled function's entry takes context, function, address and number of its arguments.
type Entry = extern "C" fn(*mut Context, Value, *mut Value, usize) -> u64;

impl Context {
    /// Calls machine code with arguments on the stack. The caller keeps the function alive.
    pub(crate) fn call_compiled(&mut self, function: Value, first: RootMark, count: usize) -> Answer {
        let saved = (self.environment, self.local_functions);
        self.environment = Value::NIL;
        self.local_functions = false;
        let code = std::ptr::with_exposed_provenance::<u8>((function.slot(slot::CODE).0 >> 4) as usize);
        // SAFETY: only `make` stores such a slot, with the address of an entry; code is never freed.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(code) };
        let word = entry(self, function, Context::place(first), count);
        let value = runtime::answer(self, word)?;
        (self.environment, self.local_functions) = saved;
        Ok(value)
    }
}
