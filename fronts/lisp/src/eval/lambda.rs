//! Calls interpreted functions and binds their parameters to arguments.

use crate::context::{Answer, Context, RootMark};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value, flag, symbol};
use crate::world::class;

/// Indices of the slots of a closure, after the header.
pub(crate) mod closure {
    pub(crate) const NAME: usize = 0;
    pub(crate) const ENVIRONMENT: usize = 1;
    pub(crate) const PARAMETERS: usize = 2;
    pub(crate) const BODY: usize = 3;
    /// This slot is t when the environment binds functions.
    pub(crate) const LOCAL_FUNCTIONS: usize = 4;
}

impl Context {
    /// Creates a closure of the current environment over `(parameters . body)`.
    pub(crate) fn close(&mut self, name: Value, lambda: Value) -> Answer {
        if !lambda.is_cons() || !lambda.get(0).is_list() {
            return self.type_error("list of parameters", lambda.car());
        }
        let mark = self.mark();
        let environment = self.capture()?;
        self.push(environment)?;
        let object = self.new_slots(ObjectKind::Closure, class::CLOSURE, 5)?;
        self.release(mark);
        object.set_slot(closure::NAME, name);
        object.set_slot(closure::ENVIRONMENT, environment);
        object.set_slot(closure::PARAMETERS, lambda.get(0));
        object.set_slot(closure::BODY, lambda.get(1));
        object.set_slot(closure::LOCAL_FUNCTIONS, self.truth(self.local_functions));
        Ok(object)
    }

    /// Runs a body in a new environment that extends `environment`. The arguments are on the stack.
    pub(crate) fn call_lambda(
        &mut self,
        parameters: Value,
        body: Value,
        environment: Value,
        local_functions: bool,
        first: RootMark,
        count: usize,
    ) -> Answer {
        self.poll()?;
        self.check_stack()?;
        let saved = self.save();
        self.environment = environment;
        self.local_functions = local_functions;
        self.bind_parameters(parameters, body, first, count)?;
        let value = self.progn(body)?;
        self.restore_bindings(&saved);
        Ok(value)
    }

    #[inline]
    fn bind_parameters(
        &mut self,
        parameters: Value,
        body: Value,
        first: RootMark,
        count: usize,
    ) -> Result<(), Exit> {
        let declared = self.declares_special(body);
        let mut rest = parameters;
        let mut index = 0;
        while rest.is_cons() {
            let name = rest.get(0);
            let odd = declared
                || !name.is_symbol_object()
                || name.has_flag(flag::LAMBDA_KEYWORD | flag::SPECIAL | flag::CONSTANT);
            if odd {
                return self.bind_slow(parameters, rest, body, first, index, count);
            }
            if index == count {
                return self.too_few(parameters, count);
            }
            self.bind(name, self.root(first, index))?;
            index += 1;
            rest = rest.get(1);
        }
        if !rest.is_nil() {
            return self.bind_slow(parameters, rest, body, first, index, count);
        }
        if index < count {
            return self.too_many(parameters, count);
        }
        Ok(())
    }

    /// Signals that `count` arguments are too few or too many.
    #[cold]
    pub(crate) fn wrong_arguments(&mut self, parameters: Value, count: usize) -> Answer {
        let required = |name: &Value| !(name.is_symbol_object() && name.has_flag(flag::LAMBDA_KEYWORD));
        let least = parameters.iter().take_while(required).count();
        let error =
            if count < least { self.too_few(parameters, count) } else { self.too_many(parameters, count) };
        error.map(|()| Value::NIL)
    }

    #[cold]
    fn too_few(&mut self, parameters: Value, count: usize) -> Result<(), Exit> {
        let shown = self.show_short(parameters);
        self.error(ErrorClass::Arguments, format!("too few arguments: {count} for {shown}"))
    }

    #[cold]
    fn too_many(&mut self, parameters: Value, count: usize) -> Result<(), Exit> {
        let shown = self.show_short(parameters);
        self.error(ErrorClass::Arguments, format!("too many arguments: {count} for {shown}"))
    }

    /// Returns whether a body begins with a declaration of any special variable.
    pub(crate) fn declares_special(&self, body: Value) -> bool {
        let names = &self.world.names;
        body.iter()
            .take_while(|form| form.car() == names.declare)
            .any(|form| form.cdr().iter().any(|item| item.car() == names.special))
    }

    /// Returns whether a body begins with a declaration that `name` is special.
    pub(crate) fn is_declared(&self, body: Value, name: Value) -> bool {
        let names = &self.world.names;
        body.iter()
            .take_while(|form| form.car() == names.declare)
            .flat_map(|form| form.cdr().iter())
            .any(|item| item.car() == names.special && item.cdr().iter().any(|special| special == name))
    }

    /// Binds a variable, dynamically if it is special.
    pub(crate) fn bind_variable(&mut self, name: Value, value: Value, body: Value) -> Result<(), Exit> {
        if !name.is_symbol_object() || name.has_flag(flag::LAMBDA_KEYWORD) {
            return self.type_error("variable", name).map(|_: Value| ());
        }
        if name.has_flag(flag::CONSTANT) {
            return self.is_constant(name);
        }
        if name.has_flag(flag::SPECIAL) || self.is_declared(body, name) {
            return self.bind_special(name, value);
        }
        self.bind(name, value)
    }

    /// Signals an assignment to a constant, or a binding of one.
    #[cold]
    pub(crate) fn is_constant<T>(&mut self, name: Value) -> Result<T, Exit> {
        let shown = self.show_short(name);
        self.error_about(ErrorClass::Type, format!("{shown} is a constant"), name)
    }

    /// Binds the parameters from the first that is not a plain variable; the first `start` are bound already.
    fn bind_slow(
        &mut self,
        parameters: Value,
        from: Value,
        body: Value,
        first: RootMark,
        start: usize,
        count: usize,
    ) -> Result<(), Exit> {
        let names = self.world.names;
        let mut rest = from;
        let mut index = start;
        // The lambda-list keyword that applies to the current parameters.
        let mut mode = Value::NIL;
        let mut has_rest = false;
        let mut keys_from = None;
        let mut allow_others = false;
        // The evaluation of defaults may modify the running function.
        for part in [parameters, body] {
            self.push(part)?;
        }
        let keep = self.mark();
        self.push(rest)?;
        while rest.is_cons() {
            self.poll()?;
            self.put_root(keep, rest);
            let item = rest.get(0);
            rest = rest.get(1);
            if item.is_symbol_object() && item.has_flag(flag::LAMBDA_KEYWORD) {
                if item == names.allow_other_keys {
                    allow_others = true;
                } else {
                    mode = if item == names.body { names.rest } else { item };
                    if item == names.key {
                        keys_from = Some(index);
                    }
                }
            } else if mode.is_nil() {
                if index == count {
                    return self.too_few(parameters, count);
                }
                let value = self.root(first, index);
                index += 1;
                if item.is_cons() {
                    self.bind_pattern(item, value)?;
                } else {
                    self.bind_variable(item, value, body)?;
                }
            } else if mode == names.optional {
                let given = (index < count).then(|| self.root(first, index));
                index += usize::from(given.is_some());
                self.bind_default(item, given, body)?;
            } else if mode == names.rest {
                let list = self.list_of_roots(first, index..count, Value::NIL)?;
                self.bind_variable(item, list, body)?;
                has_rest = true;
            } else if mode == names.key {
                let variable = if item.is_cons() { item.get(0) } else { item };
                let given = if variable.is_cons() {
                    self.key_argument(variable.get(0), first, index, count)
                } else if variable.is_symbol_object() {
                    self.named_argument(variable, first, index, count)
                } else {
                    return self.type_error("variable", variable).map(|_: Value| ());
                };
                if variable.is_cons() {
                    let spec = self.cons(variable.cadr(), item.get(1))?;
                    self.push(spec)?;
                    self.bind_default(spec, given, body)?;
                } else {
                    self.bind_default(item, given, body)?;
                }
            } else {
                self.bind_default(item, None, body)?;
            }
        }
        if !rest.is_nil() {
            // In the dotted parameter list of a macro, the last name is bound to the remaining arguments.
            let list = self.list_of_roots(first, index..count, Value::NIL)?;
            self.bind_variable(rest, list, body)?;
            return Ok(());
        }
        if let Some(from) = keys_from {
            return self.check_keys(parameters, allow_others, first, from, count);
        }
        if index < count && !has_rest {
            return self.too_many(parameters, count);
        }
        Ok(())
    }

    /// Binds `name`, `(name default)` or `(name default given-p)`.
    fn bind_default(&mut self, item: Value, given: Option<Value>, body: Value) -> Result<(), Exit> {
        if !item.is_cons() {
            return self.bind_variable(item, given.unwrap_or(Value::NIL), body);
        }
        self.push(item)?;
        let value = match given {
            Some(value) => value,
            None => self.eval(item.cadr())?,
        };
        let supplied = item.cddr();
        if supplied.is_cons() {
            self.push(value)?;
            self.bind_variable(supplied.get(0), self.truth(given.is_some()), body)?;
        }
        self.bind_variable(item.get(0), value, body)
    }

    /// Destructures a list argument by a nested list of parameters.
    fn bind_pattern(&mut self, pattern: Value, value: Value) -> Result<(), Exit> {
        if !value.is_list() {
            return self.type_error("list", value).map(|_: Value| ());
        }
        self.push(value)?;
        let first = self.mark();
        let mut rest = value;
        while rest.is_cons() {
            self.push(rest.get(0))?;
            rest = rest.get(1);
        }
        let count = self.above(first);
        self.bind_parameters(pattern, Value::NIL, first, count)
    }

    /// Returns the value after the keyword with a variable's name among the arguments from index `from` on.
    fn named_argument(&self, variable: Value, first: RootMark, from: usize, count: usize) -> Option<Value> {
        let name = variable.get(symbol::NAME);
        let keywords = self.world.names.test.get(symbol::PACKAGE);
        let is_key = |key: Value| {
            key.is_symbol_object()
                && key.get(symbol::PACKAGE) == keywords
                && key.get(symbol::NAME).bytes() == name.bytes()
        };
        (from..count.saturating_sub(1))
            .step_by(2)
            .find(|&at| is_key(self.root(first, at)))
            .map(|at| self.root(first, at + 1))
    }

    /// Returns the value after a key among the arguments from index `from` on.
    pub(crate) fn key_argument(
        &self,
        key: Value,
        first: RootMark,
        from: usize,
        count: usize,
    ) -> Option<Value> {
        let given = self.arguments(first, count).from(from);
        given.chunks_exact(2).find(|pair| pair[0] == key).map(|pair| pair[1])
    }

    /// Checks that parameters with `&key` know every given key.
    pub(crate) fn check_given_keys(
        &mut self,
        parameters: Value,
        first: RootMark,
        from: usize,
        count: usize,
    ) -> Result<(), Exit> {
        if from >= count {
            return Ok(());
        }
        let wanted = self.world.names.allow_other_keys;
        let allow_others = parameters.iter().any(|item| item == wanted);
        self.check_keys(parameters, allow_others, first, from, count)
    }

    fn check_keys(
        &mut self,
        parameters: Value,
        allow_others: bool,
        first: RootMark,
        from: usize,
        count: usize,
    ) -> Result<(), Exit> {
        if (count - from) % 2 == 1 {
            let shown = self.show_short(parameters);
            return self.error(ErrorClass::Arguments, format!("a keyword without a value, for {shown}"));
        }
        let wanted = self.world.names.allow_other_keys_key;
        if allow_others || self.key_argument(wanted, first, from, count).is_some_and(|value| !value.is_nil())
        {
            return Ok(());
        }
        for at in (from..count).step_by(2) {
            let key = self.root(first, at);
            if !self.has_key(parameters, key) {
                let (key, shown) = (self.show_short(key), self.show_short(parameters));
                return self.error(ErrorClass::Arguments, format!("unknown keyword {key} for {shown}"));
            }
        }
        Ok(())
    }

    fn has_key(&self, parameters: Value, key: Value) -> bool {
        if !key.is_symbol_object() {
            return false;
        }
        let mut items = parameters.iter().skip_while(|item| *item != self.world.names.key).skip(1);
        items.any(|item| {
            let variable = if item.is_cons() { item.get(0) } else { item };
            if variable.is_cons() {
                return variable.get(0) == key;
            }
            variable.is_symbol_object() && variable.get(symbol::NAME).bytes() == key.get(symbol::NAME).bytes()
        })
    }
}
