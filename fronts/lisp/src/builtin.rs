//! Defines builtins: functions written in Rust, with their names and arguments.

use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{Header, ObjectKind, Value, symbol};
use crate::world::class;
use std::ops::Deref;

/// A builtin's arguments are on the root stack for the whole call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Args<'a>(&'a [Value]);

impl<'a> Args<'a> {
    pub(crate) fn new(values: &'a [Value]) -> Args<'a> {
        Args(values)
    }

    /// Returns an argument, or nil when it was not given.
    pub(crate) fn or_nil(&self, index: usize) -> Value {
        self.0.get(index).copied().unwrap_or(Value::NIL)
    }

    pub(crate) fn given(&self, index: usize) -> Option<Value> {
        self.0.get(index).copied()
    }

    pub(crate) fn from(&self, index: usize) -> Args<'a> {
        Args(self.0.get(index..).unwrap_or(&[]))
    }

    pub(crate) fn fixnum(&self, cx: &mut Context, index: usize) -> Result<i64, Exit> {
        match self.0[index].as_fixnum() {
            Some(number) => Ok(number),
            None => cx.type_error("integer", self.0[index]),
        }
    }

    /// Returns a fixnum argument that counts or indexes.
    pub(crate) fn size(&self, cx: &mut Context, index: usize) -> Result<usize, Exit> {
        cx.size(self.0[index])
    }

    /// Returns a number argument of any type as a float.
    pub(crate) fn float(&self, cx: &mut Context, index: usize) -> Result<f64, Exit> {
        cx.number(self.0[index])
    }

    pub(crate) fn floats(&self, cx: &mut Context, index: usize) -> Result<&'a [f64], Exit> {
        let vector = &self.0[index];
        if vector.is(ObjectKind::FloatVector) {
            return Ok(vector.floats());
        }
        cx.type_error("float-vector", *vector)
    }

    /// Returns the float-vector given at `index` for the result, or a new one when none was given.
    pub(crate) fn result_floats(&self, cx: &mut Context, index: usize, length: usize) -> Answer {
        let given = self.or_nil(index);
        if given.is_nil() {
            return cx.new_floats(length);
        }
        if given.is(ObjectKind::FloatVector) && given.length() == length {
            return Ok(given);
        }
        cx.type_error(&format!("float-vector of {length} elements"), given)
    }

    pub(crate) fn string(&self, cx: &mut Context, index: usize) -> Result<&'a Value, Exit> {
        let string = &self.0[index];
        if string.is(ObjectKind::String) { Ok(string) } else { cx.type_error("string", *string) }
    }
}

impl Deref for Args<'_> {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        self.0
    }
}

/// A builtin's Rust function has this type.
pub(crate) type Code = fn(&mut Context, Args<'_>) -> Answer;

/// This value of [`Builtin::most`] stands for any number of arguments.
pub(crate) const MANY: u16 = u16::MAX;

/// A builtin has a name, `PACKAGE:NAME` or `NAME` in the package LISP, its least and largest number of arguments, and
/// its Rust function.
#[derive(Clone, Copy)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    least: u16,
    most: u16,
    code: Code,
}

pub(crate) const fn builtin(name: &'static str, least: u16, most: u16, code: Code) -> Builtin {
    Builtin { name, least, most, code }
}

/// Indices of the slots of a builtin's object.
pub(crate) mod slot {
    pub(crate) const CODE: usize = 0;
    pub(crate) const NAME: usize = 1;
}

impl Context {
    /// Stores each builtin in the function slot of its symbol.
    pub(crate) fn install(&mut self, builtins: &[Builtin]) -> Result<(), Exit> {
        for builtin in builtins {
            let mark = self.mark();
            let symbol = self.installed_name(builtin.name)?;
            let object = self.new_slots(ObjectKind::Builtin, class::COMPILED_CODE, 2)?;
            let arity = usize::from(builtin.least) | usize::from(builtin.most) << 16;
            object.set(0, Header::new(ObjectKind::Builtin, class::COMPILED_CODE, arity).word());
            object.set(1 + slot::CODE, code_word(builtin.code as *const ()));
            object.set(1 + slot::NAME, symbol);
            symbol.set(symbol::FUNCTION, object);
            self.release(mark);
        }
        Ok(())
    }

    /// Returns the external symbol of `PACKAGE:NAME`, or of `NAME` in LISP. `PACKAGE::NAME` makes it internal, so
    /// that no program refers to it by accident.
    pub(crate) fn installed_name(&mut self, name: &str) -> Answer {
        let (package, name) = name.split_once(':').unwrap_or(("LISP", name));
        let (name, external) = name.strip_prefix(':').map_or((name, true), |name| (name, false));
        let package = match self.package_named(package) {
            Some(package) => package,
            None => self.make_package(vec![package.to_owned()], &[])?,
        };
        let symbol = self.intern_in(&package, name, external)?;
        package.import(name, symbol, external && package.has(name));
        Ok(symbol)
    }

    /// Calls a builtin with arguments on the root stack.
    #[inline]
    pub(crate) fn call_builtin(&mut self, object: Value, arguments: Args<'_>) -> Answer {
        let arity = object.length();
        let (least, most) = (arity & 0xffff, arity >> 16);
        if arguments.len() < least || (arguments.len() > most && most != usize::from(MANY)) {
            return self.wrong_count(object.get(1 + slot::NAME), arguments.len(), least, most);
        }
        let code = code_address(object.get(1 + slot::CODE));
        // SAFETY: only `install` makes builtins, with the address of a `Code`.
        let code = unsafe { std::mem::transmute::<*const (), Code>(code) };
        code(self, arguments)
    }

    #[cold]
    fn wrong_count(&mut self, name: Value, given: usize, least: usize, most: usize) -> Answer {
        let name = self.show_short(name);
        let wanted = range(least, most);
        self.fail(
            crate::error::ErrorClass::Arguments,
            format!("{name} takes {wanted} arguments, not {given}"),
        )
    }
}

/// Tells how many arguments a function takes.
fn range(least: usize, most: usize) -> String {
    if most == usize::from(MANY) {
        format!("at least {least}")
    } else if least == most {
        format!("{least}")
    } else {
        format!("{least} to {most}")
    }
}

/// Tells how many arguments the object of a builtin takes.
pub(crate) fn builtin_arity(object: Value) -> String {
    range(object.length() & 0xffff, object.length() >> 16)
}

/// Encodes a function's address of at most 47 bits as a word that is not a reference.
pub(crate) fn code_word(code: *const ()) -> Value {
    Value((code.expose_provenance() as u64) << 4 | 3)
}

/// Returns the address that [`code_word`] encoded.
pub(crate) fn code_address(word: Value) -> *const () {
    std::ptr::with_exposed_provenance((word.0 >> 4) as usize)
}
