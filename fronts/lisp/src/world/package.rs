//! Implements packages: tables from names to symbols.

use crate::value::Value;
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
    /// Returns a package without symbols, whose Lisp object is `object`.
    pub(super) fn new(number: usize, object: Value, names: Vec<String>, uses: Vec<Arc<Package>>) -> Package {
        Package { number, object, inner: RwLock::new(PackageState { names, symbols: HashMap::new(), uses }) }
    }

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
    pub(super) fn enter(&self, name: &str, symbol: Value, external: bool) -> Value {
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

    /// Makes every symbol of the package external.
    pub(super) fn export_all(&self) {
        for entry in self.write().symbols.values_mut() {
            entry.external = true;
        }
    }

    pub(super) fn roots(&self, visit: &mut impl FnMut(Value)) {
        visit(self.object);
        for entry in self.read().symbols.values() {
            visit(entry.symbol);
        }
    }
}
