//! Implements symbols: names, values, functions, property lists.

use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value, flag, symbol};
use crate::world::KEYWORD;
use std::sync::atomic::Ordering;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("SYMBOLP", 1, 1, |cx, args| Ok(cx.truth(args[0].is_symbol()))),
    builtin("KEYWORDP", 1, 1, |cx, args| {
        let keywords = cx.package_numbered(KEYWORD).object;
        Ok(cx.truth(args[0].is_symbol_object() && args[0].get(symbol::PACKAGE) == keywords))
    }),
    builtin("CONSTANTP", 1, 1, |cx, args| {
        let constant =
            if args[0].is_symbol_object() { args[0].has_flag(flag::CONSTANT) } else { !args[0].is_cons() };
        Ok(cx.truth(constant))
    }),
    builtin("SYMBOL-NAME", 1, 1, |cx, args| object(cx, args[0]).map(|object| object.get(symbol::NAME))),
    builtin("SYMBOL-PACKAGE", 1, 1, |cx, args| object(cx, args[0]).map(|object| object.get(symbol::PACKAGE))),
    builtin("SYMBOL-PLIST", 1, 1, |cx, args| plist_place(cx, args[0]).map(|(object, slot)| object.get(slot))),
    builtin("SYMBOL-VALUE", 1, 1, |cx, args| {
        let object = object(cx, args[0])?;
        let value = cx.global_value(object);
        if value == Value::UNBOUND {
            let shown = cx.show_short(args[0]);
            return cx.error_about(ErrorClass::Unbound, format!("unbound variable {shown}"), args[0]);
        }
        Ok(value)
    }),
    builtin("SYMBOL-FUNCTION", 1, 1, symbol_function),
    builtin("SET", 2, 2, |cx, args| {
        let object = object(cx, args[0])?;
        if object.has_flag(flag::CONSTANT) {
            return cx.is_constant(args[0]);
        }
        cx.set_global(object, args[1]);
        Ok(args[1])
    }),
    builtin("SETFUNC", 2, 2, set_function),
    builtin("BOUNDP", 1, 1, |cx, args| {
        let object = object(cx, args[0])?;
        let bound = cx.global_value(object) != Value::UNBOUND;
        Ok(cx.truth(bound))
    }),
    builtin("FBOUNDP", 1, 1, |cx, args| {
        let object = object(cx, args[0])?;
        Ok(cx.truth(object.get(symbol::FUNCTION) != Value::UNBOUND))
    }),
    builtin("MAKUNBOUND", 1, 1, |cx, args| {
        let object = object(cx, args[0])?;
        if object.has_flag(flag::CONSTANT) {
            return cx.is_constant(args[0]);
        }
        cx.set_global(object, Value::UNBOUND);
        Ok(args[0])
    }),
    builtin("FMAKUNBOUND", 1, 1, |cx, args| {
        let object = object(cx, args[0])?;
        cx.prepare_definition(object)?;
        object.set(symbol::FUNCTION, Value::UNBOUND);
        Ok(args[0])
    }),
    builtin("GET", 2, 3, |cx, args| {
        plist_place(cx, args[0])?;
        let found = cx.property(args[0], args[1]);
        Ok(if found.is_nil() { args.or_nil(2) } else { found })
    }),
    builtin("PUTPROP", 2, 3, |cx, args| {
        // The arguments are (symbol value attribute).
        cx.put_property(args[0], args.or_nil(2), args[1])?;
        Ok(args[1])
    }),
    builtin("LARGESSE:SET-GET", 3, 4, |cx, args| {
        cx.put_property(args[0], args[1], args[args.len() - 1])?;
        Ok(args[args.len() - 1])
    }),
    builtin("REMPROP", 2, 2, remove_property),
    builtin("GETF", 2, 3, |_, args| {
        let found = args[0].tails().step_by(2).find(|tail| tail.get(0) == args[1]);
        Ok(found.map_or(args.or_nil(2), Value::cadr))
    }),
    builtin("MAKE-SYMBOL", 1, 1, |cx, args| {
        let name = *args.string(cx, 0)?;
        cx.new_symbol(name)
    }),
    builtin("GENSYM", 0, 1, gensym),
    builtin("GENTEMP", 0, 2, gentemp),
    builtin("COPY-SYMBOL", 1, 2, |cx, args| {
        let name = object(cx, args[0])?.get(symbol::NAME);
        cx.new_symbol(name)
    }),
    builtin("SPECIALP", 1, 1, |cx, args| {
        Ok(cx.truth(args[0].is_symbol_object() && args[0].has_flag(flag::SPECIAL)))
    }),
    builtin("PROCLAIM", 1, 1, |cx, args| {
        if args[0].car() == cx.world.names.special {
            for name in args[0].cdr().iter().filter(|name| name.is_symbol_object()) {
                name.add_flag(flag::SPECIAL);
            }
        }
        Ok(Value::NIL)
    }),
];

fn object(cx: &mut Context, value: Value) -> Result<Value, Exit> {
    if value.is_symbol() { Ok(cx.world.symbol_object(value)) } else { cx.type_error("symbol", value) }
}

fn symbol_function(cx: &mut Context, args: Args<'_>) -> Answer {
    let function = object(cx, args[0])?.get(symbol::FUNCTION);
    if function == Value::UNBOUND {
        let shown = cx.show_short(args[0]);
        return cx.error_about(ErrorClass::Undefined, format!("undefined function {shown}"), args[0]);
    }
    Ok(if function.as_special_form().is_some() { args[0] } else { function })
}

fn set_function(cx: &mut Context, args: Args<'_>) -> Answer {
    let object = object(cx, args[0])?;
    if object.get(symbol::FUNCTION).as_special_form().is_some() {
        let shown = cx.show_short(args[0]);
        return cx.error_about(ErrorClass::Type, format!("{shown} is a special form"), args[0]);
    }
    // Unlike `defun`, for the library, too: `trace` and `load-irteus` replace functions that others call.
    object.set(symbol::FUNCTION, args[1]);
    Ok(args[1])
}

fn gensym(cx: &mut Context, args: Args<'_>) -> Answer {
    let prefix = match args.given(0) {
        Some(prefix) if prefix.is(ObjectKind::String) => prefix.text().into_owned(),
        Some(prefix) if prefix.is_symbol_object() => prefix.get(symbol::NAME).text().into_owned(),
        _ => "G".to_owned(),
    };
    // Relaxed: the number orders no other access.
    let number = cx.world.gensyms.fetch_add(1, Ordering::Relaxed);
    let name = cx.string(&format!("{prefix}{number}"))?;
    cx.new_symbol(name)
}

/// Implements `(gentemp prefix package)`: interns a symbol whose name the package did not have.
fn gentemp(cx: &mut Context, args: Args<'_>) -> Answer {
    let prefix = match args.given(0) {
        Some(prefix) => cx.name_of(prefix)?,
        None => "T".to_owned(),
    };
    let package = match args.given(1) {
        Some(package) if !package.is_nil() => cx.package_designated(package)?,
        _ => cx.current_package(),
    };
    loop {
        // Relaxed: the number orders no other access.
        let name = format!("{prefix}{}", cx.world.gensyms.fetch_add(1, Ordering::Relaxed));
        if package.find(&name).is_none() {
            return cx.intern_in(&package, &name, package.number == KEYWORD);
        }
    }
}

fn plist_place(cx: &mut Context, value: Value) -> Result<(Value, usize), Exit> {
    match cx.properties(value) {
        Some(place) => Ok(place),
        None => cx.type_error("symbol or propertied-object", value),
    }
}

impl Context {
    /// Returns the object and the word index of the property list of a symbol or of an instance of
    /// `propertied-object`.
    fn properties(&self, owner: Value) -> Option<(Value, usize)> {
        if owner.is_symbol() {
            return Some((self.world.symbol_object(owner), symbol::PLIST));
        }
        let propertied = (owner.is(ObjectKind::Instance) || owner.is(ObjectKind::Array))
            && self.derives(self.world.class_of(owner), crate::world::class::PROPERTIED);
        propertied.then_some((owner, 1))
    }

    /// Returns a property, or nil without one. Property lists are lists of pairs, as in EusLisp.
    pub(crate) fn property(&self, owner: Value, key: Value) -> Value {
        let Some((object, slot)) = self.properties(owner) else { return Value::NIL };
        object.get(slot).iter().find(|pair| pair.car() == key).map_or(Value::NIL, Value::cdr)
    }

    /// Sets a property. The caller keeps all arguments alive.
    pub(crate) fn put_property(&mut self, owner: Value, key: Value, value: Value) -> Result<(), Exit> {
        let (object, slot) = plist_place(self, owner)?;
        let list = object.get(slot);
        if let Some(pair) = list.iter().find(|pair| pair.car() == key) {
            pair.set(1, value);
            return Ok(());
        }
        let mark = self.mark();
        // Another thread may replace the list during an allocation.
        self.push(list)?;
        let pair = self.cons(key, value)?;
        let list = self.cons(pair, list)?;
        object.set(slot, list);
        self.release(mark);
        Ok(())
    }

    /// Returns the name that a symbol or string designates.
    pub(crate) fn name_of(&mut self, value: Value) -> Result<String, Exit> {
        if value.is_symbol() {
            return Ok(self.world.symbol_object(value).get(symbol::NAME).text().into_owned());
        }
        if value.is(ObjectKind::String) {
            return Ok(value.text().into_owned());
        }
        self.type_error("symbol or string", value)
    }

    /// Returns a builtin or library function of the package LISP, by name.
    pub(crate) fn installed_function(&mut self, name: &str) -> Answer {
        Ok(self.installed_name(name)?.get(symbol::FUNCTION))
    }
}

fn remove_property(cx: &mut Context, args: Args<'_>) -> Answer {
    let (object, slot) = plist_place(cx, args[0])?;
    let kept: Vec<Value> = object.get(slot).iter().filter(|pair| pair.car() != args[1]).collect();
    let list = cx.list(&kept)?;
    object.set(slot, list);
    Ok(cx.truth(true))
}
