//! Lets a program's function evaluate each form in place of the interpreter: `evalhook`, which `step` uses.
//!
//! While a hook is set, the interpreter passes it every form that is a cons, with an environment: a closure without
//! parameters that captured the variables of the form. The hook is not in effect while it runs.

use super::closure;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value};

impl Context {
    /// Calls the hook with a form that is on the stack.
    #[cold]
    pub(super) fn eval_hooked(&mut self, form: Value) -> Answer {
        let hook = self.global_value(self.world.names.evalhook);
        if hook.is_nil() || hook == Value::UNBOUND {
            return self.eval_pushed(form);
        }
        self.stepping = false;
        let answer = self.call_hook(hook, form);
        self.stepping = true;
        answer
    }

    fn call_hook(&mut self, hook: Value, form: Value) -> Answer {
        let empty = self.cons(Value::NIL, Value::NIL)?;
        self.push(empty)?;
        let environment = self.close(Value::NIL, empty)?;
        self.apply(hook, &[form, environment])
    }

    /// Enters the environment that a closure captured; nil leaves the current one.
    pub(crate) fn enter_environment(&mut self, environment: Value) -> Result<(), Exit> {
        if environment.is(ObjectKind::Closure) {
            self.environment = environment.slot(closure::ENVIRONMENT);
            self.local_functions = !environment.slot(closure::LOCAL_FUNCTIONS).is_nil();
        } else if !environment.is_nil() {
            return self.type_error("environment", environment).map(|_: Value| ());
        }
        Ok(())
    }

    /// Implements `(evalhook hook form [environment])`: evaluates a form, and has the hook evaluate the forms in it.
    pub(crate) fn evalhook(&mut self, args: Args<'_>) -> Answer {
        let saved = self.save();
        let (hook, form) = (args[0], args[1]);
        self.bind_special(self.world.names.evalhook, hook)?;
        self.enter_environment(args.or_nil(2))?;
        let before = std::mem::replace(&mut self.stepping, !hook.is_nil());
        let answer = if form.is_cons() {
            self.push(form).and_then(|()| self.eval_pushed(form))
        } else {
            self.eval(form)
        };
        self.stepping = before;
        let value = answer?;
        self.restore(&saved);
        Ok(value)
    }
}
