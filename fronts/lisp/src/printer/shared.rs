//! Labels values that are printed more than once: `#1=` at the first place, `#1#` at the others.

use crate::value::{ObjectKind, Value, symbol};
use std::collections::HashMap;

/// Holds the conses, vectors and symbols without a package that are reached more than once, with the label each got when first printed, and the last
/// label.
pub(super) struct SharedLabels(HashMap<u64, Option<u32>>, u32);

pub(super) enum Label {
    None,
    First(u32),
    Again(u32),
}

impl SharedLabels {
    /// Searches a value without recursion.
    pub(super) fn of(value: Value) -> SharedLabels {
        let mut seen = HashMap::new();
        let mut ahead = vec![value];
        while let Some(value) = ahead.pop() {
            let is_symbol = is_uninterned(value);
            if !(value.is_cons() || value.is(ObjectKind::Vector) || is_symbol) {
                continue;
            }
            let count = seen.entry(value.0).or_insert(0_u32);
            *count += 1;
            if *count > 1 || is_symbol {
                continue;
            }
            if value.is_cons() {
                ahead.extend([value.get(0), value.get(1)]);
            } else {
                ahead.extend((0..value.length()).map(|index| value.slot(index)));
            }
        }
        seen.retain(|_, count| *count > 1);
        SharedLabels(seen.into_keys().map(|key| (key, None)).collect(), 0)
    }

    pub(super) fn is_labelled(&self, value: Value) -> bool {
        self.0.contains_key(&value.0)
    }

    pub(super) fn label(&mut self, value: Value) -> Label {
        match self.0.get_mut(&value.0) {
            None => Label::None,
            Some(Some(number)) => Label::Again(*number),
            Some(none) => {
                self.1 += 1;
                *none = Some(self.1);
                Label::First(self.1)
            }
        }
    }
}

/// Returns whether a value is a symbol of no package, which without labels would be read as several symbols.
fn is_uninterned(value: Value) -> bool {
    value.is_symbol_object() && value.get(symbol::PACKAGE).is_nil()
}
