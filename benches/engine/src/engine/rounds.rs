//! Runs contestants in rounds: the one scheduler of every comparison.
//!
//! # Picture
//! ```text
//!   round 0:  A  A again  B  C        each: set up, run, clear up
//!   round 1:     A again  B  C  A     the order rotates, so that each is first equally often
//! ```
//! # Knows / does not know
//! Knows the order of runs. Does not know what a contestant runs, or what its result means.

use super::Cell;
use serde_json::{Value, json};
use thiserror::Error;

/// The reason for which a run has no result: it took too long and was killed, the kernel killed it for lack of memory,
/// its answer is wrong, it failed, or it is not possible on this machine.
#[derive(Clone, Debug, Error, PartialEq)]
pub(crate) enum Ended {
    #[error("stopped")]
    Stopped,
    #[error("killed for lack of memory")]
    OutOfMemory,
    #[error("{0}")]
    Wrong(String),
    #[error("{0}")]
    Failed(String),
    #[error("not possible here")]
    Absent,
}

impl Ended {
    /// Returns the message for a wrong answer or a failure of the contestant `label`, or `None` for other reasons.
    pub(crate) fn message(&self, label: &str) -> Option<String> {
        match self {
            Ended::Wrong(why) => Some(format!("WRONG: {label}: {why}")),
            Ended::Failed(why) => Some(format!("{label}: could not run: {why}")),
            _ => None,
        }
    }

    /// Returns the cell to show instead of a result.
    pub(crate) fn cell(&self) -> Cell {
        match self {
            Ended::Stopped => Cell::Stopped { above: None },
            Ended::OutOfMemory => Cell::OutOfMemory,
            Ended::Wrong(_) => Cell::Wrong,
            Ended::Failed(_) => Cell::Failed,
            Ended::Absent => Cell::Absent,
        }
    }
}

impl From<String> for Ended {
    fn from(why: String) -> Ended {
        Ended::Failed(why)
    }
}

/// One of the things that are compared: a command or function, which runs once in every round. `T` is the result of a
/// run.
pub(crate) struct Contestant<'a, T> {
    pub(crate) name: String,
    /// JSON object whose keys identify this contestant in a bench.
    pub(crate) keys: Value,
    /// Indices of the contestants with which this one is compared. If one of them has no result, this one does not
    /// run.
    pub(crate) needs: Vec<usize>,
    /// Runs the command or the function once, with the preparations before and the clearing up after it.
    pub(crate) run: Box<dyn Fn() -> Result<T, Ended> + 'a>,
}

impl<'a, T> Contestant<'a, T> {
    /// Makes a contestant that needs no other; its only key is `setting`.
    pub(crate) fn new(name: impl Into<String>, run: impl Fn() -> Result<T, Ended> + 'a) -> Self {
        let name = name.into();
        Contestant { keys: json!({ "setting": name }), name, needs: Vec::new(), run: Box::new(run) }
    }
}

/// The results of the contestant `name`, in the order of rounds, and the reason for which there are no more, if it
/// ended early.
#[derive(Debug)]
pub(crate) struct Samples<T> {
    pub(crate) name: String,
    pub(crate) runs: Vec<T>,
    pub(crate) ended: Option<Ended>,
}

/// Calls `turn` for all contestants in each of `rounds` rounds. A contestant that ended, or that needs one that ended,
/// has no more turns; `skipped` is called for each turn that is left out.
pub(crate) fn take_turns<T>(
    all: &[Contestant<'_, T>],
    rounds: u32,
    turn: impl Fn(&Contestant<'_, T>, u32) -> Result<T, Ended>,
    skipped: impl Fn(),
) -> Vec<Samples<T>> {
    let none = |of: &Contestant<'_, T>| Samples { name: of.name.clone(), runs: Vec::new(), ended: None };
    let mut samples: Vec<_> = all.iter().map(none).collect();
    for round in 0..rounds {
        for place in (0..all.len()).map(|turn| (turn + round as usize) % all.len()) {
            let mut needed = all[place].needs.iter().chain([&place]);
            if needed.any(|&needed| samples[needed].ended.is_some()) {
                skipped();
                continue;
            }
            match turn(&all[place], round) {
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
    fn contestants_rotate_until_they_end() {
        let log = &RefCell::new(String::new());
        let make = |name: &'static str, needs, fails| Contestant {
            needs,
            ..Contestant::new(name, move || {
                log.borrow_mut().push_str(name);
                if fails { Err(Ended::Stopped) } else { Ok(name) }
            })
        };
        let all = [make("a", vec![], false), make("b", vec![], true), make("c", vec![1], false)];
        let samples = take_turns(&all, 3, |one, _| (one.run)(), || log.borrow_mut().push('-'));
        assert_eq!(*log.borrow(), "ab---a-a-");
        assert_eq!(samples.iter().map(|it| it.runs.len()).collect::<Vec<_>>(), [3, 0, 0]);
        assert_eq!(samples[1].ended, Some(Ended::Stopped));
        log.borrow_mut().clear();
        take_turns(&[make("a", vec![], false), make("b", vec![], false)], 3, |one, _| (one.run)(), || ());
        assert_eq!(*log.borrow(), "abbaab");
    }
}
