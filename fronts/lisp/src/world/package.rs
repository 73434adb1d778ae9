//! Implements packages: tables from names to symbols.

use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value, flag, symbol};
use crate::world::class;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A package maps names to symbols.
pub(crate) struct Package {
    /// The number of the package, which its Lisp object holds.
    pub(crate) number: usize,
    pub(crate) object: Value,
    inner: RwLock<PackageState>,
}

#[derive(Default)]
struct PackageState {
    /// The name, then the nicknames.
    names: Vec<String>,
    symbols: HashMap<Box<str>, PackageEntry>,
    uses: Vec<Arc<Package>>,
}

#[derive(Clone, Copy)]
struct PackageEntry {
    symbol: Value,
    external: bool,
}

/// Lists the predefined packages, in the order of their numbers.
pub(crate) const FIRST: [(&str, &[&str]); 9] = [
    ("LISP", &[]),
    ("KEYWORD", &[]),
    ("SYSTEM", &["SYS"]),
    ("UNIX", &[]),
    ("MATH", &[]),
    ("GEOMETRY", &["GEO"]),
    ("COMPILER", &["COMP"]),
    ("USER", &[]),
    ("LARGESSE", &[]),
];
pub(crate) const LISP: usize = 0;
pub(crate) const KEYWORD: usize = 1;
pub(super) const GEOMETRY: usize = 5;
pub(crate) const USER: usize = 7;

impl Package {
    fn read(&self) -> RwLockReadGuard<'_, PackageState> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, PackageState> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn name(&self) -> String {
        self.read().names[0].clone()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.read().names.clone()
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.read().names.iter().any(|own| own == name)
    }

    pub(crate) fn rename(&self, names: Vec<String>) {
        self.write().names = names;
    }

    pub(crate) fn uses(&self) -> Vec<Arc<Package>> {
        self.read().uses.clone()
    }

    pub(crate) fn use_package(&self, other: &Arc<Package>) {
        let mut inner = self.write();
        if other.number != self.number && !inner.uses.iter().any(|used| used.number == other.number) {
            inner.uses.push(Arc::clone(other));
        }
    }

    pub(crate) fn unuse_package(&self, number: usize) {
        self.write().uses.retain(|used| used.number != number);
    }

    /// Returns the symbol of a name, in this package or an external one of a used package, and whether it is external
    /// here.
    pub(crate) fn find(&self, name: &str) -> Option<(Value, bool)> {
        let inner = self.read();
        if let Some(entry) = inner.symbols.get(name) {
            return Some((entry.symbol, entry.external));
        }
        inner.uses.iter().find_map(|used| {
            let entry = used.read().symbols.get(name).copied()?;
            entry.external.then_some((entry.symbol, false))
        })
    }

    /// Returns whether the package itself contains the symbol.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.read().symbols.contains_key(name)
    }

    /// Adds a symbol unless the name is taken; returns the symbol in the table.
    fn enter(&self, name: &str, symbol: Value, external: bool) -> Value {
        self.write().symbols.entry(name.into()).or_insert(PackageEntry { symbol, external }).symbol
    }

    /// Adds a symbol of any package to this one, external or not.
    pub(crate) fn import(&self, name: &str, symbol: Value, external: bool) {
        let mut inner = self.write();
        let entry = inner.symbols.entry(name.into()).or_insert(PackageEntry { symbol, external });
        entry.symbol = symbol;
        entry.external |= external;
    }

    pub(crate) fn unexport(&self, name: &str) {
        if let Some(entry) = self.write().symbols.get_mut(name) {
            entry.external = false;
        }
    }

    pub(crate) fn remove(&self, name: &str) -> Option<Value> {
        self.write().symbols.remove(name).map(|entry| entry.symbol)
    }

    /// Returns all symbols in this package, with whether they are external.
    pub(crate) fn symbols(&self) -> Vec<(Value, bool)> {
        self.read().symbols.values().map(|entry| (entry.symbol, entry.external)).collect()
    }

    pub(super) fn roots(&self, visit: &mut impl FnMut(Value)) {
        visit(self.object);
        for entry in self.read().symbols.values() {
            visit(entry.symbol);
        }
    }
}

impl Context {
    /// Returns the package with a name or nickname.
    pub(crate) fn package_named(&self, name: &str) -> Option<Arc<Package>> {
        let packages = self.world.tables.packages.read().unwrap_or_else(PoisonError::into_inner);
        packages.iter().find(|package| package.is_called(name)).map(Arc::clone)
    }

    pub(crate) fn package_numbered(&self, number: usize) -> Arc<Package> {
        Arc::clone(&self.world.tables.packages.read().unwrap_or_else(PoisonError::into_inner)[number])
    }

    pub(crate) fn packages(&self) -> Vec<Arc<Package>> {
        self.world.tables.packages.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the package of a Lisp package object.
    pub(crate) fn package_of_object(&self, object: Value) -> Option<Arc<Package>> {
        if !object.is_object() || object.header().class() != class::PACKAGE {
            return None;
        }
        Some(self.package_numbered(object.slot(1).as_fixnum()?.cast_unsigned() as usize))
    }

    /// Returns the value of `*package*`.
    pub(crate) fn current_package(&self) -> Arc<Package> {
        let object = self.global_value(self.world.names.package);
        self.package_of_object(object).unwrap_or_else(|| self.package_numbered(USER))
    }

    pub(crate) fn make_package(
        &mut self,
        names: Vec<String>,
        uses: &[Arc<Package>],
    ) -> Result<Arc<Package>, Exit> {
        let mark = self.mark();
        // The first packages precede the classes, so only the number of their class is used.
        let object = self.new_slots(ObjectKind::Instance, class::PACKAGE, 3)?;
        self.push(object)?;
        let name = self.string(&names[0])?;
        self.release(mark);
        object.set_slot(2, name);
        let mut packages = self.world.tables.packages.write().unwrap_or_else(PoisonError::into_inner);
        let package = Arc::new(Package {
            number: packages.len(),
            object,
            inner: RwLock::new(PackageState { names, symbols: HashMap::new(), uses: uses.to_vec() }),
        });
        object.set_slot(1, Value::fixnum(package.number.cast_signed() as i64));
        packages.push(Arc::clone(&package));
        Ok(package)
    }

    /// Returns the symbol of a name in a package, creating it if necessary.
    pub(crate) fn intern_in(&mut self, package: &Package, name: &str, external: bool) -> Answer {
        if let Some((symbol, _)) = package.find(name) {
            return Ok(symbol);
        }
        let mark = self.mark();
        let text = self.string(name)?;
        let symbol = self.new_symbol(text)?;
        self.push(symbol)?;
        symbol.set(symbol::PACKAGE, package.object);
        if package.number == KEYWORD {
            symbol.set(symbol::VALUE, symbol);
            symbol.add_flag(flag::CONSTANT);
        }
        let symbol = package.enter(name, symbol, external || package.number == KEYWORD);
        self.release(mark);
        Ok(symbol)
    }

    /// Returns the symbol of a name in the current package, creating it if necessary.
    pub(crate) fn intern(&mut self, name: &str) -> Answer {
        let package = self.current_package();
        self.intern_in(&package, name, false)
    }

    /// Returns the keyword with a name, which is in upper case.
    pub(crate) fn keyword(&mut self, name: &str) -> Answer {
        let package = self.package_numbered(KEYWORD);
        self.intern_in(&package, name, true)
    }

    /// Returns a package given as an object, symbol or string.
    pub(crate) fn package_designated(&mut self, value: Value) -> Result<Arc<Package>, Exit> {
        if let Some(package) = self.package_of_object(value) {
            return Ok(package);
        }
        let name = self.name_of(value)?;
        match self.package_named(&name) {
            Some(package) => Ok(package),
            None => self.error(ErrorClass::Reader, format!("there is no package {name}")),
        }
    }
}

impl Context {
    /// Makes every symbol of a package external.
    pub(crate) fn export_all(&self, name: &str) {
        let Some(package) = self.package_named(name) else { return };
        for entry in package.write().symbols.values_mut() {
            entry.external = true;
        }
    }
}
