//! Labels values that are printed more than once: `#1=` at the first place, `#1#` at the others.

use crate::value::{ObjectKind, Value};
use std::collections::HashMap;

/// Holds the conses and vectors reached more than once, with the label each got when first printed, and the last
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
            if !(value.is_cons() || value.is(ObjectKind::Vector)) {
                continue;
            }
            let count = seen.entry(value.0).or_insert(0_u32);
            *count += 1;
            if *count > 1 {
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
