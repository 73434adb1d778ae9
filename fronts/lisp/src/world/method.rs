//! Looks up methods, with a cache in each thread.

use super::class;
use super::method_cache::{CachedMethod, place};
use crate::context::Context;
use crate::value::Value;
use std::sync::atomic::Ordering;

impl Context {
    /// Returns the nearest of `class` and its superclasses that defines the method, and the definition.
    #[inline]
    pub(crate) fn find_method(&mut self, class: Value, selector: Value) -> Option<(Value, Value)> {
        // Acquire: pairs with the Release of `methods_changed`.
        let epoch = self.world.method_epoch.load(Ordering::Acquire);
        let place = place(class, selector);
        let cached = &self.methods[place];
        if cached.epoch == epoch && cached.class == class.0 && cached.selector == selector.0 {
            self.method_hits += 1;
            let (owner, definition) = (Value(cached.found.0), Value(cached.found.1));
            return (!owner.is_nil()).then_some((owner, definition));
        }
        self.method_misses += 1;
        let found = look_up(class, selector);
        // Relaxed: `methods_changed` has emptied the caches.
        if !self.world.caches_methods.load(Ordering::Relaxed) {
            return found;
        }
        let (owner, definition) = found.unwrap_or((Value::NIL, Value::NIL));
        self.methods[place] =
            CachedMethod { epoch, class: class.0, selector: selector.0, found: (owner.0, definition.0) };
        found
    }

    /// Invalidates every thread's method cache.
    pub(crate) fn methods_changed(&self) {
        self.world.method_epoch.fetch_add(1, Ordering::Release);
    }
}

fn look_up(class: Value, selector: Value) -> Option<(Value, Value)> {
    let mut at = class;
    while !at.is_nil() {
        let found = at.slot(class::slot::METHODS).iter().find(|method| method.car() == selector);
        if let Some(method) = found {
            return Some((at, method.cdr()));
        }
        at = at.slot(class::slot::SUPER);
    }
    None
}
