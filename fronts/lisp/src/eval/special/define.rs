//! Evaluates definitions of functions, macros and variables.

use super::malformed::malformed;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value, flag, symbol};

/// The number of `return-from` among the special forms.
pub(super) const RETURN_FROM: usize = 26;

/// Wraps the body of `(parameters . body)` in a block with a name if a form in it may exit from one. A documentation
/// string and declarations stay in front.
pub(crate) fn with_block(cx: &mut Context, name: Value, lambda: Value) -> Answer {
    if !may_return(cx, name, lambda.cdr(), 0) {
        return Ok(lambda);
    }
    let mark = cx.mark();
    cx.push(lambda)?;
    let mut front = Vec::new();
    let mut rest = lambda.cdr();
    while rest.is_cons()
        && ((rest.get(0).is(ObjectKind::String) && rest.get(1).is_cons())
            || rest.get(0).car() == cx.world.names.declare)
    {
        front.push(rest.get(0));
        cx.push(rest.get(0))?;
        rest = rest.get(1);
    }
    let block = cx.list_star(&[cx.world.names.block, name], rest)?;
    let body = cx.list(&[block])?;
    let body = cx.list_star(&front, body)?;
    let lambda = cx.cons(lambda.get(0), body)?;
    cx.release(mark);
    Ok(lambda)
}

/// Returns whether a tree calls `return-from`, a macro, or an undefined function, which may become a macro later.
fn may_return(cx: &Context, name: Value, tree: Value, depth: usize) -> bool {
    if depth > 200 {
        return true;
    }
    tree.iter().filter(|form| form.is_cons()).any(|form| {
        let head = form.get(0);
        if head == cx.world.names.quote {
            return false;
        }
        let function = if head.is_symbol_object() { head.get(symbol::FUNCTION) } else { Value::NIL };
        let leaves = head.is_symbol_object()
            && head != name
            && match function.as_special_form() {
                Some(number) => number == RETURN_FROM,
                None => !function.is_object() && function.car() != cx.world.names.lambda,
            };
        leaves || may_return(cx, name, form, depth + 1)
    })
}

fn document(cx: &mut Context, name: Value, body: Value) -> Result<(), Exit> {
    if body.car().is(ObjectKind::String) && body.cdr().is_cons() {
        let key = cx.world.names.function_documentation;
        cx.put_property(name, key, body.get(0))?;
    }
    Ok(())
}

/// Special forms that are macros in EusLisp, so that its programs define their own.
const REDEFINABLE: [&str; 21] = [
    "loop",
    "push",
    "pushnew",
    "pop",
    "incf",
    "decf",
    "dotimes",
    "dolist",
    "do",
    "do*",
    "when",
    "unless",
    "case",
    "prog1",
    "multiple-value-bind",
    "until",
    "psetq",
    "defvar",
    "defparameter",
    "defclass",
    "instance",
];

/// Returns the name that a form defines, which must not be a special form of EusLisp.
fn definable(cx: &mut Context, form: Value) -> Result<Value, Exit> {
    let name = form.cadr();
    if !name.is_symbol_object() || !form.cddr().is_cons() {
        return malformed(cx, form);
    }
    cx.prepare_definition(name)?;
    Ok(name)
}

impl Context {
    /// Prepares that a symbol gets another function or none: it must not be a special form of EusLisp, and the library
    /// goes on to use the function that it has.
    pub(crate) fn prepare_definition(&mut self, name: Value) -> Result<(), Exit> {
        if name.get(symbol::FUNCTION).as_special_form().is_some()
            && !REDEFINABLE.contains(&self.show_name(name).as_str())
        {
            let shown = self.show_short(name);
            return self.error_about(ErrorClass::Type, format!("{shown} is a special form"), name);
        }
        let keep = self.world.names.keep_builtin;
        if is_of_library(self, name) && keep.get(symbol::FUNCTION) != Value::UNBOUND {
            self.apply(keep, &[name])?;
        }
        Ok(())
    }
}

/// Returns whether a name has a function that the library goes on to use when a program defines its own: a builtin, or
/// one written in Lisp unless the definition is made in the name's own package, which changes the library on purpose.
fn is_of_library(cx: &mut Context, name: Value) -> bool {
    let old = name.get(symbol::FUNCTION);
    old.is(ObjectKind::Builtin)
        || (old.is_cons()
            && name.has_flag(flag::LIBRARY)
            && name.get(symbol::PACKAGE) != cx.current_package().object)
}

pub(super) fn defun(cx: &mut Context, form: Value) -> Answer {
    let name = definable(cx, form)?;
    let lambda = form.cddr();
    if !lambda.get(0).is_list() {
        return malformed(cx, form);
    }
    cx.push(lambda)?;
    document(cx, name, lambda.get(1))?;
    let lambda = with_block(cx, name, lambda)?;
    cx.push(lambda)?;
    let function = if cx.environment.is_nil() {
        cx.cons(cx.world.names.lambda, lambda)?
    } else {
        cx.close(name, lambda)?
    };
    name.set(symbol::FUNCTION, function);
    Ok(name)
}

impl Context {
    /// Sets the function of a `defun` to one created before.
    pub(crate) fn define_function(&mut self, form: Value, function: Value) -> Answer {
        let name = definable(self, form)?;
        document(self, name, form.cddr().get(1))?;
        name.set(symbol::FUNCTION, function);
        Ok(name)
    }
}

pub(super) fn defmacro(cx: &mut Context, form: Value) -> Answer {
    let name = definable(cx, form)?;
    let lambda = form.cddr();
    cx.push(lambda)?;
    document(cx, name, lambda.get(1))?;
    let lambda = with_block(cx, name, lambda)?;
    let function = cx.cons(cx.world.names.macro_, lambda)?;
    name.set(symbol::FUNCTION, function);
    Ok(name)
}

fn variable(cx: &mut Context, form: Value) -> Result<Value, Exit> {
    let name = form.cadr();
    if !name.is_symbol_object() || name.has_flag(flag::CONSTANT) {
        return malformed(cx, form);
    }
    let text = form.cddr().cadr();
    if text.is(ObjectKind::String) {
        let key = cx.world.names.variable_documentation;
        cx.put_property(name, key, text)?;
    }
    Ok(name)
}

pub(super) fn defvar(cx: &mut Context, form: Value) -> Answer {
    let name = variable(cx, form)?;
    if name.get(symbol::VALUE) == Value::UNBOUND && form.cddr().is_cons() {
        let value = cx.eval(form.caddr())?;
        name.set(symbol::VALUE, value);
    }
    name.add_flag(flag::SPECIAL);
    Ok(name)
}

pub(super) fn defparameter(cx: &mut Context, form: Value) -> Answer {
    let name = variable(cx, form)?;
    let value = cx.eval(form.caddr())?;
    cx.set_global(name, value);
    name.add_flag(flag::SPECIAL);
    Ok(name)
}

pub(super) fn defconstant(cx: &mut Context, form: Value) -> Answer {
    let name = form.cadr();
    if !name.is_symbol_object() {
        return malformed(cx, form);
    }
    let value = cx.eval(form.caddr())?;
    name.set(symbol::VALUE, value);
    name.add_flag(flag::CONSTANT | flag::SPECIAL);
    Ok(name)
}
