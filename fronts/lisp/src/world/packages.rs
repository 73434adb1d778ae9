//! Finds and makes packages, and finds and makes symbols in them.

use super::class;
use super::package::{KEYWORD, Package, USER};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value, flag, symbol};
use std::sync::{Arc, PoisonError};

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
        let number = usize::try_from(object.slot(1).as_fixnum()?).ok()?;
        let packages = self.world.tables.packages.read().unwrap_or_else(PoisonError::into_inner);
        // Not an object that a program instantiated.
        packages.get(number).filter(|package| package.object == object).map(Arc::clone)
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
        let package = Arc::new(Package::new(packages.len(), object, names, uses.to_vec()));
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
        if let Some(package) = self.package_named(name) {
            package.export_all();
        }
    }
}
