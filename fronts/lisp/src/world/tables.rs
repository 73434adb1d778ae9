//! Holds the tables that are roots of the collector.

use super::native::Native;
use super::package::Package;
use crate::threads::lock;
use crate::value::Value;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// Largest number of classes: a header has 16 bits for the number.
const CLASSES: usize = 1 << 16;

/// Holds the tables of packages, classes and values that Rust holds.
pub(crate) struct Tables {
    pub(crate) packages: RwLock<Vec<std::sync::Arc<Package>>>,
    classes: Box<[AtomicU64]>,
    class_count: AtomicUsize,
    /// Values kept alive for as long as the world.
    pinned: Mutex<Vec<Value>>,
    natives: Mutex<Vec<Option<Native>>>,
}

impl Tables {
    pub(crate) fn new() -> Tables {
        Tables {
            packages: RwLock::default(),
            classes: (0..CLASSES).map(|_| AtomicU64::new(0)).collect(),
            class_count: AtomicUsize::new(0),
            pinned: Mutex::default(),
            natives: Mutex::default(),
        }
    }

    pub(crate) fn class(&self, number: u16) -> Value {
        Value(self.classes[usize::from(number)].load(Ordering::Acquire))
    }

    /// Returns a number for a new class, or none when all are used up.
    pub(crate) fn number_class(&self) -> Option<u16> {
        u16::try_from(self.class_count.fetch_add(1, Ordering::Relaxed)).ok()
    }

    pub(crate) fn set_class(&self, number: u16, class: Value) {
        // Release: pairs with the Acquire in `class`, so that the class's slots are visible.
        self.classes[usize::from(number)].store(class.0, Ordering::Release);
    }

    /// Iterates over all classes, in order of creation.
    pub(crate) fn all_classes(&self) -> impl Iterator<Item = Value> {
        let count = self.class_count.load(Ordering::Relaxed).min(CLASSES);
        self.classes[..count]
            .iter()
            .map(|word| Value(word.load(Ordering::Acquire)))
            .filter(|class| !class.is_nil())
    }

    /// Keeps a value alive for as long as the world.
    pub(crate) fn pin(&self, value: Value) {
        lock(&self.pinned).push(value);
    }

    fn natives(&self) -> MutexGuard<'_, Vec<Option<Native>>> {
        lock(&self.natives)
    }

    /// Registers a native object and returns its number for a Lisp object.
    pub(crate) fn hold(&self, native: Native) -> Value {
        let mut natives = self.natives();
        let index = match natives.iter().position(Option::is_none) {
            Some(index) => index,
            None => {
                natives.push(None);
                natives.len() - 1
            }
        };
        natives[index] = Some(native);
        Value::fixnum(index as i64)
    }

    /// Returns the native object with a number.
    pub(crate) fn native(&self, number: Value) -> Option<Native> {
        let index = usize::try_from(number.as_fixnum()?).ok()?;
        self.natives().get(index)?.clone()
    }

    /// Removes the native object with a number, but no worker: a program may choose the number.
    pub(crate) fn drop_native(&self, number: Value) -> Option<Native> {
        let index = usize::try_from(number.as_fixnum()?).ok()?;
        self.natives().get_mut(index)?.take_if(|native| !matches!(native, Native::Worker(_)))
    }

    /// Removes the worker with a number.
    pub(crate) fn drop_worker(&self, number: Value) {
        let index = number.as_fixnum().and_then(|number| usize::try_from(number).ok());
        if let Some(native) = index.and_then(|index| self.natives().get_mut(index).map(Option::take)) {
            debug_assert!(matches!(native, Some(Native::Worker(_))));
        }
    }

    /// Passes every root to `visit`.
    pub(crate) fn roots(&self, mut visit: impl FnMut(Value)) {
        for class in self.all_classes() {
            visit(class);
        }
        for value in lock(&self.pinned).iter() {
            visit(*value);
        }
        for package in self.packages.read().unwrap_or_else(PoisonError::into_inner).iter() {
            package.roots(&mut visit);
        }
        for native in self.natives().iter().flatten() {
            native.roots(&mut visit);
        }
    }
}
