//! Runs contestants in rounds: the one scheduler of every comparison.
//!
//! # Picture
//! ```text
//!   round 0:  A  A again  B  C        each: set up ─► run ─► tear down
//!   round 1:     A again  B  C  A     the order rotates, so that each is first equally often
//! ```
//! # Knows / does not know
//! Knows the order. Does not know what a contestant runs, or what its result means.

use serde_json::{Value, json};

/// The reason why a run has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    /// The run took too long and was killed.
    Stopped,
    /// The answer is wrong, for this reason.
    Wrong(String),
    /// The run failed, with this message.
    Failed(String),
}

/// A contestant, which runs once in every round. `T` is the result of a run.
pub(crate) struct Contestant<'a, T> {
    pub(crate) name: String,
    /// JSON object of the keys that identify it in a bench.
    pub(crate) keys: Value,
    /// Indices of the contestants without which there is nothing to compare this one with.
    pub(crate) needs: Vec<usize>,
    /// Makes ready what the run needs, before each run.
    pub(crate) set_up: Box<dyn Fn() -> Result<(), String> + 'a>,
    /// Runs the command or the function.
    pub(crate) run: Box<dyn Fn() -> Result<T, Ended> + 'a>,
    /// Clears up after each run, failed ones included, and adds to its result.
    pub(crate) tear_down: Box<dyn Fn(Option<&mut T>) + 'a>,
}

impl<'a, T> Contestant<'a, T> {
    /// Makes a contestant that needs nothing else; its only key is `setting`.
    pub(crate) fn new(name: impl Into<String>, run: impl Fn() -> Result<T, Ended> + 'a) -> Self {
        let name = name.into();
        let keys = json!({ "setting": name });
        let (set_up, tear_down) = (Box::new(|| Ok(())), Box::new(|_: Option<&mut T>| ()));
        Contestant { name, keys, needs: Vec::new(), set_up, run: Box::new(run), tear_down }
    }

    /// Runs it once, outside the rounds.
    pub(crate) fn once(&self) -> Result<T, Ended> {
        (self.set_up)().map_err(Ended::Failed)?;
        let mut done = (self.run)();
        (self.tear_down)(done.as_mut().ok());
        done
    }
}

/// The results of one contestant, in the order of rounds.
#[derive(Debug)]
pub(crate) struct Samples<T> {
    pub(crate) runs: Vec<T>,
    /// The reason why there are no more runs.
    pub(crate) ended: Option<Ended>,
}

/// A step of the scheduler, for the caller to show.
pub(crate) enum Event<'e, T> {
    Begins,
    Ran(&'e T),
    Ended(&'e Ended),
    /// The turn is over, whether there was a run or not.
    Over,
}

/// Runs all contestants in `rounds` rounds. One that ended, or that needs one that ended, runs no more.
pub(crate) fn take_turns<T>(
    all: &[Contestant<'_, T>],
    rounds: usize,
    mut tell: impl FnMut(&Contestant<'_, T>, usize, Event<'_, T>),
) -> Vec<Samples<T>> {
    let mut samples: Vec<_> = all.iter().map(|_| Samples { runs: Vec::new(), ended: None }).collect();
    for (round, place) in order(all.len(), rounds) {
        let one = &all[place];
        if one.needs.iter().chain([&place]).all(|&needed| samples[needed].ended.is_none()) {
            tell(one, round, Event::Begins);
            match one.once() {
                Ok(result) => {
                    tell(one, round, Event::Ran(&result));
                    samples[place].runs.push(result);
                }
                Err(ended) => {
                    tell(one, round, Event::Ended(&ended));
                    samples[place].ended = Some(ended);
                }
            }
        }
        tell(one, round, Event::Over);
    }
    samples
}

/// Returns the round and the contestant of every turn.
fn order(contestants: usize, rounds: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rounds * contestants).map(move |turn| {
        let (round, place) = (turn / contestants, turn % contestants);
        (round, (place + round) % contestants)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn contestants_rotate_and_are_torn_down() {
        let log = &RefCell::new(String::new());
        let make = |name: &'static str, needs, fails| Contestant {
            needs,
            set_up: Box::new(move || Ok(log.borrow_mut().push('('))),
            tear_down: Box::new(move |_| log.borrow_mut().push(')')),
            ..Contestant::new(name, move || {
                log.borrow_mut().push_str(name);
                if fails { Err(Ended::Stopped) } else { Ok(name) }
            })
        };
        let all = [make("a", vec![], false), make("b", vec![], true), make("c", vec![1], false)];
        let samples = take_turns(&all, 3, |_, _, _| ());
        assert_eq!(*log.borrow(), "(a)(b)(a)(a)");
        assert_eq!(samples.iter().map(|it| it.runs.len()).collect::<Vec<_>>(), [3, 0, 0]);
        assert_eq!(samples[1].ended, Some(Ended::Stopped));
        let firsts = order(3, 4).filter(|turn| turn.1 == turn.0 % 3).count();
        assert_eq!((firsts, order(3, 2).nth(3)), (4, Some((1, 1))));
    }
}
