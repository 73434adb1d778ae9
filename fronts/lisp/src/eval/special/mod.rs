//! Special forms. Each function gets the whole form, which is on the root stack.

mod basic;
mod bind;
mod control;
mod define;
mod forward;
mod iterate;
mod malformed;
mod object;

pub(crate) use basic::runs_now;
pub(crate) use define::with_block;

use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{Value, symbol};

type Code = fn(&mut Context, Value) -> Answer;

/// Lists all special forms, by the index that a function slot holds.
pub(crate) const FORMS: &[(&str, Code)] = &[
    ("QUOTE", basic::quote),
    ("FUNCTION", basic::function),
    ("PROGN", basic::progn),
    ("PROG1", basic::prog1),
    ("PROG2", basic::prog2),
    ("SETQ", basic::setq),
    ("PSETQ", basic::psetq),
    ("IF", basic::if_),
    ("COND", basic::cond),
    ("AND", basic::and),
    ("OR", basic::or),
    ("WHEN", basic::when),
    ("UNLESS", basic::unless),
    ("CASE", basic::case),
    ("THE", basic::the),
    ("DECLARE", basic::declare),
    ("EVAL-WHEN", basic::eval_when),
    ("LET", bind::let_),
    ("LET*", bind::let_star),
    ("PROGV", bind::progv),
    ("FLET", bind::flet),
    ("LABELS", bind::labels),
    ("MACROLET", bind::macrolet),
    ("MULTIPLE-VALUE-BIND", bind::multiple_value_bind),
    ("BLOCK", control::block),
    ("RETURN", control::return_),
    ("RETURN-FROM", control::return_from),
    ("CATCH", control::catch),
    ("THROW", control::throw),
    ("UNWIND-PROTECT", control::unwind_protect),
    ("TAGBODY", control::tagbody),
    ("GO", control::go),
    ("HANDLER-CASE", control::handler_case),
    ("WHILE", iterate::while_),
    ("UNTIL", iterate::until),
    ("LOOP", iterate::loop_),
    ("DOTIMES", iterate::dotimes),
    ("DOLIST", iterate::dolist),
    ("DO", iterate::do_),
    ("DO*", iterate::do_star),
    ("SETF", super::place::setf),
    ("PUSH", super::place::push),
    ("PUSHNEW", super::place::pushnew),
    ("POP", super::place::pop),
    ("INCF", super::place::incf),
    ("DECF", super::place::decf),
    ("DEFUN", define::defun),
    ("DEFMACRO", define::defmacro),
    ("DEFVAR", define::defvar),
    ("DEFPARAMETER", define::defparameter),
    ("DEFCONSTANT", define::defconstant),
    ("DEFCLASS", object::defclass),
    ("DEFMETHOD", object::defmethod),
    ("SEND-SUPER", object::send_super),
    ("SEND-SUPER*", object::send_super_star),
    ("INSTANCE", object::instance),
];

/// The number of `return-from`, which `define` knows, is its index.
const _: () = assert!(matches!(FORMS[define::RETURN_FROM].0.as_bytes(), b"RETURN-FROM"));

/// Stores each special form in the function slot of its symbol.
pub(crate) fn install(cx: &mut Context) -> Result<(), Exit> {
    for (number, (name, _)) in FORMS.iter().enumerate() {
        let symbol = cx.installed_name(name)?;
        symbol.set(symbol::FUNCTION, Value::special_form(number));
    }
    Ok(())
}
