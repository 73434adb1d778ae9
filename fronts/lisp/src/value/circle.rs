//! Detects circular lists during a traversal.

use super::Value;

/// Detects cycles by Brent's algorithm: compares each step with one remembered position, which is replaced at every
/// power of two.
#[derive(Clone)]
pub(crate) struct Circle<T> {
    passed: Option<T>,
    steps: usize,
    most: usize,
}

impl<T: Copy + PartialEq> Circle<T> {
    pub(crate) fn new() -> Circle<T> {
        Circle { passed: None, steps: 0, most: 1 }
    }

    /// Advances to a position; returns whether it is the remembered one. A cycle is detected after a few rounds at
    /// most.
    pub(crate) fn closes_at(&mut self, place: T) -> bool {
        if self.passed == Some(place) {
            return true;
        }
        self.steps += 1;
        if self.steps == self.most {
            (self.passed, self.steps, self.most) = (Some(place), 0, 2 * self.most);
        }
        false
    }
}

impl Value {
    /// Iterates over the conses of a list up to the first tail that is none, and over each cons of a circular list at
    /// least once.
    pub(crate) fn tails(self) -> impl Iterator<Item = Value> + Clone {
        let mut rest = self;
        let mut circle = Circle::new();
        std::iter::from_fn(move || {
            let tail = rest;
            if !tail.is_cons() || circle.closes_at(tail) {
                return None;
            }
            rest = tail.get(1);
            Some(tail)
        })
    }

    /// Returns the end of a list, nil or the value after the dot, or `None` when it is circular.
    pub(crate) fn end(self) -> Option<Value> {
        let end = self.tails().last().map_or(self, |tail| tail.get(1));
        (!end.is_cons()).then_some(end)
    }

    /// Iterates over the elements of a list, in the order of [`Value::tails`].
    pub(crate) fn iter(self) -> impl Iterator<Item = Value> + Clone {
        self.tails().map(|tail| tail.get(0))
    }
}
