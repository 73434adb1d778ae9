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

/// The reason why a run has no result: it took too long and was killed, the kernel killed it for lack of memory, its
/// answer is wrong, or it failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    Stopped,
    OutOfMemory,
    Wrong(String),
    Failed(String),
}

/// A function that clears up, and adds to the result.
type TearDown<'a, T> = Box<dyn Fn(Option<&mut T>) + 'a>;

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
    /// Clears up after each run, failed ones included.
    pub(crate) tear_down: TearDown<'a, T>,
}

impl<'a, T> Contestant<'a, T> {
    /// Makes a contestant that needs nothing else; its only key is `setting`.
    pub(crate) fn new(name: impl Into<String>, run: impl Fn() -> Result<T, Ended> + 'a) -> Self {
        let (name, set_up, tear_down) = (name.into(), Box::new(|| Ok(())), Box::new(|_: Option<&mut T>| ()));
        let keys = json!({ "setting": name });
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

/// The results of one contestant, in the order of rounds, and the reason why there are no more.
#[derive(Debug)]
pub(crate) struct Samples<T> {
    pub(crate) runs: Vec<T>,
    pub(crate) ended: Option<Ended>,
}

/// A step of the scheduler, for the caller to show.
pub(crate) enum Event<'e, T> {
    Begins,
    Done(&'e Result<T, Ended>),
    Skipped,
}

/// Runs all contestants in `rounds` rounds. One that ended, or that needs one that ended, runs no more.
pub(crate) fn take_turns<T>(
    all: &[Contestant<'_, T>],
    rounds: u32,
    tell: impl Fn(&Contestant<'_, T>, u32, Event<'_, T>),
) -> Vec<Samples<T>> {
    let mut samples: Vec<_> = all.iter().map(|_| Samples { runs: Vec::new(), ended: None }).collect();
    for round in 0..rounds {
        for turn in 0..all.len() {
            let place = (turn + round as usize) % all.len();
            let one = &all[place];
            if one.needs.iter().chain([&place]).any(|&needed| samples[needed].ended.is_some()) {
                tell(one, round, Event::Skipped);
                continue;
            }
            tell(one, round, Event::Begins);
            let done = one.once();
            tell(one, round, Event::Done(&done));
            match done {
                Ok(result) => samples[place].runs.push(result),
                Err(ended) => samples[place].ended = Some(ended),
            }
        }
    }
    samples
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
            set_up: Box::new(move || {
                log.borrow_mut().push('(');
                Ok(())
            }),
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
        log.borrow_mut().clear();
        take_turns(&[make("a", vec![], false), make("b", vec![], false)], 3, |_, _, _| ());
        assert_eq!(*log.borrow(), "(a)(b)(b)(a)(a)(b)");
    }
}
