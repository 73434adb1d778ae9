//! Implements the functions on packages.

use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{Value, symbol};
use crate::world::{LISP, Package, class};
use std::sync::Arc;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("INTERN", 1, 3, |cx, args| {
        let (package, name) = (package_or_current(cx, args.or_nil(1))?, cx.name_of(args[0])?);
        cx.intern_in(&package, &name, false)
    }),
    builtin("FIND-SYMBOL", 1, 2, |cx, args| {
        let (package, name) = (package_or_current(cx, args.or_nil(1))?, cx.name_of(args[0])?);
        Ok(package.find(&name).map_or(Value::NIL, |(symbol, _)| symbol))
    }),
    builtin("FIND-PACKAGE", 1, 1, |cx, args| {
        if cx.package_of_object(args[0]).is_some() {
            return Ok(args[0]);
        }
        let name = cx.name_of(args[0])?;
        Ok(cx.package_named(&name).map_or(Value::NIL, |package| package.object))
    }),
    builtin("PACKAGEP", 1, 1, |cx, args| {
        Ok(cx.truth(args[0].is_object() && args[0].header().class() == class::PACKAGE))
    }),
    builtin("MAKE-PACKAGE", 1, MANY, make_package),
    builtin("IN-PACKAGE", 1, MANY, |cx, args| {
        let name = cx.name_of(args[0])?;
        let package = match cx.package_named(&name) {
            Some(package) => package,
            None => new_package(cx, name, Vec::new(), None)?,
        };
        cx.set_global(cx.world.names.package, package.object);
        Ok(package.object)
    }),
    builtin("PACKAGE-NAME", 1, 1, |cx, args| {
        let package = cx.package_designated(args[0])?;
        cx.string(&package.name())
    }),
    builtin("PACKAGE-NICKNAMES", 1, 1, |cx, args| {
        let names = cx.package_designated(args[0])?.names();
        let mark = cx.mark();
        for name in &names {
            let name = cx.string(name)?;
            cx.push(name)?;
        }
        cx.stacked(mark)
    }),
    builtin("PACKAGE-USE-LIST", 1, 1, |cx, args| {
        let used: Vec<Value> =
            cx.package_designated(args[0])?.uses().iter().map(|package| package.object).collect();
        cx.list(&used)
    }),
    builtin("RENAME-PACKAGE", 2, 3, |cx, args| {
        let package = cx.package_designated(args[0])?;
        let mut names = vec![cx.name_of(args[1])?];
        for nickname in args.or_nil(2).iter() {
            names.push(cx.name_of(nickname)?);
        }
        package.rename(names);
        Ok(package.object)
    }),
    builtin("LIST-ALL-PACKAGES", 0, 0, |cx, _| {
        let all: Vec<Value> = cx.packages().iter().map(|package| package.object).collect();
        cx.list(&all)
    }),
    builtin("USE-PACKAGE", 1, 2, |cx, args| {
        let package = package_or_current(cx, args.or_nil(1))?;
        let used = cx.package_designated(args[0])?;
        package.use_package(&used);
        Ok(cx.truth(true))
    }),
    builtin("UNUSE-PACKAGE", 1, 2, |cx, args| {
        let package = package_or_current(cx, args.or_nil(1))?;
        let used = cx.package_designated(args[0])?;
        package.unuse_package(used.number);
        Ok(cx.truth(true))
    }),
    builtin("EXPORT", 1, 2, |cx, args| {
        change(cx, args, |package, name, symbol| package.import(name, symbol, true))
    }),
    builtin("IMPORT", 1, 2, |cx, args| {
        change(cx, args, |package, name, symbol| package.import(name, symbol, false))
    }),
    builtin("SHADOWING-IMPORT", 1, 2, |cx, args| {
        change(cx, args, |package, name, symbol| package.import(name, symbol, false))
    }),
    builtin("UNEXPORT", 1, 2, |cx, args| change(cx, args, |package, name, _| package.unexport(name))),
    builtin("SHADOW", 1, 2, shadow),
    builtin("UNINTERN", 1, 2, |cx, args| {
        let package = package_or_current(cx, args.or_nil(1))?;
        let name = cx.name_of(args[0])?;
        match package.remove(&name) {
            Some(symbol) => {
                // The table kept the symbol alive; now the arguments do.
                cx.world.symbol_object(symbol).set(symbol::PACKAGE, Value::NIL);
                Ok(cx.truth(true))
            }
            None => Ok(Value::NIL),
        }
    }),
    builtin("LARGESSE:PACKAGE-SYMBOLS", 1, 2, |cx, args| {
        let package = cx.package_designated(args[0])?;
        let external = !args.or_nil(1).is_nil();
        let mark = cx.mark();
        for (symbol, is_external) in package.symbols() {
            if is_external || !external {
                cx.push(symbol)?;
            }
        }
        cx.stacked(mark)
    }),
    builtin("FIND-ALL-SYMBOLS", 1, 1, |cx, args| {
        let name = cx.name_of(args[0])?;
        let mark = cx.mark();
        for package in cx.packages() {
            if package.has(&name)
                && let Some((symbol, _)) = package.find(&name)
            {
                cx.push(symbol)?;
            }
        }
        cx.stacked(mark)
    }),
    builtin("APROPOS-LIST", 1, 2, apropos_list),
];

/// Defines the variables of the predefined packages, such as `*unix-package*`.
pub(super) fn variables(cx: &mut Context) -> Result<(), Exit> {
    for (number, (name, _)) in crate::world::package::FIRST.iter().enumerate() {
        let symbol = cx.installed_name(&format!("*{name}-PACKAGE*"))?;
        let package = cx.package_numbered(number).object;
        cx.define_special(symbol, package);
    }
    Ok(())
}

impl Context {
    /// Returns what the slot of a package holds in EusLisp, which has vectors where this Lisp has tables.
    pub(crate) fn package_view(&mut self, package: &Package, slot: Value) -> Result<Option<Value>, Exit> {
        let slot = self.show_name(slot);
        let external = slot.starts_with("sym");
        let symbols: Vec<Value> = package
            .symbols()
            .into_iter()
            .filter_map(|(symbol, is_external)| (is_external || !external).then_some(symbol))
            .collect();
        let value = match slot.as_str() {
            "names" => {
                let mark = self.mark();
                for name in package.names() {
                    let name = self.string(&name)?;
                    self.push(name)?;
                }
                self.stacked(mark)?
            }
            "use" => {
                let used: Vec<Value> = package.uses().iter().map(|used| used.object).collect();
                self.list(&used)?
            }
            "used-by" => {
                let users: Vec<Value> = self
                    .packages()
                    .iter()
                    .filter(|user| user.uses().iter().any(|used| used.number == package.number))
                    .map(|user| user.object)
                    .collect();
                self.list(&users)?
            }
            "symcount" | "intsymcount" => Value::fixnum(symbols.len() as i64),
            "symvector" | "intsymvector" => {
                // Free places hold 0.
                let mut places = symbols;
                places.resize(places.len() * 2 + 10, Value::fixnum(0));
                self.vector_from(&places)?
            }
            _ => return Ok(None),
        };
        Ok(Some(value))
    }
}

fn package_or_current(cx: &mut Context, value: Value) -> Result<Arc<Package>, Exit> {
    if value.is_nil() { Ok(cx.current_package()) } else { cx.package_designated(value) }
}

fn new_package(
    cx: &mut Context,
    name: String,
    nicknames: Vec<String>,
    uses: Option<Vec<Arc<Package>>>,
) -> Result<Arc<Package>, Exit> {
    let uses = uses.unwrap_or_else(|| vec![cx.package_numbered(LISP)]);
    let names = std::iter::once(name).chain(nicknames).collect();
    cx.make_package(names, &uses)
}

fn make_package(cx: &mut Context, args: Args<'_>) -> Answer {
    let names = cx.world.names;
    let [nicknames, uses] = cx.keywords(args.from(1), [names.nicknames, names.use_])?;
    let name = cx.name_of(args[0])?;
    if cx.package_named(&name).is_some() {
        return cx.type_error("name of a new package", args[0]);
    }
    let mut others = Vec::new();
    for nickname in nicknames.given_or_nil().iter() {
        others.push(cx.name_of(nickname)?);
    }
    let mut used = None;
    if let Some(list) = uses.given() {
        let list = if list.is_list() { list } else { cx.list(&[list])? };
        cx.push(list)?;
        let mut all = Vec::new();
        for item in list.iter() {
            all.push(cx.package_designated(item)?);
        }
        used = Some(all);
    }
    new_package(cx, name, others, used).map(|package| package.object)
}

/// Applies a function to one symbol or to each of a list.
fn change(cx: &mut Context, args: Args<'_>, act: fn(&Package, &str, Value)) -> Answer {
    let package = package_or_current(cx, args.or_nil(1))?;
    let one = [args[0]];
    let symbols: Vec<Value> = if args[0].is_cons() { cx.alive(args[0])? } else { one.to_vec() };
    for symbol in symbols {
        if !symbol.is_symbol() {
            return cx.type_error("symbol", symbol);
        }
        let name = cx.name_of(symbol)?;
        act(&package, &name, symbol);
    }
    Ok(cx.truth(true))
}

fn shadow(cx: &mut Context, args: Args<'_>) -> Answer {
    let package = package_or_current(cx, args.or_nil(1))?;
    let one = [args[0]];
    let symbols: Vec<Value> = if args[0].is_cons() { cx.alive(args[0])? } else { one.to_vec() };
    for symbol in symbols {
        let name = cx.name_of(symbol)?;
        if !package.has(&name) {
            let text = cx.string(&name)?;
            let new = cx.new_symbol(text)?;
            cx.push(new)?;
            new.set(symbol::PACKAGE, package.object);
            package.import(&name, new, false);
        }
    }
    Ok(cx.truth(true))
}

fn apropos_list(cx: &mut Context, args: Args<'_>) -> Answer {
    let part = cx.name_of(args[0])?.to_uppercase();
    let packages =
        if args.or_nil(1).is_nil() { cx.packages() } else { vec![cx.package_designated(args[1])?] };
    let mark = cx.mark();
    for package in packages {
        for (symbol, _) in package.symbols() {
            let name = cx.world.symbol_object(symbol).get(symbol::NAME);
            if name.text().to_uppercase().contains(&part) {
                cx.push(symbol)?;
            }
        }
    }
    cx.stacked(mark)
}
