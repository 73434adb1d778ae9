//! Reads the labels `#1=` and `#1#`.

use crate::context::{Context, RootMark};
use crate::error::Exit;
use crate::value::{ObjectKind, Value};
use std::collections::{HashMap, HashSet};

/// Maps each label to its value; a placeholder, which is a cons of its own, until the value is read.
pub(super) struct Labels {
    values: HashMap<i64, Value>,
    /// The root that keeps the list of placeholders alive.
    placeholders: Option<RootMark>,
}

impl Labels {
    pub(super) fn none() -> Labels {
        Labels { values: HashMap::new(), placeholders: None }
    }

    /// Creates the labels for one form; pushes one root.
    pub(super) fn new(cx: &mut Context) -> Result<Labels, Exit> {
        let placeholders = Some(cx.mark());
        cx.push(Value::NIL)?;
        Ok(Labels { values: HashMap::new(), placeholders })
    }

    /// Registers a label: references inside its value get the placeholder.
    pub(super) fn announce(&mut self, cx: &mut Context, number: i64) -> Result<Value, Exit> {
        let placeholder = cx.cons(Value::NIL, Value::NIL)?;
        if let Some(root) = self.placeholders {
            let list = cx.cons(placeholder, cx.root(root, 0))?;
            cx.set_root(root, 0, list);
        }
        self.values.insert(number, placeholder);
        Ok(placeholder)
    }

    /// Registers the value of a label and replaces the placeholder in it.
    pub(super) fn resolve(
        &mut self,
        cx: &mut Context,
        number: i64,
        value: Value,
        placeholder: Value,
    ) -> Result<(), Exit> {
        cx.push(value)?;
        self.values.insert(number, value);
        let mut seen = HashSet::new();
        let mut ahead = vec![value];
        while let Some(at) = ahead.pop() {
            let words = if at.is_cons() {
                0..2
            } else if matches!(at.kind(), Some(ObjectKind::Vector | ObjectKind::Instance | ObjectKind::Array))
                && !cx.is_class(at)
            {
                1..at.length() + 1
            } else {
                continue;
            };
            if !seen.insert(at) {
                continue;
            }
            for word in words {
                let part = at.get(word);
                if part == placeholder {
                    at.set(word, value);
                } else {
                    ahead.push(part);
                }
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, number: i64) -> Option<Value> {
        self.values.get(&number).copied()
    }
}
