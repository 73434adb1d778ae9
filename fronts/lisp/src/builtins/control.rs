//! Function calls, evaluation of forms, mapping.

use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context, Fixed};
use crate::error::Exit;
use crate::value::{ObjectKind, Value, symbol};
use crate::world::class;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("FUNCALL", 1, MANY, |cx, args| {
        let first = cx.mark();
        for value in &args[1..] {
            cx.push(*value)?;
        }
        cx.call(args[0], first, args.len() - 1)
    }),
    builtin("APPLY", 2, MANY, apply),
    builtin("EVAL", 1, 2, |cx, args| {
        // As in EusLisp, an interpreted caller's lexical variables are visible to the form. Machine code has none.
        let saved = cx.save();
        cx.enter_environment(args.or_nil(1))?;
        let value = cx.eval(args[0])?;
        cx.restore(&saved);
        Ok(value)
    }),
    builtin("LARGESSE:EVAL-GLOBAL", 1, 1, |cx, args| {
        let saved = cx.save();
        cx.environment = Value::NIL;
        cx.local_functions = false;
        let value = cx.eval(args[0])?;
        cx.restore(&saved);
        Ok(value)
    }),
    builtin("IDENTITY", 1, 1, |_, args| Ok(args[0])),
    builtin("MAPCAR", 2, MANY, |cx, args| map(cx, args, true, Give::List)),
    builtin("MAPC", 2, MANY, |cx, args| map(cx, args, true, Give::First)),
    builtin("MAPCAN", 2, MANY, |cx, args| map(cx, args, true, Give::Joined)),
    builtin("MAPLIST", 2, MANY, |cx, args| map(cx, args, false, Give::List)),
    builtin("MAPL", 2, MANY, |cx, args| map(cx, args, false, Give::First)),
    builtin("MAPCON", 2, MANY, |cx, args| map(cx, args, false, Give::Joined)),
    builtin("FUNCTIONP", 1, 1, |cx, args| {
        let value = if args[0].is_symbol_object() { args[0].get(symbol::FUNCTION) } else { args[0] };
        Ok(cx.truth(cx.is_function(value)))
    }),
    builtin("COMPILED-FUNCTION-P", 1, 1, |cx, args| {
        Ok(cx.truth(
            args[0].is_object()
                && matches!(args[0].header().kind(), ObjectKind::Builtin | ObjectKind::Compiled),
        ))
    }),
    builtin("SPECIAL-FORM-P", 1, 1, |cx, args| {
        Ok(cx.truth(args[0].is_symbol_object() && args[0].get(symbol::FUNCTION).as_special_form().is_some()))
    }),
    builtin("MACRO-FUNCTION", 1, 1, |cx, args| {
        let function = if args[0].is_symbol_object() { args[0].get(symbol::FUNCTION) } else { Value::NIL };
        Ok(if function.car() == cx.world.names.macro_ { function } else { Value::NIL })
    }),
    builtin("MACROEXPAND-1", 1, 2, |cx, args| expand(cx, args[0], false)),
    builtin("MACROEXPAND", 1, 2, |cx, args| expand(cx, args[0], true)),
    // As in EusLisp, the tag of the prompt is 0. A program without a catch for it is stopped as by Ctrl-C.
    builtin("RESET", 0, 0, |cx, _| {
        let prompt = Value::fixnum(0);
        if cx.catches.contains(&prompt) { cx.throw(prompt, Value::NIL) } else { Err(Exit::Interrupt) }
    }),
    builtin("UNIX:EXIT", 0, 1, |cx, args| {
        cx.set_fixed(Fixed::Exit, args.or_nil(0));
        Err(Exit::Quit)
    }),
    builtin("EXIT", 0, 1, |cx, args| {
        cx.call_exit_hook()?;
        cx.set_fixed(Fixed::Exit, args.or_nil(0));
        Err(Exit::Quit)
    }),
];

impl Context {
    /// Returns whether a value can be called: a function of any kind, a function of C, or a lambda expression.
    pub(crate) fn is_function(&self, value: Value) -> bool {
        let is_code = value.is_object()
            && (matches!(
                value.header().kind(),
                ObjectKind::Closure | ObjectKind::Builtin | ObjectKind::Compiled
            ) || value.header().class() == class::FOREIGN_CODE);
        is_code || self.lambda_of(value).is_some()
    }

    /// Calls the function in `sys:*exit-hook*`, once: it may end the program itself.
    pub(crate) fn call_exit_hook(&mut self) -> Result<(), Exit> {
        let name = self.installed_name("SYSTEM:*EXIT-HOOK*")?;
        let hook = self.global_value(name);
        if hook.is_nil() || hook == Value::UNBOUND {
            return Ok(());
        }
        self.set_global(name, Value::NIL);
        self.apply(hook, &[]).map(|_| ())
    }
}

fn apply(cx: &mut Context, args: Args<'_>) -> Answer {
    let (last, values) = (args[args.len() - 1], &args[1..args.len() - 1]);
    if !last.is_list() {
        return cx.type_error("list", last);
    }
    super::list::proper_length(cx, last)?;
    let first = cx.mark();
    for value in values.iter().copied().chain(last.iter()) {
        cx.push(value)?;
    }
    let count = cx.above(first);
    cx.call(args[0], first, count)
}

#[derive(Clone, Copy, PartialEq)]
enum Give {
    /// Returns a list of the results.
    List,
    /// Returns the first argument list.
    First,
    /// Returns the concatenation of the results, which are lists.
    Joined,
}

/// Calls the function with successive heads (or tails) of the lists until one of them is nil. As in EusLisp, heads also
/// end where the first list ends in an atom, or is one; every other atom is an error.
fn map(cx: &mut Context, args: Args<'_>, heads: bool, give: Give) -> Answer {
    let lists = cx.mark();
    for list in &args[1..] {
        cx.push(*list)?;
    }
    let count = args.len() - 1;
    // The head of the results, and their last cons.
    let answers = cx.mark();
    cx.push(Value::NIL)?;
    cx.push(Value::NIL)?;
    loop {
        if let Some(index) = (0..count).find(|&index| !cx.root(lists, index).is_cons()) {
            let end = cx.root(lists, index);
            if end.is_nil() || (heads && index == 0) {
                break;
            }
            return cx.type_error("list", end);
        }
        let mark = cx.mark();
        for index in 0..count {
            let list = cx.root(lists, index);
            cx.push(if heads { list.get(0) } else { list })?;
            cx.set_root(lists, index, list.get(1));
        }
        let answer = cx.call(args[0], mark, count)?;
        cx.release(mark);
        let link = match give {
            Give::First => continue,
            Give::List => cx.cons(answer, Value::NIL)?,
            Give::Joined if !answer.is_cons() => continue,
            Give::Joined => answer,
        };
        let end = cx.root(answers, 1);
        if end.is_nil() {
            cx.set_root(answers, 0, link);
        } else {
            end.set(1, link);
        }
        if give == Give::Joined {
            super::list::proper_length(cx, link)?;
        }
        cx.set_root(answers, 1, link.tails().last().unwrap_or(link));
    }
    Ok(if give == Give::First { args[1] } else { cx.root(answers, 0) })
}

fn expand(cx: &mut Context, form: Value, fully: bool) -> Answer {
    let mut form = form;
    loop {
        let head = form.car();
        if !head.is_symbol_object() || head.get(symbol::FUNCTION).car() != cx.world.names.macro_ {
            return Ok(form);
        }
        let function = head.get(symbol::FUNCTION);
        cx.push(function)?;
        form = cx.expand_pushed(form, function)?;
        cx.push(form)?;
        if !fully {
            return Ok(form);
        }
    }
}
