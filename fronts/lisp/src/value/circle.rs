//! Noticing that a walk goes round in a circle.

use super::Value;

/// Where a walk is compared with itself, as Brent has it: one place passed on the way is kept, and
/// replaced at every power of two.
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

    /// Notes a place; whether the walk has been there. A circle is noticed after some rounds at most.
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
    /// The conses of a list, up to its first tail that is none. Of a circular list, each at least once.
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

    /// What a list ends in: nil, or what stands after the dot; none when it is a circle.
    pub(crate) fn end(self) -> Option<Value> {
        let end = self.tails().last().map_or(self, |tail| tail.get(1));
        (!end.is_cons()).then_some(end)
    }

    /// The elements of a list, as [`Value::tails`] has its conses.
    pub(crate) fn iter(self) -> impl Iterator<Item = Value> + Clone {
        self.tails().map(|tail| tail.get(0))
    }
}
